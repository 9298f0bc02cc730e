//! What a strict upstream checks of a Chat request body: pairing, order, ids,
//! the system slot, the forms of content. Each switch is a rule that some real
//! server has; a fault says where and what, never how a server would word it.

use std::fmt;

use serde_json::Value;

/// Which rules an upstream has beside those that all have.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one server's rule, on or off")]
pub(crate) struct Rules {
    /// Where system-type messages may stand.
    pub(crate) system: System,
    /// Whether the role `developer` is known.
    pub(crate) developer: bool,
    /// Whether content that is text alone may be a list of parts.
    pub(crate) parts: bool,
    /// Whether a message with calls may have no content.
    pub(crate) no_content: bool,
    /// The form of call ids.
    pub(crate) ids: Ids,
    /// Whether a user may speak directly after a tool.
    pub(crate) user_after_tool: bool,
    /// Whether user and assistant have to take turns.
    pub(crate) alternate: bool,
    /// Whether the list may end in an assistant message (a prefill).
    pub(crate) assistant_last: bool,
    /// Whether a user has to open the conversation.
    pub(crate) user_first: bool,
    /// Whether calls may stand only behind a user or a tool.
    pub(crate) calls_in_turn: bool,
    /// A field that the model put on its message with calls, and wants back: on the message, or on its first call.
    pub(crate) goes_back: GoesBack,
}

/// Where system-type messages may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    /// One at most, first.
    OneFirst,
    /// Several, but nothing before them.
    Leading,
    /// Anywhere.
    Anywhere,
    /// Nowhere: the chat template has no such role.
    Nowhere,
}

/// What a message with calls has to carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GoesBack {
    /// Nothing.
    Nothing,
    /// This field of the message.
    OnMessage(&'static str),
    /// This field of its first call.
    OnCall(&'static str),
}

/// The form of call ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    /// Any string of 1 to 40 bytes.
    UpToForty,
    /// Exactly nine letters or digits.
    NineAlphanumeric,
}

impl Rules {
    /// What every list that Seam sends has to keep, wherever it goes.
    pub(crate) const STRICT: Rules = Rules {
        system: System::OneFirst,
        developer: true,
        parts: true,
        no_content: true,
        ids: Ids::UpToForty,
        user_after_tool: true,
        alternate: false,
        assistant_last: false,
        user_first: false,
        calls_in_turn: false,
        goes_back: GoesBack::Nothing,
    };
}

/// One rule broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Where, e.g. `messages[3].tool_calls[0].id`.
    pub(crate) place: String,
    /// What is wrong with it.
    pub(crate) what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// All faults of a Chat request body, in the order of its messages.
pub(crate) fn faults(body: &Value, rules: Rules) -> Vec<Fault> {
    let mut faults = Faults::default();
    let Some(messages) = body.get("messages").and_then(Value::as_array) else {
        faults.add("messages", "has to be a list");
        return faults.0;
    };
    roles(messages, rules, &mut faults);
    pairing(messages, &mut faults);
    for (at, message) in messages.iter().enumerate() {
        content(message, at, rules, &mut faults);
        call_forms(message, at, rules, &mut faults);
        goes_back(message, at, rules, &mut faults);
    }
    tools(body, &mut faults);
    faults.0
}

#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, place: impl Into<String>, what: impl Into<String>) {
        self.0.push(Fault { place: place.into(), what: what.into() });
    }
}

fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

fn place(at: usize) -> String {
    format!("messages[{at}]")
}

fn roles(messages: &[Value], rules: Rules, faults: &mut Faults) {
    let mut spoken = false;
    let mut systems = 0;
    let mut before = "";
    for (at, message) in messages.iter().enumerate() {
        let role = role(message);
        match role {
            "developer" if !rules.developer => faults.add(place(at), "role developer is unknown"),
            "system" | "developer" => {
                systems += 1;
                match rules.system {
                    System::Nowhere => faults.add(place(at), "there is no system role"),
                    System::OneFirst if at > 0 || systems > 1 => {
                        faults.add(place(at), "a system message that is not the first message");
                    }
                    System::Leading if spoken => faults.add(place(at), "a system message behind others"),
                    _ => {}
                }
            }
            "user" if before == "tool" && !rules.user_after_tool => {
                faults.add(place(at), "a user message directly behind a tool message");
            }
            "user" | "assistant" if rules.alternate && before == role => {
                faults.add(place(at), format!("two {role} messages in a row"));
            }
            "assistant" | "tool" if (rules.alternate || rules.user_first) && !spoken => {
                faults.add(place(at), "the first turn is not the user's");
            }
            "assistant" if rules.calls_in_turn && before == role && !calls(message).is_empty() => {
                faults.add(place(at), "calls behind a message that is neither a user's nor a tool's");
            }
            "user" | "assistant" | "tool" | "function" => {}
            _ => faults.add(place(at), "an unknown role"),
        }
        spoken |= !matches!(role, "system" | "developer");
        before = role;
    }
    if !messages.iter().any(|message| role(message) == "user") {
        faults.add("messages", "no user message");
    }
    if before == "assistant" && !rules.assistant_last {
        faults.add(place(messages.len() - 1), "the last message is an assistant's");
    }
}

/// Every call has its result directly behind its message, and every result its call.
fn pairing(messages: &[Value], faults: &mut Faults) {
    let mut open: Vec<&str> = Vec::new();
    let mut asked_at = 0;
    let close = |open: &mut Vec<&str>, asked_at: usize, faults: &mut Faults| {
        for id in open.drain(..) {
            faults.add(place(asked_at), format!("call {id:?} has no result directly behind it"));
        }
    };
    for (at, message) in messages.iter().enumerate() {
        if matches!(role(message), "tool" | "function") {
            let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
            match open.iter().position(|waiting| *waiting == id) {
                Some(found) => drop(open.remove(found)),
                None => faults.add(place(at), format!("result {id:?} answers no call of the message before")),
            }
            continue;
        }
        close(&mut open, asked_at, faults);
        asked_at = at;
        open = calls(message)
            .iter()
            .map(|call| call.get("id").and_then(Value::as_str).unwrap_or_default())
            .collect();
        if message.get("function_call").is_some_and(|call| !call.is_null()) {
            open.push("");
        }
    }
    close(&mut open, asked_at, faults);
}

fn calls(message: &Value) -> &[Value] {
    message.get("tool_calls").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn content(message: &Value, at: usize, rules: Rules, faults: &mut Faults) {
    let place = format!("{}.content", place(at));
    let role = role(message);
    match message.get("content") {
        Some(Value::String(_)) => {}
        Some(Value::Array(parts)) if !rules.parts && parts.iter().all(|part| part["type"] == "text") => {
            faults.add(place, "has to be a string");
        }
        Some(Value::Array(parts)) if parts.is_empty() => faults.add(place, "has no part"),
        Some(Value::Array(parts)) => {
            for (index, part) in parts.iter().enumerate() {
                if !fits_role(part, role) {
                    faults
                        .add(format!("{place}[{index}]"), format!("no part that a {role} message may hold"));
                }
            }
        }
        None | Some(Value::Null) if role == "assistant" && !rules.no_content => {
            faults.add(place, "has to be a string");
        }
        None | Some(Value::Null) if role == "assistant" => {
            let says = ["function_call", "refusal", "audio"]
                .iter()
                .any(|key| message.get(key).is_some_and(|value| !value.is_null()));
            if calls(message).is_empty() && !says {
                faults.add(place, "an assistant message with neither content nor calls");
            }
        }
        _ => faults.add(place, "has to be a string or parts"),
    }
}

fn fits_role(part: &Value, role: &str) -> bool {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
    let text = part.get("text").is_some_and(Value::is_string);
    match kind {
        "text" => text,
        "refusal" => role == "assistant",
        "image_url" | "input_audio" | "file" => role == "user",
        _ => false,
    }
}

fn call_forms(message: &Value, at: usize, rules: Rules, faults: &mut Faults) {
    if message.get("tool_calls").is_some_and(|list| !list.is_null() && calls(message).is_empty()) {
        faults.add(format!("{}.tool_calls", place(at)), "has to be a list with a call in it");
    }
    for (index, call) in calls(message).iter().enumerate() {
        let place = format!("{}.tool_calls[{index}]", place(at));
        if role(message) != "assistant" {
            faults.add(&place, "only an assistant message may hold calls");
        }
        let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
        let fits = match rules.ids {
            Ids::UpToForty => (1..=40).contains(&id.len()),
            Ids::NineAlphanumeric => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        };
        if !fits {
            faults.add(format!("{place}.id"), format!("{id:?} is no call id here"));
        }
        let function = call.get("function");
        let name = function.and_then(|f| f.get("name")).and_then(Value::as_str).unwrap_or_default();
        if !is_tool_name(name) {
            faults.add(format!("{place}.function.name"), format!("{name:?} is no tool's name"));
        }
        if !function.and_then(|f| f.get("arguments")).is_some_and(Value::is_string) {
            faults.add(format!("{place}.function.arguments"), "has to be a string");
        }
    }
}

fn goes_back(message: &Value, at: usize, rules: Rules, faults: &mut Faults) {
    let Some(first) = calls(message).first() else { return };
    let (holder, field) = match rules.goes_back {
        GoesBack::Nothing => return,
        GoesBack::OnMessage(field) => (message, field),
        GoesBack::OnCall(field) => (first, field),
    };
    if holder.get(field).is_none_or(Value::is_null) {
        faults.add(place(at), format!("{field} did not come back with its calls"));
    }
}

fn is_tool_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

fn tools(body: &Value, faults: &mut Faults) {
    let list = match body.get("tools") {
        None | Some(Value::Null) => return,
        Some(Value::Array(list)) => list,
        Some(_) => return faults.add("tools", "has to be a list"),
    };
    for (index, tool) in list.iter().enumerate() {
        let Some(function) = tool.get("function") else { continue };
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        if !is_tool_name(name) {
            faults.add(format!("tools[{index}].function.name"), format!("{name:?} is no tool's name"));
        }
        let description = function.get("description").and_then(Value::as_str).unwrap_or_default();
        if description.chars().count() > 1024 {
            faults.add(format!("tools[{index}].function.description"), "longer than 1024 characters");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check_with(rules: Rules, messages: &Value, expected: &[&str]) {
        let found: Vec<String> =
            faults(&json!({ "messages": messages }), rules).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{messages}");
    }

    fn check(messages: &Value, expected: &[&str]) {
        check_with(Rules::STRICT, messages, expected);
    }

    fn call(id: &str) -> Value {
        json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}})
    }

    fn calling(ids: &[&str]) -> Value {
        json!({"role": "assistant", "content": null, "tool_calls": ids.iter().map(|id| call(id)).collect::<Vec<_>>()})
    }

    fn result(id: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": "x"})
    }

    fn says(role: &str) -> Value {
        json!({"role": role, "content": "x"})
    }

    #[test]
    fn a_sound_list_has_no_fault() {
        check(
            &json!([
                says("system"),
                says("user"),
                calling(&["a", "b"]),
                result("b"),
                result("a"),
                says("assistant"),
                {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {}}]},
                calling(&["a"]),
                result("a"),
            ]),
            &[],
        );
    }

    #[test]
    fn calls_and_results_stand_together() {
        check(
            &json!([says("user"), calling(&["a", "b"]), result("a"), says("user")]),
            &["messages[1]: call \"b\" has no result directly behind it"],
        );
        check(
            &json!([says("user"), calling(&["a"]), says("user"), result("a")]),
            &[
                "messages[1]: call \"a\" has no result directly behind it",
                "messages[3]: result \"a\" answers no call of the message before",
            ],
        );
        check(
            &json!([says("user"), calling(&["a"]), result("a"), result("a")]),
            &["messages[3]: result \"a\" answers no call of the message before"],
        );
        check(&json!([says("user"), calling(&["a", "a"]), result("a"), result("a")]), &[]);
        check(
            &json!([says("user"), calling(&["a"])]),
            &[
                "messages[1]: the last message is an assistant's",
                "messages[1]: call \"a\" has no result directly behind it",
            ],
        );
    }

    #[test]
    fn the_system_slot_is_one_message_and_the_first() {
        let second = json!([says("system"), says("system"), says("user")]);
        check(&second, &["messages[1]: a system message that is not the first message"]);
        check_with(Rules { system: System::Leading, ..Rules::STRICT }, &second, &[]);
        let late = json!([says("user"), says("developer")]);
        check(&late, &["messages[1]: a system message that is not the first message"]);
        check_with(
            Rules { system: System::Leading, ..Rules::STRICT },
            &late,
            &["messages[1]: a system message behind others"],
        );
        check_with(Rules { system: System::Anywhere, ..Rules::STRICT }, &late, &[]);
        check_with(
            Rules { developer: false, ..Rules::STRICT },
            &json!([says("developer"), says("user")]),
            &["messages[0]: role developer is unknown"],
        );
        check_with(
            Rules { system: System::Nowhere, ..Rules::STRICT },
            &json!([says("system"), says("user")]),
            &["messages[0]: there is no system role"],
        );
    }

    #[test]
    fn someone_asks_and_nobody_else_has_answered() {
        check(&json!([says("system")]), &["messages: no user message"]);
        check(
            &json!([says("user"), says("assistant")]),
            &["messages[1]: the last message is an assistant's"],
        );
        let rules = Rules { assistant_last: true, alternate: true, user_after_tool: false, ..Rules::STRICT };
        check_with(rules, &json!([says("user"), says("assistant")]), &[]);
        check_with(rules, &json!([says("user"), says("user")]), &["messages[1]: two user messages in a row"]);
        check_with(
            rules,
            &json!([says("assistant"), says("user")]),
            &["messages[0]: the first turn is not the user's"],
        );
        check_with(
            rules,
            &json!([says("user"), calling(&["a"]), result("a"), says("user")]),
            &["messages[3]: a user message directly behind a tool message"],
        );
    }

    #[test]
    fn content_has_the_form_its_role_allows() {
        check(
            &json!([says("user"), {"role": "assistant", "content": null}, says("user")]),
            &["messages[1].content: an assistant message with neither content nor calls"],
        );
        check(
            &json!([{"role": "user", "content": null}]),
            &["messages[0].content: has to be a string or parts"],
        );
        check(&json!([{"role": "user", "content": []}]), &["messages[0].content: has no part"]);
        check(
            &json!([says("user"), calling(&["a"]), {"role": "tool", "tool_call_id": "a", "content": [{"type": "image_url"}]}]),
            &["messages[2].content[0]: no part that a tool message may hold"],
        );
        check_with(
            Rules { parts: false, ..Rules::STRICT },
            &json!([{"role": "user", "content": [{"type": "text", "text": "x"}]}]),
            &["messages[0].content: has to be a string"],
        );
        check(&json!([says("user"), says("narrator")]), &["messages[1]: an unknown role"]);
    }

    #[test]
    fn calls_have_ids_names_and_arguments() {
        let nine = Rules { ids: Ids::NineAlphanumeric, ..Rules::STRICT };
        check_with(nine, &json!([says("user"), calling(&["abcDEF123"]), result("abcDEF123")]), &[]);
        check_with(
            nine,
            &json!([says("user"), calling(&["call_1"]), result("call_1")]),
            &["messages[1].tool_calls[0].id: \"call_1\" is no call id here"],
        );
        check(
            &json!([says("user"), {"role": "assistant", "content": "x", "tool_calls": []}, says("user")]),
            &["messages[1].tool_calls: has to be a list with a call in it"],
        );
        let odd = json!({"id": "a", "function": {"name": "look up", "arguments": {}}});
        check(
            &json!([says("user"), {"role": "assistant", "tool_calls": [odd]}, result("a")]),
            &[
                "messages[1].tool_calls[0].function.name: \"look up\" is no tool's name",
                "messages[1].tool_calls[0].function.arguments: has to be a string",
            ],
        );
    }

    #[test]
    fn tools_have_short_names_and_descriptions() {
        let tool =
            json!({"type": "function", "function": {"name": "look up", "description": "x".repeat(1025)}});
        let body = json!({"messages": [says("user")], "tools": [tool, {"type": "web_search"}]});
        let found: Vec<String> = faults(&body, Rules::STRICT).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "tools[0].function.name: \"look up\" is no tool's name",
                "tools[0].function.description: longer than 1024 characters",
            ]
        );
        assert_eq!(faults(&json!([]), Rules::STRICT)[0].place, "messages");
    }
}
