//! A claim's key, taken apart: which words may be the key, and which ones must
//! be borne by the record.

use std::ops::Range;

use crate::engine::handoff::contract::Claim;
use crate::engine::handoff::evidence::Evidence;
use crate::engine::handoff::value::fold::{self, Words};
use crate::engine::handoff::value::number::is_currency;

/// A key has at most this many words; what is over it is not looked at.
const WORDS: usize = 64;
/// A record's name has at most this many words.
const NAME_WORDS: usize = 8;
/// A key of a result has at most this many words.
const KEY_WORDS: usize = 7;

/// Words that say nothing about which value is meant.
const FILLERS: [&str; 25] = [
    "of", "the", "for", "on", "in", "at", "and", "by", "to", "a", "an", "with", "from", "is", "s", "current",
    "latest", "as", "per", "value", "this", "that", "their", "his", "her",
];

/// A set of a question's words.
pub(crate) type Marks = u64;

/// Which record and key a claim is about.
pub(crate) struct Question {
    pub(crate) words: Words,
    /// Windows that may be the key, the likeliest first.
    pub(crate) keys: Vec<Range<usize>>,
    /// The words that the key is written with, where the writing tells: the last part of a dotted key,
    /// what stands before `of`.
    pub(crate) named: Range<usize>,
    /// Windows that name a record somewhere in the run.
    pub(crate) names: Vec<(Range<usize>, u64)>,
    /// Words that the record has to bear: those of names, and those with digits.
    pub(crate) required: Marks,
    /// Words that say nothing.
    pub(crate) fillers: Marks,
    /// Words of a record that is described in a text of its own; not all of them name it.
    pub(crate) free: Marks,
    /// Words before a record's name, where its kind stands: `booking` in `booking_A1_status`.
    pub(crate) kinds: Marks,
    /// The key and its record as written.
    pub(crate) raw: String,
}

impl Question {
    /// Takes a claim's key and record apart; none if it has no key.
    pub(crate) fn of(claim: &Claim, evidence: &Evidence) -> Option<Question> {
        let key = claim.key.as_deref().map(str::trim).filter(|key| !key.is_empty())?;
        let mut words = Words::of(key);
        if words.is_empty() {
            return None;
        }
        words.spans.truncate(WORDS);
        let key_words = words.len();
        let mut raw = key.to_owned();
        if let Some(of) = &claim.of {
            words.add(of);
            words.spans.truncate(WORDS);
            raw.push(' ');
            raw.push_str(of);
        }
        let fillers = marks(&words, |word| FILLERS.contains(&word) || is_currency(word));
        let (keys, pointed) = windows(key, &words, key_words, fillers);
        // Words that are a key of the run are that, not some record's name.
        let known =
            keys.iter().find(|window| !evidence.keys.spelled(words.window((*window).clone())).is_empty());
        let known = known.cloned().unwrap_or(0..0);
        let names = names(&words, evidence, &known);
        let mut required = marks(&words, |word| word.bytes().any(|b| b.is_ascii_digit()));
        for (range, _) in &names {
            required |= range_marks(range);
        }
        let kinds = (0..words.len())
            .filter(|index| required >> index & 1 == 1)
            .fold(0, |marks, index| marks | range_marks(&(index.saturating_sub(2)..index)));
        required |= proper(&raw, &words) & !kinds;
        let free = range_marks(&(key_words..words.len()));
        Some(Question { words, keys, named: pointed, names, required, fillers, free, kinds, raw })
    }

    /// All words.
    pub(crate) fn all(&self) -> Marks {
        range_marks(&(0..self.words.len()))
    }

    /// The mark of all words that are `word`, in singular or plural.
    pub(crate) fn mark_word(&self, word: &str) -> Marks {
        marks(&self.words, |own| fold::same_word(own, word))
    }

    /// The windows whose words run together to `text`.
    pub(crate) fn windows_of<'q>(&'q self, text: &'q str) -> impl Iterator<Item = Range<usize>> + 'q {
        (0..self.words.len()).filter_map(move |start| {
            let from = self.words.spans[start].start as usize;
            if text.is_empty() || !self.words.text[from..].starts_with(text) {
                return None;
            }
            let end = (from + text.len()) as u32;
            let last = self.words.spans[start..].iter().position(|span| span.end == end)?;
            Some(start..start + last + 1)
        })
    }

    /// The marks of all windows whose words run together to `text`.
    pub(crate) fn mark_text(&self, text: &str) -> Marks {
        self.windows_of(text).fold(0, |found, window| found | range_marks(&window))
    }

    /// The mark of the word before a place, fillers left out.
    pub(crate) fn before(&self, place: usize) -> Marks {
        (0..place).rev().map(|index| 1 << index.min(63)).find(|mark| self.fillers & mark == 0).unwrap_or(0)
    }

    /// Whether some word begins with this byte.
    pub(crate) fn has_initial(&self, byte: u8) -> bool {
        self.words.spans.iter().any(|span| self.words.text.as_bytes().get(span.start as usize) == Some(&byte))
    }
}

/// The marks of a range of words.
pub(crate) fn range_marks(range: &Range<usize>) -> Marks {
    range.clone().fold(0, |marks, index| marks | 1 << index.min(63))
}

fn marks(words: &Words, is: impl Fn(&str) -> bool) -> Marks {
    words
        .iter()
        .enumerate()
        .filter(|(_, word)| is(word))
        .fold(0, |marks, (index, _)| marks | 1 << index.min(63))
}

/// The windows that may be the key, and the one that the writing points to.
fn windows(key: &str, words: &Words, count: usize, fillers: Marks) -> (Vec<Range<usize>>, Range<usize>) {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut add = |range: Range<usize>| {
        if !range.is_empty() && range.len() <= KEY_WORDS && range.end <= count && !found.contains(&range) {
            found.push(range);
        }
    };
    let mut named = 0..0;
    // `price of item 7`: the key stands before an `of`.
    if let Some(at) = key.find(" of ").or_else(|| key.find(" for ")) {
        let before = Words::of(&key[..at]).len();
        named = 0..before;
        let ofs = (0..count).filter(|index| matches!(words.word(*index), "of" | "for"));
        for of in ofs.collect::<Vec<_>>().into_iter().rev().filter(|of| *of > before) {
            add(0..of);
        }
        add(0..before);
    }
    // `item.7.price`, `item_7_price`: the key stands at the end.
    let mut end = count;
    if named.is_empty() {
        let last = key.rsplit(['.', '/', ':', '>']).next().map_or(0, |part| Words::of(part).len());
        named = count - last.min(count)..count;
    }
    loop {
        for start in end.saturating_sub(KEY_WORDS)..end {
            add(start..end);
        }
        // A unit or currency at the end is no part of the key: `total_gbp`.
        if end < 2 || fillers & (1 << (end - 1).min(63)) == 0 {
            break;
        }
        end -= 1;
    }
    for len in (1..=KEY_WORDS.min(count)).rev() {
        add(0..len);
    }
    (found, named)
}

/// The windows that name a record of the run, the longest first from the left.
fn names(words: &Words, evidence: &Evidence, key: &Range<usize>) -> Vec<(Range<usize>, u64)> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < words.len() {
        let longest = NAME_WORDS.min(words.len() - start);
        let name = (1..=longest).rev().find_map(|len| {
            let hash = fold::hash(words.window(start..start + len));
            let is_key = start < key.end && key.start < start + len;
            let named = !is_key && evidence.is_name(hash);
            named.then_some((start..start + len, hash))
        });
        match name {
            Some((range, hash)) => {
                start = range.end;
                found.push((range, hash));
            }
            None => start += 1,
        }
    }
    found
}

/// Proper names: capitalised words behind the first `of` or dot, or in the record's name.
fn proper(raw: &str, words: &Words) -> Marks {
    let from = raw.find(" of ").map(|at| at + 4).or_else(|| raw.find('.')).unwrap_or(raw.len());
    let before = Words::of(&raw[..from]).len();
    raw[from..]
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| {
            word.chars().next().is_some_and(char::is_uppercase) && word.chars().any(char::is_lowercase)
        })
        .fold(0, |found, word| found | marks(words, |own| own == fold::fold(word)))
        & !range_marks(&(0..before))
}
