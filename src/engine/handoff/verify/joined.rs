//! A value that joins several fields of one record: `Ada Obi`, `delivered 2031-02-03`.

use crate::engine::handoff::evidence::{Evidence, Kind};
use crate::engine::handoff::value::{Match, Sought};

/// At most this many fields are joined.
const PARTS: usize = 6;

/// Whether the value is that of a node, followed or preceded by other fields of the same object.
pub(super) fn matches(sought: &Sought<'_>, evidence: &Evidence, call: u32, node: u32) -> Option<Match> {
    let result = &evidence.seen(call).result;
    if !result.is_leaf(node) || node == 0 {
        return None;
    }
    let parts: Vec<&str> = sought
        .text()
        .split([' ', ',', ';'])
        .filter(|part| {
            !part.is_empty() && !matches!(*part, "on" | "at" | "and" | "since" | "-" | "the" | "by")
        })
        .take(PARTS + 1)
        .collect();
    if !(2..=PARTS).contains(&parts.len()) {
        return None;
    }
    let object = result.node(node).parent;
    if result.node(object).kind != Kind::Object {
        return None;
    }
    let mut own = false;
    for part in parts {
        let part = Sought::of_text(part);
        if !own && part.matches(result, node, &evidence.keys).is_some() {
            own = true;
            continue;
        }
        let sibling = result.children(object).take(48).any(|child| {
            child != node && result.is_leaf(child) && part.matches(result, child, &evidence.keys).is_some()
        });
        if !sibling {
            return None;
        }
    }
    own.then_some(Match::Rewritten)
}
