//! The keys of a run's results, each read once: its words, and whether its
//! value names a record.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::mixed::Mixed;
use crate::engine::handoff::value::fold::{self, Words};

/// A key's number; the same text has the same number all over one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct KeyId(u16);

impl KeyId {
    /// The key of what has none: an element of a list, a whole result.
    pub(crate) const NONE: KeyId = KeyId(0);
}

/// What a key says about its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// It names a record for good: `id`, `order_id`, `sku`.
    Id,
    /// It names a record of a series, perhaps together with a day: `flight_number`, `room_no`, `code`.
    Number,
    /// It names a person or a thing in words: `name`, `first_name`, `title`.
    Name,
    /// It says which day: `date`, `day`.
    Day,
    /// It only wraps what it holds: `result`, `data`.
    Wrapper,
    /// Anything else.
    Plain,
}

/// One key.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) text: Box<str>,
    pub(crate) class: Class,
    /// Whether its value may tell how a call went.
    pub(crate) outcome: bool,
    /// Whether it reads the same without quotes and in any.
    pub(crate) bare: bool,
    /// The key before it whose text has the same hash.
    before: KeyId,
    /// How many of the words say what is named: `order_id` has one, `id` none.
    stem: u32,
    /// The hash of the last word of what is named, in singular: `order` of `order_id`.
    stem_hash: Option<u64>,
    /// The same of the last word: `order` of `past_orders`.
    last_hash: Option<u64>,
    /// Made when first asked for: a run has many keys that no fact is about.
    words: OnceLock<Words>,
}

impl Key {
    /// Reads a key; `words` is room to work in.
    fn new(text: &str, before: KeyId, words: &mut Words) -> Key {
        words.clear();
        words.add(text);
        let stem = words.len().saturating_sub(1);
        let hash = |place: Option<usize>| place.map(|place| word_hash(words.word(place)));
        Key {
            text: text.into(),
            class: classify(words),
            outcome: OUTCOMES.contains(&words.text.as_str()),
            bare: (1..=BARE).contains(&text.len()) && text.bytes().all(is_bare),
            before,
            stem: stem as u32,
            stem_hash: hash(stem.checked_sub(1)),
            last_hash: hash(words.len().checked_sub(1)),
            words: OnceLock::new(),
        }
    }

    /// The key's words.
    pub(crate) fn words(&self) -> &Words {
        self.words.get_or_init(|| Words::of(&self.text))
    }

    /// How many of the words say what is named: `order_id` has one, `id` none.
    pub(crate) fn stem(&self) -> usize {
        self.stem as usize
    }

    /// Whether what is named, `order` of `order_id`, is what another key ends with: `past_orders`.
    pub(crate) fn is_of(&self, other: &Key) -> bool {
        self.stem_hash.is_some() && self.stem_hash == other.last_hash
    }

    /// Whether one of the words says where, when or in which terms a value holds.
    pub(crate) fn says_place(&self) -> bool {
        self.words().iter().any(|word| PLACES.contains(&word))
    }

    /// Whether its value names a record.
    pub(crate) fn names(&self) -> bool {
        matches!(self.class, Class::Id | Class::Number)
    }
}

/// A key without quotes has at most this many bytes.
pub(crate) const BARE: usize = 80;

/// Whether a byte may stand in a key without quotes.
#[inline]
pub(crate) fn is_bare(byte: u8) -> bool {
    IN_BARE[usize::from(byte)]
}

const IN_BARE: [bool; 256] = {
    let mut table = [true; 256];
    let mut byte = 0u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        byte += 1;
    }
    table
};

/// Words at the end of a key whose value names one record and no other.
const ID_WORDS: [&str; 11] =
    ["id", "uuid", "guid", "sku", "isbn", "ref", "reference", "slug", "username", "handle", "barcode"];
/// Words at the end of a key whose value names one of a series.
const NUMBER_WORDS: [&str; 7] = ["number", "no", "num", "nr", "code", "key", "serial"];
const NAME_WORDS: [&str; 6] = ["name", "title", "label", "hostname", "fullname", "surname"];
const DAY_WORDS: [&str; 2] = ["date", "day"];
/// Keys that tools and protocols put around a result.
const WRAPPERS: [&str; 12] = [
    "result",
    "results",
    "data",
    "response",
    "content",
    "text",
    "payload",
    "body",
    "output",
    "structuredcontent",
    "value",
    "record",
];

/// Words that say where, when or in which terms a result holds.
const PLACES: [&str; 16] = [
    "location",
    "branch",
    "store",
    "city",
    "site",
    "warehouse",
    "region",
    "country",
    "zone",
    "currency",
    "unit",
    "language",
    "env",
    "environment",
    "date",
    "day",
];

/// Keys under which a result tells how the call went.
const OUTCOMES: [&str; 7] = ["error", "errors", "exception", "iserror", "success", "ok", "status"];

/// The hash of a folded word's singular.
fn word_hash(word: &str) -> u64 {
    fold::hash(&fold::singular(word))
}

/// A tool's name, read once.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: Box<str>,
    pub(crate) words: Words,
    /// The hash of each word's singular.
    hashes: Vec<u64>,
}

impl Tool {
    pub(crate) fn new(name: &str) -> Tool {
        let words = Words::of(name);
        let hashes = words.iter().map(word_hash).collect();
        Tool { name: name.into(), words, hashes }
    }

    /// Whether one of its words is what a key names.
    pub(crate) fn names_stem(&self, key: &Key) -> bool {
        key.stem_hash.is_some_and(|stem| self.hashes.contains(&stem))
    }

    /// Whether it has a word with a key in common.
    pub(crate) fn shares_word(&self, key: &Key) -> bool {
        key.words().iter().any(|word| self.hashes.contains(&word_hash(word)))
    }
}

fn classify(words: &Words) -> Class {
    let Some(stem) = words.len().checked_sub(1) else { return Class::Plain };
    let last = words.word(stem);
    if ID_WORDS.contains(&last) {
        Class::Id
    } else if NUMBER_WORDS.contains(&last) {
        Class::Number
    } else if NAME_WORDS.contains(&last) {
        Class::Name
    } else if DAY_WORDS.contains(&last) && stem == 0 {
        Class::Day
    } else if WRAPPERS.contains(&words.text.as_str()) {
        Class::Wrapper
    } else {
        Class::Plain
    }
}

/// The keys of one index.
#[derive(Debug)]
pub(crate) struct Keys {
    entries: Vec<Key>,
    /// Every key's class, apart from the rest: it is asked for of every value.
    classes: Vec<Class>,
    /// The key that came behind each key the last time.
    next: Vec<KeyId>,
    /// The newest key of each hash.
    by_text: HashMap<u64, KeyId, Mixed>,
    /// Keys by their run-together words, so that `orderId` is found as `order_id`; made when first asked for.
    by_words: OnceLock<HashMap<u64, Vec<KeyId>, Mixed>>,
    /// Room to read a key in.
    words: Words,
}

/// An index has at most this many keys; values under further ones are values without a key.
const KEYS: usize = 50_000;
/// Room for so many is made at once.
const FEW: usize = 48;

impl Default for Keys {
    fn default() -> Self {
        Keys::seeded(Mixed::default())
    }
}

impl Keys {
    /// No keys yet. With a seed that those who write results do not know, keys cannot be made to collide.
    pub(crate) fn seeded(seed: Mixed) -> Keys {
        let mut words = Words::default();
        let mut entries = Vec::with_capacity(FEW);
        let (mut classes, mut next) = (Vec::with_capacity(FEW), Vec::with_capacity(FEW));
        entries.push(Key::new("", KeyId::NONE, &mut words));
        classes.push(Class::Plain);
        next.push(KeyId::NONE);
        Keys {
            entries,
            classes,
            next,
            by_text: HashMap::with_capacity_and_hasher(FEW, seed),
            by_words: OnceLock::new(),
            words,
        }
    }

    /// The number of the key `text`.
    pub(crate) fn intern(&mut self, text: &str) -> KeyId {
        if text.is_empty() {
            return KeyId::NONE;
        }
        let hash = self.by_text.hasher().text(text);
        let newest = self.by_text.get(&hash).copied().unwrap_or(KeyId::NONE);
        let mut known = newest;
        while known != KeyId::NONE {
            if *self[known].text == *text {
                return known;
            }
            known = self[known].before;
        }
        self.insert(text, hash, newest)
    }

    #[cold]
    fn insert(&mut self, text: &str, hash: u64, before: KeyId) -> KeyId {
        if self.entries.len() >= KEYS {
            return KeyId::NONE;
        }
        let id = KeyId(self.entries.len() as u16);
        let key = Key::new(text, before, &mut self.words);
        self.classes.push(key.class);
        self.next.push(KeyId::NONE);
        self.entries.push(key);
        self.by_text.insert(hash, id);
        self.by_words.take();
        id
    }

    /// The key that came behind this one the last time: results of one tool have the same keys in the same order.
    #[inline]
    pub(crate) fn behind(&self, key: KeyId) -> KeyId {
        self.next[usize::from(key.0)]
    }

    /// Writes down which key came behind another.
    pub(crate) fn follow(&mut self, key: KeyId, next: KeyId) {
        self.next[usize::from(key.0)] = next;
    }

    /// What a key says about its value.
    #[inline]
    pub(crate) fn class(&self, key: KeyId) -> Class {
        self.classes[usize::from(key.0)]
    }

    /// The keys whose words, run together, are `words`, in every spelling that the run has.
    pub(crate) fn spelled(&self, words: &str) -> &[KeyId] {
        let by_words = self.by_words.get_or_init(|| {
            let mut by_words = HashMap::with_capacity_and_hasher(self.entries.len(), *self.by_text.hasher());
            for (index, key) in self.entries.iter().enumerate().skip(1) {
                let ids: &mut Vec<KeyId> = by_words.entry(fold::hash(&key.words().text)).or_default();
                ids.push(KeyId(index as u16));
            }
            by_words
        });
        by_words.get(&fold::hash(words)).map_or(&[], Vec::as_slice)
    }

    /// Whether two keys are one, perhaps in different spelling.
    pub(crate) fn same(&self, a: KeyId, b: KeyId) -> bool {
        a == b || self[a].words().text == self[b].words().text
    }
}

impl std::ops::Index<KeyId> for Keys {
    type Output = Key;

    fn index(&self, id: KeyId) -> &Key {
        &self.entries[usize::from(id.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: &str, class: Class, stem: &str) {
        let key = Key::new(key, KeyId::NONE, &mut Words::default());
        assert_eq!((key.class, key.words().window(0..key.stem())), (class, stem), "{}", key.text);
    }

    #[test]
    fn keys_say_what_they_name() {
        check("loan_id", Class::Id, "loan");
        check("bedNumber", Class::Number, "bed");
        check("id", Class::Id, "");
        check("first_name", Class::Name, "first");
        check("date", Class::Day, "");
        check("due_date", Class::Plain, "due");
        check("result", Class::Wrapper, "");
        check("price", Class::Plain, "");
    }

    #[test]
    fn one_text_is_one_key() {
        let mut keys = Keys::default();
        let (a, b) = (keys.intern("ward_no"), keys.intern("wardNo"));
        assert_ne!(a, b);
        assert_eq!(keys.intern("ward_no"), a);
        assert_eq!(keys.spelled("wardno"), [a, b]);
        assert!(keys.same(a, b));
    }
}
