//! Makes the request that asks the same agent once more: the one that went up,
//! with the agent's reply and an answer to each of its calls behind it.

use bytes::Bytes;

use super::edit::splice;
use super::json::quote;
use super::object::with_element;
use super::{Unreadable, chat_document, responses_resubmit, utf8};
use crate::engine::reply::Reply;
use crate::engine::view::{Dialect, Span, View};

/// Whether the agent behind this request can be asked once more, as far as the request says.
pub fn can_ask_again(view: &View<'_>) -> bool {
    // A stored conversation has the reply in it already, and one in the background has not been made.
    view.choices == 1 && view.server_state.conversation.is_none() && !view.server_state.background
}

/// What a plain reply says, as a request repeats it: a message, or where a reply is several items, their list.
/// None where it cannot be repeated.
pub fn message_of(body: &[u8], dialect: Dialect) -> Option<String> {
    let body = utf8(body).ok()?;
    match dialect {
        Dialect::Chat => chat_document::first_said(body).map(str::to_owned),
        Dialect::Responses => responses_resubmit::message_of(body),
    }
}

/// The request with `message` and one answer a call behind its list. None where it cannot be made: a call
/// without an id cannot be answered, nor one of a kind that takes no text.
pub fn resubmission(
    body: &[u8],
    dialect: Dialect,
    message: &str,
    reply: &Reply,
    answers: &[String],
) -> Result<Option<Bytes>, Unreadable> {
    let view = super::read(body, dialect)?;
    let nameless = reply.calls.iter().any(|call| call.id.is_empty());
    if !can_ask_again(&view) || nameless || reply.calls.len() != answers.len() || reply.calls.is_empty() {
        return Ok(None);
    }
    if dialect == Dialect::Responses {
        let body = utf8(body)?;
        return Ok(responses_resubmit::resubmission(body, &view, message, reply, answers).map(Bytes::from));
    }
    let list = utf8(body)?.get(view.list.clone()).unwrap_or_default();
    let mut grown = with_element(list, message);
    for (call, answer) in reply.calls.iter().zip(answers) {
        grown = grown.and_then(|list| with_element(&list, &result(&call.id, answer)));
    }
    let edit = |list: String| -> (Span, Vec<u8>) { (view.list.clone(), list.into_bytes()) };
    Ok(grown.map(|list| splice(body, vec![edit(list)]).into()))
}

fn result(id: &str, text: &str) -> String {
    let mut out = br#"{"role":"tool","tool_call_id":"#.to_vec();
    quote(id, &mut out);
    out.extend_from_slice(br#","content":"#);
    quote(text, &mut out);
    out.push(b'}');
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::reply::ReplyCall;

    #[test]
    fn the_request_is_repeated_with_the_reply_and_its_answers() {
        let call = |id: &str| ReplyCall { id: id.into(), name: "f".into(), ..ReplyCall::default() };
        let reply = Reply { calls: vec![call("a"), call("b")], ..Reply::default() };
        let body = r#"{"messages": [ {"role":"user","content":"hi"} ], "stream":true}"#;
        let grown = |reply: &Reply, answers: &[&str]| {
            let answers: Vec<String> = answers.iter().map(|answer| (*answer).to_owned()).collect();
            let out =
                resubmission(body.as_bytes(), Dialect::Chat, r#"{"role":"assistant"}"#, reply, &answers);
            out.expect("a request").map(|bytes| String::from_utf8(bytes.to_vec()).expect("UTF-8"))
        };
        let expected = r#"{"messages": [ {"role":"user","content":"hi"},{"role":"assistant"},{"role":"tool","tool_call_id":"a","content":"\"No\""},{"role":"tool","tool_call_id":"b","content":"No"}], "stream":true}"#;
        assert_eq!(grown(&reply, &["\"No\"", "No"]).as_deref(), Some(expected));
        assert_eq!(grown(&reply, &["No"]), None);
        let nameless = Reply { calls: vec![call("")], ..Reply::default() };
        assert_eq!(grown(&nameless, &["No"]), None);
    }
}
