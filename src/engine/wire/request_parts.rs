//! Reads what the requests of both dialects share: contents, arguments, tools.
//!
//! Fields that have no place in the view are skipped, not looked into. What is
//! read leniently (a tool without a name, a null here or there) and what is
//! not (a key that comes twice, a content of an unknown shape) follows one
//! rule: where two readers could understand different things, the body is
//! unreadable.

use std::borrow::Cow;

use super::json::{Cursor, Key, Kind};
use super::{Once, Unreadable};
use crate::engine::view::{Form, Item, Tool};

/// Reads the content into `item`; whether a part of it is signed.
pub(super) fn content<'b>(cursor: &mut Cursor<'b>, item: &mut Item<'b>) -> Result<bool, Unreadable> {
    let start = cursor.start();
    match cursor.peek() {
        Some(Kind::String) => {
            item.form = Form::Text;
            item.text = cursor.string()?.unwrap_or_default();
        }
        Some(Kind::Array) => {
            item.form = Form::Parts;
            let signed = parts(cursor, item)?;
            item.content = Some(start..cursor.position());
            return Ok(signed);
        }
        Some(Kind::Null) => {
            cursor.skip()?;
        }
        _ => return Err(Unreadable::OddShape { key: "content", at: start }),
    }
    item.content = Some(start..cursor.position());
    Ok(false)
}

fn parts<'b>(cursor: &mut Cursor<'b>, item: &mut Item<'b>) -> Result<bool, Unreadable> {
    let (mut signed, mut first) = (false, true);
    cursor.array(|cursor| {
        let part = part(cursor)?;
        signed |= part.signed;
        item.media += part.media;
        if let Some(text) = part.text {
            if first {
                item.text = text;
                first = false;
            } else {
                let joined = item.text.to_mut();
                joined.push('\n');
                joined.push_str(&text);
            }
        }
        Ok::<_, Unreadable>(())
    })?;
    Ok(signed)
}

#[derive(Default)]
struct Part<'b> {
    text: Option<Cow<'b, str>>,
    media: usize,
    signed: bool,
}

fn part<'b>(cursor: &mut Cursor<'b>) -> Result<Part<'b>, Unreadable> {
    if cursor.peek() == Some(Kind::String) {
        return Ok(Part { text: cursor.string()?, ..Part::default() });
    }
    let mut once = Once::new(&["type", "text", "refusal"]);
    let (mut kind, mut text, mut refusal, mut signed) = (None, None, None, false);
    let start = cursor.start();
    cursor.object(|cursor, key| {
        once.note(&key)?;
        match key.name.as_ref() {
            "type" => kind = cursor.string()?,
            "text" => text = cursor.string()?,
            "refusal" => refusal = cursor.string()?,
            _ => signed |= binds(cursor, &key)?,
        }
        Ok::<_, Unreadable>(())
    })?;
    let size = cursor.position() - start;
    Ok(match kind.as_deref() {
        None | Some("text" | "input_text" | "output_text") => Part { text, media: 0, signed },
        Some("refusal") => Part { text: refusal, media: 0, signed },
        Some("thinking" | "redacted_thinking" | "reasoning") => Part { text: None, media: 0, signed: true },
        Some(_) => Part { text: None, media: size, signed },
    })
}

/// Arguments are JSON inside a string; clients that send the JSON itself are read alike.
pub(super) fn arguments<'b>(cursor: &mut Cursor<'b>) -> Result<Cow<'b, str>, Unreadable> {
    Ok(match cursor.peek() {
        Some(Kind::String) => cursor.string()?.unwrap_or_default(),
        Some(Kind::Null) => {
            cursor.skip()?;
            Cow::Borrowed("")
        }
        _ => {
            let span = cursor.skip()?;
            Cow::Borrowed(cursor.raw(span))
        }
    })
}

/// Whether this field ties the message to its own bytes: hidden reasoning or a
/// signature over it, which providers want back verbatim, or audio that only
/// the provider holds.
pub(super) fn binds(cursor: &mut Cursor<'_>, key: &Key<'_>) -> Result<bool, Unreadable> {
    let start = cursor.start();
    Ok(match key.name.as_ref() {
        "reasoning_content"
        | "reasoning_details"
        | "reasoning"
        | "reasoning_signature"
        | "thinking"
        | "thinking_blocks"
        | "thought_signature"
        | "signature"
        | "audio" => {
            let span = cursor.skip()?;
            says_something(cursor.raw(span))
        }
        // Boxes of vendors' own fields, most of which bind nothing.
        "extra_content" | "provider_specific_fields" => {
            let mut binding = Vec::new();
            let span = cursor.scan(|key, at| {
                if ["signature", "thinking", "reasoning", "encrypted"].iter().any(|word| key.contains(word)) {
                    binding.push(at);
                }
            })?;
            binding.iter().any(|&at| says_something(cursor.raw(at.max(start)..span.end)))
        }
        _ => false,
    })
}

/// Whether the value at the front of `raw` is more than null, false or emptiness.
fn says_something(raw: &str) -> bool {
    let raw = raw.trim_ascii_start();
    let empty = |open, close| {
        raw.strip_prefix(open).is_some_and(|rest: &str| rest.trim_ascii_start().starts_with(close))
    };
    !(raw.starts_with("null")
        || raw.starts_with("false")
        || raw.starts_with("\"\"")
        || empty('[', ']')
        || empty('{', '}'))
}

pub(super) fn tools<'b>(cursor: &mut Cursor<'b>, tools: &mut Vec<Tool<'b>>) -> Result<(), Unreadable> {
    cursor.array(|cursor| {
        tools.extend(tool(cursor)?);
        Ok::<_, Unreadable>(())
    })?;
    Ok(())
}

/// One tool: its fields lie under `function` or `custom`, or flat beside the
/// type (legacy functions, lenient servers). A hosted tool goes by its type.
fn tool<'b>(cursor: &mut Cursor<'b>) -> Result<Option<Tool<'b>>, Unreadable> {
    let mut offered = Offered::default();
    let mut kind = None;
    let mut once = Once::new(&["type", "function", "custom", "name", "description", "parameters"]);
    let span = cursor.object(|cursor, key| {
        once.note(&key)?;
        match key.name.as_ref() {
            "type" => kind = cursor.string()?,
            "function" | "custom" => offered.read(cursor)?,
            _ => offered.field(cursor, &key)?,
        }
        Ok::<_, Unreadable>(())
    })?;
    let (Some(span), Some(name)) = (span, offered.name.or(kind)) else { return Ok(None) };
    Ok(Some(Tool { name, description: offered.description, parameters: offered.parameters, span }))
}

#[derive(Default)]
struct Offered<'b> {
    name: Option<Cow<'b, str>>,
    description: Option<Cow<'b, str>>,
    parameters: Option<Cow<'b, str>>,
}

impl<'b> Offered<'b> {
    fn read(&mut self, cursor: &mut Cursor<'b>) -> Result<(), Unreadable> {
        let mut once = Once::new(&["name", "description", "parameters"]);
        cursor.object(|cursor, key| {
            once.note(&key)?;
            self.field(cursor, &key)
        })?;
        Ok(())
    }

    fn field(&mut self, cursor: &mut Cursor<'b>, key: &Key<'_>) -> Result<(), Unreadable> {
        match key.name.as_ref() {
            "name" => self.name = cursor.string()?,
            "description" => self.description = cursor.string()?,
            "parameters" => {
                let null = cursor.peek() == Some(Kind::Null);
                let span = cursor.skip()?;
                self.parameters = (!null).then(|| Cow::Borrowed(cursor.raw(span)));
            }
            _ => {}
        }
        Ok(())
    }
}

pub(super) fn fixes_shape(cursor: &mut Cursor<'_>) -> Result<bool, Unreadable> {
    let mut kind = None;
    cursor.object(|cursor, key| {
        if key.name == "type" {
            kind = cursor.string()?;
        }
        Ok::<_, Unreadable>(())
    })?;
    Ok(kind.as_deref() == Some("json_schema"))
}

pub(super) fn is_true(cursor: &mut Cursor<'_>) -> Result<bool, Unreadable> {
    let span = cursor.skip()?;
    Ok(cursor.raw(span) == "true")
}
