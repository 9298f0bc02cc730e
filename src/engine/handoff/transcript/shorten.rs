//! An oversized result as its head, its tail, its size and a reference.

use sha2::{Digest, Sha256};

/// Results up to this size are never shortened: the note alone would not save enough.
const SMALLEST_LIMIT: usize = 1024;

/// Of a result that is over the limit, this part of the limit stays at its head ...
const HEAD_SHARE: usize = 8;
/// ... and this part at its tail.
const TAIL_SHARE: usize = 32;

/// The text to send instead of `text`; none where it is within the limit. What comes out is within it, so
/// shortening twice is shortening once.
pub(super) fn shorten(text: &str, limit: usize) -> Option<String> {
    let limit = limit.max(SMALLEST_LIMIT);
    if text.len() <= limit {
        return None;
    }
    let head = head(text, limit / HEAD_SHARE);
    let tail = tail(text, limit / TAIL_SHARE);
    let left = text.len() - head.len() - tail.len();
    Some(format!(
        "{head}\n[... {left} of {size} bytes left out here; sha256 {reference} ...]\n{tail}",
        size = text.len(),
        reference = reference(text),
    ))
}

/// The first `bytes` of a text, at a character's border.
pub(super) fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn tail(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// Enough of the digest to find the result again, in a store or a log.
fn reference(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(8).fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_oversized_result_is_head_tail_size_and_reference() {
        assert_eq!(shorten(&"a".repeat(SMALLEST_LIMIT), 0), None);
        let long = format!("BEGIN{}END", "\u{1f600}".repeat(50_000));
        let short = shorten(&long, 4096).expect("it is over the limit");
        assert!(short.starts_with("BEGIN") && short.ends_with("END"), "{short}");
        assert!(short.contains(&format!("of {} bytes left out here; sha256 ", long.len())), "{short}");
        assert_eq!(shorten(&short, 4096), None);
        assert_eq!(shorten(&long, 4096).as_ref(), Some(&short));
    }
}
