//! Reads a result, whatever it is printed as: JSON, JSON inside text inside
//! JSON, printed objects, lines of `key: value`, sentences, one bare value.
//! Never fails and never recurses; what it cannot read stays text.

mod lines;
mod scalar;

use scalar::literal;
pub(crate) use scalar::unescape;

use super::document::{Document, Kind, Node};
use super::keys::{BARE, KeyId, Keys, is_bare};

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

    /// Reads a key and what stands between it and its value.
    #[inline]
    fn key(&mut self, text: &str, bytes: &[u8]) -> Result<KeyId, Broken> {
        let (key, mut at) = match self.foreseen(bytes) {
            Some(found) => found,
            None => self.named(text, bytes)?,
        };
        self.last = key;
        if bytes.get(at) != Some(&b':') {
            at = behind_space(bytes, at);
        }
        match bytes.get(at) {
            Some(b':') => at += 1,
            Some(b'=') => at += if bytes.get(at + 1) == Some(&b'>') { 2 } else { 1 },
            _ => return Err(Broken),
        }
        while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            at += 1;
        }
        self.pos = at;
        if at >= bytes.len() { Err(Broken) } else { Ok(key) }
    }

    /// The key that comes here if it is the one that came behind the last key the last time.
    #[inline]
    fn foreseen(&self, bytes: &[u8]) -> Option<(KeyId, usize)> {
        let id = self.keys.behind(self.last);
        let (key, rest) = (&self.keys[id], bytes.get(self.pos..)?);
        let (quote, rest) = match rest {
            [quote @ (b'"' | b'\''), rest @ ..] => (Some(*quote), rest),
            rest => (None, rest),
        };
        let behind = rest.strip_prefix(key.text.as_bytes())?;
        let ends = match quote {
            Some(_) => behind.first().copied() == quote,
            None => !behind.first().is_some_and(|byte| is_bare(*byte)),
        };
        let end = bytes.len() - behind.len() + usize::from(quote.is_some());
        (ends && (quote == Some(b'"') || key.bare)).then_some((id, end))
    }

    /// Reads a key, and where it ends.
    fn named(&mut self, text: &str, bytes: &[u8]) -> Result<(KeyId, usize), Broken> {
        let at = self.pos;
        let quote = bytes[at];
        let (key, end) = if matches!(quote, b'"' | b'\'') {
            let (end, escaped) = closing(bytes, at + 1, quote)?;
            if escaped {
                return Ok((self.keys.intern(&unescape(&text[at + 1..end])), end + 1));
            }
            (self.keys.intern(&text[at + 1..end]), end + 1)
        } else {
            let rest = &bytes[at..bytes.len().min(at + BARE)];
            let len = rest.iter().position(|byte| !is_bare(*byte)).unwrap_or(rest.len());
            if len == 0 || !text.is_char_boundary(at + len) {
                return Err(Broken);
            }
            (self.keys.intern(&text[at..at + len]), at + len)
        };
        // What has neither escapes nor its quote in it is the same key wherever its bytes stand.
        if quote == b'"' || self.keys[key].bare {
            self.keys.follow(self.last, key);
        }
        Ok((key, end))
    }

    /// Reads a value, or opens it, and gives whether it is a text that may hold values. `spaced` says that an
    /// unquoted value ends at a space.
    #[inline]
    fn value(&mut self, text: &str, bytes: &[u8], key: KeyId, spaced: bool) -> Result<bool, Broken> {
        match bytes[self.pos] {
            quote @ (b'"' | b'\'') => return self.quoted(bytes, key, quote),
            b'{' => self.open(bytes, key, Kind::Object, Shape::Pairs(b'}')),
            b'[' => self.open(bytes, key, Kind::Array, Shape::Values(b']')),
            b'(' => self.open(bytes, key, Kind::Array, Shape::Values(b')')),
            b'}' | b']' | b')' | b':' | b'=' => return Err(Broken),
            _ => self.unquoted(text, bytes, key, spaced)?,
        }
        Ok(false)
    }

    /// Reads a quoted text, and gives whether it may hold values.
    #[inline]
    fn quoted(&mut self, bytes: &[u8], key: KeyId, quote: u8) -> Result<bool, Broken> {
        let from = self.pos + 1;
        let (end, escaped) = match closing(bytes, from, quote) {
            Ok((end, escaped)) => {
                self.pos = end + 1;
                (end, escaped)
            }
            // Cut off: the rest is the value, as far as it goes.
            Err(Broken) if bytes.len() - from > CUT_OFF => {
                self.pos = bytes.len();
                (bytes.len(), memchr::memchr(b'\\', &bytes[from..]).is_some())
            }
            Err(Broken) => return Err(Broken),
        };
        self.push(key, self.parent(), Kind::Text, (from, end), escaped);
        let raw = &bytes[from..end];
        // Most values are short, and begin with a letter or a digit.
        let plain = raw.len() < SHORT && raw.first().is_none_or(u8::is_ascii_alphanumeric);
        Ok(!plain && may_hold_values(raw, escaped) && self.frames.len() < self.limits.depth)
    }

    /// Reads a value without quotes, or opens a printed object.
    fn unquoted(&mut self, text: &str, bytes: &[u8], key: KeyId, spaced: bool) -> Result<(), Broken> {
        let at = self.pos;
        let end = at + bare(&bytes[at..], spaced);
        self.pos = end;
        if bytes.get(end) == Some(&b'(') && end > at {
            // A printed object: `Name(key=value, ...)`.
            self.open(bytes, key, Kind::Object, Shape::Pairs(b')'));
            return Ok(());
        }
        let word = match &text[at..end] {
            word if bytes[end - usize::from(end > at)].is_ascii_alphanumeric() => word,
            word => word.trim_end(),
        };
        if word.is_empty() {
            return Err(Broken);
        }
        let kind = literal(word).unwrap_or(Kind::Text);
        self.push(key, self.parent(), kind, (at, at + word.len()), false);
        Ok(())
    }

    /// Opens an object or a list; beyond the depth limit it is stepped over.
    #[inline]
    fn open(&mut self, bytes: &[u8], key: KeyId, kind: Kind, shape: Shape) {
        let at = self.pos;
        let node = self.push(key, self.parent(), kind, (at, self.end), false);
        if self.frames.len() >= self.limits.depth {
            self.bounded = true;
            self.step_over(bytes);
            self.seal(node);
            return;
        }
        self.pos += 1;
        self.frames.push(Frame { node, shape, resume: (0, 0) });
    }

    /// Moves behind the bracket that closes the one at the cursor, counting and not nesting.
    fn step_over(&mut self, bytes: &[u8]) {
        let mut open = 0usize;
        let mut quote = None;
        while self.pos < self.end {
            let byte = bytes[self.pos];
            self.pos += 1;
            match (quote, byte) {
                (Some(_), b'\\') => self.pos += 1,
                (Some(mark), _) => quote = Some(mark).filter(|mark| *mark != byte),
                (None, b'"' | b'\'') => quote = Some(byte),
                (None, b'{' | b'[' | b'(') => open += 1,
                (None, b'}' | b']' | b')') => {
                    open = open.saturating_sub(1);
                    if open == 0 {
                        break;
                    }
                }
                (None, _) => {}
            }
        }
        self.pos = self.pos.min(self.end);
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

/// Shorter texts hold values only if they begin like it.
const SHORT: usize = 24;
/// A quoted text that does not end is taken as cut off if it is at least this long.
const CUT_OFF: usize = 512;

/// The end of the quoted text that begins at `from`, and whether it has escapes.
#[inline]
fn closing(bytes: &[u8], from: usize, quote: u8) -> Result<(usize, bool), Broken> {
    let mut at = from;
    let mut escaped = false;
    loop {
        let found = at + find_quote(bytes.get(at..).unwrap_or(&[]), quote).ok_or(Broken)?;
        if bytes[found] == quote {
            return Ok((found, escaped));
        }
        escaped = true;
        at = found + 2;
    }
}

/// Where space and separators end.
#[inline]
fn behind_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t' | b',' | b';')) {
        at += 1;
    }
    at
}

/// Whether a printed object, `Name(...)`, begins here.
fn prints_object(rest: &[u8]) -> bool {
    let word = rest.iter().take(BARE).take_while(|b| is_bare(**b)).count();
    word > 0 && rest.get(word) == Some(&b'(')
}

/// The length of the unquoted value that begins here.
fn bare(rest: &[u8], spaced: bool) -> usize {
    let ends = |byte: &u8| ENDS_BARE[usize::from(*byte)] || (spaced && *byte == b' ');
    rest.iter().position(ends).unwrap_or(rest.len())
}

/// The bytes that end an unquoted value.
const ENDS_BARE: [bool; 256] = {
    let (mut table, ends) = ([false; 256], b",}])({[\n\"'");
    let mut index = 0;
    while index < ends.len() {
        table[ends[index] as usize] = true;
        index += 1;
    }
    table
};

/// Where the quote or a backslash stands first. Most texts are short, so that eight bytes at a time
/// in a register beat a search in wide strides, which is taken up behind the first few.
#[inline]
fn find_quote(bytes: &[u8], quote: u8) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let quotes = ONES * u64::from(quote);
    let (chunks, _) = bytes.as_chunks::<8>();
    for (index, chunk) in chunks.iter().take(4).enumerate() {
        let word = u64::from_le_bytes(*chunk);
        let found = zero(word ^ quotes) | zero(word ^ (ONES * u64::from(b'\\')));
        if found != 0 {
            return Some(index * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let skipped = chunks.len().min(4) * 8;
    memchr::memchr2(quote, b'\\', &bytes[skipped..]).map(|found| skipped + found)
}

/// Whether a text value is worth reading as values: it begins like an object, a list, or
/// printed pairs, or has lines.
fn may_hold_values(raw: &[u8], escaped: bool) -> bool {
    if raw.len() < 2 {
        return false;
    }
    let mut rest = raw;
    while let [b' ' | b'\n' | b'\t' | b'\r', tail @ ..] | [b'\\', b'n' | b't' | b'r', tail @ ..] = rest {
        rest = tail;
    }
    match rest.first() {
        Some(b'{' | b'[' | b'"') => return rest.len() > 1,
        None => return false,
        Some(_) if raw.len() < SHORT => return false,
        Some(_) => {}
    }
    let word = rest.iter().take_while(|b| is_bare(**b)).count();
    if word > 0 && matches!(rest.get(word), Some(b'=' | b'(')) {
        return true;
    }
    let breaks = |found: usize| rest.get(found + 1) == Some(&b'n');
    memchr::memchr(b'\n', rest).is_some() || (escaped && memchr::memchr_iter(b'\\', rest).any(breaks))
}
