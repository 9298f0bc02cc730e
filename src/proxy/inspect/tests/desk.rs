//! A deployment that tests talk to, and the words of a conversation in a garage.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Mutex;

use futures_util::stream::{self, BoxStream, StreamExt};
use http_body::Frame;
use http_body_util::StreamBody;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::*;
use crate::proxy::watched::{Again, Broken, Watched};
use crate::upstream::Fault;

/// A deployment with its store; what a client sends goes in, what upstream gets comes out.
pub(super) struct Desk {
    pub(super) inspector: Inspector,
    pub(super) store: Store,
    pub(super) clock: Clock,
}

impl Desk {
    pub(super) fn new() -> Desk {
        Desk::with(&[])
    }

    pub(super) fn with(settings: &[(&str, &str)]) -> Desk {
        let mut all = vec![("SEAM_UPSTREAM".to_owned(), "http://127.0.0.1:1/v1".to_owned())];
        all.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let config = Config::read(&all).expect("good settings");
        let clock = Clock::manual(Timestamp(1_790_000_000_000));
        let store = Store::memory(64 << 20, clock.clone());
        let policy = crate::app::policy(&config);
        let telemetry = Arc::new(Telemetry::default());
        let inspector =
            Inspector::new(&config, policy, store.clone(), clock.clone(), "seed".into(), telemetry);
        Desk { inspector, store, clock }
    }

    /// The records of every run that the store holds for this credential's tenant.
    pub(super) async fn records(&self, ids: &[&str]) -> Vec<crate::engine::record::Record> {
        let who = self.inspector.inner.who(&head("Bearer one").headers);
        let mut records = Vec::new();
        for id in ids {
            if let (Some(run), ..) = self.inspector.inner.runs.load(&who.tenant, id).await.expect("a store") {
                records.extend(run.transfers.iter().map(|transfer| transfer.record.clone()));
            }
        }
        records
    }

    /// The code with which a request is refused, if it is.
    pub(super) async fn verdict(&self, body: &Value) -> Option<&'static str> {
        self.clock.advance_ms(1_000);
        match self.inspector.request(&head("Bearer one"), &Bytes::from(body.to_string())).await.0 {
            Verdict::Refuse(refusal) => Some(refusal.code),
            Verdict::Forward | Verdict::Rewrite(_) | Verdict::Untouched(_) => None,
        }
    }

    /// Sends a request and gives what upstream gets; upstream answers with `reply`.
    pub(super) async fn send(&self, body: &Value, reply: &Value) -> Value {
        self.send_as("Bearer one", body, reply).await
    }

    pub(super) async fn send_as(&self, credential: &str, body: &Value, reply: &Value) -> Value {
        self.exchange(&head(credential), body, ("application/json", &reply_body(reply))).await
    }

    /// Sends a request and gives what upstream gets; upstream answers with a body of this type.
    pub(super) async fn exchange(
        &self,
        head: &request::Parts,
        body: &Value,
        (kind, whole): (&str, &[u8]),
    ) -> Value {
        let answer = Answer { kind: kind.to_owned(), parts: cut(whole, 7), ..Answer::default() };
        let got = self.play(head, body, vec![answer]).await;
        if !got.held {
            assert_eq!(got.reply, whole, "the reply passes byte for byte");
        }
        got.sent.into_iter().next().expect("upstream was asked")
    }

    /// Sends a request; upstream answers it, and what Seam asks beside it, with these in turn.
    pub(super) async fn play(&self, head: &request::Parts, body: &Value, answers: Vec<Answer>) -> Got {
        self.clock.advance_ms(1_000);
        let bytes = Bytes::from(body.to_string());
        let (verdict, exchange) = self.inspector.request(head, &bytes).await;
        let first = match verdict {
            Verdict::Rewrite(bytes) => serde_json::from_slice(&bytes).expect("JSON"),
            _ => body.clone(),
        };
        let mut got =
            Got { sent: vec![first], held: false, reply: Vec::new(), frames: Vec::new(), broken: None };
        let script = Script { answers: Arc::new(Mutex::new(answers.into())), asked: Arc::default() };
        let Some(mut exchange) = exchange else {
            got.reply = script.whole();
            return got;
        };
        let (mut head, body) = script.next().expect("an answer").into_parts();
        if !exchange.head(&mut head) {
            return got;
        }
        got.held = exchange.holds();
        let asked = Arc::clone(&script.asked);
        let mut watched = Watched::new(body, exchange, script, |_| panic!("the exchange panicked"));
        while let Some(frame) = poll_fn(|cx| watched.poll_frame(cx)).await {
            match frame {
                Ok(frame) => {
                    let data = frame.into_data().expect("no trailers");
                    got.frames.push((String::from_utf8_lossy(&data).into_owned(), Instant::now()));
                    got.reply.extend_from_slice(&data);
                }
                Err(broken) => got.broken = Some(broken),
            }
        }
        let asked = asked.lock().expect("no panic").clone();
        got.sent.extend(asked.iter().map(|body| serde_json::from_slice::<Value>(body).expect("JSON")));
        got
    }
}

/// What came of a request.
#[derive(Debug)]
pub(super) struct Got {
    /// What upstream was sent, in order.
    pub(super) sent: Vec<Value>,
    /// Whether the reply's transfers waited.
    pub(super) held: bool,
    /// What the client got.
    pub(super) reply: Vec<u8>,
    /// The same in pieces, each with when it came.
    pub(super) frames: Vec<(String, Instant)>,
    /// How it broke off, if it did.
    pub(super) broken: Option<Broken>,
}

/// One answer of upstream.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) kind: String,
    pub(super) parts: Vec<Part>,
}

#[derive(Clone, Debug)]
pub(super) enum Part {
    Data(Bytes),
    /// Nothing comes for so long.
    Silence(Duration),
    /// It breaks off.
    Break,
}

impl Default for Answer {
    fn default() -> Answer {
        Answer { status: 200, kind: "application/json".to_owned(), parts: Vec::new() }
    }
}

/// A body in pieces of this size.
pub(super) fn cut(whole: &[u8], size: usize) -> Vec<Part> {
    whole.chunks(size).map(|part| Part::Data(Bytes::copy_from_slice(part))).collect()
}

/// A body cut at these places, each taken within its length.
pub(super) fn cut_at(whole: &[u8], cuts: &[usize]) -> Vec<Part> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % whole.len()).chain([0, whole.len()]).collect();
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| Part::Data(Bytes::copy_from_slice(&whole[pair[0]..pair[1]]))).collect()
}

/// What upstream will answer, and what it was asked beside the request.
struct Script {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<Bytes>>>,
}

type Parts = BoxStream<'static, Result<Frame<Bytes>, Fault>>;

impl Script {
    /// The next answer as it passes where nobody watches.
    fn whole(&self) -> Vec<u8> {
        let answer = self.answers.lock().expect("no panic").pop_front().unwrap_or_default();
        let data = answer.parts.into_iter().map(|part| match part {
            Part::Data(data) => data.to_vec(),
            Part::Silence(_) | Part::Break => Vec::new(),
        });
        data.collect::<Vec<_>>().concat()
    }

    fn next(&self) -> Option<http::Response<StreamBody<Parts>>> {
        let answer = self.answers.lock().expect("no panic").pop_front()?;
        let parts = stream::iter(answer.parts).filter_map(async |part| match part {
            Part::Data(data) => Some(Ok(Frame::data(data))),
            Part::Silence(span) => {
                tokio::time::sleep(span).await;
                None
            }
            Part::Break => Some(Err(Fault::Silent(Duration::ZERO))),
        });
        let head = http::Response::builder().status(answer.status).header("content-type", answer.kind);
        Some(head.body(StreamBody::new(parts.boxed())).expect("a head"))
    }
}

impl Again for Script {
    type Body = StreamBody<Parts>;

    async fn send(&self, body: Bytes) -> Option<http::Response<StreamBody<Parts>>> {
        self.asked.lock().expect("no panic").push(body);
        self.next()
    }
}

pub(super) fn head(credential: &str) -> request::Parts {
    head_to("chat/completions", credential)
}

pub(super) fn head_to(route: &str, credential: &str) -> request::Parts {
    let request = http::Request::post(format!("http://seam/v1/{route}")).header("authorization", credential);
    request.body(()).expect("a head").into_parts().0
}

pub(super) fn reply_body(message: &Value) -> Vec<u8> {
    let finish = if message.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    })
    .to_string()
    .into_bytes()
}

pub(super) fn system(text: &str) -> Value {
    json!({"role": "system", "content": text})
}

pub(super) fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

pub(super) fn says(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

pub(super) fn calls(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}}]})
}

pub(super) fn result(id: &str, text: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": text})
}

pub(super) fn tool(name: &str, properties: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        properties.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}})
}

pub(super) fn request(messages: &[Value], tools: &[Value]) -> Value {
    json!({"model": "m", "messages": messages, "tools": tools})
}

pub(super) const DESK: &str = "You are the intake desk of a garage.";
pub(super) const WORKSHOP: &str = "You are the workshop agent of a garage.";
pub(super) const FOUND: &str =
    r#"{"booking":"bk_4471","plate":"KA 17 XR","status":"confirmed","quote":"318.40"}"#;

pub(super) fn desk_tools() -> Vec<Value> {
    vec![tool("find_booking", &["plate"]), tool("transfer_to_workshop", &[])]
}

pub(super) fn workshop_tools() -> Vec<Value> {
    vec![tool("open_job", &["booking"]), tool("transfer_to_intake_desk", &[])]
}

pub(super) fn opening() -> Value {
    user("My brakes squeal, plate KA 17 XR. Never call me before noon.")
}

/// The conversation up to the transfer, as a client with the full history has it.
pub(super) fn before_transfer() -> Vec<Value> {
    vec![opening(), calls("c1", "find_booking", &json!({"plate": "KA 17 XR"})), result("c1", FOUND)]
}

pub(super) fn transfer_pair() -> [Value; 2] {
    [calls("c2", "transfer_to_workshop", &json!({})), result("c2", r#"{"assistant": "workshop"}"#)]
}

/// Plays the sender's two requests, the second of which transfers.
pub(super) async fn play_sender(desk: &Desk, instructions: &str) {
    let list = before_transfer();
    let first = [&[system(instructions)][..], &list[..1]].concat();
    let sent = request(&first, &desk_tools());
    assert_eq!(desk.send(&sent, &list[1]).await, sent, "the sender's request is untouched");
    let second = [&[system(instructions)][..], &list].concat();
    let sent = request(&second, &desk_tools());
    assert_eq!(desk.send(&sent, &transfer_pair()[0]).await, sent, "the sender's request is untouched");
}

pub(super) fn brief_of(body: &Value) -> Option<String> {
    let slot = body["messages"][0]["content"].as_str()?;
    slot.find("[Seam handoff ").map(|at| slot[at..].to_owned())
}

pub(super) fn has_brief(got: &Value, instructions: &str) -> String {
    let slot = got["messages"][0]["content"].as_str().expect("a system message first");
    assert!(slot.starts_with(instructions), "its own instructions come first: {slot}");
    brief_of(got).unwrap_or_else(|| panic!("no brief in {slot}"))
}
