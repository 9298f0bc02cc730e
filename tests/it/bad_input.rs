//! What cannot be read passes unchanged, with a counted finding, and is never
//! an error of Seam's own.

use seam::engine::event::Code;
use seam::telemetry::Event;

use super::support::client::post;
use super::support::seam::Seam;
use super::support::soon;
use super::support::upstream::{Upstream, plain};

const REPLY: &[u8] = br#"{"id":"1","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}]}"#;
const TOOL: &str = r#"{"type":"function","function":{"name":"transfer_to_ward","parameters":{}}}"#;

/// Sends a body; upstream gets the same bytes, the client its reply.
async fn passes(seam: &Seam, upstream: &mut Upstream, head: &str, body: &[u8]) {
    upstream.replies(plain("content-type: application/json\r\n", REPLY));
    let got = soon(seam.exchange(post("/v1/chat/completions", head, body))).await;
    assert_eq!((got.status, got.body.as_slice()), (200, REPLY));
    let received = soon(upstream.request()).await;
    assert!(received.body == body, "the body arrives as it was sent");
}

fn body(messages: &str) -> String {
    format!(r#"{{"model":"m","tools":[{TOOL}],"messages":{messages}}}"#)
}

#[tokio::test]
async fn what_is_not_readable_passes_with_a_finding() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let deep = body(&format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)));
    let twice = format!(r#"{{"messages":[],"tools":[{TOOL}],"messages":[]}}"#);
    let cut_off = body(r#"[{"role":"user","content":"hi"}]"#);
    let not_utf8 = [body("[]").as_bytes(), b"\xff\xfe"].concat();
    let bodies: [&[u8]; 8] = [
        br#"{"name":"transfer_to_ward"}, but not JSON"#,
        &cut_off.as_bytes()[..cut_off.len() - 3],
        deep.as_bytes(),
        twice.as_bytes(),
        &not_utf8,
        br#"[{"name":"transfer_to_ward"}]"#,
        br#"{"messages":{"name":"transfer_to_ward"}}"#,
        br#"{"messages":[{"role":"user","role":"system","name":"transfer_to_ward"}]}"#,
    ];
    for (n, body) in bodies.iter().enumerate() {
        passes(&seam, &mut upstream, "", body).await;
        let found = seam.findings(Code::BodyUnreadable);
        assert_eq!(found, n as u64 + 1, "{}", String::from_utf8_lossy(&body[..body.len().min(80)]));
    }
}

#[tokio::test]
async fn what_is_odd_but_readable_is_read_and_passes() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let odd = [
        // A lone surrogate is JSON, and no Unicode text.
        r#"[{"role":"user","content":"\ud800 hi"}]"#,
        // Arguments that are no JSON, or none at all.
        r#"[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"find","arguments":""}}]},{"role":"tool","tool_call_id":"c1","content":""}]"#,
        r#"[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"find","arguments":"{"}}]},{"role":"tool","tool_call_id":"c1","content":"x"}]"#,
        // Results without a call, calls without a result, an empty list.
        r#"[{"role":"tool","tool_call_id":"c9","content":"x"}]"#,
        r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"find","arguments":"{}"}}]}]"#,
        "[]",
    ];
    for messages in odd {
        passes(&seam, &mut upstream, "", body(messages).as_bytes()).await;
    }
    assert_eq!(seam.findings(Code::BodyUnreadable), 0);
}

#[tokio::test]
async fn a_body_over_the_limit_passes_unread_and_is_counted() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::with(&upstream.url(), &[("SEAM_INSPECT_LIMIT", "64KiB")]).await;
    let large = body(&format!(r#"[{{"role":"user","content":"{}"}}]"#, "x".repeat(100 << 10)));
    passes(&seam, &mut upstream, "", large.as_bytes()).await;
    assert_eq!(seam.count(Event::BodyTooLarge), 1);
}

#[tokio::test]
async fn a_compressed_body_passes_unread_and_is_counted() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    passes(&seam, &mut upstream, "content-encoding: gzip\r\n", b"\x1f\x8b transfer_to_ward").await;
    assert_eq!(seam.count(Event::BodyCompressed), 1);
}

#[tokio::test]
async fn a_reply_that_cannot_be_read_passes_with_a_finding() {
    let upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let sent = body(r#"[{"role":"user","content":"hi"}]"#);
    let replies: [&[u8]; 3] = [b"[]", b"<html>busy</html>", br#"{"choices":{}}"#];
    for (n, reply) in replies.iter().enumerate() {
        upstream.replies(plain("content-type: application/json\r\n", reply));
        let got = soon(seam.exchange(post("/v1/chat/completions", "", sent.as_bytes()))).await;
        assert_eq!((got.status, got.body.as_slice()), (200, *reply));
        assert_eq!(seam.findings(Code::ReplyUnreadable), n as u64 + 1);
    }
}
