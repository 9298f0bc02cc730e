//! One result as a tree of values in the order of its text.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::keys::KeyId;
use super::lookup::{LARGE, Lookup};

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text that was read as several values; stands at the root, and for text inside text.
    Region,
    /// A map from keys to values.
    Object,
    /// A list.
    Array,
    /// A text value.
    Text,
    /// A number, spelled as in the result.
    Number,
    /// A truth value.
    Bool,
    /// Null, in any spelling.
    Null,
    /// Sentences.
    Prose,
}

/// A value and where it stands. There are some seventy of them in a kilobyte, so that their size counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) key: KeyId,
    pub(crate) kind: Kind,
    /// Whether the text has escapes in it.
    pub(crate) escaped: bool,
    pub(crate) parent: u32,
    /// One past the last node inside this one: `index < end <= nodes.len()`.
    pub(crate) end: u32,
    pub(crate) start: u32,
    pub(crate) len: u32,
}

/// A result's values. Node 0 is the whole.
#[derive(Debug, Default)]
pub(crate) struct Document {
    /// The result, followed by decoded texts that were read in their turn.
    pub(crate) text: String,
    pub(crate) nodes: Vec<Node>,
    /// Something was left unread: a bound was reached.
    pub(crate) bounded: bool,
    /// Where the result as it came ends in `text`.
    pub(crate) own: usize,
    /// Boxed: most results are too small to have one.
    lookup: OnceLock<Box<Lookup>>,
}

impl Document {
    pub(crate) fn new(text: String, own: usize, nodes: Vec<Node>, bounded: bool) -> Document {
        Document { text, nodes, bounded, own, lookup: OnceLock::new() }
    }

    /// The places of keys and values, for a large result.
    pub(crate) fn lookup(&self) -> Option<&Lookup> {
        (self.nodes.len() > LARGE).then(|| &**self.lookup.get_or_init(|| Box::new(Lookup::of(self))))
    }

    pub(crate) fn node(&self, index: u32) -> &Node {
        &self.nodes[index as usize]
    }

    /// A node's text as it stands in the result.
    pub(crate) fn raw(&self, index: u32) -> &str {
        let node = self.node(index);
        self.text.get(node.start as usize..(node.start + node.len) as usize).unwrap_or("")
    }

    /// A node's text, escapes decoded.
    pub(crate) fn value(&self, index: u32) -> Cow<'_, str> {
        let raw = self.raw(index);
        if self.node(index).escaped { Cow::Owned(super::read::unescape(raw)) } else { Cow::Borrowed(raw) }
    }

    /// The nodes directly inside `parent`, in order.
    pub(crate) fn children(&self, parent: u32) -> Children<'_> {
        let end = self.node(parent).end;
        Children { document: self, next: parent + 1, end }
    }

    /// Whether the node holds one value and no more.
    pub(crate) fn is_leaf(&self, index: u32) -> bool {
        matches!(self.node(index).kind, Kind::Text | Kind::Number | Kind::Bool | Kind::Null)
    }

    /// Whether the node is the root or text that was read as values.
    pub(crate) fn is_region(&self, index: u32) -> bool {
        let node = self.node(index);
        node.kind == Kind::Region || (node.kind == Kind::Text && node.end > index + 1)
    }

    /// The place of a node among its parent's children.
    pub(crate) fn place(&self, index: u32) -> usize {
        self.children(self.node(index).parent).take_while(|child| *child != index).count()
    }

    /// The result as it came.
    pub(crate) fn whole(&self) -> &str {
        self.text.get(..self.own).unwrap_or("")
    }
}

/// Iterates over the nodes directly inside one node.
#[derive(Clone)]
pub(crate) struct Children<'d> {
    document: &'d Document,
    next: u32,
    end: u32,
}

impl Iterator for Children<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.next >= self.end {
            return None;
        }
        let index = self.next;
        self.next = self.document.node(index).end;
        Some(index)
    }
}
