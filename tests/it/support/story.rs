//! One transfer over real sockets: a garage's intake desk hands a customer to
//! its workshop.

use serde_json::{Value, json};

use super::client::post;
use super::seam::Seam;
use super::upstream::{Upstream, plain};

/// The credential of its client.
pub(crate) const CREDENTIAL: &str = "sk-garage-9f31c0de77aa";

/// What the sender's client sends.
pub(crate) fn sender_request() -> Value {
    request("You are the intake desk of a garage.", &before(), "transfer_to_workshop")
}

/// What the receiver's client sends.
pub(crate) fn receiver_request() -> Value {
    let mut messages = before();
    messages.push(calls("call_9", "transfer_to_workshop", &json!({"reason": "The brakes squeal."})));
    messages.push(result("call_9", r#"{"assistant": "workshop"}"#));
    request("You are the workshop agent of a garage.", &messages, "transfer_to_intake_desk")
}

/// The upstream's reply that transfers.
pub(crate) fn transferring_reply() -> Vec<u8> {
    reply(&calls("call_9", "transfer_to_workshop", &json!({"reason": "The brakes squeal."})))
}

/// The upstream's reply to the receiver.
pub(crate) fn receivers_reply() -> Vec<u8> {
    reply(&json!({"role": "assistant", "content": "I am glad to take over bk_4471."}))
}

/// Plays the transfer; gives the receiver's request as upstream got it, and the head of its reply.
pub(crate) async fn play(seam: &Seam, upstream: &mut Upstream) -> (Value, Vec<String>) {
    upstream.replies(transferring_reply());
    seam.exchange(post("/v1/chat/completions", &head(), sender_request().to_string().as_bytes())).await;
    upstream.request().await;
    upstream.replies(receivers_reply());
    let body = receiver_request().to_string();
    let got = seam.exchange(post("/v1/chat/completions", &head(), body.as_bytes())).await;
    assert_eq!(got.status, 200);
    let received = upstream.request().await;
    (serde_json::from_slice(&received.body).unwrap(), got.head)
}

/// The headers of its client.
pub(crate) fn head() -> String {
    format!("content-type: application/json\r\nauthorization: Bearer {CREDENTIAL}\r\n")
}

fn before() -> Vec<Value> {
    let found = r#"{"booking":"bk_4471","plate":"KA 17 XR","status":"confirmed","quote":"318.40"}"#;
    vec![
        json!({"role": "user", "content": "My brakes squeal, plate KA 17 XR. Never call me before noon."}),
        calls("call_1", "find_booking", &json!({"plate": "KA 17 XR"})),
        result("call_1", found),
    ]
}

fn request(system: &str, messages: &[Value], transfer: &str) -> Value {
    let mut all = vec![json!({"role": "system", "content": system})];
    all.extend_from_slice(messages);
    let tool = |name: &str, properties: Value| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}});
    let tools = [
        tool("find_booking", json!({"plate": {"type": "string"}})),
        tool(transfer, json!({"reason": {"type": "string"}})),
    ];
    json!({"model": "m-1", "messages": all, "tools": tools})
}

fn calls(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}}]})
}

fn result(id: &str, text: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": text})
}

/// A reply with this message.
pub(crate) fn reply(message: &Value) -> Vec<u8> {
    let finish = if message.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
    let body = json!({
        "id": "chatcmpl-7", "object": "chat.completion", "model": "m-1-2026",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": 900, "completion_tokens": 12, "total_tokens": 912,
            "prompt_tokens_details": {"cached_tokens": 512}
        }
    });
    plain("content-type: application/json\r\n", body.to_string().as_bytes())
}
