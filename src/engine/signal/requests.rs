//! What a text asks its reader for, and whether it had to.

use std::borrow::Cow;

use super::known::{CONTACTS, ID, Known, Slot, canonical, is_identifier, is_spaced, stands_in};
use crate::engine::handoff::value::fold::Words;

/// Bytes of an agent's text that are read.
const TEXT: usize = 16 << 10;

/// The values that an agent's text asks for, of those that are `known`: it is called where something is asked.
/// A sentence that names the value confirms it, and one that asks for another one does not ask again.
pub fn asked_again<'k>(known: impl Fn() -> &'k Known, text: &str) -> Vec<&'k Slot> {
    let text = unwrapped(text);
    let mut asked: Vec<&Slot> = Vec::new();
    let mut list = List::Closed;
    for sentence in sentences(&text) {
        let words = Words::of(sentence);
        let requested = list.reads(sentence, &words) || asks(sentence, &words);
        list.opens_behind(sentence, requested);
        if !requested || asks_for_choice(&words) || asks_for_another_with_parts(&words) {
            continue;
        }
        let canonical = canonical(&Words::of(&sentence.replace('#', " number ")));
        let known = known();
        for slot in known.slots() {
            if asked.iter().any(|known| known.noun == slot.noun) || !asks_for(&canonical, slot) {
                continue;
            }
            let Some(only) = known.only(&slot.noun, slot.id) else { continue };
            if !stands_in(&words, &Words::of(&only.value)) {
                asked.push(only);
            }
        }
    }
    asked
}

/// Some agents write their texts as JSON, where a line's end is two characters.
fn unwrapped(text: &str) -> Cow<'_, str> {
    let text = &text[..text.floor_char_boundary(TEXT)];
    if text.trim_start().starts_with('{') { text.replace("\\n", "\n").into() } else { text.into() }
}

/// A list of things that a request asks for: *please provide:*, and a line for each.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Closed,
    Open,
    /// An item's number was read, and not yet the item.
    Numbered,
}

impl List {
    /// Whether a sentence is an item.
    fn reads(&mut self, sentence: &str, words: &Words) -> bool {
        let marked = sentence.trim_start().starts_with(['-', '*', '•']);
        let number = words.len() == 1 && words.text.bytes().all(|b| b.is_ascii_digit());
        let item = *self == List::Numbered || *self == List::Open && marked;
        *self = match self {
            List::Closed => List::Closed,
            _ if number => List::Numbered,
            _ if item => List::Open,
            _ => List::Closed,
        };
        item
    }

    /// A request that ends in a colon opens one.
    fn opens_behind(&mut self, sentence: &str, requested: bool) {
        if requested && sentence.trim_end().ends_with(':') {
            *self = List::Open;
        }
    }
}

/// The known values that the customer had said before and says once more, after `asked`: what an agent said to
/// it before. Of its own accord a customer may name what it likes.
pub fn repeats<'k>(known: impl Fn() -> &'k Known, asked: &str, turn: &str) -> Vec<&'k Slot> {
    let question = sentences(asked).any(|sentence| {
        let words = Words::of(sentence);
        let another = words.iter().any(|word| OTHERS.contains(&word));
        asks(sentence, &words) && !another && !asks_for_choice(&words)
    });
    if !question {
        return Vec::new();
    }
    let (asked, turn) = (Words::of(asked), Words::of(turn));
    let said_again = |slot: &&Slot| {
        let value = Words::of(&slot.value);
        slot.said && worth(&slot.value) && stands_in(&turn, &value) && !stands_in(&asked, &value)
    };
    let mut again: Vec<&Slot> = known().slots().iter().filter(said_again).collect();
    again.dedup_by(|a, b| a.value == b.value);
    again
}

/// Whether a value is one that nobody says by chance.
fn worth(value: &str) -> bool {
    is_identifier(value) || is_spaced(value.split(' ')) || value.contains('@')
}

/// Whether a text greets its reader, or offers to begin.
pub fn greets(text: &str) -> bool {
    const GREETINGS: [&[&str]; 9] = [
        &["hello"],
        &["hi"],
        &["welcome"],
        &["greetings"],
        &["good", "morning"],
        &["good", "afternoon"],
        &["good", "evening"],
        &["thank", "you", "for", "contacting"],
        &["thanks", "for", "contacting"],
    ];
    const OFFERS: [&[&str]; 6] = [
        &["how", "can", "i", "help", "you"],
        &["how", "may", "i", "help", "you"],
        &["how", "can", "i", "assist", "you"],
        &["how", "may", "i", "assist", "you"],
        &["what", "can", "i", "do", "for", "you"],
        &["how", "can", "i", "be", "of"],
    ];
    let words = Words::of(&text[..text.floor_char_boundary(TEXT)]);
    let at =
        |at: usize, phrase: &[&str]| phrase.iter().enumerate().all(|(n, word)| words.word(at + n) == *word);
    GREETINGS.iter().any(|greeting| at(0, greeting))
        || OFFERS.iter().any(|offer| (0..words.len().min(60)).any(|from| at(from, offer)))
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text[..text.floor_char_boundary(TEXT)]
        .split_inclusive(['?', '!', '\n'])
        .flat_map(|part| part.split_inclusive(". "))
        .filter(|sentence| !sentence.trim().is_empty())
}

/// Whether a sentence asks its reader for something.
fn asks(sentence: &str, words: &Words) -> bool {
    const VERBS: [&str; 27] = [
        "provide",
        "share",
        "give",
        "tell",
        "send",
        "enter",
        "specify",
        "confirm",
        "verify",
        "have",
        "need",
        "remind",
        "know",
        "repeat",
        "get",
        "state",
        "supply",
        "take",
        "read",
        "reply",
        "respond",
        "quote",
        "providing",
        "sharing",
        "giving",
        "telling",
        "sending",
    ];
    const OPENINGS: [&[&str]; 17] = [
        &["please"],
        &["could", "you"],
        &["can", "you"],
        &["would", "you"],
        &["will", "you"],
        &["may", "i"],
        &["can", "i"],
        &["could", "i"],
        &["might", "i"],
        &["i", "need"],
        &["ll", "need"],
        &["will", "need"],
        &["let", "me", "know"],
        &["do", "you", "have"],
        &["kindly"],
        &["we", "need"],
        &["i", "require"],
    ];
    const QUESTIONS: [&str; 7] = ["what", "which", "where", "who", "when", "whats", "how"];
    let has = |phrase: &[&str]| {
        (0..words.len()).any(|at| phrase.iter().enumerate().all(|(n, word)| words.word(at + n) == *word))
    };
    let verb = words.iter().any(|word| VERBS.contains(&word));
    let opened = OPENINGS.iter().any(|opening| has(opening));
    if opened && verb {
        return true;
    }
    let question = sentence.trim_end().ends_with('?');
    question && (words.iter().take(12).any(|word| QUESTIONS.contains(&word)) || is_bare(sentence, words))
}

/// Whether a question is the name of what it asks for and little more: *And your name?*, *policy number?*
fn is_bare(sentence: &str, words: &Words) -> bool {
    const VERBS: [&str; 20] = [
        "is", "are", "was", "were", "do", "does", "did", "has", "have", "can", "could", "will", "would",
        "should", "shall", "may", "same", "right", "ok", "okay",
    ];
    let tail = Words::of(sentence.rsplit(": ").next().unwrap_or_default());
    let short = tail.len() <= 4 && !tail.iter().any(|word| VERBS.contains(&word));
    short || words.word(0) == "and" && matches!(words.word(1), "the" | "your")
}

/// Words by which something else is meant than what was.
const OTHERS: [&str; 19] = [
    "new",
    "different",
    "other",
    "another",
    "else",
    "alternative",
    "instead",
    "replacement",
    "updated",
    "correct",
    "additional",
    "second",
    "next",
    "rather",
    "remaining",
    "future",
    "old",
    "former",
    "previous",
];

/// Whether a sentence asks what its reader would like.
fn asks_for_choice(words: &Words) -> bool {
    const CHOICES: [[&str; 3]; 9] = [
        ["would", "you", "like"],
        ["would", "you", "prefer"],
        ["would", "you", "rather"],
        ["do", "you", "want"],
        ["do", "you", "wish"],
        ["do", "you", "prefer"],
        ["should", "i", ""],
        ["should", "we", ""],
        ["shall", "i", ""],
    ];
    let stands = |at: usize, choice: &[&str; 3]| {
        choice.iter().enumerate().all(|(n, word)| word.is_empty() || words.word(at + n) == *word)
    };
    // *Let me know the model you want*; but *the order you want to cancel* is one that there is.
    let count = words.len();
    let wanted = count > 1
        && words.word(count - 2) == "you"
        && matches!(words.word(count - 1), "want" | "prefer" | "like" | "need");
    wanted || (0..count).any(|at| CHOICES.iter().any(|choice| stands(at, choice)))
}

/// Whether a sentence asks for another one and names its parts: *the new address, including the postcode*.
fn asks_for_another_with_parts(words: &Words) -> bool {
    let mut until = words.iter().take_while(|word| *word != "including");
    words.iter().any(|word| word == "including") && until.any(|word| OTHERS.contains(&word))
}

/// Whether the words of a request, in canonical form, have the slot as what is asked for.
fn asks_for(words: &[String], slot: &Slot) -> bool {
    let count = slot.noun.len();
    let contact = count == 1 && CONTACTS.contains(&slot.noun[0].as_str());
    let together = (0..(words.len() + 1).saturating_sub(count)).any(|at| {
        if words[at..at + count] != slot.noun[..] || is_beside(words, at) || is_another(words, at, count) {
            return false;
        }
        if contact {
            return true;
        }
        if !slot.id {
            return count > 1 || is_asked_for_alone(words, at);
        }
        let behind = words.get(at + count).is_some_and(|word| word == ID)
            || (words.get(at + count).is_some_and(|word| word == "s")
                && words.get(at + count + 1).is_some_and(|word| word == ID));
        // *The number of your order*, *the id for the order*.
        let before = words[..at].iter().rev().take(3).any(|word| word == ID);
        behind || before
    });
    together || !slot.id && count > 1 && is_apart(words, &slot.noun)
}

/// Whether the words of a name stand near each other, in another order: *the reading on your meter*, *on which
/// date was the incident*.
fn is_apart(words: &[String], noun: &[String]) -> bool {
    /// Words that may stand between those of a name.
    const BETWEEN: usize = 4;
    let Some((head, rest)) = noun.split_last() else { return false };
    words.iter().enumerate().filter(|(_, word)| *word == head).any(|(at, _)| {
        let behind = &words[at + 1..words.len().min(at + 1 + rest.len() + BETWEEN)];
        let asked = at > 0 && matches!(words[at - 1].as_str(), "which" | "what" | "the" | "your" | "current");
        let all = rest.iter().all(|word| behind.contains(word));
        all && (asked && !is_beside(words, at) || at > 0 && is_questioned(&words[at - 1]))
            && !is_another(words, at, 1)
            && !is_left_open(words)
    })
}

/// Whether the one word at `at`, which is no name of an identifier, is what is asked for: *which tariff are
/// you on*, *I need your IBAN*, *how many guests are there*, *what is the reason for your visit*.
fn is_asked_for_alone(words: &[String], at: usize) -> bool {
    /// What many things have, so that the word alone does not say whose is meant.
    const COMMON: [&str; 20] = [
        "status",
        "state",
        "date",
        "time",
        "type",
        "kind",
        "amount",
        "total",
        "price",
        "cost",
        "value",
        "quantity",
        "count",
        "result",
        "description",
        "note",
        "item",
        "size",
        "color",
        "product",
    ];
    const ASKED: [&str; 22] = [
        "provide", "share", "give", "tell", "send", "enter", "specify", "confirm", "verify", "have", "need",
        "know", "repeat", "get", "state", "supply", "take", "me", "us", "is", "s", "whats",
    ];
    const BEHIND: [&str; 13] =
        ["and", "or", "please", "so", "first", "on", "for", "as", "again", "of", "to", "you", "now"];
    let word = |back: usize| at.checked_sub(back).map_or("", |at| words[at].as_str());
    if COMMON.contains(&words[at].as_str()) || is_left_open(words) {
        return false;
    }
    if is_questioned(word(1)) || (word(2), word(1)) == ("how", "many") {
        return true;
    }
    let ends = words.get(at + 1).is_none_or(|next| BEHIND.contains(&next.as_str()));
    let current = usize::from(matches!(word(1), "current" | "present" | "existing"));
    let yours = word(current + 1) == "your" && ASKED.contains(&word(current + 2));
    let what = matches!((word(3), word(2), word(1)), ("what", "is" | "s", "the"));
    ends && (yours || what)
}

fn is_questioned(before: &str) -> bool {
    matches!(before, "which" | "what")
}

/// Whether a question leaves its reader a choice.
fn is_left_open(words: &[String]) -> bool {
    const LEAVES: [&str; 13] = [
        "suit", "suits", "work", "works", "best", "prefer", "like", "want", "wish", "choose", "should",
        "these", "add",
    ];
    words.iter().any(|word| LEAVES.contains(&word.as_str()))
}

/// Whether another one than what was is meant by the `count` words at `at`.
fn is_another(words: &[String], at: usize, count: usize) -> bool {
    let before = &words[at.saturating_sub(3)..at];
    let behind = words[at + count..].iter().take(5).take_while(|word| !matches!(word.as_str(), "and" | "or"));
    before.iter().chain(behind).any(|word| OTHERS.contains(&word.as_str()))
}

/// Whether what stands at `at` only says where or for what: *to your address*, *on the account*. *Provide us
/// with your address* asks for it.
fn is_beside(words: &[String], at: usize) -> bool {
    const BESIDE: [&str; 12] =
        ["to", "at", "on", "with", "from", "under", "in", "via", "by", "using", "about", "into"];
    const ARTICLES: [&str; 7] = ["your", "the", "this", "that", "his", "her", "their"];
    const GIVEN: [&str; 6] = ["provide", "reply", "respond", "supply", "me", "us"];
    let before = &words[..at];
    let before = match before.split_last() {
        Some((last, rest)) if ARTICLES.contains(&last.as_str()) => rest,
        _ => before,
    };
    let Some((last, rest)) = before.split_last() else { return false };
    let given = last == "with" && rest.last().is_some_and(|word| GIVEN.contains(&word.as_str()));
    BESIDE.contains(&last.as_str()) && !given
}
