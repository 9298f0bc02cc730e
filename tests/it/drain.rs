//! The end: what runs may finish, then it is cut off, and the exit code is 0 either way.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use tokio::task::JoinHandle;

use crate::support::binary::Binary;
use crate::support::client::{Client, post};
use crate::support::h2;
use crate::support::seam::Seam;
use crate::support::soon;
use crate::support::upstream::{Gate, Step, Upstream, chunk, chunked_head};

const FIRST: &[u8] = b"data: 1\n\n";
const LAST: &[u8] = b"data: [DONE]\n\n";

/// An event stream that goes on when the gate is opened.
fn stream(gate: &Gate) -> [Step; 3] {
    let head = chunked_head("content-type: text/event-stream\r\n");
    let end = [chunk(LAST), b"0\r\n\r\n".to_vec()].concat();
    [Step::Send([head, chunk(FIRST)].concat()), Step::Wait(gate.clone()), Step::Send(end)]
}

/// A client in the middle of the stream.
async fn client_in(address: SocketAddr) -> Client {
    let mut client = Client::connect(address).await;
    client.send(post("/v1/chat/completions", "", b"{}")).await;
    client.head().await;
    assert_eq!(client.chunk().await.unwrap(), FIRST);
    client
}

#[tokio::test]
async fn streams_in_flight_end_whole() {
    let upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let gate = Gate::new();
    let mut clients = Vec::new();
    for _ in 0..50 {
        upstream.then(stream(&gate));
        clients.push(client_in(seam.address).await);
    }
    let mut resting = seam.client().await;
    resting.exchange(post("/v1/models", "", b"")).await;
    let (address, admin) = (seam.address, seam.admin);
    seam.drain.ask();
    assert!(resting.is_closed().await, "a connection that rests is closed");
    // Nobody new is let in, as soon as the listener's own task has heard of it.
    soon(async { while tokio::net::TcpStream::connect(address).await.is_ok() {} }).await;
    assert_eq!(
        Client::connect(admin).await.exchange("GET /ready HTTP/1.1\r\nhost: a\r\n\r\n").await.status,
        503
    );
    for mut client in clients {
        gate.open();
        assert_eq!(client.chunk().await.unwrap(), LAST);
        assert!(client.is_at_end().await);
        assert!(client.is_closed().await);
    }
    seam.ended().await;
}

#[tokio::test]
async fn streams_that_outlast_the_deadline_end_in_an_error_event() {
    let upstream = Upstream::start().await;
    let seam = Seam::with(&upstream.url(), &[("SEAM_DRAIN_TIMEOUT", "50ms")]).await;
    upstream.then(stream(&Gate::new()));
    let mut client = client_in(seam.address).await;
    seam.drain.ask();
    let event = String::from_utf8(client.chunk().await.unwrap()).unwrap();
    assert!(event.starts_with("data: {\"error\":") && event.contains("\"seam_ending\""), "{event}");
    assert!(client.is_at_end().await, "the end is a clean one");
    seam.ended().await;
}

#[tokio::test]
async fn streams_of_an_http2_connection_end_in_an_error_event_too() {
    let upstream = Upstream::start().await;
    let seam = Seam::with(&upstream.url(), &[("SEAM_DRAIN_TIMEOUT", "50ms")]).await;
    let head = chunked_head("content-type: text/event-stream\r\n");
    upstream.then([Step::Send([head, chunk(FIRST)].concat()), Step::Stall]);
    let client = h2::Client::connect(seam.address).await;
    let exchange = tokio::spawn(async move { client.post("/v1/chat/completions", b"{}").await });
    let mut upstream = upstream;
    upstream.request().await;
    seam.drain.ask();
    let got = soon(exchange).await.unwrap();
    let text = String::from_utf8(got.body).unwrap();
    assert!(text.starts_with("data: 1\n\ndata: {\"error\":") && text.contains("\"seam_ending\""), "{text}");
    seam.ended().await;
}

#[tokio::test]
async fn an_exchange_without_a_reply_is_cut_off_at_the_deadline() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::with(&upstream.url(), &[("SEAM_DRAIN_TIMEOUT", "50ms")]).await;
    upstream.then([Step::Stall]);
    let mut client = seam.client().await;
    client.send(post("/v1/chat/completions", "", b"{}")).await;
    upstream.request().await;
    seam.drain.ask();
    let got = client.reply(false).await;
    assert_eq!((got.status, got.error_code().as_str()), (503, "seam_ending"));
    upstream.gone().await;
    seam.ended().await;
}

#[tokio::test]
async fn sigterm_lets_the_stream_finish_and_the_exit_code_is_0() {
    let upstream = Upstream::start().await;
    let seam = Binary::start(&upstream.url(), &[]).await;
    let healthcheck = |binary: &Binary| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_seam"));
        command.arg("healthcheck").env_clear().env("SEAM_ADMIN_LISTEN", binary.admin.to_string());
        command.stderr(Stdio::null()).status().unwrap().code()
    };
    assert_eq!(healthcheck(&seam), Some(0));
    let gate = Gate::new();
    upstream.then(stream(&gate));
    let mut client = client_in(seam.address).await;
    seam.signal("TERM");
    seam.draining().await;
    assert_eq!(healthcheck(&seam), Some(1));
    gate.open();
    assert_eq!(client.chunk().await.unwrap(), LAST);
    assert!(client.is_at_end().await);
    assert_eq!(seam.ended().await.0, Some(0));
}

#[tokio::test]
async fn a_second_signal_ends_it_now() {
    let upstream = Upstream::start().await;
    let seam = Binary::start(&upstream.url(), &[]).await;
    upstream.then(stream(&Gate::new()));
    let mut client = client_in(seam.address).await;
    seam.signal("TERM");
    seam.draining().await;
    seam.signal("INT");
    let event = String::from_utf8(client.chunk().await.unwrap()).unwrap();
    assert!(event.contains("\"seam_ending\""), "{event}");
    assert_eq!(seam.ended().await.0, Some(0));
}

/// Seam with 500 streams in flight, each after its first event: 400 on two HTTP/2 connections, the others on
/// connections of their own.
async fn with_500_streams(settings: &[(&str, &str)]) -> (Binary, Upstream, Gate, Vec<JoinHandle<Vec<u8>>>) {
    let mut upstream = Upstream::start().await;
    let seam = Binary::start(&upstream.url(), settings).await;
    let gate = Gate::new();
    (0..500).for_each(|_| upstream.then(stream(&gate)));
    let mut streams = Vec::new();
    for _ in 0..2 {
        let client = h2::Client::connect(seam.address).await;
        let clients = std::iter::repeat_n(client, 200);
        streams.extend(clients.map(|client| {
            tokio::spawn(async move { client.post("/v1/chat/completions", b"{}").await.body })
        }));
    }
    let address = seam.address;
    streams.extend((0..100).map(|_| {
        tokio::spawn(async move {
            let got = Client::connect(address).await.exchange(post("/v1/chat/completions", "", b"{}")).await;
            assert!(got.whole);
            got.body
        })
    }));
    for _ in 0..streams.len() {
        upstream.request().await;
    }
    while !metrics(&seam).await.contains("\nseam_streams_in_flight 500\n") {}
    (seam, upstream, gate, streams)
}

async fn metrics(seam: &Binary) -> String {
    Client::connect(seam.admin).await.exchange("GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n").await.text()
}

#[tokio::test]
async fn of_500_streams_in_flight_at_sigterm_all_end_whole() {
    let (seam, _upstream, gate, streams) = with_500_streams(&[]).await;
    assert_eq!(streams.len(), 500);
    seam.signal("TERM");
    seam.draining().await;
    for _ in 0..streams.len() {
        gate.open();
    }
    for stream in streams {
        assert_eq!(soon(stream).await.unwrap(), [FIRST, LAST].concat());
    }
    assert_eq!(seam.ended().await.0, Some(0));
}

#[tokio::test]
async fn of_500_streams_that_outlast_the_deadline_all_end_in_an_error_event() {
    let (seam, _upstream, _gate, streams) = with_500_streams(&[("SEAM_DRAIN_TIMEOUT", "200ms")]).await;
    seam.signal("TERM");
    for stream in streams {
        let body = String::from_utf8(soon(stream).await.unwrap()).unwrap();
        assert!(body.starts_with("data: 1\n\ndata: {\"error\":"), "{body}");
        assert!(body.contains("\"seam_ending\"") && body.ends_with("\n\n"), "{body}");
    }
    assert_eq!(seam.ended().await.0, Some(0));
}
