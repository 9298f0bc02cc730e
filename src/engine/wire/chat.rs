//! Reads the body of a Chat Completions request into the neutral view.

use std::borrow::Cow;

use super::json::Cursor;
use super::request_parts::{arguments, binds, content, fixes_shape, is_true, tools};
use super::{Known, Once, Unreadable};
use crate::engine::view::{Call, Dialect, Form, Head, Item, Role, Seal, ServerState, Span, View};

/// Reads the body.
pub(super) fn read<'b>(body: &'b str, known: Option<Known<'_>>) -> Result<View<'b>, Unreadable> {
    let mut cursor = Cursor::new(body);
    let mut once = Once::new(&["messages", "tools", "functions", "model", "stream", "n", "response_format"]);
    let mut view = View {
        dialect: Dialect::Chat,
        model: None,
        stream: false,
        choices: 1,
        shaped_reply: false,
        tools: Vec::new(),
        items: Vec::new(),
        list: 0..0,
        head: Head::default(),
        server_state: ServerState::default(),
        hidden: Vec::new(),
    };
    let mut list = None;
    let object = cursor.object(|cursor, key| {
        once.note(&key)?;
        match key.name.as_ref() {
            "messages" => list = messages(cursor, &mut view.items, known)?,
            "tools" | "functions" => tools(cursor, &mut view.tools)?,
            "model" => view.model = cursor.string()?,
            "stream" => view.stream = is_true(cursor)?,
            "n" => view.choices = cursor.count()?.map_or(1, |n| u32::try_from(n).unwrap_or(u32::MAX)),
            "response_format" => view.shaped_reply = fixes_shape(cursor)?,
            _ => {}
        }
        Ok::<_, Unreadable>(())
    })?;
    object.ok_or(Unreadable::NotAnObject)?;
    cursor.end()?;
    view.list = list.ok_or(Unreadable::NotAList("messages"))?;
    Ok(view)
}

fn messages<'b>(
    cursor: &mut Cursor<'b>,
    items: &mut Vec<Item<'b>>,
    known: Option<Known<'_>>,
) -> Result<Option<Span>, Unreadable> {
    let start = cursor.start();
    let known = known.and_then(|known| known.items(start));
    items.extend(known.into_iter().flat_map(|(items, _)| items.iter().cloned()));
    let each = |cursor: &mut Cursor<'b>| {
        items.push(message(cursor)?);
        Ok(())
    };
    match known {
        Some((_, end)) => cursor.array_behind(end, each).map(Some),
        None => cursor.array(each),
    }
}

fn message<'b>(cursor: &mut Cursor<'b>) -> Result<Item<'b>, Unreadable> {
    let mut once =
        Once::new(&["role", "name", "content", "refusal", "tool_calls", "function_call", "tool_call_id"]);
    let mut item = Item {
        span: 0..0,
        role: Role::Other,
        name: None,
        text: Cow::Borrowed(""),
        form: Form::None,
        content: None,
        calls: Vec::new(),
        answers: None,
        seal: Seal::Open,
        media: 0,
    };
    let (mut answers, mut refusal, mut signed) = (None, None, false);
    let start = cursor.start();
    let span = cursor.object(|cursor, key| {
        once.note(&key)?;
        match key.name.as_ref() {
            "role" => item.role = role(cursor.string()?.as_deref()),
            "name" => item.name = cursor.string()?,
            "content" => signed |= content(cursor, &mut item)?,
            "refusal" => refusal = cursor.string()?,
            "tool_calls" => signed |= calls(cursor, &mut item.calls)?,
            "function_call" => item.calls.extend(function_call(cursor)?),
            "tool_call_id" => answers = cursor.string()?,
            _ => signed |= binds(cursor, &key)?,
        }
        Ok::<_, Unreadable>(())
    })?;
    item.span = span.ok_or(Unreadable::OddShape { key: "messages", at: start })?;
    if item.form == Form::None {
        item.text = refusal.unwrap_or_default();
    }
    if item.role == Role::Tool {
        item.answers = Some(answers.unwrap_or_default());
    }
    if signed {
        item.seal = Seal::Signed;
    }
    Ok(item)
}

fn role(role: Option<&str>) -> Role {
    match role {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => Role::Tool,
        _ => Role::Other,
    }
}

/// Reads the calls; whether one of them carries a signature.
fn calls<'b>(cursor: &mut Cursor<'b>, calls: &mut Vec<Call<'b>>) -> Result<bool, Unreadable> {
    let mut signed = false;
    cursor.array(|cursor| {
        let (call, signature) = call(cursor)?;
        signed |= signature;
        calls.push(call);
        Ok::<_, Unreadable>(())
    })?;
    Ok(signed)
}

fn call<'b>(cursor: &mut Cursor<'b>) -> Result<(Call<'b>, bool), Unreadable> {
    let mut once = Once::new(&["id", "function", "custom"]);
    let (mut id, mut called, mut signed) = (None, Called::default(), false);
    let start = cursor.start();
    let span = cursor.object(|cursor, key| {
        once.note(&key)?;
        match key.name.as_ref() {
            "id" => id = cursor.string()?,
            "function" | "custom" => {
                called.read(cursor)?;
            }
            _ => signed |= binds(cursor, &key)?,
        }
        Ok::<_, Unreadable>(())
    })?;
    let span = span.ok_or(Unreadable::OddShape { key: "tool_calls", at: start })?;
    let id = id.unwrap_or_default();
    // LiteLLM carries Gemini's signature inside the id.
    signed |= called.signed || id.contains("__thought__");
    Ok((Call { id, name: called.name, arguments: called.arguments, span }, signed))
}

/// The one call of the legacy form, which has no id.
fn function_call<'b>(cursor: &mut Cursor<'b>) -> Result<Option<Call<'b>>, Unreadable> {
    let mut called = Called::default();
    let span = called.read(cursor)?;
    Ok(span.map(|span| Call { id: Cow::Borrowed(""), name: called.name, arguments: called.arguments, span }))
}

/// What is called, and with what: the inside of `function`, `custom` or `function_call`.
#[derive(Default)]
struct Called<'b> {
    name: Cow<'b, str>,
    arguments: Cow<'b, str>,
    signed: bool,
}

impl<'b> Called<'b> {
    fn read(&mut self, cursor: &mut Cursor<'b>) -> Result<Option<Span>, Unreadable> {
        let mut once = Once::new(&["name", "arguments", "input"]);
        cursor.object(|cursor, key| {
            once.note(&key)?;
            match key.name.as_ref() {
                "name" => self.name = cursor.string()?.unwrap_or_default(),
                "arguments" | "input" => self.arguments = arguments(cursor)?,
                _ => self.signed |= binds(cursor, &key)?,
            }
            Ok::<_, Unreadable>(())
        })
    }
}

#[cfg(test)]
mod tests;
