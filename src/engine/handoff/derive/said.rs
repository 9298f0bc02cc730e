//! What the customer said in between, where the transcript does not travel.

use std::collections::HashSet;

use super::limits::sentences;
use crate::engine::handoff::contract::{By, Claim, Source, Value};
use crate::engine::handoff::evidence::Evidence;
use crate::engine::handoff::value::fold;

/// Sentences that are kept: the newest.
const MOST: usize = 8;
/// Bytes of a sentence.
const LONGEST: usize = 240;

/// The customer's sentences, between the first turn and the last one (which are quoted whole), that give a
/// number, a date or an identifier that no fact holds.
pub fn said(evidence: &Evidence, facts: &[Claim]) -> Vec<Claim> {
    let turns: Vec<&str> = evidence.customer_turns().map(|turn| &*turn.text).collect();
    let [first, between @ .., last] = turns.as_slice() else { return Vec::new() };
    let mut known: HashSet<String> = HashSet::new();
    for text in
        facts.iter().flat_map(|claim| [Some(claim.value.text.as_str()), claim.of.as_deref()]).flatten()
    {
        known.extend(data(text));
    }
    known.extend(data(first));
    known.extend(data(last));
    let mut claims: Vec<Claim> = Vec::new();
    for sentence in
        between.iter().rev().flat_map(|turn| sentences(turn).collect::<Vec<_>>().into_iter().rev())
    {
        let given: Vec<String> = data(sentence).collect();
        let news = given.iter().any(|datum| !known.contains(datum));
        if !news || sentence.len() > LONGEST || sentence.ends_with('?') {
            continue;
        }
        known.extend(given);
        claims.push(Claim {
            value: Value { text: sentence.to_owned(), quoted: true },
            source: Some(Source::CustomerUtterance),
            evidence: Some(sentence.to_owned()),
            by: By::Derived,
            ..Claim::default()
        });
        if claims.len() == MOST {
            break;
        }
    }
    claims.reverse();
    claims
}

/// The words of a text that hold a digit, folded, without the marks around them.
fn data(text: &str) -> impl Iterator<Item = String> {
    text.split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|word| word.len() > 1 && word.bytes().any(|byte| byte.is_ascii_digit()))
        .map(|word| fold::fold(word).into_owned())
        .collect::<Vec<_>>()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::handoff::evidence::Happening;

    #[test]
    fn what_was_said_in_between_is_quoted_where_no_fact_holds_it() {
        let turns = [
            "I want to renew my loans.",
            "My card is lb_4410. It ends on 2 May! Is it 5 loans?",
            "I never got letter 88 of yours. Thanks",
            "Yes, both.",
        ];
        let evidence = Evidence::index(turns.map(Happening::Customer), true);
        let fact = Claim { of: Some("member lb_4410".to_owned()), ..Claim::default() };
        let quoted: Vec<String> =
            said(&evidence, &[fact]).into_iter().map(|claim| claim.value.text).collect();
        assert_eq!(quoted, ["I never got letter 88 of yours."]);
        let all: Vec<String> = said(&evidence, &[]).into_iter().map(|claim| claim.value.text).collect();
        assert_eq!(all, ["My card is lb_4410.", "I never got letter 88 of yours."]);
        assert!(said(&Evidence::index([Happening::Customer("one 11")], true), &[]).is_empty());
    }
}
