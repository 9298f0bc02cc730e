//! Values: whether two of them are one, written two ways. Numbers are compared
//! as text and as decimals, never as floats, and nothing is rounded.

pub mod fold;

use crate::engine::handoff::evidence::{Document, Kind};

/// Whether two nodes of results hold the same value.
pub(crate) fn same_node(a: &Document, node: u32, b: &Document, other: u32) -> bool {
    let _ = Kind::Null;
    a.raw(node) == b.raw(other)
}
