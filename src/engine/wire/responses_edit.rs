//! Carries out a plan on the body of a Responses request, by splicing bytes.
//!
//! The standing instructions of `instructions` are the first items of the
//! view, so a plan speaks of them as of any item; here they are told apart.
//! Items that are made here carry no id: an id says that the upstream has the item.

use std::ops::Range;

use super::edit::{Piece, append, members, rebuild, text_part};
use super::json::quote;
use super::object::with_member;
use crate::engine::view::{Form, Item, Keep, Plan, Span, View};

/// The type of a part that holds text of the client's side.
const TEXT: &str = "input_text";

/// What `plan` makes of the instructions and the list in `body`, which `view` was read from.
///
/// A brief whose place is not in the rebuilt list stands in `instructions`, behind what is there.
pub(super) fn edits(body: &[u8], view: &View<'_>, plan: &Plan) -> Vec<(Span, Vec<u8>)> {
    let edit = Edit::new(body, view, plan);
    edit.instructions().into_iter().chain(edit.input()).chain(edit.previous()).collect()
}

struct Edit<'a> {
    body: &'a [u8],
    view: &'a View<'a>,
    plan: &'a Plan,
    /// The item that the brief goes into.
    carrier: Option<usize>,
    /// What is put back, as elements of a list.
    back: Vec<(usize, Vec<u8>)>,
}

impl<'a> Edit<'a> {
    fn new(body: &'a [u8], view: &'a View<'a>, plan: &'a Plan) -> Self {
        let back = plan.put_back.iter().map(|(place, raw)| (*place, element(raw))).collect();
        let edit = Edit { body, view, plan, carrier: None, back };
        let stays = |index: &usize| *index < view.items.len() && *edit.keep(*index) != Keep::Drop;
        let carrier = plan.brief_after.filter(stays).or_else(|| (0..view.head.items).rev().find(stays));
        Edit { carrier: carrier.filter(|_| plan.brief.is_some()), ..edit }
    }

    fn keep(&self, index: usize) -> &'a Keep {
        self.plan.keep.get(index).unwrap_or(&Keep::Whole)
    }

    /// The brief, if no item carries it.
    fn homeless(&self) -> Option<&'a str> {
        self.plan.brief.as_deref().filter(|_| self.carrier.is_none())
    }

    /// What becomes of `instructions`; none where nothing does.
    fn instructions(&self) -> Option<(Span, Vec<u8>)> {
        let count = self.view.head.items;
        let Some(span) = self.view.head.span.clone() else {
            let front = self.body.iter().position(|byte| *byte == b'{')? + 1;
            let brief = quoted(self.homeless()?);
            return Some((front..front, first_member("instructions", &brief, self.body.get(front..)?)));
        };
        if count == 0 || self.is_string(&span) {
            return match (self.piece(0).filter(|_| count > 0), self.homeless()) {
                (Some(Piece::Edited(_, new)), _) => Some((span, new)),
                (None, Some(brief)) => Some((span, quoted(brief))),
                (None, None) if count > 0 => Some((span, b"null".to_vec())),
                _ => None,
            };
        }
        let made = self.homeless().map(system_item);
        let pieces = (0..count).filter_map(|index| self.piece(index)).chain(made.as_deref().map(Piece::New));
        Some((span.clone(), self.rebuilt(&span, 0..count, pieces)))
    }

    /// What becomes of the id of the reply that the request goes on from; none where nothing does.
    fn previous(&self) -> Option<(Span, Vec<u8>)> {
        let id = self.plan.previous.as_deref()?;
        let own = members(std::str::from_utf8(self.body).ok()?).ok()?;
        let place = own.into_iter().find(|own| own.key.name == "previous_response_id")?;
        Some((place.value, quoted(id)))
    }

    /// What becomes of `input`; none where nothing does.
    fn input(&self) -> Option<(Span, Vec<u8>)> {
        let (first, end) = (self.view.head.items, self.view.items.len());
        let span = self.view.list.clone();
        if span.is_empty() {
            return None;
        }
        if self.is_string(&span) {
            return self.text_input(span, first);
        }
        let mut pieces = Vec::with_capacity(end - first + self.back.len());
        for index in first..end {
            pieces.extend(self.back(|place| if index == first { place <= index } else { place == index }));
            pieces.extend(self.piece(index).map(|piece| match piece {
                Piece::Old(index) => Piece::Old(index - first),
                Piece::Edited(index, new) => Piece::Edited(index - first, new),
                made @ Piece::New(_) => made,
            }));
        }
        pieces.extend(self.back(|place| place >= end || first == end));
        Some((span.clone(), self.rebuilt(&span, first..end, pieces)))
    }

    /// A string stays one unless something is put back beside it.
    fn text_input(&self, span: Span, index: usize) -> Option<(Span, Vec<u8>)> {
        let item = match self.piece(index) {
            Some(Piece::Edited(_, new)) => Some(new),
            Some(_) => self.body.get(span.clone()).map(<[u8]>::to_vec),
            None => None,
        };
        if self.back.is_empty() {
            return match item {
                Some(item) if self.body.get(span.clone()) == Some(&item) => None,
                Some(item) => Some((span, item)),
                None => Some((span, b"[]".to_vec())),
            };
        }
        let before = self.back.iter().filter(|(place, _)| *place <= index);
        let behind = self.back.iter().filter(|(place, _)| *place > index);
        let elements: Vec<Vec<u8>> = before
            .map(|(_, element)| element.clone())
            .chain(item.as_deref().map(element))
            .chain(behind.map(|(_, element)| element.clone()))
            .collect();
        Some((span, [b"[".as_slice(), &elements.join(&b","[..]), b"]"].concat()))
    }

    fn back(&self, here: impl Fn(usize) -> bool) -> impl Iterator<Item = Piece<'_>> {
        self.back.iter().filter(move |(place, _)| here(*place)).map(|(_, element)| Piece::New(element))
    }

    /// The list at `span` with these pieces instead of the view's `items`.
    fn rebuilt<'p>(
        &self,
        span: &Span,
        items: Range<usize>,
        pieces: impl IntoIterator<Item = Piece<'p>>,
    ) -> Vec<u8> {
        let spans: Vec<Span> =
            self.view.items.get(items).unwrap_or_default().iter().map(|item| item.span.clone()).collect();
        let mut out = Vec::with_capacity(span.len());
        rebuild(self.body, span, &spans, pieces, &mut out);
        out
    }

    /// The item as it goes; none where it does not.
    fn piece(&self, index: usize) -> Option<Piece<'a>> {
        let item = self.view.items.get(index)?;
        let shortened = match self.keep(index) {
            Keep::Drop => return None,
            // The item is its call.
            Keep::WithoutCalls(cut) if !item.calls.is_empty() && !cut.is_empty() => return None,
            Keep::Whole | Keep::WithoutCalls(_) => None,
            Keep::Shortened(text) => Some(text.as_str()),
        };
        let brief = self.plan.brief.as_deref().filter(|_| self.carrier == Some(index));
        // The item is its call.
        if let Some(arguments) = self.plan.arguments_of(index, 0) {
            let old = std::str::from_utf8(self.body.get(item.span.clone())?).ok()?;
            let value = String::from_utf8(quoted(arguments)).ok()?;
            let new = with_member(old, "arguments", &value);
            return Some(new.map_or(Piece::Old(index), |new| Piece::Edited(index, new.into_bytes())));
        }
        Some(match self.edited(item, shortened, brief) {
            Some(new) => Piece::Edited(index, new),
            None => Piece::Old(index),
        })
    }

    /// The item's new bytes, or none where it stays as it is.
    fn edited(&self, item: &Item<'_>, shortened: Option<&str>, brief: Option<&str>) -> Option<Vec<u8>> {
        let content = item.content.clone().unwrap_or_default();
        let old = std::str::from_utf8(self.body.get(content.clone())?).ok()?;
        let mut new = Vec::new();
        match (shortened, brief) {
            (Some(text), _) if item.form == Form::Parts => {
                new.push(b'[');
                text_part(TEXT, text, &mut new);
                new.push(b']');
            }
            (Some(text), _) => quote(text, &mut new),
            (None, Some(brief)) => append(item, old, brief, TEXT, &mut new).ok()?,
            (None, None) => return None,
        }
        if item.content.is_none() {
            let inside = self.body.get(item.span.start + 1..item.span.end)?;
            return Some([b"{", &first_member("content", &new, inside)[..], inside].concat());
        }
        let before = self.body.get(item.span.start..content.start)?;
        let behind = self.body.get(content.end..item.span.end)?;
        Some([before, &new, behind].concat())
    }

    fn is_string(&self, span: &Span) -> bool {
        self.body.get(span.start) == Some(&b'"')
    }
}

/// What was first seen as `raw`, as an element of a list: a string was the whole input.
fn element(raw: &[u8]) -> Vec<u8> {
    if raw.first() == Some(&b'"') {
        [br#"{"role":"user","content":"#.as_slice(), raw, b"}"].concat()
    } else {
        raw.to_vec()
    }
}

/// A member to stand at the front of an object, before the rest of it.
fn first_member(key: &str, value: &[u8], rest: &[u8]) -> Vec<u8> {
    let comma = if rest.trim_ascii_start().first() == Some(&b'}') { &b""[..] } else { b"," };
    [&quoted(key), &b":"[..], value, comma].concat()
}

fn system_item(brief: &str) -> Vec<u8> {
    [br#"{"role":"system","content":"#.as_slice(), &quoted(brief), b"}"].concat()
}

fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + text.len() / 8 + 2);
    quote(text, &mut out);
    out
}

#[cfg(test)]
mod tests;
