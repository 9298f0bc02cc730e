//! Results that are written for people: sentences, lines of `key: value`,
//! tables, and values printed in between.

use super::super::document::Kind;
use super::super::keys::KeyId;
use super::scalar::literal;
use super::{Frame, Reader, Shape, is_region};

/// A table has at most this many columns.
const COLUMNS: usize = 64;
/// A key of a line or table has at most this many bytes.
const KEY_BYTES: usize = 40;
/// Keys of one group of lines.
const GROUP: usize = 64;

type Span = (usize, usize);

impl Reader<'_> {
    /// The whole result as sentences: the text itself, what its lines say, and values printed inside it.
    pub(super) fn prose(&mut self) {
        let (start, end) = (0, self.end);
        let node = self.push(KeyId::NONE, 0, Kind::Prose, (start, end), false);
        self.lines(node, (start, end));
        self.embedded(node, start, end);
        self.nodes[node as usize].end = self.nodes.len() as u32;
    }

    /// Tables and lines of `key: value` inside a text.
    pub(super) fn lines(&mut self, node: u32, (start, end): Span) {
        let mut groups = Groups { node, open: None, keys: Vec::new(), container: KeyId::NONE };
        let mut header: Option<(u8, Vec<KeyId>)> = None;
        let mut previous: Option<Span> = None;
        let mut spans: Vec<Span> = Vec::new();
        let mut at = start;
        while at < end && self.nodes.len() < self.limits.nodes {
            let len =
                memchr::memchr(b'\n', &self.text.as_bytes()[at..end]).map_or(end - at, |found| found + 1);
            let line = trimmed(&self.text, (at, at + len));
            at += len;
            if line.0 == line.1 {
                (header, previous) = (None, None);
                continue;
            }
            if let Some((mark, columns)) = &header {
                cells(&self.text, line, *mark, &mut spans);
                if spans.len() == columns.len() {
                    if !is_rule(&self.text[line.0..line.1]) {
                        groups.close(self);
                        self.row(node, columns, &spans);
                    }
                    continue;
                }
                header = None;
            }
            if let Some(found) = self.header(previous, line) {
                groups.close(self);
                let first_is_data = !is_rule(&self.text[line.0..line.1]);
                if first_is_data {
                    cells(&self.text, line, found.0, &mut spans);
                    self.row(node, &found.1, &spans);
                }
                header = Some(found);
                continue;
            }
            // A line with a key has a colon, which no head has.
            previous = (!groups.line(self, line) && may_head(&self.text[line.0..line.1])).then_some(line);
        }
        self.bounded |= at < end;
        groups.close(self);
        self.nodes[node as usize].end = self.nodes.len() as u32;
    }

    /// Whether two lines are a table's head and its first row, and then the mark between its columns
    /// and their keys.
    fn header(&mut self, head: Option<Span>, row: Span) -> Option<(u8, Vec<KeyId>)> {
        let head = head?;
        let mark = [b'|', b'\t', b';', b','].into_iter().find(|mark| {
            let count = count_cells(&self.text, head, *mark);
            (2..=COLUMNS).contains(&count) && count_cells(&self.text, row, *mark) == count
        })?;
        let mut names = Vec::new();
        cells(&self.text, head, mark, &mut names);
        let is_key = |(from, to): &Span| {
            let name = &self.text[*from..*to];
            !name.is_empty()
                && name.len() <= KEY_BYTES
                && name.starts_with(|c: char| c.is_alphabetic() || c == '#')
                && name.split_whitespace().count() <= 4
        };
        if !names.iter().all(is_key) {
            return None;
        }
        let columns = names.iter().map(|(from, to)| self.keys.intern(&self.text[*from..*to])).collect();
        Some((mark, columns))
    }

    fn row(&mut self, node: u32, columns: &[KeyId], cells: &[Span]) {
        let span = (cells.first().map_or(0, |cell| cell.0), cells.last().map_or(0, |cell| cell.1));
        let row = self.push(KeyId::NONE, node, Kind::Object, span, false);
        for (key, cell) in columns.iter().zip(cells) {
            if cell.0 < cell.1 {
                self.cell(*key, row, *cell);
            }
        }
        self.nodes[row as usize].end = self.nodes.len() as u32;
    }

    fn cell(&mut self, key: KeyId, parent: u32, (from, to): Span) {
        let text = &self.text[from..to];
        let (kind, span) = match literal(text) {
            Some(kind) => (kind, (from, to)),
            None if is_quoted(text) => (Kind::Text, (from + 1, to - 1)),
            None => (Kind::Text, (from, to)),
        };
        self.push(key, parent, kind, span, false);
    }

    /// Objects and lists printed inside sentences.
    fn embedded(&mut self, node: u32, start: usize, end: usize) {
        /// So many openings that lead nowhere are tried.
        const TRIES: usize = 1_000;
        let mut at = start;
        let mut tries = 0;
        while let Some(found) = memchr::memchr2(b'{', b'[', &self.text.as_bytes()[at..end]) {
            at += found;
            let opens = self.text.as_bytes()[at + 1..end].iter().find(|b| !b.is_ascii_whitespace());
            if !matches!(opens, Some(b'"' | b'\'' | b'{' | b'[')) {
                at += 1;
                continue;
            }
            if self.nodes.len() >= self.limits.nodes || tries > TRIES {
                self.bounded = true;
                break;
            }
            let before = self.nodes.len();
            self.frames.push(Frame { node, shape: Shape::Region, resume: (end, end) });
            (self.pos, self.end) = (at, end);
            let depth = self.frames.len();
            // One value only: what follows it is sentences again.
            let read = self.advance(Shape::Region).is_ok() && self.finish_value(depth);
            let reached = self.pos.min(end);
            while self.frames.len() > depth {
                self.close();
            }
            self.frames.truncate(depth - 1);
            if read || self.nodes.len() > before + 2 {
                at = reached.max(at + 1);
            } else {
                tries += 1;
                self.nodes.truncate(before);
                at += 1;
            }
            while at < end && !self.text.is_char_boundary(at) {
                at += 1;
            }
        }
        self.end = end;
    }

    /// Reads on until the value that was opened last is closed.
    fn finish_value(&mut self, depth: usize) -> bool {
        while self.frames.len() > depth {
            let Some(shape) = self.frames.last().map(|frame| frame.shape) else { return false };
            self.skip_space();
            if self.nodes.len() >= self.limits.nodes {
                self.bounded = true;
                return true;
            }
            let inside_text = self.frames[depth..].iter().any(|frame| is_region(frame.shape));
            if self.pos >= self.end || self.advance(shape).is_err() {
                if !inside_text {
                    return false;
                }
                self.close_region();
            }
        }
        true
    }
}

/// Lines of `key: value`, gathered into objects: a dash, or a key that comes again, begins a new one.
struct Groups {
    node: u32,
    open: Option<u32>,
    keys: Vec<KeyId>,
    /// The key of the last line that had no value: what the lines below it are.
    container: KeyId,
}

impl Groups {
    /// Takes a line in if it has a key, and gives whether it has.
    fn line(&mut self, reader: &mut Reader<'_>, line: Span) -> bool {
        let Some((dash, key, value)) = key_and_value(&reader.text, line) else { return false };
        let key = reader.keys.intern(&reader.text[key.0..key.1]);
        if value.0 == value.1 {
            self.container = key;
            return true;
        }
        let group = match self.open {
            Some(open) if !dash && !self.keys.contains(&key) && self.keys.len() < GROUP => open,
            _ => {
                self.close(reader);
                let open = reader.push(self.container, self.node, Kind::Object, (line.0, value.1), false);
                self.open = Some(open);
                open
            }
        };
        self.keys.push(key);
        reader.cell(key, group, value);
        true
    }

    fn close(&mut self, reader: &mut Reader<'_>) {
        if let Some(open) = self.open.take() {
            reader.nodes[open as usize].end = reader.nodes.len() as u32;
        }
        self.keys.clear();
    }
}

/// A line's key and value, and whether it begins with a dash.
fn key_and_value(text: &str, line: Span) -> Option<(bool, Span, Span)> {
    let content = &text[line.0..line.1];
    let dash = content.starts_with("- ") || content.starts_with("* ");
    let from = if dash { line.0 + 2 } else { line.0 };
    let body = &text[from..line.1];
    let mut colons = memchr::memchr_iter(b':', body.as_bytes());
    let colon = colons.find(|at| body.as_bytes().get(at + 1).is_none_or(|behind| *behind == b' '))?;
    let key = trimmed_of(text, (from, from + colon), |b| matches!(b, b'*' | b'`' | b'"' | b'\'' | b' '));
    let value = trimmed_of(text, (from + colon + 1, line.1), |b| matches!(b, b'*' | b'`' | b' '));
    let name = &text[key.0..key.1];
    let good = is_key(name)
        && value.1 - value.0 <= 400
        // A printed object is read as one, not as a text.
        && !text[value.0..value.1].starts_with(['{', '[']);
    good.then_some((dash, key, value))
}

/// Whether a text before a colon is a key: a few words and no sentence.
fn is_key(name: &str) -> bool {
    if name.len() > KEY_BYTES {
        return false;
    }
    let in_key = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '#' | ' ');
    let (mut words, mut before) = (0, b' ');
    for byte in name.bytes() {
        if byte.is_ascii() && !in_key(char::from(byte)) {
            return false;
        }
        words += usize::from(before == b' ' && byte != b' ');
        before = byte;
    }
    (1..=4).contains(&words) && (name.is_ascii() || name.chars().all(in_key))
}

/// Whether a line may be the head of a table: it has marks, and nothing that is in no column's name.
fn may_head(line: &str) -> bool {
    let bytes = line.as_bytes();
    memchr::memchr3(b':', b'.', b'"', bytes).is_none()
        && (memchr::memchr3(b'|', b'\t', b';', bytes).is_some() || memchr::memchr(b',', bytes).is_some())
}

/// The cells of a line between marks; the outer marks of `| a | b |` hold no cells.
fn cells(text: &str, line: Span, mark: u8, cells: &mut Vec<Span>) {
    let (mut from, to) = inside(text, line, mark);
    cells.clear();
    for at in marks(text, (from, to), mark).take(COLUMNS + 1) {
        cells.push(trimmed(text, (from, at)));
        from = at + 1;
    }
    cells.push(trimmed(text, (from, to.max(from))));
}

/// How many cells a line has, up to a few more than a table may have.
fn count_cells(text: &str, line: Span, mark: u8) -> usize {
    marks(text, inside(text, line, mark), mark).take(COLUMNS + 1).count() + 1
}

/// A line without the outer marks of `| a | b |`.
fn inside(text: &str, line: Span, mark: u8) -> Span {
    let bytes = &text.as_bytes()[line.0..line.1];
    let from = line.0 + usize::from(mark == b'|' && bytes.first() == Some(&mark));
    let to = line.1 - usize::from(mark == b'|' && bytes.len() > 1 && bytes.last() == Some(&mark));
    (from, to)
}

/// Where the marks stand that are not inside quotes.
fn marks(text: &str, (from, to): Span, mark: u8) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes().get(from..to).unwrap_or(&[]);
    let mut quoted = false;
    memchr::memchr2_iter(mark, b'"', bytes).filter_map(move |at| {
        let is_mark = bytes[at] == mark;
        quoted ^= !is_mark;
        (is_mark && !quoted).then_some(from + at)
    })
}

fn trimmed(text: &str, span: Span) -> Span {
    trimmed_of(text, span, |byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t'))
}

/// A span without the bytes, all of them ASCII, that are cut at its ends.
fn trimmed_of(text: &str, (from, to): Span, cut: impl Fn(u8) -> bool) -> Span {
    let kept = |byte: &u8| !cut(*byte);
    let part = &text.as_bytes()[from..to];
    let start = part.iter().position(kept).unwrap_or(part.len());
    let end = part.iter().rposition(kept).map_or(start, |last| last + 1);
    (from + start, from + end)
}

/// Whether a line only rules off a table's head.
fn is_rule(line: &str) -> bool {
    line.chars().all(|c| matches!(c, '|' | '-' | ':' | '+' | '=' | ' '))
}

fn is_quoted(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 2 && matches!(bytes[0], b'"' | b'\'') && bytes[0] == bytes[bytes.len() - 1]
}
