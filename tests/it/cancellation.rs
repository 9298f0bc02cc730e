//! A client that goes away takes its exchange with it, upstream included.

use crate::support::client::post;
use crate::support::seam::Seam;
use crate::support::upstream::{Seen, Step, Upstream, chunk, chunked_head};

#[tokio::test]
async fn before_the_first_byte_of_the_reply() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    upstream.then([Step::Stall]);
    let mut client = seam.client().await;
    client.send(post("/v1/chat/completions", "", b"{}")).await;
    upstream.request().await;
    drop(client);
    upstream.gone().await;
}

#[tokio::test]
async fn in_the_middle_of_a_stream_that_rests() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    upstream.then([
        Step::Send(chunked_head("content-type: text/event-stream\r\n")),
        Step::Send(chunk(b"data: 1\n\n")),
        Step::Stall,
    ]);
    let mut client = seam.client().await;
    client.send(post("/v1/chat/completions", "", b"{}")).await;
    client.head().await;
    assert_eq!(client.chunk().await.unwrap(), b"data: 1\n\n");
    drop(client);
    upstream.gone().await;
}

#[tokio::test]
async fn in_the_middle_of_a_stream_that_floods() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let mut steps = vec![Step::Send(chunked_head("content-type: text/event-stream\r\n"))];
    steps.extend(std::iter::repeat_n(Step::Send(chunk(&vec![b'x'; 100_000])), 1000));
    upstream.then(steps);
    let mut client = seam.client().await;
    client.send(post("/v1/chat/completions", "", b"{}")).await;
    client.head().await;
    client.chunk().await.unwrap();
    drop(client);
    upstream.gone().await;
}

#[tokio::test]
async fn in_the_middle_of_its_own_body() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    upstream.then_at_once([]);
    let mut client = seam.client().await;
    client.send("POST /v1/files HTTP/1.1\r\nhost: s\r\ncontent-length: 100\r\n\r\nhalf").await;
    assert!(matches!(upstream.next().await, Seen::Head));
    assert!(matches!(upstream.next().await, Seen::Part(part) if part == b"half"));
    drop(client);
    upstream.gone().await;
}

#[tokio::test]
async fn in_the_middle_of_a_body_that_is_collected_nothing_goes_upstream() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let mut client = seam.client().await;
    client.send("POST /v1/chat/completions HTTP/1.1\r\nhost: s\r\ncontent-length: 100\r\n\r\n{").await;
    drop(client);
    seam.exchange(post("/v1/models", "", b"next")).await;
    assert_eq!(upstream.request().await.body, b"next");
}

#[tokio::test]
async fn one_of_two_exchanges_of_an_http2_connection() {
    use crate::support::h2::Client;
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    upstream.then([Step::Stall]);
    let client = Client::connect(seam.address).await;
    let lost = tokio::spawn({
        let client = client.clone();
        async move { client.post("/v1/chat/completions", b"{}").await }
    });
    upstream.request().await;
    lost.abort();
    upstream.gone().await;
    // The connection lives on.
    let got = client.post("/v1/chat/completions", b"{}").await;
    assert_eq!(got.status, 200);
}
