//! Values: whether two of them are one, written two ways. Numbers are compared
//! as text and as decimals, never as floats, and nothing is rounded.

pub mod fold;
pub mod moment;
pub mod number;

mod sought;

pub(crate) use sought::{Match, Sought};

use crate::engine::handoff::evidence::Document;

/// Whether two nodes of results hold the same value.
pub(crate) fn same_node(a: &Document, node: u32, b: &Document, other: u32) -> bool {
    if a.raw(node) == b.raw(other) {
        return true;
    }
    if !a.is_leaf(node) || !b.is_leaf(other) {
        return a.raw(node).split_whitespace().eq(b.raw(other).split_whitespace());
    }
    Sought::of_text(&a.value(node)).matches_text(&b.value(other)).is_some()
}
