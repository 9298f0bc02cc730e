//! Streams of odd shapes, framing, headers, and whose record it is.

use std::fmt::Write;

use serde_json::{Value, json};

use seam::engine::event::Code;

use super::{Stage, brief};
use crate::support::client::{Got, post};
use crate::support::conversations::{DESK, DOCK, before, find, moved, request};
use crate::support::fake::{Judge, Turn};
use crate::support::seam::Seam;
use crate::support::soon;
use crate::support::upstream::{Received, Upstream, chunk, chunked_head, plain};

/// Seam in front of an upstream whose bytes the test writes.
struct Raw {
    upstream: Upstream,
    seam: Seam,
}

impl Raw {
    async fn start() -> Raw {
        let upstream = Upstream::start().await;
        let seam = Seam::start(&upstream.url()).await;
        Raw { upstream, seam }
    }

    async fn send(&mut self, path: &str, head: &str, body: &Value, reply: Vec<u8>) -> (Got, Received) {
        self.upstream.replies(reply);
        let head = format!("authorization: Bearer test\r\n{head}");
        let got = soon(self.seam.exchange(post(path, &head, body.to_string().as_bytes()))).await;
        (got, soon(self.upstream.request()).await)
    }

    /// The desk's reply is this stream. Gives what the dock's server then gets.
    async fn after(&mut self, reply: Vec<u8>, whole: bool) -> Value {
        let mut asked = request(DESK, &before());
        asked["stream"] = json!(true);
        let (got, _) = self.send("/v1/chat/completions", "", &asked, reply.clone()).await;
        if whole {
            let from = reply.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
            assert_eq!(got.text(), String::from_utf8_lossy(&reply[from..]), "the upstream's own bytes");
        }
        let done = plain("content-type: application/json\r\n", &says("On it."));
        let (_, got) = self.send("/v1/chat/completions", "", &request(DOCK, &before()), done).await;
        serde_json::from_slice(&got.body).unwrap()
    }
}

fn says(text: &str) -> Vec<u8> {
    json!({"id": "x", "object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": text}}]})
    .to_string()
    .into_bytes()
}

fn events(chunks: &[Value]) -> String {
    let mut text = String::new();
    for chunk in chunks {
        write!(text, "data: {chunk}\n\n").unwrap();
    }
    text.push_str("data: [DONE]\n\n");
    text
}

fn stream(text: &str) -> Vec<u8> {
    plain("content-type: text/event-stream\r\n", text.as_bytes())
}

fn delta(delta: &Value, finish: &Value) -> Value {
    json!({"id": "c", "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn fragment(fragment: &Value) -> Value {
    delta(&json!({"tool_calls": [fragment]}), &Value::Null)
}

fn opened(index: u32, id: &str, name: &str) -> Value {
    let function = json!({"name": name, "arguments": ""});
    fragment(&json!({"index": index, "id": id, "type": "function", "function": function}))
}

fn is_briefed(body: &Value) -> bool {
    body.to_string().contains("[Seam handoff ")
}

/// Row 53.
#[tokio::test]
async fn a_fragment_without_an_index_fell_into_the_wrong_call() {
    let mut raw = Raw::start().await;
    let text = events(&[
        opened(0, "call_n1", "add_note"),
        fragment(&json!({"index": 0, "function": {"arguments": "{\"text\":\"calm\"}"}})),
        opened(1, "call_t1", "transfer_to_dock"),
        fragment(&json!({"function": {"arguments": "{\"reason\":\"a hurry"}})),
        fragment(&json!({"function": {"arguments": " at pier 9\"}"}})),
        delta(&json!({}), &json!("tool_calls")),
    ]);
    let got = raw.after(stream(&text), true).await;
    assert!(brief(&got).contains("a hurry at pier 9"), "the last one opened takes it: {}", brief(&got));
    assert!(raw.seam.findings(Code::FragmentUnplaced) >= 1);
}

/// Row 55.
#[tokio::test]
async fn a_chunk_had_no_choices() {
    let mut raw = Raw::start().await;
    let usage = json!({"id": "c", "choices": [], "usage": {"prompt_tokens": 70, "completion_tokens": 7, "total_tokens": 77}});
    let text = events(&[
        json!({"id": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}),
        opened(0, "call_t1", "transfer_to_dock"),
        delta(&json!({}), &json!("tool_calls")),
        usage,
    ]);
    assert!(is_briefed(&raw.after(stream(&text), true).await));
    let counted = raw.seam.admin("GET", "/metrics", "").await.text();
    let input = r#"seam_upstream_tokens_total{kind="input",brief="without"} 70"#;
    assert!(counted.lines().any(|line| line == input), "usage is counted once: {counted}");
}

/// Row 57.
#[tokio::test]
async fn calls_came_and_the_reply_said_stop() {
    let whole = |finish: Option<&str>| {
        let mut chunks = vec![
            opened(0, "call_t1", "transfer_to_dock"),
            fragment(&json!({"index": 0, "function": {"arguments": "{\"reason\":\"late\"}"}})),
        ];
        chunks.extend(finish.map(|finish| delta(&json!({}), &json!(finish))));
        events(&chunks)
    };
    for finish in [Some("stop"), None, Some("tool_calls")] {
        let mut raw = Raw::start().await;
        assert!(
            is_briefed(&raw.after(stream(&whole(finish)), true).await),
            "{finish:?}: its arguments are complete"
        );
    }
    // The connection drops behind complete arguments: no transfer was ever finished.
    let mut raw = Raw::start().await;
    let text = whole(None);
    let cut = text.len() - "data: [DONE]\n\n".len();
    let mut reply = chunked_head("content-type: text/event-stream\r\n");
    reply.extend(chunk(&text.as_bytes()[..cut]));
    raw.upstream.then([crate::support::upstream::Step::Send(reply), crate::support::upstream::Step::Close]);
    let mut asked = request(DESK, &before());
    asked["stream"] = json!(true);
    let head = "authorization: Bearer test\r\n";
    soon(raw.seam.exchange(post("/v1/chat/completions", head, asked.to_string().as_bytes()))).await;
    soon(raw.upstream.request()).await;
    let done = plain("content-type: application/json\r\n", &says("On it."));
    let (_, got) = raw.send("/v1/chat/completions", "", &request(DOCK, &before()), done).await;
    assert!(!is_briefed(&serde_json::from_slice(&got.body).unwrap()));
}

/// Row 58; the gaps: `every_event_leaves_as_soon_as_it_came` and `text_leaves_as_soon_as_it_came`.
#[tokio::test]
async fn a_whole_stream_came_in_one_batch() {
    let mut raw = Raw::start().await;
    let text =
        events(&[delta(&json!({"content": "Hello"}), &Value::Null), delta(&json!({}), &json!("stop"))]);
    let head = "content-type: text/event-stream\r\ncache-control: no-cache\r\nx-accel-buffering: no\r\n";
    let mut asked = request(DESK, &before());
    asked["stream"] = json!(true);
    let accepts = "accept-encoding: gzip, br\r\n";
    let (got, _) = raw.send("/v1/chat/completions", accepts, &asked, plain(head, text.as_bytes())).await;
    assert_eq!(
        (got.header("cache-control"), got.header("x-accel-buffering")),
        (Some("no-cache"), Some("no"))
    );
    assert_eq!(got.header("content-encoding"), None, "no compression is added");
}

/// Row 60.
#[tokio::test]
async fn a_longer_body_left_under_the_old_length() {
    let stage = Stage::start().await;
    stage.desk_transfers().await;
    let body = request(DOCK, &[before(), moved()].concat()).to_string();
    let chunked = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: seam\r\nauthorization: Bearer test\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    for request in [
        chunked.into_bytes(),
        post("/v1/chat/completions", "authorization: Bearer test\r\n", body.as_bytes()),
    ] {
        stage.fake.next(Turn::says("On it."), Judge::Refuse);
        assert_eq!(soon(stage.seam.exchange(request)).await.status, 200);
        let got = stage.fake.last().body;
        assert!(got.to_string().len() > body.len() && is_briefed(&got), "it came whole");
    }
    let mut raw = Raw::start().await;
    let done = plain("content-type: application/json\r\n", &says("On it."));
    let (_, got) =
        raw.send("/v1/chat/completions", "", &request(DOCK, &[before(), moved()].concat()), done).await;
    assert_eq!(got.header("content-length"), Some(got.body.len().to_string().as_str()));
    assert_eq!(got.header("transfer-encoding"), None, "one way to tell the length");
}

/// Row 69.
#[tokio::test]
async fn headers_were_not_passed_on() {
    let mut raw = Raw::start().await;
    let sent = [
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("tracestate", "vendor=1"),
        ("x-request-id", "r-17"),
        ("openai-organization", "org-x"),
        ("x-upstream", "http://192.0.2.1/"),
    ];
    let mut head = String::new();
    for (name, value) in sent {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    let done = plain("content-type: application/json\r\nx-request-id: r-18\r\n", &says("On it."));
    let body = request(DOCK, &[before(), moved()].concat());
    let (got, received) = raw.send("/v1/chat/completions", &head, &body, done).await;
    for (name, value) in sent {
        assert_eq!(received.header(name), Some(value), "{name}");
    }
    assert_eq!(got.header("x-request-id"), Some("r-18"));
    assert!(is_briefed(&serde_json::from_slice(&received.body).unwrap()), "of a rewritten request too");
}

/// Row 72.
#[tokio::test]
async fn another_tenant_got_a_strangers_record() {
    let stage = Stage::start().await;
    stage.desk_transfers().await;
    // The client hides the transfer: only memory can tell of it, and only the tenant's own.
    let body = request(DOCK, &before()).to_string();
    for (key, briefed) in [("other", false), ("test", true)] {
        stage.fake.next(Turn::says("On it."), Judge::Note);
        let head = format!("authorization: Bearer {key}\r\n");
        soon(stage.seam.exchange(post("/v1/chat/completions", &head, body.as_bytes()))).await;
        assert_eq!(is_briefed(&stage.fake.last().body), briefed, "{key}");
    }
}

/// Row 46; what stays and what goes: `items_that_only_upstream_has_stay_with_what_belongs_to_them`.
#[tokio::test]
async fn a_list_referred_to_what_was_never_kept() {
    let mut raw = Raw::start().await;
    let tool = |name: &str| json!({"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}, "strict": false});
    let body = |store: bool| {
        json!({"model": "m", "store": store, "instructions": "You are the dock agent.", "tools": [tool("rebook")], "input": [
            {"role": "user", "content": "My ferry is late."},
            {"type": "item_reference", "id": "msg_77"},
            {"role": "user", "content": "Are you there?"},
            {"type": "function_call", "call_id": "call_t1", "name": "transfer_to_dock", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_t1", "output": "{\"assistant\": \"dock\"}"}]})
    };
    let reply =
        json!({"id": "resp_1", "object": "response", "status": "completed", "output": []}).to_string();
    let reply = plain("content-type: application/json\r\n", reply.as_bytes());
    let (_, got) = raw.send("/v1/responses", "", &body(false), reply).await;
    assert_eq!(raw.seam.findings(Code::ReferenceNotKept), 1);
    let got: Value = serde_json::from_slice(&got.body).unwrap();
    assert!(is_briefed(&got));
    assert_eq!(
        got["input"][1],
        json!({"type": "item_reference", "id": "msg_77"}),
        "the client's own is left alone"
    );
}

/// Row 67.
#[tokio::test]
async fn a_tools_description_grew_over_the_limit() {
    let stage = Stage::start().await;
    let mut asked = request(DESK, &before());
    asked["tools"][2]["function"]["description"] = json!("Ask the dock. ".repeat(71));
    stage.sends(request(DESK, &before()[..1]), find()).await;
    stage.sends(asked, Turn::calls("call_t1", "transfer_to_dock", "{}")).await;
}
