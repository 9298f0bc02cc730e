use proptest::prelude::*;

use super::*;
use crate::engine::view::{Arguments, Dialect, Role};
use crate::engine::wire;

fn check(body: &str, plan: &Plan, expected: &str) {
    let view = wire::read(body.as_bytes(), Dialect::Responses).expect(body);
    let out = wire::apply(body.as_bytes(), &view, plan);
    assert_eq!(std::str::from_utf8(&out).expect("UTF-8"), expected);
    wire::read(&out, Dialect::Responses).expect("what was rebuilt can be read");
}

fn brief(text: &str, after: Option<usize>) -> Plan {
    Plan { brief: Some(text.into()), brief_after: after, ..Plan::default() }
}

fn keep(keep: Vec<Keep>) -> Plan {
    Plan { keep, ..Plan::default() }
}

#[test]
fn a_call_gets_other_arguments_and_keeps_the_rest() {
    let body = |arguments: &str| {
        format!(
            r#"{{"input":[{{"role":"user","content":"hi"}},{{"type":"function_call","call_id":"c", "arguments" : {arguments},"name":"f"}}]}}"#
        )
    };
    let other = Arguments { item: 1, call: 0, text: r#"{"q":1}"#.into() };
    check(&body(r#""{}""#), &Plan { arguments: vec![other], ..Plan::default() }, &body(r#""{\"q\":1}""#));
}

#[test]
fn a_request_goes_on_from_another_reply() {
    let plan = Plan { previous: Some("resp_2".into()), ..Plan::default() };
    let body = |id: &str| format!(r#"{{"input":[], "previous_response_id" : "{id}","x":1}}"#);
    check(&body("resp_1"), &plan, &body("resp_2"));
    check(r#"{"input":[]}"#, &plan, r#"{"input":[]}"#);
}

#[test]
fn the_brief_ends_the_instructions_where_they_stand() {
    check(
        r#"{ "instructions" : "Be k\u0069nd." , "input":"hi" ,"n":1e0}"#,
        &brief("You \"hold\" this.", Some(0)),
        r#"{ "instructions" : "Be k\u0069nd.\n\nYou \"hold\" this." , "input":"hi" ,"n":1e0}"#,
    );
    check(
        r#"{"instructions":[{"role":"developer","content":"A"}, {"role":"developer","content":[{"type":"input_text","text":"B","x":1}]} ],"input":"hi"}"#,
        &brief("C", Some(1)),
        r#"{"instructions":[{"role":"developer","content":"A"}, {"role":"developer","content":[{"type":"input_text","text":"B","x":1},{"type":"input_text","text":"C"}]} ],"input":"hi"}"#,
    );
    check(
        r#"{"input":[{"type":"message","role":"system","content":"A"},{"role":"user","content":"hi"}]}"#,
        &brief("B", Some(0)),
        r#"{"input":[{"type":"message","role":"system","content":"A\n\nB"},{"role":"user","content":"hi"}]}"#,
    );
    check(
        r#"{"input":[{"role":"developer"},{"role":"user","content":"hi"}]}"#,
        &brief("B", Some(0)),
        r#"{"input":[{"content":"B","role":"developer"},{"role":"user","content":"hi"}]}"#,
    );
}

#[test]
fn without_instructions_the_brief_becomes_them() {
    let expected = r#"{"instructions":"B","input":"hi"}"#;
    check(r#"{"input":"hi"}"#, &brief("B", None), expected);
    check(r#"{"input":"hi"}"#, &brief("B", Some(7)), expected);
    check(r#"{"instructions":null,"input":"hi"}"#, &brief("B", None), expected);
    check(r#"{"instructions":"","input":"hi"}"#, &brief("B", None), expected);
    check(r#"{"instructions":[],"input":"hi"}"#, &brief("B", None), expected);
    check(
        r#"{"instructions":"A","input":"hi"}"#,
        &brief("B", None),
        r#"{"instructions":"A\n\nB","input":"hi"}"#,
    );
    check("{ }", &brief("B", None), r#"{"instructions":"B" }"#);
    let dropped = Plan { keep: vec![Keep::Drop], ..brief("B", Some(0)) };
    check(r#"{"instructions":"A","input":"hi"}"#, &dropped, expected);
    check(
        r#"{"instructions":[{"role":"system","content":"A"}],"input":"hi"}"#,
        &dropped,
        r#"{"instructions":[{"role":"system","content":"B"}],"input":"hi"}"#,
    );
    check(
        r#"{"input":[{"role":"system","content":"S"}, {"role":"user","content":"hi"} ]}"#,
        &dropped,
        r#"{"instructions":"B","input":[{"role":"user","content":"hi"} ]}"#,
    );
}

#[test]
fn a_senders_text_in_the_list_goes_and_the_receivers_stays() {
    check(
        r#"{"input":[{"role":"system","content":"S"},{"role":"user","content":"hi"}],"instructions":"R"}"#,
        &Plan { keep: vec![Keep::Whole, Keep::Drop], ..brief("B", Some(0)) },
        r#"{"input":[{"role":"user","content":"hi"}],"instructions":"R\n\nB"}"#,
    );
    check(
        r#"{"input":[{"role":"system","content":"R"}],"instructions":"S"}"#,
        &Plan { keep: vec![Keep::Drop], ..brief("B", Some(1)) },
        r#"{"input":[{"role":"system","content":"R\n\nB"}],"instructions":null}"#,
    );
}

#[test]
fn a_string_stays_one_unless_items_are_put_back() {
    check(r#"{"input": "hi" }"#, &keep(vec![Keep::Whole]), r#"{"input": "hi" }"#);
    check(r#"{"input":"hi"}"#, &keep(vec![Keep::Shortened("h".into())]), r#"{"input":"h"}"#);
    check(r#"{"input":"hi"}"#, &keep(vec![Keep::Drop]), r#"{"input":[]}"#);
    let back =
        |place: usize, raw: &'static str| Plan { put_back: vec![(place, raw.into())], ..Plan::default() };
    check(
        r#"{"input":"h\u0069"}"#,
        &back(1, r#"{"role":"user","content":"x"}"#),
        r#"{"input":[{"role":"user","content":"h\u0069"},{"role":"user","content":"x"}]}"#,
    );
    check(
        r#"{"input":"hi"}"#,
        &back(0, r#""x""#),
        r#"{"input":[{"role":"user","content":"x"},{"role":"user","content":"hi"}]}"#,
    );
    // What once was the whole input becomes an item of a list.
    check(
        r#"{"instructions":"R","input":[{"role":"assistant","content":"hi"}]}"#,
        &back(2, r#""x""#),
        r#"{"instructions":"R","input":[{"role":"assistant","content":"hi"},{"role":"user","content":"x"}]}"#,
    );
    check(
        r#"{"instructions":"R","input":[]}"#,
        &back(0, r#""x""#),
        r#"{"instructions":"R","input":[{"role":"user","content":"x"}]}"#,
    );
}

#[test]
fn a_call_that_is_cut_out_is_its_item() {
    let call = r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}"#;
    check(
        &format!(r#"{{"input":[{call} , {call}]}}"#),
        &keep(vec![Keep::WithoutCalls(vec![0]), Keep::WithoutCalls(vec![])]),
        &format!(r#"{{"input":[{call}]}}"#),
    );
}

#[test]
fn a_shortened_result_changes_its_output_alone() {
    check(
        r#"{"input":[{"type":"function_call_output","output" : "long" , "call_id":"c"}]}"#,
        &keep(vec![Keep::Shortened("l\"".into())]),
        r#"{"input":[{"type":"function_call_output","output" : "l\"" , "call_id":"c"}]}"#,
    );
    check(
        r#"{"input":[{"output":[{"type":"input_text","text":"long"}],"type":"function_call_output","call_id":"c"}]}"#,
        &keep(vec![Keep::Shortened("l".into())]),
        r#"{"input":[{"output":[{"type":"input_text","text":"l"}],"type":"function_call_output","call_id":"c"}]}"#,
    );
}

#[test]
fn a_plan_or_view_of_another_body_does_not_panic() {
    let long = r#"{"instructions":"some text that is long","input":[{"role":"system","content":"x"},{"role":"user","content":"hi"}]}"#;
    let view = wire::read(long.as_bytes(), Dialect::Responses).expect("readable");
    for end in 0..long.len() {
        for after in [None, Some(0), Some(1)] {
            wire::apply(&long.as_bytes()[..end], &view, &brief("B", after));
        }
    }
}

/// An item as JSON, its key order varied.
fn item() -> impl Strategy<Value = String> {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let content = prop_oneof![
        any::<String>().prop_map(move |text| quoted(&text)),
        prop::collection::vec(any::<String>(), 0..3).prop_map(move |parts| {
            let part = |text: &String| format!(r#"{{"type": "input_text", "text":{}}}"#, quoted(text));
            format!("[{}]", parts.iter().map(part).collect::<Vec<_>>().join(" ,"))
        }),
    ];
    let message = (prop::sample::select(vec!["system", "user", "assistant", "odd"]), content.clone())
        .prop_map(|(role, content)| vec![format!(r#""role":"{role}""#), format!(r#""content" : {content}"#)]);
    let call = "[a-z]{1,4}".prop_map(|id| {
        vec![
            r#""type":"function_call""#.to_owned(),
            format!(r#""call_id":"{id}""#),
            format!(r#""name":"f_{id}""#),
            r#""arguments":"{}""#.to_owned(),
        ]
    });
    let result = ("[a-z]{1,4}", content).prop_map(|(id, output)| {
        vec![
            r#""type":"function_call_output""#.to_owned(),
            format!(r#""output" : {output}"#),
            format!(r#""call_id":"{id}""#),
        ]
    });
    let reasoning = Just(vec![
        r#""type":"reasoning""#.to_owned(),
        r#""summary":[ ]"#.to_owned(),
        r#""encrypted_content":"gAA=""#.to_owned(),
    ]);
    (prop_oneof![3 => message, 2 => call, 2 => result, 1 => reasoning], any::<bool>()).prop_map(
        |(mut members, front)| {
            members.push("\"x\":1.50".to_owned());
            if front {
                members.reverse();
            }
            format!("{{{}}}", members.join(", "))
        },
    )
}

prop_compose! {
    fn body()(
        items in prop::collection::vec(item(), 0..8),
        gap in prop::sample::select(vec![",", " , ", ",\n  "]),
        head in prop::sample::select(vec![
            None,
            Some("null"),
            Some(r#""Be kind.""#),
            Some(r#"[ {"role":"system","content":"Be kind."} ]"#),
        ]),
        string in prop::sample::select(vec![false, false, false, true]),
    ) -> String {
        let head = head.map(|head| format!("\"instructions\": {head},")).unwrap_or_default();
        if string {
            return format!("{{\"model\":\"m\",\"input\" : \"h\\u0069\",{head}\"seed\":1E2}}");
        }
        format!("{{\"model\":\"m\",{head}\"input\":[ {} ],\"seed\":1E2}}", items.join(gap))
    }
}

#[derive(Clone, Copy, Debug)]
enum Choice {
    Whole,
    Drop,
    Shorten,
    Cut,
}

fn choices() -> impl Strategy<Value = Vec<Choice>> {
    use Choice::{Cut, Drop, Shorten, Whole};
    prop::collection::vec(prop::sample::select(vec![Whole, Whole, Drop, Shorten, Cut]), 9)
}

type Shown = Vec<(Role, String, Vec<String>, Option<String>)>;

fn shown(item: &Item<'_>) -> (Role, String, Vec<String>, Option<String>) {
    let calls = item.calls.iter().map(|call| call.id.to_string()).collect();
    (item.role, item.text.to_string(), calls, item.answers.as_ref().map(ToString::to_string))
}

proptest! {
    #[test]
    fn the_plan_that_changes_nothing_gives_the_same_bytes(body in body()) {
        let view = wire::read(body.as_bytes(), Dialect::Responses).expect("generated");
        let plan = Plan { keep: vec![Keep::Whole; view.items.len()], ..Plan::default() };
        prop_assert_eq!(wire::apply(body.as_bytes(), &view, &plan), body.as_bytes());
    }

    #[test]
    fn what_is_rebuilt_reads_as_planned(body in body(), choices in choices(), brief in any::<String>(), back in 0_usize..9) {
        let view = wire::read(body.as_bytes(), Dialect::Responses).expect("generated");
        let count = view.items.len();
        let keep: Vec<Keep> = view.items.iter().zip(&choices).map(|(item, choice)| match choice {
            Choice::Drop => Keep::Drop,
            Choice::Shorten if item.answers.is_some() => Keep::Shortened("short".into()),
            Choice::Cut if !item.calls.is_empty() => Keep::WithoutCalls(vec![0]),
            _ => Keep::Whole,
        }).collect();
        let stays = |at: usize| !matches!(keep[at], Keep::Drop | Keep::WithoutCalls(_));
        let carrier = (0..count).find(|&at| view.items[at].role == Role::System && stays(at));
        let returned = r#"{"role":"user","content":"put back"}"#;
        let plan = Plan {
            brief: Some(brief.clone()),
            brief_after: carrier,
            keep: keep.clone(),
            put_back: vec![(back.min(count), returned.into())],
            ..Plan::default()
        };
        let out = wire::apply(body.as_bytes(), &view, &plan);
        let read = wire::read(&out, Dialect::Responses).expect("rebuilt");

        let put_back = || (Role::User, "put back".to_owned(), vec![], None);
        let mut expected: Shown = Vec::new();
        if carrier.is_none() {
            expected.push((Role::System, brief.clone(), vec![], None));
        }
        for (index, item) in view.items.iter().enumerate() {
            let here = if index == view.head.items { back <= index } else { back == index };
            if index >= view.head.items && here { expected.push(put_back()); }
            if !stays(index) { continue; }
            let mut item_shown = shown(item);
            if let Keep::Shortened(short) = &keep[index] { item_shown.1.clone_from(short); }
            if carrier == Some(index) {
                let bare = match item.form {
                    Form::Parts => !item.content.as_ref().is_some_and(|span| body[span.clone()].contains('{')),
                    _ => item.text.is_empty(),
                };
                let between = if bare { "" } else if item.form == Form::Parts { "\n" } else { "\n\n" };
                item_shown.1 = format!("{}{between}{brief}", item_shown.1);
            }
            expected.push(item_shown);
        }
        if back >= count || view.head.items == count { expected.push(put_back()); }
        prop_assert_eq!(read.items.iter().map(shown).collect::<Shown>(), expected);

        // Whatever stays whole keeps its bytes.
        for (index, item) in view.items.iter().enumerate() {
            if keep[index] == Keep::Whole && carrier != Some(index) {
                let bytes = &body.as_bytes()[item.span.clone()];
                prop_assert!(out.windows(bytes.len()).any(|window| window == bytes));
            }
        }
        prop_assert!(out.ends_with(b"1E2}"), "what stands behind stays");
    }
}
