//! Replies that are read as they pass: the client gets the same bytes, in time.

use seam::telemetry::Event;

use crate::support::client::post;
use crate::support::seam::Seam;
use crate::support::upstream::{Gate, Step, Upstream, chunk, chunked_head, plain};

/// A request that offers a transfer: what is answered to it is read.
fn offering() -> Vec<u8> {
    let body = br#"{"model":"m","stream":true,"messages":[{"role":"system","content":"You triage."},
        {"role":"user","content":"My parcel is lost."}],"tools":[{"type":"function","function":
        {"name":"transfer_to_parcels","parameters":{"type":"object","properties":{}}}}]}"#;
    post("/v1/chat/completions", "accept-encoding: gzip, br\r\n", body)
}

/// A transfer, as a stream tells it.
fn transfer() -> Vec<u8> {
    let delta = |delta: &str| {
        format!(
            "data: {{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n"
        )
    };
    let call = r#"{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"transfer_to_parcels","arguments":""}}]}"#;
    let arguments = r#"{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}"#;
    let end = "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n";
    [delta(call), ": ping\n\n".to_owned(), delta(arguments), end.to_owned()].concat().into_bytes()
}

#[tokio::test]
async fn a_reply_that_is_read_is_asked_for_uncompressed() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    seam.exchange(offering()).await;
    assert_eq!(upstream.request().await.header("accept-encoding"), Some("identity"));
    seam.exchange(post("/v1/chat/completions", "accept-encoding: gzip, br\r\n", b"{}")).await;
    assert_eq!(upstream.request().await.header("accept-encoding"), Some("gzip, br"));
}

#[tokio::test]
async fn it_is_the_same_wherever_it_is_cut() {
    let stream = transfer();
    for cut in (0..=stream.len()).step_by(3) {
        // A Seam of its own: each is a conversation that opens alike.
        let upstream = Upstream::start().await;
        let seam = Seam::start(&upstream.url()).await;
        let mut steps = vec![Step::Send(chunked_head("content-type: text/event-stream\r\n"))];
        let parts = [&stream[..cut], &stream[cut..]];
        steps.extend(parts.iter().filter(|part| !part.is_empty()).map(|part| Step::Send(chunk(part))));
        steps.push(Step::Send(b"0\r\n\r\n".to_vec()));
        upstream.then(steps);
        let got = seam.exchange(offering()).await;
        assert!(got.whole && got.body == stream, "cut at {cut}: {}", got.text());
        assert_eq!((seam.count(Event::Watched), seam.count(Event::Panicked)), (1, 0));
    }
}

#[tokio::test]
async fn a_plain_reply_is_the_same_with_its_length() {
    for body in [&b"{\"choices\":[]}"[..], b"not json", b"", &vec![b'x'; 100_000]] {
        let upstream = Upstream::start().await;
        let seam = Seam::start(&upstream.url()).await;
        upstream.replies(plain("content-type: application/json\r\n", body));
        let got = seam.exchange(offering()).await;
        assert!(got.whole && got.body == body);
        assert_eq!(got.header("content-length"), Some(body.len().to_string().as_str()));
    }
}

#[tokio::test]
async fn text_leaves_as_soon_as_it_came() {
    let upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let gate = Gate::new();
    let text =
        b"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Let me see.\"}}]}\n\n";
    upstream.then([
        Step::Send([chunked_head("content-type: text/event-stream\r\n"), chunk(text)].concat()),
        Step::Wait(gate.clone()),
        Step::Send([chunk(b"data: [DONE]\n\n"), b"0\r\n\r\n".to_vec()].concat()),
    ]);
    let mut client = seam.client().await;
    client.send(offering()).await;
    client.head().await;
    assert_eq!(client.chunk().await.unwrap(), text);
    gate.open();
    assert_eq!(client.chunk().await.unwrap(), b"data: [DONE]\n\n");
    assert!(client.is_at_end().await);
}

#[tokio::test]
async fn one_that_breaks_off_is_told_after_what_came() {
    let upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let first = b"data: {\"id\":\"c\",\"choices\":[]}\n\n";
    let head = chunked_head("content-type: text/event-stream\r\n");
    upstream.then([Step::Send([head, chunk(first)].concat()), Step::Close]);
    let got = seam.exchange(offering()).await;
    let rest = got.body.strip_prefix(first).map(|rest| String::from_utf8_lossy(rest).into_owned());
    assert!(
        rest.as_deref().is_some_and(|rest| rest.contains("seam_upstream_reply_broken")),
        "{}",
        got.text()
    );
}

#[tokio::test]
async fn a_client_that_leaves_cancels_it() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let head = chunked_head("content-type: text/event-stream\r\n");
    upstream.then([Step::Send([head, chunk(b"data: {}\n\n")].concat()), Step::Stall]);
    let mut client = seam.client().await;
    client.send(offering()).await;
    client.head().await;
    client.chunk().await.unwrap();
    drop(client);
    upstream.gone().await;
}

#[tokio::test]
async fn its_connection_serves_the_next_exchange() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let mut client = seam.client().await;
    for _ in 0..3 {
        let end = [chunk(b"data: [DONE]\n\n"), b"0\r\n\r\n".to_vec()].concat();
        upstream.replies([chunked_head("content-type: text/event-stream\r\n"), end].concat());
        assert!(client.exchange(offering()).await.whole);
        assert_eq!(upstream.request().await.connection, 0);
    }
}
