//! Which record each value of a result belongs to. A record's identity may
//! stand in the result, in an object around it, as the key of a map, or only in
//! the call's arguments.

use std::sync::OnceLock;

use super::document::{Document, Kind};
use super::keys::{Class, KeyId, Keys, Tool};
use crate::engine::handoff::value::fold;

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
    /// Where it stands in `Records::text`, folded and run together.
    pub(crate) start: u32,
    pub(crate) len: u32,
    /// The node that says it; for record 0 a node of the arguments.
    pub(crate) node: u32,
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
    text: Vec<u8>,
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

    pub(crate) fn name_text(&self, name: &Name) -> &str {
        let text = self.text.get(name.start as usize..(name.start + name.len) as usize);
        text.and_then(|text| std::str::from_utf8(text).ok()).unwrap_or("")
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

/// Finds the records of `result` and writes each node's record into it.
pub(crate) fn identify(result: &mut Document, arguments: &Document, tool: &Tool, keys: &Keys) -> Records {
    let mut finder = Finder {
        core: core(result, keys),
        records: Records {
            all: Vec::with_capacity(8),
            names: Vec::with_capacity(16),
            slices: Vec::new(),
            text: Vec::with_capacity(128),
            by_hash: OnceLock::new(),
        },
        wanted: wanted(arguments, keys),
        arguments,
        tool,
        keys,
    };
    finder.call(result);
    for index in 1..result.nodes.len() as u32 {
        let parent = result.node(index).parent;
        let around = result.node(parent).record;
        let own =
            (result.node(index).kind == Kind::Object).then(|| finder.object(result, index, around)).flatten();
        result.nodes[index as usize].record = own.unwrap_or(around);
    }
    finder.disown(result);
    finder.records
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
                keys[inner.key].class == Class::Wrapper && (inner.end > child + 1 || is_tree(inner.kind))
            })
        } else if result.node(node).kind == Kind::Array && keys[result.node(node).key].class == Class::Wrapper
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

/// The folded scalar arguments.
fn wanted(arguments: &Document, keys: &Keys) -> Vec<(u32, u64)> {
    let top = core(arguments, keys);
    arguments
        .children(top)
        .filter(|child| matches!(arguments.node(*child).kind, Kind::Text | Kind::Number))
        .take(32)
        .map(|child| (child, fold::hash_of(&arguments.value(child))))
        .collect()
}

/// An identity is at most this long; longer texts are prose.
const NAME_BYTES: u32 = 96;

struct Finder<'f> {
    core: u32,
    records: Records,
    /// The scalar arguments: node, hash of the folded value.
    wanted: Vec<(u32, u64)>,
    arguments: &'f Document,
    tool: &'f Tool,
    keys: &'f Keys,
}

impl Finder<'_> {
    /// Record 0: what the call was about.
    fn call(&mut self, result: &Document) {
        self.records.all.push(Record { node: 0, parent: 0, how: How::Call, day: 0 });
        let whole = result.whole();
        let mut named: Vec<(u32, u32)> = Vec::new();
        for (node, hash) in &self.wanted {
            let key = self.arguments.node(*node).key;
            let entry = &self.keys[key];
            let score = self.argument_score(*node);
            if score > 0 {
                named.push((score, *node));
            }
            if (score > 0 || entry.place)
                && memchr::memmem::find(whole.as_bytes(), self.arguments.raw(*node).as_bytes()).is_none()
            {
                self.records.slices.push(Slice { key, hash: *hash });
            }
        }
        // The argument that names what the tool is for comes first.
        named.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        for (_, node) in named {
            let text = self.arguments.value(node);
            self.name(0, self.arguments.node(node).key, &text, node);
        }
    }

    /// How well an argument names what a call is about; 0 is not at all.
    fn argument_score(&self, node: u32) -> u32 {
        let at = self.arguments.node(node);
        let key = &self.keys[at.key];
        let tool = self.tool.shares_word(key);
        let class = match key.class {
            Class::Id => 4,
            Class::Number => 3,
            Class::Name => 2,
            _ if at.kind == Kind::Text && is_identifier(self.arguments.raw(node)) => 1,
            _ if at.kind == Kind::Text && tool && at.len <= 48 => 1,
            _ => return 0,
        };
        class + if tool { 8 } else { 0 }
    }

    /// The record that an object is, if it has an identity of its own.
    fn object(&mut self, result: &Document, index: u32, around: u32) -> Option<u32> {
        let parent = result.node(index).parent;
        let element = result.node(parent).kind == Kind::Array || result.is_region(parent);
        let container = container(result, index);
        let mut best: Option<(u32, u32)> = None;
        let mut names: [Option<u32>; 4] = [None; 4];
        let mut named = 0;
        let mut day = None;
        let mut places = 0u32;
        for child in result.children(index).take(64) {
            let node = result.node(child);
            places += 1;
            if !matches!(node.kind, Kind::Text | Kind::Number) || node.len == 0 || node.len > NAME_BYTES {
                continue;
            }
            match self.keys[node.key].class {
                Class::Id | Class::Number => {
                    let score = self.score(result, index, child, container, places);
                    if score > best.map_or(0, |(_, score)| score) {
                        best = Some((child, score));
                    }
                }
                Class::Name if named < names.len() => {
                    names[named] = Some(child);
                    named += 1;
                }
                Class::Day => day = Some(child),
                _ => {}
            }
        }
        let map_key = self.map_key(result, index);
        let is_core = index == self.core;
        if best.is_none() && !map_key {
            // Without a field that says so, an element of a list is known by what looks like an identifier,
            // by a name, or by what it begins with; a whole result only by what was asked for.
            let asked = || {
                let hash = |child: u32| fold::hash_of(&result.value(child));
                result.children(index).take(64).filter(|child| result.node(*child).kind == Kind::Text).find(
                    |child| {
                        is_identifier(result.raw(*child))
                            && self.wanted.iter().any(|(_, wanted)| *wanted == hash(*child))
                    },
                )
            };
            let texts =
                || result.children(index).take(64).filter(|child| result.node(*child).kind == Kind::Text);
            let like = || texts().find(|child| is_identifier(result.raw(*child)));
            let first = || texts().next().filter(|child| *child == index + 1 && named == 0);
            let short = |child: &u32| result.node(*child).len <= NAME_BYTES;
            let own = match (is_core, element) {
                (true, _) => asked(),
                (false, true) => like().or_else(first).filter(short),
                (false, false) => None,
            };
            best = own.map(|child| (child, 1));
        }
        let opens = best.is_some() || map_key || (named > 0 && (element && !is_core));
        if !opens {
            return None;
        }
        let record = self.records.all.len() as u32;
        let how = if best.is_some() || map_key { How::Own } else { How::Name };
        let series = best.is_none_or(|(child, _)| self.keys[result.node(child).key].class == Class::Number)
            && !map_key;
        let day = day.filter(|_| series).map_or(0, |child| fold::hash_of(&result.value(child)));
        self.records.all.push(Record { node: index, parent: around, how, day });
        if let Some((child, _)) = best {
            self.name(record, result.node(child).key, &result.value(child), child);
        }
        if map_key {
            let key = result.node(index).key;
            let text = &self.keys[key].text;
            self.name(record, result.node(parent).key, text, index);
        }
        let names = &names[..named];
        if named > 1 && names.iter().flatten().all(|child| self.keys[result.node(*child).key].stem > 0) {
            // First and last name are one name.
            let full: Vec<_> = names.iter().flatten().map(|child| result.value(*child)).collect();
            let key = names[0].map_or(KeyId::NONE, |child| result.node(child).key);
            self.name(record, key, &full.join(" "), names[0].unwrap_or(index));
        } else {
            for child in names.iter().flatten() {
                self.name(record, result.node(*child).key, &result.value(*child), *child);
            }
        }
        Some(record)
    }

    /// How well a field fits as the identity of the object that it stands in; 0 is not at all.
    fn score(&self, result: &Document, object: u32, child: u32, container: KeyId, place: u32) -> u32 {
        let key = &self.keys[result.node(child).key];
        let mut score = 0;
        if key.stem == 0 {
            score += 8;
        } else if key.stem_last == self.keys[container].last {
            score += 12;
        }
        let top = object == self.core || result.node(object).parent == self.core;
        if top && self.tool.names_stem(key) {
            score += 6;
        }
        if object == self.core {
            let hash = fold::hash_of(&result.value(child));
            if self.wanted.iter().any(|(_, wanted)| *wanted == hash) {
                score += 4;
            }
        }
        if place == 1 || (score == 0 && object == self.core) {
            // Objects begin with what they are, as a rule.
            score += 2;
        }
        if score > 0 && key.class == Class::Id { score + 1 } else { score }
    }

    /// Whether an object is an entry of a map from identities to objects.
    fn map_key(&self, result: &Document, index: u32) -> bool {
        let node = result.node(index);
        if node.key == KeyId::NONE || result.node(node.parent).kind != Kind::Object {
            return false;
        }
        let key = &self.keys[node.key];
        if key.text.len() > NAME_BYTES as usize || key.class == Class::Wrapper {
            return false;
        }
        if !all_objects(result, node.parent) {
            return false;
        }
        if key.text.bytes().any(|b| b.is_ascii_digit()) {
            return true;
        }
        let same = |child: u32| {
            matches!(result.node(child).kind, Kind::Text | Kind::Number) && *result.raw(child) == *key.text
        };
        result.children(index).take(16).any(same)
            || (all_objects(result, node.parent) && alike(result, node.parent))
    }

    fn name(&mut self, record: u32, key: KeyId, text: &str, node: u32) {
        let start = self.records.text.len();
        fold::run_together(text, &mut self.records.text);
        let len = self.records.text.len() - start;
        let hash = fold::hash_bytes(&self.records.text[start..]);
        let known = self.records.names.iter().rev().take_while(|name| name.record == record);
        if len == 0 || known.into_iter().any(|name| name.hash == hash) {
            self.records.text.truncate(start);
            return;
        }
        let (start, len) = (start as u32, len as u32);
        self.records.names.push(Name { hash, record, key, start, len, node });
    }

    /// Takes their identity from elements of one list that share it: it is not their own.
    fn disown(&mut self, result: &Document) {
        let mut seen: Vec<(u32, u64, u64, u32)> = Vec::new();
        for (index, record) in self.records.all.iter().enumerate().skip(1) {
            let parent = result.node(record.node).parent;
            if result.node(parent).kind != Kind::Array {
                continue;
            }
            if let Some(name) = self.records.names_of(index as u32).next() {
                seen.push((parent, name.hash, record.day, index as u32));
            }
        }
        seen.sort_unstable();
        for pair in seen.windows(2) {
            if (pair[0].0, pair[0].1, pair[0].2) == (pair[1].0, pair[1].1, pair[1].2) {
                for (_, _, _, index) in pair {
                    self.records.all[*index as usize].how = How::Nowhere;
                }
            }
        }
    }
}

/// Whether a text looks like an identifier: one word with a digit that is neither amount, day nor time.
fn is_identifier(text: &str) -> bool {
    let bytes = text.as_bytes();
    let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'#' | b':' | b'/' | b'.');
    let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = bytes.iter().any(u8::is_ascii_alphabetic);
    let day = digits >= 6 && bytes.iter().filter(|b| matches!(b, b'-' | b'/' | b':' | b'.')).count() >= 2;
    (3..=48).contains(&bytes.len())
        && digits > 0
        && bytes.iter().all(plain)
        && (letters && !day || digits >= 5 && digits == bytes.len())
        && !bytes.ends_with(b"%")
}

/// The key that says what kind of thing stands at a node: its own, or its list's.
fn container(result: &Document, index: u32) -> KeyId {
    let mut node = index;
    for _ in 0..4 {
        let key = result.node(node).key;
        if key != KeyId::NONE {
            return key;
        }
        if node == 0 {
            break;
        }
        node = result.node(node).parent;
    }
    KeyId::NONE
}

/// Whether everything in a map is an object.
fn all_objects(result: &Document, map: u32) -> bool {
    result.children(map).take(64).all(|child| result.node(child).kind == Kind::Object)
}

/// Whether the objects of a map begin with the same key, and there are several.
fn alike(result: &Document, map: u32) -> bool {
    let mut firsts = result
        .children(map)
        .take(64)
        .map(|child| result.children(child).next().map(|first| result.node(first).key));
    let Some(Some(first)) = firsts.next() else { return false };
    let mut more = false;
    for other in firsts {
        more = true;
        if other != Some(first) {
            return false;
        }
    }
    more
}
