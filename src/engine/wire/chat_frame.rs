//! What stands around the piece of text in a chunk that says nothing else. Most chunks of a stream say the same
//! around theirs, but for a stamp or a padding that nobody reads: where all else is the same, byte for byte,
//! only the piece has to be read.

use std::borrow::Cow;

use super::chat_chunk::{Choice, Chunk};
use super::json::plain_run;
use crate::engine::view::Span;

/// A frame is of at most so many bytes, and of so many places.
const BYTES: usize = 4096;
const PLACES: usize = 4;

/// A chunk without its piece of text.
#[derive(Debug)]
pub(super) struct Frame {
    /// What stands before each place, and what may stand there.
    places: Vec<(Vec<u8>, Place)>,
    /// What stands behind the last one.
    tail: Vec<u8>,
}

/// A place where chunks of one frame differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The piece of text, between its quotes.
    Text,
    /// The inside of a string that nobody reads.
    Words,
    /// A number that nobody reads.
    Digits,
}

impl Frame {
    /// The frame of this chunk, if it has one.
    pub(super) fn of(data: &str, chunk: &Chunk<'_>) -> Option<Frame> {
        let Chunk { choices: Some(choices), usage: None, error: None, .. } = chunk else { return None };
        let [Choice { index: 0, finish: None, text: Cow::Borrowed(text), refusal, calls }] = &choices[..]
        else {
            return None;
        };
        if text.is_empty() || !refusal.is_empty() || !calls.is_empty() || data.len() > BYTES {
            return None;
        }
        // The text is a stretch of the document.
        let start = text.as_ptr().addr().checked_sub(data.as_ptr().addr())?;
        let mut spans = vec![(start..start + text.len(), Place::Text)];
        spans.extend(chunk.unread.iter().filter_map(|span| place(data, span.clone())).take(PLACES - 1));
        spans.sort_by_key(|(span, _)| span.start);
        let (mut places, mut done) = (Vec::with_capacity(spans.len()), 0);
        for (span, place) in spans {
            let before = data.get(done..span.start)?;
            if place == Place::Text && !(before.ends_with('"') && data.get(span.end..)?.starts_with('"')) {
                return None;
            }
            places.push((before.as_bytes().to_vec(), place));
            done = span.end;
        }
        Some(Frame { places, tail: data.get(done..)?.as_bytes().to_vec() })
    }

    /// The piece of text in a chunk of this frame, if it is one and the piece stands as it reads.
    pub(super) fn text<'d>(&self, data: &'d [u8]) -> Option<&'d str> {
        let (mut rest, mut text) = (data, None);
        for (before, place) in &self.places {
            rest = rest.strip_prefix(&**before)?;
            let (here, behind) = rest.split_at(match place {
                Place::Text | Place::Words => plain_run(rest),
                Place::Digits => digits(rest)?,
            });
            let here = std::str::from_utf8(here).ok()?;
            if *place == Place::Text {
                text = Some(here).filter(|text| !text.is_empty());
            }
            rest = behind;
        }
        text.filter(|_| rest == self.tail)
    }
}

/// A value that nobody reads, as a place; none where it is not of the plainest form.
fn place(data: &str, span: Span) -> Option<(Span, Place)> {
    let value = data.get(span.clone())?.as_bytes();
    match value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) {
        Some(inside) => {
            (plain_run(inside) == inside.len()).then_some((span.start + 1..span.end - 1, Place::Words))
        }
        None => (digits(value)? == value.len()).then_some((span, Place::Digits)),
    }
}

/// How many digits of a whole number stand at the front, if one does.
fn digits(bytes: &[u8]) -> Option<usize> {
    let count = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0 && (count == 1 || bytes[0] != b'0')).then_some(count)
}
