//! Finds the records of a result: its objects that have an identity.

use std::sync::OnceLock;

use super::super::document::{Document, Kind};
use super::super::keys::{Class, KeyId, Keys, Tool};
use super::{FIELDS, How, NAME_BYTES, Name, PARTS, Record, Records, Slice, Written, core, may_name};
use crate::engine::handoff::value::fold;

/// Finds the records of `result`.
pub(crate) fn identify(
    result: &Document,
    arguments: &Document,
    tool: &Tool,
    keys: &Keys,
    room: &mut Room,
) -> Records {
    room.clear();
    let mut finder =
        Finder { core: core(result, keys), map: (0, false), room, result, arguments, tool, keys };
    finder.call();
    let mut around = 0;
    for (index, node) in result.nodes.iter().enumerate().skip(1) {
        if node.kind != Kind::Object {
            continue;
        }
        let index = index as u32;
        while finder.room.all[around as usize].end <= index {
            around = finder.room.all[around as usize].parent;
        }
        if let Some(record) = finder.object(index, around) {
            around = record;
        }
    }
    finder.disown();
    Records {
        all: room.all.clone(),
        names: room.names.clone(),
        slices: room.slices.clone(),
        by_hash: OnceLock::new(),
    }
}

/// Where the records of a result are gathered, one result after the other.
#[derive(Debug)]
pub(crate) struct Room {
    all: Vec<Record>,
    names: Vec<Name>,
    slices: Vec<Slice>,
    /// The scalar arguments: node, hash of the folded value.
    wanted: Vec<(u32, u64)>,
    /// Those of them that name what the call is about: how well, and which.
    naming: Vec<(u32, usize)>,
    /// The elements of lists with their names: list, hash, day, record.
    elements: Vec<(u32, u64, u64, u32)>,
}

impl Default for Room {
    fn default() -> Self {
        Room {
            all: Vec::with_capacity(32),
            names: Vec::with_capacity(64),
            slices: Vec::new(),
            wanted: Vec::with_capacity(8),
            naming: Vec::with_capacity(8),
            elements: Vec::with_capacity(32),
        }
    }
}

impl Room {
    fn clear(&mut self) {
        self.all.clear();
        self.names.clear();
        self.slices.clear();
        self.wanted.clear();
        self.naming.clear();
        self.elements.clear();
    }
}

/// A longer argument names nothing.
const ARGUMENT_BYTES: u32 = 1_000;
/// At most this many arguments are looked at.
const ARGUMENTS: usize = 32;
struct Finder<'f> {
    core: u32,
    room: &'f mut Room,
    /// The object that was last asked whether all in it are objects, and whether they are.
    map: (u32, bool),
    result: &'f Document,
    arguments: &'f Document,
    tool: &'f Tool,
    keys: &'f Keys,
}

/// What the fields of an object say about what it is.
#[derive(Default)]
struct Fields {
    /// The field that fits best as its identity, and how well.
    best: Option<(u32, u32)>,
    /// Names in words.
    names: [u32; PARTS],
    named: usize,
    day: Option<u32>,
}

impl Fields {
    fn names(&self) -> &[u32] {
        &self.names[..self.named]
    }
}

impl Finder<'_> {
    /// Record 0: what the call was about.
    fn call(&mut self) {
        let end = self.result.nodes.len() as u32;
        self.room.all.push(Record { node: 0, end, parent: 0, how: How::Call, day: 0 });
        let (arguments, whole) = (self.arguments, self.result.whole());
        let scalars = arguments
            .children(core(arguments, self.keys))
            .filter(|child| matches!(arguments.node(*child).kind, Kind::Text | Kind::Number))
            .take(ARGUMENTS)
            .filter(|child| arguments.node(*child).len <= ARGUMENT_BYTES);
        for (place, node) in scalars.enumerate() {
            let key = arguments.node(node).key;
            let hash = fold::hash_of(&arguments.value(node));
            self.room.wanted.push((node, hash));
            let score = self.argument_score(node);
            if score > 0 {
                self.room.naming.push((score, place));
            }
            if (score > 0 || self.keys[key].says_place())
                && memchr::memmem::find(whole.as_bytes(), arguments.raw(node).as_bytes()).is_none()
            {
                self.room.slices.push(Slice { key, hash });
            }
        }
        // The argument that names what the tool is for comes first.
        self.room.naming.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        for at in 0..self.room.naming.len() {
            let (node, hash) = self.room.wanted[self.room.naming[at].1];
            self.name(0, arguments.node(node).key, hash, node, Written::Value);
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
    fn object(&mut self, index: u32, around: u32) -> Option<u32> {
        let result = self.result;
        let mut fields = self.fields(index);
        let map_key = self.map_key(index);
        if fields.best.is_none() && !map_key {
            fields.best = self.likeness(index, fields.named).map(|child| (child, 1));
            if fields.best.is_none() && (fields.named == 0 || !self.is_element(index) || index == self.core) {
                return None;
            }
        }
        let record = self.room.all.len() as u32;
        let how = if fields.best.is_some() || map_key { How::Own } else { How::Name };
        let class = |child: u32| self.keys.class(result.node(child).key);
        let series = !map_key && fields.best.is_none_or(|(child, _)| class(child) == Class::Number);
        let day = fields.day.filter(|_| series).map_or(0, |child| self.hash(child));
        let end = result.node(index).end;
        self.room.all.push(Record { node: index, end, parent: around, how, day });
        if let Some((child, _)) = fields.best {
            self.field_name(record, child);
        }
        if map_key {
            let node = result.node(index);
            let hash = fold::hash_of(&self.keys[node.key].text);
            self.name(record, result.node(node.parent).key, hash, index, Written::Key);
        }
        let names = fields.names();
        if names.len() > 1 && names.iter().all(|child| self.keys[result.node(*child).key].stem() > 0) {
            // First and last name are one name.
            let full: Vec<_> = names.iter().map(|child| result.value(*child)).collect();
            let (hash, first) = (fold::hash_of(&full.join(" ")), names[0]);
            self.name(record, result.node(first).key, hash, first, Written::Parts);
        } else {
            for child in names {
                self.field_name(record, *child);
            }
        }
        Some(record)
    }

    /// What the fields of an object say about what it is.
    #[inline]
    fn fields(&self, index: u32) -> Fields {
        let mut fields = Fields::default();
        for (place, child) in self.result.children(index).take(FIELDS).enumerate() {
            let node = self.result.node(child);
            let class = self.keys.class(node.key);
            if matches!(class, Class::Plain | Class::Wrapper) || !may_name(node) {
                continue;
            }
            match class {
                Class::Id | Class::Number => {
                    let score = self.score(index, child, place);
                    if score > fields.best.map_or(0, |(_, score)| score) {
                        fields.best = Some((child, score));
                    }
                }
                Class::Name if fields.named < PARTS => {
                    fields.names[fields.named] = child;
                    fields.named += 1;
                }
                Class::Day => fields.day = Some(child),
                _ => {}
            }
        }
        fields
    }

    /// Without a field that says so, an element of a list is known by what looks like an identifier, by a name,
    /// or by what it begins with; a whole result only by what was asked for.
    fn likeness(&self, index: u32, named: usize) -> Option<u32> {
        let result = self.result;
        let is_core = index == self.core;
        if !is_core && !self.is_element(index) {
            return None;
        }
        let mut texts =
            result.children(index).take(FIELDS).filter(|child| result.node(*child).kind == Kind::Text);
        let first = texts.clone().next();
        let mut like = texts.by_ref().filter(|child| is_identifier(result.raw(*child)));
        if is_core {
            return like.find(|child| self.is_wanted(self.hash(*child)));
        }
        let first = || first.filter(|child| *child == index + 1 && named == 0);
        like.next().or_else(first).filter(|child| result.node(*child).len <= NAME_BYTES)
    }

    fn is_element(&self, index: u32) -> bool {
        let parent = self.result.node(index).parent;
        self.result.node(parent).kind == Kind::Array || self.result.is_region(parent)
    }

    /// How well a field fits as the identity of the object that it stands in; 0 is not at all.
    fn score(&self, object: u32, child: u32, place: usize) -> u32 {
        let key = &self.keys[self.result.node(child).key];
        let mut score = 0;
        if key.stem() == 0 {
            score += 8;
        } else if key.is_of(&self.keys[container(self.result, object)]) {
            score += 12;
        }
        let top = object == self.core || self.result.node(object).parent == self.core;
        if top && self.tool.names_stem(key) {
            score += 6;
        }
        if object == self.core && self.is_wanted(self.hash(child)) {
            score += 4;
        }
        if place == 0 || (score == 0 && object == self.core) {
            // Objects begin with what they are, as a rule.
            score += 2;
        }
        if score > 0 && key.class == Class::Id { score + 1 } else { score }
    }

    /// Whether an object is an entry of a map from identities to objects.
    fn map_key(&mut self, index: u32) -> bool {
        let result = self.result;
        let node = result.node(index);
        if node.key == KeyId::NONE || result.node(node.parent).kind != Kind::Object {
            return false;
        }
        if self.map.0 != node.parent {
            self.map = (node.parent, all_objects(result, node.parent));
        }
        if !self.map.1 {
            return false;
        }
        let key = &self.keys[node.key];
        if key.text.len() > NAME_BYTES as usize || key.class == Class::Wrapper {
            return false;
        }
        if key.text.bytes().any(|b| b.is_ascii_digit()) {
            return true;
        }
        let same = |child: u32| {
            matches!(result.node(child).kind, Kind::Text | Kind::Number) && *result.raw(child) == *key.text
        };
        result.children(index).take(16).any(same) || alike(result, node.parent)
    }

    /// The hash of a value of the result.
    fn hash(&self, node: u32) -> u64 {
        fold::hash_of(&self.result.value(node))
    }

    /// Whether the call asked for a value.
    fn is_wanted(&self, hash: u64) -> bool {
        self.room.wanted.iter().any(|(_, wanted)| *wanted == hash)
    }

    /// Names a record by one of its fields.
    fn field_name(&mut self, record: u32, child: u32) {
        self.name(record, self.result.node(child).key, self.hash(child), child, Written::Value);
    }

    fn name(&mut self, record: u32, key: KeyId, hash: u64, node: u32, written: Written) {
        let mut known = self.room.names.iter().rev().take_while(|name| name.record == record);
        if hash != fold::WORDLESS && !known.any(|name| name.hash == hash) {
            self.room.names.push(Name { hash, record, key, written, node });
        }
    }

    /// Takes their identity from elements of one list that share it: it is not their own.
    fn disown(&mut self) {
        let Room { all, names, elements, .. } = &mut *self.room;
        // The first name of each record but the call's own.
        let mut last = 0;
        for name in names.iter() {
            if name.record == last {
                continue;
            }
            last = name.record;
            let record = &all[last as usize];
            let parent = self.result.node(record.node).parent;
            if self.result.node(parent).kind == Kind::Array {
                elements.push((parent, name.hash, record.day, last));
            }
        }
        elements.sort_unstable();
        for pair in elements.windows(2) {
            if (pair[0].0, pair[0].1, pair[0].2) == (pair[1].0, pair[1].1, pair[1].2) {
                for (_, _, _, index) in pair {
                    all[*index as usize].how = How::Nowhere;
                }
            }
        }
    }
}

/// Whether a text looks like an identifier: one word with a digit that is neither amount, day nor time.
fn is_identifier(text: &str) -> bool {
    if !(3..=48).contains(&text.len()) {
        return false;
    }
    let (mut digits, mut marks, mut letters) = (0, 0, false);
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' => digits += 1,
            b'a'..=b'z' | b'A'..=b'Z' => letters = true,
            b'-' | b'/' | b':' | b'.' => marks += 1,
            b'_' | b'#' => {}
            _ => return false,
        }
    }
    let moment = digits >= 6 && marks >= 2;
    digits > 0 && (letters && !moment || digits >= 5 && digits == text.len())
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
    result.children(map).take(FIELDS).all(|child| result.node(child).kind == Kind::Object)
}

/// Whether the objects of a map begin with the same key, and there are several.
fn alike(result: &Document, map: u32) -> bool {
    let mut firsts = result
        .children(map)
        .take(FIELDS)
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
