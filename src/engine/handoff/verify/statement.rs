//! Statements: facts without a key. Their numbers, dates and identifiers are
//! what can be checked, one by one.

use super::check::{Verdict, cited};
use super::supersede::{self, Place};
use super::{Outcome, prose, tell};
use crate::engine::handoff::contract::Claim;
use crate::engine::handoff::evidence::{Evidence, Kind};
use crate::engine::handoff::value::fold;
use crate::engine::handoff::value::moment::Moment;
use crate::engine::handoff::value::{Match, Sought};

/// At most this many details of one statement are checked.
const DETAILS: usize = 32;
/// At most this many calls are searched where none is cited, the newest first.
const CALLS: usize = 256;
/// At most this many values are looked at for one statement.
const VALUES: usize = 50_000;

/// Checks a statement's details.
pub(super) fn check(claim: &Claim, evidence: &Evidence) -> Verdict {
    let details = details(&claim.value.text);
    if details.is_empty() {
        return Verdict::new(Outcome::Uncheckable, "a statement without a number, date or identifier", None);
    }
    let text = claim.evidence.as_deref().map_or("", str::trim);
    let calls = cited(evidence, text);
    if calls.is_empty() && looks_like_id(text) {
        let outcome = if evidence.is_whole() { Outcome::NoSuchCall } else { Outcome::Unseen };
        return Verdict::new(outcome, format!("no call has the id {}", tell::short(text)), None);
    }
    let is_cited = !calls.is_empty();
    let all: Vec<u32> = (0..evidence.calls().len() as u32).rev().take(CALLS).collect();
    let own = search(&details, evidence, if is_cited { &calls } else { &all });
    let Some(missing) = own.iter().position(Option::is_none) else {
        return found(&details, &own, evidence, is_cited);
    };
    let detail = tell::short(&details[missing]);
    if is_cited {
        let others: Vec<Option<Found>> = search(&details[missing..=missing], evidence, &all);
        if let Some(Some(other)) = others.first() {
            let why = format!("\"{detail}\" stands in {}", tell::call(evidence, other.place.call));
            return Verdict::new(Outcome::Elsewhere, why, Some(other.place.call));
        }
        let why = format!("{} has no \"{detail}\"", tell::call(evidence, calls[0]));
        return Verdict::new(Outcome::NotFound, why, Some(calls[0]));
    }
    Verdict::new(Outcome::Uncheckable, format!("no call is cited, and no result has \"{detail}\""), None)
}

/// Where one detail was found.
#[derive(Clone, Copy)]
struct Found {
    place: Place,
    how: Match,
}

fn found(details: &[String], places: &[Option<Found>], evidence: &Evidence, is_cited: bool) -> Verdict {
    let places: Vec<Found> = places.iter().flatten().copied().collect();
    let first = places[0].place.call;
    for (detail, found) in details.iter().zip(&places) {
        if let Some(newer) = supersede::later(evidence, found.place.call, found.place.node) {
            let why = format!(
                "\"{}\" was so; {} has since said {}",
                tell::short(detail),
                tell::call(evidence, newer.call),
                tell::value(evidence, newer)
            );
            return Verdict::new(Outcome::Superseded, why, Some(newer.call));
        }
    }
    if let Some(apart) = apart(details, &places, evidence) {
        let place = apart.place;
        let why = format!("{} there is {}", tell::value(evidence, place), tell::place(evidence, place));
        return Verdict::new(Outcome::Misattributed, why, Some(place.call));
    }
    let exact = places.iter().all(|found| found.how == Match::Exact);
    let outcome = if exact { Outcome::Verified } else { Outcome::Reformatted };
    let cited = if is_cited { "" } else { "no call is cited; " };
    let why = format!("{cited}{} has {}", tell::call(evidence, first), details.join(", "));
    Verdict::new(outcome, why, Some(first))
}

/// A value that belongs to another record than those that the statement names.
fn apart(details: &[String], places: &[Found], evidence: &Evidence) -> Option<Found> {
    let hashes: Vec<u64> = details.iter().map(|detail| fold::hash_of(detail)).collect();
    let named: Vec<u64> = hashes.iter().copied().filter(|hash| evidence.is_name(*hash)).collect();
    if named.is_empty() {
        return None;
    }
    places.iter().zip(&hashes).filter(|(_, hash)| !named.contains(hash)).map(|(found, _)| *found).find(
        |found| {
            let seen = evidence.seen(found.place.call);
            let record = seen.records.of(found.place.node);
            let bears =
                |name: u64| seen.records.chain(record).any(|record| seen.records.has_name(record, name));
            // Only where the result itself tells of the named records can a value be another record's.
            let told = named.iter().any(|name| seen.records.named(*name).next().is_some());
            told && !named.iter().any(|name| bears(*name))
        },
    )
}

/// The place of each detail in these calls' results: a value of its own, or a part of sentences.
fn search(details: &[String], evidence: &Evidence, calls: &[u32]) -> Vec<Option<Found>> {
    let sought: Vec<Sought<'_>> = details.iter().map(|detail| Sought::of_text(detail)).collect();
    let hashes = details.iter().map(|detail| fold::hash_of(detail));
    let named: Vec<u64> = hashes.filter(|hash| evidence.is_name(*hash)).collect();
    let mut found: Vec<Option<Found>> = vec![None; details.len()];
    let mut close: Vec<bool> = vec![false; details.len()];
    let mut looked = 0;
    for &call in calls {
        let seen = evidence.seen(call);
        let result = &seen.result;
        for node in 0..result.nodes.len() as u32 {
            let at = result.node(node);
            let prose = at.kind == Kind::Prose || (at.kind == Kind::Text && at.len > 24);
            if !result.is_leaf(node) && !prose {
                continue;
            }
            looked += 1;
            if looked > VALUES {
                return found;
            }
            for (index, sought) in sought.iter().enumerate() {
                if close[index] {
                    continue;
                }
                let how = sought.matches(result, node, &evidence.keys).or_else(|| {
                    (prose && !prose::occurrences(&result.value(node), sought).is_empty())
                        .then_some(Match::Exact)
                });
                if let Some(how) = how {
                    // The value of a record that the statement names is the one that is meant.
                    let near = seen
                        .records
                        .chain(seen.records.of(node))
                        .any(|record| named.iter().any(|name| seen.records.has_name(record, *name)));
                    close[index] = near || named.is_empty();
                    if found[index].is_none() || near {
                        found[index] = Some(Found { place: Place { call, node }, how });
                    }
                }
            }
        }
        for (index, sought) in sought.iter().enumerate() {
            // An identifier may stand in the call alone.
            if found[index].is_none() && in_arguments(sought, evidence, call) {
                found[index] = Some(Found { place: Place { call, node: 0 }, how: Match::Exact });
            }
        }
        if found.iter().all(Option::is_some) && (named.is_empty() || close.iter().all(|close| *close)) {
            break;
        }
    }
    found
}

fn in_arguments(sought: &Sought<'_>, evidence: &Evidence, call: u32) -> bool {
    let arguments = &evidence.seen(call).arguments;
    (1..arguments.nodes.len().min(64) as u32)
        .any(|node| arguments.is_leaf(node) && sought.matches(arguments, node, &evidence.keys).is_some())
}

fn looks_like_id(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace) && text.bytes().any(|b| b.is_ascii_digit())
}

/// The numbers, dates and identifiers of a text, each as written.
pub(super) fn details(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let tokens: Vec<&str> = text.split_whitespace().take(2_000).collect();
    let mut at = 0;
    while at < tokens.len() && found.len() < DETAILS {
        let mut taken = 1;
        // A date may take several words: `3 February 2031`, `at 5:30 pm`.
        let longest = (1..=5.min(tokens.len() - at)).rev().find(|len| {
            let window = bare(&tokens[at..at + len].join(" ")).to_owned();
            let digits = window.bytes().any(|b| b.is_ascii_digit());
            let starts = tokens[at].bytes().any(|b| b.is_ascii_alphanumeric());
            digits && starts && *len > 1 && !Moment::read(&fold::fold(&window)).is_empty()
        });
        if let Some(len) = longest {
            found.push(bare(&tokens[at..at + len].join(" ")).to_owned());
            taken = len;
        } else if is_detail(bare(tokens[at])) {
            found.push(bare(tokens[at]).to_owned());
        }
        at += taken;
    }
    found.dedup();
    found
}

/// A token without the punctuation of its sentence.
fn bare(token: &str) -> &str {
    token.trim_matches(['.', ',', ';', ':', '!', '?', '"', '\'', '(', ')', '[', ']', '“', '”', '’', '*', '`'])
}

/// Whether a token says something that can be looked up: it has a digit, or is an address.
fn is_detail(token: &str) -> bool {
    let digits = token.bytes().any(|b| b.is_ascii_digit());
    let address = token.contains('@') || token.contains("://");
    let constant = token.len() > 3 && token.contains('_');
    digits || address || constant
}

#[cfg(test)]
mod tests {
    use super::details;

    #[test]
    fn details_are_what_can_be_looked_up() {
        let text = "Loan L-7 (of ada@library.example) is due on 3 February 2031; fine: €4.50, shelf open_stack at 5:30 pm.";
        let expected = ["L-7", "ada@library.example", "3 February 2031", "€4.50", "open_stack", "5:30 pm"];
        assert_eq!(details(text), expected);
        assert!(details("The customer is calm and wants a call.").is_empty());
    }
}
