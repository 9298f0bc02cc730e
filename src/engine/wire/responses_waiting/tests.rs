use std::slice::from_ref;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::engine::policy::OnFailure;
use crate::engine::reply::{Fate, Reply};
use crate::engine::time::Timestamp;
use crate::engine::view::Dialect;
use crate::engine::watch::{Hold, Holding};
use crate::engine::wire::{self, Earlier};

const NOW: Timestamp = Timestamp(0);

fn hold() -> Hold {
    Hold {
        tools: vec!["transfer_to_kiln".into(), "transfer_to_shop".into(), "transfer_to_human".into()],
        bytes: 64 << 10,
        ms: 1_000,
        on_failure: OnFailure::Open,
    }
}

/// What becomes of calls, by their tools: `tool` drops it, `tool(arguments)` and `tool=other(arguments)` write it.
fn fate_of(fates: &[&str], name: &str) -> Fate {
    let of = |fate: &&str| {
        let (old, new) = fate.split_once('=').unwrap_or((fate, fate));
        let (new, arguments) = new.split_once('(').unwrap_or((new, ""));
        if old.split('(').next() != Some(name) {
            return None;
        }
        let arguments = arguments.strip_suffix(')').map(str::to_owned);
        Some(arguments.map_or(Fate::Drop, |arguments| Fate::As { name: new.to_owned(), arguments }))
    };
    fates.iter().find_map(of).unwrap_or(Fate::Whole)
}

/// What goes on before the reply's end, what with it, and how the reply was read.
struct Played {
    at_once: String,
    at_end: String,
    reply: Reply,
    holding: Holding,
}

fn play(chunks: &[&[u8]], earlier: Earlier, fates: Option<&[&str]>) -> Played {
    let mut holding = Holding::new(Dialect::Responses, true, 1 << 20, hold(), earlier).expect("can hold");
    let text = |out: Vec<Bytes>| String::from_utf8(out.concat()).expect("UTF-8");
    let at_once = chunks.iter().flat_map(|chunk| holding.push(Bytes::copy_from_slice(chunk), NOW)).collect();
    let reply = holding.finish(true).expect("a reply");
    let at_end = match fates {
        Some(fates) => {
            let fate =
                |call: usize| reply.calls.get(call).map_or(Fate::Whole, |call| fate_of(fates, &call.name));
            holding.release(&reply, fate).expect("a stream")
        }
        None => Vec::new(),
    };
    Played { at_once: text(at_once), at_end: text(at_end), reply, holding }
}

/// Events with the numbers that an upstream gives them.
fn stream(events: &[Value]) -> String {
    let numbered = events.iter().enumerate().map(|(number, event)| {
        let mut event = event.clone();
        event["sequence_number"] = number.into();
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
    });
    numbered.collect()
}

/// The documents of a stream, numbers checked and taken off.
#[track_caller]
fn documents(stream: &str, from: u64) -> Vec<Value> {
    let datas = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut documents: Vec<Value> = datas.map(|data| serde_json::from_str(data).expect(data)).collect();
    for (event, number) in documents.iter_mut().zip(from..) {
        let sequence = event.as_object_mut().and_then(|event| event.remove("sequence_number"));
        assert_eq!(sequence, Some(number.into()), "the numbers have no gap: {stream}");
    }
    documents
}

/// What a client puts together from events, as the official SDKs do: items by their place. It has to be what
/// the reply's end holds.
#[track_caller]
fn put_together(events: &[Value], mut list: Vec<Value>) -> Vec<Value> {
    for event in events {
        let at = usize::try_from(event["output_index"].as_u64().unwrap_or(0)).expect("a small number");
        let kind = event["type"].as_str().unwrap_or_default();
        match kind {
            "response.output_item.added" => {
                assert_eq!(at, list.len(), "items come in order: {event}");
                list.push(event["item"].clone());
            }
            "response.function_call_arguments.delta" => {
                let said = list[at]["arguments"].as_str().unwrap_or_default().to_owned();
                list[at]["arguments"] = (said + event["delta"].as_str().unwrap_or_default()).into();
            }
            "response.function_call_arguments.done" => {
                assert_eq!(list[at]["arguments"], event["arguments"], "what was added up is the whole");
            }
            "response.output_item.done" => {
                if list[at]["type"] == "function_call" {
                    assert_eq!(list[at]["arguments"], event["item"]["arguments"], "{event}");
                    assert_eq!(list[at]["name"], event["item"]["name"], "{event}");
                }
                list[at] = event["item"].clone();
            }
            _ => {}
        }
    }
    list
}

fn call(n: u64, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{n}"), "call_id": format!("c{n}"), "name": name,
        "arguments": arguments, "status": "completed"})
}

fn thought(n: u64) -> Value {
    json!({"type": "reasoning", "id": format!("rs_{n}"), "summary": [], "encrypted_content": format!("gAAA{n}==")})
}

fn says(n: u64, text: &str) -> Value {
    json!({"type": "message", "id": format!("msg_{n}"), "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

/// The events of an item at this place, as the specification has them.
fn item(place: u64, item: &Value) -> Vec<Value> {
    let mut opened = item.clone();
    opened["status"] = "in_progress".into();
    let id = &item["id"];
    let about = |kind: &str, members: Value| {
        let mut event = json!({"type": format!("response.{kind}"), "output_index": place, "item_id": id});
        event.as_object_mut().expect("an object").extend(members.as_object().expect("an object").clone());
        event
    };
    let inside = match item["type"].as_str() {
        Some("function_call") => {
            opened["arguments"] = "".into();
            let arguments = item["arguments"].as_str().expect("a call");
            let half =
                (0..=arguments.len() / 2).rev().find(|&at| arguments.is_char_boundary(at)).unwrap_or(0);
            vec![
                about("function_call_arguments.delta", json!({"delta": &arguments[..half]})),
                about("function_call_arguments.delta", json!({"delta": &arguments[half..]})),
                about("function_call_arguments.done", json!({"arguments": arguments})),
            ]
        }
        Some("message") => {
            opened["content"] = json!([]);
            let text = &item["content"][0]["text"];
            vec![
                about(
                    "content_part.added",
                    json!({"content_index": 0, "part": {"type": "output_text", "text": ""}}),
                ),
                about("output_text.delta", json!({"content_index": 0, "delta": text})),
                about("output_text.done", json!({"content_index": 0, "text": text})),
            ]
        }
        Some("reasoning") => {
            opened["encrypted_content"] = "unfinished".into();
            Vec::new()
        }
        _ => Vec::new(),
    };
    let mut closing = item.clone();
    closing["status"] = "completed".into();
    let mut out = vec![json!({"type": "response.output_item.added", "output_index": place, "item": opened})];
    out.extend(inside);
    out.push(json!({"type": "response.output_item.done", "output_index": place, "item": closing}));
    out
}

fn whole(id: &str, status: &str, output: &[Value]) -> Value {
    json!({"type": format!("response.{status}"), "response": {"id": id, "model": "m", "status": status, "output": output,
        "usage": {"input_tokens": 10, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 2}}}})
}

fn begins(id: &str) -> Vec<Value> {
    let response = json!({"id": id, "model": "m", "status": "in_progress", "output": []});
    ["response.created", "response.in_progress"]
        .map(|kind| json!({"type": kind, "response": response}))
        .into()
}

/// A whole reply of these items, one behind the other.
fn events(id: &str, items: &[Value]) -> Vec<Value> {
    let mut out = begins(id);
    out.extend(items.iter().zip(0..).flat_map(|(one, place)| item(place, one)));
    let closed: Vec<Value> = items
        .iter()
        .map(|item| {
            let mut item = item.clone();
            item["status"] = "completed".into();
            item
        })
        .collect();
    out.push(whole(id, "completed", &closed));
    out
}

/// Each item in short: `name(arguments)`, the text in quotes, or the id.
fn short(items: &[Value]) -> Vec<String> {
    let one = |item: &Value| match item["type"].as_str() {
        Some("function_call") => {
            format!("{}({})", item["name"].as_str().unwrap_or("?"), item["arguments"].as_str().unwrap_or("?"))
        }
        Some("message") => format!("{:?}", item["content"][0]["text"].as_str().unwrap_or("?")),
        _ => item["id"].as_str().unwrap_or("?").to_owned(),
    };
    items.iter().map(one).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// What the client has of a reply of these items, in short: what came at once, and at the end the whole.
/// However the stream was cut, events and end say the same.
#[track_caller]
fn check(items: &[Value], fates: &[&str], at_once: &[&str], at_end: &[&str]) {
    let sent = stream(&events("resp_1", items));
    let played = play(&[sent.as_bytes()], Earlier::default(), Some(fates));
    let early = documents(&played.at_once, 0);
    assert_eq!(short(&put_together(&early, Vec::new())), at_once, "at once");
    let all = documents(&[played.at_once.as_str(), &played.at_end].concat(), 0);
    let ended = all.last().expect("an end")["response"]["output"].clone();
    assert_eq!(short(list(&ended)), at_end, "at the end");
    assert_eq!(put_together(&all, Vec::new()), list(&ended), "events and end say the same");
    // The same reply as one body.
    let body = whole("resp_1", "completed", items)["response"].to_string();
    let reply = wire::read_reply(body.as_bytes(), Dialect::Responses).expect("a reply");
    let fate = |call: usize| fate_of(fates, &reply.calls[call].name);
    let edited = wire::edit_reply(body.as_bytes(), Dialect::Responses, &reply, &Earlier::default(), fate);
    let edited = edited.unwrap_or_else(|| body.into());
    let plain: Value = serde_json::from_slice(&edited).expect("JSON");
    let (mut plain, mut streamed) = (short(list(&plain["output"])), short(list(&ended)));
    plain.sort();
    streamed.sort();
    assert_eq!(plain, streamed, "plain and streamed say the same");
}

#[test]
fn nothing_of_a_transfer_comes_before_the_end_and_the_rest_comes_at_once() {
    let transfer = call(2, "transfer_to_kiln", r#"{"handoff":{"task":"Fire it."}}"#);
    check(
        &[thought(0), says(1, "One moment."), transfer.clone()],
        &["transfer_to_kiln({})"],
        &["rs_0", "\"One moment.\""],
        &["rs_0", "\"One moment.\"", "transfer_to_kiln({})"],
    );
    check(
        &[call(0, "weigh", r#"{"pot":7}"#), transfer.clone(), call(3, "find", "[]")],
        &["transfer_to_kiln({})"],
        &[r#"weigh({"pot":7})"#, "find([])"],
        &[r#"weigh({"pot":7})"#, "find([])", "transfer_to_kiln({})"],
    );
    check(
        &[transfer],
        &["transfer_to_kiln=transfer_to_human({\"reason\":\"x\"})"],
        &[],
        &[r#"transfer_to_human({"reason":"x"})"#],
    );
}

#[test]
fn a_call_that_is_dropped_leaves_no_trace() {
    let (kiln, shop) = (call(2, "transfer_to_kiln", "{}"), call(3, "transfer_to_shop", "{}"));
    check(&[says(0, "So."), kiln.clone()], &["transfer_to_kiln"], &["\"So.\""], &["\"So.\""]);
    check(&[kiln.clone(), shop.clone()], &["transfer_to_kiln"], &[], &["transfer_to_shop({})"]);
    check(
        &[kiln.clone(), call(4, "weigh", "{}"), shop.clone(), call(5, "find", "{}")],
        &["transfer_to_kiln"],
        &["weigh({})", "find({})"],
        &["weigh({})", "find({})", "transfer_to_shop({})"],
    );
    // With all that follows from it hidden reasoning leaves too, and with none of it.
    check(&[thought(0), kiln.clone()], &["transfer_to_kiln"], &[], &[]);
    check(
        &[thought(0), kiln.clone(), thought(1), shop],
        &["transfer_to_kiln"],
        &[],
        &["rs_1", "transfer_to_shop({})"],
    );
    check(
        &[thought(0), kiln, call(4, "weigh", "{}")],
        &["transfer_to_kiln"],
        &["rs_0", "weigh({})"],
        &["rs_0", "weigh({})"],
    );
}

#[test]
fn reasoning_followed_from_a_call_behind_other_reasoning_that_had_gone_on() {
    let (kiln, shop) = (call(1, "transfer_to_kiln", "{}"), call(5, "transfer_to_shop", "{}"));
    check(
        &[thought(0), kiln.clone(), thought(2), says(3, "So."), shop.clone()],
        &["transfer_to_kiln"],
        &["rs_2", "\"So.\""],
        &["rs_2", "\"So.\"", "transfer_to_shop({})"],
    );
    check(
        &[thought(0), kiln.clone(), thought(2), call(3, "weigh", "{}"), call(4, "find", "{}")],
        &["transfer_to_kiln"],
        &["rs_2", "weigh({})", "find({})"],
        &["rs_2", "weigh({})", "find({})"],
    );
    // More of it than may wait.
    let mut long = thought(2);
    long["encrypted_content"] = "A".repeat(300 << 10).into();
    check(
        &[thought(0), kiln, long, shop],
        &["transfer_to_kiln"],
        &["rs_2"],
        &["rs_2", "transfer_to_shop({})"],
    );
}

/// The parts of a call may come behind reasoning that stands behind it.
#[test]
fn reasoning_was_parted_by_the_events_of_a_call_before_it() {
    let items = [call(0, "transfer_to_kiln", "{}"), thought(1), thought(2), says(3, "So.")];
    let [kiln, first, second, said] =
        [0, 1, 2, 3].map(|place: u8| item(place.into(), &items[usize::from(place)]));
    let mut all = begins("resp_1");
    all.extend([&kiln[..1], &first, &kiln[1..], &second, &said].concat());
    all.extend(events("resp_1", &items).pop());
    let played = play(&[stream(&all).as_bytes()], Earlier::default(), Some(&["transfer_to_kiln"]));
    let early = put_together(&documents(&played.at_once, 0), Vec::new());
    assert_eq!(short(&early), ["rs_1", "rs_2", "\"So.\""]);
    let all = documents(&[played.at_once, played.at_end].concat(), 0);
    assert_eq!(put_together(&all, Vec::new()), list(&all.last().expect("an end")["response"]["output"]));
}

#[test]
fn a_reply_in_which_nothing_changes_keeps_its_bytes() {
    for items in [
        vec![],
        vec![says(0, "Hi."), thought(1), call(2, "transfer_to_kiln", "{\"a\": 1.50}")],
        vec![thought(0), thought(1), call(2, "weigh", "{}"), says(3, "Hm.")],
        vec![thought(0)],
    ] {
        let sent = stream(&events("resp_1", &items)).replace("\n\n", "\n\n: still here\n\n");
        let played = play(&[sent.as_bytes()], Earlier::default(), Some(&[]));
        assert!(played.holding.deadline().is_none(), "nothing waits any more");
        let got = [played.at_once, played.at_end].concat();
        assert_eq!(got.replace(": still here\n\n", ""), sent.replace(": still here\n\n", ""));
        assert_eq!(got.matches(": still here").count(), sent.matches(": still here").count());
    }
}

#[test]
fn unknown_events_pass_and_those_about_a_transfer_wait_with_it() {
    let transfer = call(0, "transfer_to_kiln", r#"{"handoff":1}"#);
    let mut all = begins("resp_1");
    let mut about = item(0, &transfer);
    about.insert(2, json!({"type": "response.weather.changed", "to": "rain"}));
    about.insert(3, json!({"type": "response.call.peeked", "output_index": 0, "peek": "handoff"}));
    all.extend(about);
    all.push(whole("resp_1", "completed", &[transfer]));
    let played = play(&[stream(&all).as_bytes()], Earlier::default(), Some(&["transfer_to_kiln({})"]));
    let kinds = |text: &str, from| -> Vec<String> {
        documents(text, from).iter().map(|event| event["type"].to_string().replace("response.", "")).collect()
    };
    assert_eq!(kinds(&played.at_once, 0), ["\"created\"", "\"in_progress\"", "\"weather.changed\""]);
    assert!(!played.at_end.contains("handoff"), "{}", played.at_end);
    assert_eq!(kinds(&played.at_end, 3).len(), 5, "{}", played.at_end);
}

#[test]
fn arguments_in_every_place_are_written() {
    let transfer = call(0, "transfer_to_kiln", r#"{"handoff":"secret"}"#);
    let whole = whole("resp_1", "completed", from_ref(&transfer));
    let about = item(0, &transfer);
    let mut opened = about[0].clone();
    opened["item"]["arguments"] = transfer["arguments"].clone();
    let mut named = about[3].clone();
    named["name"] = "transfer_to_kiln".into();
    let mut as_json = transfer.clone();
    as_json["arguments"] = json!({"handoff": "secret"});
    for events in [
        vec![about[0].clone(), about[4].clone(), whole.clone()],
        vec![opened.clone(), about[4].clone(), whole.clone()],
        vec![opened, about[1].clone(), about[2].clone(), named, about[4].clone(), whole.clone()],
        vec![about[4].clone(), whole.clone()],
        vec![whole.clone()],
        // The arguments come before the item that they belong to.
        vec![about[1].clone(), about[2].clone(), about[3].clone(), about[4].clone(), whole],
        vec![self::whole("resp_1", "completed", &[as_json])],
        vec![about[0].clone(), about[1].clone(), self::whole("resp_1", "incomplete", &[transfer])],
    ] {
        let sent = stream(&events);
        let fates = ["transfer_to_kiln=transfer_to_human({\"why\":\"\"})"];
        let played = play(&[sent.as_bytes()], Earlier::default(), Some(&fates));
        let got = [played.at_once, played.at_end].concat();
        assert!(!got.contains("secret") && !got.contains("kiln"), "{got}");
        assert!(got.contains("transfer_to_human") && got.contains("why"), "{got}");
        assert_eq!(played.reply.calls.len(), 1, "{sent}");
        documents(&got, 0);
    }
}

#[test]
fn a_name_that_only_begins_like_a_transfers_does_not_wait() {
    let other = call(0, "transfer", r#"{"iban":"x"}"#);
    let sent = stream(&[begins("resp_1"), item(0, &other)].concat());
    let played = play(&[sent.as_bytes()], Earlier::default(), None);
    assert_eq!(played.at_once, sent);
}

#[test]
fn an_error_in_the_middle_passes_and_half_a_transfer_does_not() {
    let transfer = call(0, "transfer_to_kiln", "{}");
    let mut all = [begins("resp_1"), item(0, &transfer)[..3].to_vec()].concat();
    all.push(json!({"type": "error", "code": "server_error", "message": "m", "param": null}));
    let sent = stream(&all);
    let mut played = play(&[sent.as_bytes()], Earlier::default(), None);
    assert!(!played.reply.ended && !played.reply.calls[0].complete);
    assert_eq!(documents(&played.at_once, 0).len(), 3, "{}", played.at_once);
    assert_eq!(played.holding.release_broken(), Vec::<Bytes>::new());
}

#[test]
fn at_a_bound_what_waits_goes_on_as_it_came() {
    let transfer = call(0, "transfer_to_kiln", r#"{"handoff":1}"#);
    let sent = stream(&events("resp_1", &[thought(1), transfer]));
    let cut = sent.find("response.function_call_arguments.done").expect("a call");
    let cut = sent[..cut].rfind("\n\n").expect("an event") + 2;
    let mut holding =
        Holding::new(Dialect::Responses, true, 1 << 20, hold(), Earlier::default()).expect("can hold");
    let mut got = holding.push(sent.as_bytes()[..cut].to_vec().into(), NOW);
    assert!(!got.concat().windows(8).any(|part| part == b"transfer"));
    let deadline = holding.deadline().expect("a call waits");
    got.extend(holding.expire(deadline));
    got.extend(holding.push(sent.as_bytes()[cut..].to_vec().into(), deadline));
    let reply = holding.finish(true).expect("a reply");
    got.extend(holding.release(&reply, |_| Fate::Drop).expect("a stream"));
    assert_eq!(String::from_utf8_lossy(&got.concat()), sent);
}

/// The first reply goes back to its sender; the second is the one that ends. What the client has, in short.
#[track_caller]
fn check_corrected(first: &[Value], second: &[Value], fates: &[&str], expected: &[&str]) {
    let played = play(&[stream(&events("resp_1", first)).as_bytes()], Earlier::default(), None);
    let before = documents(&played.at_once, 0);
    let earlier = played.holding.earlier(&played.reply);
    assert_eq!(earlier.id, "resp_1");
    let sent = stream(&events("resp_2", second));
    let after = play(&[sent.as_bytes()], earlier, Some(fates));
    let all = documents(&[played.at_once, after.at_once, after.at_end].concat(), 0);
    let kinds = |kind: &str| all.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((kinds("response.created"), kinds("response.completed")), (1, 1), "one reply");
    let end = &all.last().expect("an end")["response"];
    assert_eq!(end["id"], "resp_2", "the end has the id that a later request can go on from");
    let usage =
        json!({"input_tokens": 20, "output_tokens": 10, "output_tokens_details": {"reasoning_tokens": 4}});
    assert_eq!(end["usage"], usage);
    assert_eq!(short(list(&end["output"])), expected);
    let shown = put_together(&all[before.len()..], put_together(&before, Vec::new()));
    assert_eq!(shown, list(&end["output"]), "events and end say the same");
}

#[test]
fn a_corrected_reply_is_one_reply() {
    let (wrong, right) =
        (call(1, "transfer_to_kiln", r#"{"handoff":0}"#), call(2, "transfer_to_kiln", r#"{"handoff":1}"#));
    let bare = "transfer_to_kiln({})";
    check_corrected(from_ref(&wrong), from_ref(&right), &[bare], &[bare]);
    check_corrected(
        &[says(0, "One moment."), wrong.clone()],
        &[says(3, "Sorry."), right.clone()],
        &[bare],
        &["\"One moment.\"", bare],
    );
    check_corrected(from_ref(&wrong), &[says(3, "Sorry."), right.clone()], &[bare], &["\"Sorry.\"", bare]);
    // Hidden reasoning goes with what follows from it.
    check_corrected(&[thought(0), wrong.clone()], &[thought(1), right.clone()], &[bare], &["rs_1", bare]);
    check_corrected(
        &[thought(0), says(4, "Well."), thought(5), wrong.clone()],
        &[thought(1), says(3, "Sorry."), thought(6), right],
        &[bare],
        &["rs_0", "\"Well.\"", "rs_6", bare],
    );
    // It gives up: its words are said, where the first said none.
    check_corrected(from_ref(&wrong), &[says(3, "I cannot.")], &[], &["\"I cannot.\""]);
    check_corrected(&[says(0, "Well."), wrong], &[thought(1), says(3, "I cannot.")], &[], &["\"Well.\""]);
}

#[test]
fn what_goes_back_to_the_sender_is_the_whole_reply() {
    let wrong = call(1, "transfer_to_kiln", r#"{"handoff":0}"#);
    let items = [thought(0), says(2, "Well."), wrong.clone()];
    let message = |sent: &str| {
        let played = play(&[sent.as_bytes()], Earlier::default(), None);
        let message = played.holding.message(&played.reply)?;
        Some(short(list(&serde_json::from_str(&message).expect("a list"))))
    };
    let all = events("resp_1", &items);
    let expected = ["rs_0", "\"Well.\"", r#"transfer_to_kiln({"handoff":0})"#];
    assert_eq!(message(&stream(&all)).as_deref(), Some(&expected.map(str::to_owned)[..]));
    // Where the end does not repeat it: what waits, if that is all of it.
    let bare = |items: &[Value]| {
        let mut all = events("resp_1", items);
        all.pop();
        all.push(whole("resp_1", "completed", &[]));
        stream(&all)
    };
    assert_eq!(message(&bare(&items)), None);
    let expected = ["rs_0", r#"transfer_to_kiln({"handoff":0})"#].map(str::to_owned);
    assert_eq!(message(&bare(&[thought(0), wrong])).as_deref(), Some(&expected[..]));
    let played =
        play(&[bare(&[thought(0), call(1, "transfer_to_kiln", "{}")]).as_bytes()], Earlier::default(), None);
    let message = played.holding.message(&played.reply).expect("all of it waits");
    assert!(message.contains("gAAA0==") && !message.contains("unfinished"), "{message}");
}

/// A reply of any items.
fn replies() -> impl Strategy<Value = Vec<Value>> {
    let name = prop::sample::select(vec!["transfer_to_kiln", "transfer_to_shop", "weigh", "transfer"]);
    let arguments = prop::sample::select(vec!["", "{}", r#"{"handoff":{"task":"Für ü"}}"#]);
    let item = prop_oneof![
        (name, arguments).prop_map(|(name, arguments)| call(0, name, arguments)),
        Just(thought(0)),
        prop::sample::select(vec!["häuser", "ok"]).prop_map(|text| says(0, text)),
    ];
    prop::collection::vec(item, 0..6).prop_map(|mut items| {
        for (item, n) in items.iter_mut().zip(1..) {
            let prefix =
                item["id"].as_str().and_then(|id| id.split('_').next()).unwrap_or_default().to_owned();
            item["id"] = format!("{prefix}_{n}").into();
            if item["type"] == "function_call" {
                item["call_id"] = format!("c{n}").into();
            }
        }
        items
    })
}

/// The events of some items in the order in which a server may mix them.
fn mixed(items: &[Value], order: &[prop::sample::Index]) -> Vec<Value> {
    let mut waiting: Vec<(usize, Vec<Value>)> =
        items.iter().zip(0..).map(|(one, place)| item(place, one)).enumerate().collect();
    let (mut out, mut opened) = (begins("resp_1"), 0);
    let mut order = order.iter().cycle();
    while waiting.iter().any(|(_, events)| !events.is_empty()) {
        let can: Vec<usize> =
            (0..waiting.len()).filter(|&at| !waiting[at].1.is_empty() && (at <= opened)).collect();
        let at = order.next().map_or(can[0], |index| can[index.index(can.len())]);
        opened = opened.max(at + 1);
        // Hidden reasoning is closed before anything else comes.
        let all = if items[at]["type"] == "reasoning" { 2 } else { 1 };
        out.extend(waiting[at].1.drain(..all));
    }
    out.extend(events("resp_1", items).pop());
    out
}

/// Events of any kind, in any order, about any item: what no server should send.
fn odd_events() -> impl Strategy<Value = Vec<Value>> {
    let place = || prop::option::of(0_u64..3);
    let id = || prop::sample::select(vec!["", "fc_a", "fc_b"]);
    let name = prop::sample::select(vec!["transfer_to_kiln", "transfer", "weigh", ""]);
    let kind = prop::sample::select(vec!["function_call", "custom_tool_call", "message", "reasoning", "odd"]);
    let item = (kind, id(), prop::sample::select(vec!["", "c1", "c2"]), name).prop_map(|(kind, id, call, name)| {
        json!({"type": kind, "id": id, "call_id": call, "name": name, "arguments": "{}", "role": "assistant", "content": "ü"})
    });
    let event = prop_oneof![
        (prop::sample::select(vec!["added", "done"]), place(), item.clone()).prop_map(|(kind, place, item)| {
            json!({"type": format!("response.output_item.{kind}"), "output_index": place, "item": item})
        }),
        (prop::sample::select(vec!["delta", "done"]), place(), id()).prop_map(|(kind, place, id)| {
            json!({"type": format!("response.function_call_arguments.{kind}"), "output_index": place, "item_id": id, kind: "{"})
        }),
        place().prop_map(|place| json!({"type": "response.output_text.delta", "output_index": place, "delta": "häuser"})),
        place().prop_map(|place| json!({"type": "response.weather.changed", "output_index": place})),
        Just(begins("resp_1")[0].clone()),
        Just(json!({"type": "error", "message": "m"})),
        (prop::sample::select(vec!["completed", "incomplete", "failed"]), prop::collection::vec(item, 0..4))
            .prop_map(|(status, items)| whole("resp_1", status, &items)),
        Just(json!({"type": 7})),
    ];
    prop::collection::vec(event, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn odd_streams_come_out_the_same_at_any_cut_and_what_was_dropped_does_not(
        mut events in odd_events(),
        only_transfers in any::<bool>(),
        corrected in any::<bool>(),
        size in 1_usize..60,
    ) {
        let earlier = Earlier {
            id: "resp_0".into(), began: corrected, spoke: corrected, items: vec![says(0, "Hm.").to_string()], events: 4, places: 1,
            ..Earlier::default()
        };
        let earlier = if corrected { earlier } else { Earlier::default() };
        for event in events.iter_mut().filter(|_| only_transfers) {
            if event["item"].is_object() {
                event["item"]["name"] = "transfer_to_kiln".into();
            }
            let whole = event.get_mut("response").and_then(|response| response["output"].as_array_mut());
            for item in whole.into_iter().flatten() {
                item["name"] = "transfer_to_kiln".into();
            }
        }
        let sent = stream(&events);
        let fates = ["transfer_to_kiln"];
        let whole = play(&[sent.as_bytes()], earlier.clone(), Some(&fates));
        let chunks: Vec<&[u8]> = sent.as_bytes().chunks(size).collect();
        let cut = play(&chunks, earlier.clone(), Some(&fates));
        prop_assert_eq!((&cut.at_once, &cut.at_end, &cut.reply), (&whole.at_once, &whole.at_end, &whole.reply));
        cut.holding.message(&cut.reply);
        prop_assert!(cut.holding.earlier(&cut.reply).events >= earlier.events);
        let all = documents(&[whole.at_once, whole.at_end].concat(), earlier.events);
        // A call that has been let go under another name stays so.
        let is_dropped = |event: &&Value| event["item"]["type"] == "function_call";
        prop_assert!(!only_transfers || !all.iter().any(|event| is_dropped(&event)), "{:?}", all);
    }

    #[test]
    fn any_cut_gives_the_same_bytes_and_events_and_end_agree(
        items in replies(),
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..20),
        fate in prop::sample::select(vec!["transfer_to_kiln", "transfer_to_kiln({})", "transfer_to_kiln=transfer_to_human({})", "-"]),
        size in 1_usize..60,
    ) {
        let sent = stream(&mixed(&items, &order));
        let fates = [fate, "transfer_to_shop({})"];
        let whole = play(&[sent.as_bytes()], Earlier::default(), Some(&fates));
        let chunks: Vec<&[u8]> = sent.as_bytes().chunks(size).collect();
        let cut = play(&chunks, Earlier::default(), Some(&fates));
        prop_assert_eq!((&cut.at_once, &cut.at_end, &cut.reply), (&whole.at_once, &whole.at_end, &whole.reply));
        prop_assert!(!whole.at_once.contains("transfer_to_"));
        let all = documents(&[whole.at_once, whole.at_end].concat(), 0);
        let end = all.last().map(|event| event["response"]["output"].clone()).unwrap_or_default();
        prop_assert_eq!(put_together(&all, Vec::new()), list(&end));
        let leaks = |item: &Value| {
            let is_transfer = item["name"].as_str().is_some_and(|name| name.starts_with("transfer_to_"));
            is_transfer && item.to_string().contains("handoff")
        };
        prop_assert!(fate == "-" || !list(&end).iter().any(leaks), "{}", end);
    }

    #[test]
    fn a_reply_of_any_items_passes_as_it_came_where_nothing_changes(
        items in replies(),
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..20),
    ) {
        let events = mixed(&items, &order);
        let played = play(&[stream(&events).as_bytes()], Earlier::default(), Some(&[]));
        let mut all = documents(&[played.at_once, played.at_end].concat(), 0);
        prop_assert_eq!(all.len(), events.len());
        let end = all.pop().map(|event| event["response"]["output"].clone()).unwrap_or_default();
        prop_assert_eq!(list(&end).len(), items.len());
    }
}
