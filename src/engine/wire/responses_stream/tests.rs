use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::engine::reply::{Finish, Usage};
use crate::engine::view::Dialect;
use crate::engine::wire;
use crate::engine::wire::sse::{Piece, Splitter};

fn assemble(chunks: &[&[u8]]) -> (Reply, Vec<Seen>) {
    let (mut splitter, mut assembler) = (Splitter::new(10_000), Assembler::new(10_000));
    let mut pieces: Vec<Piece> =
        chunks.iter().flat_map(|chunk| splitter.push(Bytes::copy_from_slice(chunk))).collect();
    pieces.extend(splitter.finish());
    let mut seen = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Event(event) => seen.extend(assembler.event(&event)),
            Piece::Unread(_) => assembler.unread(),
        }
    }
    (assembler.finish(), seen)
}

/// A stream of events, numbered as they come.
fn stream(events: &[Value]) -> String {
    let numbered = events.iter().enumerate().map(|(number, event)| {
        let mut event = event.clone();
        event["sequence_number"] = number.into();
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
    });
    numbered.collect()
}

fn read(events: &[Value]) -> Reply {
    assemble(&[stream(events).as_bytes()]).0
}

fn show(reply: &Reply) -> Vec<String> {
    let mark = |call: &ReplyCall| if call.complete { "" } else { "!" };
    reply
        .calls
        .iter()
        .map(|call| format!("{}:{}({}){}", call.id, call.name, call.arguments, mark(call)))
        .collect()
}

fn function_call(item: &str, id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": item, "call_id": id, "name": name, "arguments": arguments})
}

fn added(index: u64, item: &Value) -> Value {
    let mut item = item.clone();
    item["status"] = "in_progress".into();
    for member in ["arguments", "input"] {
        if !item[member].is_null() {
            item[member] = "".into();
        }
    }
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn delta(index: u64, item: &str, delta: &str) -> Value {
    json!({"type": "response.function_call_arguments.delta", "output_index": index, "item_id": item, "delta": delta})
}

fn done(index: u64, item: &Value) -> Value {
    let mut item = item.clone();
    item["status"] = "completed".into();
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn ended(status: &str, output: &[Value]) -> Value {
    json!({"type": format!("response.{status}"), "response": {
        "id": "resp_1", "model": "m", "status": status, "output": output, "error": null,
        "usage": {"input_tokens": 9, "output_tokens": 3}}})
}

#[test]
fn a_stream_as_the_specification_has_it() {
    let (find, move_on) =
        (function_call("fc_1", "a", "find", r#"{"q":1}"#), function_call("fc_2", "b", "transfer_to_x", "{}"));
    let text = |delta: &str| json!({"type": "response.output_text.delta", "output_index": 1, "item_id": "msg_1", "content_index": 0, "delta": delta});
    let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "On it."}]});
    let early = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "half"});
    let late = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "whole"});
    let events = [
        json!({"type": "response.created", "response": {"id": "resp_1", "model": "m", "status": "in_progress", "output": []}}),
        added(0, &early),
        done(0, &late),
        added(1, &message),
        text("On "),
        text("it."),
        json!({"type": "response.output_text.done", "output_index": 1, "item_id": "msg_1", "text": "On it."}),
        done(1, &message),
        added(2, &find),
        delta(2, "fc_1", "{\"q\""),
        added(3, &move_on),
        delta(2, "fc_1", ":1}"),
        json!({"type": "response.function_call_arguments.done", "output_index": 2, "item_id": "fc_1", "arguments": "{\"q\":1}"}),
        done(2, &find),
        done(3, &move_on),
        ended("completed", &[late, message, find, move_on]),
    ];
    let (reply, seen) = assemble(&[stream(&events).as_bytes()]);
    assert_eq!((reply.id.as_str(), reply.model.as_str(), reply.text.as_str()), ("resp_1", "m", "On it."));
    assert_eq!(show(&reply), [r#"a:find({"q":1})"#, "b:transfer_to_x({})"]);
    assert_eq!((reply.finish, reply.choices, reply.ended), (Some(Finish::Calls), 1, true));
    assert_eq!(reply.usage, Some(Usage { input: 9, output: 3, cached: 0, cache_write: 0 }));
    let reasoning = ReplyReasoning { id: "rs_1".into(), encrypted: "whole".into() };
    assert_eq!(reply.reasoning, [reasoning], "what stands where the item opens may be unfinished");
    assert!(reply.findings.is_empty(), "{reply:?}");
    let expected = [
        Seen::Text,
        Seen::Text,
        Seen::CallOpened(0),
        Seen::CallFragment(0),
        Seen::CallOpened(1),
        Seen::CallFragment(0),
        Seen::CallFragment(0),
        Seen::CallFragment(0),
        Seen::CallFragment(1),
        Seen::Usage,
        Seen::End,
    ];
    assert_eq!(seen, expected);
}

#[test]
fn servers_that_leave_events_out_are_read_from_those_that_come() {
    let call = function_call("fc_1", "a", "f", r#"{"q":1}"#);
    let whole = [r#"a:f({"q":1})"#];
    let last = ended("completed", std::slice::from_ref(&call));
    let bare = ended("completed", &[]);
    // Only the last event; only the closing one; no closing one.
    assert_eq!(show(&read(std::slice::from_ref(&last))), whole);
    assert_eq!(show(&read(&[done(0, &call), bare.clone()])), whole);
    assert_eq!(show(&read(&[added(0, &call), delta(0, "fc_1", r#"{"q":1}"#), last.clone()])), whole);
    assert_eq!(
        show(&read(&[added(0, &call), delta(0, "fc_1", r#"{"q":1}"#), bare])),
        [r#"a:f({"q":1})!"#],
        "nothing says that it has come whole"
    );
    // The item opens with all of its arguments.
    let mut opened = added(0, &call);
    opened["item"]["arguments"] = r#"{"q":1}"#.into();
    assert_eq!(show(&read(&[opened, done(0, &call), last])), whole);
    let message =
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]});
    assert_eq!(read(&[ended("completed", &[message])]).text, "Hi.");
}

#[test]
fn a_new_item_id_in_every_event() {
    let call = |item: &str| function_call(item, "a", "f", "{}");
    let events = [
        added(0, &call("fc_1")),
        delta(0, "fc_2", "{}"),
        done(0, &call("fc_3")),
        ended("completed", &[call("fc_4")]),
    ];
    assert_eq!(show(&read(&events)), ["a:f({})"]);
}

#[test]
fn index_zero_for_every_call() {
    let (one, two) = (function_call("fc_1", "a", "f", "{}"), function_call("fc_2", "b", "g", "[]"));
    let events = [
        added(0, &one),
        delta(0, "fc_1", "{}"),
        done(0, &one),
        added(0, &two),
        delta(0, "fc_2", "[]"),
        done(0, &two),
        ended("completed", &[one, two]),
    ];
    assert_eq!(show(&read(&events)), ["a:f({})", "b:g([])"]);
}

#[test]
fn one_call_id_for_two_calls() {
    let (one, two) = (function_call("fc_1", "a", "f", "{}"), function_call("fc_2", "a", "f", "[]"));
    let events =
        [added(0, &one), added(1, &two), done(0, &one), done(1, &two), ended("completed", &[one, two])];
    assert_eq!(show(&read(&events)), ["a:f({})", "a:f([])"]);
}

#[test]
fn a_custom_call_takes_free_text() {
    let call = json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "a", "name": "sql", "input": "select 1"});
    let part = json!({"type": "response.custom_tool_call_input.delta", "output_index": 0, "item_id": "ctc_1", "delta": "select"});
    let events = [added(0, &call), part, done(0, &call), ended("completed", &[call])];
    assert_eq!(show(&read(&events)), ["a:sql(select 1)"]);
}

#[test]
fn a_call_is_complete_only_if_its_item_and_the_reply_are() {
    let call = function_call("fc_1", "a", "f", "{}");
    let (open, close) = (added(0, &call), done(0, &call));
    let complete = |events: &[&Value]| {
        let events: Vec<Value> = events.iter().map(|event| (*event).clone()).collect();
        read(&events).calls[0].complete
    };
    assert!(!complete(&[&open]));
    assert!(!complete(&[&open, &close]));
    assert!(complete(&[&open, &close, &ended("completed", std::slice::from_ref(&call))]));
    for end in ["incomplete", "failed", "cancelled"] {
        assert!(!complete(&[&open, &close, &ended(end, std::slice::from_ref(&call))]), "{end}");
    }
    let mut half = call.clone();
    half["status"] = "incomplete".into();
    assert!(!complete(&[&open, &ended("completed", &[half])]));
    // An event that could not be read may have held a part, unless the end holds the whole.
    let broken = format!("{}data: {{\n\n", stream(&[open.clone(), close.clone()]));
    let end = |output: &[Value]| stream(&[ended("completed", output)]);
    assert!(!assemble(&[broken.as_bytes(), end(&[]).as_bytes()]).0.calls[0].complete);
    assert!(assemble(&[broken.as_bytes(), end(&[call]).as_bytes()]).0.calls[0].complete);
}

#[test]
fn a_stream_ends_in_many_ways() {
    let (reply, seen) = assemble(&[stream(&[ended("incomplete", &[])]).as_bytes()]);
    assert_eq!((reply.finish, reply.ended, seen), (Some(Finish::Other), true, vec![Seen::Usage, Seen::End]));
    let mut failed = ended("failed", &[]);
    failed["response"]["error"] = json!({"code": "server_error", "message": "m"});
    let (reply, seen) = assemble(&[stream(&[failed]).as_bytes()]);
    assert_eq!((reply.ended, reply.error.map(|error| error.code)), (false, Some("server_error".into())));
    assert_eq!(seen, [Seen::Usage, Seen::Error, Seen::End]);
    for error in [
        json!({"type": "error", "code": "rate", "message": "m", "param": null}),
        json!({"type": "error", "error": {"code": "rate", "message": "m"}}),
        json!({"error": {"code": "rate", "message": "m"}}),
    ] {
        let (reply, seen) = assemble(&[stream(std::slice::from_ref(&error)).as_bytes()]);
        assert_eq!(seen, [Seen::Error], "{error}");
        assert_eq!(reply.error.map(|error| error.code), Some("rate".into()), "{error}");
    }
    assert_eq!(assemble(&[b"data: [DONE]\n\n"]).1, [Seen::End]);
}

#[test]
fn the_last_id_is_the_replys() {
    let created = json!({"type": "response.created", "response": {"id": "resp_0", "status": "in_progress"}});
    assert_eq!(read(&[created, ended("completed", &[])]).id, "resp_1");
}

#[test]
fn what_is_kept_is_bounded() {
    let mut assembler = Assembler::new(60);
    let mut give = |event: &Value| {
        let data = Some(Bytes::from(event.to_string()));
        assembler.event(&Event { data, ..Event::default() })
    };
    let small = function_call("fc_1", "a", "f", "{}");
    let large = function_call("fc_2", "b", "g", &"[".repeat(50));
    give(&added(0, &small));
    give(&done(0, &small));
    give(&added(1, &large));
    for _ in 0..10 {
        give(&delta(1, "fc_2", "[[[[[[[["));
        give(&json!({"type": "response.output_text.delta", "output_index": 2, "delta": "12345678"}));
    }
    let secret = "x".repeat(100);
    give(&done(3, &json!({"type": "reasoning", "id": "rs_1", "encrypted_content": secret})));
    give(&ended("completed", &[]));
    let reply = assembler.finish();
    let size: usize = reply.calls.iter().map(|call| call.arguments.len()).sum();
    assert!(size + reply.text.len() <= 60 && reply.reasoning.is_empty());
    assert_eq!(reply.calls.iter().map(|call| call.complete).collect::<Vec<_>>(), [true, false]);
    assert_eq!(reply.findings.iter().filter(|finding| finding.code == Code::LimitReached).count(), 3);
}

#[test]
fn plain_and_streamed_replies_say_the_same() {
    let message = |id: &str, text: &str| json!({"type": "message", "id": id, "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text}]});
    let text = |index: u64, delta: &str| json!({"type": "response.output_text.delta", "output_index": index, "delta": delta});
    let mut call = function_call("fc_1", "a", "f", "{}");
    call["status"] = "completed".into();
    let output = [message("msg_1", "One."), message("msg_2", "Two."), call.clone()];
    let end = ended("completed", &output);
    let streamed =
        read(&[text(0, "One"), text(0, "."), text(1, "Two."), added(2, &call), done(2, &call), end.clone()]);
    let plain =
        wire::read_reply(end["response"].to_string().as_bytes(), Dialect::Responses).expect("a reply");
    assert_eq!(streamed, plain);
}

/// A stream of plausible events in any order, with any framing.
fn streams() -> impl Strategy<Value = String> {
    let index = || prop::option::of(0_u64..3);
    let item_id = || prop::sample::select(vec!["", "fc_a", "fc_b"]);
    let arguments = || prop::sample::select(vec!["", "{}", "{\"q\":", "1}", "ü\u{1f600}"]);
    let name = prop::sample::select(vec!["", "f", "transfer_to_x"]);
    let kind =
        prop::sample::select(vec!["function_call", "custom_tool_call", "message", "reasoning", "odd_call"]);
    let status = prop::sample::select(vec!["completed", "in_progress", "incomplete"]);
    let item = (kind, item_id(), prop::sample::select(vec!["", "a", "b"]), name, arguments(), status)
        .prop_map(|(kind, id, call, name, arguments, status)| {
            json!({"type": kind, "id": id, "call_id": call, "name": name, "arguments": arguments,
                "role": "assistant", "content": [{"type": "output_text", "text": "häuser"}], "status": status,
                "encrypted_content": "gA"})
        });
    let event = prop_oneof![
        (prop::sample::select(vec!["added", "done"]), index(), item.clone()).prop_map(|(kind, index, item)| {
            json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item})
        }),
        (index(), item_id(), arguments()).prop_map(|(index, id, delta)| {
            json!({"type": "response.function_call_arguments.delta", "output_index": index, "item_id": id, "delta": delta})
        }),
        (index(), item_id(), arguments()).prop_map(|(index, id, all)| {
            json!({"type": "response.function_call_arguments.done", "output_index": index, "item_id": id, "arguments": all})
        }),
        index().prop_map(|index| json!({"type": "response.output_text.delta", "output_index": index, "delta": "häuser"})),
        (prop::sample::select(vec!["completed", "incomplete", "failed"]), prop::collection::vec(item, 0..3))
            .prop_map(|(status, output)| ended(status, &output)),
        Just(json!({"type": "error", "message": "m"})),
        Just(json!({"type": 7})),
    ];
    let line_end = prop::sample::select(vec!["\n", "\r\n", "\r"]);
    (prop::collection::vec(event, 0..12), line_end, any::<bool>()).prop_map(|(events, end, pings)| {
        let ping = if pings { format!(": ping{end}{end}") } else { String::new() };
        let show = |event: &Value| format!("event: x{end}data: {event}{end}{end}{ping}");
        events.iter().map(show).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_split_gives_the_same_reply(stream in streams(), size in 1_usize..40) {
        let whole = assemble(&[stream.as_bytes()]);
        let chunks: Vec<&[u8]> = stream.as_bytes().chunks(size).collect();
        prop_assert_eq!(assemble(&chunks), whole);
    }

    #[test]
    fn nothing_is_complete_before_the_end(stream in streams()) {
        let (reply, _) = assemble(&[stream.as_bytes()]);
        for call in &reply.calls {
            prop_assert!(!call.complete || reply.ended, "{:?}", reply);
            prop_assert!(!call.complete || !call.name.is_empty());
        }
    }
}
