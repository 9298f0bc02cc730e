//! JSON that keeps its bytes: a cursor that reads values in one pass, says
//! where each one stands, and never builds a tree.
//!
//! The grammar is RFC 8259's, strictly. Nothing recurses over the input: a
//! value that nobody asks for is skipped by a loop, and nesting is bounded.

use std::borrow::Cow;

use crate::engine::view::Span;

/// How many objects and lists may be open at once.
pub const MAX_DEPTH: usize = 128;

/// Why a text could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The grammar is broken at this byte.
    #[error("not JSON at byte {0}")]
    Syntax(usize),
    /// More than [`MAX_DEPTH`] objects and lists are open.
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// What kind of value comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `{...}`
    Object,
    /// `[...]`
    Array,
    /// `"..."`
    String,
    /// A number.
    Number,
    /// `true` or `false`
    Bool,
    /// `null`
    Null,
}

/// The key of a member.
#[derive(Clone, Debug)]
pub struct Key<'b> {
    /// The key, decoded.
    pub name: Cow<'b, str>,
    /// Where its opening quote stands; a member reaches from there to its value's end.
    pub start: usize,
}

/// A place in a JSON text.
///
/// A reader of one kind takes a value of that kind; any other value it skips
/// and answers `None`. Whatever is taken or skipped has been checked.
#[derive(Clone, Debug)]
pub struct Cursor<'b> {
    text: &'b str,
    at: usize,
    /// Objects and lists open around `at`; at most [`MAX_DEPTH`].
    depth: usize,
}

impl<'b> Cursor<'b> {
    /// A cursor before the first value of `text`.
    pub fn new(text: &'b str) -> Self {
        Cursor { text, at: 0, depth: 0 }
    }

    /// A cursor inside `text`, with `depth` objects and lists open around it:
    /// where an earlier reading of the same bytes came to.
    pub fn resume(text: &'b str, at: usize, depth: usize) -> Self {
        Cursor { text, at, depth }
    }

    /// Where the cursor stands: behind the last value that was taken or skipped.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Where the next value starts; moves there.
    pub fn start(&mut self) -> usize {
        self.white();
        self.at
    }

    /// The text of a span that this cursor gave.
    pub fn raw(&self, span: Span) -> &'b str {
        self.text.get(span).unwrap_or_default()
    }

    /// What kind of value comes next, judged by its first byte; moves to that byte.
    pub fn peek(&mut self) -> Option<Kind> {
        self.white();
        Some(match self.byte()? {
            b'{' => Kind::Object,
            b'[' => Kind::Array,
            b'"' => Kind::String,
            b'-' | b'0'..=b'9' => Kind::Number,
            b't' | b'f' => Kind::Bool,
            b'n' => Kind::Null,
            _ => return None,
        })
    }

    /// Skips one value of any kind and says where it stands.
    pub fn skip(&mut self) -> Result<Span, Fault> {
        self.scan(|_, _| ())
    }

    /// Skips one value of any kind, and names every key in it, at any depth:
    /// the key as written, between its quotes, and where its value starts
    /// (white space before it possible).
    pub fn scan(&mut self, mut member: impl FnMut(&'b str, usize)) -> Result<Span, Fault> {
        self.white();
        let start = self.at;
        // The kinds of what is open, the innermost in the lowest bit: 1 is an object.
        let (mut objects, mut open) = (0_u128, 0_usize);
        loop {
            self.white();
            match self.byte() {
                Some(b'{') => {
                    self.at += 1;
                    self.white();
                    if !self.eat(b'}') {
                        open = self.deeper(open)?;
                        objects = objects << 1 | 1;
                        self.scan_key(&mut member)?;
                        continue;
                    }
                    self.deeper(open)?;
                }
                Some(b'[') => {
                    self.at += 1;
                    self.white();
                    if !self.eat(b']') {
                        open = self.deeper(open)?;
                        objects <<= 1;
                        continue;
                    }
                    self.deeper(open)?;
                }
                _ => self.scalar()?,
            }
            // A value is done; so is all that ends with it.
            loop {
                if open == 0 {
                    return Ok(start..self.at);
                }
                self.white();
                match self.byte() {
                    Some(b',') => {
                        self.at += 1;
                        if objects & 1 == 1 {
                            self.white();
                            self.scan_key(&mut member)?;
                        }
                        break;
                    }
                    Some(b'}') if objects & 1 == 1 => self.at += 1,
                    Some(b']') if objects & 1 == 0 => self.at += 1,
                    _ => return Err(self.fault()),
                }
                objects >>= 1;
                open -= 1;
            }
        }
    }

    /// The next value, if it is a string; decoded. A lone surrogate is read as U+FFFD.
    pub fn string(&mut self) -> Result<Option<Cow<'b, str>>, Fault> {
        if self.peek() != Some(Kind::String) {
            self.skip()?;
            return Ok(None);
        }
        self.quoted().map(Some)
    }

    /// The next value, if it is a whole number from 0 on.
    pub fn count(&mut self) -> Result<Option<u64>, Fault> {
        let span = self.skip()?;
        Ok(self.raw(span).parse().ok())
    }

    /// The next value, if it is an object. `each` gets every member in order,
    /// duplicates too, with the cursor before the member's value; a value it
    /// leaves alone is skipped. Gives the object's span.
    pub fn object<E: From<Fault>>(
        &mut self,
        mut each: impl FnMut(&mut Self, Key<'b>) -> Result<(), E>,
    ) -> Result<Option<Span>, E> {
        if self.peek() != Some(Kind::Object) {
            self.skip()?;
            return Ok(None);
        }
        let start = self.at;
        self.at += 1;
        self.enter()?;
        self.white();
        if self.eat(b'}') {
            self.leave();
            return Ok(Some(start..self.at));
        }
        self.members(&mut each)?;
        Ok(Some(start..self.at))
    }

    /// The next value, if it is a list. `each` gets the cursor before every
    /// element; an element it leaves alone is skipped. Gives the list's span.
    pub fn array<E: From<Fault>>(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<Option<Span>, E> {
        if self.peek() != Some(Kind::Array) {
            self.skip()?;
            return Ok(None);
        }
        let start = self.at;
        self.at += 1;
        self.enter()?;
        self.white();
        if self.eat(b']') {
            self.leave();
            return Ok(Some(start..self.at));
        }
        self.element(&mut each)?;
        self.array_rest(each)?;
        Ok(Some(start..self.at))
    }

    /// Reads the next value, a list of which the elements up to `at` were read before. Gives the list's span.
    pub fn array_behind<E: From<Fault>>(
        &mut self,
        at: usize,
        each: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<Span, E> {
        let start = self.start();
        self.enter()?;
        self.at = at;
        self.array_rest(each)?;
        Ok(start..self.at)
    }

    /// Goes on in a list, directly behind one of its elements, to the list's end.
    pub fn array_rest<E: From<Fault>>(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            self.white();
            if self.eat(b']') {
                self.leave();
                return Ok(());
            }
            if !self.eat(b',') {
                return Err(self.fault().into());
            }
            self.element(&mut each)?;
        }
    }

    /// Goes on in an object, directly behind one of its members, to the object's end.
    pub fn object_rest<E: From<Fault>>(
        &mut self,
        mut each: impl FnMut(&mut Self, Key<'b>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.white();
        if self.eat(b'}') {
            self.leave();
            return Ok(());
        }
        if !self.eat(b',') {
            return Err(self.fault().into());
        }
        self.members(&mut each)
    }

    /// Checks that nothing but white space follows.
    pub fn end(&mut self) -> Result<(), Fault> {
        self.white();
        if self.at == self.text.len() { Ok(()) } else { Err(self.fault()) }
    }

    fn members<E: From<Fault>>(
        &mut self,
        each: &mut impl FnMut(&mut Self, Key<'b>) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            self.white();
            let start = self.at;
            let name = self.quoted()?;
            self.colon()?;
            self.white();
            let value = self.at;
            each(self, Key { name, start })?;
            if self.at == value {
                self.skip()?;
            }
            self.white();
            if self.eat(b'}') {
                self.leave();
                return Ok(());
            }
            if !self.eat(b',') {
                return Err(self.fault().into());
            }
        }
    }

    fn element<E: From<Fault>>(
        &mut self,
        each: &mut impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.white();
        let start = self.at;
        each(self)?;
        if self.at == start {
            self.skip()?;
        }
        Ok(())
    }

    fn scan_key(&mut self, member: &mut impl FnMut(&'b str, usize)) -> Result<(), Fault> {
        let (inside, _) = self.quotes()?;
        self.colon()?;
        member(self.raw(inside), self.at);
        Ok(())
    }

    fn enter(&mut self) -> Result<(), Fault> {
        self.depth += self.deeper(0)?;
        Ok(())
    }

    fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Checks that one more may be open beside the `open` ones that a scan has opened.
    fn deeper(&self, open: usize) -> Result<usize, Fault> {
        if self.depth + open < MAX_DEPTH { Ok(open + 1) } else { Err(Fault::TooDeep) }
    }

    fn colon(&mut self) -> Result<(), Fault> {
        self.white();
        if self.eat(b':') { Ok(()) } else { Err(self.fault()) }
    }

    fn quoted(&mut self) -> Result<Cow<'b, str>, Fault> {
        let (inside, escaped) = self.quotes()?;
        let raw = self.raw(inside);
        Ok(if escaped { Cow::Owned(decode(raw)) } else { Cow::Borrowed(raw) })
    }

    /// Passes a string: the span between its quotes, and whether an escape is in it.
    fn quotes(&mut self) -> Result<(Span, bool), Fault> {
        if !self.eat(b'"') {
            return Err(self.fault());
        }
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at += plain_run(self.text.as_bytes().get(self.at..).unwrap_or_default());
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok((start..self.at - 1, escaped));
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(self.fault()),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Fault> {
        self.at += 1;
        match self.byte() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.byte().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(self.fault());
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.fault()),
        }
        Ok(())
    }

    fn scalar(&mut self) -> Result<(), Fault> {
        match self.byte() {
            Some(b'"') => self.quotes().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => Err(self.fault()),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), Fault> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return Err(self.fault());
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
        self.eat(b'-');
        if !self.eat(b'0') {
            self.digits()?;
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _signed = self.eat(b'+') || self.eat(b'-');
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(self.fault()) }
    }

    fn white(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.byte() {
            self.at += 1;
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, wanted: u8) -> bool {
        let there = self.byte() == Some(wanted);
        self.at += usize::from(there);
        there
    }

    fn fault(&self) -> Fault {
        Fault::Syntax(self.at)
    }
}

/// Whether `text` is one JSON value.
pub fn is_value(text: &str) -> bool {
    let mut cursor = Cursor::new(text);
    cursor.skip().and_then(|_| cursor.end()).is_ok()
}

/// Writes `text` as it stands between the quotes of a JSON string.
pub fn escape(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    loop {
        let (plain, behind) = rest.split_at(plain_run(rest));
        out.extend_from_slice(plain);
        let Some((byte, behind)) = behind.split_first() else { return };
        rest = behind;
        match *byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte => {
                out.extend_from_slice(b"\\u00");
                out.extend([byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
            }
        }
    }
}

/// Writes `text` as a JSON string, quotes included.
pub fn quote(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    escape(text, out);
    out.push(b'"');
}

/// How many bytes at the front of `bytes` are neither quote, backslash nor control character.
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let stops = stops(u64::from_le_bytes(*word));
        if stops != 0 {
            return index * 8 + (stops.trailing_zeros() / 8) as usize;
        }
    }
    let stop = rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20);
    words.len() * 8 + stop.unwrap_or(rest.len())
}

/// Eight bytes looked at once: the lowest bit that is set marks the first byte
/// that ends a plain run. A subtraction borrows into the byte's high bit where
/// the byte is below what is subtracted; bytes behind a hit may be marked too.
fn stops(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = ONES << 7;
    let below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word;
    let equals = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x20) | equals(b'"') | equals(b'\\')) & HIGH
}

/// Decodes what stands between the quotes of a checked string.
fn decode(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let (character, length) = decode_escape(&rest[at..]);
        out.push(character);
        rest = rest.get(at + length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// The character of the escape at the front of `rest`, and the escape's length.
fn decode_escape(rest: &str) -> (char, usize) {
    let plain = match rest.as_bytes().get(1) {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return decode_unicode(rest),
        Some(&other) => char::from(other),
        None => char::REPLACEMENT_CHARACTER,
    };
    (plain, 2)
}

/// `\uXXXX`, or a pair of them where they are a surrogate pair.
fn decode_unicode(rest: &str) -> (char, usize) {
    let unit = |at: usize| {
        let digits = rest.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u32::from_str_radix(digits, 16).ok()
    };
    let Some(first) = unit(0) else { return (char::REPLACEMENT_CHARACTER, 6) };
    if let (0xd800..=0xdbff, Some(second @ 0xdc00..=0xdfff)) = (first, unit(6)) {
        let pair = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return (char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 6)
}

#[cfg(test)]
mod tests;
