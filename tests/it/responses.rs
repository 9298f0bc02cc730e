//! Conversations over the Responses API through the real proxy, against an
//! upstream that keeps what it should and takes nothing that is broken.

use serde_json::{Value, json};

use super::support::client::post;
use super::support::responses_rules::Kept;
use super::support::seam::Seam;
use super::support::soon;
use super::support::upstream::{Upstream, plain};

/// A client, Seam and a strict upstream.
struct Play {
    upstream: Upstream,
    seam: Seam,
    kept: Kept,
    replies: usize,
}

impl Play {
    async fn start() -> Play {
        let upstream = Upstream::start().await;
        let seam = Seam::start(&upstream.url()).await;
        Play { upstream, seam, kept: Kept::default(), replies: 0 }
    }

    /// Sends a request that upstream answers with `output`; what upstream got, and the reply's id.
    async fn send(&mut self, body: &Value, output: &[Value]) -> (Value, String) {
        self.replies += 1;
        let id = format!("resp_{}", self.replies);
        let reply = json!({"id": id, "object": "response", "model": body["model"], "status": "completed", "output": output});
        let got = self.send_raw(body, "application/json", reply.to_string().as_bytes()).await;
        let faults: Vec<String> = self.kept.faults(&got).iter().map(ToString::to_string).collect();
        assert!(faults.is_empty(), "{faults:#?}\n{got:#}");
        self.kept.note(&got, &reply);
        (got, id)
    }

    async fn send_raw(&mut self, body: &Value, kind: &str, reply: &[u8]) -> Value {
        self.upstream.replies(plain(&format!("content-type: {kind}\r\n"), reply));
        let request = post("/v1/responses", "authorization: Bearer test\r\n", body.to_string().as_bytes());
        let answer = soon(self.seam.exchange(request)).await;
        assert!(answer.body == reply, "the reply passes byte for byte");
        let received = soon(self.upstream.request()).await;
        serde_json::from_slice(&received.body).unwrap()
    }
}

const HARBOUR: &str = "You are the harbour office.";
const PILOT: &str = "You are the pilot agent of the harbour.";
const ARRIVAL: &str = r#"{"berth":"B-77","ship":"Mirta","draught":"6.2"}"#;

fn tool(name: &str, properties: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        properties.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({"type": "function", "name": name, "parameters": {"type": "object", "properties": properties}, "strict": false})
}

fn harbour_tools() -> Value {
    json!([tool("find_arrival", &["ship"]), tool("ask_tide", &["berth"]), tool("transfer_to_pilot", &[])])
}

fn pilot_tools() -> Value {
    json!([tool("book_boat", &["berth"]), tool("transfer_to_harbour_office", &[])])
}

fn harbour(input: impl Into<Value>) -> Value {
    json!({"model": "deep-1", "instructions": HARBOUR, "tools": harbour_tools(), "input": input.into()})
}

fn pilot(input: impl Into<Value>) -> Value {
    json!({"model": "deep-1", "instructions": PILOT, "tools": pilot_tools(), "input": input.into()})
}

/// The same request, going on from a reply.
fn after(mut body: Value, reply: &str) -> Value {
    body["previous_response_id"] = reply.into();
    body
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn opening() -> Value {
    user("Mirta needs a pilot tonight. Never call the engine room.")
}

fn says(id: &str, text: &str) -> Value {
    json!({"type": "message", "id": id, "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name,
        "arguments": arguments.to_string(), "status": "completed"})
}

fn find(id: &str) -> Value {
    call(id, "find_arrival", &json!({"ship": "Mirta"}))
}

fn transfer(id: &str) -> Value {
    call(id, "transfer_to_pilot", &json!({}))
}

fn result(id: &str, output: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": output})
}

fn moved(id: &str) -> Value {
    result(id, r#"{"assistant": "pilot"}"#)
}

fn thought(id: &str) -> Value {
    json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": format!("gAAAA-{id}==")})
}

fn brief<'b>(body: &'b Value, own: &str) -> &'b str {
    let slot = body["instructions"].as_str().unwrap_or_default();
    let brief = slot.strip_prefix(own).unwrap_or_else(|| panic!("not its own instructions first: {body:#}"));
    assert!(brief.contains("[Seam handoff "), "no brief: {body:#}");
    brief
}

/// The brief, which names what was found and by which call.
fn told<'b>(body: &'b Value, own: &str) -> &'b str {
    let brief = brief(body, own);
    assert!(brief.contains("B-77") && brief.contains("find_arrival"), "{brief}");
    assert!(brief.contains("Never call the engine room"), "{brief}");
    brief
}

/// The sender's two replies: it finds the arrival, then says `last`. The list as its client has it by then.
async fn play_sender(play: &mut Play, first: &[Value], last: &[Value]) -> Vec<Value> {
    let mut list = vec![opening()];
    let sent = harbour(list.clone());
    assert_eq!(play.send(&sent, first).await.0, sent, "the sender's request is untouched");
    list.extend_from_slice(first);
    list.extend(first.iter().filter(|item| item["type"] == "function_call").map(|call| {
        let output = if call["name"] == "find_arrival" { ARRIVAL } else { r#"{"high":"23:10"}"# };
        result(call["call_id"].as_str().unwrap(), output)
    }));
    let sent = harbour(list.clone());
    assert_eq!(play.send(&sent, last).await.0, sent, "the sender's request is untouched");
    list.extend_from_slice(last);
    list
}

#[tokio::test]
async fn hidden_reasoning_stays_with_all_that_follows_from_it() {
    let mut play = Play::start().await;
    let tide = call("c2", "ask_tide", &json!({"berth": "B-77"}));
    let first = [thought("rs_1"), find("c1"), tide, says("msg_1", "Looking.")];
    let mut list = play_sender(&mut play, &first, &[thought("rs_2"), transfer("c3")]).await;
    let kept = list.len() - 2;
    list.push(moved("c3"));
    let (got, _) = play.send(&pilot(list.clone()), &[call("c4", "book_boat", &json!({}))]).await;
    told(&got, PILOT);
    assert_eq!(
        got["input"].as_array().unwrap()[..],
        list[..kept],
        "byte for byte, and the transfer has left"
    );
}

#[tokio::test]
async fn a_transfer_among_other_calls_stays_where_reasoning_seals_it() {
    let mut play = Play::start().await;
    let tide = call("c2", "ask_tide", &json!({"berth": "B-77"}));
    let mut list = play_sender(&mut play, &[find("c1")], &[thought("rs_1"), tide, transfer("c3")]).await;
    list.extend([moved("c3"), result("c2", r#"{"high":"23:10"}"#)]);
    let (got, _) = play.send(&pilot(list.clone()), &[says("msg_1", "The boat is booked.")]).await;
    told(&got, PILOT);
    assert_eq!(got["input"], Value::from(list.clone()), "nothing can be cut out of it");
    list.extend([says("msg_1", "The boat is booked."), user("When?")]);
    let (later, _) = play.send(&pilot(list.clone()), &[says("msg_2", "At ten.")]).await;
    assert_eq!((&later["input"], &later["instructions"]), (&Value::from(list), &got["instructions"]));
}

#[tokio::test]
async fn words_that_leave_with_a_sealed_transfer_are_the_senders_parting_words() {
    let mut play = Play::start().await;
    let last = [thought("rs_1"), says("msg_1", "The pilot will take over."), transfer("c2")];
    let mut list = play_sender(&mut play, &[find("c1")], &last).await;
    let kept = list.len() - last.len();
    list.push(moved("c2"));
    let (got, _) = play.send(&pilot(list.clone()), &[says("msg_2", "Booked.")]).await;
    assert!(told(&got, PILOT).contains("The pilot will take over."));
    assert_eq!(got["input"].as_array().unwrap()[..], list[..kept]);

    // The same where Seam meets the conversation only now.
    let mut play = Play::start().await;
    let (got, _) = play.send(&pilot(list.clone()), &[says("msg_2", "Booked.")]).await;
    assert!(brief(&got, PILOT).contains("The pilot will take over."));
}

#[tokio::test]
async fn what_another_model_thought_goes_whole() {
    let mut play = Play::start().await;
    let mut list =
        play_sender(&mut play, &[thought("rs_1"), find("c1")], &[thought("rs_2"), transfer("c2")]).await;
    list.push(moved("c2"));
    let mut sent = pilot(list.clone());
    sent["model"] = "small-1".into();
    let (got, _) = play.send(&sent, &[says("msg_1", "Booked.")]).await;
    told(&got, PILOT);
    assert_eq!(got["input"], json!([opening()]), "the brief is all that is left of it");
}

#[tokio::test]
async fn a_model_that_does_not_reason_gets_no_reasoning_of_a_run_that_nobody_saw_either() {
    let mut play = Play::start().await;
    let list = json!([
        opening(),
        thought("rs_1"),
        find("c1"),
        result("c1", ARRIVAL),
        thought("rs_2"),
        call("c2", "ask_tide", &json!({})),
        result("c2", "23:10"),
        transfer("c3"),
        moved("c3"),
    ]);
    for (model, stays) in [("gpt-4.1-mini", 0), ("gpt-5-mini", 2)] {
        let mut sent = pilot(list.clone());
        sent["model"] = model.into();
        let got = play.send_raw(&sent, "application/json", br#"{"id":"resp_1","output":[]}"#).await;
        told(&got, PILOT);
        let kept: Vec<&Value> = got["input"].as_array().unwrap().iter().collect();
        let reasoning = kept.iter().filter(|item| item["type"] == "reasoning").count();
        let calls = kept.iter().filter(|item| item["type"] == "function_call").count();
        assert_eq!((reasoning, calls), (stays, stays), "{model}: {got:#}");
    }
}

#[tokio::test]
async fn items_that_only_upstream_has_stay_with_what_belongs_to_them() {
    let mut play = Play::start().await;
    let first = [thought("rs_1"), find("c1"), says("msg_1", "Looking.")];
    play_sender(&mut play, &first, &[transfer("c2")]).await;
    let reference = |id: &str| json!({"type": "item_reference", "id": id});
    let kept = [opening(), reference("rs_1"), reference("fc_c1"), reference("msg_1"), result("c1", ARRIVAL)];
    let list = [&kept[..], &[transfer("c2"), moved("c2")]].concat();
    let (got, _) = play.send(&pilot(list), &[says("msg_2", "Booked.")]).await;
    told(&got, PILOT);
    assert_eq!(got["input"], json!(kept), "no reference without its item, no result without its call");
}

#[tokio::test]
async fn a_client_that_keeps_nothing_upstream_is_served_alike() {
    let mut play = Play::start().await;
    let unkept = |mut body: Value| {
        body["store"] = false.into();
        body["include"] = json!(["reasoning.encrypted_content"]);
        body
    };
    let mut list = vec![opening()];
    play.send(&unkept(harbour(list.clone())), &[thought("rs_1"), find("c1")]).await;
    list.extend([thought("rs_1"), find("c1"), result("c1", ARRIVAL)]);
    play.send(&unkept(harbour(list.clone())), &[thought("rs_2"), transfer("c2")]).await;
    let kept = list.clone();
    list.extend([thought("rs_2"), transfer("c2"), moved("c2")]);
    let (got, _) = play.send(&unkept(pilot(list)), &[says("msg_1", "Booked.")]).await;
    told(&got, PILOT);
    assert_eq!(got["input"], Value::from(kept));
}

#[tokio::test]
async fn a_string_is_a_conversation_too() {
    let mut play = Play::start().await;
    let words = "Mirta needs a pilot tonight. Never call the engine room.";
    let (_, first) = play.send(&harbour(words), &[find("c1")]).await;
    play.send(&after(harbour(json!([result("c1", ARRIVAL)])), &first), &[transfer("c2")]).await;
    let (got, _) = play.send(&pilot(words), &[says("msg_1", "Booked.")]).await;
    told(&got, PILOT);
    assert_eq!(got["input"], words);
}

#[tokio::test]
async fn what_upstream_holds_is_told_from_memory_and_not_filtered() {
    let mut play = Play::start().await;
    let (_, r1) = play.send(&harbour(json!([opening()])), &[find("c1")]).await;
    let (_, r2) = play
        .send(&after(harbour(json!([result("c1", ARRIVAL)])), &r1), &[says("msg_1", "Berth B-77.")])
        .await;
    let (_, r3) = play.send(&after(harbour(json!([user("Send the pilot.")])), &r2), &[transfer("c2")]).await;
    let sent = after(pilot(json!([moved("c2")])), &r3);
    let (got, r4) = play.send(&sent, &[call("c3", "book_boat", &json!({"berth": "B-77"}))]).await;
    let text = told(&got, PILOT).to_owned();
    assert!(text.contains("Send the pilot."), "the latest request: {text}");
    assert_eq!(got["input"], sent["input"], "the transfer's lone result answers a call that upstream holds");
    // Instructions do not carry over: the brief stands in each of the holder's requests.
    let (got, r5) = play
        .send(&after(pilot(json!([result("c3", r#"{"boat":"P-4"}"#)])), &r4), &[says("msg_2", "Boat P-4.")])
        .await;
    assert_eq!(brief(&got, PILOT), text);
    let back = [call("c4", "transfer_to_harbour_office", &json!({}))];
    let (got, r6) = play.send(&after(pilot(json!([user("Ask the office.")])), &r5), &back).await;
    assert_eq!(brief(&got, PILOT), text);
    let returned = result("c4", r#"{"assistant": "harbour office"}"#);
    let (got, _) = play.send(&after(harbour(json!([returned])), &r6), &[says("msg_3", "Office here.")]).await;
    let back = told(&got, HARBOUR);
    assert!(back.contains("P-4"), "what the pilot found: {back}");
}

#[tokio::test]
async fn a_conversation_by_its_id_is_told_from_memory() {
    let mut play = Play::start().await;
    let within = |mut body: Value, conversation: Value| {
        body["conversation"] = conversation;
        body
    };
    play.send(&within(harbour(json!([opening()])), "conv_1".into()), &[find("c1")]).await;
    let next = within(harbour(json!([result("c1", ARRIVAL)])), json!({"id": "conv_1"}));
    play.send(&next, &[transfer("c2")]).await;
    let sent = within(pilot(json!([moved("c2")])), "conv_1".into());
    let (got, _) = play.send(&sent, &[says("msg_1", "Booked.")]).await;
    let text = told(&got, PILOT).to_owned();
    assert_eq!(got["input"], sent["input"]);
    let (got, _) = play.send(&within(pilot("Thanks."), "conv_1".into()), &[says("msg_2", "Welcome.")]).await;
    assert_eq!((brief(&got, PILOT), &got["input"]), (&text[..], &json!("Thanks.")));
}

#[tokio::test]
async fn a_chain_of_its_own_for_each_agent_comes_together_in_one_run() {
    let mut play = Play::start().await;
    let (_, office) = play.send(&harbour(json!([opening()])), &[find("c1")]).await;
    let (_, office) = play
        .send(
            &after(harbour(json!([result("c1", ARRIVAL)])), &office),
            &[says("msg_0", "To the pilot."), transfer("c2")],
        )
        .await;
    // The receiver's client knows the customer's words alone.
    let (got, chain) =
        play.send(&pilot(json!([opening()])), &[says("msg_1", "Booked for ten tonight.")]).await;
    assert!(told(&got, PILOT).contains("To the pilot."));
    let go_back = [says("msg_2", "One moment."), call("c3", "transfer_to_harbour_office", &json!({}))];
    play.send(&after(pilot(json!([user("And the tugs?")])), &chain), &go_back).await;
    // The office's own chain: its transfer's result comes only now, between what others said since.
    let late = json!([moved("c2"), says("msg_1", "Booked for ten tonight."), user("And the tugs?")]);
    let (got, office) = play.send(&after(harbour(late.clone()), &office), &[transfer("c4")]).await;
    told(&got, HARBOUR);
    assert_eq!(got["input"], late);
    // Again to the pilot, in the same turn of the customer, and again in a new chain.
    let fresh = json!([opening(), says("msg_1", "Booked for ten tonight."), user("And the tugs?")]);
    let (got, _) = play.send(&pilot(fresh), &[says("msg_3", "Two tugs.")]).await;
    let text = told(&got, PILOT);
    assert!(text.contains("transfer 3") && text.matches("And the tugs?").count() == 1, "{text}");
    let _ = office;
}

#[tokio::test]
async fn what_goes_on_from_a_reply_that_seam_never_saw_passes() {
    let mut play = Play::start().await;
    play.kept.note(
        &json!({"input": "hi", "model": "deep-1"}),
        &json!({"id": "resp_x", "output": [transfer("c9")]}),
    );
    play_sender(&mut play, &[find("c1")], &[transfer("c2")]).await;
    let sent = after(pilot(json!([moved("c9")])), "resp_x");
    assert_eq!(play.send(&sent, &[says("msg_9", "Hello.")]).await.0, sent, "never guessed");
}

#[tokio::test]
async fn a_receiver_without_instructions_gets_the_brief_as_its_own() {
    let mut play = Play::start().await;
    let mut list = play_sender(&mut play, &[find("c1")], &[transfer("c2")]).await;
    list.push(moved("c2"));
    let mut sent = pilot(list);
    sent.as_object_mut().unwrap().remove("instructions");
    let (got, _) = play.send(&sent, &[says("msg_1", "Booked.")]).await;
    assert!(told(&got, "").starts_with("[Seam handoff "));
}

#[tokio::test]
async fn replies_made_in_the_background_pass_unread() {
    let mut play = Play::start().await;
    play_sender(&mut play, &[find("c1")], &[transfer("c2")]).await;
    let mut sent = pilot(json!([opening()]));
    sent["background"] = true.into();
    let queued = br#"{"id":"resp_b","object":"response","status":"queued","output":[]}"#;
    assert_eq!(play.send_raw(&sent, "application/json", queued).await, sent);
    sent["background"] = false.into();
    told(&play.send(&sent, &[says("msg_1", "Booked.")]).await.0, PILOT);
}

#[tokio::test]
async fn a_reply_that_did_not_complete_transfers_nothing() {
    for end in [
        json!({"type": "response.incomplete", "response": {"id": "resp_i", "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"}, "output": [transfer("c2")]}}),
        json!({"type": "response.failed", "response": {"id": "resp_i", "status": "failed",
            "error": {"code": "server_error", "message": "x"}, "output": [transfer("c2")]}}),
        json!({"type": "error", "code": "server_error", "message": "x"}),
    ] {
        let mut play = Play::start().await;
        let events = [
            json!({"type": "response.created", "response": {"id": "resp_i", "status": "in_progress", "output": []}}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": transfer("c2")}),
            end,
        ];
        let show = |(number, event): (usize, &Value)| {
            let mut event = event.clone();
            event["sequence_number"] = number.into();
            format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
        };
        let stream = events.iter().enumerate().map(show).collect::<Vec<_>>().concat();
        let mut sent = harbour(json!([opening()]));
        sent["stream"] = true.into();
        play.send_raw(&sent, "text/event-stream", stream.as_bytes()).await;
        let receiver = pilot(json!([opening()]));
        assert_eq!(play.send(&receiver, &[says("msg_1", "Hello.")]).await.0, receiver, "{}", events[2]);
    }
}
