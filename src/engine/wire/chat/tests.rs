use std::fmt::Write;

use super::*;
use crate::engine::wire;

/// One line an item, in the view's own terms.
fn show(view: &View<'_>, body: &str) -> String {
    let mut out = String::new();
    for item in &view.items {
        write!(out, "{:?} {:?} {:?}", item.role, item.form, item.text).expect("a string takes all");
        for call in &item.calls {
            write!(out, " {}:{}({})", call.id, call.name, call.arguments).expect("a string takes all");
            let raw = &body[call.span.clone()];
            assert!(raw.starts_with('{') && raw.contains(call.name.as_ref()) && raw.ends_with('}'), "{raw}");
        }
        if let Some(name) = &item.name {
            write!(out, " name={name}").expect("a string takes all");
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
        out.push('\n');
    }
    out
}

/// Reads one message, given as the inside of its object.
fn check(message: &str, expected: &str) {
    let body = format!(r#"{{"messages":[{{{message}}}]}}"#);
    let view = wire::read(body.as_bytes(), Dialect::Chat).expect(message);
    assert_eq!(show(&view, &body).trim_end(), expected, "{message}");
    assert_eq!(body[view.items[0].span.clone()], format!("{{{message}}}"));
}

fn unreadable(body: &str) -> Unreadable {
    wire::read(body.as_bytes(), Dialect::Chat).expect_err(body)
}

#[test]
fn content_is_text_parts_or_nothing() {
    check(r#""role":"user","content":"Where is order 9?""#, r#"User Text "Where is order 9?""#);
    check(r#""role":"user","content":"a\u00e9\n""#, r#"User Text "aé\n""#);
    check(r#""role":"assistant","content":null"#, r#"Assistant None """#);
    check(r#""role":"assistant""#, r#"Assistant None """#);
    check(r#""role":"user","content":[]"#, r#"User Parts """#);
    check(
        r#""role":"user","content":[{"type":"text","text":"one"},{"text":"two","type":"text","cache_control":{"type":"ephemeral"}},"three"]"#,
        r#"User Parts "one\ntwo\nthree""#,
    );
    check(
        r#""role":"assistant","content":[{"type":"refusal","refusal":"I cannot."}]"#,
        r#"Assistant Parts "I cannot.""#,
    );
    check(r#""role":"assistant","content":null,"refusal":"I cannot.""#, r#"Assistant None "I cannot.""#);
    check(r#""role":"assistant","content":"Yes","refusal":null"#, r#"Assistant Text "Yes""#);
}

#[test]
fn media_counts_as_bytes_and_not_as_text() {
    check(
        r#""role":"user","content":[{"type":"text","text":"See:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"file","file":{"file_id":"f1"}}]"#,
        r#"User Parts "See:" media=108"#,
    );
}

#[test]
fn roles_map_and_unknown_ones_pass() {
    for (role, expected) in [
        ("system", "System"),
        ("developer", "System"),
        ("user", "User"),
        ("assistant", "Assistant"),
        ("critic", "Other"),
        ("", "Other"),
    ] {
        check(&format!(r#""role":"{role}","content":"x""#), &format!(r#"{expected} Text "x""#));
    }
    check(r#""role":7,"content":"x""#, r#"Other Text "x""#);
    check(r#""content":"x","role":"us\u0065r","name":"planner""#, r#"User Text "x" name=planner"#);
}

#[test]
fn calls_are_read_in_every_form() {
    check(
        r#""role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"find","arguments":"{\"q\":\"ü\"}"}},{"function":{"arguments":"","name":"list"},"id":"c1"}]"#,
        r#"Assistant None "" c1:find({"q":"ü"}) c1:list()"#,
    );
    check(
        r#""role":"assistant","tool_calls":[{"id":"c2","type":"custom","custom":{"name":"sql","input":"select 1"}}]"#,
        r#"Assistant None "" c2:sql(select 1)"#,
    );
    check(
        r#""role":"assistant","content":null,"function_call":{"name":"find","arguments":"{}"}"#,
        r#"Assistant None "" :find({})"#,
    );
    check(
        r#""role":"assistant","content":"x","function_call":null,"tool_calls":null"#,
        r#"Assistant Text "x""#,
    );
    check(
        r#""role":"assistant","tool_calls":[{"id":null,"function":{"name":"find","arguments":{"q": 1}}}]"#,
        r#"Assistant None "" :find({"q": 1})"#,
    );
    check(r#""role":"assistant","tool_calls":[{"function":{"arguments":null}}]"#, r#"Assistant None "" :()"#);
}

#[test]
fn results_name_the_call_they_answer_or_nothing() {
    check(r#""role":"tool","tool_call_id":"c1","content":"4 left""#, r#"Tool Text "4 left" answers=c1"#);
    check(r#""role":"tool","content":"4 left""#, r#"Tool Text "4 left" answers="#);
    check(
        r#""role":"function","name":"find","content":"4 left""#,
        r#"Tool Text "4 left" name=find answers="#,
    );
    check(r#""role":"user","tool_call_id":"c1","content":"x""#, r#"User Text "x""#);
}

#[test]
fn hidden_reasoning_and_signatures_seal_a_message() {
    for field in [
        r#""reasoning_content":"hm""#,
        r#""reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]"#,
        r#""thinking_blocks":[{"type":"thinking","thinking":"hm","signature":"s"}]"#,
        r#""extra_content":{"google":{"thought_signature":"s"}}"#,
        r#""provider_specific_fields":{"thought_signatures": ["s"]}"#,
        r#""audio":{"id":"audio_1"}"#,
        r#""tool_calls":[{"id":"c","function":{"name":"f","arguments":""},"extra_content":{"google":{"thought_signature":"s"}}}]"#,
        r#""tool_calls":[{"id":"c","function":{"name":"f","arguments":"","provider_specific_fields":{"thought_signature":"s"}}}]"#,
        r#""tool_calls":[{"id":"c__thought__c2ln","function":{"name":"f","arguments":""}}]"#,
        r#""content":[{"type":"thinking","thinking":"hm"}]"#,
        r#""content":[{"type":"text","text":"x","signature":"s"}]"#,
    ] {
        let body = format!(r#"{{"messages":[{{"role":"assistant",{field}}}]}}"#);
        let view = wire::read(body.as_bytes(), Dialect::Chat).expect(field);
        assert_eq!(view.items[0].seal, Seal::Signed, "{field}");
    }
}

#[test]
fn empty_fields_of_reasoning_seal_nothing() {
    for field in [
        r#""reasoning_content":null"#,
        r#""reasoning_content":"""#,
        r#""reasoning_details":[ ]"#,
        r#""extra_content":{"google":{"grounding":"x"}}"#,
        r#""provider_specific_fields":{"refusal":null,"reasoning_content": null, "thinking_blocks" : [] }"#,
        r#""annotations":[{"signature":"not looked into"}]"#,
        r#""audio":null"#,
    ] {
        let body = format!(r#"{{"messages":[{{"role":"assistant",{field}}}]}}"#);
        let view = wire::read(body.as_bytes(), Dialect::Chat).expect(field);
        assert_eq!(view.items[0].seal, Seal::Open, "{field}");
    }
}

#[test]
fn the_request_around_the_messages_is_read() {
    let body = r#" {"model":"gpt-test","stream":true,"n":2,"response_format":{"type":"json_schema","json_schema":{}},
        "tools":[{"type":"function","function":{"name":"find","description":"Finds","parameters":{"type": "object"},"strict":true}},
                 {"type":"custom","custom":{"name":"sql"}},{"type":"function","name":"flat","parameters":null},{"type":"web_search"},null],
        "functions":[{"name":"old","parameters":{}}],
        "messages" : [ ] , "unknown":{"messages":1} } "#;
    let view = wire::read(body.as_bytes(), Dialect::Chat).expect("readable");
    assert_eq!(view.model.as_deref(), Some("gpt-test"));
    assert!(view.stream && view.shaped_reply);
    assert_eq!(view.choices, 2);
    assert_eq!(&body[view.list.clone()], "[ ]");
    let tools: Vec<_> = view
        .tools
        .iter()
        .map(|tool| (tool.name.as_ref(), tool.description.as_deref(), tool.parameters.as_deref()))
        .collect();
    let expected = [
        ("find", Some("Finds"), Some(r#"{"type": "object"}"#)),
        ("sql", None, None),
        ("flat", None, None),
        ("web_search", None, None),
        ("old", None, Some("{}")),
    ];
    assert_eq!(tools, expected);
    assert_eq!(&body[view.tools[3].span.clone()], r#"{"type":"web_search"}"#);
}

#[test]
fn what_cannot_be_read_says_why() {
    assert_eq!(unreadable(""), Unreadable::NotJson(0));
    assert_eq!(unreadable(r#"{"messages":["#), Unreadable::NotJson(13));
    assert_eq!(unreadable(r#"{"messages":[]}x"#), Unreadable::NotJson(15));
    assert_eq!(unreadable("[]"), Unreadable::NotAnObject);
    assert_eq!(unreadable("{}"), Unreadable::NotAList("messages"));
    assert_eq!(unreadable(r#"{"messages":{"0":1}}"#), Unreadable::NotAList("messages"));
    assert_eq!(unreadable(r#"{"messages":["hi"]}"#), Unreadable::OddShape { key: "messages", at: 13 });
    assert_eq!(
        unreadable(r#"{"messages":[{"content":7}]}"#),
        Unreadable::OddShape { key: "content", at: 24 }
    );
    assert_eq!(
        unreadable(r#"{"messages":[{"tool_calls":[3]}]}"#),
        Unreadable::OddShape { key: "tool_calls", at: 28 }
    );
    assert_eq!(unreadable(&format!(r#"{{"x":{}"#, "[".repeat(200))), Unreadable::TooDeep);
    assert_eq!(wire::read(b"{\"a\":\"\xff\"}", Dialect::Chat).expect_err("bytes"), Unreadable::NotUtf8(6));
}

#[test]
fn a_key_that_comes_twice_makes_the_body_unreadable() {
    let check = |body: &str, wanted: &str| match unreadable(body) {
        Unreadable::DuplicateKey { key, at } => {
            assert_eq!(key, wanted);
            assert!(body[at..].starts_with('"'));
        }
        other => panic!("{body}: {other}"),
    };
    check(r#"{"messages":[],"messages":[]}"#, "messages");
    check(r#"{"messages":[],"m\u0065ssages":[]}"#, "messages");
    check(r#"{"tools":[],"messages":[],"tools":[]}"#, "tools");
    check(r#"{"messages":[{"role":"user","content":"a","role":"system"}]}"#, "role");
    check(r#"{"messages":[{"tool_calls":[{"function":{"name":"a","name":"b"}}]}]}"#, "name");
    check(r#"{"messages":[{"content":[{"text":"a","text":"b"}]}]}"#, "text");
    check(r#"{"messages":[],"tools":[{"function":{"name":"a","parameters":{},"name":"b"}}]}"#, "name");
    let unread = r#"{"messages":[{"role":"user","x":1,"x":2}],"seed":1,"seed":2}"#;
    assert!(wire::read(unread.as_bytes(), Dialect::Chat).is_ok());
}
