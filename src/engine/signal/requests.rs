//! What a text asks its reader for, and whether it had to.

use super::known::{CONTACTS, ID, Known, Slot, canonical, stands_in};
use crate::engine::handoff::value::fold::Words;

/// Bytes of an agent's text that are read.
const TEXT: usize = 16 << 10;

/// The known values that an agent's text asks for. A sentence that names the value confirms it, and one that
/// asks for another one does not ask again.
pub fn asked_again<'k>(known: &'k Known, text: &str) -> Vec<&'k Slot> {
    let mut asked: Vec<&Slot> = Vec::new();
    for sentence in sentences(text) {
        let words = Words::of(sentence);
        if !asks(sentence, &words) || asks_for_choice(&words) {
            continue;
        }
        let canonical = canonical(&Words::of(&sentence.replace('#', " number ")));
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

/// The known values that the customer had said before and says once more, after `asked`: what an agent said to
/// it before. Of its own accord a customer may name what it likes.
pub fn repeats<'k>(known: &'k Known, asked: &str, turn: &str) -> Vec<&'k Slot> {
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
    let mut again: Vec<&Slot> = known.slots().iter().filter(said_again).collect();
    again.dedup_by(|a, b| a.value == b.value);
    again
}

/// Whether a value is one that nobody says by chance.
fn worth(value: &str) -> bool {
    super::known::is_identifier(value) || value.contains('@')
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
    const VERBS: [&str; 17] = [
        "provide", "share", "give", "tell", "send", "enter", "specify", "confirm", "verify", "have", "need",
        "remind", "know", "repeat", "get", "state", "supply",
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
    const QUESTIONS: [&str; 6] = ["what", "which", "where", "who", "when", "whats"];
    let has = |phrase: &[&str]| {
        (0..words.len()).any(|at| phrase.iter().enumerate().all(|(n, word)| words.word(at + n) == *word))
    };
    let verb = words.iter().any(|word| VERBS.contains(&word));
    let opened = OPENINGS.iter().any(|opening| has(opening));
    if opened && verb {
        return true;
    }
    sentence.trim_end().ends_with('?') && words.iter().take(12).any(|word| QUESTIONS.contains(&word))
}

/// Words by which something else is meant than what was.
const OTHERS: [&str; 16] = [
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
    (0..words.len()).any(|at| CHOICES.iter().any(|choice| stands(at, choice)))
}

/// Whether the words of a request, in canonical form, have the slot as what is asked for.
fn asks_for(words: &[String], slot: &Slot) -> bool {
    let count = slot.noun.len();
    let contact = count == 1 && CONTACTS.contains(&slot.noun[0].as_str());
    (0..(words.len() + 1).saturating_sub(count)).any(|at| {
        if words[at..at + count] != slot.noun[..] || is_beside(words, at) || is_another(words, at, count) {
            return false;
        }
        if contact {
            return true;
        }
        if !slot.id {
            return count > 1;
        }
        let behind = words.get(at + count).is_some_and(|word| word == ID)
            || (words.get(at + count).is_some_and(|word| word == "s")
                && words.get(at + count + 1).is_some_and(|word| word == ID));
        // *The number of your order*, *the id for the order*.
        let before = words[..at].iter().rev().take(3).any(|word| word == ID);
        behind || before
    })
}

/// Whether another one than what was is meant by the `count` words at `at`.
fn is_another(words: &[String], at: usize, count: usize) -> bool {
    let before = &words[at.saturating_sub(3)..at];
    let behind = &words[at + count..words.len().min(at + count + 3)];
    before.iter().chain(behind).any(|word| OTHERS.contains(&word.as_str()))
}

/// Whether what stands at `at` only says where or for what: *to your address*, *on the account*.
fn is_beside(words: &[String], at: usize) -> bool {
    const BESIDE: [&str; 12] =
        ["to", "at", "on", "with", "from", "under", "in", "via", "by", "using", "about", "into"];
    const ARTICLES: [&str; 7] = ["your", "the", "this", "that", "his", "her", "their"];
    let before = &words[..at];
    let before = match before.split_last() {
        Some((last, rest)) if ARTICLES.contains(&last.as_str()) => rest,
        _ => before,
    };
    before.last().is_some_and(|word| BESIDE.contains(&word.as_str()))
}
