use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::engine::reply::{Finish, Usage};
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

/// A stream of events, each the data given.
fn stream(data: &[&str]) -> String {
    data.iter().map(|data| format!("data: {data}\n\n")).collect::<Vec<_>>().concat()
}

fn read(data: &[&str]) -> Reply {
    assemble(&[stream(data).as_bytes()]).0
}

/// A chunk whose delta holds these elements of `tool_calls`.
fn calls(elements: &str) -> String {
    format!(
        r#"{{"id":"r","choices":[{{"index":0,"delta":{{"tool_calls":[{elements}]}},"finish_reason":null}}]}}"#
    )
}

const FINISH: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;

fn show(reply: &Reply) -> Vec<String> {
    let mark = |call: &ReplyCall| if call.complete { "" } else { "!" };
    reply
        .calls
        .iter()
        .map(|call| format!("{}:{}({}){}", call.id, call.name, call.arguments, mark(call)))
        .collect()
}

/// Chunks with these elements of `tool_calls`, then a proper end.
fn check(fragments: &[&str], expected: &[&str], guessed: bool) {
    let chunks: Vec<String> = fragments.iter().map(|elements| calls(elements)).collect();
    let data: Vec<&str> = chunks.iter().map(String::as_str).chain([FINISH, "[DONE]"]).collect();
    let reply = read(&data);
    assert_eq!(show(&reply), expected, "{fragments:#?}");
    let found = reply.findings.iter().any(|finding| finding.code == Code::FragmentUnplaced);
    assert_eq!(found, guessed, "{fragments:#?}: {:?}", reply.findings);
}

#[test]
fn a_stream_as_the_specification_has_it() {
    let data = [
        r#"{"id":"r1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
        r#"{"id":"r1","choices":[{"index":0,"delta":{"content":"On "},"finish_reason":null}],"obfuscation":"xx"}"#,
        r#"{"id":"r1","choices":[{"index":0,"delta":{"content":"it."}}]}"#,
        r#"{"id":"r1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}}]}"#,
        r#"{"id":"r1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"q\""}}]}}]}"#,
        r#"{"id":"r1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":""}}]}}]}"#,
        r#"{"id":"r1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}},{"index":1,"function":{"arguments":"{}"}}]}}]}"#,
        FINISH,
        r#"{"id":"r1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}"#,
        "[DONE]",
    ];
    let (reply, seen) = assemble(&[stream(&data).as_bytes()]);
    assert_eq!((reply.id.as_str(), reply.model.as_str(), reply.text.as_str()), ("r1", "m", "On it."));
    assert_eq!(show(&reply), [r#"a:f({"q":1})"#, "b:g({})"]);
    assert_eq!((reply.finish, reply.choices, reply.ended), (Some(Finish::Calls), 1, true));
    assert_eq!(reply.usage, Some(Usage { input: 9, output: 3, cached: 0, cache_write: 0 }));
    assert!(reply.findings.is_empty());
    let expected = [
        Seen::Text,
        Seen::Text,
        Seen::CallOpened(0),
        Seen::CallFragment(0),
        Seen::CallOpened(1),
        Seen::CallFragment(0),
        Seen::CallFragment(1),
        Seen::End,
        Seen::Usage,
        Seen::End,
    ];
    assert_eq!(seen, expected);
}

#[test]
fn index_zero_for_every_call() {
    let whole = r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"q\":1}"}}"#;
    let other = r#"{"index":0,"id":"b","function":{"name":"f","arguments":"{\"q\":2}"}}"#;
    check(&[whole, other], &[r#"a:f({"q":1})"#, r#"b:f({"q":2})"#], false);
    check(&[&format!("{whole},{other}")], &[r#"a:f({"q":1})"#, r#"b:f({"q":2})"#], false);
    // Fragments behind the second call are the second call's.
    check(
        &[
            whole,
            r#"{"index":0,"id":"b","function":{"name":"g","arguments":""}}"#,
            r#"{"index":0,"function":{"arguments":"[]"}}"#,
        ],
        &[r#"a:f({"q":1})"#, "b:g([])"],
        false,
    );
    // Without ids.
    check(
        &[
            r#"{"index":0,"function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":0,"function":{"name":"f","arguments":"[]"}}"#,
            r#"{"index":0,"function":{"name":"g","arguments":"{}"}}"#,
        ],
        &[":f({})", ":f([])", ":g({})"],
        false,
    );
}

#[test]
fn no_index_at_all() {
    check(
        &[
            r#"{"id":"a","function":{"name":"f","arguments":""}}"#,
            r#"{"function":{"arguments":"{\"q\":"}}"#,
            r#"{"function":{"arguments":"1}"}}"#,
            r#"{"id":"b","function":{"name":"f","arguments":"{}"}}"#,
        ],
        &[r#"a:f({"q":1})"#, "b:f({})"],
        true,
    );
    check(
        &[
            r#"{"id":"a","function":{"name":"f","arguments":"{"}}"#,
            r#"{"id":"b","function":{"name":"g","arguments":"["}}"#,
            r#"{"id":"a","function":{"arguments":"}"}}"#,
            r#"{"id":"b","function":{"arguments":"]"}}"#,
        ],
        &["a:f({})", "b:g([])"],
        false,
    );
}

#[test]
fn an_index_that_grows_with_every_fragment() {
    check(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#,
            r#"{"index":1,"function":{"arguments":"{\"q\":"}}"#,
            r#"{"index":2,"function":{"arguments":"1}"}}"#,
            r#"{"index":3,"id":"b","function":{"name":"g","arguments":""}}"#,
            r#"{"index":4,"function":{"arguments":"{}"}}"#,
        ],
        &[r#"a:f({"q":1})"#, "b:g({})"],
        true,
    );
    check(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"q\":"}}"#,
            r#"{"index":1,"id":"a","function":{"name":"f","arguments":"1"}}"#,
            r#"{"index":2,"id":"a","function":{"name":"f","arguments":"}"}}"#,
        ],
        &[r#"a:f({"q":1})"#],
        false,
    );
}

#[test]
fn names_and_ids_in_every_fragment() {
    check(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#,
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"q\":"}}"#,
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"1}"}}"#,
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#,
        ],
        &[r#"a:f({"q":1})"#],
        false,
    );
    // A fresh id in every fragment.
    check(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"q\":"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"f","arguments":"1"}}"#,
            r#"{"index":0,"id":"c","function":{"arguments":"}"}}"#,
        ],
        &[r#"a:f({"q":1})"#],
        false,
    );
    // The name in pieces.
    check(
        &[
            r#"{"index":0,"id":"a","function":{"name":"transfer_"}}"#,
            r#"{"index":0,"function":{"name":"to_x","arguments":""}}"#,
            r#"{"index":0,"function":{"arguments":"{}"}}"#,
        ],
        &["a:transfer_to_x({})"],
        false,
    );
}

#[test]
fn one_id_for_all_calls() {
    check(
        &[
            r#"{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":1,"id":"c","function":{"name":"f","arguments":"[]"}}"#,
        ],
        &["c:f({})", "c:f([])"],
        false,
    );
    check(
        &[
            r#"{"id":"c","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"id":"c","function":{"name":"g","arguments":"[]"}}"#,
        ],
        &["c:f({})", "c:g([])"],
        false,
    );
}

#[test]
fn a_trailing_delta_with_a_vendors_fields_alone_adds_nothing() {
    check(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"extra_content":{"google":{"thought_signature":"s"}}}"#,
        ],
        &["a:f({})"],
        false,
    );
}

#[test]
fn custom_and_legacy_calls() {
    check(
        &[
            r#"{"index":0,"id":"a","type":"custom","custom":{"name":"sql","input":""}}"#,
            r#"{"index":0,"custom":{"input":"select "}}"#,
            r#"{"index":0,"custom":{"input":"1"}}"#,
        ],
        &["a:sql(select 1)"],
        false,
    );
    let reply = read(&[
        r#"{"choices":[{"delta":{"function_call":{"name":"f","arguments":""}}}]}"#,
        r#"{"choices":[{"delta":{"function_call":{"arguments":"{"}}}]}"#,
        r#"{"choices":[{"delta":{"function_call":{"arguments":"}"}}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"function_call"}]}"#,
    ]);
    assert_eq!(show(&reply), [":f({})"]);
    assert!(reply.findings.is_empty());
}

#[test]
fn odd_chunks_do_no_harm() {
    let one = calls(r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#);
    let reply = read(&[
        r#"{"choices":[],"prompt_filter_results":[]}"#,
        r#"{"id":"","choices":[{"index":0}]}"#,
        r#"{"choices":[{"index":0,"delta":null}]}"#,
        r#"{"choices":null}"#,
        "",
        &one,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":null,"content":null},"finish_reason":"stop"}]}"#,
    ]);
    assert_eq!(show(&reply), ["a:f({})"]);
    assert_eq!((reply.id.as_str(), reply.finish), ("r", Some(Finish::Stop)));
    assert!(reply.findings.is_empty());
}

#[test]
fn a_call_is_complete_only_if_the_reply_ended() {
    let one = calls(r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#);
    let half = calls(r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"q"}}"#);
    let none = calls(r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#);
    let error = r#"{"error":{"message":"overloaded","type":"server_error","code":503}}"#;
    let length = r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#;
    let complete = |data: &[&str]| read(data).calls[0].complete;
    assert!(!complete(&[&one]));
    assert!(complete(&[&one, FINISH]));
    assert!(complete(&[&one, "[DONE]"]));
    assert!(complete(&[&one, FINISH, error]));
    assert!(!complete(&[&one, error, "[DONE]"]));
    assert!(!complete(&[&half, FINISH]));
    assert!(complete(&[&none, FINISH]));
    assert!(!complete(&[&none, length]));
    assert!(complete(&[&one, length]));
    assert!(!complete(&[&one, "{\"choices\":[{\"delta\":", "[DONE]"]));
    assert!(complete(&[&one, FINISH, "{\"usage\":"]));
    assert!(!complete(&[&none, "[DONE]", error, &half]));
}

#[test]
fn errors_in_mid_stream_are_seen() {
    for stream in [
        "data: {\"error\":{\"message\":\"m\",\"code\":500}}\n\n",
        "data: [{\"error\":{\"message\":\"m\",\"code\":500}}]\n\n",
        "event: error\ndata: {\"detail\":\"m\"}\n\n",
        "data: {\"object\":\"error\",\"message\":\"m\",\"code\":500}\n\n",
    ] {
        let (reply, seen) = assemble(&[stream.as_bytes()]);
        assert_eq!(seen, [Seen::Error], "{stream}");
        assert!(reply.error.is_some() && !reply.ended);
    }
}

#[test]
fn several_choices_are_counted_and_only_the_first_is_read() {
    let reply = read(&[
        r#"{"choices":[{"index":1,"delta":{"content":"b"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#,
        r#"{"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}"#,
    ]);
    assert_eq!((reply.choices, reply.text.as_str(), reply.ended), (2, "a", false));
}

#[test]
fn what_is_kept_is_bounded() {
    let mut assembler = Assembler::new(20);
    let event =
        |data: &str| Event { data: Some(Bytes::copy_from_slice(data.as_bytes())), ..Event::default() };
    assembler.event(&event(&calls(r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#)));
    for _ in 0..10 {
        assembler
            .event(&event(&calls(r#"{"index":1,"id":"b","function":{"name":"g","arguments":"[[[[["}}"#)));
        assembler.event(&event(r#"{"choices":[{"delta":{"content":"1234"}}]}"#));
    }
    assembler.event(&event(FINISH));
    let reply = assembler.finish();
    let size: usize = reply.calls.iter().map(|call| call.arguments.len()).sum();
    assert!(size + reply.text.len() <= 20);
    assert_eq!(reply.calls.iter().map(|call| call.complete).collect::<Vec<_>>()[..2], [true, false]);
    assert_eq!(reply.findings.iter().filter(|finding| finding.code == Code::LimitReached).count(), 2);
}

/// A stream of plausible events in any order, with any framing.
fn streams() -> impl Strategy<Value = String> {
    let fragment = (
        prop::option::of(0_u8..3),
        prop::sample::select(vec!["", "a", "b"]),
        prop::sample::select(vec!["", "f", "g"]),
        prop::sample::select(vec!["", "{}", "{\\\"q\\\":", "1}", "ü\\ud83d"]),
    );
    let call = fragment.prop_map(|(index, id, name, arguments)| {
        let index = index.map_or(String::new(), |index| format!("\"index\":{index},"));
        calls(&format!(r#"{{{index}"id":"{id}","function":{{"name":"{name}","arguments":"{arguments}"}}}}"#))
    });
    let other = prop::sample::select(vec![
        FINISH,
        "[DONE]",
        r#"{"choices":[{"delta":{"content":"häuser"}}]}"#,
        r#"{"choices":[{"delta":{"refusal":"no"},"finish_reason":"length"}]}"#,
        r#"{"error":"x"}"#,
        "{",
        r#"{"choices":[],"usage":{"prompt_tokens":1}}"#,
    ]);
    let event = prop_oneof![3 => call, 1 => other.prop_map(str::to_owned)];
    let line_end = prop::sample::select(vec!["\n", "\r\n", "\r"]);
    (prop::collection::vec(event, 0..12), line_end, any::<bool>()).prop_map(|(events, end, pings)| {
        let ping = if pings { format!(": ping{end}{end}") } else { String::new() };
        events.iter().map(|data| format!("data: {data}{end}{end}{ping}")).collect::<Vec<_>>().concat()
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

    /// Another gap in each chunk, and nothing stands around two pieces alike: each is read whole.
    #[test]
    fn a_piece_is_read_the_same_whether_its_frame_is_known_or_not(
        chunks in prop::collection::vec((any::<prop::sample::Index>(), "\\PC{0,4}|[a\"\\\\\\n\\u{e9}]{0,4}"), 0..40),
    ) {
        let shapes = [
            r#"{"id":"r","model":"m","choices":[{"index":0,"delta":{"content":TEXT},"finish_reason":null}]}"#,
            r#"{"id":"r","choices":[{"delta":{"content":TEXT,"content":TEXT}}],"usage":null}"#,
            r#"{"id":"r","choices":[{"index":0,"delta":{"content":"so","refusal":TEXT}}]}"#,
            r#"{"choices":[{"index":1,"delta":{"content":TEXT}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":TEXT},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":[{"text":TEXT}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":TEXT}}],"usage":{"prompt_tokens":1}}"#,
            r#"{"choices":[{"index":0,"delta":{"content":TEXT}}],"error":{"message":TEXT}}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":TEXT}}]}}]}"#,
        ];
        let data: Vec<String> = chunks.iter().map(|(shape, text)| {
            let quoted = serde_json::to_string(text).expect("a string");
            // Most chunks of a stream are of the first shape.
            let shape = shape.index(2 * shapes.len());
            shapes.get(shape).unwrap_or(&shapes[0]).replace("TEXT", &quoted)
        }).collect();
        let stamp = |(data, n): (&String, usize)| data.replacen('{', &format!(r#"{{"t":{n},"pad":"{}","#, "x".repeat(n % 3)), 1);
        let stamped: Vec<String> = data.iter().zip(0..).map(stamp).collect();
        let gapped = data.iter().zip(1..).map(|(data, n)| data.replacen('{', &format!("{{{}", " ".repeat(n)), 1));
        let gapped: Vec<String> = gapped.collect();
        let whole = |data: &[String]| assemble(&[stream(&data.iter().map(String::as_str).collect::<Vec<_>>()).as_bytes()]);
        prop_assert_eq!(whole(&data), whole(&gapped));
        prop_assert_eq!(whole(&stamped), whole(&gapped));
    }

    #[test]
    fn nothing_is_complete_before_the_end(stream in streams()) {
        let (reply, _) = assemble(&[stream.as_bytes()]);
        for call in &reply.calls {
            prop_assert!(!call.complete || reply.ended);
            prop_assert!(!call.complete || call.arguments.trim().is_empty() || json::is_value(call.arguments.trim()));
        }
    }
}
