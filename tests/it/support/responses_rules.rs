//! What a strict upstream checks of a Responses request body: pairing by call
//! id, reasoning with what follows from it, the forms of ids and contents, and
//! what it says it has kept. A fault says where and what, never how a server
//! would word it.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::rules::Fault;

/// What an upstream has kept of earlier exchanges.
#[derive(Default)]
pub(crate) struct Kept {
    /// The conversation up to and including each reply, by the reply's id.
    replies: HashMap<String, Vec<Value>>,
    /// The conversations by their ids.
    conversations: HashMap<String, Vec<Value>>,
    /// The items that can be referred to, by their ids.
    items: HashMap<String, Value>,
    /// Everything that was ever made here, kept or not: what follows from which reasoning.
    made: HashMap<String, Made>,
}

/// How an item was made.
#[derive(Clone, Debug)]
struct Made {
    /// The item.
    item: Value,
    /// The reasoning items that it follows from.
    needs: Vec<String>,
    /// The item that follows from it directly, if it is reasoning.
    leads_to: Option<String>,
    /// The model that was asked.
    model: Value,
}

impl Kept {
    /// An exchange has gone well.
    pub(crate) fn note(&mut self, body: &Value, reply: &Value) {
        let output = list(&reply["output"]);
        let mut reasoning: Vec<String> = Vec::new();
        let mut open = false;
        for (at, item) in output.iter().enumerate() {
            let id = text(&item["id"]).to_owned();
            let is_reasoning = item["type"] == "reasoning";
            if is_reasoning && !open {
                reasoning.clear();
            }
            open = is_reasoning;
            let next = output.get(at + 1).map(|next| text(&next["id"]).to_owned());
            let (needs, leads_to) = if is_reasoning { (Vec::new(), next) } else { (reasoning.clone(), None) };
            if is_reasoning {
                reasoning.push(id.clone());
            }
            let model = body["model"].clone();
            self.made.insert(id, Made { item: item.clone(), needs, leads_to, model });
        }
        if body["store"] == false {
            return;
        }
        let conversation =
            self.conversation(body).into_iter().chain(output.iter().cloned()).collect::<Vec<_>>();
        if let Some(id) = conversation_id(body) {
            self.conversations.insert(id.to_owned(), conversation.clone());
        }
        self.replies.insert(text(&reply["id"]).to_owned(), conversation);
        for item in output {
            self.items.insert(text(&item["id"]).to_owned(), item.clone());
        }
    }

    /// All that the model would read as the conversation: what is kept, and the request's own items.
    fn conversation(&self, body: &Value) -> Vec<Value> {
        let before = self.replies.get(text(&body["previous_response_id"]));
        let before = before.or_else(|| self.conversations.get(conversation_id(body)?));
        let own = match &body["input"] {
            Value::String(said) => vec![serde_json::json!({"role": "user", "content": said})],
            own => list(own).to_vec(),
        };
        let own = own.into_iter().map(|item| match self.items.get(text(&item["id"])) {
            Some(kept) if item["type"] == "item_reference" => kept.clone(),
            _ => item,
        });
        before.cloned().unwrap_or_default().into_iter().chain(own).collect()
    }

    /// All faults of a request body, in the order of its items.
    pub(crate) fn faults(&self, body: &Value) -> Vec<Fault> {
        let mut faults = Faults::default();
        self.state(body, &mut faults);
        let whole = self.conversation(body);
        let own = whole.len() - own_length(body).min(whole.len());
        pairing(&whole, own, &mut faults);
        self.reasoning(body, &whole[own..], own, &mut faults);
        for (at, item) in whole.iter().enumerate().skip(own) {
            form(item, &place(at, own), &mut faults);
        }
        if !matches!(body["instructions"], Value::Null | Value::String(_) | Value::Array(_)) {
            faults.add("instructions", "has to be a string or items");
        }
        tools(body, &mut faults);
        faults.0
    }

    fn state(&self, body: &Value, faults: &mut Faults) {
        let previous = text(&body["previous_response_id"]);
        if !previous.is_empty() && conversation_id(body).is_some() {
            faults.add("previous_response_id", "cannot go with a conversation");
        }
        if !previous.is_empty() && !self.replies.contains_key(previous) {
            faults.add("previous_response_id", "404: there is no such reply");
        }
        if !matches!(body["input"], Value::Null | Value::String(_) | Value::Array(_)) {
            faults.add("input", "has to be a string or items");
        }
        for (at, item) in list(&body["input"]).iter().enumerate() {
            let id = text(&item["id"]);
            let refers = item["type"] == "item_reference";
            if refers && !self.items.contains_key(id) {
                faults.add(format!("input[{at}]"), format!("404: there is no item {id:?}"));
            }
            let bare = item["type"] == "reasoning" && text(&item["encrypted_content"]).is_empty();
            if bare && !self.items.contains_key(id) {
                faults.add(format!("input[{at}]"), format!("404: there is no reasoning {id:?}"));
            }
        }
    }

    /// Reasoning stands before what follows from it, and what follows from reasoning behind it.
    fn reasoning(&self, body: &Value, items: &[Value], own: usize, faults: &mut Faults) {
        let there: HashSet<&str> = items.iter().map(|item| text(&item["id"])).collect();
        for (at, item) in items.iter().enumerate() {
            let place = place(at + own, own);
            let Some(made) = self.made.get(text(&item["id"])) else { continue };
            for id in made.needs.iter().filter(|id| !there.contains(id.as_str())) {
                faults.add(&place, format!("without its required reasoning {id:?}"));
            }
            if item["type"] != "reasoning" {
                continue;
            }
            if made.model != body["model"] {
                faults.add(&place, "encrypted for another model");
            }
            let next = items.get(at + 1).map(|next| text(&next["id"]));
            if made.leads_to.as_deref() != next {
                faults.add(&place, "without its required following item");
            }
            if item["encrypted_content"] != made.item["encrypted_content"] {
                faults.add(&place, "its encrypted content is not what was given out");
            }
        }
        for (at, item) in items.iter().enumerate().filter(|(_, item)| item["type"] == "reasoning") {
            if !item["summary"].is_array() {
                faults.add(place(at + own, own), "reasoning without a summary");
            }
        }
    }
}

#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, place: impl Into<String>, what: impl Into<String>) {
        self.0.push(Fault { place: place.into(), what: what.into() });
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn conversation_id(body: &Value) -> Option<&str> {
    body["conversation"].as_str().or_else(|| body["conversation"]["id"].as_str())
}

fn own_length(body: &Value) -> usize {
    if body["input"].is_string() { 1 } else { list(&body["input"]).len() }
}

fn place(at: usize, own: usize) -> String {
    if at < own { "what is kept".to_owned() } else { format!("input[{}]", at - own) }
}

fn is_call(item: &Value) -> bool {
    matches!(text(&item["type"]), "function_call" | "custom_tool_call")
}

fn is_result(item: &Value) -> bool {
    matches!(text(&item["type"]), "function_call_output" | "custom_tool_call_output")
}

/// Every call has one result behind it, and every result its call before it.
fn pairing(items: &[Value], own: usize, faults: &mut Faults) {
    let mut open: Vec<(usize, &str)> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let id = text(&item["call_id"]);
        if is_call(item) {
            open.push((at, id));
        } else if is_result(item) {
            match open.iter().position(|(_, waiting)| *waiting == id) {
                Some(found) => drop(open.remove(found)),
                None => faults.add(place(at, own), format!("no call for the result {id:?}")),
            }
        }
    }
    for (at, id) in open {
        faults.add(place(at, own), format!("no result for the call {id:?}"));
    }
}

/// The forms of ids, names and contents.
fn form(item: &Value, place: &str, faults: &mut Faults) {
    let kind = text(&item["type"]);
    let role = text(&item["role"]);
    let prefix = match kind {
        "function_call" => "fc_",
        "custom_tool_call" => "ctc_",
        "reasoning" => "rs_",
        "" | "message" => "msg_",
        _ => "",
    };
    if let Some(id) = item.get("id").filter(|id| !id.is_null())
        && !text(id).starts_with(prefix)
    {
        faults.add(format!("{place}.id"), format!("has to begin with {prefix:?}"));
    }
    if (is_call(item) || is_result(item)) && !(1..=64).contains(&text(&item["call_id"]).len()) {
        faults.add(format!("{place}.call_id"), "has to be of 1 to 64 bytes");
    }
    let calls = item["arguments"].is_string() && !text(&item["name"]).is_empty();
    if kind == "function_call" && !calls {
        faults.add(place, "a call needs a name and arguments");
    }
    if is_result(item) && !(item["output"].is_string() || fits(&item["output"], "user")) {
        faults.add(format!("{place}.output"), "has to be a string or parts");
    }
    if matches!(kind, "" | "message") {
        if !matches!(role, "user" | "assistant" | "system" | "developer") {
            faults.add(place, "an unknown role");
        } else if !(item["content"].is_string() || fits(&item["content"], role)) {
            faults.add(format!("{place}.content"), format!("no content that a {role} message may have"));
        }
    }
}

fn fits(content: &Value, role: &str) -> bool {
    let fits_role = |part: &Value| match text(&part["type"]) {
        "output_text" => role == "assistant" && part["text"].is_string(),
        "refusal" => role == "assistant",
        "input_text" => role != "assistant" && part["text"].is_string(),
        "input_image" | "input_file" | "input_audio" => role == "user",
        _ => false,
    };
    content.as_array().is_some_and(|parts| !parts.is_empty() && parts.iter().all(fits_role))
}

fn tools(body: &Value, faults: &mut Faults) {
    for (index, tool) in list(&body["tools"]).iter().enumerate() {
        if tool["type"] == "function" && (text(&tool["name"]).is_empty() || !tool["parameters"].is_object()) {
            faults.add(format!("tools[{index}]"), "needs a name and parameters, beside its type");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(kept: &Kept, body: &Value, expected: &[&str]) {
        let found: Vec<String> = kept.faults(body).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{body}");
    }

    fn call(id: &str) -> Value {
        json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "look", "arguments": "{}"})
    }

    fn result(id: &str) -> Value {
        json!({"type": "function_call_output", "call_id": id, "output": "x"})
    }

    fn user() -> Value {
        json!({"role": "user", "content": "x"})
    }

    fn reasoning(id: &str) -> Value {
        json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "gAA="})
    }

    #[test]
    fn a_sound_request_has_no_fault() {
        let kept = Kept::default();
        check(&kept, &json!({"input": "hi", "instructions": "x"}), &[]);
        check(
            &kept,
            &json!({"input": [user(), call("a"), call("b"), result("b"), result("a"), user()]}),
            &[],
        );
    }

    #[test]
    fn calls_and_results_pair_by_call_id_anywhere() {
        let kept = Kept::default();
        check(&kept, &json!({"input": [call("a"), user(), result("a")]}), &[]);
        check(&kept, &json!({"input": [call("a"), user()]}), &["input[0]: no result for the call \"a\""]);
        check(
            &kept,
            &json!({"input": [result("a"), call("a")]}),
            &["input[0]: no call for the result \"a\"", "input[1]: no result for the call \"a\""],
        );
    }

    #[test]
    fn reasoning_and_what_follows_from_it_stand_together() {
        let mut kept = Kept::default();
        kept.note(
            &json!({"input": "x", "store": false}),
            &json!({"id": "resp_1", "output": [reasoning("rs_1"), call("a"), call("b")]}),
        );
        let (a, b) = ([call("a"), result("a")], [call("b"), result("b")]);
        let both = [call("a"), call("b"), result("a"), result("b")];
        let with = |items: &[Value]| json!({"input": ([&[reasoning("rs_1")][..], items].concat())});
        check(&kept, &with(&both), &[]);
        check(&kept, &json!({"input": a}), &["input[0]: without its required reasoning \"rs_1\""]);
        check(&kept, &with(&b), &["input[0]: without its required following item"]);
        check(&kept, &with(&[]), &["input[0]: without its required following item"]);
        let mut other = with(&both);
        other["input"][0]["encrypted_content"] = "gAB=".into();
        check(&kept, &other, &["input[0]: its encrypted content is not what was given out"]);
        other["input"][0] = json!({"type": "reasoning", "id": "rs_9", "encrypted_content": "x"});
        let found = kept.faults(&other);
        assert!(found.iter().any(|fault| fault.what == "reasoning without a summary"), "{found:?}");
    }

    #[test]
    fn what_is_not_kept_is_not_found() {
        let mut kept = Kept::default();
        let reference = json!({"input": [{"type": "item_reference", "id": "msg_1"}, user()]});
        let goes_on = json!({"input": [user()], "previous_response_id": "resp_1"});
        let reply = json!({"id": "resp_1", "output": [
            {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}, call("a")]});
        kept.note(&json!({"input": "x", "store": false}), &reply);
        check(&kept, &reference, &["input[0]: 404: there is no item \"msg_1\""]);
        check(&kept, &goes_on, &["previous_response_id: 404: there is no such reply"]);
        kept.note(&json!({"input": "x"}), &reply);
        check(&kept, &reference, &[]);
        check(&kept, &goes_on, &["what is kept: no result for the call \"a\""]);
        check(&kept, &json!({"input": [result("a")], "previous_response_id": "resp_1"}), &[]);
        check(
            &kept,
            &json!({"input": [result("a")], "previous_response_id": "resp_1", "conversation": "conv_1"}),
            &["previous_response_id: cannot go with a conversation"],
        );
    }

    #[test]
    fn ids_and_contents_have_their_forms() {
        let kept = Kept::default();
        let mut odd = call("a");
        odd["id"] = "call_a".into();
        check(&kept, &json!({"input": [odd, result("a")]}), &["input[0].id: has to begin with \"fc_\""]);
        check(
            &kept,
            &json!({"input": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}),
            &["input[0].content: no content that a user message may have"],
        );
        check(
            &kept,
            &json!({"input": "x", "tools": [{"type": "function", "function": {"name": "f"}}]}),
            &["tools[0]: needs a name and parameters, beside its type"],
        );
    }
}
