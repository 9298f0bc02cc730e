//! Reads a Chat Completions reply that came as one body.

use super::chat_chunk::{self, CallForm, Chunk, Fragment};
use super::{Unreadable, json};
use crate::engine::reply::{Finish, Reply, ReplyCall};

/// Reads the body. A body that reports an error is a reply too.
pub(super) fn read(body: &str) -> Result<Reply, Unreadable> {
    let chunk = chat_chunk::read(body)?;
    let Chunk { id, model, choices, usage, error, unread: _ } = chunk;
    if choices.is_none() && error.is_none() {
        return Err(Unreadable::NotAList("choices"));
    }
    let choices = choices.unwrap_or_default();
    let ended = error.is_none();
    let mut reply = Reply {
        id: id.into_owned(),
        model: model.into_owned(),
        usage,
        error,
        ended,
        choices: choices.len() as u32,
        ..Reply::default()
    };
    if let Some(first) = choices.into_iter().min_by_key(|choice| choice.index) {
        reply.finish = first.finish;
        reply.text = first.text.into_owned();
        reply.refusal = first.refusal.into_owned();
        reply.calls = first.calls.into_iter().map(|call| whole_call(call, first.finish, ended)).collect();
    }
    Ok(reply)
}

fn whole_call(call: Fragment<'_>, finish: Option<Finish>, ended: bool) -> ReplyCall {
    let mut whole = ReplyCall {
        id: call.id.into_owned(),
        name: call.name.into_owned(),
        arguments: call.arguments.into_owned(),
        complete: false,
    };
    whole.complete = ended && can_run(&whole, call.form, finish);
    whole
}

/// Whether a call of a reply that ended can be run as it stands.
pub(super) fn can_run(call: &ReplyCall, form: CallForm, finish: Option<Finish>) -> bool {
    // A model that was cut off may have been about to go on.
    let cut_off = matches!(finish, Some(Finish::Length | Finish::Filter));
    let arguments = call.arguments.trim_ascii();
    !call.name.is_empty()
        && match form {
            CallForm::Custom => !cut_off,
            _ if arguments.is_empty() => !cut_off,
            _ => json::is_value(arguments),
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::reply::{ReplyError, Usage};
    use crate::engine::view::Dialect;
    use crate::engine::wire;

    fn read(body: &str) -> Reply {
        wire::read_reply(body.as_bytes(), Dialect::Chat).expect(body)
    }

    /// The calls of a reply whose message holds `message`, as `id:name(arguments)`, with `!` where incomplete.
    fn check(message: &str, finish: &str, expected: &[&str]) {
        let body =
            format!(r#"{{"choices":[{{"index":0,"message":{{{message}}},"finish_reason":"{finish}"}}]}}"#);
        let show = |call: &ReplyCall| {
            format!("{}:{}({}){}", call.id, call.name, call.arguments, if call.complete { "" } else { "!" })
        };
        assert_eq!(read(&body).calls.iter().map(show).collect::<Vec<_>>(), expected, "{body}");
    }

    #[test]
    fn a_reply_is_read_whole() {
        let reply = read(
            r#"{"id":"r1","object":"chat.completion","model":"gpt-test","choices":[{"index":0,
               "message":{"role":"assistant","content":"On it.","refusal":null,"tool_calls":[
                 {"id":"c1","type":"function","function":{"name":"find","arguments":"{\"q\": 1}"}}]},
               "finish_reason":"tool_calls","logprobs":null}],
               "usage":{"prompt_tokens":90,"completion_tokens":7,"total_tokens":97,
                 "prompt_tokens_details":{"cached_tokens":64,"cache_write_tokens":20,"audio_tokens":0}}}"#,
        );
        let call = ReplyCall {
            id: "c1".into(),
            name: "find".into(),
            arguments: r#"{"q": 1}"#.into(),
            complete: true,
        };
        let expected = Reply {
            id: "r1".into(),
            model: "gpt-test".into(),
            text: "On it.".into(),
            calls: vec![call],
            finish: Some(Finish::Calls),
            usage: Some(Usage { input: 90, output: 7, cached: 64, cache_write: 20 }),
            choices: 1,
            ended: true,
            ..Reply::default()
        };
        assert_eq!(reply, expected);
    }

    #[test]
    fn calls_of_every_form_are_read() {
        check(
            r#""tool_calls":[{"id":"a","function":{"name":"f","arguments":""}},{"id":"a","function":{"name":"f","arguments":"{}"}}]"#,
            "stop",
            &["a:f()", "a:f({})"],
        );
        check(
            r#""function_call":{"name":"f","arguments":"{}"},"tool_calls":null"#,
            "function_call",
            &[":f({})"],
        );
        check(
            r#""tool_calls":[{"id":"a","custom":{"name":"sql","input":"select"}}]"#,
            "tool_calls",
            &["a:sql(select)"],
        );
        check(
            r#""tool_calls":[{"function":{"name":"f","arguments":{"q":[1]}}}]"#,
            "stop",
            &[r#":f({"q":[1]})"#],
        );
    }

    #[test]
    fn a_call_that_was_cut_off_is_incomplete() {
        let call = |arguments: &str| {
            format!(r#""tool_calls":[{{"id":"a","function":{{"name":"f","arguments":"{arguments}"}}}}]"#)
        };
        check(&call(r#"{\"q\":"#), "length", &[r#"a:f({"q":)!"#]);
        check(&call(r#"{\"q\":"#), "tool_calls", &[r#"a:f({"q":)!"#]);
        check(&call(""), "length", &["a:f()!"]);
        check(&call("{}"), "length", &["a:f({})"]);
        check(&call(r"{\ud800}"), "stop", &["a:f({\u{fffd}})!"]);
    }

    #[test]
    fn errors_are_read_in_every_shape() {
        let expected = |kind: &str, code: &str| {
            Some(ReplyError { kind: kind.into(), code: code.into(), message: "Too much".into() })
        };
        let nested = r#"{"error":{"message":"Too much","type":"rate","param":null,"code":"r1"}}"#;
        assert_eq!(read(nested).error, expected("rate", "r1"));
        assert_eq!(read(&format!("[{nested}\n]")).error, expected("rate", "r1"));
        let flat = r#"{"object":"error","message":"Too much","type":"rate","code":429}"#;
        assert_eq!(read(flat).error, expected("rate", "429"));
        assert_eq!(read(r#"{"error":"Too much"}"#).error, expected("", ""));
        assert!(!read(nested).ended);
    }

    #[test]
    fn only_the_first_of_several_choices_is_read() {
        let reply = read(
            r#"{"choices":[{"index":1,"message":{"content":"b"}},{"index":0,"message":{"content":[{"type":"text","text":"a"}]}}]}"#,
        );
        assert_eq!((reply.choices, reply.text.as_str(), reply.finish), (2, "a", None));
        assert_eq!(read(r#"{"choices":[],"error":null}"#).choices, 0);
    }

    #[test]
    fn what_is_no_reply_says_why() {
        let unreadable = |body: &[u8]| wire::read_reply(body, Dialect::Chat).expect_err("no reply");
        assert_eq!(unreadable(b"<html>"), Unreadable::NotJson(0));
        assert_eq!(unreadable(b"{}"), Unreadable::NotAList("choices"));
        assert_eq!(unreadable(b"7"), Unreadable::NotAList("choices"));
        assert_eq!(unreadable(br#"{"choices":[]"#), Unreadable::NotJson(13));
    }
}
