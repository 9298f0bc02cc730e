//! Splits an event stream into events, as it comes, without losing a byte.
//!
//! A blank line ends an event, whether or not the event says anything: a
//! comment that keeps the line alive is one too. How the stream is cut into
//! chunks changes neither the events nor their bytes.

use bytes::{Bytes, BytesMut};

/// What the splitter gives, in the order of the stream. The bytes of all
/// pieces, one behind the other, are the stream's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A whole event.
    Event(Event),
    /// A stretch of an event that is over the limit: passed on, not read. Where
    /// it is cut depends on the chunks; the event behind it is read again.
    Unread(Bytes),
}

impl Piece {
    /// Its bytes.
    pub fn raw(&self) -> &Bytes {
        match self {
            Piece::Event(event) => &event.raw,
            Piece::Unread(raw) => raw,
        }
    }
}

/// One event, its bytes and what they say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The bytes, the blank line that ends it included.
    pub raw: Bytes,
    /// The `event` field; empty where there is none.
    pub name: Bytes,
    /// The `data` fields, joined by a line break; none where no line says `data`.
    pub data: Option<Bytes>,
}

/// The bytes of an event with other data, on one line; its other lines keep their bytes.
pub fn with_data(event: &Event, data: &str) -> Bytes {
    let mut out = BytesMut::with_capacity(event.raw.len() + data.len());
    let mut rest: &[u8] = &event.raw;
    let mut written = false;
    while !rest.is_empty() {
        let end = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let broken = rest.get(end..).unwrap_or_default();
        let line_end = if broken.starts_with(b"\r\n") { end + 2 } else { rest.len().min(end + 1) };
        let (line, behind) = rest.split_at(line_end);
        rest = behind;
        let text = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        if !text.starts_with(b"data") || !matches!(text.get(4), None | Some(b':' | b'\n' | b'\r')) {
            out.extend_from_slice(line);
        } else if !written {
            written = true;
            out.extend_from_slice(b"data: ");
            // A line break in JSON stands between two tokens, never inside one.
            out.extend(data.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
            out.extend_from_slice(&line[end..]);
        }
    }
    out.freeze()
}

/// Splits one stream.
#[derive(Debug)]
pub struct Splitter {
    /// Bytes of the event that is not complete yet; at most `limit`.
    held: BytesMut,
    /// Size of the event so far, passed on or held.
    size: usize,
    limit: usize,
    lines: Lines,
    /// Whether the next event is the stream's first, where a byte order mark may stand.
    first: bool,
}

impl Splitter {
    /// A splitter that reads events of up to `limit` bytes and passes larger ones on unread.
    pub fn new(limit: usize) -> Self {
        Splitter { held: BytesMut::new(), size: 0, limit, lines: Lines::default(), first: true }
    }

    /// Takes the next chunk and gives what it completes. An event that lies in
    /// one chunk shares the chunk's memory.
    pub fn push(&mut self, mut chunk: Bytes) -> Vec<Piece> {
        let mut pieces = Vec::new();
        while !chunk.is_empty() {
            let Some(end) = self.lines.event_end(&chunk) else {
                pieces.extend(self.hold(chunk));
                break;
            };
            let tail = chunk.split_to(end);
            let piece = self.complete(tail);
            // The end of an event that went before, unread, may add nothing to it.
            if !piece.raw().is_empty() {
                pieces.push(piece);
            }
        }
        pieces
    }

    /// The stream has ended: gives the rest that no blank line ended, decoded
    /// as if one had.
    pub fn finish(&mut self) -> Option<Piece> {
        (!self.held.is_empty()).then(|| self.complete(Bytes::new()))
    }

    /// Bytes held back: the event that is not complete yet.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    fn complete(&mut self, tail: Bytes) -> Piece {
        let size = self.size + tail.len();
        let raw = self.join(tail);
        let first = std::mem::take(&mut self.first);
        self.size = 0;
        self.lines = Lines::default();
        if size > self.limit { Piece::Unread(raw) } else { Piece::Event(decode(&raw, first)) }
    }

    fn hold(&mut self, chunk: Bytes) -> Option<Piece> {
        self.size += chunk.len();
        if self.size > self.limit {
            return Some(Piece::Unread(self.join(chunk)));
        }
        self.held.extend_from_slice(&chunk);
        None
    }

    /// What is held, with `tail` behind it.
    fn join(&mut self, tail: Bytes) -> Bytes {
        if self.held.is_empty() {
            return tail;
        }
        self.held.extend_from_slice(&tail);
        self.held.split().freeze()
    }
}

/// Where the lines of an event end.
#[derive(Debug)]
struct Lines {
    /// Nothing stands on the current line yet.
    blank: bool,
    /// The line ended in a carriage return; a line feed may belong to it.
    returned: bool,
    /// The line before ended in a bare carriage return.
    bare: bool,
}

impl Default for Lines {
    fn default() -> Self {
        Lines { blank: true, returned: false, bare: false }
    }
}

impl Lines {
    /// Where the event ends in `bytes`, which follow what was seen before; none
    /// where it does not. After an end the state is for the caller to reset.
    fn event_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if self.returned {
                self.bare = byte != b'\n';
                at += usize::from(!self.bare);
                if self.blank {
                    return Some(at);
                }
                self.returned = false;
                self.blank = true;
                continue;
            }
            let rest = bytes.get(at..).unwrap_or_default();
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.blank = false;
                return None;
            };
            self.blank &= end == 0;
            at += end + 1;
            match rest.get(end) {
                Some(b'\r') if self.blank && self.bare => {
                    // In a stream of bare carriage returns nothing follows that could belong
                    // here; to wait for it would hold the event until the next one.
                    return Some(at);
                }
                Some(b'\r') => self.returned = true,
                _ if self.blank => return Some(at),
                _ => {
                    self.blank = true;
                    self.bare = false;
                }
            }
        }
        None
    }
}

fn decode(raw: &Bytes, first: bool) -> Event {
    let mut event = Event { raw: raw.clone(), ..Event::default() };
    let mut joined: Option<Vec<u8>> = None;
    let bytes: &[u8] = raw;
    let mut rest = if first { bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes) } else { bytes };
    while !rest.is_empty() {
        let end = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let (line, behind) = rest.split_at(end);
        rest = behind.get(1..).unwrap_or_default();
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[end..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => event.name = raw.slice_ref(value),
            b"data" => match (&mut joined, &event.data) {
                (Some(joined), _) => {
                    joined.push(b'\n');
                    joined.extend_from_slice(value);
                }
                (None, Some(before)) => joined = Some([before, b"\n".as_slice(), value].concat()),
                (None, None) => event.data = Some(raw.slice_ref(value)),
            },
            _ => {}
        }
    }
    if let Some(joined) = joined {
        event.data = Some(joined.into());
    }
    event
}

#[cfg(test)]
mod tests;
