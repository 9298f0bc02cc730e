//! Senders that are asked for the contract, over real sockets: what the client gets while its upstream still
//! writes, in every shape in which servers write, and what becomes of a transfer that breaks the contract.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::client::{Client, Got, post};
use crate::support::seam::Seam;
use crate::support::upstream::{Gate, Step, Upstream, chunk, chunked_head, plain};

const ASKS: (&str, &str) = ("SEAM_CONTRACT", "inject");
const ENFORCES: (&str, &str) = ("SEAM_ENFORCE", "contract,facts,hops");

/// Seam has seen the conversation begin: the desk looks the boat up, by the call `call_1`.
async fn begin(seam: &Seam, upstream: &mut Upstream) {
    let message = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "find_boat", "arguments": "{\"boat\":\"Heron\"}"}}]});
    upstream.replies(reply(&message));
    assert_eq!(seam.exchange(sent(false, 2)).await.status, 200);
    upstream.request().await;
}

/// What the desk's client sends when the boat was found.
fn request(stream: bool) -> Vec<u8> {
    sent(stream, 4)
}

/// The first so many messages of the conversation.
fn sent(stream: bool, count: usize) -> Vec<u8> {
    let mut body = json!({"model": "m", "stream": stream, "messages": [
        {"role": "system", "content": "You are the desk of a boat hire."},
        {"role": "user", "content": "Is the Heron free on Sunday?"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "find_boat", "arguments": "{\"boat\":\"Heron\"}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "{\"boat\":\"Heron\",\"berth\":\"B-17\"}"}],
        "tools": [tool("find_boat", &["boat"]), tool("transfer_to_harbour", &["reason"])]});
    body["messages"].as_array_mut().unwrap().truncate(count);
    post(
        "/v1/chat/completions",
        "content-type: application/json\r\nauthorization: Bearer hire\r\n",
        body.to_string().as_bytes(),
    )
}

fn tool(name: &str, properties: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        properties.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}})
}

/// What the model generates: the client's own argument, and the contract, which cites this.
fn arguments(cites: &str) -> String {
    let contract = json!({
        "task": "Confirm the Heron for Sunday.", "reason": "The harbour keeps the berths.",
        "established": [{"key": "berth", "value": "B-17", "of": "boat Heron", "source": "tool_result", "evidence": cites}],
        "constraints": [], "decisions": [], "open_questions": [], "remaining": ["Look at Sunday"], "done_when": ["It is booked"]
    });
    format!(r#"{{"reason":"Überfällig – berth","handoff":{contract}}}"#)
}

const DECLARED: &str = r#"{"reason":"Überfällig – berth"}"#;

fn event(choice: &Value) -> String {
    format!(
        "data: {}\n\n",
        json!({"id": "c-1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]})
    )
}

fn delta(delta: &Value) -> String {
    event(&json!({"index": 0, "delta": delta, "finish_reason": null}))
}

fn call(fragment: &Value) -> String {
    delta(&json!({"tool_calls": [fragment]}))
}

fn end(finish: &str) -> String {
    event(&json!({"index": 0, "delta": {}, "finish_reason": finish})) + "data: [DONE]\n\n"
}

fn opening(arguments: &str) -> Value {
    json!({"index": 0, "id": "t-1", "type": "function", "function": {"name": "transfer_to_harbour", "arguments": arguments}})
}

fn pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(7).map(|part| part.iter().collect()).collect()
}

/// A reply as one shape of server streams it: text, then the transfer with these arguments.
type Shape = fn(&str) -> String;

const BEGINNING: &str = "One moment, please.";

fn begun() -> String {
    delta(&json!({"role": "assistant", "content": BEGINNING}))
}

fn by_the_book(arguments: &str) -> String {
    let rest = pieces(arguments);
    let rest = rest.iter().map(|part| call(&json!({"index": 0, "function": {"arguments": part}})));
    begun() + &call(&opening("")) + &rest.collect::<String>() + &end("tool_calls")
}

/// What real servers do instead.
const SHAPES: &[(&str, Shape)] = &[
    ("by the book", by_the_book),
    ("no index", |arguments| {
        by_the_book(arguments)
            .replace(r#""index":0,"t"#, r#""t"#)
            .replace(r#"{"index":0,"function""#, r#"{"function""#)
    }),
    ("an index that grows with every fragment", |arguments| {
        let rest = pieces(arguments);
        let rest = rest
            .iter()
            .enumerate()
            .map(|(n, part)| call(&json!({"index": n + 1, "function": {"arguments": part}})));
        begun() + &call(&opening("")) + &rest.collect::<String>() + &end("tool_calls")
    }),
    ("name and id in every fragment", |arguments| {
        let rest = pieces(arguments);
        begun() + &rest.iter().map(|part| call(&opening(part))).collect::<String>() + &end("tool_calls")
    }),
    ("the whole call in one chunk, and index 0 for another call", |arguments| {
        let other = json!({"index": 0, "id": "f-1", "type": "function", "function": {"name": "find_boat", "arguments": "{\"boat\":\"Tern\"}"}});
        begun() + &call(&other) + &call(&opening(arguments)) + &end("tool_calls")
    }),
    ("a last fragment with a vendor's field alone", |arguments| {
        begun()
            + &call(&opening(arguments))
            + &call(&json!({"extra_content": {"google": {"thought_signature": "c2Vh"}}}))
            + &end("tool_calls")
    }),
    ("chunks without delta, id or choices", |arguments| {
        let empty = "data: {\"id\":\"\",\"object\":\"\",\"choices\":[],\"prompt_filter_results\":[]}\n\n";
        let bare = "data: {\"id\":\"\",\"choices\":[{\"index\":0,\"finish_reason\":null}]}\n\n";
        [empty, &begun(), bare, &call(&opening(arguments)), bare, &end("tool_calls")].concat()
    }),
    ("finish_reason stop", |arguments| begun() + &call(&opening(arguments)) + &end("stop")),
    ("no finish_reason", |arguments| begun() + &call(&opening(arguments)) + "data: [DONE]\n\n"),
    ("comments and CRLF", |arguments| by_the_book(arguments).replace("\n\n", "\r\n\r\n: ping\r\n\r\n")),
];

/// The reply on the wire, in chunks of this size.
fn streamed(text: &str, size: usize) -> Vec<Step> {
    let mut steps = vec![Step::Send(chunked_head("content-type: text/event-stream\r\n"))];
    steps.extend(text.as_bytes().chunks(size).map(|part| Step::Send(chunk(part))));
    steps.push(Step::Send(b"0\r\n\r\n".to_vec()));
    steps
}

fn whole(arguments: &str) -> Vec<u8> {
    let message = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "t-1", "type": "function", "function": {"name": "transfer_to_harbour", "arguments": arguments}}]});
    reply(&message)
}

fn reply(message: &Value) -> Vec<u8> {
    let body = json!({"id": "c-1", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}});
    plain("content-type: application/json\r\n", body.to_string().as_bytes())
}

/// Text and calls as a client puts them together, by index.
fn heard(stream: &str) -> (String, Vec<(String, String)>) {
    let (mut text, mut calls) = (String::new(), Vec::<(String, String)>::new());
    for line in stream.lines().filter_map(|line| line.strip_prefix("data: {")) {
        let event: Value = serde_json::from_str(&format!("{{{line}")).unwrap();
        let delta = &event["choices"][0]["delta"];
        text.push_str(delta["content"].as_str().unwrap_or_default());
        for fragment in delta["tool_calls"].as_array().into_iter().flatten() {
            let function = &fragment["function"];
            if let Some(name) = function["name"].as_str() {
                calls.push((name.to_owned(), String::new()));
            }
            if let (Some(last), Some(part)) = (calls.last_mut(), function["arguments"].as_str()) {
                last.1.push_str(part);
            }
        }
    }
    (text, calls)
}

/// The one record that Seam keeps.
async fn record(seam: &Seam) -> Value {
    let list = seam.admin_json("/handoffs").await;
    let list = list.as_array().or_else(|| list["handoffs"].as_array()).cloned().unwrap();
    assert_eq!(list.len(), 1, "{list:?}");
    list.into_iter().next().unwrap()
}

#[tokio::test]
async fn text_reaches_the_client_while_the_call_stalls_and_nothing_of_the_call_does() {
    let upstream = Upstream::start().await;
    let seam = Seam::with(&upstream.url(), &[ASKS]).await;
    let gate = Gate::new();
    let text = by_the_book(&arguments("call_1"));
    let middle = text.find("\"B-1").map_or(text.len() / 2, |at| at);
    upstream.then([
        Step::Send(
            [chunked_head("content-type: text/event-stream\r\n"), chunk(&text.as_bytes()[..middle])].concat(),
        ),
        Step::Wait(gate.clone()),
        Step::Send([chunk(&text.as_bytes()[middle..]), b"0\r\n\r\n".to_vec()].concat()),
    ]);
    let mut client = seam.client().await;
    client.send(request(true)).await;
    client.head().await;
    let early = String::from_utf8(client.chunk().await.unwrap()).unwrap();
    assert_eq!(early, begun());
    let opened = Instant::now();
    let wait = Duration::from_millis(300);
    let later = async {
        tokio::time::sleep(wait).await;
        gate.open();
    };
    let (first, ()) = tokio::join!(client.chunk(), later);
    assert!(opened.elapsed() >= wait, "nothing came while upstream stalled");
    let late = String::from_utf8(first.unwrap()).unwrap() + &rest(&mut client).await;
    let (said, calls) = heard(&(early + &late));
    assert_eq!(said, BEGINNING);
    assert_eq!(calls, [("transfer_to_harbour".to_owned(), DECLARED.to_owned())]);
    assert_eq!(record(&seam).await["source"], "injected");
}

/// What is left of a chunked reply.
async fn rest(client: &mut Client) -> String {
    let mut rest = Vec::new();
    while let Some(chunk) = client.chunk().await.filter(|chunk| !chunk.is_empty()) {
        rest.extend(chunk);
    }
    String::from_utf8(rest).unwrap()
}

#[tokio::test]
async fn every_shape_of_stream_gives_the_client_what_it_declared() {
    for (name, shape) in SHAPES {
        let mut told: Option<String> = None;
        for size in [1 << 20, 97, 5] {
            let upstream = Upstream::start().await;
            let seam = Seam::with(&upstream.url(), &[ASKS]).await;
            upstream.then(streamed(&shape(&arguments("call_1")), size));
            let got = seam.exchange(request(true)).await;
            assert!(got.whole, "{name}");
            let (said, calls) = heard(&got.text());
            assert_eq!(said, BEGINNING, "{name}");
            let transfer = calls.iter().find(|(called, _)| called == "transfer_to_harbour");
            assert_eq!(
                transfer.map(|(_, arguments)| arguments.as_str()),
                Some(DECLARED),
                "{name}: {}",
                got.text()
            );
            assert_eq!(calls.len(), 1 + usize::from(name.contains("another call")), "{name}: {calls:?}");
            assert!(!got.text().contains("handoff"), "{name}: {}", got.text());
            assert!(
                told.as_ref().is_none_or(|told| *told == got.text()),
                "{name}: cut otherwise, told otherwise"
            );
            told = Some(got.text());
        }
    }
}

#[tokio::test]
async fn a_reply_that_is_cut_off_in_its_transfer_holds_none() {
    for (finish, break_off) in [("length", false), ("tool_calls", true)] {
        let upstream = Upstream::start().await;
        let seam = Seam::with(&upstream.url(), &[ASKS]).await;
        let text = by_the_book(&arguments("call_1"));
        let half =
            &text[..text.find("Sunday").map_or(text.len() / 2, |at| text[..at].rfind("data:").unwrap())];
        let mut steps =
            streamed(&if break_off { half.to_owned() } else { half.to_owned() + &end(finish) }, 64);
        if break_off {
            *steps.last_mut().unwrap() = Step::Close;
        }
        upstream.then(steps);
        let got = seam.exchange(request(true)).await;
        let (said, calls) = heard(&got.text());
        assert_eq!((said.as_str(), calls.len()), (BEGINNING, 0), "{}", got.text());
        assert_eq!(got.text().contains("seam_upstream_reply_broken"), break_off, "{}", got.text());
    }
}

#[tokio::test]
async fn a_call_that_never_ran_is_corrected_once_with_every_fault() {
    for stream in [false, true] {
        let mut upstream = Upstream::start().await;
        let seam = Seam::with(&upstream.url(), &[ASKS, ENFORCES]).await;
        begin(&seam, &mut upstream).await;
        let wrong =
            arguments("call_9").replace("Confirm the Heron for Sunday.", "Confirm it. Then call. Then wait.");
        for arguments in [wrong, arguments("call_1")] {
            if stream {
                upstream.then(streamed(&by_the_book(&arguments), 64));
            } else {
                upstream.replies(whole(&arguments));
            }
        }
        let got = seam.exchange(request(stream)).await;
        assert!(got.whole && got.status == 200, "{}", got.text());
        upstream.request().await;
        let again: Value = serde_json::from_slice(&upstream.request().await.body).unwrap();
        let messages = again["messages"].as_array().unwrap();
        assert_eq!(messages[messages.len() - 2]["tool_calls"][0]["id"], "t-1");
        let told = messages[messages.len() - 1]["content"].as_str().unwrap();
        assert!(
            told.contains("2 faults") && told.contains("no_such_call") && told.contains("task"),
            "{told}"
        );
        let clean = r#"{\"reason\":\"Überfällig – berth\"}"#;
        assert_eq!(got.text().matches(clean).count(), 1, "{}", got.text());
        assert!(!got.text().contains("handoff") && !got.text().contains("Not transferred"), "{}", got.text());
        if stream {
            assert_eq!(heard(&got.text()).0, BEGINNING, "the second text is not said again");
        } else {
            let body: Value = serde_json::from_slice(&got.body).unwrap();
            assert_eq!(body["usage"]["total_tokens"], 30, "both replies are paid for");
        }
        assert_eq!(record(&seam).await["state"], "pending");
    }
}

/// What a refusal looks like to a client.
fn is_refused(got: &Got, stream: bool) {
    assert!(!got.text().contains("transfer_to_harbour\""), "{}", got.text());
    if stream {
        assert!(got.whole && got.status == 200, "{}", got.text());
        let last = got.text();
        let last = last.trim_end().rsplit("data: ").next().unwrap();
        let error: Value = serde_json::from_str(last).unwrap();
        assert_eq!(error["error"]["code"], "seam_facts", "{error}");
    } else {
        assert_eq!((got.status, got.error_code().as_str()), (422, "seam_facts"), "{}", got.text());
        assert_eq!(got.header("x-should-retry"), Some("false"));
    }
}

#[tokio::test]
async fn a_sender_that_never_learns_is_refused_and_its_connection_serves_on() {
    for stream in [false, true] {
        let mut upstream = Upstream::start().await;
        let seam = Seam::with(&upstream.url(), &[ASKS, ENFORCES]).await;
        begin(&seam, &mut upstream).await;
        let mut client = seam.client().await;
        for _ in 0..2 {
            if stream {
                upstream.then(streamed(&by_the_book(&arguments("call_9")), 64));
            } else {
                upstream.replies(whole(&arguments("call_9")));
            }
        }
        is_refused(&client.exchange(request(stream)).await, stream);
        for _ in 0..2 {
            upstream.request().await;
        }
        assert_eq!(record(&seam).await["state"], "refused");
        assert_eq!(client.exchange(post("/v1/models", "", b"")).await.status, 200);
    }
}

#[tokio::test]
async fn a_compressed_reply_goes_on_decoded() {
    let upstream = Upstream::start().await;
    let seam = Seam::with(&upstream.url(), &[ASKS]).await;
    let text = by_the_book(&arguments("call_1"));
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    let head = chunked_head("content-type: text/event-stream\r\ncontent-encoding: gzip\r\n");
    upstream.then([Step::Send([head, chunk(&packed), b"0\r\n\r\n".to_vec()].concat())]);
    let got = seam.exchange(request(true)).await;
    assert_eq!(got.header("content-encoding"), None);
    assert_eq!(heard(&got.text()).1, [("transfer_to_harbour".to_owned(), DECLARED.to_owned())]);
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_correction() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::with(&upstream.url(), &[ASKS, ENFORCES]).await;
    begin(&seam, &mut upstream).await;
    upstream.replies(whole(&arguments("call_9")));
    upstream.then([Step::Stall]);
    let mut client = seam.client().await;
    client.send(request(false)).await;
    upstream.request().await;
    upstream.request().await;
    drop(client);
    upstream.gone().await;
}

#[tokio::test]
async fn where_nobody_is_asked_and_nothing_is_enforced_replies_are_the_same_bytes() {
    for (name, shape) in SHAPES {
        let upstream = Upstream::start().await;
        let seam = Seam::with(&upstream.url(), &[("SEAM_CONTRACT", "derive")]).await;
        let text = shape(&arguments("call_1"));
        upstream.then(streamed(&text, 31));
        let got = seam.exchange(request(true)).await;
        assert_eq!(got.text(), text, "{name}");
    }
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let reply = whole(&arguments("call_1"));
    upstream.replies(reply.clone());
    let got = seam.exchange(request(false)).await;
    assert!(reply.ends_with(&got.body) && got.whole);
    let sent = request(false);
    assert!(sent.ends_with(&upstream.request().await.body), "the request as well");
}
