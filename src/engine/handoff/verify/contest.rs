//! Whether a later turn of the customer speaks against a fact: a correction
//! with another value of the same kind, or a denial that names the record or
//! takes up what was just said.

use super::prose::{occurrences, split_sentences};
use super::supersede::Place;
use crate::engine::handoff::evidence::{Evidence, Turn};
use crate::engine::handoff::value::Sought;
use crate::engine::handoff::value::fold::{self, Words};
use crate::engine::handoff::value::moment::{Moment, month};
use crate::engine::handoff::value::number::Number;

/// At most this many later turns are read.
const TURNS: usize = 200;
/// Sentences of one turn.
const SENTENCES: usize = 60;

/// A fact that later words may speak against.
pub(super) struct Standing<'f> {
    /// The key, as written; none for a statement.
    pub(super) key: Option<&'f str>,
    /// The value, as written.
    pub(super) value: &'f str,
    /// When it was established, among all that happened.
    pub(super) place: u32,
    /// The value in a tool's result, if it has one.
    pub(super) result: Option<Place>,
}

/// The customer's turn that speaks against the fact, if any does: the newest one.
pub(super) fn against<'e>(fact: &Standing<'_>, evidence: &'e Evidence) -> Option<&'e Turn> {
    let turns = evidence.turns();
    let from = turns.partition_point(|turn| turn.place <= fact.place);
    let sought = Sought::of_text(fact.value);
    let kind = ValueKind::of(fact.value);
    let key = fact.key.map(Words::of).unwrap_or_default();
    let names = names(fact, evidence);
    (from..turns.len()).rev().take(TURNS).filter(|index| turns[*index].customer).find_map(|index| {
        let turn = &turns[index];
        if !has_cue(turn.words()) {
            return None;
        }
        let before = turns[..index].iter().rev().find(|turn| !turn.customer && turn.place > fact.place);
        let value_said = before.is_some_and(|before| !occurrences(&before.text, &sought).is_empty());
        let record_said = value_said || before.is_some_and(|before| bears(before.words(), &names));
        let contradicts = split_sentences(&turn.text).take(SENTENCES).any(|sentence| {
            let words = Words::of(sentence);
            if is_wish(&words)
                || sentence.trim_end().ends_with('?')
                || names_another(&words, &names, evidence)
            {
                return false;
            }
            let key_said = key.iter().any(|word| word.len() > 2 && words.has(word));
            let value_denied = !occurrences(sentence, &sought).is_empty();
            let corrected = (value_said || key_said || value_denied)
                && corrects(sentence, &words, &sought, &kind)
                && (value_said || record_said || value_denied || bears(&words, &names) || names.is_empty());
            let near = bears(&words, &names) || record_said;
            corrected || (near && denies(&words, fact.value, &key))
        });
        contradicts.then_some(turn)
    })
}

/// What kind of value a fact has; another value of the same kind can correct it.
enum ValueKind {
    Day,
    Clock,
    Amount(Number),
    Identifier(String),
    Text,
}

impl ValueKind {
    fn of(value: &str) -> ValueKind {
        let folded = fold::fold(value);
        if let Some(moment) = Moment::read(&folded).first() {
            return if moment.day.is_some() { ValueKind::Day } else { ValueKind::Clock };
        }
        if let Some(number) = Number::read(&folded) {
            return ValueKind::Amount(number);
        }
        if value.bytes().any(|b| b.is_ascii_digit()) && !value.contains(char::is_whitespace) {
            return ValueKind::Identifier(shape(value));
        }
        ValueKind::Text
    }
}

/// What an identifier looks like: letters and digits by kind and number.
fn shape(text: &str) -> String {
    text.chars()
        .filter(char::is_ascii)
        .map(|c| {
            if c.is_ascii_digit() {
                '9'
            } else if c.is_ascii_alphabetic() {
                'a'
            } else {
                c
            }
        })
        .collect()
}

/// Whether a turn has any word with which a contradiction begins; the others are not read.
fn has_cue(words: &Words) -> bool {
    words.iter().any(|word| {
        OPENERS.contains(&word)
            || WRONG.contains(&word)
            || NOT.contains(&word)
            || UNDONE.contains(&word)
            || matches!(word, "should" | "instead" | "rather" | "sent")
    })
}

/// Words that open a correction.
const OPENERS: [&str; 6] = ["no", "nope", "actually", "correction", "wrong", "sorry"];
/// Words that speak of something false.
const WRONG: [&str; 6] = ["wrong", "incorrect", "mistake", "mistaken", "meant", "correction"];
/// The same in several words, run together.
const SHOULD: [&str; 4] = ["shouldbe", "shouldhavebeen", "insteadof", "ratherthan"];
const NOT: [&str; 16] = [
    "not", "never", "isn", "wasn", "didn", "doesn", "hasn", "haven", "aren", "weren", "don", "isnt", "wasnt",
    "didnt", "hasnt", "havent",
];
/// What somebody did that undoes what a status says.
const UNDONE: [&str; 14] = [
    "refused",
    "rejected",
    "returned",
    "declined",
    "cancelled",
    "canceled",
    "stolen",
    "lost",
    "broken",
    "damaged",
    "withdrew",
    "revoked",
    "moved",
    "changed",
];
/// What somebody wishes is no statement about what is.
const WISHES: [&str; 26] = [
    "want", "wants", "wish", "like", "please", "could", "would", "can", "need", "prefer", "let", "change",
    "update", "switch", "upgrade", "book", "cancel", "return", "exchange", "modify", "if", "make", "add",
    "remove", "proceed", "use",
];
/// What arrives, or does not.
const ARRIVED: [&str; 8] =
    ["delivered", "received", "receive", "arrived", "arrive", "got", "came", "deliver"];
/// States that an undoing speaks against.
const DONE: [&str; 16] = [
    "delivered",
    "received",
    "completed",
    "complete",
    "accepted",
    "active",
    "confirmed",
    "booked",
    "scheduled",
    "open",
    "pending",
    "shipped",
    "approved",
    "available",
    "done",
    "ok",
];

fn is_wish(words: &Words) -> bool {
    words.iter().any(|word| WISHES.contains(&word))
}

/// A sentence that corrects: it opens with a correction or speaks of one, and has another value of
/// the same kind; a text has to be denied itself.
fn corrects(sentence: &str, words: &Words, sought: &Sought<'_>, kind: &ValueKind) -> bool {
    if let ValueKind::Text = kind {
        return negates(words, &Words::of(sought.text()));
    }
    let opens = (0..2).any(|index| OPENERS.contains(&words.word(index)));
    let speaks =
        words.iter().any(|word| WRONG.contains(&word)) || SHOULD.iter().any(|cue| words.text.contains(cue));
    let denied = occurrences(sentence, sought)
        .first()
        .is_some_and(|range| Words::of(&sentence[..range.start]).iter().any(|word| NOT.contains(&word)));
    (opens || speaks || denied) && tokens(sentence).any(|token| is_other(token, sought, kind))
}

/// Whether a token is another value of the kind.
fn is_other(token: &str, sought: &Sought<'_>, kind: &ValueKind) -> bool {
    if sought.matches_text(token).is_some() {
        return false;
    }
    let folded = fold::fold(token);
    match kind {
        ValueKind::Day => {
            let named = month(&folded).filter(|_| folded.len() > 3 || token.starts_with(char::is_uppercase));
            let own = Moment::read(&fold::fold(sought.text())).first().and_then(|moment| moment.day);
            named.is_some_and(|named| own.is_some_and(|own| own.month != named))
                || Moment::read(&folded).first().is_some_and(|moment| moment.day.is_some())
        }
        ValueKind::Clock => Moment::read(&folded).first().is_some_and(|moment| moment.day.is_none()),
        ValueKind::Amount(own) => Number::read(&folded).is_some_and(|other| {
            let money = !own.unit.is_empty() || own.decimal.contains('.');
            !other.same(own)
                && (other.unit == own.unit
                    || money && !other.unit.is_empty()
                    || other.unit.is_empty() && !money)
        }),
        ValueKind::Identifier(own) => shape(token) == *own,
        ValueKind::Text => false,
    }
}

fn tokens(sentence: &str) -> impl Iterator<Item = &str> {
    sentence
        .split_whitespace()
        .map(|token| token.trim_matches(['.', ',', ';', ':', '!', '?', '"', '\'', '(', ')']))
        .filter(|token| !token.is_empty())
}

/// A sentence that denies what a status says: it negates it, or tells of what undid it.
fn denies(words: &Words, value: &str, key: &Words) -> bool {
    let value = Words::of(value);
    let status = key.iter().any(|word| matches!(word, "status" | "state"))
        || key.iter().any(|word| DONE.contains(&word) || ARRIVED.contains(&word))
        || value.iter().any(|word| DONE.contains(&word));
    if !status {
        return false;
    }
    let says_done = value.iter().any(|word| DONE.contains(&word) || word == "true" || word == "yes");
    let undone = words.iter().enumerate().any(|(index, word)| {
        UNDONE.contains(&word)
            && (0..index).rev().take(4).any(|before| {
                matches!(
                    words.word(before),
                    "i" | "we" | "was" | "were" | "been" | "ve" | "have" | "it" | "she" | "he" | "they"
                )
            })
            && !(0..index).rev().take(3).any(|before| NOT.contains(&words.word(before)))
    }) || words.text.contains("sentitback")
        || words.text.contains("sentback");
    let arrives = value.iter().any(|word| ARRIVED.contains(&word));
    let absent = arrives && negated(words, |word| ARRIVED.contains(&word));
    (says_done && undone && !value.iter().any(|word| words.has(word))) || absent || negates(words, &value)
}

/// Whether a word of the value is negated.
fn negates(words: &Words, value: &Words) -> bool {
    negated(words, |word| value.iter().any(|own| own.len() > 3 && stem(own) == stem(word)))
}

fn negated(words: &Words, is: impl Fn(&str) -> bool) -> bool {
    words.iter().enumerate().any(|(index, word)| {
        is(word) && (0..index).rev().take(4).any(|before| NOT.contains(&words.word(before)))
    })
}

/// A verb or noun without its commonest endings.
fn stem(word: &str) -> &str {
    ["ed", "d", "ing", "s", "ry", "y"]
        .iter()
        .find_map(|end| word.strip_suffix(end).filter(|rest| rest.len() > 3))
        .unwrap_or(word)
}

/// The names of the fact's record, folded and run together.
fn names(fact: &Standing<'_>, evidence: &Evidence) -> Vec<String> {
    let Some(place) = fact.result else { return Vec::new() };
    let seen = evidence.seen(place.call);
    let record = seen.records.of(place.node);
    seen.records
        .chain(record)
        .take(2)
        .flat_map(|record| seen.records.names_of(record))
        .map(|name| seen.folded(name, &evidence.keys))
        .filter(|name| name.len() > 1)
        .collect()
}

fn bears(words: &Words, names: &[String]) -> bool {
    names.iter().any(|name| (0..words.len()).any(|start| starts_window(words, start, name)))
}

fn starts_window(words: &Words, start: usize, name: &str) -> bool {
    let from = words.spans[start].start as usize;
    words.text[from..].starts_with(name)
        && words.spans[start..].iter().take(12).any(|span| span.end as usize == from + name.len())
}

/// Whether the words name some other record of the run.
fn names_another(words: &Words, names: &[String], evidence: &Evidence) -> bool {
    (0..words.len()).any(|start| {
        (1..=4.min(words.len() - start)).any(|len| {
            let window = words.window(start..start + len);
            window.bytes().any(|b| b.is_ascii_digit())
                && !names.iter().any(|name| name == window)
                && evidence.is_name(fold::hash(window))
        })
    })
}
