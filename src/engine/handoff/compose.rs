//! A handoff from what the sender said and what the run shows: read, judged,
//! topped up, verified.

use super::contract::{self, Claim, Handoff, Line};
use super::evidence::Evidence;
use super::verify::{Age, Fact, Outcome, verify};
use crate::engine::custody::log::Log;
use crate::engine::event::{Code, Finding};
use crate::engine::policy::Policy;
use crate::engine::record::{Action, Origin, Record};
use crate::engine::time::Timestamp;

/// Bytes kept of one piece of parting words.
const PARTING_CAP: usize = 1000;

/// What a handoff is composed from.
#[derive(Clone, Copy)]
pub struct Said<'a> {
    /// The transfer call's arguments.
    pub arguments: &'a str,
    /// What the run shows.
    pub log: &'a Log,
    /// Whether the log is the whole run.
    pub whole: bool,
    /// The record by which the sender held the run; its facts are carried.
    pub carried: Option<&'a Record>,
    /// The operator's choices.
    pub policy: &'a Policy,
    /// When the transfer was seen.
    pub now: Timestamp,
}

/// A composed handoff.
#[derive(Debug)]
pub struct Composed {
    /// Where it came from.
    pub origin: Origin,
    /// What was said and derived, without its facts.
    pub handoff: Handoff,
    /// The facts, checked.
    pub facts: Vec<Fact>,
    /// The run's own calls.
    pub actions_taken: Vec<Action>,
    /// What the checks found.
    pub findings: Vec<Finding>,
}

/// Composes a handoff.
pub fn compose(said: &Said<'_>) -> Composed {
    let contract::Read { handoff, mut findings } = contract::read(said.arguments);
    let (origin, mut handoff) = match handoff {
        Some(handoff) => {
            findings.extend(contract::judge(&handoff));
            (Origin::Declared, handoff)
        }
        None => (Origin::Derived, Handoff::default()),
    };
    let evidence = Evidence::index(said.log.happenings(), said.whole);
    let actions_taken = Vec::new();
    let claims: Vec<Claim> = handoff.established.take().unwrap_or_default();
    let facts = verify(claims, &evidence, &said.policy.freshness, said.now);
    findings.extend(facts.iter().filter_map(finding));
    Composed { origin, handoff, facts, actions_taken, findings }
}

/// What is to be reported of a fact.
fn finding(fact: &Fact) -> Option<Finding> {
    let place = fact.claim.key.as_deref().unwrap_or("statement");
    let place: String = place.chars().take(80).collect();
    match fact.outcome {
        // An inference is nobody's fault, and what Seam did not see it cannot judge.
        Outcome::Unseen | Outcome::Uncheckable => None,
        outcome if !outcome.holds() => {
            Some(Finding::new(Code::FactNotConfirmed, place, format!("{}: {}", outcome.name(), fact.why)))
        }
        _ if fact.age == Age::Stale => Some(Finding::new(
            Code::FactStale,
            place,
            "older than its freshness rule allows, or of unknown age",
        )),
        _ => None,
    }
}

/// A text as parting words; nothing where it says nothing.
pub fn parting(text: &str) -> Option<Line> {
    let text = text.trim();
    (!text.is_empty()).then(|| Line {
        text: text[..text.floor_char_boundary(PARTING_CAP)].to_owned(),
        by: contract::By::Derived,
    })
}
