//! Reads one JSON document of a Chat Completions reply: the whole body, or one
//! chunk of a stream. Both have one shape, but for `message` and `delta`.
//!
//! Unlike a request, a reply is never rebuilt from what is read here. So a key
//! that comes twice counts by its last value, as clients read it.

use std::borrow::Cow;

use super::json::{Cursor, Fault, Kind};
use super::reply_parts::{error, error_field, usage};
use crate::engine::reply::{Finish, ReplyError, Usage};
use crate::engine::view::Span;

/// One document.
#[derive(Debug, Default)]
pub(super) struct Chunk<'b> {
    pub(super) id: Cow<'b, str>,
    pub(super) model: Cow<'b, str>,
    /// None where the document has no list of choices.
    pub(super) choices: Option<Vec<Choice<'b>>>,
    pub(super) usage: Option<Usage>,
    pub(super) error: Option<ReplyError>,
    /// Where the values stand that were not looked at, beside the document's others.
    pub(super) unread: Vec<Span>,
}

/// One of the alternatives, or what a chunk adds to it.
#[derive(Debug, Default)]
pub(super) struct Choice<'b> {
    pub(super) index: u32,
    pub(super) finish: Option<Finish>,
    pub(super) text: Cow<'b, str>,
    pub(super) refusal: Cow<'b, str>,
    pub(super) calls: Vec<Fragment<'b>>,
}

/// A call, or what a chunk adds to one; what is not said is empty.
#[derive(Debug, Default)]
pub(super) struct Fragment<'b> {
    pub(super) index: Option<u64>,
    pub(super) id: Cow<'b, str>,
    pub(super) name: Cow<'b, str>,
    pub(super) arguments: Cow<'b, str>,
    pub(super) form: CallForm,
}

/// How a call is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CallForm {
    /// An element of `tool_calls`.
    #[default]
    Function,
    /// The same, of a custom tool: its input is free text.
    Custom,
    /// The one call under `function_call`.
    Legacy,
}

/// Reads the document. An error may stand in a list of its own (Gemini).
pub(super) fn read(text: &str) -> Result<Chunk<'_>, Fault> {
    let mut cursor = Cursor::new(text);
    let mut chunk = Chunk::default();
    if cursor.peek() == Some(Kind::Array) {
        cursor.array(|cursor| document(cursor, &mut chunk))?;
    } else {
        document(&mut cursor, &mut chunk)?;
    }
    cursor.end()?;
    Ok(chunk)
}

fn document<'b>(cursor: &mut Cursor<'b>, chunk: &mut Chunk<'b>) -> Result<(), Fault> {
    let mut flat = ReplyError::default();
    let mut object = None;
    cursor.object::<Fault>(|cursor, key| {
        match key.name.as_ref() {
            "id" => chunk.id = cursor.string()?.unwrap_or_default(),
            "model" => chunk.model = cursor.string()?.unwrap_or_default(),
            "choices" => chunk.choices = choices(cursor)?,
            "usage" => chunk.usage = usage(cursor)?.or(chunk.usage),
            "error" => chunk.error = error(cursor)?,
            "object" => object = cursor.string()?,
            name => {
                if !error_field(cursor, name, &mut flat)? {
                    chunk.unread.push(cursor.skip()?);
                }
            }
        }
        Ok(())
    })?;
    if object.as_deref() == Some("error") && chunk.error.is_none() {
        chunk.error = Some(flat);
    }
    Ok(())
}

fn choices<'b>(cursor: &mut Cursor<'b>) -> Result<Option<Vec<Choice<'b>>>, Fault> {
    let mut choices = Vec::new();
    let list = cursor.array::<Fault>(|cursor| {
        choices.push(choice(cursor)?);
        Ok(())
    })?;
    Ok(list.map(|_| choices))
}

fn choice<'b>(cursor: &mut Cursor<'b>) -> Result<Choice<'b>, Fault> {
    let mut choice = Choice::default();
    cursor.object::<Fault>(|cursor, key| {
        match key.name.as_ref() {
            "index" => {
                let index = cursor.count()?.unwrap_or(0);
                choice.index = u32::try_from(index).unwrap_or(u32::MAX);
            }
            "finish_reason" => choice.finish = finish(cursor.string()?.as_deref()),
            "message" | "delta" => message(cursor, &mut choice)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(choice)
}

fn finish(reason: Option<&str>) -> Option<Finish> {
    Some(match reason? {
        "" => return None,
        "stop" => Finish::Stop,
        "tool_calls" | "function_call" => Finish::Calls,
        "length" => Finish::Length,
        "content_filter" => Finish::Filter,
        _ => Finish::Other,
    })
}

fn message<'b>(cursor: &mut Cursor<'b>, choice: &mut Choice<'b>) -> Result<(), Fault> {
    cursor.object::<Fault>(|cursor, key| {
        match key.name.as_ref() {
            "content" => choice.text = content(cursor)?,
            "refusal" => choice.refusal = cursor.string()?.unwrap_or_default(),
            "tool_calls" => {
                choice.calls.retain(|call| call.form == CallForm::Legacy);
                cursor.array::<Fault>(|cursor| {
                    choice.calls.push(call(cursor)?);
                    Ok(())
                })?;
            }
            "function_call" => {
                choice.calls.retain(|call| call.form != CallForm::Legacy);
                let mut call = Fragment { form: CallForm::Legacy, ..Fragment::default() };
                if called(cursor, &mut call)? {
                    choice.calls.push(call);
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(())
}

/// The text of a string or of parts; the same whether it came in one piece or in many.
fn content<'b>(cursor: &mut Cursor<'b>) -> Result<Cow<'b, str>, Fault> {
    if cursor.peek() != Some(Kind::Array) {
        return Ok(cursor.string()?.unwrap_or_default());
    }
    let mut joined = String::new();
    cursor.array::<Fault>(|cursor| {
        cursor.object::<Fault>(|cursor, key| {
            if key.name == "text" {
                joined.push_str(&cursor.string()?.unwrap_or_default());
            }
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(Cow::Owned(joined))
}

fn call<'b>(cursor: &mut Cursor<'b>) -> Result<Fragment<'b>, Fault> {
    let mut call = Fragment::default();
    cursor.object::<Fault>(|cursor, key| {
        match key.name.as_ref() {
            "index" => call.index = cursor.count()?,
            "id" => call.id = cursor.string()?.unwrap_or_default(),
            "function" => {
                called(cursor, &mut call)?;
            }
            "custom" => {
                let there = called(cursor, &mut call)?;
                call.form = if there { CallForm::Custom } else { call.form };
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(call)
}

/// Reads what is called into `call`; whether there is such an object at all.
fn called<'b>(cursor: &mut Cursor<'b>, call: &mut Fragment<'b>) -> Result<bool, Fault> {
    let there = cursor.object::<Fault>(|cursor, key| {
        match key.name.as_ref() {
            "name" => call.name = cursor.string()?.unwrap_or_default(),
            "arguments" | "input" => call.arguments = arguments(cursor)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(there.is_some())
}

/// Arguments are JSON inside a string; servers that send the JSON itself are read alike.
fn arguments<'b>(cursor: &mut Cursor<'b>) -> Result<Cow<'b, str>, Fault> {
    if cursor.peek() == Some(Kind::Object) {
        let span = cursor.skip()?;
        return Ok(Cow::Borrowed(cursor.raw(span)));
    }
    Ok(cursor.string()?.unwrap_or_default())
}
