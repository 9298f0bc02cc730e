//! What fails is told honestly: before the head as a status, after it as the stream allows.

use seam::telemetry::Event;

use crate::support::client::{Got, post};
use crate::support::seam::Seam;
use crate::support::upstream::{Step, Upstream, chunk, chunked_head};

const FIRST: &[u8] = b"data: 1\n\n";

async fn exchange(settings: &[(&str, &str)], steps: impl Into<Vec<Step>>) -> Got {
    let upstream = Upstream::start().await;
    let seam = Seam::with(&upstream.url(), settings).await;
    upstream.then(steps);
    let got = seam.exchange(post("/v1/chat/completions", "", b"{}")).await;
    let failed = seam.count(Event::FailedUpstream) + seam.count(Event::ReplyBroken);
    assert_eq!(failed, 1, "what failed is counted, once");
    got
}

async fn check_before_the_head(settings: &[(&str, &str)], step: Step, expected: (u16, &str)) {
    let got = exchange(settings, [step]).await;
    assert_eq!((got.status, got.error_code().as_str()), expected);
    assert_eq!(got.header("x-should-retry"), None, "the SDKs decide by the status");
}

#[tokio::test]
async fn before_the_head_it_is_a_status_and_openais_error() {
    let no_reply = (502, "seam_upstream_no_reply");
    check_before_the_head(&[], Step::Close, no_reply).await;
    check_before_the_head(&[], Step::Reset, no_reply).await;
    check_before_the_head(&[], Step::Send(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec()), no_reply).await;
    let huge = [&b"HTTP/1.1 200 OK\r\nx: "[..], &vec![b'x'; 200_000], b"\r\n\r\n"].concat();
    check_before_the_head(&[], Step::Send(huge), no_reply).await;
    check_before_the_head(&[("SEAM_IDLE_TIMEOUT", "50ms")], Step::Stall, (504, "seam_upstream_timeout"))
        .await;
}

#[tokio::test]
async fn an_upstream_that_is_down_is_named() {
    let upstream = Upstream::start().await;
    let (url, address) = (upstream.url(), upstream.address);
    drop(upstream);
    let seam = Seam::start(&url).await;
    // The port is free again as soon as the listener's task has ended.
    let got = loop {
        let got =
            seam.exchange(post("/v1/chat/completions", "authorization: Bearer sk-secret\r\n", b"{}")).await;
        if got.status != 200 {
            break got;
        }
    };
    assert_eq!((got.status, got.error_code().as_str()), (502, "seam_upstream_unreachable"));
    let told = got.text();
    assert!(told.contains(&address.to_string()) && told.contains("refused"), "{told}");
    assert!(!told.contains("sk-secret") && !told.contains("/v1"), "{told}");
}

#[tokio::test]
async fn an_upstream_without_an_address_is_named() {
    let seam = Seam::start("http://no-such-host.invalid/v1").await;
    let got = seam.exchange(post("/v1/chat/completions", "", b"{}")).await;
    assert_eq!((got.status, got.error_code().as_str()), (502, "seam_upstream_unknown_host"));
    assert!(got.text().contains("no-such-host.invalid"));
}

#[tokio::test]
async fn an_event_stream_that_breaks_between_events_ends_in_an_error_event() {
    for (settings, last, code) in [
        (&[][..], Step::Close, "seam_upstream_reply_broken"),
        (&[], Step::Reset, "seam_upstream_reply_broken"),
        (&[("SEAM_IDLE_TIMEOUT", "50ms")], Step::Stall, "seam_upstream_timeout"),
    ] {
        let head = chunked_head("content-type: text/event-stream; charset=utf-8\r\n");
        let got = exchange(settings, [Step::Send([head, chunk(FIRST)].concat()), last]).await;
        let text = got.text();
        let event = text.strip_prefix("data: 1\n\n").and_then(|rest| rest.strip_prefix("data: "));
        let event: serde_json::Value =
            serde_json::from_str(event.unwrap_or_else(|| panic!("{text:?}"))).unwrap();
        assert_eq!(event["error"]["code"], code);
        assert!(got.whole && text.ends_with("}\n\n"), "the end is a clean one: {text:?}");
    }
}

#[tokio::test]
async fn half_an_event_is_not_made_to_look_whole() {
    let head = chunked_head("content-type: text/event-stream\r\n");
    let got = exchange(&[], [Step::Send([head, chunk(b"data: {\"x\":")].concat()), Step::Close]).await;
    assert_eq!((got.text().as_str(), got.whole), ("data: {\"x\":", false));
}

#[tokio::test]
async fn what_is_no_plain_event_stream_breaks_off() {
    for head in [
        chunked_head("content-type: application/json\r\n"),
        chunked_head("content-type: text/event-stream\r\ncontent-encoding: gzip\r\n"),
    ] {
        let got = exchange(&[], [Step::Send([head, chunk(FIRST)].concat()), Step::Close]).await;
        assert_eq!((got.body.as_slice(), got.whole), (FIRST, false));
    }
}

#[tokio::test]
async fn a_lie_about_the_length_is_passed_on_as_a_break() {
    let reply =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 90\r\n\r\ndata: 1\n\n";
    let got = exchange(&[], [Step::Send(reply.to_vec()), Step::Close]).await;
    assert_eq!((got.header("content-length"), got.body.as_slice(), got.whole), (Some("90"), FIRST, false));
}

#[tokio::test]
async fn a_client_that_stops_in_its_body_is_told() {
    let upstream = Upstream::start().await;
    let seam = Seam::with(&upstream.url(), &[("SEAM_IDLE_TIMEOUT", "50ms")]).await;
    let mut client = seam.client().await;
    let got = client.exchange("POST /v1/responses HTTP/1.1\r\nhost: s\r\ncontent-length: 9\r\n\r\n{").await;
    assert_eq!((got.status, got.error_code().as_str()), (408, "seam_request_timeout"));
    assert_eq!(seam.count(Event::FailedCaller), 1);
}

#[tokio::test]
async fn a_head_that_is_no_http_ends_one_connection() {
    let upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    for request in [
        "nonsense\r\n\r\n".to_owned(),
        "GET /v1/models HTTP/1.1\r\nhost : s\r\nno colon\r\n\r\n".to_owned(),
        format!("GET /v1/models HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(200_000)),
        format!("GET /v1/models HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(500)),
        "POST /v1/x HTTP/1.1\r\nhost: s\r\ncontent-length: 1, 2\r\n\r\n".to_owned(),
        "POST /v1/x HTTP/1.1\r\nhost: s\r\ntransfer-encoding: gzip\r\n\r\n".to_owned(),
    ] {
        let mut client = seam.client().await;
        client.send_what_fits(&request).await;
        let status = client.head_if_any().await.map(|got| got.status);
        assert!(status.is_none_or(|status| (400..500).contains(&status)), "{status:?} {request:.60}");
    }
    assert_eq!(seam.exchange(post("/v1/models", "", b"")).await.status, 200);
    assert_eq!(seam.count(Event::Panicked), 0);
}
