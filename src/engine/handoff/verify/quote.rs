//! What the customer said: whether one of their messages has a claim, word for word.

use super::check::Verdict;
use super::{Outcome, prose, tell};
use crate::engine::handoff::contract::Claim;
use crate::engine::handoff::evidence::{Evidence, Turn};
use crate::engine::handoff::value::Sought;
use crate::engine::handoff::value::fold::Words;

/// Shorter values say nothing about who said them.
const TELLING: usize = 3;
/// At most this many of the customer's turns are searched, the newest first.
const TURNS: usize = 400;

/// Checks a claim that is said to be the customer's words.
pub(super) fn check(claim: &Claim, evidence: &Evidence) -> (Verdict, Option<u32>) {
    let quote = claim.evidence.as_deref().map(str::trim).filter(|quote| !quote.is_empty());
    if let Some(quote) = quote
        && let Some(turn) = find(evidence, |turn| has_quote(turn, quote))
    {
        let details = super::statement::details(&claim.value.text);
        let missing = details.iter().find(|detail| !says(turn, detail));
        return match missing {
            None => (quoted(turn), Some(turn.place)),
            Some(missing) => {
                let why = format!("the customer is quoted, and did not say \"{}\"", tell::short(missing));
                (Verdict::new(Outcome::NotQuoted, why, None), None)
            }
        };
    }
    let value = claim.value.text.trim();
    if !value.is_empty()
        && let Some(turn) = find(evidence, |turn| has_quote(turn, value) || says(turn, value))
        && quote.is_none_or(|quote| !is_quote(quote, evidence))
    {
        return (quoted(turn), Some(turn.place));
    }
    (Verdict::new(Outcome::NotQuoted, "no message of the customer has these words", None), None)
}

/// The newest of the customer's turns that says a value, if the value is telling at all.
pub(super) fn said_by_customer<'e>(evidence: &'e Evidence, value: &str) -> Option<&'e Turn> {
    let telling = value.chars().filter(|c| c.is_alphanumeric()).count() >= TELLING;
    telling.then(|| find(evidence, |turn| has_quote(turn, value) || says(turn, value))).flatten()
}

fn find(evidence: &Evidence, says: impl Fn(&Turn) -> bool) -> Option<&Turn> {
    evidence.customer_turns().rev().take(TURNS).find(|turn| says(turn))
}

/// A text that is long enough to be words of somebody's, and no reference to a message or call.
fn is_quote(text: &str, evidence: &Evidence) -> bool {
    text.split_whitespace().count() > 3 && evidence.with_id(text).next().is_none()
}

/// Whether a turn has these words in this order; where the quote leaves out words (`...`) its parts.
pub(super) fn has_quote(turn: &Turn, quote: &str) -> bool {
    let mut rest = 0;
    let mut parts = 0;
    for part in quote.split("...").flat_map(|part| part.split('…')) {
        let words = Words::of(part);
        if words.is_empty() {
            continue;
        }
        match find_words(turn.words(), &words, rest) {
            Some(end) => rest = end,
            None => return false,
        }
        parts += 1;
    }
    parts > 0
}

/// Where the words end in the text, looking from `from` on.
fn find_words(text: &Words, words: &Words, from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(found) = text.text.get(at..)?.find(&words.text) {
        let (start, end) = (at + found, at + found + words.text.len());
        let is_start = text.spans.binary_search_by_key(&(start as u32), |span| span.start).is_ok();
        let is_end = text.spans.binary_search_by_key(&(end as u32), |span| span.end).is_ok();
        if is_start && is_end {
            return Some(end);
        }
        at = start + text.text[start..].chars().next().map_or(1, char::len_utf8);
    }
    None
}

/// Whether a turn says a value in some spelling.
pub(super) fn says(turn: &Turn, value: &str) -> bool {
    value.len() <= 80 && !prose::occurrences(&turn.text, &Sought::of_text(value)).is_empty()
}

fn quoted(turn: &Turn) -> Verdict {
    let why = format!("the customer said \"{}\"", tell::short(&turn.text));
    Verdict::new(Outcome::Quoted, why, None)
}
