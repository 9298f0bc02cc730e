//! Writes the list of a Chat Completions request as its server's profile wants
//! it. What the layout leaves alone keeps its bytes.

use super::edit::{Member, Piece, elements, members, rebuild, text_part};
use super::json::{Cursor, Fault, escape, quote};
use crate::engine::fit::{Base, Message, Part, layout};
use crate::engine::hash::Hasher;
use crate::engine::profile::{Content, Developer, Ids, Profile};
use crate::engine::view::{Form, Item, Role, Seal, Span, View};

/// Stands between two pieces of standing instructions.
const GAP: &str = "\n\n";
/// Stands between what different turns said, where both become one text.
const LINE: &str = "\n\n---\n\n";
/// The same, as a part of its own among parts.
const LINE_PART: &str = "---";

/// `body`, which `view` was read from, with its list as `profile` wants it. `brief`: still to be placed.
pub(super) fn fit(
    body: &str,
    view: &View<'_>,
    profile: Profile,
    brief: Option<&str>,
) -> Result<Vec<u8>, Fault> {
    let messages = layout(&view.items, &profile, brief.is_some());
    let writer = Writer { body, view, profile, brief };
    let written: Vec<Written> =
        messages.iter().map(|message| writer.message(message)).collect::<Result<_, Fault>>()?;
    let pieces = messages.iter().zip(&written).map(|(message, written)| match (message.base, written) {
        (Base::Item(index), Written::AsItWas) => Piece::Old(index),
        (Base::Item(index), Written::Bytes(bytes)) => Piece::Edited(index, bytes.clone()),
        (Base::New(_), Written::Bytes(bytes)) => Piece::New(bytes),
        (Base::New(_), Written::AsItWas) => Piece::New(b"{}"),
    });
    let spans: Vec<Span> = view.items.iter().map(|item| item.span.clone()).collect();
    let mut out = Vec::with_capacity(body.len() + body.len() / 8 + brief.map_or(0, str::len));
    out.extend_from_slice(body.get(..view.list.start).unwrap_or_default().as_bytes());
    rebuild(body.as_bytes(), &view.list, &spans, pieces, &mut out);
    out.extend_from_slice(body.get(view.list.end..).unwrap_or_default().as_bytes());
    Ok(out)
}

enum Written {
    AsItWas,
    Bytes(Vec<u8>),
}

struct Writer<'a> {
    body: &'a str,
    view: &'a View<'a>,
    profile: Profile,
    brief: Option<&'a str>,
}

impl Writer<'_> {
    fn message(&self, message: &Message) -> Result<Written, Fault> {
        match message.base {
            Base::New(role) => {
                let name = match role {
                    Role::Assistant => "assistant",
                    Role::User => "user",
                    _ => "system",
                };
                let mut out = format!(r#"{{"role":"{name}","content":"#).into_bytes();
                out.extend(self.content(message, None)?);
                out.push(b'}');
                Ok(Written::Bytes(out))
            }
            Base::Item(index) => self.edited(message, index),
        }
    }

    fn edited(&self, message: &Message, index: usize) -> Result<Written, Fault> {
        let item = &self.view.items[index];
        let alone = message.parts == [Part::Item(index)];
        let content =
            if alone && !self.flattens(item) { None } else { Some(self.content(message, Some(index))?) };
        if content.is_none() && !self.renames(item) {
            return Ok(Written::AsItWas);
        }
        let text = self.body.get(item.span.clone()).unwrap_or_default();
        let members = members(text)?;
        let mut pieces = Vec::with_capacity(members.len() + 1);
        for (place, member) in members.iter().enumerate() {
            let new = match member.key.name.as_ref() {
                "content" => content.clone(),
                "role" => self.role(item, &text[member.value.clone()]),
                "tool_call_id" => self.id(item.answers.as_deref()),
                "tool_calls" => self.calls(text, member, item)?,
                _ => None,
            };
            pieces.push(match new {
                Some(value) => {
                    let key = text.get(member.key.start..member.value.start).unwrap_or_default();
                    Piece::Edited(place, [key.as_bytes(), &value].concat())
                }
                None => Piece::Old(place),
            });
        }
        let absent = !members.iter().any(|member| member.key.name == "content");
        let added = content.filter(|_| absent).map(|value| [br#""content":"#.as_slice(), &value].concat());
        pieces.extend(added.as_deref().map(Piece::New));
        let spans: Vec<Span> = members.iter().map(|member| member.key.start..member.value.end).collect();
        let mut out = Vec::with_capacity(text.len());
        rebuild(text.as_bytes(), &(0..text.len()), &spans, pieces, &mut out);
        Ok(Written::Bytes(out))
    }

    /// Whether the content becomes a string: parts of text alone, and none at all.
    fn flattens(&self, item: &Item<'_>) -> bool {
        self.profile.content == Content::String
            && match item.form {
                Form::None => item.role != Role::Other,
                Form::Text => false,
                Form::Parts => item.media == 0 && item.seal == Seal::Open,
            }
    }

    /// Whether the role or an id of the message is written another way.
    fn renames(&self, item: &Item<'_>) -> bool {
        (item.role == Role::System && self.profile.developer == Developer::AsSystem)
            || item.answers.as_deref().is_some_and(|id| self.id(Some(id)).is_some())
            || item.calls.iter().any(|call| self.id(Some(&call.id)).is_some())
    }

    fn role(&self, item: &Item<'_>, raw: &str) -> Option<Vec<u8>> {
        let is_developer = item.role == Role::System && raw == r#""developer""#;
        (is_developer && self.profile.developer == Developer::AsSystem).then(|| br#""system""#.to_vec())
    }

    /// The id that stands for `id` here, as JSON; none where it stays. A result finds its call by it, so it
    /// rests on nothing but the id.
    fn id(&self, id: Option<&str>) -> Option<Vec<u8>> {
        let id = id.filter(|id| self.profile.ids == Ids::Nine && !id.is_empty())?;
        let fits = id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (!fits).then(|| {
            let hash = Hasher::new("id").bytes(id.as_bytes()).finish();
            let mut out = Vec::with_capacity(11);
            quote(&hash.digits(9), &mut out);
            out
        })
    }

    /// `tool_calls` with its ids as they are written here.
    fn calls(&self, text: &str, member: &Member<'_>, item: &Item<'_>) -> Result<Option<Vec<u8>>, Fault> {
        if !item.calls.iter().any(|call| self.id(Some(&call.id)).is_some()) {
            return Ok(None);
        }
        let elements = elements(text, member.value.start)?;
        let mut pieces = Vec::with_capacity(elements.len());
        for (place, span) in elements.iter().enumerate() {
            let call = text.get(span.clone()).unwrap_or_default();
            pieces.push(match self.call(call)? {
                Some(bytes) => Piece::Edited(place, bytes),
                None => Piece::Old(place),
            });
        }
        let mut out = Vec::with_capacity(member.value.len());
        rebuild(text.as_bytes(), &member.value, &elements, pieces, &mut out);
        Ok(Some(out))
    }

    fn call(&self, call: &str) -> Result<Option<Vec<u8>>, Fault> {
        for member in members(call)?.iter().filter(|member| member.key.name == "id") {
            let id = Cursor::resume(call, member.value.start, 0).string()?;
            if let Some(new) = self.id(id.as_deref()) {
                let (before, after) = (&call[..member.value.start], &call[member.value.end..]);
                return Ok(Some([before.as_bytes(), &new, after.as_bytes()].concat()));
            }
        }
        Ok(None)
    }

    /// The message's content as JSON: a string while all of it is text, else parts.
    fn content(&self, message: &Message, base: Option<usize>) -> Result<Vec<u8>, Fault> {
        let in_parts = message.parts.iter().any(|part| match part {
            Part::Item(at) => {
                self.view.items[*at].form == Form::Parts && !self.flattens(&self.view.items[*at])
            }
            _ => false,
        });
        let mut out = Vec::new();
        out.push(if in_parts { b'[' } else { b'"' });
        let (mut written, mut line) = (false, false);
        for part in &message.parts {
            if *part == Part::Line {
                line = written;
                continue;
            }
            let mut piece = Vec::new();
            self.piece(part, base, in_parts, &mut piece)?;
            if piece.is_empty() {
                continue;
            }
            match (in_parts, line) {
                (true, true) => {
                    out.push(b',');
                    text_part("text", LINE_PART, &mut out);
                    out.push(b',');
                }
                (true, false) if written => out.push(b','),
                (false, true) => escape(LINE, &mut out),
                (false, false) if written => escape(GAP, &mut out),
                _ => {}
            }
            out.append(&mut piece);
            (written, line) = (true, false);
        }
        out.push(if in_parts { b']' } else { b'"' });
        Ok(out)
    }

    /// One piece of content: the inside of a string, or elements of a list of parts. Nothing where it says nothing.
    fn piece(
        &self,
        part: &Part,
        base: Option<usize>,
        in_parts: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let say = |text: &str, out: &mut Vec<u8>| match in_parts {
            _ if text.is_empty() => {}
            true => text_part("text", text, out),
            false => escape(text, out),
        };
        match part {
            Part::Line => {}
            Part::Brief => say(self.brief.unwrap_or_default(), out),
            Part::Words(words) => say(words, out),
            Part::Item(at) => {
                let item = &self.view.items[*at];
                let name = self.speaker(*at, base);
                let raw = item.content.clone().and_then(|span| self.body.get(span)).unwrap_or_default();
                let inside = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
                match item.form {
                    Form::None => {}
                    Form::Parts if in_parts && !self.flattens(item) => {
                        if let Some(name) = name {
                            text_part("text", &name, out);
                        }
                        for span in elements(raw, 0)? {
                            if !out.is_empty() {
                                out.push(b',');
                            }
                            out.extend_from_slice(raw.get(span).unwrap_or_default().as_bytes());
                        }
                    }
                    Form::Text if !in_parts => {
                        escape(name.as_deref().unwrap_or_default(), out);
                        out.extend_from_slice(inside.as_bytes());
                    }
                    Form::Text | Form::Parts => say(&(name.unwrap_or_default() + &item.text), out),
                }
            }
        }
        Ok(())
    }

    /// Who says an item that loses its `name` by becoming a part of another message.
    fn speaker(&self, at: usize, base: Option<usize>) -> Option<String> {
        let item = &self.view.items[at];
        let name = item.name.as_deref().filter(|_| item.role != Role::System && !item.text.is_empty())?;
        let base = self.view.items[base?].name.as_deref();
        (base != Some(name)).then(|| format!("{name}: "))
    }
}

#[cfg(test)]
mod tests;
