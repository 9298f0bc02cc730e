//! Words for what a check found: calls, keys and records by name, bounded.

use super::supersede::Place;
use crate::engine::handoff::evidence::{Evidence, Leaf};

/// A text that a person can read in one line: control characters gone, cut at 60 characters.
pub(super) fn short(text: &str) -> String {
    let mut short: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(61).collect();
    if short.chars().count() > 60 {
        short = short.chars().take(59).collect();
        short.push('…');
    }
    short
}

/// Somebody's words in one line, at most 300 bytes of them.
pub(super) fn words(text: &str) -> String {
    bounded(text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(400).collect())
}

/// A call by tool and id.
pub(super) fn call(evidence: &Evidence, call: u32) -> String {
    let seen = evidence.seen(call);
    format!("{} ({})", short(seen.name()), short(&seen.id))
}

/// What stands at a place.
pub(super) fn value(evidence: &Evidence, place: Place) -> String {
    let result = &evidence.seen(place.call).result;
    let raw = result.value(place.node);
    if result.is_leaf(place.node) { format!("\"{}\"", short(&raw)) } else { short(&raw) }
}

/// A place by key and record.
pub(super) fn place(evidence: &Evidence, place: Place) -> String {
    let Some(leaf) = Leaf::new(evidence, place.call, place.node) else {
        return "of something else".to_owned();
    };
    let path = leaf.path();
    let records: Vec<String> = leaf
        .records()
        .iter()
        .rev()
        .take(2)
        .map(|name| short(format!("{} {}", name.kind, name.name).trim()))
        .collect();
    match (path.is_empty(), records.is_empty()) {
        (true, _) => "the whole result".to_owned(),
        (false, true) => short(&path),
        (false, false) => format!("{} of {}", short(&path), records.join(" of ")),
    }
}

/// At most 300 bytes of it.
pub(super) fn bounded(mut text: String) -> String {
    const BYTES: usize = 300;
    if text.len() > BYTES {
        let end = (0..=BYTES - 3).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}
