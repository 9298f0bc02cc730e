use std::fmt::Write;

use super::*;
use crate::engine::wire;

/// One line an item, in the view's own terms.
fn show(view: &View<'_>, body: &str) -> String {
    let mut out = String::new();
    for (at, item) in view.items.iter().enumerate() {
        let head = if at < view.head.items { "head " } else { "" };
        write!(out, "{head}{:?} {:?} {:?}", item.role, item.form, item.text).expect("a string takes all");
        for call in &item.calls {
            write!(out, " {}:{}({})", call.id, call.name, call.arguments).expect("a string takes all");
            assert_eq!(call.span, item.span, "a call is its item");
        }
        if let Some(answers) = &item.answers {
            write!(out, " answers={answers}").expect("a string takes all");
        }
        if item.seal != Seal::Open {
            write!(out, " {:?}", item.seal).expect("a string takes all");
        }
        if item.media > 0 {
            write!(out, " media={}", item.media).expect("a string takes all");
        }
        if let Some(content) = &item.content {
            assert!(body.get(content.clone()).is_some());
        }
        out.push('\n');
    }
    out
}

fn read(body: &str) -> View<'_> {
    wire::read(body.as_bytes(), Dialect::Responses).expect(body)
}

/// Reads a request with these members.
fn check(members: &str, expected: &[&str]) {
    let body = format!("{{{members}}}");
    assert_eq!(show(&read(&body), &body).trim_end(), expected.join("\n"), "{members}");
}

/// Reads one item, given as the inside of its object.
fn check_item(item: &str, expected: &str) {
    check(&format!(r#""input":[{{{item}}}]"#), &[expected]);
}

fn unreadable(body: &str) -> Unreadable {
    wire::read(body.as_bytes(), Dialect::Responses).expect_err(body)
}

#[test]
fn a_string_is_the_whole_input() {
    check(r#""input":"Where is order 9?""#, &[r#"User Text "Where is order 9?""#]);
    let body = r#"{"input" : "hi" }"#;
    let view = read(body);
    assert_eq!((&body[view.list.clone()], &body[view.items[0].span.clone()]), (r#""hi""#, r#""hi""#));
}

#[test]
fn messages_are_read_with_and_without_a_type() {
    check_item(r#""role":"user","content":"hi""#, r#"User Text "hi""#);
    check_item(
        r#""type":"message","role":"developer","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]"#,
        r#"System Parts "a\nb""#,
    );
    check_item(
        r#""id":"msg_1","type":"message","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"On it.","annotations":[],"logprobs":[]}]"#,
        r#"Assistant Parts "On it.""#,
    );
    check_item(
        r#""role":"assistant","content":[{"type":"refusal","refusal":"No."}]"#,
        r#"Assistant Parts "No.""#,
    );
    check_item(
        r#""role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]"#,
        r#"User Parts "" media=63"#,
    );
    check_item(r#""role":"critic","content":"x""#, r#"Other Text "x""#);
}

#[test]
fn standing_instructions_come_first_whatever_they_are_written_as() {
    check(
        r#""input":[{"role":"system","content":"b"},{"role":"user","content":"c"}],"instructions":"a""#,
        &[r#"head System Text "a""#, r#"System Text "b""#, r#"User Text "c""#],
    );
    check(
        r#""instructions":[{"role":"developer","content":"a"},{"type":"message","role":"user","content":"b"}],"input":"c""#,
        &[r#"head System Text "a""#, r#"head System Text "b""#, r#"User Text "c""#],
    );
    check(r#""instructions":null,"input":"c""#, &[r#"User Text "c""#]);
    assert_eq!(read(r#"{"instructions":"a","input":[{"role":"system","content":"b"}]}"#).leading_system(), 2);
}

#[test]
fn calls_and_results_pair_by_call_id() {
    check_item(
        r#""type":"function_call","id":"fc_1","call_id":"c1","name":"find","arguments":"{\"q\": 1}","status":"completed""#,
        r#"Assistant None "" c1:find({"q": 1})"#,
    );
    check_item(
        r#""type":"function_call_output","id":"fco_1","call_id":"c1","output":"{\"a\":1}""#,
        r#"Tool Text "{\"a\":1}" answers=c1"#,
    );
    check_item(
        r#""type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"u"}]"#,
        r#"Tool Parts "a" answers=c1 media=38"#,
    );
    check_item(
        r#""type":"custom_tool_call","call_id":"c1","name":"sql","input":"select 1""#,
        r#"Assistant None "" c1:sql(select 1)"#,
    );
    check_item(
        r#""type":"custom_tool_call_output","call_id":"c1","output":"1""#,
        r#"Tool Text "1" answers=c1"#,
    );
}

#[test]
fn kinds_that_nobody_knows_yet_pair_too_or_pass() {
    check_item(
        r#""type":"beam_call","call_id":"c1","action":{"to":"deck"},"status":"completed""#,
        r#"Assistant None "" c1:beam_call({"to":"deck"})"#,
    );
    check_item(
        r#""type":"beam_call_output","call_id":"c1","output":{"type":"picture"}"#,
        r#"Tool None "" answers=c1 media=18"#,
    );
    check_item(r#""type":"web_search_call","id":"ws_1","action":{"query":"x"}"#, r#"Other None """#);
    check_item(r#""type":"compaction","id":"cmp_1","encrypted_content":"zz""#, r#"Other None """#);
    check_item(r#""type":"note","content":{"any":"shape"}"#, r#"Other None """#);
    check(
        r#""input":[{"type":"mcp_approval_request","id":"mcpr_1","name":"rm","arguments":"{}"},
            {"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}]"#,
        &[r#"Assistant None "" mcpr_1:rm({})"#, r#"Tool None "" answers=mcpr_1"#],
    );
}

#[test]
fn hidden_reasoning_is_sealed_and_says_nothing() {
    check_item(
        r#""type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"content":[{"type":"reasoning_text","text":"hm"}],"encrypted_content":"gAAA""#,
        r#"Assistant None "" Reasoning"#,
    );
    check_item(r#""type":"item_reference","id":"rs_1""#, r#"Assistant None "" Reasoning"#);
}

#[test]
fn what_is_only_referred_to_is_told_by_its_id() {
    check_item(r#""type":"item_reference","id":"msg_1""#, r#"Assistant None """#);
    check_item(r#""id":"x_1""#, r#"Other None """#);
}

#[test]
fn results_of_calls_that_are_only_referred_to_are_paired_in_order() {
    check(
        r#""input":[{"type":"item_reference","id":"fc_1"},{"type":"item_reference","id":"fc_2"},
            {"type":"function_call","call_id":"c","name":"f","arguments":""},
            {"type":"function_call_output","call_id":"c","output":"3"},
            {"type":"function_call_output","call_id":"a","output":"1"},
            {"type":"function_call_output","call_id":"b","output":"2"},
            {"type":"function_call_output","call_id":"d","output":"4"}]"#,
        &[
            r#"Assistant None "" a:()"#,
            r#"Assistant None "" b:()"#,
            r#"Assistant None "" c:f()"#,
            r#"Tool Text "3" answers=c"#,
            r#"Tool Text "1" answers=a"#,
            r#"Tool Text "2" answers=b"#,
            r#"Tool Text "4" answers=d"#,
        ],
    );
}

#[test]
fn tools_are_flat_and_hosted_ones_go_by_their_type() {
    let view = read(
        r#"{"input":"x","tools":[{"type":"function","name":"find","description":"d","parameters":{"type":"object"},"strict":true},
            {"type":"custom","name":"sql"},{"type":"web_search"},{"type":"function","function":{"name":"nested"}}]}"#,
    );
    let shown: Vec<_> =
        view.tools.iter().map(|tool| (tool.name.as_ref(), tool.parameters.as_deref())).collect();
    let expected =
        [("find", Some(r#"{"type":"object"}"#)), ("sql", None), ("web_search", None), ("nested", None)];
    assert_eq!(shown, expected);
}

#[test]
fn a_request_says_what_the_upstream_keeps() {
    let state = |members: &str| {
        let body = format!(r#"{{"input":[],{members}}}"#);
        let state = read(&body).server_state;
        (
            state.previous.map(Cow::into_owned),
            state.conversation.map(Cow::into_owned),
            state.stores,
            state.background,
        )
    };
    let some = |id: &str| Some(id.to_owned());
    assert_eq!(state(r#""model":"m""#), (None, None, true, false));
    assert_eq!(state(r#""previous_response_id":"resp_1""#), (some("resp_1"), None, true, false));
    assert_eq!(state(r#""conversation":"conv_1","store":true"#), (None, some("conv_1"), true, false));
    assert_eq!(state(r#""conversation":{"id":"conv_1"}"#), (None, some("conv_1"), true, false));
    let nulls = r#""previous_response_id":null,"conversation":null,"store":false,"background":true"#;
    assert_eq!(state(nulls), (None, None, false, true));
    assert!(read(r#"{"previous_response_id":"resp_1"}"#).is_delta());
    assert!(!read(r#"{"input":"x"}"#).is_delta());
}

#[test]
fn the_rest_of_the_request_is_read() {
    let view = read(
        r#"{"model":"m","stream":true,"input":"x","text":{"verbosity":"low","format":{"type":"json_schema","name":"v","schema":{}}}}"#,
    );
    assert_eq!((view.model.as_deref(), view.stream, view.shaped_reply), (Some("m"), true, true));
    assert!(!read(r#"{"input":"x","text":{"format":{"type":"text"}}}"#).shaped_reply);
}

#[test]
fn where_two_readers_could_disagree_the_body_is_unreadable() {
    let twice = |key| Unreadable::DuplicateKey { key, at: 12 };
    assert_eq!(unreadable(r#"{"input":"a","input":"b"}"#), Unreadable::DuplicateKey { key: "input", at: 13 });
    assert_eq!(unreadable(r#"{"store":1 ,"store":2}"#), twice("store"));
    assert_eq!(unreadable(r#"{"input":7}"#), Unreadable::OddShape { key: "input", at: 9 });
    assert_eq!(unreadable(r#"{"input":[7]}"#), Unreadable::OddShape { key: "input", at: 10 });
    assert_eq!(
        unreadable(r#"{"input":[{"role":"user","content":{}}]}"#),
        Unreadable::OddShape { key: "content", at: 10 }
    );
    assert_eq!(unreadable(r#"{"instructions":7}"#), Unreadable::OddShape { key: "instructions", at: 16 });
    assert_eq!(unreadable("[]"), Unreadable::NotAnObject);
    assert!(read("{}").items.is_empty());
}
