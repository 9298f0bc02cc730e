use proptest::prelude::*;

use super::*;
use crate::engine::profile::{AfterResult, Neighbours, Opening, Standing};
use crate::engine::view::{Dialect, Keep, Plan};
use crate::engine::wire;

fn check(messages: &str, profile: Profile, expected: &str) {
    let body = format!(r#"{{"n":1, "messages":{messages} ,"x":1.0}}"#);
    let view = wire::read(body.as_bytes(), Dialect::Chat).expect("readable");
    let plan = Plan { brief: Some("B".into()), brief_after: carrier(&view), profile, ..Plan::default() };
    let out = wire::apply(body.as_bytes(), &view, &plan);
    let expected = format!(r#"{{"n":1, "messages":{expected} ,"x":1.0}}"#);
    assert_eq!(std::str::from_utf8(&out).expect("UTF-8"), expected);
}

fn carrier(view: &View<'_>) -> Option<usize> {
    view.leading_system().checked_sub(1)
}

const PLAIN: Profile = Profile {
    system: Standing::AsSent,
    developer: Developer::AsSent,
    content: Content::AsSent,
    ids: Ids::AsSent,
    neighbours: Neighbours::AsSent,
    after_result: AfterResult::Anybody,
    opening: Opening::Anybody,
};

#[test]
fn one_first_folds_every_system_text_in_order_and_the_brief_ends_it() {
    let profile = Profile { system: Standing::OneFirst, ..PLAIN };
    check(
        r#"[{"role":"system","content":"\u0041","k":1},{"role":"system","content":"b"}, {"role":"user","content":"u"},{"role":"system","content":"c"}]"#,
        profile,
        r#"[{"role":"system","content":"\u0041\n\nb\n\nc\n\nB","k":1},{"role":"user","content":"u"}]"#,
    );
    // A mark on a part stays on its part.
    check(
        r#"[{"role":"system","content":[{"type":"text","text":"a","cache_control":{}}]},{"role":"user","content":"u"},{"role":"system","content":"c"}]"#,
        profile,
        r#"[{"role":"system","content":[{"type":"text","text":"a","cache_control":{}},{"type":"text","text":"c"},{"type":"text","text":"B"}]},{"role":"user","content":"u"}]"#,
    );
    check(
        r#"[{"role":"user","content":"u"}]"#,
        profile,
        r#"[{"role":"system","content":"B"},{"role":"user","content":"u"}]"#,
    );
}

#[test]
fn without_a_system_role_the_instructions_open_the_first_user_turn() {
    let profile = Profile { system: Standing::InUserTurn, ..PLAIN };
    check(
        r#"[{"role":"system","content":"a"},{"role":"user","content":"u","name":"ida"},{"role":"user","content":"v"}]"#,
        profile,
        r#"[{"role":"user","content":"a\n\nB\n\n---\n\nu","name":"ida"},{"role":"user","content":"v"}]"#,
    );
    check(
        r#"[{"role":"system","content":"a"},{"role":"user","content":[{"type":"image_url","image_url":{}}]}]"#,
        profile,
        r#"[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"B"},{"type":"text","text":"---"},{"type":"image_url","image_url":{}}]}]"#,
    );
    check(
        r#"[{"role":"system","content":"a"},{"role":"assistant","content":"Hello."},{"role":"user","content":"u"}]"#,
        profile,
        r#"[{"role":"user","content":"a\n\nB"},{"role":"assistant","content":"Hello."},{"role":"user","content":"u"}]"#,
    );
    check(r#"[{"role":"system","content":"a"}]"#, profile, r#"[{"role":"user","content":"a\n\nB"}]"#);
}

#[test]
fn a_developer_becomes_system_where_that_is_all_that_is_known() {
    check(
        r#"[{"content":"a","role":"developer"},{"role":"user","content":"developer"}]"#,
        Profile { developer: Developer::AsSystem, ..PLAIN },
        r#"[{"content":"a\n\nB","role":"system"},{"role":"user","content":"developer"}]"#,
    );
}

#[test]
fn parts_of_text_become_one_string_and_pictures_stay_parts() {
    check(
        r#"[{"role":"system","content":[{"type":"text","text":"a"}]},{"role":"user","content":[{"type":"text","text":"\"u\""},{"type":"text","text":"v"}]},{"role":"user","content":[{"type":"image_url","image_url":{}}]}]"#,
        Profile { content: Content::String, ..PLAIN },
        r#"[{"role":"system","content":"a\nB"},{"role":"user","content":"\"u\"\nv"},{"role":"user","content":[{"type":"image_url","image_url":{}}]}]"#,
    );
    check(
        r#"[{"role":"system","content":"a"},{"role":"assistant","content":null},{"role":"assistant"}]"#,
        Profile { content: Content::String, ..PLAIN },
        r#"[{"role":"system","content":"a\n\nB"},{"role":"assistant","content":""},{"role":"assistant","content":""}]"#,
    );
}

#[test]
fn ids_are_nine_letters_or_digits_on_both_sides() {
    let body = r#"{"messages":[{"role":"user","content":"u"},{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"id","arguments":"{\"id\":\"call_1\"}"}},{"type":"function","id":"abcDEF123","function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"call_1","content":"call_1"},{"role":"tool","tool_call_id":"abcDEF123","content":"y"}]}"#;
    let view = wire::read(body.as_bytes(), Dialect::Chat).expect("readable");
    let plan = Plan { profile: Profile { ids: Ids::Nine, ..PLAIN }, ..Plan::default() };
    let out = wire::apply(body.as_bytes(), &view, &plan);
    let out = std::str::from_utf8(&out).expect("UTF-8");
    let read = wire::read(out.as_bytes(), Dialect::Chat).expect("readable");
    let id = read.items[1].calls[0].id.to_string();
    assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
    let expected = body
        .replace(r#""id":"call_1","type""#, &format!(r#""id":"{id}","type""#))
        .replace(r#""tool_call_id":"call_1""#, &format!(r#""tool_call_id":"{id}""#));
    assert_eq!(out, expected);
}

#[test]
fn neighbours_are_joined_with_a_line_between_them() {
    let join = Profile { neighbours: Neighbours::Join, ..PLAIN };
    check(
        r#"[{"role":"system","content":"s"},{"role":"user","content":"a","k":1},{"role":"user","content":"b","name":"triage"},{"role":"assistant","content":"c"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"r"},{"role":"assistant","content":"d"}]"#,
        join,
        r#"[{"role":"system","content":"s\n\nB"},{"role":"user","content":"a\n\n---\n\ntriage: b","k":1},{"role":"assistant","content":"c","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"r"},{"role":"assistant","content":"d"}]"#,
    );
    // Two that carry hidden reasoning of their own stay two.
    let signed = r#"[{"role":"system","content":"s\n\nB"},{"role":"user","content":"u"},{"role":"assistant","content":"a","reasoning_content":"r"},{"role":"assistant","content":"b","reasoning_content":"q"}]"#;
    check(&signed.replace("\\n\\nB", ""), join, signed);
    let calls = Profile { neighbours: Neighbours::JoinCalls, ..PLAIN };
    check(
        r#"[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c"},{"role":"assistant","content":"d"},{"role":"assistant","content":"e","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}]"#,
        calls,
        r#"[{"role":"system","content":"s\n\nB"},{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c\n\n---\n\nd\n\n---\n\ne","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}]"#,
    );
}

#[test]
fn somebody_speaks_where_the_server_wants_somebody() {
    check(
        r#"[{"role":"system","content":"s"},{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"r"},{"role":"user","content":"u"}]"#,
        Profile { after_result: AfterResult::Assistant, opening: Opening::User, ..PLAIN },
        r#"[{"role":"system","content":"s\n\nB"},{"role":"user","content":"(The conversation begins.)"},{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"r"},{"role":"assistant","content":"Noted."},{"role":"user","content":"u"}]"#,
    );
}

fn profile() -> impl Strategy<Value = Profile> {
    use prop::sample::select;
    (
        select(vec![Standing::AsSent, Standing::OneFirst, Standing::InUserTurn]),
        any::<[bool; 4]>(),
        select(vec![Neighbours::AsSent, Neighbours::JoinCalls, Neighbours::Join]),
        any::<bool>(),
    )
        .prop_map(|(system, [developer, content, ids, after], neighbours, opening)| Profile {
            system,
            developer: if developer { Developer::AsSystem } else { Developer::AsSent },
            content: if content { Content::String } else { Content::AsSent },
            ids: if ids { Ids::Nine } else { Ids::AsSent },
            neighbours,
            after_result: if after { AfterResult::Assistant } else { AfterResult::Anybody },
            opening: if opening { Opening::User } else { Opening::Anybody },
        })
}

fn message() -> impl Strategy<Value = String> {
    let quoted = |text: String| serde_json::Value::from(text).to_string();
    let content = prop_oneof![
        Just("null".to_owned()),
        any::<String>().prop_map(quoted),
        prop::collection::vec(any::<String>(), 1..3).prop_map(move |texts| {
            let parts: Vec<String> = texts
                .into_iter()
                .map(|text| format!(r#"{{"type":"text","text":{}}}"#, serde_json::Value::from(text)))
                .collect();
            format!("[{}]", parts.join(","))
        }),
    ];
    let role = prop::sample::select(vec!["system", "developer", "user", "assistant", "tool"]);
    (role, content, "[a-z_0-9]{1,12}").prop_map(|(role, content, id)| match role {
        "assistant" if id.len() % 2 == 0 => format!(
            r#"{{"role":"assistant","content":{content},"tool_calls":[{{"id":"{id}","function":{{"name":"f","arguments":"{{}}"}}}}]}}"#
        ),
        "tool" => format!(r#"{{"role":"tool","content":{content},"tool_call_id":"{id}"}}"#),
        role => format!(r#"{{"role":"{role}","content":{content},"u":1.50}}"#),
    })
}

proptest! {
    #[test]
    fn every_word_and_call_stays_in_order_and_fitting_twice_is_fitting_once(
        messages in prop::collection::vec(message(), 1..9),
        profile in profile(),
    ) {
        let body = format!(r#"{{"messages":[{}],"seed":1E2}}"#, messages.join(", "));
        let view = wire::read(body.as_bytes(), Dialect::Chat).expect("generated");
        let keep = vec![Keep::Whole; view.items.len()];
        let plan = Plan { keep, profile, ..Plan::default() };
        let once = wire::apply(body.as_bytes(), &view, &plan);
        let read = wire::read(&once, Dialect::Chat).expect("fitted");
        prop_assert_eq!(read.items.iter().map(|item| item.calls.len()).sum::<usize>(),
            view.items.iter().map(|item| item.calls.len()).sum::<usize>());
        let said: String = read.items.iter().filter(|item| item.role != Role::System).map(|item| item.text.as_ref()).collect::<Vec<_>>().join("\u{0}");
        let mut from = 0;
        for item in view.items.iter().filter(|item| item.role != Role::System && !item.text.is_empty()) {
            let at = said[from..].find(item.text.as_ref());
            prop_assert!(at.is_some(), "{:?} is gone", item.text);
            from += at.unwrap_or_default() + item.text.len();
        }
        if profile.system == Standing::OneFirst {
            prop_assert!(read.items.iter().skip(1).all(|item| item.role != Role::System));
        }
        let again = Plan { profile, ..Plan::default() };
        prop_assert_eq!(wire::apply(&once, &read, &again), once.clone());
    }
}
