//! Reads a Responses reply that came as one body, and the same object where it
//! stands in the events of a stream.

use std::borrow::Cow;

use super::Unreadable;
use super::json::{self, Cursor, Fault, Kind};
use super::reply_parts::{error, usage};
use super::responses_item::{Entry, EntryKind, entry};
use crate::engine::reply::{Finish, Reply, ReplyCall, ReplyError, ReplyReasoning, Usage};

/// Reads the body. A body that reports an error is a reply too.
pub(super) fn read(body: &str) -> Result<Reply, Unreadable> {
    let mut cursor = Cursor::new(body);
    let object = object(&mut cursor)?.ok_or(Unreadable::NotAnObject)?;
    cursor.end()?;
    if object.output.is_none() && object.error.is_none() {
        return Err(Unreadable::NotAList("output"));
    }
    let mut reply = Reply { id: object.id.to_string(), model: object.model.to_string(), ..Reply::default() };
    for entry in object.output.iter().flatten() {
        match entry.kind {
            EntryKind::Message => {
                let said = said(body, entry);
                if !reply.text.is_empty() && !said.text.is_empty() {
                    reply.text.push('\n');
                }
                reply.text.push_str(&said.text);
                reply.refusal.push_str(&said.refusal);
            }
            EntryKind::Call | EntryKind::FreeCall => {
                reply.calls.extend(call(entry).map(|call| {
                    let complete = object.is_completed() && is_done(entry) && can_run(&call, entry.kind);
                    ReplyCall { complete, ..call }
                }));
            }
            EntryKind::Reasoning => reply.reasoning.push(reasoning(entry)),
            _ => {}
        }
    }
    object.conclude(&mut reply);
    Ok(reply)
}

/// The object that a reply is.
#[derive(Debug, Default)]
pub(super) struct Object<'b> {
    pub(super) id: Cow<'b, str>,
    pub(super) model: Cow<'b, str>,
    status: Cow<'b, str>,
    /// Why it is incomplete.
    reason: Option<Cow<'b, str>>,
    /// None where there is no such list.
    pub(super) output: Option<Vec<Entry<'b>>>,
    pub(super) usage: Option<Usage>,
    pub(super) error: Option<ReplyError>,
}

/// The object that comes next; none where something else does.
pub(super) fn object<'b>(cursor: &mut Cursor<'b>) -> Result<Option<Object<'b>>, Unreadable> {
    let mut object = Object::default();
    let span = cursor.object(|cursor, key| {
        match key.name.as_ref() {
            "id" => object.id = cursor.string()?.unwrap_or_default(),
            "model" => object.model = cursor.string()?.unwrap_or_default(),
            "status" => object.status = cursor.string()?.unwrap_or_default(),
            "incomplete_details" => object.reason = reason(cursor)?,
            "output" => object.output = output(cursor)?,
            "usage" => object.usage = usage(cursor)?,
            "error" => object.error = error(cursor)?,
            _ => {}
        }
        Ok::<_, Unreadable>(())
    })?;
    Ok(span.map(|_| object))
}

impl Object<'_> {
    /// Whether the model said all that it had to say. Servers that give no status send whole replies.
    pub(super) fn is_completed(&self) -> bool {
        matches!(self.status.as_ref(), "completed" | "") && self.error.is_none()
    }

    /// Writes how the reply ended.
    pub(super) fn conclude(self, reply: &mut Reply) {
        reply.choices = 1;
        reply.usage = self.usage.or(reply.usage);
        let completed = self.is_completed();
        let calls = !reply.calls.is_empty();
        reply.error = self.error;
        (reply.finish, reply.ended) = match self.status.as_ref() {
            _ if completed => (Some(if calls { Finish::Calls } else { Finish::Stop }), true),
            "incomplete" => (
                Some(match self.reason.as_deref() {
                    Some("max_output_tokens") => Finish::Length,
                    Some("content_filter") => Finish::Filter,
                    _ => Finish::Other,
                }),
                true,
            ),
            "failed" | "cancelled" => {
                reply.error.get_or_insert_default();
                (Some(Finish::Other), false)
            }
            // Still to be made, in the background.
            _ => (None, false),
        };
    }
}

fn output<'b>(cursor: &mut Cursor<'b>) -> Result<Option<Vec<Entry<'b>>>, Unreadable> {
    let mut output = Vec::new();
    let list = cursor.array(|cursor| {
        output.push(entry(cursor)?);
        Ok::<_, Unreadable>(())
    })?;
    Ok(list.map(|_| output))
}

fn reason<'b>(cursor: &mut Cursor<'b>) -> Result<Option<Cow<'b, str>>, Fault> {
    let mut reason = None;
    cursor.object(|cursor, key| {
        if key.name == "reason" {
            reason = cursor.string()?;
        }
        Ok::<_, Fault>(())
    })?;
    Ok(reason)
}

/// What a message says, its refusal apart.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) refusal: String,
}

/// What the message `entry`, read from `body`, says.
pub(super) fn said(body: &str, entry: &Entry<'_>) -> Said {
    let mut said = Said::default();
    let Some(content) = &entry.item.content else { return said };
    let mut cursor = Cursor::resume(body, content.start, 0);
    if cursor.peek() != Some(Kind::Array) {
        said.text.push_str(&entry.item.text);
        return said;
    }
    // It has been read before: nothing is wrong with it.
    let _ = cursor.array(|cursor| {
        cursor.object(|cursor, key| {
            match key.name.as_ref() {
                "text" => said.text.push_str(&cursor.string()?.unwrap_or_default()),
                "refusal" => said.refusal.push_str(&cursor.string()?.unwrap_or_default()),
                _ => {}
            }
            Ok::<_, Fault>(())
        })?;
        Ok::<_, Fault>(())
    });
    said
}

/// The call that an entry is, complete or not.
pub(super) fn call(entry: &Entry<'_>) -> Option<ReplyCall> {
    let call = entry.item.calls.first()?;
    Some(ReplyCall {
        id: call.id.to_string(),
        name: call.name.to_string(),
        arguments: call.arguments.to_string(),
        complete: false,
    })
}

/// The reasoning that an entry is.
pub(super) fn reasoning(entry: &Entry<'_>) -> ReplyReasoning {
    ReplyReasoning { id: entry.id.to_string(), encrypted: entry.encrypted.to_string() }
}

/// Whether an item has come whole.
pub(super) fn is_done(entry: &Entry<'_>) -> bool {
    matches!(entry.status.as_deref(), None | Some("completed"))
}

/// Whether a whole call can be run as it stands.
pub(super) fn can_run(call: &ReplyCall, kind: EntryKind) -> bool {
    let arguments = call.arguments.trim_ascii();
    !call.name.is_empty()
        && (kind == EntryKind::FreeCall || arguments.is_empty() || json::is_value(arguments))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::view::Dialect;
    use crate::engine::wire;

    fn read(body: &str) -> Reply {
        wire::read_reply(body.as_bytes(), Dialect::Responses).expect(body)
    }

    /// The calls of a reply with this output, as `id:name(arguments)`, with `!` where incomplete.
    fn check(output: &str, status: &str, expected: &[&str]) {
        let body = format!(r#"{{"id":"resp_1","status":"{status}","output":[{output}]}}"#);
        let show = |call: &ReplyCall| {
            format!("{}:{}({}){}", call.id, call.name, call.arguments, if call.complete { "" } else { "!" })
        };
        assert_eq!(read(&body).calls.iter().map(show).collect::<Vec<_>>(), expected, "{body}");
    }

    #[test]
    fn a_reply_is_read_whole() {
        let reply = read(
            r#"{"id":"resp_1","object":"response","model":"m","status":"completed","error":null,"incomplete_details":null,
               "instructions":"x","output":[
                 {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAA="},
                 {"type":"message","id":"msg_1","role":"assistant","status":"completed",
                  "content":[{"type":"output_text","text":"On "},{"type":"output_text","text":"it."}]},
                 {"type":"message","id":"msg_2","role":"assistant","content":[{"type":"output_text","text":"Soon."},
                  {"type":"refusal","refusal":"Not that."}]},
                 {"type":"function_call","id":"fc_1","call_id":"c1","name":"find","arguments":"{\"q\": 1}","status":"completed"}],
               "usage":{"input_tokens":90,"input_tokens_details":{"cached_tokens":64},"output_tokens":7,"total_tokens":97}}"#,
        );
        let call = ReplyCall {
            id: "c1".into(),
            name: "find".into(),
            arguments: r#"{"q": 1}"#.into(),
            complete: true,
        };
        let expected = Reply {
            id: "resp_1".into(),
            model: "m".into(),
            text: "On it.\nSoon.".into(),
            refusal: "Not that.".into(),
            calls: vec![call],
            reasoning: vec![ReplyReasoning { id: "rs_1".into(), encrypted: "gAA=".into() }],
            finish: Some(Finish::Calls),
            usage: Some(Usage { input: 90, output: 7, cached: 64, cache_write: 0 }),
            choices: 1,
            ended: true,
            ..Reply::default()
        };
        assert_eq!(reply, expected);
    }

    #[test]
    fn a_call_is_complete_only_if_its_item_and_the_reply_are() {
        let call = |arguments: &str, status: &str| {
            format!(
                r#"{{"type":"function_call","call_id":"a","name":"f","arguments":"{arguments}","status":"{status}"}}"#
            )
        };
        check(&call("{}", "completed"), "completed", &["a:f({})"]);
        check(&call("", "completed"), "completed", &["a:f()"]);
        check(&call("{", "completed"), "completed", &["a:f({)!"]);
        check(&call("{}", "incomplete"), "completed", &["a:f({})!"]);
        check(&call("{}", "completed"), "incomplete", &["a:f({})!"]);
        check(&call("{}", "completed"), "failed", &["a:f({})!"]);
        check(
            r#"{"type":"custom_tool_call","call_id":"a","name":"sql","input":"select"}"#,
            "completed",
            &["a:sql(select)"],
        );
        check(r#"{"type":"web_search_call","id":"ws_1"}"#, "completed", &[]);
    }

    #[test]
    fn every_end_is_told_apart() {
        let ended = |members: &str| {
            let reply = read(&format!(r#"{{"output":[],{members}}}"#));
            (reply.finish, reply.ended, reply.error.map(|error| error.code))
        };
        assert_eq!(ended(r#""status":"completed""#), (Some(Finish::Stop), true, None));
        assert_eq!(ended(r#""model":"m""#), (Some(Finish::Stop), true, None));
        let incomplete = |reason: &str| {
            ended(&format!(r#""status":"incomplete","incomplete_details":{{"reason":"{reason}"}}"#))
        };
        assert_eq!(incomplete("max_output_tokens"), (Some(Finish::Length), true, None));
        assert_eq!(incomplete("content_filter"), (Some(Finish::Filter), true, None));
        let error = |code: &str| (Some(Finish::Other), false, Some(code.to_owned()));
        assert_eq!(
            ended(r#""status":"failed","error":{"code":"server_error","message":"x"}"#),
            error("server_error")
        );
        assert_eq!(ended(r#""status":"cancelled""#), error(""));
        assert_eq!(ended(r#""status":"queued""#), (None, false, None));
    }

    #[test]
    fn an_error_is_a_reply_and_other_things_are_none() {
        let reply = read(r#"{"error":{"message":"Too much","type":"rate","param":null,"code":"r1"}}"#);
        let error = ReplyError { kind: "rate".into(), code: "r1".into(), message: "Too much".into() };
        assert_eq!((reply.error, reply.ended), (Some(error), false));
        let unreadable =
            |body: &str| wire::read_reply(body.as_bytes(), Dialect::Responses).expect_err("no reply");
        assert_eq!(unreadable("<html>"), Unreadable::NotJson(0));
        assert_eq!(unreadable("{}"), Unreadable::NotAList("output"));
        assert_eq!(unreadable("7"), Unreadable::NotAnObject);
    }
}
