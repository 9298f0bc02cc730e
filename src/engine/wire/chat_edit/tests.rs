use proptest::prelude::*;

use super::*;
use crate::engine::view::{Arguments, Dialect, Role};
use crate::engine::wire;

fn check(body: &str, plan: &Plan, expected: &str) {
    let view = wire::read(body.as_bytes(), Dialect::Chat).expect(body);
    let out = wire::apply(body.as_bytes(), &view, plan);
    assert_eq!(std::str::from_utf8(&out).expect("UTF-8"), expected);
    wire::read(&out, Dialect::Chat).expect("what was rebuilt can be read");
}

fn brief(text: &str, after: Option<usize>) -> Plan {
    Plan { brief: Some(text.into()), brief_after: after, ..Plan::default() }
}

fn keep(keep: Vec<Keep>) -> Plan {
    Plan { keep, ..Plan::default() }
}

fn arguments(item: usize, call: usize, text: &str) -> Plan {
    Plan { arguments: vec![Arguments { item, call, text: text.into() }], ..Plan::default() }
}

#[test]
fn a_call_gets_other_arguments_and_keeps_the_rest() {
    let list = |calls: &str| {
        format!(r#"{{"messages":[{{"role":"user","content":"hi"}}, {{"role":"assistant",{calls}}}]}}"#)
    };
    check(
        &list(
            r#""tool_calls":[ {"id":"a","function":{"name":"f","arguments":"{}"}}, {"id":"b","function":{"arguments" : "{}","name":"g","x":1},"y":[]} ]"#,
        ),
        &arguments(1, 1, r#"{"q":"é\n"}"#),
        &list(
            r#""tool_calls":[ {"id":"a","function":{"name":"f","arguments":"{}"}}, {"id":"b","function":{"arguments" : "{\"q\":\"é\\n\"}","name":"g","x":1},"y":[]} ]"#,
        ),
    );
    check(
        &list(r#""function_call":{"name":"f","arguments":"{}"}"#),
        &arguments(1, 0, "[1]"),
        &list(r#""function_call":{"name":"f","arguments":"[1]"}"#),
    );
    let odd = list(r#""tool_calls":[{"id":"a"}]"#);
    check(&odd, &arguments(1, 0, "{}"), &odd);
}

#[test]
fn the_brief_ends_the_system_message_in_its_own_form() {
    check(
        r#"{ "messages" : [ {"role":"system", "content" : "Be k\u0069nd." ,"x":1.0} , {"role":"user","content":"hi"} ] ,"n":1e0}"#,
        &brief("You \"hold\"\nthis.", Some(0)),
        r#"{ "messages" : [ {"role":"system", "content" : "Be k\u0069nd.\n\nYou \"hold\"\nthis." ,"x":1.0} , {"role":"user","content":"hi"} ] ,"n":1e0}"#,
    );
    check(
        r#"{"messages":[{"role":"developer","content":[{"type":"text","text":"A","cache_control":{"type":"ephemeral"}} ]}]}"#,
        &brief("B", Some(0)),
        r#"{"messages":[{"role":"developer","content":[{"type":"text","text":"A","cache_control":{"type":"ephemeral"}} ,{"type":"text","text":"B"}]}]}"#,
    );
    check(
        r#"{"messages":[{"role":"system","content":[ ]}]}"#,
        &brief("B", Some(0)),
        r#"{"messages":[{"role":"system","content":[ {"type":"text","text":"B"}]}]}"#,
    );
}

#[test]
fn an_empty_system_text_becomes_the_brief_alone() {
    for empty in [r#""""#, "null"] {
        check(
            &format!(r#"{{"messages":[{{"content":{empty},"role":"system"}}]}}"#),
            &brief("B", Some(0)),
            r#"{"messages":[{"content":"B","role":"system"}]}"#,
        );
    }
    check(
        r#"{"messages":[{"role":"system" }]}"#,
        &brief("B", Some(0)),
        r#"{"messages":[{"role":"system","content":"B"}]}"#,
    );
}

#[test]
fn without_a_system_message_to_carry_it_the_brief_gets_one_of_its_own() {
    let expected = r#"{"messages":[{"role":"system","content":"B"},{"role":"user","content":"hi"} ]}"#;
    check(r#"{"messages":[ {"role":"user","content":"hi"} ]}"#, &brief("B", None), expected);
    check(r#"{"messages":[ {"role":"user","content":"hi"} ]}"#, &brief("B", Some(7)), expected);
    let dropped = Plan { keep: vec![Keep::Drop], ..brief("B", Some(0)) };
    check(
        r#"{"messages":[{"role":"system","content":"S"}, {"role":"user","content":"hi"} ]}"#,
        &dropped,
        expected,
    );
    check(r#"{"messages":[ ]}"#, &brief("B", None), r#"{"messages":[{"role":"system","content":"B"}]}"#);
}

#[test]
fn separators_are_rebuilt_only_where_something_went_or_came() {
    let body = "{\"messages\":[\n  {\"a\":1},\n  {\"b\":2},\n  {\"c\":3},\n  {\"d\":4}\n]}";
    check(body, &keep(vec![]), body);
    check(
        body,
        &keep(vec![Keep::Whole, Keep::Drop]),
        "{\"messages\":[\n  {\"a\":1},{\"c\":3},\n  {\"d\":4}\n]}",
    );
    check(body, &keep(vec![Keep::Drop]), "{\"messages\":[{\"b\":2},\n  {\"c\":3},\n  {\"d\":4}\n]}");
    check(
        body,
        &keep(vec![Keep::Whole, Keep::Whole, Keep::Drop, Keep::Drop]),
        "{\"messages\":[\n  {\"a\":1},\n  {\"b\":2}]}",
    );
    check(body, &keep(vec![Keep::Drop; 4]), "{\"messages\":[]}");
    let put_back = Plan {
        keep: vec![Keep::Whole, Keep::Drop],
        put_back: vec![(4, r#"{"z":0}"#.into()), (1, r#"{"y":0}"#.into()), (1, r#"{"x":0}"#.into())],
        ..Plan::default()
    };
    check(
        body,
        &put_back,
        "{\"messages\":[\n  {\"a\":1},{\"y\":0},{\"x\":0},{\"c\":3},\n  {\"d\":4},{\"z\":0}]}",
    );
}

#[test]
fn calls_are_cut_out_of_their_message() {
    let call = |id: &str| format!(r#"{{"id":"{id}","function":{{"name":"f","arguments":"{{}}"}}}}"#);
    let (a, b, c) = (call("a"), call("b"), call("c"));
    let body = |calls: &str| {
        format!(r#"{{"messages":[{{"role":"assistant", "tool_calls" : {calls} ,"content":"On it."}}]}}"#)
    };
    let three = body(&format!("[ {a} , {b} , {c} ]"));
    check(&three, &keep(vec![Keep::WithoutCalls(vec![])]), &three);
    check(&three, &keep(vec![Keep::WithoutCalls(vec![1])]), &body(&format!("[ {a},{c} ]")));
    check(&three, &keep(vec![Keep::WithoutCalls(vec![2, 0])]), &body(&format!("[{b}]")));
    let none = r#"{"messages":[{"role":"assistant","content":"On it."}]}"#;
    check(&three, &keep(vec![Keep::WithoutCalls(vec![0, 1, 2])]), none);
    check(&three, &keep(vec![Keep::WithoutCalls(vec![9])]), &three);
    check(
        r#"{"messages":[{"function_call":{"name":"f","arguments":"{}"},"role":"assistant","content":"On it."}]}"#,
        &keep(vec![Keep::WithoutCalls(vec![0])]),
        none,
    );
}

#[test]
fn a_shortened_result_changes_its_content_alone() {
    check(
        r#"{"messages":[{"role":"tool","content" : "long" , "tool_call_id":"c"}]}"#,
        &keep(vec![Keep::Shortened("l\"".into())]),
        r#"{"messages":[{"role":"tool","content" : "l\"" , "tool_call_id":"c"}]}"#,
    );
    check(
        r#"{"messages":[{"role":"tool","content":[{"type":"text","text":"lo"},{"type":"text","text":"ng"}]}]}"#,
        &keep(vec![Keep::Shortened("l".into())]),
        r#"{"messages":[{"role":"tool","content":[{"type":"text","text":"l"}]}]}"#,
    );
}

#[test]
fn a_plan_or_view_of_another_body_does_not_panic() {
    let long = r#"{"messages":[{"role":"system","content":"some text that is long"},{"role":"user","content":"hi"}]}"#;
    let view = wire::read(long.as_bytes(), Dialect::Chat).expect("readable");
    for end in 0..long.len() {
        wire::apply(&long.as_bytes()[..end], &view, &brief("B", Some(0)));
    }
}

/// A message as JSON, its white space and key order varied.
fn message() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        Just("null".to_owned()),
        any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
        prop::collection::vec(any::<String>(), 0..3).prop_map(|parts| {
            let part = |text: &String| {
                format!(r#"{{"type": "text", "text":{}}}"#, serde_json::Value::from(text.as_str()))
            };
            format!("[{}]", parts.iter().map(part).collect::<Vec<_>>().join(" ,"))
        }),
    ];
    let role = prop::sample::select(vec!["system", "developer", "user", "assistant", "tool", "odd"]);
    let calls = prop::option::of(prop::collection::vec("[a-z]{1,4}", 0..4));
    (role, text, calls, any::<bool>(), 0_u32..u32::MAX).prop_map(|(role, content, calls, front, seed)| {
        let mut members = vec![
            format!(r#""role":"{role}""#),
            format!(r#""content" : {content}"#),
            format!("\"x{seed}\":1.50"),
        ];
        if let Some(calls) = calls {
            let call =
                |id: &String| format!(r#"{{"id":"{id}","function":{{"name":"f_{id}","arguments":"{{}}"}}}}"#);
            members
                .push(format!("\"tool_calls\":[{}]", calls.iter().map(call).collect::<Vec<_>>().join("\n,")));
        }
        if front {
            members.reverse();
        }
        format!("{{{}}}", members.join(", "))
    })
}

prop_compose! {
    fn body()(messages in prop::collection::vec(message(), 0..8), gap in prop::sample::select(vec![",", " , ", ",\n  "]))
        -> String {
        format!("{{\"model\":\"m\",\"messages\":[ {} ],\"seed\":1E2}}", messages.join(gap))
    }
}

#[derive(Clone, Copy, Debug)]
enum Choice {
    Whole,
    Drop,
    Shorten,
    CutFirst,
    CutAll,
}

fn choices() -> impl Strategy<Value = Vec<Choice>> {
    use Choice::{CutAll, CutFirst, Drop, Shorten, Whole};
    prop::collection::vec(prop::sample::select(vec![Whole, Whole, Drop, Shorten, CutFirst, CutAll]), 8)
}

proptest! {
    #[test]
    fn the_plan_that_changes_nothing_gives_the_same_bytes(body in body()) {
        let view = wire::read(body.as_bytes(), Dialect::Chat).expect("generated");
        let plan = Plan { keep: vec![Keep::Whole; view.items.len()], ..Plan::default() };
        prop_assert_eq!(wire::apply(body.as_bytes(), &view, &plan), body.as_bytes());
    }

    #[test]
    fn what_is_rebuilt_reads_as_planned(body in body(), choices in choices(), brief in any::<String>(), back in 0_usize..9) {
        let view = wire::read(body.as_bytes(), Dialect::Chat).expect("generated");
        let count = view.items.len();
        let keep: Vec<Keep> = view.items.iter().zip(&choices).map(|(item, choice)| match choice {
            Choice::Whole => Keep::Whole,
            Choice::Drop => Keep::Drop,
            Choice::Shorten => Keep::Shortened("short".into()),
            Choice::CutFirst => Keep::WithoutCalls(if item.calls.is_empty() { vec![] } else { vec![0] }),
            Choice::CutAll => Keep::WithoutCalls((0..item.calls.len()).collect()),
        }).collect();
        let carrier = view.items.iter().zip(&keep)
            .position(|(item, keep)| item.role == Role::System && *keep == Keep::Whole);
        let returned = r#"{"role":"user","content":"put back"}"#;
        let plan = Plan {
            brief: Some(brief.clone()),
            brief_after: carrier,
            keep: keep.clone(),
            put_back: vec![(back.min(count), returned.into())],
            ..Plan::default()
        };
        let out = wire::apply(body.as_bytes(), &view, &plan);
        let read = wire::read(&out, Dialect::Chat).expect("rebuilt");

        // What the new list should hold: role, text, ids of the calls.
        let mut expected: Vec<(Role, String, Vec<String>)> = Vec::new();
        if carrier.is_none() {
            expected.push((Role::System, brief.clone(), vec![]));
        }
        for (index, item) in view.items.iter().enumerate() {
            if index == back { expected.push((Role::User, "put back".into(), vec![])); }
            let mut ids: Vec<String> = item.calls.iter().map(|call| call.id.to_string()).collect();
            let mut text = item.text.to_string();
            match &keep[index] {
                Keep::Whole => {}
                Keep::Drop => continue,
                Keep::Shortened(short) => text.clone_from(short),
                Keep::WithoutCalls(cut) => ids = ids.split_off(cut.len()),
            }
            if carrier == Some(index) {
                let bare = match item.form {
                    Form::Parts => !item.content.as_ref().is_some_and(|span| body[span.clone()].contains('{')),
                    _ => text.is_empty(),
                };
                let between = match item.form { _ if bare => "", Form::Parts => "\n", _ => "\n\n" };
                text = format!("{text}{between}{brief}");
            }
            expected.push((item.role, text, ids));
        }
        if back >= count { expected.push((Role::User, "put back".into(), vec![])); }
        let found: Vec<_> = read.items.iter()
            .map(|item| (item.role, item.text.to_string(), item.calls.iter().map(|call| call.id.to_string()).collect()))
            .collect();
        prop_assert_eq!(found, expected);

        // Whatever stays whole keeps its bytes, and so does all around the list.
        for (index, item) in view.items.iter().enumerate() {
            if keep[index] == Keep::Whole && carrier != Some(index) {
                let bytes = &body.as_bytes()[item.span.clone()];
                prop_assert!(read.items.iter().any(|item| &out[item.span.clone()] == bytes));
            }
        }
        prop_assert_eq!(&out[..read.list.start], &body.as_bytes()[..view.list.start]);
        prop_assert_eq!(&out[read.list.end..], &body.as_bytes()[view.list.end..]);
    }
}
