//! One key and one value of an object or a list.

use super::super::document::Kind;
use super::super::keys::{BARE, KeyId, is_bare};
use super::scalar::literal;
use super::scan::{SHORT, bare, behind_space, closing, may_hold_values};
use super::{Broken, Frame, Reader, Shape, unescape};

/// A quoted text that does not end is taken as cut off if it is at least this long.
const CUT_OFF: usize = 512;

impl Reader<'_> {
    /// Reads a key and what stands between it and its value.
    #[inline]
    pub(super) fn key(&mut self, text: &str, bytes: &[u8]) -> Result<KeyId, Broken> {
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
    pub(super) fn value(
        &mut self,
        text: &str,
        bytes: &[u8],
        key: KeyId,
        spaced: bool,
    ) -> Result<bool, Broken> {
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
}
