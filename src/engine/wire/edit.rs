//! Rebuilds a list or an object out of its own bytes: what stays keeps its
//! bytes and, beside a neighbour it had before, the separator too.

use super::json::{Cursor, Fault, Key, escape, quote};
use crate::engine::view::{Form, Item, Span};

/// One part of a rebuilt list or object.
pub(super) enum Piece<'a> {
    /// The old part of this index, as it is.
    Old(usize),
    /// The old part of this index, with these bytes instead of its own.
    Edited(usize, Vec<u8>),
    /// A part that was not there.
    New(&'a [u8]),
}

/// Writes the list or object that stands at `outer` in `body`, brackets
/// included, with `pieces` instead of its `parts`. Old parts come in their old
/// order. White space and commas are kept wherever both neighbours are old ones
/// that stood side by side; elsewhere a bare comma separates.
pub(super) fn rebuild<'a>(
    body: &[u8],
    outer: &Span,
    parts: &[Span],
    pieces: impl IntoIterator<Item = Piece<'a>>,
    out: &mut Vec<u8>,
) {
    let bytes = |from: usize, to: usize| body.get(from..to).unwrap_or_default();
    let (first, last) = (outer.start + 1, outer.end.saturating_sub(1));
    out.extend_from_slice(bytes(outer.start, first));
    let mut before = Before::Bracket;
    for piece in pieces {
        let old = match piece {
            Piece::Old(index) | Piece::Edited(index, _) => Some(index),
            Piece::New(_) => None,
        };
        match (before, old) {
            (Before::Bracket, Some(0)) => out.extend_from_slice(bytes(first, start(parts, 0))),
            (Before::Bracket, _) => {}
            (Before::Old(left), Some(right)) if left + 1 == right => {
                out.extend_from_slice(bytes(end(parts, left), start(parts, right)));
            }
            _ => out.push(b','),
        }
        match &piece {
            Piece::Old(index) => out.extend_from_slice(bytes(start(parts, *index), end(parts, *index))),
            Piece::Edited(_, bytes) => out.extend_from_slice(bytes),
            Piece::New(bytes) => out.extend_from_slice(bytes),
        }
        before = old.map_or(Before::New, Before::Old);
    }
    match before {
        Before::Old(left) if left + 1 == parts.len() => out.extend_from_slice(bytes(end(parts, left), last)),
        Before::Bracket if parts.is_empty() => out.extend_from_slice(bytes(first, last)),
        _ => {}
    }
    out.extend_from_slice(bytes(last, outer.end));
}

/// `body` with these stretches of it replaced. They do not overlap.
pub(super) fn splice(body: &[u8], mut edits: Vec<(Span, Vec<u8>)>) -> Vec<u8> {
    edits.sort_by_key(|(span, _)| span.start);
    let mut out = Vec::with_capacity(body.len() + edits.iter().map(|(_, new)| new.len()).sum::<usize>());
    let mut done = 0;
    for (span, new) in edits {
        out.extend_from_slice(body.get(done..span.start).unwrap_or_default());
        out.extend_from_slice(&new);
        done = span.end;
    }
    out.extend_from_slice(body.get(done..).unwrap_or_default());
    out
}

/// What stands to the left of a piece.
#[derive(Clone, Copy)]
enum Before {
    Bracket,
    Old(usize),
    New,
}

fn start(parts: &[Span], index: usize) -> usize {
    parts.get(index).map_or(0, |span| span.start)
}

fn end(parts: &[Span], index: usize) -> usize {
    parts.get(index).map_or(0, |span| span.end)
}

/// A member of an object.
pub(super) struct Member<'b> {
    /// Its key.
    pub(super) key: Key<'b>,
    /// Its value.
    pub(super) value: Span,
}

/// The members of the object that `text` is.
pub(super) fn members(text: &str) -> Result<Vec<Member<'_>>, Fault> {
    let mut members = Vec::new();
    Cursor::new(text).object(|cursor, key| {
        members.push(Member { key, value: cursor.skip()? });
        Ok::<_, Fault>(())
    })?;
    Ok(members)
}

/// The elements of the list that starts at `at` in `text`.
pub(super) fn elements(text: &str, at: usize) -> Result<Vec<Span>, Fault> {
    let mut elements = Vec::new();
    Cursor::resume(text, at, 0).array(|cursor| {
        elements.push(cursor.skip()?);
        Ok::<_, Fault>(())
    })?;
    Ok(elements)
}

/// Writes the content `old` of `item` with the brief behind it, in the form the client used. `part` is the
/// dialect's type of a part that holds text.
pub(super) fn append(
    item: &Item<'_>,
    old: &str,
    brief: &str,
    part: &str,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let open = old.get(..old.len().saturating_sub(1)).unwrap_or_default().as_bytes();
    match item.form {
        Form::None => quote(brief, out),
        Form::Text if item.text.is_empty() => quote(brief, out),
        Form::Text => {
            out.extend_from_slice(open);
            escape("\n\n", out);
            escape(brief, out);
            out.push(b'"');
        }
        Form::Parts => {
            out.extend_from_slice(open);
            if !elements(old, 0)?.is_empty() {
                out.push(b',');
            }
            text_part(part, brief, out);
            out.push(b']');
        }
    }
    Ok(())
}

/// Writes a part of this type that holds `text`.
pub(super) fn text_part(kind: &str, text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"type":"#);
    quote(kind, out);
    out.extend_from_slice(br#","text":"#);
    quote(text, out);
    out.push(b'}');
}
