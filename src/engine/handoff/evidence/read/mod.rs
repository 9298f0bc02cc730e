//! Reads a result, whatever it is printed as: JSON, JSON inside text inside
//! JSON, printed objects, lines of `key: value`, sentences, one bare value.
//! Never fails and never recurses; what it cannot read stays text.

mod fields;
mod lines;
mod scalar;
mod scan;

use scalar::literal;
pub(crate) use scalar::unescape;
use scan::{behind_space, may_hold_values, prints_object};

use super::document::{Document, Kind, Node};
use super::keys::{KeyId, Keys, is_bare};

/// What of one result is indexed at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes; the rest of a longer result is not read.
    pub(crate) bytes: usize,
    /// Values.
    pub(crate) nodes: usize,
    /// Objects and lists inside each other; deeper ones are stepped over.
    pub(crate) depth: usize,
}

impl Limits {
    pub(crate) const DEFAULT: Limits = Limits { bytes: 16 << 20, nodes: 200_000, depth: 64 };
}

/// Reads `text`.
pub(crate) fn read(text: &str, keys: &mut Keys, limits: Limits) -> Document {
    read_in(&mut Room::default(), text, keys, limits)
}

/// Room to read in, one text after the other.
#[derive(Debug)]
pub(crate) struct Room {
    frames: Vec<Frame>,
    nodes: Vec<Node>,
}

/// So many nodes are read in room that is used again; more are handed over as they are.
const MANY: usize = 4_096;

impl Default for Room {
    fn default() -> Self {
        Room { frames: Vec::with_capacity(8), nodes: Vec::new() }
    }
}

/// Reads `text` in room that was used before.
pub(crate) fn read_in(room: &mut Room, text: &str, keys: &mut Keys, limits: Limits) -> Document {
    room.frames.clear();
    room.nodes.clear();
    let cut = floor_boundary(text, limits.bytes);
    let mut owned = String::with_capacity(cut);
    owned.push_str(&text[..cut]);
    let mut reader = Reader {
        bounded: cut < text.len(),
        pos: 0,
        end: owned.len(),
        own: owned.len(),
        text: owned,
        nodes: std::mem::take(&mut room.nodes),
        frames: &mut room.frames,
        keys,
        last: KeyId::NONE,
        limits,
    };
    reader.whole();
    let Reader { text, own, mut nodes, bounded, .. } = reader;
    if nodes.len() <= MANY {
        // What is kept has no room to spare.
        let kept = nodes.as_slice().to_vec();
        room.nodes = std::mem::replace(&mut nodes, kept);
    }
    Document::new(text, own, nodes, bounded)
}

fn floor_boundary(text: &str, limit: usize) -> usize {
    if text.len() <= limit {
        return text.len();
    }
    (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// An object, list or region that is being read.
#[derive(Debug)]
struct Frame {
    node: u32,
    shape: Shape,
    /// Where reading goes on after a region: position and end.
    resume: (usize, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// `key: value` or `key=value` up to this byte.
    Pairs(u8),
    /// Values up to this byte.
    Values(u8),
    /// Values up to the end of the text.
    Region,
    /// `key=value` up to the end of the text.
    RegionPairs,
}

impl Shape {
    /// Whether this byte closes it.
    #[inline]
    fn ends_at(self, byte: u8) -> bool {
        matches!(self, Shape::Pairs(close) | Shape::Values(close) if close == byte)
    }
}

struct Reader<'k> {
    text: String,
    nodes: Vec<Node>,
    frames: &'k mut Vec<Frame>,
    pos: usize,
    end: usize,
    own: usize,
    bounded: bool,
    keys: &'k mut Keys,
    /// The key that was read last.
    last: KeyId,
    limits: Limits,
}

/// The byte broke the form that was being read.
struct Broken;

impl Reader<'_> {
    fn whole(&mut self) {
        self.push(KeyId::NONE, 0, Kind::Region, (0, self.end), false);
        let shape = self.form(0, self.end);
        match shape {
            Form::Values => self.region(Shape::Region),
            Form::Pairs => self.region(Shape::RegionPairs),
            Form::Scalar(kind, span) => {
                let escaped = kind == Kind::Text && self.text.as_bytes()[span.0..span.1].contains(&b'\\');
                let node = self.push(KeyId::NONE, 0, kind, span, escaped);
                if kind == Kind::Text && may_hold_values(&self.text.as_bytes()[span.0..span.1], escaped) {
                    self.inside(node);
                    let _ = self.run();
                }
            }
            Form::Prose => self.prose(),
            Form::Nothing => {}
        }
        self.nodes[0].end = self.nodes.len() as u32;
    }

    /// Reads the whole result as values; as prose where that breaks.
    fn region(&mut self, shape: Shape) {
        self.frames.push(Frame { node: 0, shape, resume: (self.end, self.end) });
        let broken = self.run().is_err();
        let good = self.nodes.iter().filter(|node| node.key != KeyId::NONE).count();
        if broken && good < 2 {
            self.nodes.truncate(1);
            self.frames.clear();
            self.prose();
        }
    }

    /// Reads on until nothing is open. A text inside a text that breaks is left at what was
    /// read of it; the outermost one that breaks is reported.
    fn run(&mut self) -> Result<(), Broken> {
        let mut outcome = Ok(());
        while let Some(frame) = self.frames.last() {
            let shape = frame.shape;
            self.skip_space();
            if self.pos >= self.end || self.nodes.len() >= self.limits.nodes {
                self.bounded |= self.pos < self.end;
                self.close_region();
                continue;
            }
            if self.advance(shape).is_err() {
                self.close_region();
                if self.frames.is_empty() {
                    outcome = Err(Broken);
                }
            }
        }
        outcome
    }

    /// Reads on until the innermost region is reached again or the text ends; opens a text that holds values in
    /// its turn.
    fn advance(&mut self, shape: Shape) -> Result<(), Broken> {
        let text = std::mem::take(&mut self.text);
        let reached = self.step(&text, shape);
        self.text = text;
        if reached? {
            self.inside(self.nodes.len() as u32 - 1);
        }
        Ok(())
    }

    /// Reads on until the innermost region is reached again, the text ends, or a text was read that may hold
    /// values: whether it was.
    fn step(&mut self, text: &str, mut shape: Shape) -> Result<bool, Broken> {
        let bytes = &text.as_bytes()[..self.end];
        let mut depth = self.frames.len();
        loop {
            let byte = bytes[self.pos];
            if shape.ends_at(byte) {
                self.pos += 1;
                self.close();
            } else {
                let key = match shape {
                    Shape::Pairs(_) | Shape::RegionPairs => self.key(text, bytes)?,
                    Shape::Region if !matches!(byte, b'{' | b'[') && !prints_object(&bytes[self.pos..]) => {
                        return Err(Broken);
                    }
                    Shape::Values(_) | Shape::Region => KeyId::NONE,
                };
                if self.value(text, bytes, key, shape == Shape::RegionPairs)? {
                    return Ok(true);
                }
            }
            if self.nodes.len() >= self.limits.nodes {
                return Ok(false);
            }
            if self.frames.len() != depth {
                match self.frames.last() {
                    Some(frame) if !is_region(frame.shape) => shape = frame.shape,
                    _ => return Ok(false),
                }
                depth = self.frames.len();
            }
            self.pos = behind_space(bytes, self.pos);
            if self.pos >= bytes.len() {
                return Ok(false);
            }
        }
    }

    fn skip_space(&mut self) {
        self.pos = behind_space(&self.text.as_bytes()[..self.end], self.pos);
    }

    /// Closes the innermost object or list.
    #[inline]
    fn close(&mut self) {
        if let Some(frame) = self.frames.pop() {
            self.seal(frame.node);
        }
    }

    /// Closes everything up to the innermost region, and that.
    fn close_region(&mut self) {
        while let Some(frame) = self.frames.pop() {
            self.seal_end(frame.node);
            if is_region(frame.shape) {
                (self.pos, self.end) = frame.resume;
                break;
            }
        }
    }

    /// Writes down where a node's text ends.
    #[inline]
    fn seal(&mut self, node: u32) {
        let pos = self.pos;
        let sealed = &mut self.nodes[node as usize];
        sealed.len = (pos as u32).saturating_sub(sealed.start);
        self.seal_end(node);
    }

    fn seal_end(&mut self, node: u32) {
        let end = self.nodes.len() as u32;
        let sealed = &mut self.nodes[node as usize];
        sealed.end = end;
        if matches!(sealed.kind, Kind::Object | Kind::Array) {
            sealed.len = sealed.len.min((self.pos.min(self.end) as u32).saturating_sub(sealed.start));
        }
    }

    /// Reads on inside a text value if it holds values in its turn; [`may_hold_values`] has been asked.
    fn inside(&mut self, node: u32) {
        let (start, len, escaped) = {
            let node = &self.nodes[node as usize];
            (node.start as usize, node.len as usize, node.escaped)
        };
        let region = if escaped {
            if self.text.len() > self.limits.bytes.saturating_mul(4) {
                self.bounded = true;
                return;
            }
            let text = unescape(&self.text[start..start + len]);
            let from = self.text.len();
            self.text.push_str(&text);
            (from, self.text.len())
        } else {
            (start, start + len)
        };
        let shape = match self.form(region.0, region.1) {
            Form::Values => Shape::Region,
            Form::Pairs => Shape::RegionPairs,
            Form::Prose => {
                self.lines(node, region);
                return;
            }
            Form::Scalar(..) | Form::Nothing => return,
        };
        self.frames.push(Frame { node, shape, resume: (self.pos, self.end) });
        (self.pos, self.end) = region;
    }

    /// What a text is, by how it begins and ends.
    fn form(&self, start: usize, end: usize) -> Form {
        let text = &self.text[start..end];
        let trimmed = text.trim();
        let offset = start + (text.len() - text.trim_start().len());
        let Some(first) = trimmed.bytes().next() else { return Form::Nothing };
        if let Some(kind) = literal(trimmed) {
            return Form::Scalar(kind, (offset, offset + trimmed.len()));
        }
        if matches!(first, b'{' | b'[') {
            return Form::Values;
        }
        if first == b'"' && trimmed.len() > 1 && trimmed.ends_with('"') {
            return Form::Scalar(Kind::Text, (offset + 1, offset + trimmed.len() - 1));
        }
        let word = trimmed.bytes().take_while(|b| is_bare(*b)).count();
        let follows = trimmed.as_bytes().get(word).copied();
        if word > 0 && follows == Some(b'=') && trimmed.as_bytes().get(word + 1) != Some(&b' ') {
            return Form::Pairs;
        }
        if word > 0 && follows == Some(b'(') && trimmed.ends_with(')') && trimmed.contains('=') {
            return Form::Values;
        }
        if trimmed.len() <= 200 && !trimmed.contains('\n') && trimmed.split_whitespace().count() <= 4 {
            return Form::Scalar(Kind::Text, (offset, offset + trimmed.len()));
        }
        Form::Prose
    }

    #[inline]
    fn parent(&self) -> u32 {
        self.frames.last().map_or(0, |frame| frame.node)
    }

    #[inline]
    fn push(&mut self, key: KeyId, parent: u32, kind: Kind, span: (usize, usize), escaped: bool) -> u32 {
        let index = self.nodes.len() as u32;
        self.nodes.push(Node {
            key,
            kind,
            escaped,
            parent,
            end: index + 1,
            start: span.0 as u32,
            len: (span.1 - span.0) as u32,
        });
        index
    }
}

/// What a text is as a whole.
enum Form {
    Nothing,
    Scalar(Kind, (usize, usize)),
    Values,
    Pairs,
    Prose,
}

fn is_region(shape: Shape) -> bool {
    matches!(shape, Shape::Region | Shape::RegionPairs)
}
