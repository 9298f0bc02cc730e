//! Whether a later result for the same record and key says otherwise.

use crate::engine::handoff::evidence::{CallSeen, Evidence, KeyId, Kind};

/// At most this many later results are looked at for one value.
const LATER_RECORDS: usize = 64;
/// A value stands at most this deep inside its record.
const STEPS: usize = 24;

/// A value of the run: a call's place and a node of its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) call: u32,
    pub(crate) node: u32,
}

/// The newest value for the same record and key, if it comes later than this one and differs.
pub(crate) fn later(evidence: &Evidence, call: u32, node: u32) -> Option<Place> {
    let newest = newest(evidence, Place { call, node })?;
    let (old, new) = (evidence.seen(call), evidence.seen(newest.call));
    let same = crate::engine::handoff::value::same_node(&old.result, node, &new.result, newest.node);
    (!same).then_some(newest)
}

/// The newest later value for the same record and key.
pub(crate) fn newest(evidence: &Evidence, place: Place) -> Option<Place> {
    let seen = evidence.seen(place.call);
    let record = seen.record_of(place.node);
    let steps = steps(evidence, seen, record, place.node)?;
    let names: Vec<_> = seen.records.names_of(record).collect();
    if names.is_empty() {
        return repeated(evidence, place, &steps);
    }
    let named = seen.folded(names[0], &evidence.keys);
    for posting in evidence.records_named(names[0].hash).take(LATER_RECORDS) {
        if posting.call <= place.call {
            break;
        }
        let other = evidence.seen(posting.call);
        if steps.is_empty() && other.name() != seen.name() {
            continue;
        }
        let same = named == folded(evidence, other, posting.record, names[0].hash);
        if !same || !alike(evidence, (seen, record), (other, posting.record)) {
            continue;
        }
        if let Some(node) = walk(evidence, other, posting.record, &steps)
            && other.result.node(node).kind != Kind::Null
        {
            return Some(Place { call: posting.call, node });
        }
    }
    None
}

/// The same for a result that names no record: the same call, made again.
fn repeated(evidence: &Evidence, place: Place, steps: &[Step]) -> Option<Place> {
    let seen = evidence.seen(place.call);
    let mut later = (place.call + 1..evidence.calls().len() as u32).rev().take(LATER_RECORDS);
    later.find_map(|call| {
        let other = evidence.seen(call);
        if other.name() != seen.name() || other.arguments_text() != seen.arguments_text() {
            return None;
        }
        let node = walk(evidence, other, 0, steps)?;
        (other.result.node(node).kind != Kind::Null).then_some(Place { call, node })
    })
}

/// The name with this hash of a record, folded.
fn folded(evidence: &Evidence, seen: &CallSeen, record: u32, hash: u64) -> String {
    let name = seen.records.names_of(record).find(|name| name.hash == hash);
    name.map(|name| seen.folded(name, &evidence.keys)).unwrap_or_default()
}

/// One step from a record's object down to a value.
enum Step {
    Key(KeyId),
    Element(usize),
}

/// The steps from a record down to a node; wrappers are stepped over.
fn steps(evidence: &Evidence, seen: &CallSeen, record: u32, mut node: u32) -> Option<Vec<Step>> {
    let top = seen.top(record, &evidence.keys);
    let mut steps = Vec::new();
    while node != top && node != 0 {
        let at = seen.result.node(node);
        if at.key != KeyId::NONE {
            steps.push(Step::Key(at.key));
        } else if !seen.result.is_region(at.parent) {
            steps.push(Step::Element(seen.result.place(node)));
        }
        if steps.len() > STEPS {
            return None;
        }
        node = at.parent;
    }
    steps.reverse();
    Some(steps)
}

/// The node at the end of the steps, if the record has it.
fn walk(evidence: &Evidence, seen: &CallSeen, record: u32, steps: &[Step]) -> Option<u32> {
    let mut node = seen.top(record, &evidence.keys);
    if steps.is_empty() {
        // A whole result is one value; the record as an object is another matter.
        let only = if seen.result.is_region(node) { seen.result.children(node).next()? } else { node };
        return (seen.result.is_leaf(only) || seen.result.node(only).kind == Kind::Prose).then_some(only);
    }
    for step in steps {
        while seen.result.is_region(node) {
            node = seen.result.children(node).next()?;
        }
        let mut children = seen.result.children(node);
        node = match step {
            Step::Key(key) => {
                children.take(256).find(|child| evidence.keys.same(seen.result.node(*child).key, *key))?
            }
            Step::Element(place) => children.nth(*place)?,
        };
    }
    Some(node)
}

/// Whether two records of one name are one record, by what stands around them.
fn alike(evidence: &Evidence, a: (&CallSeen, u32), b: (&CallSeen, u32)) -> bool {
    same_slice(evidence, a.0, b.0) && same_day(a, b) && same_chain(a, b)
}

/// Two calls that asked for different slices of the world do not contradict each other.
fn same_slice(evidence: &Evidence, a: &CallSeen, b: &CallSeen) -> bool {
    a.records.slices.iter().all(|slice| {
        let other = b.records.slices.iter().find(|other| evidence.keys.same(other.key, slice.key));
        other.is_none_or(|other| other.hash == slice.hash)
    })
}

fn same_day(a: (&CallSeen, u32), b: (&CallSeen, u32)) -> bool {
    let day = |(seen, record): (&CallSeen, u32)| seen.records.all[record as usize].day;
    let (a, b) = (day(a), day(b));
    a == 0 || b == 0 || a == b
}

/// The records around both are the same, as far as both tell.
fn same_chain(a: (&CallSeen, u32), b: (&CallSeen, u32)) -> bool {
    let outer = |(seen, record): (&CallSeen, u32)| -> Vec<u64> {
        let around = seen.records.chain(record).skip(1);
        around.filter_map(|record| seen.records.names_of(record).next()).map(|name| name.hash).collect()
    };
    let (around_a, around_b) = (outer(a), outer(b));
    around_a.iter().zip(&around_b).all(|(a, b)| a == b)
}
