//! Results that are not trees: one bare value, whose key stands in the call, or
//! sentences, where key and value stand beside each other.

use std::collections::VecDeque;

use super::question::{Marks, Question, range_marks};
use super::resolve;
use crate::engine::handoff::evidence::{Evidence, Kind};
use crate::engine::handoff::value::fold::{self, Words};
use crate::engine::handoff::value::moment::Moment;
use crate::engine::handoff::value::number::Number;
use crate::engine::handoff::value::{Match, Sought};

/// Words for a result as a whole.
const WHOLE: [&str; 8] = ["result", "output", "answer", "response", "outcome", "return", "returned", "value"];
/// Between key and value stand at most this many words.
const BETWEEN: usize = 6;

/// Looks a claim up in a bare value or in sentences.
pub(super) fn look(
    question: &Question,
    sought: &Sought<'_>,
    evidence: &Evidence,
    call: u32,
) -> Option<(u32, Match)> {
    let result = &evidence.seen(call).result;
    let mut node = 0;
    while result.is_region(node) {
        node = result.children(node).next()?;
    }
    match result.node(node).kind {
        Kind::Text | Kind::Number | Kind::Bool => bare(question, sought, evidence, call, node),
        Kind::Prose => {
            let whole = sought.matches(result, node, &evidence.keys).map(|found| (node, found));
            whole
                .filter(|_| bare_key(question, evidence, call))
                .or_else(|| sentences(question, sought, evidence, call, node))
        }
        _ => None,
    }
}

/// Whether the value stands in the sentences of a result.
pub(super) fn mentions(sought: &Sought<'_>, evidence: &Evidence, call: u32) -> Option<u32> {
    let result = &evidence.seen(call).result;
    (0..result.nodes.len() as u32)
        .filter(|node| {
            result.node(*node).kind == Kind::Prose
                || (result.node(*node).kind == Kind::Text && result.node(*node).len > 24)
        })
        .find(|node| !occurrences(&result.value(*node), sought).is_empty())
}

fn bare(
    question: &Question,
    sought: &Sought<'_>,
    evidence: &Evidence,
    call: u32,
    node: u32,
) -> Option<(u32, Match)> {
    let found = sought.matches(&evidence.seen(call).result, node, &evidence.keys)?;
    bare_key(question, evidence, call).then_some((node, found))
}

/// Whether a whole result can be what the key asks for: the call bears the record, and the key is
/// not one of the call's own arguments.
fn bare_key(question: &Question, evidence: &Evidence, call: u32) -> bool {
    let (said, tool) = resolve::call_words(question, evidence, call);
    if question.required & !said != 0 {
        return false;
    }
    if !operators_agree(question, evidence, call) {
        return false;
    }
    let mut key: Marks = range_marks(&question.named) & !question.fillers & !question.required;
    for word in WHOLE {
        key &= !question.mark_word(word);
    }
    if key == 0 {
        return true;
    }
    let arguments = &evidence.seen(call).arguments;
    let named = question.words.window(question.named.clone());
    let is_argument = (1..arguments.nodes.len().min(64) as u32)
        .any(|node| evidence.keys[arguments.node(node).key].words().text == named);
    if is_argument {
        return false;
    }
    // Either the tool's name bears the key, or it says nothing about it.
    key & !(said | question.kinds) == 0 || key & tool == 0
}

/// An expression among the arguments has to stand in the key as it is, signs and all.
fn operators_agree(question: &Question, evidence: &Evidence, call: u32) -> bool {
    let arguments = &evidence.seen(call).arguments;
    let squeezed = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    let asked = squeezed(&question.raw);
    if !asked.contains(['+', '*']) {
        return true;
    }
    (1..arguments.nodes.len().min(64) as u32)
        .filter(|node| arguments.is_leaf(*node))
        .any(|node| asked.contains(&squeezed(&arguments.value(node))))
}

/// Finds key and value beside each other in a sentence that bears the record, or that follows one
/// that does.
fn sentences(
    question: &Question,
    sought: &Sought<'_>,
    evidence: &Evidence,
    call: u32,
    node: u32,
) -> Option<(u32, Match)> {
    /// Places of the value that are looked at.
    const PLACES: usize = 64;
    let text = evidence.seen(call).result.value(node);
    let (said, _) = resolve::call_words(question, evidence, call);
    let key = range_marks(&question.named) & !question.fillers & !question.required;
    let borne = occurrences(&text, sought).into_iter().take(PLACES).any(|place| {
        let sentence = around(&text, place.start);
        let here = borne_words(question, &text[sentence.clone()]);
        // A sentence that names no record goes on about the one before it.
        let before = || match sentence.start.checked_sub(2) {
            Some(end) if here & question.required == 0 => {
                borne_words(question, &text[around(&text, boundary(&text, end))]) & question.required
            }
            _ => 0,
        };
        let said = here | said | before();
        question.required & !said == 0 && key & !said == 0 && beside(question, &text[sentence], sought)
    });
    borne.then_some((node, Match::Rewritten))
}

/// The words of the question that a sentence bears.
fn borne_words(question: &Question, sentence: &str) -> Marks {
    let words = Words::of(sentence);
    let mut found: Marks = 0;
    for (range, _) in &question.names {
        if words.text.contains(question.words.window(range.clone())) {
            found |= range_marks(range);
        }
    }
    for (index, word) in question.words.iter().enumerate() {
        if words.has(word) {
            found |= 1 << index.min(63);
        }
    }
    found
}

/// The last place at or before `at` where a character begins.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The sentence or line around a place, at most some 2,000 bytes of it.
fn around(text: &str, place: usize) -> std::ops::Range<usize> {
    const BYTES: usize = 1_000;
    let from = boundary(text, place.saturating_sub(BYTES));
    let to = boundary(text, text.len().min(place + BYTES));
    let ends = |(at, byte): (usize, u8)| {
        byte == b'\n'
            || (matches!(byte, b'.' | b'!' | b'?' | b';') && text.as_bytes().get(at + 1) == Some(&b' '))
    };
    let bytes = text.as_bytes();
    let start = (from..place).rev().find(|at| ends((*at, bytes[*at]))).map_or(from, |at| at + 1);
    let end = (place..to).find(|at| ends((*at, bytes[*at]))).map_or(to, |at| at + 1);
    start..end
}

/// Whether the value is the one that stands nearest to the key.
fn beside(question: &Question, sentence: &str, sought: &Sought<'_>) -> bool {
    let tokens: Vec<_> = tokens(sentence).take(1_000).collect();
    let values = occurrences(sentence, sought);
    let Some(last) = question.named.clone().rev().find(|index| {
        let mark = 1u64 << index.min(&63);
        mark & (question.fillers | question.required) == 0
    }) else {
        return !values.is_empty();
    };
    let key = question.words.word(last);
    let is_key = |token: &str| Words::of(token).has(key);
    let places: Vec<usize> =
        tokens.iter().enumerate().filter(|(_, (_, token))| is_key(token)).map(|(index, _)| index).collect();
    let numeric = sought.text().bytes().any(|b| b.is_ascii_digit());
    for place in places {
        let after = tokens.iter().skip(place + 1).take(BETWEEN);
        // The first value of that kind behind the key is the key's.
        for (at, token) in after {
            if values.iter().any(|range| range.contains(at)) {
                return true;
            }
            if numeric && is_amount(token) {
                break;
            }
        }
        let Some(before) = place.checked_sub(1) else { continue };
        let direct = values.iter().any(|range| range.contains(&tokens[before].0));
        if direct {
            return true;
        }
    }
    false
}

/// Where in a text the value stands, as a token or a run of tokens.
pub(super) fn occurrences(text: &str, sought: &Sought<'_>) -> Vec<std::ops::Range<usize>> {
    /// Tokens that are looked at, and runs of them that are compared.
    const TOKENS: usize = 200_000;
    const RUNS: usize = 1_000;
    let length = sought.text().split_whitespace().count().clamp(1, 12);
    let lengths = if sought.is_moment() { 1..=6 } else { length.saturating_sub(1)..=length + 1 };
    let numeric = sought.text().bytes().any(|b| b.is_ascii_digit());
    if numeric && text.is_ascii() && !text.bytes().any(|b| b.is_ascii_digit()) {
        return Vec::new();
    }
    let first = initial(sought.text());
    let may_begin = |token: &str| {
        let begins = if numeric {
            // A number or date may begin with its currency, month or weekday.
            token.bytes().any(|b| b.is_ascii_digit())
                || ((length > 1 || sought.is_moment()) && initial(token).is_some())
        } else {
            first.is_none() || initial(token) == first
        };
        begins || !token.is_ascii()
    };
    let longest = *lengths.end();
    let mut tokens = tokens(text).take(TOKENS);
    // The tokens from the one on that a run may begin with, so that a long text is read only as far as needed.
    let mut ahead: VecDeque<(usize, &str)> = tokens.by_ref().take(longest).collect();
    let mut found = Vec::new();
    let mut compared = 0;
    while let Some((from, token)) = ahead.front().copied() {
        if may_begin(token) {
            for len in lengths.clone() {
                let Some((last, end)) = len.checked_sub(1).and_then(|more| ahead.get(more)) else { continue };
                let run = &text[from..last + end.len()];
                if numeric && run.is_ascii() && !run.bytes().any(|b| b.is_ascii_digit()) {
                    continue;
                }
                let left = run.len() - run.trim_start_matches(PUNCTUATION).len();
                let window = run.trim_matches(PUNCTUATION);
                compared += 1;
                if sought.matches_text(window).is_some() {
                    found.push(from + left..from + left + window.len());
                    break;
                }
            }
            if compared > RUNS {
                break;
            }
        }
        ahead.pop_front();
        ahead.extend(tokens.next());
    }
    found
}

/// Whether a word is a number or a moment.
fn is_amount(token: &str) -> bool {
    let folded = fold::fold(token.trim_matches(PUNCTUATION));
    Number::read(&folded).is_some() || !Moment::read(&folded).is_empty()
}

/// What stands around a word in a sentence.
const PUNCTUATION: [char; 12] = ['.', ',', ';', ':', '!', '?', '"', '\'', '(', ')', '[', ']'];

/// The first letter or digit, in lower case.
fn initial(text: &str) -> Option<u8> {
    text.bytes().find(u8::is_ascii_alphanumeric).map(|b| b.to_ascii_lowercase())
}

/// The words of a text as they stand between spaces, each with its place.
fn tokens(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_whitespace()
        .map(|token| ((token.as_ptr() as usize).saturating_sub(text.as_ptr() as usize), token))
}

/// Sentences and lines.
pub(super) fn split_sentences(text: &str) -> impl Iterator<Item = &str> {
    let bytes = text.as_bytes();
    let mut from = 0;
    std::iter::from_fn(move || {
        if from >= text.len() {
            return None;
        }
        let ends = |at: &usize| {
            bytes[*at] == b'\n'
                || (matches!(bytes[*at], b'.' | b'!' | b'?' | b';') && bytes.get(at + 1) == Some(&b' '))
        };
        let end = (from..text.len()).find(ends).map_or(text.len(), |at| at + 1);
        let sentence = &text[from..end];
        from = end;
        Some(sentence.trim())
    })
    .filter(|sentence| !sentence.is_empty())
}
