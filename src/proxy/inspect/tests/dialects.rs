//! The same conversation in both dialects: the same handoff, the same findings, the same brief.

use super::*;
use crate::engine::record::{Record, Tokens};

/// One entry of a conversation, in neither dialect.
#[derive(Clone, Debug)]
enum Entry {
    /// The customer speaks.
    User(String),
    /// An agent speaks, calls, or both: id, tool, arguments.
    Agent(String, Vec<(&'static str, &'static str, Value)>),
    /// What a call gave.
    Result(&'static str, String),
}
use Entry::{Agent, User};

fn says(text: &str) -> Entry {
    Agent(text.into(), vec![])
}

fn calls(calls: &[(&'static str, &'static str, Value)]) -> Entry {
    Agent(String::new(), calls.to_vec())
}

fn result(id: &'static str, text: &str) -> Entry {
    Entry::Result(id, text.into())
}

/// An agent: its instructions, and its tools with their properties.
type Who = (&'static str, &'static [(&'static str, &'static [&'static str])]);

const NURSERY: Who = (
    "You are the counter agent of a plant nursery.",
    &[
        ("find_order", &["order"]),
        ("weigh", &["order"]),
        ("transfer_to_carrier", &[]),
        ("transfer_to_cashier", &[]),
    ],
);
/// The same, with a contract of its own.
const NURSERY_TELLS: Who = (
    "You are the counter agent of a plant nursery.",
    &[
        ("find_order", &["order"]),
        ("transfer_to_carrier", &["task", "established", "remaining", "constraints"]),
    ],
);
const CARRIER: Who = (
    "You are the carrier agent of a plant nursery.",
    &[("book_van", &["order"]), ("transfer_to_counter", &[]), ("transfer_to_cashier", &[])],
);
const CASHIER: Who = ("You are the cashier agent of a plant nursery.", &[("charge", &["order"])]);

/// What an agent's client sends, and what the agent answers.
type Turn = (Who, Vec<Entry>, Entry);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    Chat,
    ChatStream,
    Responses,
    ResponsesStream,
}

impl Wire {
    const ALL: [Wire; 4] = [Wire::Chat, Wire::ChatStream, Wire::Responses, Wire::ResponsesStream];

    fn is_chat(self) -> bool {
        matches!(self, Wire::Chat | Wire::ChatStream)
    }

    fn request(self, (instructions, tools): Who, list: &[Entry]) -> Value {
        let tools: Vec<Value> = tools
            .iter()
            .map(|(name, properties)| {
                let chat = tool(name, properties);
                if self.is_chat() {
                    return chat;
                }
                let mut flat = chat["function"].clone();
                flat["type"] = "function".into();
                flat
            })
            .collect();
        let stream = matches!(self, Wire::ChatStream | Wire::ResponsesStream);
        let items: Vec<Value> = list.iter().flat_map(|entry| self.items(entry)).collect();
        if self.is_chat() {
            let messages = [&[system(instructions)][..], &items].concat();
            json!({"model": "m", "messages": messages, "tools": tools, "stream": stream})
        } else {
            json!({"model": "m", "instructions": instructions, "input": items, "tools": tools, "stream": stream})
        }
    }

    fn items(self, entry: &Entry) -> Vec<Value> {
        match entry {
            User(text) => vec![user(text)],
            Entry::Result(id, text) if self.is_chat() => vec![super::result(id, text)],
            Entry::Result(id, text) => {
                vec![json!({"type": "function_call_output", "call_id": id, "output": text})]
            }
            Agent(text, calls) if self.is_chat() => {
                let mut message = json!({"role": "assistant", "content": text});
                if !calls.is_empty() {
                    message["tool_calls"] = calls
                        .iter()
                        .map(|(id, name, arguments)| {
                            json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})
                        })
                        .collect();
                }
                vec![message]
            }
            Agent(text, calls) => {
                let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": text}]});
                let calls = calls.iter().map(|(id, name, arguments)| {
                    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name,
                        "arguments": arguments.to_string(), "status": "completed"})
                });
                (!text.is_empty()).then_some(message).into_iter().chain(calls).collect()
            }
        }
    }

    /// The reply's type and body.
    fn reply(self, entry: &Entry) -> (&'static str, Vec<u8>) {
        let items = self.items(entry);
        let whole = json!({"id": "resp_1", "object": "response", "model": "m", "status": "completed", "output": items,
            "usage": {"input_tokens": 1, "output_tokens": 1}});
        let event = |data: Value| format!("data: {data}\n\n");
        match self {
            Wire::Chat => ("application/json", reply_body(&items[0])),
            Wire::Responses => ("application/json", whole.to_string().into_bytes()),
            Wire::ChatStream => {
                let mut delta = items[0].clone();
                for (index, call) in delta["tool_calls"].as_array_mut().into_iter().flatten().enumerate() {
                    call["index"] = index.into();
                }
                let finish = if delta["tool_calls"].is_null() { "stop" } else { "tool_calls" };
                let chunk = |delta: Value, finish: Value| {
                    event(
                        json!({"id": "r", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}),
                    )
                };
                let usage =
                    event(json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}));
                let stream = chunk(delta, Value::Null)
                    + &chunk(json!({}), finish.into())
                    + &usage
                    + "data: [DONE]\n\n";
                ("text/event-stream", stream.into_bytes())
            }
            Wire::ResponsesStream => {
                let mut stream = String::new();
                for (index, item) in items.iter().enumerate() {
                    if let Some(text) = item["content"][0]["text"].as_str() {
                        stream += &event(
                            json!({"type": "response.output_text.delta", "output_index": index, "delta": text}),
                        );
                    }
                    stream += &event(
                        json!({"type": "response.output_item.done", "output_index": index, "item": item}),
                    );
                }
                stream += &event(json!({"type": "response.completed", "response": whole}));
                ("text/event-stream", stream.into_bytes())
            }
        }
    }
}

/// Plays the turns over one wire: the records in the order of their transfers, without what only counts bytes,
/// and the brief that each turn's agent got, if it got one.
async fn play(wire: Wire, turns: &[Turn], settings: &[(&str, &str)]) -> (Vec<Record>, Vec<Option<String>>) {
    let desk = Desk::with(settings);
    let route = if wire.is_chat() { "chat/completions" } else { "responses" };
    let mut briefs = Vec::new();
    for (who, list, answer) in turns {
        let (kind, reply) = wire.reply(answer);
        let head = head_to(route, "Bearer one");
        let got = desk.exchange(&head, &wire.request(*who, list), (kind, &reply)).await;
        let slot = if wire.is_chat() { &got["messages"][0]["content"] } else { &got["instructions"] };
        let slot = slot.as_str().expect("a slot");
        let rest = slot.strip_prefix(who.0).expect("its own instructions first");
        briefs.push((!rest.is_empty()).then(|| rest.to_owned()));
    }
    let ids: Vec<String> = (0..64).map(|n| fresh("seed", n)).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut records = desk.records(&ids).await;
    for record in &mut records {
        record.tokens = Tokens::default();
    }
    (records, briefs)
}

/// What is the same on every wire: the briefs that were given.
async fn check_with(turns: &[Turn], settings: &[(&str, &str)]) -> Vec<String> {
    let show = |records: &[Record]| serde_json::to_string_pretty(records).expect("records");
    let (records, briefs) = play(Wire::Chat, turns, settings).await;
    assert!(briefs.iter().any(Option::is_some), "somebody received: {}", show(&records));
    for wire in Wire::ALL {
        let (others, theirs) = play(wire, turns, settings).await;
        assert_eq!(theirs, briefs, "{wire:?}");
        assert_eq!(show(&others), show(&records), "{wire:?}");
    }
    briefs.into_iter().flatten().collect()
}

async fn check(turns: &[Turn]) -> Vec<String> {
    check_with(turns, &[]).await
}

const ORDER: &str = r#"{"order":"ord-51","plants":["yew","box"],"pallets":3,"paid":false}"#;

fn opening() -> Entry {
    User("Where are the yews of order ord-51? Never deliver before 10:00.".into())
}

fn lookup() -> (&'static str, &'static str, Value) {
    ("c1", "find_order", json!({"order": "ord-51"}))
}

fn to_carrier() -> (&'static str, &'static str, Value) {
    ("c2", "transfer_to_carrier", json!({}))
}

/// The sender's two turns, the second of which is answered by `last`.
fn sender(who: Who, last: &Entry) -> (Vec<Turn>, Vec<Entry>) {
    let found = vec![opening(), calls(&[lookup()]), result("c1", ORDER)];
    let turns = vec![(who, found[..1].to_vec(), calls(&[lookup()])), (who, found.clone(), last.clone())];
    (turns, [&found[..], std::slice::from_ref(last)].concat())
}

#[tokio::test]
async fn a_transfer_that_says_nothing() {
    let (mut turns, mut list) = sender(NURSERY, &calls(&[to_carrier()]));
    list.push(result("c2", r#"{"assistant": "carrier"}"#));
    let booked = calls(&[("c3", "book_van", json!({"order": "ord-51"}))]);
    turns.push((CARRIER, list.clone(), booked.clone()));
    list.extend([booked, result("c3", r#"{"van":"V-8"}"#)]);
    turns.push((CARRIER, list, says("Van V-8 brings them.")));
    let briefs = check(&turns).await;
    assert_eq!(briefs[0], briefs[1]);
    assert!(briefs[0].contains("find_order c1") && briefs[0].contains("10:00"), "{}", briefs[0]);
}

#[tokio::test]
async fn a_transfer_with_a_contract_some_of_it_wrong() {
    let contract = json!({"task": "Deliver the plants of ord-51.", "established": [
        {"key": "pallets", "value": "3", "of": "order ord-51", "source": "tool_result", "evidence": "c1"},
        {"key": "paid", "value": "true", "of": "order ord-51", "source": "tool_result", "evidence": "c1"},
        {"key": "gate", "value": "north", "source": "tool_result", "evidence": "c9"}],
        "remaining": ["Book a van."], "constraints": [{"text": "Never deliver before 10:00.", "scope": "run", "stated_by": "customer"}]});
    let (mut turns, mut list) = sender(NURSERY_TELLS, &calls(&[("c2", "transfer_to_carrier", contract)]));
    list.push(result("c2", "Successfully transferred to carrier"));
    turns.push((CARRIER, list, says("It comes at noon.")));
    let brief = &check(&turns).await[0];
    assert!(brief.contains("Not confirmed"), "{brief}");
}

#[tokio::test]
async fn words_beside_a_transfer() {
    let (mut turns, mut list) =
        sender(NURSERY, &Agent("The carrier will take over.".into(), vec![to_carrier()]));
    list.push(result("c2", r#"{"assistant": "carrier"}"#));
    turns.push((CARRIER, list, says("It comes at noon.")));
    assert!(check(&turns).await[0].contains("The carrier will take over."));
}

#[tokio::test]
async fn a_transfer_beside_another_call() {
    let weigh = ("c3", "weigh", json!({"order": "ord-51"}));
    let (mut turns, mut list) = sender(NURSERY, &calls(&[weigh, to_carrier()]));
    list.extend([result("c3", r#"{"kg":412}"#), result("c2", r#"{"assistant": "carrier"}"#)]);
    turns.push((CARRIER, list, says("It comes at noon.")));
    assert!(check(&turns).await[0].contains("412"));
}

#[tokio::test]
async fn two_transfers_in_one_reply() {
    let (mut turns, mut list) =
        sender(NURSERY, &calls(&[to_carrier(), ("c3", "transfer_to_cashier", json!({}))]));
    list.extend([
        result("c3", "Multiple handoffs detected, ignoring this one."),
        result("c2", r#"{"assistant": "carrier"}"#),
    ]);
    turns.push((CARRIER, list, says("It comes at noon.")));
    check(&turns).await;
}

#[tokio::test]
async fn a_transfer_that_the_receivers_client_hides() {
    let (mut turns, _) = sender(NURSERY, &Agent("One moment.".into(), vec![to_carrier()]));
    let mut list = vec![opening()];
    turns.push((CARRIER, list.clone(), says("It comes at noon.")));
    list.extend([says("It comes at noon."), User("Which van?".into())]);
    turns.push((CARRIER, list, says("V-8.")));
    assert!(check(&turns).await[0].contains("find_order c1"));
}

#[tokio::test]
async fn a_transfer_that_seam_did_not_see() {
    let list = vec![
        opening(),
        calls(&[lookup()]),
        result("c1", ORDER),
        Agent("The carrier will take over.".into(), vec![to_carrier()]),
        result("c2", r#"{"assistant": "carrier"}"#),
    ];
    check(&[(CARRIER, list, says("It comes at noon."))]).await;
}

#[tokio::test]
async fn two_hops_one_after_the_other() {
    let (mut turns, mut list) = sender(NURSERY, &calls(&[to_carrier()]));
    list.push(result("c2", r#"{"assistant": "carrier"}"#));
    let booked = calls(&[("c3", "book_van", json!({"order": "ord-51"}))]);
    turns.push((CARRIER, list.clone(), booked.clone()));
    list.extend([booked, result("c3", r#"{"van":"V-8","fee":"40.00"}"#)]);
    let on = calls(&[("c4", "transfer_to_cashier", json!({}))]);
    turns.push((CARRIER, list.clone(), on.clone()));
    list.extend([on, result("c4", r#"{"assistant": "cashier"}"#)]);
    turns.push((CASHIER, list, says("That makes 40.00.")));
    let briefs = check(&turns).await;
    assert!(briefs[2].contains("V-8") && briefs[2].contains("ord-51"), "{}", briefs[2]);
}

#[tokio::test]
async fn a_long_conversation_of_which_little_travels() {
    let mut list = vec![opening()];
    let mut turns = Vec::new();
    for n in 0..8 {
        let answer = says(&format!("Answer {n}: {}", "leaf ".repeat(200)));
        turns.push((NURSERY, list.clone(), answer.clone()));
        list.extend([answer, User(format!("Question {n} about the hedge, please?"))]);
    }
    turns.push((NURSERY, list.clone(), calls(&[lookup()])));
    list.extend([calls(&[lookup()]), result("c1", ORDER)]);
    turns.push((NURSERY, list.clone(), calls(&[to_carrier()])));
    list.extend([calls(&[to_carrier()]), result("c2", r#"{"assistant": "carrier"}"#)]);
    turns.push((CARRIER, list, says("It comes at noon.")));
    let small = [("SEAM_TRANSCRIPT_TOKENS", "300"), ("SEAM_TRANSCRIPT_TURNS", "2")];
    check_with(&turns, &small).await;
    for form in ["full", "dialogue", "none"] {
        check_with(&turns, &[("SEAM_TRANSCRIPT", form)]).await;
    }
}

/// A sender's turn, and what it answers to each time that it is asked.
type Tries = (Who, Vec<Entry>, Vec<Entry>);

/// What the client has of a reply: the text, and the calls by id, tool and arguments.
type Heard = (String, Vec<(String, String, String)>);

/// What is seen of turns in which senders are asked.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    /// What each turn's client has; none where it was refused.
    heard: Vec<Option<Heard>>,
    /// How often upstream was asked in each turn.
    times: Vec<usize>,
    /// The answers that senders got to their calls, in order.
    told: Vec<String>,
    records: String,
    briefs: Vec<String>,
}

async fn play_asked(wire: Wire, turns: &[Tries], settings: &[(&str, &str)]) -> Asked {
    let desk = Desk::with(&[&[("SEAM_CONTRACT", "inject")][..], settings].concat());
    let route = if wire.is_chat() { "chat/completions" } else { "responses" };
    let dialect = if wire.is_chat() { Dialect::Chat } else { Dialect::Responses };
    let mut asked =
        Asked { heard: vec![], times: vec![], told: vec![], records: String::new(), briefs: vec![] };
    for (who, list, tries) in turns {
        let answers = tries.iter().map(|answer| {
            let (kind, whole) = wire.reply(answer);
            Answer { kind: kind.to_owned(), parts: cut(&whole, 13), ..Answer::default() }
        });
        let head = head_to(route, "Bearer one");
        let got = desk.play(&head, &wire.request(*who, list), answers.collect()).await;
        let reply = match wire {
            Wire::Chat | Wire::Responses => wire::read_reply(&got.reply, dialect).ok(),
            Wire::ChatStream | Wire::ResponsesStream => {
                let mut assembler = wire::Assembler::new(dialect, 1 << 20);
                for piece in wire::sse::Splitter::new(1 << 20).push(got.reply.into()) {
                    let wire::sse::Piece::Event(event) = piece else { panic!("too large") };
                    assembler.event(&event);
                }
                Some(assembler.finish())
            }
        };
        asked.heard.push(reply.filter(|_| got.broken.is_none()).map(|reply| {
            let calls = reply.calls.into_iter().map(|call| (call.id, call.name, call.arguments));
            (reply.text, calls.collect())
        }));
        asked.times.push(got.sent.len());
        for again in &got.sent[1..] {
            let items = if wire.is_chat() { &again["messages"] } else { &again["input"] };
            let answer = items.as_array().and_then(|items| items.last()).expect("an answer");
            let text = if wire.is_chat() { &answer["content"] } else { &answer["output"] };
            asked.told.push(text.as_str().expect("a text").to_owned());
        }
        let slot = if wire.is_chat() {
            &got.sent[0]["messages"][0]["content"]
        } else {
            &got.sent[0]["instructions"]
        };
        let brief =
            slot.as_str().and_then(|slot| slot.strip_prefix(who.0)).expect("its own instructions first");
        asked.briefs.push(brief.to_owned());
    }
    let ids: Vec<String> = (0..64).map(|n| fresh("seed", n)).collect();
    let mut records = desk.records(&ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
    for record in &mut records {
        record.tokens = Tokens::default();
    }
    asked.records = serde_json::to_string_pretty(&records).expect("records");
    asked
}

/// The same turns on every wire: plain replies alike in both dialects, and streamed ones.
async fn check_asked(turns: &[Tries], settings: &[(&str, &str)]) -> [Asked; 2] {
    let plain = play_asked(Wire::Chat, turns, settings).await;
    assert_eq!(play_asked(Wire::Responses, turns, settings).await, plain, "plain");
    let streamed = play_asked(Wire::ChatStream, turns, settings).await;
    assert_eq!(play_asked(Wire::ResponsesStream, turns, settings).await, streamed, "streamed");
    [plain, streamed]
}

/// The arguments of a transfer with a contract that cites this call.
fn filled(evidence: &str) -> Value {
    json!({"handoff": {"task": "Deliver the plants of ord-51.", "reason": "Delivery is the carrier's.",
        "established": [{"key": "pallets", "value": "3", "of": "order ord-51", "source": "tool_result", "evidence": evidence}],
        "constraints": [], "decisions": [], "open_questions": [], "remaining": ["Book a van."], "done_when": ["They are there."]}})
}

/// The sender's turns, the last of which has these tries; then the receiver's, if the last try went through.
fn asked_turns(tries: &[Entry], went_through: bool) -> Vec<Tries> {
    let found = vec![opening(), calls(&[lookup()]), result("c1", ORDER)];
    let mut turns = vec![
        (NURSERY, found[..1].to_vec(), vec![calls(&[lookup()])]),
        (NURSERY, found.clone(), tries.to_vec()),
    ];
    if went_through {
        let moved = [calls(&[to_carrier()]), result("c2", r#"{"assistant": "carrier"}"#)];
        turns.push((CARRIER, [&found[..], &moved].concat(), vec![says("It comes at noon.")]));
    }
    turns
}

#[tokio::test]
async fn a_sender_that_is_asked() {
    let told = Agent("The carrier will take over.".into(), vec![("c2", "transfer_to_carrier", filled("c1"))]);
    for asked in check_asked(&asked_turns(&[told], true), &[]).await {
        let bare = ("c2".to_owned(), "transfer_to_carrier".to_owned(), "{}".to_owned());
        assert_eq!(asked.heard[1], Some(("The carrier will take over.".to_owned(), vec![bare])));
        assert!(asked.briefs[2].contains("Deliver the plants of ord-51."), "{}", asked.briefs[2]);
    }
}

#[tokio::test]
async fn a_sender_that_is_corrected() {
    let wrong = Agent("One moment.".into(), vec![("c9", "transfer_to_carrier", filled("c7"))]);
    let right = Agent("Sorry.".into(), vec![("c2", "transfer_to_carrier", filled("c1"))]);
    let turns = asked_turns(&[wrong, right], true);
    for (asked, text) in
        check_asked(&turns, &[("SEAM_ENFORCE", "facts")]).await.into_iter().zip(["Sorry.", "One moment."])
    {
        let bare = ("c2".to_owned(), "transfer_to_carrier".to_owned(), "{}".to_owned());
        assert_eq!(asked.heard[1], Some((text.to_owned(), vec![bare])));
        assert_eq!((&asked.times[..], asked.told.len()), (&[1, 2, 1][..], 1));
        assert!(asked.told[0].contains("no_such_call"), "{}", asked.told[0]);
    }
}

#[tokio::test]
async fn a_sender_that_does_not_learn() {
    let wrong = calls(&[("c9", "transfer_to_carrier", filled("c7"))]);
    for asked in check_asked(&asked_turns(&[wrong.clone(), wrong], false), &[("SEAM_ENFORCE", "facts")]).await
    {
        assert_eq!((asked.heard[1].as_ref(), asked.times[1]), (None, 2));
    }
}

#[tokio::test]
async fn a_sender_that_calls_something_else_beside_a_wrong_transfer() {
    let weigh = ("c3", "weigh", json!({"order": "ord-51"}));
    let wrong = calls(&[weigh, ("c9", "transfer_to_carrier", filled("c7"))]);
    for asked in check_asked(&asked_turns(&[wrong], false), &[("SEAM_ENFORCE", "facts")]).await {
        assert_eq!((asked.heard[1].as_ref(), asked.times[1]), (None, 1), "it cannot be asked again");
    }
}
