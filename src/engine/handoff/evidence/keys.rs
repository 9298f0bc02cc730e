//! The keys of a run's results, each read once: its words, and whether its
//! value names a record.

use std::collections::HashMap;

use crate::engine::handoff::value::fold::{self, Words};

/// A key's number; the same text has the same number all over one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct KeyId(pub(crate) u32);

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
    pub(crate) words: Words,
    pub(crate) class: Class,
    /// How many of the words say what is named: `order_id` has one, `id` none.
    pub(crate) stem: usize,
    /// The hash of the last word's singular: `order` of `past_orders`.
    pub(crate) last: u64,
    /// The same of the last word of what is named: `order` of `order_id`; 0 where nothing says it.
    pub(crate) stem_last: u64,
    /// Whether one of the words says where, when or in which terms a value holds.
    pub(crate) place: bool,
    /// Whether its value may tell how a call went.
    pub(crate) outcome: bool,
}

impl Key {
    fn new(text: &str) -> Key {
        let words = Words::of(text);
        let (class, stem) = classify(&words);
        let at = |place: Option<usize>| place.map_or(0, |place| word_hash(words.word(place)));
        let (last, stem_last) = (at(words.len().checked_sub(1)), at(stem.checked_sub(1)));
        let place = words.iter().any(|word| PLACES.contains(&word));
        let outcome = OUTCOMES.contains(&words.text.as_str());
        Key { text: text.into(), words, class, stem, last, stem_last, place, outcome }
    }

    /// Whether its value names a record.
    pub(crate) fn names(&self) -> bool {
        matches!(self.class, Class::Id | Class::Number)
    }
}

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
        key.stem > 0 && self.hashes.contains(&key.stem_last)
    }

    /// Whether it has a word with a key in common.
    pub(crate) fn shares_word(&self, key: &Key) -> bool {
        key.words.iter().any(|word| self.hashes.contains(&word_hash(word)))
    }
}

fn classify(words: &Words) -> (Class, usize) {
    let Some(stem) = words.len().checked_sub(1) else { return (Class::Plain, 0) };
    let last = words.word(stem);
    let class = if ID_WORDS.contains(&last) {
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
    };
    (class, stem)
}

/// The keys of one index.
#[derive(Debug)]
pub(crate) struct Keys {
    entries: Vec<Key>,
    by_text: HashMap<Box<str>, KeyId>,
    /// The same keys come again and again: the last one of each slot is tried before the map.
    recent: Vec<KeyId>,
    /// Keys by their run-together words, so that `orderId` is found as `order_id`.
    by_words: HashMap<u64, Vec<KeyId>>,
}

const RECENT: usize = 256;
/// An index has at most this many keys; values under further ones are values without a key.
const KEYS: usize = 50_000;

impl Default for Keys {
    fn default() -> Self {
        Keys {
            entries: vec![Key::new("")],
            by_text: HashMap::new(),
            recent: vec![KeyId::NONE; RECENT],
            by_words: HashMap::new(),
        }
    }
}

impl Keys {
    /// The number of the key `text`.
    #[inline]
    pub(crate) fn intern(&mut self, text: &str) -> KeyId {
        let slot = slot(text);
        let recent = self.recent[slot];
        if *self[recent].text == *text {
            return recent;
        }
        let id = if let Some(id) = self.by_text.get(text) { *id } else { self.insert(text) };
        self.recent[slot] = id;
        id
    }

    #[cold]
    fn insert(&mut self, text: &str) -> KeyId {
        if self.entries.len() >= KEYS {
            return KeyId::NONE;
        }
        let id = KeyId(self.entries.len() as u32);
        let key = Key::new(text);
        self.by_words.entry(fold::hash(&key.words.text)).or_default().push(id);
        self.by_text.insert(text.into(), id);
        self.entries.push(key);
        id
    }

    /// The keys whose words, run together, are `words`, in every spelling that the run has.
    pub(crate) fn spelled(&self, words: &str) -> &[KeyId] {
        self.by_words.get(&fold::hash(words)).map_or(&[], Vec::as_slice)
    }

    /// Whether two keys are one, perhaps in different spelling.
    pub(crate) fn same(&self, a: KeyId, b: KeyId) -> bool {
        a == b || self[a].words.text == self[b].words.text
    }
}

impl std::ops::Index<KeyId> for Keys {
    type Output = Key;

    fn index(&self, id: KeyId) -> &Key {
        &self.entries[id.0 as usize]
    }
}

fn slot(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (first, last) = (bytes.first().copied().unwrap_or(0), bytes.last().copied().unwrap_or(0));
    let middle = bytes.get(bytes.len() / 2).copied().unwrap_or(0);
    (usize::from(first) * 31 + usize::from(middle) * 7 + usize::from(last) + bytes.len() * 13) % RECENT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: &str, class: Class, stem: &str) {
        let key = Key::new(key);
        assert_eq!((key.class, key.words.window(0..key.stem)), (class, stem), "{}", key.text);
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
