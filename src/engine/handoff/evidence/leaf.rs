//! One value of one result, with all that says what it is a value of.

use std::borrow::Cow;

use super::records::How;
use super::{Class, Evidence, KeyId, Kind};
use crate::engine::handoff::value::fold::{Words, singular};
use crate::engine::time::Timestamp;

/// One name of a record: its kind, as far as the run says it, and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordName<'e> {
    /// E.g. `order`; empty where nothing says it.
    pub kind: String,
    /// E.g. `41182`, as written.
    pub name: Cow<'e, str>,
}

/// A value of a result.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'e> {
    evidence: &'e Evidence,
    call: u32,
    node: u32,
}

impl<'e> Leaf<'e> {
    pub(crate) fn new(evidence: &'e Evidence, call: u32, node: u32) -> Option<Leaf<'e>> {
        let seen = evidence.seen(call);
        seen.result.is_leaf(node).then_some(Leaf { evidence, call, node })
    }

    /// The call's place among the run's calls.
    pub fn call(&self) -> usize {
        self.call as usize
    }

    /// The call's id.
    pub fn id(&self) -> &'e str {
        &self.evidence.seen(self.call).id
    }

    /// The call's tool.
    pub fn tool(&self) -> &'e str {
        self.evidence.seen(self.call).name()
    }

    /// When the result was first seen, if that can be known.
    pub fn as_of(&self) -> Option<Timestamp> {
        self.evidence.seen(self.call).as_of
    }

    /// What kind of value it is.
    pub fn kind(&self) -> Kind {
        self.evidence.seen(self.call).result.node(self.node).kind
    }

    /// The value, as the result spells it, escapes decoded.
    pub fn value(&self) -> Cow<'e, str> {
        self.evidence.seen(self.call).result.value(self.node)
    }

    /// The key it stands under: its own, or that of its list; empty for a whole result.
    pub fn key(&self) -> &'e str {
        self.keys().next().unwrap_or("")
    }

    /// The keys from the record's own object down to the value, joined by dots; empty for a whole result.
    pub fn path(&self) -> String {
        let seen = self.evidence.seen(self.call);
        let top = seen.records.all[self.record() as usize].node;
        let mut steps: Vec<String> = Vec::new();
        let mut node = self.node;
        while node != top && node != 0 {
            let at = seen.result.node(node);
            if at.key != KeyId::NONE {
                steps.push(self.evidence.keys[at.key].text.to_string());
            } else if !seen.result.is_region(at.parent) {
                steps.push(seen.result.place(node).to_string());
            }
            node = at.parent;
        }
        steps.reverse();
        steps.join(".")
    }

    /// The records it belongs to, from the outermost in; empty where nothing names one.
    pub fn records(&self) -> Vec<RecordName<'e>> {
        let seen = self.evidence.seen(self.call);
        let mut names: Vec<_> = seen
            .records
            .chain(self.record())
            .filter_map(|record| record_name(self.evidence, self.call, record))
            .collect();
        names.reverse();
        names
    }

    /// Whether a later result for the same record and key says otherwise.
    pub fn superseded(&self) -> bool {
        crate::engine::handoff::verify::supersede::later(self.evidence, self.call, self.node).is_some()
    }

    fn record(&self) -> u32 {
        self.evidence.seen(self.call).record_of(self.node)
    }

    /// The keys that it stands under, its own first, out to the whole result's.
    pub fn keys(&self) -> impl Iterator<Item = &'e str> {
        let seen = self.evidence.seen(self.call);
        let evidence = self.evidence;
        std::iter::successors(Some(self.node), move |node| {
            (*node != 0).then(|| seen.result.node(*node).parent)
        })
        .map(move |node| seen.result.node(node).key)
        .filter(|key| *key != KeyId::NONE)
        .map(move |key| &*evidence.keys[key].text)
    }
}

/// The first name of a record, as the run spells it.
pub(crate) fn record_name(evidence: &Evidence, call: u32, record: u32) -> Option<RecordName<'_>> {
    let seen = evidence.seen(call);
    let name = seen.records.names_of(record).next()?;
    let entry = &evidence.keys[name.key];
    let how = seen.records.all[record as usize].how;
    if how == How::Call {
        return Some(RecordName {
            kind: kind(entry.words(), entry.stem()),
            name: seen.arguments.value(name.node),
        });
    }
    let named = seen.result.node(name.node);
    if named.kind == Kind::Object {
        // The key of a map is the name; the map's own key is the kind.
        let text = &*evidence.keys[named.key].text;
        return Some(RecordName {
            kind: kind(entry.words(), entry.words().len()),
            name: Cow::Borrowed(text),
        });
    }
    let value = seen.result.value(name.node);
    if Words::of(&value).text == seen.folded(name, &evidence.keys) {
        return Some(RecordName { kind: kind(entry.words(), entry.stem()), name: value });
    }
    // A name in parts, `first_name` and `last_name`.
    let parts: Vec<_> = seen
        .result
        .children(named.parent)
        .filter(|child| evidence.keys[seen.result.node(*child).key].class == Class::Name)
        .map(|child| seen.result.value(child))
        .collect();
    Some(RecordName { kind: String::new(), name: Cow::Owned(parts.join(" ")) })
}

/// The first `count` words, the last one in singular.
fn kind(words: &Words, count: usize) -> String {
    let mut kind = String::new();
    for (index, word) in words.iter().take(count).enumerate() {
        if index > 0 {
            kind.push(' ');
        }
        let word = if index + 1 == count { singular(word) } else { Cow::Borrowed(word) };
        kind.push_str(&word);
    }
    kind
}
