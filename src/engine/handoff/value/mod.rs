//! Values: whether two of them are one, written two ways. Numbers are compared
//! as text and as decimals, never as floats, and nothing is rounded.

pub mod fold;
pub mod moment;
pub mod number;

mod sought;

pub(crate) use sought::{Match, Sketch, Sought};

use crate::engine::handoff::evidence::Document;

/// Whether two nodes of results hold the same value.
pub(crate) fn same_node(a: &Document, node: u32, b: &Document, other: u32) -> bool {
    if a.raw(node) == b.raw(other) {
        return true;
    }
    if !a.is_leaf(node) || !b.is_leaf(other) {
        return squeezed(a.raw(node)).eq(squeezed(b.raw(other)));
    }
    Sought::of_text(&a.value(node)).matches_text(&b.value(other)).is_some()
}

/// Whether two texts are one value.
pub fn same_text(a: &str, b: &str) -> bool {
    a == b || Sought::of_text(a).matches_text(b).is_some()
}

/// A printed list or object without what printers differ in: white space, quotes, the case of literals.
fn squeezed(raw: &str) -> impl Iterator<Item = char> + '_ {
    raw.chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, '"' | '\'' | '\\'))
        .map(|c| c.to_ascii_lowercase())
}
