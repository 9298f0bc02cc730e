//! Reads a result, whatever it is printed as: JSON, JSON inside text inside
//! JSON, printed objects, lines of `key: value`, sentences, one bare value.
//! Never fails and never recurses; what it cannot read stays text.

use super::document::{Document, Kind, Node};
use super::keys::{KeyId, Keys};

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
    let cut = floor_boundary(text, limits.bytes);
    let mut owned = String::with_capacity(cut);
    owned.push_str(&text[..cut]);
    let mut reader = Reader {
        bounded: cut < text.len(),
        pos: 0,
        end: owned.len(),
        own: owned.len(),
        text: owned,
        nodes: Vec::with_capacity(text.len() / 24 + 4),
        frames: Vec::with_capacity(8),
        keys,
        limits,
    };
    reader.whole();
    Document { text: reader.text, nodes: reader.nodes, bounded: reader.bounded, own: reader.own }
}

fn floor_boundary(text: &str, limit: usize) -> usize {
    if text.len() <= limit {
        return text.len();
    }
    (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// An object, list or region that is being read.
struct Frame {
    node: u32,
    shape: Shape,
    /// Where reading goes on after a region: position and end.
    resume: (usize, usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
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

struct Reader<'k> {
    text: String,
    nodes: Vec<Node>,
    frames: Vec<Frame>,
    pos: usize,
    end: usize,
    own: usize,
    bounded: bool,
    keys: &'k mut Keys,
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
                if kind == Kind::Text {
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
            if self.step(shape).is_err() {
                self.close_region();
                if self.frames.is_empty() {
                    outcome = Err(Broken);
                }
            }
        }
        outcome
    }

    /// Reads one key, value or closing byte.
    fn step(&mut self, shape: Shape) -> Result<(), Broken> {
        let byte = self.text.as_bytes()[self.pos];
        match shape {
            Shape::Pairs(close) | Shape::Values(close) if byte == close => {
                self.pos += 1;
                self.close();
                Ok(())
            }
            Shape::Pairs(_) | Shape::RegionPairs => {
                let key = self.key()?;
                self.value(key, true)
            }
            Shape::Values(_) => self.value(KeyId::NONE, true),
            Shape::Region => match byte {
                b'{' | b'[' => self.value(KeyId::NONE, true),
                _ => Err(Broken),
            },
        }
    }

    fn skip_space(&mut self) {
        let bytes = self.text.as_bytes();
        while self.pos < self.end && matches!(bytes[self.pos], b' ' | b'\n' | b'\r' | b'\t' | b',' | b';') {
            self.pos += 1;
        }
    }

    /// Reads a key and what stands between it and its value.
    fn key(&mut self) -> Result<KeyId, Broken> {
        let bytes = self.text.as_bytes();
        let key = match bytes[self.pos] {
            quote @ (b'"' | b'\'') => {
                let (start, end, escaped) = self.quoted(quote)?;
                if escaped {
                    let text = unescape(&self.text[start..end]);
                    self.keys.intern(&text)
                } else {
                    self.keys.intern(&self.text[start..end])
                }
            }
            _ => {
                let start = self.pos;
                let rest = &bytes[start..self.end.min(start + 80)];
                let len = rest.iter().position(|b| !is_word(*b)).unwrap_or(rest.len());
                if len == 0 {
                    return Err(Broken);
                }
                self.pos += len;
                self.keys.intern(&self.text[start..start + len])
            }
        };
        self.skip_space();
        match self.text.as_bytes().get(self.pos) {
            Some(b':') => self.pos += 1,
            Some(b'=') => {
                self.pos += 1;
                if self.text.as_bytes().get(self.pos) == Some(&b'>') {
                    self.pos += 1;
                }
            }
            _ => return Err(Broken),
        }
        while matches!(self.text.as_bytes().get(self.pos), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.pos += 1;
        }
        if self.pos >= self.end { Err(Broken) } else { Ok(key) }
    }

    /// Reads a value, or opens it.
    fn value(&mut self, key: KeyId, deep: bool) -> Result<(), Broken> {
        let at = self.pos;
        match self.text.as_bytes()[at] {
            b'{' => self.open(key, Kind::Object, Shape::Pairs(b'}')),
            b'[' => self.open(key, Kind::Array, Shape::Values(b']')),
            b'(' => self.open(key, Kind::Array, Shape::Values(b')')),
            quote @ (b'"' | b'\'') => {
                let (start, end, escaped) = self.quoted(quote)?;
                let node = self.push(key, self.parent(), Kind::Text, (start, end), escaped);
                if deep {
                    self.inside(node);
                }
            }
            b'}' | b']' | b')' | b':' | b'=' => return Err(Broken),
            _ => {
                let len = self.bare();
                self.pos = at + len;
                if self.text.as_bytes().get(at + len) == Some(&b'(') && len > 0 {
                    // A printed object: `Name(key=value, ...)`.
                    self.open(key, Kind::Object, Shape::Pairs(b')'));
                    return Ok(());
                }
                let word = self.text[at..at + len].trim_end();
                if word.is_empty() {
                    return Err(Broken);
                }
                let kind = literal(word).unwrap_or(Kind::Text);
                let span = (at, at + word.len());
                self.push(key, self.parent(), kind, span, false);
            }
        }
        Ok(())
    }

    /// The length of the unquoted value at the cursor.
    fn bare(&self) -> usize {
        let rest = &self.text.as_bytes()[self.pos..self.end];
        let pairs = matches!(self.frames.last().map(|frame| frame.shape), Some(Shape::RegionPairs));
        rest.iter()
            .position(|b| {
                matches!(b, b',' | b'}' | b']' | b')' | b'(' | b'{' | b'[' | b'\n' | b'"' | b'\'')
                    || (pairs && *b == b' ')
            })
            .unwrap_or(rest.len())
    }

    /// Opens an object or a list; beyond the depth limit it is stepped over.
    fn open(&mut self, key: KeyId, kind: Kind, shape: Shape) {
        let at = self.pos;
        let node = self.push(key, self.parent(), kind, (at, self.end), false);
        if self.frames.len() >= self.limits.depth {
            self.bounded = true;
            self.step_over();
            self.seal(node);
            return;
        }
        self.pos += 1;
        self.frames.push(Frame { node, shape, resume: (0, 0) });
    }

    /// Moves behind the bracket that closes the one at the cursor, counting and not nesting.
    fn step_over(&mut self) {
        let bytes = self.text.as_bytes();
        let mut open = 0usize;
        let mut quote = None;
        while self.pos < self.end {
            let byte = bytes[self.pos];
            self.pos += 1;
            match (quote, byte) {
                (Some(_), b'\\') => self.pos += 1,
                (Some(mark), _) if mark == byte => quote = None,
                (Some(_), _) => {}
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
            sealed.len = sealed.len.min((self.pos.min(self.text.len()) as u32).saturating_sub(sealed.start));
        }
    }

    /// Reads the quoted text at the cursor and moves behind it.
    fn quoted(&mut self, quote: u8) -> Result<(usize, usize, bool), Broken> {
        let start = self.pos + 1;
        let bytes = &self.text.as_bytes()[..self.end];
        let mut at = start;
        let mut escaped = false;
        loop {
            let Some(found) = memchr::memchr2(quote, b'\\', bytes.get(at..).unwrap_or(&[])) else {
                // Cut off: the rest is the value, as far as it goes.
                if self.end - start > 512 {
                    self.pos = self.end;
                    return Ok((start, self.end, escaped));
                }
                return Err(Broken);
            };
            if bytes[at + found] == quote {
                self.pos = at + found + 1;
                return Ok((start, at + found, escaped));
            }
            escaped = true;
            at += found + 2;
        }
    }

    /// Reads on inside a text value if it holds values in its turn.
    fn inside(&mut self, node: u32) {
        let (start, len, escaped) = {
            let node = &self.nodes[node as usize];
            (node.start as usize, node.len as usize, node.escaped)
        };
        let raw = &self.text.as_bytes()[start..start + len];
        if len < 8 || self.frames.len() >= self.limits.depth || !may_hold_values(raw) {
            return;
        }
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
        let word = trimmed.bytes().take_while(|b| is_word(*b)).count();
        let follows = trimmed.as_bytes().get(word).copied();
        if word > 0 && follows == Some(b'=') && trimmed.as_bytes().get(word + 1) != Some(&b' ') {
            return Form::Pairs;
        }
        if word > 0 && follows == Some(b'(') && trimmed.ends_with(')') && trimmed.contains('=') {
            return Form::Pairs;
        }
        if trimmed.len() <= 200 && !trimmed.contains('\n') && trimmed.split_whitespace().count() <= 4 {
            return Form::Scalar(Kind::Text, (offset, offset + trimmed.len()));
        }
        Form::Prose
    }

    /// Sentences: the text itself, its lines of `key: value`, and values printed inside it.
    fn prose(&mut self) {
        let (start, end) = (0, self.end);
        let node = self.push(KeyId::NONE, 0, Kind::Prose, (start, end), false);
        self.lines(node, (start, end));
        self.embedded(node, start, end);
        self.nodes[node as usize].end = self.nodes.len() as u32;
    }

    /// Objects and lists printed inside sentences.
    fn embedded(&mut self, node: u32, start: usize, end: usize) {
        let mut at = start;
        while let Some(found) = memchr::memchr2(b'{', b'[', &self.text.as_bytes()[at..end]) {
            at += found;
            let opens = self.text[at + 1..end].trim_start().bytes().next();
            if !matches!(opens, Some(b'"' | b'\'' | b'{' | b'[')) || self.nodes.len() >= self.limits.nodes {
                at += 1;
                continue;
            }
            let before = self.nodes.len();
            self.frames.push(Frame { node, shape: Shape::Region, resume: (end, end) });
            (self.pos, self.end) = (at, end);
            let depth = self.frames.len();
            // One value only: what follows it is prose again.
            let read = self.step(Shape::Region).is_ok() && self.finish_value(depth);
            let reached = self.pos;
            while self.frames.len() > depth {
                self.close();
            }
            self.frames.pop();
            if read || self.nodes.len() > before + 2 {
                at = reached.max(at + 1);
            } else {
                self.nodes.truncate(before);
                at += 1;
            }
            if !self.text.is_char_boundary(at) || at >= end {
                break;
            }
        }
        self.end = end;
    }

    /// Reads on until the value that was opened last is closed.
    fn finish_value(&mut self, depth: usize) -> bool {
        while self.frames.len() > depth {
            let Some(shape) = self.frames.last().map(|frame| frame.shape) else { return false };
            self.skip_space();
            if self.pos >= self.end {
                if is_region(shape) {
                    self.close_region();
                    continue;
                }
                return false;
            }
            if self.nodes.len() >= self.limits.nodes {
                self.bounded = true;
                return true;
            }
            if self.step(shape).is_err() {
                if is_region(shape) || self.frames.iter().skip(depth).any(|frame| is_region(frame.shape)) {
                    self.close_region();
                    continue;
                }
                return false;
            }
        }
        true
    }

    /// Lines of `key: value`; lines that begin with a dash, and keys that come again, begin a new group.
    fn lines(&mut self, node: u32, (start, end): (usize, usize)) {
        let mut groups: Vec<Line> = Vec::new();
        let mut at = start;
        for line in self.text[start..end].split_inclusive('\n') {
            if let Some(found) = Line::read(line, at) {
                groups.push(found);
            }
            at += line.len();
        }
        let count = groups.len();
        if count == 0 {
            return;
        }
        let parent = node;
        let mut group: Option<u32> = None;
        let mut seen: Vec<KeyId> = Vec::new();
        let mut container = KeyId::NONE;
        for line in groups {
            if self.nodes.len() >= self.limits.nodes {
                self.bounded = true;
                break;
            }
            let key = self.keys.intern(&self.text[line.key.0..line.key.1]);
            if line.value.0 == line.value.1 {
                container = key;
                continue;
            }
            if line.dash || seen.contains(&key) || seen.len() > 64 || group.is_none() {
                if let Some(open) = group {
                    self.nodes[open as usize].end = self.nodes.len() as u32;
                }
                seen.clear();
                group = Some(self.push(container, parent, Kind::Object, (line.key.0, line.value.1), false));
            }
            seen.push(key);
            let text = &self.text[line.value.0..line.value.1];
            let (kind, span) = match literal(text) {
                Some(kind) => (kind, line.value),
                None if quoted_whole(text) => (Kind::Text, (line.value.0 + 1, line.value.1 - 1)),
                None => (Kind::Text, line.value),
            };
            self.push(key, group.unwrap_or(parent), kind, span, false);
        }
        if let Some(open) = group {
            self.nodes[open as usize].end = self.nodes.len() as u32;
        }
        self.nodes[node as usize].end = self.nodes.len() as u32;
    }

    fn parent(&self) -> u32 {
        self.frames.last().map_or(0, |frame| frame.node)
    }

    fn push(&mut self, key: KeyId, parent: u32, kind: Kind, span: (usize, usize), escaped: bool) -> u32 {
        let index = self.nodes.len() as u32;
        self.nodes.push(Node {
            key,
            parent,
            end: index + 1,
            start: span.0 as u32,
            len: (span.1 - span.0) as u32,
            record: 0,
            kind,
            escaped,
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

/// A line of `key: value`, as byte ranges.
struct Line {
    dash: bool,
    key: (usize, usize),
    value: (usize, usize),
}

impl Line {
    fn read(line: &str, at: usize) -> Option<Line> {
        let trimmed = line.trim_start();
        let marked = trimmed.strip_prefix("- ").or_else(|| trimmed.strip_prefix("* "));
        let body = marked.unwrap_or(trimmed).trim();
        let split = body.find(": ").or_else(|| body.strip_suffix(':').map(str::len))?;
        let key = body[..split].trim_matches(['*', '`', '"', '\'', ' ']);
        if key.is_empty() || key.len() > 40 || key.split_whitespace().count() > 4 {
            return None;
        }
        if !key.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '/' | '#')) {
            return None;
        }
        let value = body[split + 1..].trim_matches(['*', '`', ' ']);
        if value.len() > 400 {
            return None;
        }
        let offset = |part: &str| {
            let from = at + (part.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
            (from, from + part.len())
        };
        let value = if value.is_empty() { (at, at) } else { offset(value) };
        Some(Line { dash: marked.is_some(), key: offset(key), value })
    }
}

fn is_region(shape: Shape) -> bool {
    matches!(shape, Shape::Region | Shape::RegionPairs)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-' || byte == b'.' || byte >= 0x80
}

fn quoted_whole(text: &str) -> bool {
    text.len() >= 2
        && ((text.starts_with('"') && text.ends_with('"'))
            || (text.starts_with('\'') && text.ends_with('\'')))
}

/// Whether a text value is worth reading as values: it begins like an object, a list, or
/// printed pairs, or has lines with keys.
fn may_hold_values(raw: &[u8]) -> bool {
    let mut rest = raw;
    while let [b' ' | b'\n' | b'\t' | b'\r', tail @ ..] | [b'\\', b'n' | b't' | b'r', tail @ ..] = rest {
        rest = tail;
    }
    match rest.first() {
        Some(b'{' | b'[') => return true,
        Some(b'"') if rest.len() > 2 => return true,
        None => return false,
        Some(_) => {}
    }
    let word = rest.iter().take_while(|b| is_word(**b)).count();
    if word > 0 && matches!(rest.get(word), Some(b'=' | b'(')) {
        return true;
    }
    let lines = rest.contains(&b'\n') || rest.windows(2).any(|pair| pair == b"\\n");
    lines && rest.windows(2).any(|pair| pair == b": ")
}

/// The kind of an unquoted literal; none if it is a word.
fn literal(text: &str) -> Option<Kind> {
    match text {
        "true" | "false" | "True" | "False" => return Some(Kind::Bool),
        "null" | "None" | "nil" | "undefined" | "NaN" | "nan" => return Some(Kind::Null),
        _ => {}
    }
    is_number(text).then_some(Kind::Number)
}

/// Whether the text is a number as JSON spells it, with at most 64 bytes.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match digits.find(['e', 'E']) {
        Some(at) => (&digits[..at], Some(&digits[at + 1..])),
        None => (digits, None),
    };
    let (whole, fraction) = match mantissa.find('.') {
        Some(at) => (&mantissa[..at], Some(&mantissa[at + 1..])),
        None => (mantissa, None),
    };
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text.len() <= 64
        && all_digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && fraction.is_none_or(all_digits)
        && exponent.is_none_or(|part| all_digits(part.strip_prefix(['+', '-']).unwrap_or(part)))
}

/// Decodes the escapes that JSON and Python write.
pub(crate) fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(c) = rest.chars().next() else { break };
        rest = &rest[c.len_utf8()..];
        match c {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' | 'f' => out.push(' '),
            'u' => rest = unicode_escape(rest, 4, &mut out),
            'U' => rest = unicode_escape(rest, 8, &mut out),
            'x' => rest = unicode_escape(rest, 2, &mut out),
            other => out.push(other),
        }
    }
    out.push_str(rest);
    out
}

/// Decodes `digits` hex digits, with the second half of a surrogate pair where one follows.
fn unicode_escape<'r>(rest: &'r str, digits: usize, out: &mut String) -> &'r str {
    let hex = |text: &str| {
        let part = text.get(..digits)?;
        if part.bytes().all(|b| b.is_ascii_hexdigit()) { u32::from_str_radix(part, 16).ok() } else { None }
    };
    let Some(code) = hex(rest) else { return rest };
    let after = &rest[digits..];
    if (0xd800..0xdc00).contains(&code)
        && let Some(low) = after.strip_prefix("\\u").and_then(hex)
        && (0xdc00..0xe000).contains(&low)
    {
        out.extend(char::from_u32(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)));
        return &after[6..];
    }
    out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
    after
}
