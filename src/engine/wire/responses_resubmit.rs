//! Makes the Responses request that asks the same agent once more. What the
//! agent replied goes back as the bytes it was, hidden reasoning with it.

use super::edit::elements;
use super::object::{has_member, member, with_element, with_member, without_member};
use super::responses_document::{Whose, kind_of, output, quoted, whose};
use super::responses_item::EntryKind;
use crate::engine::reply::Reply;
use crate::engine::view::View;

/// The list of a reply's items; none where it has none.
pub(super) fn message_of(reply: &str) -> Option<String> {
    output(reply).map(|items| format!("[{}]", items.join(",")))
}

/// The request with the reply's items and one answer a call behind its list, or where the upstream is known to
/// keep replies, one that goes on from the reply.
pub(super) fn resubmission(
    body: &str,
    view: &View<'_>,
    message: &str,
    reply: &Reply,
    answers: &[String],
) -> Option<String> {
    let items: Vec<&str> =
        elements(message, 0).ok()?.into_iter().filter_map(|span| message.get(span)).collect();
    let mut results = Vec::with_capacity(answers.len());
    for (item, whose) in items.iter().zip(whose(&items, reply)) {
        match whose {
            Whose::Call(call) => {
                let known = reply.calls.get(call)?;
                results.push(result(kind_of(item)?, member(item, "type")?, &known.id, answers.get(call)?)?);
            }
            Whose::Twin(_) => return None,
            Whose::Nobody => {}
        }
    }
    if results.len() != answers.len() {
        return None;
    }
    let stores = view.server_state.stores;
    if view.server_state.previous.is_some() && stores && !reply.id.is_empty() {
        let input = format!("[{}]", results.join(","));
        return with_member(&with_member(body, "previous_response_id", &quoted(&reply.id))?, "input", &input);
    }
    let given = body.get(view.list.clone()).unwrap_or_default();
    let mut list = match given.as_bytes().first() {
        Some(b'"') => with_element("[]", &format!(r#"{{"role":"user","content":{given}}}"#))?,
        Some(_) => given.to_owned(),
        None => "[]".to_owned(),
    };
    let kept = items.iter().filter_map(|item| if stores { Some((*item).to_owned()) } else { unkept(item) });
    for item in kept.chain(results) {
        list = with_element(&list, &item)?;
    }
    with_member(body, "input", &list)
}

/// What answers a call of this kind; none where a text does not.
fn result(kind: EntryKind, written: &str, id: &str, answer: &str) -> Option<String> {
    let kind = match (kind, written) {
        (EntryKind::Call, r#""function_call""#) => "function_call_output",
        (EntryKind::FreeCall, _) => "custom_tool_call_output",
        _ => return None,
    };
    Some(format!(r#"{{"type":"{kind}","call_id":{},"output":{}}}"#, quoted(id), quoted(answer)))
}

/// An item that the upstream has not kept, as a request repeats it: without its id, which names nothing there.
/// None for hidden reasoning that nobody could read again.
fn unkept(item: &str) -> Option<String> {
    let is_reasoning = kind_of(item) == Some(EntryKind::Reasoning);
    let readable = ["encrypted_content", "content"]
        .iter()
        .any(|name| has_member(item, name) && !matches!(member(item, name), Some("null" | r#""""# | "[]")));
    if is_reasoning && !readable {
        return None;
    }
    without_member(item, "id").map(|(bare, _)| bare)
}

#[cfg(test)]
mod tests {
    use crate::engine::reply::{Reply, ReplyCall};
    use crate::engine::view::Dialect;
    use crate::engine::wire::resubmission;

    const THOUGHT: &str = r#"{"id":"rs_1", "type":"reasoning","summary":[],"encrypted_content":"gA=="}"#;
    const CALL: &str = r#"{"type":"function_call", "id":"fc_1","call_id":"c1","name":"f","arguments":"{}"}"#;
    const ANSWER: &str = r#"{"type":"function_call_output","call_id":"c1","output":"\"No\""}"#;

    /// The request for a reply of these items, whose call is answered; none where there is none.
    #[track_caller]
    fn check(request: &str, items: &[&str], expected: Option<&str>) {
        let call = ReplyCall { id: "c1".into(), name: "f".into(), ..ReplyCall::default() };
        let reply = Reply { id: "resp_1".into(), calls: vec![call], ..Reply::default() };
        let message = format!("[{}]", items.join(","));
        let got = resubmission(request.as_bytes(), Dialect::Responses, &message, &reply, &["\"No\"".into()]);
        let got = got.expect("a request").map(|bytes| String::from_utf8(bytes.to_vec()).expect("UTF-8"));
        assert_eq!(got.as_deref(), expected, "{request}");
    }

    #[test]
    fn a_list_grows_by_the_reply_and_its_answer() {
        check(
            r#"{"input": [ {"role":"user","content":"hi"} ], "tools":[]}"#,
            &[THOUGHT, CALL],
            Some(&format!(
                r#"{{"input": [ {{"role":"user","content":"hi"}},{THOUGHT},{CALL},{ANSWER}], "tools":[]}}"#
            )),
        );
        check(
            r#"{"input" : "hi","stream":true}"#,
            &[CALL],
            Some(&format!(
                r#"{{"input" : [{{"role":"user","content":"hi"}},{CALL},{ANSWER}],"stream":true}}"#
            )),
        );
        check(r#"{"model":"m"}"#, &[CALL], Some(&format!(r#"{{"model":"m","input":[{CALL},{ANSWER}]}}"#)));
    }

    #[test]
    fn what_was_not_kept_goes_back_without_an_id() {
        let thought = r#"{"type":"reasoning","summary":[],"encrypted_content":"gA=="}"#;
        let call = r#"{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}"#;
        let dark = r#"{"type":"reasoning","id":"rs_0","summary":[]}"#;
        check(
            r#"{"store":false,"input":[]}"#,
            &[dark, THOUGHT, CALL],
            Some(&format!(r#"{{"store":false,"input":[{thought},{call},{ANSWER}]}}"#)),
        );
    }

    #[test]
    fn a_request_that_goes_on_from_a_reply_goes_on_from_this_one() {
        check(
            r#"{"previous_response_id":"resp_0", "instructions":"x","input":[{"role":"user","content":"hi"}]}"#,
            &[THOUGHT, CALL],
            Some(&format!(r#"{{"previous_response_id":"resp_1", "instructions":"x","input":[{ANSWER}]}}"#)),
        );
        check(
            r#"{"previous_response_id":"resp_0","store":false,"input":"hi"}"#,
            &[THOUGHT, r#"{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}"#],
            Some(&format!(
                r#"{{"previous_response_id":"resp_0","store":false,"input":[{},{},{},{ANSWER}]}}"#,
                r#"{"role":"user","content":"hi"}"#,
                r#"{"type":"reasoning","summary":[],"encrypted_content":"gA=="}"#,
                r#"{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}"#,
            )),
        );
    }

    #[test]
    fn what_cannot_be_answered_is_not_asked_again() {
        check(r#"{"conversation":"conv_1","input":[]}"#, &[CALL], None);
        check(r#"{"background":true,"input":[]}"#, &[CALL], None);
        check(r#"{"input":[]}"#, &[], None);
        check(r#"{"input":[]}"#, &[r#"{"type":"shell_call","call_id":"c1","name":"f"}"#], None);
        check(r#"{"input":[]}"#, &[CALL, r#"{"type":"function_call","call_id":"c2","name":"g"}"#], None);
    }

    #[test]
    fn a_custom_call_gets_an_answer_of_its_kind() {
        let call = r#"{"type":"custom_tool_call","call_id":"c1","name":"f","input":"x"}"#;
        check(
            r#"{"input":[]}"#,
            &[call],
            Some(&format!(r#"{{"input":[{call},{}]}}"#, ANSWER.replace("function_call", "custom_tool_call"))),
        );
    }
}
