//! Senders of the Responses API that are asked for the contract, over sockets:
//! what their upstream and their client see of it.

use serde_json::{Value, json};

use super::support::client::{Got, post};
use super::support::responses_rules::Kept;
use super::support::seam::Seam;
use super::support::soon;
use super::support::upstream::{Gate, Step, Upstream, plain};

const TOWER: &str = "You are the tower of a small airfield.";
const HANGAR: &str = "You are the hangar agent of a small airfield.";
const PLANE: &str = r#"{"plane":"D-EKLM","stand":"N-14","fuel":"62"}"#;

/// How a reply is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Streamed,
}

/// A client, Seam and a strict upstream that keeps replies.
struct Play {
    upstream: Upstream,
    seam: Seam,
    kept: Kept,
    kind: Kind,
}

/// What the client has of one reply.
struct Reply {
    got: Got,
    /// The reply; of a stream, what its last event holds.
    whole: Value,
}

impl Play {
    async fn start(kind: Kind, settings: &[(&str, &str)]) -> Play {
        let upstream = Upstream::start().await;
        let settings = [&[("SEAM_CONTRACT", "inject")], settings].concat();
        let seam = Seam::with(&upstream.url(), &settings).await;
        Play { upstream, seam, kept: Kept::default(), kind }
    }

    /// One request of the client that upstream answers with these replies, one behind the other. What upstream
    /// got, and what the client.
    async fn send(&mut self, mut body: Value, replies: &[(&str, Vec<Value>)]) -> (Vec<Value>, Reply) {
        body["stream"] = (self.kind == Kind::Streamed).into();
        for (id, items) in replies {
            self.upstream.replies(self.reply(id, items));
        }
        let request = post("/v1/responses", "authorization: Bearer test\r\n", body.to_string().as_bytes());
        let got = soon(self.seam.exchange(request)).await;
        let mut sent = Vec::new();
        for (id, items) in replies {
            let received = soon(self.upstream.request()).await;
            let request: Value = serde_json::from_slice(&received.body).unwrap();
            let faults: Vec<String> = self.kept.faults(&request).iter().map(ToString::to_string).collect();
            assert!(faults.is_empty(), "{faults:#?}\n{request:#}");
            self.kept.note(&request, &whole(id, items));
            sent.push(request);
        }
        let whole = match self.kind {
            Kind::Plain => serde_json::from_slice(&got.body).unwrap_or_default(),
            Kind::Streamed => {
                events(&got.text()).pop().map(|end| end["response"].clone()).unwrap_or_default()
            }
        };
        (sent, Reply { got, whole })
    }

    fn reply(&self, id: &str, items: &[Value]) -> Vec<u8> {
        match self.kind {
            Kind::Plain => {
                plain("content-type: application/json\r\n", whole(id, items).to_string().as_bytes())
            }
            Kind::Streamed => plain("content-type: text/event-stream\r\n", stream(id, items).as_bytes()),
        }
    }
}

fn whole(id: &str, items: &[Value]) -> Value {
    json!({"id": id, "object": "response", "model": "deep-1", "status": "completed", "output": items,
        "usage": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}})
}

fn stream(id: &str, items: &[Value]) -> String {
    let mut all = vec![
        json!({"type": "response.created", "response": {"id": id, "status": "in_progress", "output": []}}),
    ];
    for (place, item) in items.iter().enumerate() {
        let mut opened = item.clone();
        opened["status"] = "in_progress".into();
        let about = |kind: &str, key: &str, value: &Value| json!({"type": format!("response.{kind}"), "output_index": place, "item_id": item["id"], key: value});
        let mut inside = Vec::new();
        if item["type"] == "function_call" {
            opened["arguments"] = "".into();
            inside.push(about("function_call_arguments.delta", "delta", &item["arguments"]));
            inside.push(about("function_call_arguments.done", "arguments", &item["arguments"]));
        } else if item["type"] == "message" {
            opened["content"] = json!([]);
            inside.push(about("output_text.delta", "delta", &item["content"][0]["text"]));
        }
        all.push(json!({"type": "response.output_item.added", "output_index": place, "item": opened}));
        all.extend(inside);
        all.push(json!({"type": "response.output_item.done", "output_index": place, "item": item}));
    }
    all.push(json!({"type": "response.completed", "response": whole(id, items)}));
    let show = |(number, event): (usize, &mut Value)| {
        event["sequence_number"] = number.into();
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
    };
    all.iter_mut().enumerate().map(show).collect()
}

/// The events of a stream, whose numbers have no gap.
fn events(stream: &str) -> Vec<Value> {
    let all: Vec<Value> = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    for (event, number) in all.iter().zip(0..) {
        assert_eq!(event["sequence_number"], number, "{stream}");
    }
    all
}

fn tool(name: &str, parameters: &Value, strict: bool) -> Value {
    json!({"type": "function", "name": name, "description": "As it says.", "parameters": parameters, "strict": strict})
}

fn takes(property: &str) -> Value {
    json!({"type": "object", "properties": {property: {"type": "string"}}, "required": [property], "additionalProperties": false})
}

fn nothing() -> Value {
    json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false})
}

fn tower(input: impl Into<Value>) -> Value {
    json!({"model": "deep-1", "instructions": TOWER, "input": input.into(), "tools": [
        tool("find_plane", &takes("plane"), true),
        tool("transfer_to_hangar", &nothing(), true),
        tool("transfer_to_fuel_truck", &takes("reason"), false),
    ]})
}

fn hangar(input: impl Into<Value>) -> Value {
    json!({"model": "deep-1", "instructions": HANGAR, "input": input.into(), "tools": [
        tool("open_gate", &takes("stand"), true),
        tool("transfer_to_tower", &nothing(), true),
    ]})
}

fn after(mut body: Value, reply: &str) -> Value {
    body["previous_response_id"] = reply.into();
    body
}

fn opening() -> Value {
    json!({"role": "user", "content": "Put D-EKLM into the hangar tonight."})
}

fn says(id: &str, text: &str) -> Value {
    json!({"type": "message", "id": id, "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments,
        "status": "completed"})
}

fn thought(id: &str) -> Value {
    json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": format!("gAAAA-{id}==")})
}

fn result(id: &str, output: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": output})
}

fn find(id: &str) -> Value {
    call(id, "find_plane", r#"{"plane":"D-EKLM"}"#)
}

/// A transfer call with a filled contract that cites this call for the plane's stand.
fn transfer(id: &str, evidence: &str, value: &str) -> Value {
    let handoff = json!({
        "task": "Tow D-EKLM into the hangar.", "reason": "Towing is the hangar's.",
        "established": [{"key": "stand", "value": value, "of": "plane D-EKLM", "source": "tool_result", "evidence": evidence}],
        "constraints": [], "decisions": [], "open_questions": [], "remaining": ["Open the gate of the hangar."],
        "done_when": ["D-EKLM stands in the hangar."],
    });
    call(id, "transfer_to_hangar", &json!({"handoff": handoff}).to_string())
}

/// As the client is to have it.
fn bare(id: &str) -> Value {
    call(id, "transfer_to_hangar", "{}")
}

fn moved(id: &str) -> Value {
    result(id, r#"{"assistant": "hangar"}"#)
}

const BOTH: [Kind; 2] = [Kind::Plain, Kind::Streamed];

#[tokio::test]
async fn a_sender_is_asked_in_its_tools_and_its_client_sees_nothing_of_it() {
    for kind in BOTH {
        let mut play = Play::start(kind, &[]).await;
        let (asked, _) = play.send(tower(json!([opening()])), &[("resp_1", vec![find("c1")])]).await;
        let list = json!([opening(), find("c1"), result("c1", PLANE)]);
        let items = vec![thought("rs_1"), says("msg_1", "One moment."), transfer("c2", "c1", "N-14")];
        let (again, reply) = play.send(tower(list), &[("resp_2", items)]).await;
        let tools = &again[0]["tools"];
        assert_eq!(asked[0]["tools"], *tools, "the same bytes on every request");
        assert_eq!(tools[0], tower("")["tools"][0], "only transfer tools are asked");
        for at in [1, 2] {
            let parameters = &tools[at]["parameters"];
            let required = parameters["required"].as_array().unwrap();
            assert_eq!(parameters["additionalProperties"], false);
            assert_eq!(
                required.len(),
                parameters["properties"].as_object().unwrap().len(),
                "strict: all of them"
            );
            assert!(required.contains(&"handoff".into()), "{parameters:#}");
            assert_eq!((&tools[at]["type"], &tools[at]["strict"]), (&json!("function"), &json!(at == 1)));
        }
        assert_eq!(reply.whole["output"], json!([thought("rs_1"), says("msg_1", "One moment."), bare("c2")]));
        assert!(!reply.got.text().contains("N-14"), "{kind:?}: {}", reply.got.text());

        // The receiver reads what the sender was asked for.
        let shown = json!([
            opening(),
            find("c1"),
            result("c1", PLANE),
            thought("rs_1"),
            says("msg_1", "One moment."),
            bare("c2"),
            moved("c2")
        ]);
        let (got, _) = play.send(hangar(shown.clone()), &[("resp_3", vec![says("msg_2", "Done.")])]).await;
        let brief = got[0]["instructions"].as_str().unwrap();
        assert!(brief.contains("Tow D-EKLM into the hangar.") && brief.contains("N-14"), "{brief}");

        // The sender does not learn from its own empty call.
        let mut later = shown.as_array().unwrap().clone();
        later.push(json!({"role": "user", "content": "And the fuel?"}));
        let (got, _) = play.send(tower(later), &[("resp_4", vec![says("msg_3", "62.")])]).await;
        let own = got[0]["input"].as_array().unwrap().iter().find(|item| item["call_id"] == "c2").unwrap();
        assert_eq!(*own, transfer("c2", "c1", "N-14"), "{kind:?}: what it generated is put back");
    }
}

#[tokio::test]
async fn text_reaches_the_client_while_upstream_stalls_in_the_call() {
    let mut play = Play::start(Kind::Streamed, &[]).await;
    let sent = stream("resp_1", &[says("msg_1", "One moment."), transfer("c2", "c1", "N-14")]);
    let cut = sent.find("N-14").unwrap();
    let gate = Gate::new();
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n";
    play.upstream.then([
        Step::Send([head, &sent[..cut]].concat().into_bytes()),
        Step::Wait(gate.clone()),
        Step::Send(sent.as_bytes()[cut..].to_vec()),
        Step::Close,
    ]);
    let mut body = tower(json!([opening()]));
    body["stream"] = true.into();
    let mut client = play.seam.client().await;
    client.send(post("/v1/responses", "", body.to_string().as_bytes())).await;
    soon(client.head()).await;
    let mut early = String::new();
    while !early.contains("response.output_item.done") {
        early.push_str(&String::from_utf8(soon(client.chunk()).await.unwrap()).unwrap());
    }
    assert!(early.contains("One moment.") && !early.contains("transfer_to_hangar"), "{early}");
    gate.open();
    let mut late = String::new();
    while let Some(chunk) = soon(client.chunk()).await.filter(|chunk| !chunk.is_empty()) {
        late.push_str(&String::from_utf8(chunk).unwrap());
    }
    assert!(!late.contains("N-14"), "{late}");
    let all = events(&[early, late].concat());
    assert_eq!(all.last().unwrap()["response"]["output"], json!([says("msg_1", "One moment."), bare("c2")]));
    soon(play.upstream.request()).await;
}

#[tokio::test]
async fn what_upstream_keeps_goes_on_with_the_contract_told() {
    for kind in BOTH {
        let mut play = Play::start(kind, &[]).await;
        play.send(tower(json!([opening()])), &[("resp_1", vec![find("c1")])]).await;
        let sent = after(tower(json!([result("c1", PLANE)])), "resp_1");
        let (_, reply) = play.send(sent, &[("resp_2", vec![transfer("c2", "c1", "N-14")])]).await;
        assert_eq!(reply.whole["output"], json!([bare("c2")]));
        let sent = after(hangar(json!([moved("c2")])), "resp_2");
        let (got, _) = play.send(sent, &[("resp_3", vec![says("msg_1", "Done.")])]).await;
        let brief = got[0]["instructions"].as_str().unwrap();
        assert!(brief.contains("Tow D-EKLM into the hangar.") && brief.contains("N-14"), "{brief}");
    }
}

const ENFORCED: &[(&str, &str)] = &[("SEAM_ENFORCE", "contract,facts")];

/// The request by which a sender was asked again holds its reply and one answer that names the fault.
#[track_caller]
fn check_asked_again(items: &[Value], wrong: &[Value]) {
    let (answer, given) = items.split_last().unwrap();
    assert!(given.ends_with(wrong), "{items:#?}");
    assert_eq!(
        (&answer["type"], &answer["call_id"]),
        (&json!("function_call_output"), &wrong.last().unwrap()["call_id"])
    );
    assert!(answer["output"].as_str().unwrap().contains("stand"), "{answer}");
}

#[tokio::test]
async fn a_corrected_sender_is_one_reply_to_its_client() {
    for kind in BOTH {
        let mut play = Play::start(kind, ENFORCED).await;
        play.send(tower(json!([opening()])), &[("resp_1", vec![find("c1")])]).await;
        let list = json!([opening(), find("c1"), result("c1", PLANE)]);
        let wrong = vec![thought("rs_1"), transfer("c2", "c9", "S-2")];
        let right = vec![thought("rs_2"), transfer("c3", "c1", "N-14")];
        let (sent, reply) = play.send(tower(list), &[("resp_2", wrong.clone()), ("resp_3", right)]).await;
        check_asked_again(sent[1]["input"].as_array().unwrap(), &wrong);
        assert_eq!(reply.whole["id"], "resp_3");
        assert_eq!(reply.whole["output"], json!([thought("rs_2"), bare("c3")]), "{kind:?}");
        assert_eq!(
            reply.whole["usage"],
            json!({"input_tokens": 200, "output_tokens": 20, "total_tokens": 220})
        );
        assert!(
            !reply.got.text().contains("S-2") && !reply.got.text().contains("c2"),
            "{}",
            reply.got.text()
        );
        let shown =
            json!([opening(), find("c1"), result("c1", PLANE), thought("rs_2"), bare("c3"), moved("c3")]);
        let (got, _) = play.send(hangar(shown), &[("resp_4", vec![says("msg_2", "Done.")])]).await;
        let brief = got[0]["instructions"].as_str().unwrap();
        assert!(brief.contains("N-14") && !brief.contains("S-2"), "{brief}");
    }
}

#[tokio::test]
async fn a_sender_that_upstream_remembers_is_corrected_from_its_reply_on() {
    for kind in BOTH {
        let mut play = Play::start(kind, ENFORCED).await;
        play.send(tower(json!([opening()])), &[("resp_1", vec![find("c1")])]).await;
        let sent = after(tower(json!([result("c1", PLANE)])), "resp_1");
        let replies = [
            ("resp_2", vec![says("msg_1", "One moment."), transfer("c2", "c9", "S-2")]),
            ("resp_3", vec![says("msg_2", "Sorry."), transfer("c3", "c1", "N-14")]),
        ];
        let (sent, reply) = play.send(sent, &replies).await;
        assert_eq!(sent[1]["previous_response_id"], "resp_2");
        assert_eq!(sent[1]["input"].as_array().unwrap().len(), 1, "{}", sent[1]);
        let text =
            if kind == Kind::Streamed { says("msg_1", "One moment.") } else { says("msg_2", "Sorry.") };
        assert_eq!(reply.whole["output"], json!([text, bare("c3")]), "its words are said once");
        // A client goes on from the reply whose id it had last, or from the one that it had first.
        for (id, next) in [("resp_3", "resp_4"), ("resp_2", "resp_5")] {
            let sent = after(hangar(json!([moved("c3")])), id);
            let (got, _) = play.send(sent, &[(next, vec![says("msg_3", "Done.")])]).await;
            assert!(got[0]["instructions"].as_str().unwrap().contains("N-14"), "{}", got[0]);
            assert_eq!(got[0]["previous_response_id"], "resp_3", "{kind:?}");
        }
    }
}

#[tokio::test]
async fn a_sender_that_never_learns_is_refused() {
    for kind in BOTH {
        let mut play = Play::start(kind, ENFORCED).await;
        play.send(tower(json!([opening()])), &[("resp_1", vec![find("c1")])]).await;
        let list = json!([opening(), find("c1"), result("c1", PLANE)]);
        let replies =
            [("resp_2", vec![transfer("c2", "c9", "S-2")]), ("resp_3", vec![transfer("c3", "c9", "S-2")])];
        let (_, reply) = play.send(tower(list), &replies).await;
        let text = reply.got.text();
        assert!(
            text.contains("seam_facts") && !text.contains("S-2") && !text.contains("c3"),
            "{kind:?}: {text}"
        );
        match kind {
            Kind::Plain => assert_eq!(reply.got.status, 422),
            Kind::Streamed => {
                let last = events(&text).pop().unwrap();
                assert_eq!((&last["type"], &last["code"]), (&json!("error"), &json!("seam_facts")));
                assert_eq!(last["error"]["code"], "seam_facts");
            }
        }
    }
}

#[tokio::test]
async fn a_stored_conversation_cannot_be_asked_again() {
    let mut play = Play::start(Kind::Plain, ENFORCED).await;
    let mut sent = tower(json!([opening()]));
    sent["conversation"] = "conv_1".into();
    play.send(sent, &[("resp_1", vec![find("c1")])]).await;
    let mut sent = tower(json!([result("c1", PLANE)]));
    sent["conversation"] = "conv_1".into();
    let empty = call("c2", "transfer_to_hangar", r#"{"handoff":{}}"#);
    let (_, reply) = play.send(sent, &[("resp_2", vec![empty])]).await;
    assert_eq!((reply.got.status, reply.got.error_code()), (422, "seam_contract".to_owned()));
}
