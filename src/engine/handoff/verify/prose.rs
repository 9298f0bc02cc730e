//! Results that are not trees: one bare value, whose key stands in the call, or
//! sentences, where key and value stand beside each other.

use super::question::{Marks, Question, range_marks};
use super::resolve;
use crate::engine::handoff::evidence::{Evidence, Kind};
use crate::engine::handoff::value::fold::Words;
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
        .any(|node| evidence.keys[arguments.node(node).key].words.text == named);
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

/// Finds key and value beside each other in a sentence that bears the record.
fn sentences(
    question: &Question,
    sought: &Sought<'_>,
    evidence: &Evidence,
    call: u32,
    node: u32,
) -> Option<(u32, Match)> {
    let text = evidence.seen(call).result.value(node).into_owned();
    let (said, _) = resolve::call_words(question, evidence, call);
    let named = range_marks(&question.named) & !question.fillers & !question.required;
    let mut before: Marks = 0;
    for sentence in split_sentences(&text) {
        let words = Words::of(sentence);
        let mut here: Marks = 0;
        for (range, _) in &question.names {
            if words.text.contains(question.words.window(range.clone())) {
                here |= range_marks(range);
            }
        }
        for (index, word) in question.words.iter().enumerate() {
            if words.has(word) {
                here |= 1 << index.min(63);
            }
        }
        let borne = here | said | if here & question.required == 0 { before } else { 0 };
        if here & question.required != 0 {
            before = here & question.required;
        }
        if question.required & !borne != 0 || named & !borne != 0 {
            continue;
        }
        if beside(question, sentence, sought) {
            return Some((node, Match::Rewritten));
        }
    }
    None
}

/// Whether the value is the one that stands nearest to the key.
fn beside(question: &Question, sentence: &str, sought: &Sought<'_>) -> bool {
    let tokens: Vec<(usize, &str)> = tokens(sentence);
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
            if numeric && token.bytes().any(|b| b.is_ascii_digit()) {
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
    let tokens = tokens(text);
    let length = sought.text().split_whitespace().count().clamp(1, 12);
    let mut found = Vec::new();
    for start in 0..tokens.len().min(20_000) {
        for len in [length, length + 1, length.saturating_sub(1)] {
            if len == 0 || start + len > tokens.len() {
                continue;
            }
            let (from, _) = tokens[start];
            let (last, token) = tokens[start + len - 1];
            let window = text[from..last + token.len()]
                .trim_matches(['.', ',', ';', ':', '!', '?', '"', '\'', '(', ')']);
            if sought.matches_text(window).is_some() {
                let at = from + (window.as_ptr() as usize).saturating_sub(text[from..].as_ptr() as usize);
                found.push(at..at + window.len());
                break;
            }
        }
    }
    found
}

fn tokens(text: &str) -> Vec<(usize, &str)> {
    text.split_whitespace()
        .map(|token| ((token.as_ptr() as usize).saturating_sub(text.as_ptr() as usize), token))
        .collect()
}

/// Sentences and lines.
pub(super) fn split_sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| {
        let mut rest = line;
        std::iter::from_fn(move || {
            if rest.trim().is_empty() {
                return None;
            }
            let end = [". ", "! ", "? ", "; "].iter().filter_map(|mark| rest.find(mark)).min();
            let (sentence, left) = match end {
                Some(end) => rest.split_at(end + 1),
                None => (rest, ""),
            };
            rest = left;
            Some(sentence.trim())
        })
    })
}
