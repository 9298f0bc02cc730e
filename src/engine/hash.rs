//! Hashes over the neutral view, stable across processes and releases: what
//! two requests have in common when a client re-serialises, renames or
//! re-spaces what it resends.

use std::borrow::Cow;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::view::{Call, Item, Role};

/// 128 bits of SHA-256, written as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash([u8; BYTES]);

const BYTES: usize = 16;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

impl Hash {
    /// The first `count` of its hex digits.
    pub fn digits(&self, count: usize) -> String {
        let halves = self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        halves.take(count).map(|half| char::from(DIGITS[usize::from(half)])).collect()
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.digits(2 * BYTES))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = Cow::<str>::deserialize(deserializer)?;
        let value = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 2 * BYTES);
        let value = value.ok_or_else(|| D::Error::custom("not a hash of 32 hex digits"))?;
        Ok(Hash(value.to_be_bytes()))
    }
}

/// Collects parts into a hash. Every part is closed by its length, so that no
/// two lists of parts run into the same bytes.
#[derive(Clone)]
pub struct Hasher(Sha256);

impl Hasher {
    /// A hasher for one purpose; hashes of different purposes never meet.
    pub fn new(purpose: &str) -> Self {
        let mut hasher = Hasher(Sha256::new());
        hasher.bytes(purpose.as_bytes());
        hasher
    }

    /// Adds bytes as they are.
    pub fn bytes(&mut self, part: &[u8]) -> &mut Self {
        self.0.update(part);
        self.0.update((part.len() as u64).to_le_bytes());
        self
    }

    /// Adds a text without its white space.
    pub fn text(&mut self, text: &str) -> &mut Self {
        if text.is_ascii() {
            return self.ascii(text.as_bytes());
        }
        let mut length = 0u64;
        // Words are short, and what takes them likes long pieces.
        let (mut piece, mut filled) = ([0; 512], 0);
        for word in text.split_whitespace().map(str::as_bytes) {
            length += word.len() as u64;
            if filled + word.len() > piece.len() {
                self.0.update(&piece[..filled]);
                filled = 0;
            }
            match piece.get_mut(filled..filled + word.len()) {
                Some(place) => {
                    place.copy_from_slice(word);
                    filled += word.len();
                }
                None => self.0.update(word),
            }
        }
        self.0.update(&piece[..filled]);
        self.0.update(length.to_le_bytes());
        self
    }

    /// The same of a text that can be looked at byte by byte.
    fn ascii(&mut self, text: &[u8]) -> &mut Self {
        let mut length = 0u64;
        let mut piece = [0; 512];
        for part in text.chunks(piece.len()) {
            let mut filled = 0;
            for byte in part {
                piece[filled] = *byte;
                // As `char::is_whitespace` has it.
                filled += usize::from(!matches!(byte, b'\t'..=b'\r' | b' '));
            }
            self.0.update(&piece[..filled]);
            length += filled as u64;
        }
        self.0.update(length.to_le_bytes());
        self
    }

    /// Adds call arguments as parsed JSON, since clients re-serialise them; as text where they do not parse.
    pub fn arguments(&mut self, arguments: &str) -> &mut Self {
        match serde_json::from_str::<serde_json::Value>(arguments) {
            Ok(value) => self.bytes(value.to_string().as_bytes()),
            Err(_) => self.text(arguments),
        }
    }

    /// Adds a call: id, name, arguments.
    pub fn call(&mut self, call: &Call<'_>) -> &mut Self {
        self.bytes(call.id.as_bytes()).bytes(call.name.as_bytes()).arguments(&call.arguments)
    }

    /// The hash of all parts so far.
    pub fn finish(&self) -> Hash {
        let digest = self.0.clone().finalize();
        let mut head = [0; BYTES];
        head.copy_from_slice(&digest[..BYTES]);
        Hash(head)
    }
}

/// The hash of a request, as the client sent it: who sends it once more sends the same bytes.
pub fn request(body: &[u8]) -> Hash {
    Hasher::new("request").bytes(body).finish()
}

/// The hash of the first `count` items that are not system text, without names
/// and white space: how a hidden boundary is found again.
pub fn prefix(items: &[Item<'_>], count: usize) -> Hash {
    let mut hasher = Hasher::new("prefix");
    for item in items.iter().filter(|item| item.role != Role::System).take(count) {
        hasher.bytes(&[item.role as u8]).text(&item.text);
        for call in &item.calls {
            hasher.call(call);
        }
        if let Some(id) = &item.answers {
            hasher.bytes(id.as_bytes());
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arguments_hash_as_json_not_as_text() {
        let of = |text: &str| Hasher::new("t").arguments(text).finish();
        assert_eq!(of(r#"{"a": 1, "b": [2]}"#), of(r#"{"b":[2],"a":1}"#));
        assert_ne!(of(r#"{"a":1}"#), of(r#"{"a":2}"#));
        assert_ne!(of("{"), of("}"));
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let of = |a: &str, b: &str| Hasher::new("t").text(a).text(b).finish();
        assert_ne!(of("ab", "c"), of("a", "bc"));
        assert_eq!(of("a b", "c"), of("ab", " c "));
    }

    proptest! {
        #[test]
        fn a_text_hashes_as_its_words_do_whichever_way_it_is_read(
            words in prop::collection::vec("[ -~\\PC]{0,300}", 0..6),
            gap in prop::sample::select(vec![" ", "\t\n", "\u{b}\u{c}\r", "\u{85}", "\u{a0} "]),
        ) {
            let of = |text: &str| Hasher::new("t").text(text).finish();
            let bare: String = words.iter().flat_map(|word| word.split_whitespace()).collect();
            prop_assert_eq!(of(&words.join(gap)), of(&bare));
            let mut whole = Hasher::new("t");
            whole.bytes(bare.as_bytes());
            prop_assert_eq!(of(&words.join(gap)), whole.finish());
        }
    }
}
