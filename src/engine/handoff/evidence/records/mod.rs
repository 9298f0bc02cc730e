//! Which record each value of a result belongs to. A record's identity may
//! stand in the result, in an object around it, as the key of a map, or only in
//! the call's arguments.

mod find;

use std::borrow::Cow;
use std::sync::OnceLock;

use super::document::{Document, Kind, Node};
use super::keys::{Class, KeyId, Keys};

pub(crate) use find::{Room, identify};

/// Where a record's identity stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// In the call: its arguments, or the bare call where they name nothing.
    Call,
    /// In a field of its own, or as the key of the map that it stands in.
    Own,
    /// In a name, which others may bear as well.
    Name,
    /// Nowhere: what looked like an identity is not its own. It belongs to the record around it.
    Nowhere,
}

/// An object that is about one thing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) node: u32,
    /// One past the last node that belongs to it or to a record inside it.
    end: u32,
    /// The record around it; record 0, the call's own, is its own parent.
    pub(crate) parent: u32,
    pub(crate) how: How,
    /// The day that tells it from others of a series, hashed; 0 where there is none.
    pub(crate) day: u64,
}

/// One name of one record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    pub(crate) hash: u64,
    pub(crate) record: u32,
    /// The key whose value it is.
    pub(crate) key: KeyId,
    written: Written,
    /// The node that says it; for record 0 a node of the arguments.
    pub(crate) node: u32,
}

/// How a name is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// As a node's value.
    Value,
    /// As the key of a map.
    Key,
    /// In parts, `first_name` and `last_name`.
    Parts,
}

impl Name {
    /// The name as the call spells it.
    pub(crate) fn spelled<'d>(
        &self,
        result: &'d Document,
        arguments: &'d Document,
        keys: &'d Keys,
    ) -> Cow<'d, str> {
        match self.written {
            Written::Value if self.record == 0 => arguments.value(self.node),
            Written::Value => result.value(self.node),
            Written::Key => Cow::Borrowed(&keys[result.node(self.node).key].text),
            Written::Parts => {
                let object = result.node(self.node).parent;
                let fields = result.children(object).take(FIELDS);
                let parts = fields.filter(|child| {
                    let node = result.node(*child);
                    may_name(node) && keys.class(node.key) == Class::Name
                });
                let parts: Vec<_> = parts.take(PARTS).map(|part| result.value(part)).collect();
                Cow::Owned(parts.join(" "))
            }
        }
    }
}

/// An argument that says which slice of the world a result is about and that the result does not repeat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    pub(crate) key: KeyId,
    pub(crate) hash: u64,
}

/// The records of one result.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) all: Vec<Record>,
    pub(crate) names: Vec<Name>,
    pub(crate) slices: Vec<Slice>,
    /// Every name's hash with its record, sorted; most results are never asked for one.
    by_hash: OnceLock<Vec<(u64, u32)>>,
}

impl Records {
    /// The records that bear a name, in the order of the result.
    pub(crate) fn named(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let by_hash = self.by_hash.get_or_init(|| {
            let mut by_hash: Vec<_> = self.own_names().map(|name| (name.hash, name.record)).collect();
            by_hash.sort_unstable();
            by_hash
        });
        let from = by_hash.partition_point(|(own, _)| *own < hash);
        by_hash[from..].iter().take_while(move |(own, _)| *own == hash).map(|(_, record)| *record)
    }

    /// The innermost record that a node of the result belongs to.
    pub(crate) fn of(&self, node: u32) -> u32 {
        let mut record = self.all.partition_point(|record| record.node <= node).saturating_sub(1) as u32;
        while record != 0 && self.all[record as usize].end <= node {
            record = self.all[record as usize].parent;
        }
        record
    }

    /// All names that are a record's own.
    pub(crate) fn own_names(&self) -> impl Iterator<Item = &Name> {
        self.names.iter().filter(|name| self.all[name.record as usize].how != How::Nowhere)
    }

    /// The names of one record, the first one first.
    pub(crate) fn names_of(&self, record: u32) -> impl Iterator<Item = &Name> {
        let from = self.names.partition_point(|name| name.record < record);
        self.names[from..].iter().take_while(move |name| name.record == record)
    }

    /// The nearest record, from `record` outwards, that has an identity.
    pub(crate) fn known(&self, mut record: u32) -> u32 {
        while record != 0 && self.all[record as usize].how == How::Nowhere {
            record = self.all[record as usize].parent;
        }
        record
    }

    /// The record around a record, the call's own at last.
    pub(crate) fn around(&self, record: u32) -> Option<u32> {
        (record != 0).then(|| self.known(self.all[record as usize].parent))
    }

    /// From a record outwards; the call's own only where it says more than those inside it.
    pub(crate) fn chain(&self, record: u32) -> impl Iterator<Item = u32> + '_ {
        let told =
            move |hash: u64| self.outwards(record).any(|inner| inner != 0 && self.has_name(inner, hash));
        let news = self.known(record) == 0 || self.names_of(0).next().is_some_and(|name| !told(name.hash));
        self.outwards(record).filter(move |record| *record != 0 || news)
    }

    fn outwards(&self, record: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(self.known(record)), |record| self.around(*record))
    }

    pub(crate) fn has_name(&self, record: u32, hash: u64) -> bool {
        self.names_of(record).any(|name| name.hash == hash)
    }
}

/// The node that holds the result proper, inside what tools and protocols wrap around it.
pub(crate) fn core(result: &Document, keys: &Keys) -> u32 {
    let mut node = 0;
    for _ in 0..16 {
        let inner = if result.is_region(node) {
            let mut children = result.children(node).filter(|child| result.node(*child).kind != Kind::Prose);
            match (children.next(), children.next()) {
                (Some(only), None) => Some(only),
                _ => None,
            }
        } else if result.node(node).kind == Kind::Object {
            result.children(node).find(|child| {
                let inner = result.node(*child);
                keys.class(inner.key) == Class::Wrapper && (inner.end > child + 1 || is_tree(inner.kind))
            })
        } else if result.node(node).kind == Kind::Array && keys.class(result.node(node).key) == Class::Wrapper
        {
            let mut children = result.children(node);
            children.next().filter(|_| children.next().is_none())
        } else {
            None
        };
        match inner {
            Some(inner) if result.node(inner).end > inner + 1 || is_tree(result.node(inner).kind) => {
                node = inner;
            }
            _ => break,
        }
    }
    node
}

fn is_tree(kind: Kind) -> bool {
    matches!(kind, Kind::Object | Kind::Array)
}

/// An identity is at most this long; longer texts are prose.
const NAME_BYTES: u32 = 96;
/// At most this many fields of an object are looked at.
const FIELDS: usize = 64;
/// A name has at most this many parts.
const PARTS: usize = 4;

/// Whether a value may be a name, by its kind and length.
fn may_name(node: &Node) -> bool {
    matches!(node.kind, Kind::Text | Kind::Number) && (1..=NAME_BYTES).contains(&node.len)
}
