//! Where in bytes quoted and unquoted texts end, and what they begin like.

use super::super::keys::{BARE, is_bare};
use super::Broken;

/// Shorter texts hold values only if they begin like it.
pub(super) const SHORT: usize = 24;
/// The end of the quoted text that begins at `from`, and whether it has escapes.
#[inline]
pub(super) fn closing(bytes: &[u8], from: usize, quote: u8) -> Result<(usize, bool), Broken> {
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
pub(super) fn behind_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\r' | b'\t' | b',' | b';')) {
        at += 1;
    }
    at
}

/// Whether a printed object, `Name(...)`, begins here.
pub(super) fn prints_object(rest: &[u8]) -> bool {
    let word = rest.iter().take(BARE).take_while(|b| is_bare(**b)).count();
    word > 0 && rest.get(word) == Some(&b'(')
}

/// The length of the unquoted value that begins here.
pub(super) fn bare(rest: &[u8], spaced: bool) -> usize {
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
pub(super) fn find_quote(bytes: &[u8], quote: u8) -> Option<usize> {
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
pub(super) fn may_hold_values(raw: &[u8], escaped: bool) -> bool {
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
