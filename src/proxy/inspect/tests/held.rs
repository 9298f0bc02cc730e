//! Senders that are asked, corrected, redirected and refused, in both forms of a reply.

use std::future::Future;

use proptest::collection::vec;

use super::*;
use crate::engine::record::{Origin, Record, State};
use crate::engine::wire::Assembler;
use crate::engine::wire::sse::{Piece, Splitter};
use crate::proxy::watched::Broken;

/// How upstream writes its replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain,
    Streamed,
}

const FORMS: [Form; 2] = [Form::Plain, Form::Streamed];

/// A reply as upstream writes it.
fn answer(form: Form, id: &str, message: &Value) -> Answer {
    match form {
        Form::Plain => {
            let mut body: Value = serde_json::from_slice(&reply_body(message)).expect("JSON");
            body["id"] = id.into();
            Answer { parts: cut(body.to_string().as_bytes(), 11), ..Answer::default() }
        }
        Form::Streamed => {
            let kind = "text/event-stream".to_owned();
            Answer { kind, parts: cut(&streamed(id, message), 23), ..Answer::default() }
        }
    }
}

/// A message as a stream of small fragments.
fn streamed(id: &str, message: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let mut chunk = |delta: Value, finish: Value| {
        let chunk = json!({"id": id, "object": "chat.completion.chunk", "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        out.push(format!("data: {chunk}\n\n"));
    };
    chunk(json!({"role": "assistant", "content": ""}), Value::Null);
    if let Some(text) = message["content"].as_str() {
        chunk(json!({"content": text}), Value::Null);
    }
    let none = Vec::new();
    let calls = message["tool_calls"].as_array().unwrap_or(&none);
    for (index, call) in calls.iter().enumerate() {
        let mut opened = call.clone();
        opened["index"] = index.into();
        opened["function"]["arguments"] = "".into();
        chunk(json!({"tool_calls": [opened]}), Value::Null);
        let arguments: Vec<char> =
            call["function"]["arguments"].as_str().expect("arguments").chars().collect();
        for part in arguments.chunks(9) {
            let part: String = part.iter().collect();
            chunk(json!({"tool_calls": [{"index": index, "function": {"arguments": part}}]}), Value::Null);
        }
    }
    chunk(json!({}), if calls.is_empty() { json!("stop") } else { json!("tool_calls") });
    let usage = json!({"id": id, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}});
    out.push(format!("data: {usage}\n\ndata: [DONE]\n\n"));
    out.concat().into_bytes()
}

/// What a client makes of what it got: id, text, calls by name and arguments, tokens in all.
#[derive(Debug, PartialEq, Eq)]
struct Heard {
    id: String,
    text: String,
    calls: Vec<(String, String)>,
    tokens: u64,
}

fn heard(form: Form, bytes: &[u8]) -> Heard {
    let reply = match form {
        Form::Plain => wire::read_reply(bytes, Dialect::Chat).expect("a reply"),
        Form::Streamed => {
            let mut splitter = Splitter::new(1 << 20);
            let mut assembler = Assembler::new(Dialect::Chat, 1 << 20);
            for piece in splitter.push(Bytes::copy_from_slice(bytes)) {
                let Piece::Event(event) = piece else { panic!("too large") };
                assembler.event(&event);
            }
            assembler.finish()
        }
    };
    let calls = reply.calls.into_iter().map(|call| (call.name, call.arguments)).collect();
    let tokens = reply.usage.map_or(0, |usage| usage.input + usage.output);
    Heard { id: reply.id, text: reply.text, calls, tokens }
}

/// A contract that keeps to what it was asked.
fn contract(evidence: &str) -> Value {
    json!({"handoff": {
        "task": "Look at the brakes of KA 17 XR.", "reason": "Brakes are the workshop's.",
        "established": [{"key": "quote", "value": "318.40", "of": "booking bk_4471", "source": "tool_result", "evidence": evidence}],
        "constraints": [], "decisions": [], "open_questions": [], "remaining": ["Inspect the brakes"], "done_when": ["The brakes are quiet"]
    }})
}

fn transfers(arguments: &Value) -> Value {
    calls("c2", "transfer_to_workshop", arguments)
}

/// A desk that asks, with these settings more; its first exchange is over.
async fn asking(settings: &[(&str, &str)]) -> Desk {
    let desk = Desk::with(&[&[("SEAM_CONTRACT", "inject")][..], settings].concat());
    let list = before_transfer();
    desk.send(&request(&[&[system(DESK)][..], &list[..1]].concat(), &desk_tools()), &list[1]).await;
    desk
}

fn desk_request() -> Value {
    request(&[&[system(DESK)][..], &before_transfer()].concat(), &desk_tools())
}

/// The transfer's request, answered in turn by these messages.
async fn play(desk: &Desk, form: Form, messages: &[Value]) -> Got {
    let answers =
        messages.iter().enumerate().map(|(n, message)| answer(form, &format!("chatcmpl-{n}"), message));
    desk.play(&head("Bearer one"), &desk_request(), answers.collect()).await
}

/// All records of the desk's run.
async fn all(desk: &Desk) -> Vec<Record> {
    let ids: Vec<String> = (0..20).map(|n| fresh("seed", n)).collect();
    desk.records(&ids.iter().map(String::as_str).collect::<Vec<_>>()).await
}

const ENFORCED: &[(&str, &str)] = &[("SEAM_ENFORCE", "contract,facts,hops")];

#[tokio::test(start_paused = true)]
async fn the_sender_is_asked_and_the_client_gets_what_it_declared() {
    for form in FORMS {
        let desk = asking(&[]).await;
        let got = play(&desk, form, &[transfers(&contract("c1"))]).await;
        let parameters = |body: &Value| body["tools"][1]["function"]["parameters"].clone();
        assert_eq!(parameters(&got.sent[0])["required"], json!(["handoff"]));
        let mut sent = got.sent[0].clone();
        sent["tools"][1]["function"]["parameters"] = parameters(&desk_request());
        assert_eq!(sent, desk_request(), "nothing else has changed");
        let heard = heard(form, &got.reply);
        assert_eq!(heard.calls, [("transfer_to_workshop".to_owned(), "{}".to_owned())], "{form:?}");
        let records = all(&desk).await;
        assert_eq!((records[0].origin, records[0].state), (Origin::Injected, State::Pending));
        let list = [&[system(WORKSHOP)][..], &before_transfer(), &transfer_pair()].concat();
        let receiver = desk.send(&request(&list, &workshop_tools()), &says("Bring it in.")).await;
        let brief = has_brief(&receiver, WORKSHOP);
        assert!(brief.contains("Look at the brakes of KA 17 XR.") && brief.contains("318.40"), "{brief}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_asks_again_reads_what_it_generated() {
    let desk = asking(&[]).await;
    play(&desk, Form::Plain, &[transfers(&contract("c1"))]).await;
    let own = [&[system(DESK)][..], &before_transfer(), &transfer_pair()].concat();
    let sent = desk.send(&request(&own, &desk_tools()), &says("Handing over.")).await;
    let arguments =
        sent["messages"][4]["tool_calls"][0]["function"]["arguments"].as_str().expect("arguments");
    assert_eq!(serde_json::from_str::<Value>(arguments).expect("JSON"), contract("c1"));
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_cites_what_never_ran_is_told_once_and_the_client_sees_one_clean_transfer() {
    for form in FORMS {
        let desk = asking(ENFORCED).await;
        let mut wrong = contract("c99");
        wrong["handoff"]["task"] = "Look at it. Then call. Then wait.".into();
        let got = play(&desk, form, &[transfers(&wrong), transfers(&contract("c1"))]).await;
        assert_eq!(got.sent.len(), 2, "upstream saw one correction");
        let list = got.sent[1]["messages"].as_array().expect("a list");
        let told = list.last().expect("an answer");
        assert_eq!((&told["role"], &told["tool_call_id"]), (&json!("tool"), &json!("c2")));
        let text = told["content"].as_str().expect("a text");
        for fault in ["2 faults", "task", "no_such_call"] {
            assert!(text.contains(fault), "{fault} in {text}");
        }
        let heard = heard(form, &got.reply);
        assert_eq!(heard.calls, [("transfer_to_workshop".to_owned(), "{}".to_owned())], "{form:?}");
        assert_eq!(heard.tokens, 4, "both replies are paid for");
        let records = all(&desk).await;
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].corrections.len(), 1);
        assert_eq!((records[0].corrections[0].input, records[0].corrections[0].output), (1, 1));
        assert_eq!(records[0].state, State::Pending);
    }
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_never_learns_is_refused_and_nothing_hangs() {
    for form in FORMS {
        let desk = asking(ENFORCED).await;
        let wrong = transfers(&contract("c99"));
        let got = play(&desk, form, &[wrong.clone(), wrong]).await;
        assert_eq!(got.sent.len(), 2);
        let Some(Broken::Refused(refusal)) = &got.broken else { panic!("{form:?}: {:?}", got.broken) };
        assert_eq!(refusal.code, "seam_facts");
        let text = String::from_utf8_lossy(&got.reply);
        assert!(!text.contains("transfer_to_workshop"), "{text}");
        let records = all(&desk).await;
        assert_eq!((records.len(), records[0].state), (1, State::Refused));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_transfer_goes_to_a_person_where_one_is_on_offer() {
    for form in FORMS {
        let desk = asking(ENFORCED).await;
        let mut tools = desk_tools();
        tools.push(json!({"type": "function", "function": {"name": "transfer_to_human",
            "parameters": {"type": "object", "properties": {"reason": {"type": "string"}}, "required": ["reason"]}}}));
        let sent = request(&[&[system(DESK)][..], &before_transfer()].concat(), &tools);
        let wrong = transfers(&contract("c99"));
        let answers = [answer(form, "one", &wrong), answer(form, "two", &wrong)];
        let got = desk.play(&head("Bearer one"), &sent, answers.to_vec()).await;
        let arguments = r#"{"reason":"Brakes are the workshop's."}"#.to_owned();
        assert_eq!(heard(form, &got.reply).calls, [("transfer_to_human".to_owned(), arguments)], "{form:?}");
        let states: Vec<State> = all(&desk).await.iter().map(|record| record.state).collect();
        assert_eq!(states, [State::TakenUp, State::Refused]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_text_is_not_said_to_who_has_heard_the_first() {
    let desk = asking(ENFORCED).await;
    let speaking = |text: &str, evidence: &str| {
        let mut message = transfers(&contract(evidence));
        message["content"] = text.into();
        message
    };
    let got =
        play(&desk, Form::Streamed, &[speaking("One moment.", "c99"), speaking("Once more:", "c1")]).await;
    let heard = heard(Form::Streamed, &got.reply);
    assert_eq!((heard.id.as_str(), heard.text.as_str()), ("chatcmpl-0", "One moment."));
    assert_eq!(heard.calls.len(), 1);
    let ids = String::from_utf8_lossy(&got.reply).matches("chatcmpl-1").count();
    assert_eq!(ids, 0, "chunks keep the first id");
}

#[tokio::test(start_paused = true)]
async fn a_correction_that_upstream_cannot_answer_ends_in_what_comes_without_one() {
    let wrong = transfers(&contract("c99"));
    for form in FORMS {
        let failed = Answer { status: 500, ..answer(form, "x", &wrong) };
        let silent =
            Answer { parts: vec![Part::Silence(Duration::from_mins(1))], ..answer(form, "x", &wrong) };
        for second in [failed, silent] {
            let desk = asking(ENFORCED).await;
            let began = tokio::time::Instant::now();
            let got = desk
                .play(&head("Bearer one"), &desk_request(), vec![answer(form, "one", &wrong), second])
                .await;
            assert!(matches!(got.broken, Some(Broken::Refused(_))), "{form:?}: {:?}", got.broken);
            assert!(began.elapsed() <= Duration::from_secs(20), "{:?}", began.elapsed());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_resent_request_is_not_corrected_twice() {
    let desk = asking(ENFORCED).await;
    let wrong = transfers(&contract("c99"));
    let first = play(&desk, Form::Plain, &[wrong.clone(), wrong.clone()]).await;
    let again = play(&desk, Form::Plain, &[wrong.clone(), wrong]).await;
    assert_eq!((first.sent.len(), again.sent.len()), (2, 1));
    assert!(matches!(again.broken, Some(Broken::Refused(_))));
    assert_eq!(all(&desk).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_first_request_that_an_sdk_sends_again_is_the_same_run() {
    let desk = Desk::with(&[("SEAM_CONTRACT", "inject"), ("SEAM_ENFORCE", "facts")]);
    let sent = request(&[system(DESK), opening()], &desk_tools());
    let wrong = answer(Form::Plain, "one", &transfers(&contract("c99")));
    for (retries, asked) in [("0", 2), ("1", 1), ("2", 1)] {
        let mut head = head("Bearer one");
        head.headers.insert("x-stainless-retry-count", retries.parse().expect("a value"));
        let got = desk.play(&head, &sent, vec![wrong.clone(), wrong.clone()]).await;
        assert_eq!(got.sent.len(), asked, "try {retries}");
        assert!(matches!(got.broken, Some(Broken::Refused(_))));
    }
    assert_eq!(all(&desk).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_client_takes_by_a_tool_of_its_own_is_the_contract_of_the_transfer_behind_it() {
    let submit = contract("c1")["handoff"].clone();
    let mut tools = desk_tools();
    tools.push(tool("submit_handoff", &["task", "established", "remaining"]));
    let asked = |body: &Value| body["tools"][1]["function"]["parameters"]["required"].is_array();

    // In the same reply as the transfer.
    let desk = asking(&[]).await;
    let mut both = calls("s1", "submit_handoff", &submit);
    let transfer = transfers(&json!({}))["tool_calls"][0].clone();
    both["tool_calls"].as_array_mut().expect("calls").push(transfer);
    let sent = request(&[&[system(DESK)][..], &before_transfer()].concat(), &tools);
    let got = desk.play(&head("Bearer one"), &sent, vec![answer(Form::Plain, "one", &both)]).await;
    assert!(!asked(&got.sent[0]), "who has a way of its own is not asked");
    let task = |record: &Record| record.handoff.task.as_ref().map(|line| line.text.clone());
    assert_eq!(task(&all(&desk).await[0]).as_deref(), Some("Look at the brakes of KA 17 XR."));

    // In a reply before it.
    let desk = asking(&[]).await;
    let submitted = [calls("s1", "submit_handoff", &submit), result("s1", "ok")];
    let sent = request(&[&[system(DESK)][..], &before_transfer(), &submitted].concat(), &tools);
    desk.play(&head("Bearer one"), &sent, vec![answer(Form::Plain, "one", &transfers(&json!({})))]).await;
    let records = all(&desk).await;
    assert_eq!(task(&records[0]).as_deref(), Some("Look at the brakes of KA 17 XR."));
    assert_eq!(records[0].origin, Origin::Declared);
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_goes_back_uses_no_value_of_the_brief() {
    let desk = asking(ENFORCED).await;
    play(&desk, Form::Plain, &[transfers(&contract("c1"))]).await;
    let list = [&[system(WORKSHOP)][..], &before_transfer(), &transfer_pair()].concat();
    let found = calls("c3", "open_job", &json!({"booking": "b"}));
    desk.send(&request(&list, &workshop_tools()), &found).await;
    let list = [&list[..], &[found, result("c3", r#"{"job":"jb_9"}"#)]].concat();
    let wrong = calls("c4", "transfer_to_intake_desk", &contract("c99"));
    let fine = says("The quote is 318.40.");
    let answers = vec![answer(Form::Plain, "one", &wrong), answer(Form::Plain, "two", &fine)];
    let got = desk.play(&head("Bearer one"), &request(&list, &workshop_tools()), answers).await;
    assert_eq!(got.sent.len(), 2);
    let used = &desk.inspector.inner.telemetry.metrics.brief_values;
    assert_eq!(
        used.value((crate::telemetry::metrics::Value::Used,)),
        1,
        "once, by the reply that the client got"
    );
}

/// The outcome of the one fact of a handoff that cites this, in a conversation with these messages.
async fn outcome(messages: &[Value], cites: &str) -> (bool, Option<String>) {
    let desk =
        Desk::with(&[("SEAM_CONTRACT", "inject"), ("SEAM_ENFORCE", "facts"), ("SEAM_CORRECTIONS", "0")]);
    let sent = request(messages, &desk_tools());
    let answers = vec![answer(Form::Plain, "one", &transfers(&contract(cites)))];
    let got = desk.play(&head("Bearer one"), &sent, answers).await;
    let refused = matches!(got.broken, Some(Broken::Refused(_)));
    let records = all(&desk).await;
    let fact = records.first().and_then(|record| record.facts.first());
    (refused, fact.map(|fact| fact.outcome.name().to_owned()))
}

#[tokio::test(start_paused = true)]
async fn who_cites_what_seam_did_not_see_is_not_refused() {
    let unseen = (false, Some("unseen".to_owned()));
    let fresh = [system(DESK), opening()];
    assert_eq!(outcome(&fresh, "c77").await, (true, Some("no_such_call".to_owned())));
    // Seam was started anew in the middle of the conversation, whose client hides the calls.
    let later = [system(DESK), opening(), says("I look it up."), user("And?")];
    assert_eq!(outcome(&later, "c77").await, unseen);
    // A client tells an agent in words what another one found out.
    let told = [system(&format!("{DESK} Known from call c77: the quote is 318.40.")), opening()];
    assert_eq!(outcome(&told, "c77").await, unseen);
}

#[tokio::test(start_paused = true)]
async fn who_cites_what_its_own_brief_told_it_is_not_refused() {
    let desk = asking(ENFORCED).await;
    play(&desk, Form::Plain, &[transfers(&contract("c1"))]).await;
    // The workshop's client hides all that was before; its brief names c1.
    let mut back = contract("c1");
    back["handoff"]["established"][0]["key"] = "quote".into();
    let sent = request(&[system(WORKSHOP), opening()], &workshop_tools());
    let message = calls("c3", "transfer_to_intake_desk", &back);
    let got = desk.play(&head("Bearer one"), &sent, vec![answer(Form::Plain, "x", &message)]).await;
    assert!(got.broken.is_none(), "{:?}", got.broken);
    assert_eq!(heard(Form::Plain, &got.reply).calls.len(), 1);
    assert_eq!(all(&desk).await[1].facts[0].outcome.name(), "verified");
}

#[tokio::test(start_paused = true)]
async fn text_goes_on_and_comments_keep_the_client_while_a_call_waits() {
    let desk = asking(&[]).await;
    let mut message = transfers(&contract("c1"));
    message["content"] = "One moment.".into();
    let whole = streamed("one", &message);
    let text = String::from_utf8_lossy(&whole).into_owned();
    let middle = text.find("318.40").expect("the quote");
    let parts = vec![
        Part::Data(Bytes::copy_from_slice(&whole[..middle])),
        Part::Silence(Duration::from_secs(10)),
        Part::Data(Bytes::copy_from_slice(&whole[middle..])),
    ];
    let stalled = Answer { kind: "text/event-stream".into(), parts, ..Answer::default() };
    let began = tokio::time::Instant::now();
    let got = desk.play(&head("Bearer one"), &desk_request(), vec![stalled]).await;
    let early: Vec<&(String, _)> =
        got.frames.iter().filter(|(_, at)| *at < began + Duration::from_secs(10)).collect();
    assert!(early.iter().any(|(text, _)| text.contains("One moment.")), "{early:?}");
    assert_eq!(early.iter().filter(|(text, _)| text.starts_with(": ")).count(), 3);
    assert!(!early.iter().any(|(text, _)| text.contains("tool_calls")), "{early:?}");
    assert_eq!(heard(Form::Streamed, &got.reply).calls.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_too_long_goes_on_or_fails_as_was_chosen() {
    for (mode, open) in [("open", true), ("closed", false)] {
        let desk = asking(&[("SEAM_HOLD_TIMEOUT", "5s"), ("SEAM_ON_FAILURE", mode)]).await;
        let whole = streamed("one", &transfers(&contract("c1")));
        let parts = vec![
            Part::Data(Bytes::copy_from_slice(&whole[..whole.len() / 2])),
            Part::Silence(Duration::from_secs(10)),
            Part::Data(Bytes::copy_from_slice(&whole[whole.len() / 2..])),
        ];
        let stalled = Answer { kind: "text/event-stream".into(), parts, ..Answer::default() };
        let got = desk.play(&head("Bearer one"), &desk_request(), vec![stalled]).await;
        let said = String::from_utf8_lossy(&got.reply).replace(": waiting for the end of a transfer\n\n", "");
        assert_eq!(said.as_bytes() == whole, open, "{mode}: {said}");
        assert_eq!(matches!(got.broken, Some(Broken::Unkept(Passed::HoldLimit))), !open, "{:?}", got.broken);
        assert_eq!(said.contains("transfer_to_workshop"), open, "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_breaks_while_a_call_waits_gives_the_client_nothing_of_it() {
    for form in FORMS {
        let desk = asking(&[]).await;
        let mut broken = answer(form, "one", &transfers(&contract("c1")));
        broken.parts.truncate(broken.parts.len() / 2);
        broken.parts.push(Part::Break);
        let got = desk.play(&head("Bearer one"), &desk_request(), vec![broken]).await;
        assert!(matches!(got.broken, Some(Broken::Upstream(_))), "{:?}", got.broken);
        if form == Form::Streamed {
            assert_eq!(heard(form, &got.reply).calls, []);
        }
        assert_eq!(all(&desk).await.len(), 0, "half a transfer is no transfer");
    }
}

/// What the client gets, and what the run keeps, of a stream that is cut at these places.
async fn play_held(cuts: &[usize]) -> (Vec<u8>, String) {
    let desk = asking(ENFORCED).await;
    let mut message = transfers(&contract("c1"));
    message["content"] = "Grüße – one moment.".into();
    let whole = streamed("one", &message);
    let kind = "text/event-stream".to_owned();
    let answer = Answer { kind, parts: cut_at(&whole, cuts), ..Answer::default() };
    let got = desk.play(&head("Bearer one"), &desk_request(), vec![answer]).await;
    (got.reply, serde_json::to_string(&all(&desk).await).expect("JSON"))
}

fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(future)
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

    #[test]
    fn how_a_held_stream_is_cut_changes_neither_bytes_nor_record(cuts in vec(0usize..6_000, 0..60)) {
        proptest::prop_assert_eq!(block_on(play_held(&cuts)), block_on(play_held(&[])));
    }
}
