//! Reads the body of a Responses request into the neutral view.
//!
//! `instructions` are read as the first items of the conversation, because a
//! model reads them first; a string as input is its one item.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use super::json::{Cursor, Kind};
use super::request_parts::{fixes_shape, is_true, tools};
use super::responses_item::{Entry, EntryKind, blank, entry};
use super::{Known, Once, Unreadable};
use crate::engine::view::{Call, Dialect, Form, Head, Hidden, Item, Role, Seal, ServerState, Span, View};

/// Reads the body.
pub(super) fn read<'b>(body: &'b str, known: Option<Known<'_>>) -> Result<View<'b>, Unreadable> {
    let mut cursor = Cursor::new(body);
    let mut once = Once::new(&[
        "input",
        "instructions",
        "tools",
        "model",
        "stream",
        "text",
        "store",
        "previous_response_id",
        "conversation",
        "background",
    ]);
    let mut view = View {
        dialect: Dialect::Responses,
        model: None,
        stream: false,
        choices: 1,
        shaped_reply: false,
        tools: Vec::new(),
        items: Vec::new(),
        list: 0..0,
        head: Head::default(),
        server_state: ServerState { stores: true, ..ServerState::default() },
        hidden: Vec::new(),
    };
    let (mut head, mut items) = (Vec::new(), Vec::new());
    let object = cursor.object(|cursor, key| {
        once.note(&key)?;
        match key.name.as_ref() {
            "input" => view.list = input(cursor, &mut items, &mut view, known)?,
            "instructions" => view.head.span = Some(instructions(cursor, &mut head)?),
            "tools" => tools(cursor, &mut view.tools)?,
            "model" => view.model = cursor.string()?,
            "stream" => view.stream = is_true(cursor)?,
            "text" => view.shaped_reply = shaped(cursor)?,
            "store" => {
                let span = cursor.skip()?;
                view.server_state.stores = cursor.raw(span) != "false";
            }
            "previous_response_id" => view.server_state.previous = cursor.string()?,
            "conversation" => view.server_state.conversation = conversation(cursor)?,
            "background" => view.server_state.background = is_true(cursor)?,
            _ => {}
        }
        Ok::<_, Unreadable>(())
    })?;
    object.ok_or(Unreadable::NotAnObject)?;
    cursor.end()?;
    view.head.items = head.len();
    for hidden in &mut view.hidden {
        hidden.item += head.len();
    }
    head.append(&mut items);
    view.items = head;
    Ok(view)
}

fn input<'b>(
    cursor: &mut Cursor<'b>,
    items: &mut Vec<Item<'b>>,
    view: &mut View<'b>,
    known: Option<Known<'_>>,
) -> Result<Span, Unreadable> {
    let start = cursor.start();
    match cursor.peek() {
        Some(Kind::String) => {
            items.push(text(cursor, Role::User)?);
            Ok(start..cursor.position())
        }
        Some(Kind::Array) => {
            let mut calls_by_reference = Vec::new();
            // What a reference stands for may only show in what follows.
            let known = known.filter(|known| !known.view.server_state.refers);
            let known = known.and_then(|known| Some((known, known.items(start)?)));
            if let Some((known, (list, _))) = known {
                items.extend(list.iter().cloned());
                let place = |hidden: &Hidden<'static>| hidden.item - known.view.head.items;
                let hidden = known.view.hidden.iter().filter(|hidden| place(hidden) < list.len());
                view.hidden
                    .extend(hidden.map(|hidden| Hidden { item: place(hidden), id: hidden.id.clone() }));
            }
            let each = |cursor: &mut Cursor<'b>| {
                let Entry { item, kind, id, .. } = entry(cursor)?;
                view.server_state.refers |= kind == EntryKind::Reference;
                if kind == EntryKind::Reference && (id.starts_with("fc_") || id.starts_with("ctc_")) {
                    calls_by_reference.push(items.len());
                }
                if item.seal == Seal::Reasoning {
                    view.hidden.push(Hidden { item: items.len(), id });
                }
                items.push(item);
                Ok::<_, Unreadable>(())
            };
            let span = match known {
                Some((_, (_, end))) => cursor.array_behind(end, each)?,
                None => cursor.array(each)?.unwrap_or_default(),
            };
            pair_references(items, calls_by_reference);
            Ok(span)
        }
        // With server-held state there may be nothing new to say.
        Some(Kind::Null) => {
            cursor.skip()?;
            Ok(0..0)
        }
        _ => Err(Unreadable::OddShape { key: "input", at: start }),
    }
}

/// The field's value; what it holds goes into `head`, as standing instructions whatever its role.
fn instructions<'b>(cursor: &mut Cursor<'b>, head: &mut Vec<Item<'b>>) -> Result<Span, Unreadable> {
    let start = cursor.start();
    match cursor.peek() {
        Some(Kind::String) => head.push(text(cursor, Role::System)?),
        Some(Kind::Array) => {
            cursor.array(|cursor| {
                let item = entry(cursor)?.item;
                head.push(Item { role: Role::System, ..item });
                Ok::<_, Unreadable>(())
            })?;
        }
        Some(Kind::Null) => {
            cursor.skip()?;
        }
        _ => return Err(Unreadable::OddShape { key: "instructions", at: start }),
    }
    Ok(start..cursor.position())
}

/// A string that stands for a whole item.
fn text<'b>(cursor: &mut Cursor<'b>, role: Role) -> Result<Item<'b>, Unreadable> {
    let start = cursor.start();
    let text = cursor.string()?.unwrap_or_default();
    let span = start..cursor.position();
    Ok(Item { span: span.clone(), content: Some(span), text, form: Form::Text, ..blank(role) })
}

fn shaped(cursor: &mut Cursor<'_>) -> Result<bool, Unreadable> {
    let mut shaped = false;
    cursor.object(|cursor, key| {
        if key.name == "format" {
            shaped = fixes_shape(cursor)?;
        }
        Ok::<_, Unreadable>(())
    })?;
    Ok(shaped)
}

/// A conversation is named by its id, or by an object with the id.
fn conversation<'b>(cursor: &mut Cursor<'b>) -> Result<Option<Cow<'b, str>>, Unreadable> {
    if cursor.peek() != Some(Kind::Object) {
        return Ok(cursor.string()?);
    }
    let mut id = None;
    cursor.object(|cursor, key| {
        if key.name == "id" {
            id = cursor.string()?;
        }
        Ok::<_, Unreadable>(())
    })?;
    Ok(id)
}

/// A result may answer a call that the list only refers to. Which one cannot be read: in order, each result
/// without a call is taken for the answer to the first such reference before it, so that both stay or go.
fn pair_references(items: &mut [Item<'_>], references: Vec<usize>) {
    if references.is_empty() {
        return;
    }
    let mut references = VecDeque::from(references);
    let mut open: HashMap<String, usize> = HashMap::new();
    for at in 0..items.len() {
        for call in &items[at].calls {
            *open.entry(call.id.clone().into_owned()).or_default() += 1;
        }
        let Some(id) = items[at].answers.clone() else { continue };
        if let Some(waiting) = open.get_mut(id.as_ref()).filter(|waiting| **waiting > 0) {
            *waiting -= 1;
        } else if references.front().is_some_and(|first| *first < at)
            && let Some(reference) = references.pop_front()
        {
            let span = items[reference].span.clone();
            let call = Call { id, name: Cow::Borrowed(""), arguments: Cow::Borrowed(""), span };
            items[reference].calls.push(call);
        }
    }
}

#[cfg(test)]
mod tests;
