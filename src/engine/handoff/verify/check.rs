//! One claim against the run: which call is cited, what its result says under
//! the claim's key, and what the run has said since.

use super::question::Question;
use super::resolve::{self, Resolved};
use super::supersede::{self, Place};
use super::{Outcome, prose, tell};
use crate::engine::handoff::contract::Claim;
use crate::engine::handoff::evidence::{Evidence, Kind, LARGE};
use crate::engine::handoff::value::{Match, Sought};

/// What the check of one claim found.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) outcome: Outcome,
    pub(super) why: String,
    /// The value that bears the claim, or that speaks against it.
    pub(super) place: Option<Place>,
    /// The call that bears it, or that speaks against it.
    pub(super) call: Option<u32>,
}

impl Verdict {
    pub(super) fn new(outcome: Outcome, why: impl Into<String>, call: Option<u32>) -> Verdict {
        Verdict { outcome, why: why.into(), place: None, call }
    }

    fn at(mut self, place: Place) -> Verdict {
        self.place = Some(place);
        self.call = Some(place.call);
        self
    }
}

/// At most this many calls with one id are looked at.
const SAME_ID: usize = 256;
/// At most this many values of other calls are looked at for one claim.
const ELSEWHERE: usize = 64;

/// Checks a claim with a key that cites the result of a call.
pub(super) fn keyed(claim: &Claim, question: &Question, evidence: &Evidence) -> Verdict {
    let sought = Sought::new(&claim.value.text, claim.value.quoted);
    let cited = match &claim.evidence {
        Some(text) if !text.trim().is_empty() => cited(evidence, text),
        _ => return uncited(question, &sought, evidence),
    };
    if cited.is_empty() {
        return no_such_call(claim, question, &sought, evidence);
    }
    let mut findings: Vec<Found> =
        cited.iter().map(|call| look(question, &sought, evidence, *call)).collect();
    findings.sort_by_key(Found::order);
    match findings.into_iter().next() {
        Some(Found::Borne(place, found)) => borne(claim, evidence, place, found, cited.len()),
        Some(Found::Old(place, newer)) => superseded(evidence, place, newer),
        Some(other) => unborne(question, &sought, evidence, &cited, &other),
        None => Verdict::new(Outcome::NotFound, "no result", None),
    }
}

/// What one call's result has to say about a claim, the best first.
enum Found {
    /// It bears the claim, and nothing later says otherwise.
    Borne(Place, Match),
    /// It bears the claim, and a later result says otherwise.
    Old(Place, Place),
    /// Several values fit a key that is named in part, one of them the claimed one.
    Several(Place),
    /// Under that key of that record stands another value.
    Otherwise(Place),
    /// The key is there, not for that record.
    OtherRecord,
    /// The key is not there.
    NoKey,
}

impl Found {
    fn order(&self) -> u8 {
        match self {
            Found::Borne(..) => 0,
            Found::Old(..) => 1,
            Found::Several(..) => 2,
            Found::Otherwise(..) => 3,
            Found::OtherRecord => 4,
            Found::NoKey => 5,
        }
    }
}

/// The calls that a text cites, the newest first: one id, or several with something between them.
pub(super) fn cited(evidence: &Evidence, text: &str) -> Vec<u32> {
    let text = text.trim();
    let whole: Vec<u32> = evidence.with_id(text).take(SAME_ID).collect();
    if !whole.is_empty() {
        return whole;
    }
    let mut found: Vec<u32> = text
        .split(|c: char| {
            c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '"' | '\'' | '`' | '[' | ']' | '=')
        })
        .filter(|part| part.len() > 2)
        .flat_map(|part| evidence.with_id(part.trim_end_matches(['.', ':'])).take(SAME_ID))
        .take(SAME_ID)
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.dedup();
    found
}

/// Looks a claim up in one call's result.
fn look(question: &Question, sought: &Sought<'_>, evidence: &Evidence, call: u32) -> Found {
    let seen = evidence.seen(call);
    match resolve::resolve(question, evidence, call) {
        Resolved::Fits(fits) => {
            let mut values = fits.iter().filter_map(|fit| {
                let found = sought
                    .matches(&seen.result, fit.node, &evidence.keys)
                    .or_else(|| super::joined::matches(sought, evidence, call, fit.node))
                    .or_else(|| element(sought, evidence, call, fit.node))?;
                Some((*fit, found))
            });
            let Some((fit, found)) = values.next() else {
                return Found::Otherwise(Place { call, node: fits[0].node });
            };
            let place = Place { call, node: fit.node };
            if fit.partly && fits.len() > 1 && !agree(evidence, call, &fits) {
                return Found::Several(place);
            }
            match supersede::later(evidence, call, fit.node) {
                Some(newer) => Found::Old(place, newer),
                None => Found::Borne(place, found),
            }
        }
        Resolved::OtherRecord => Found::OtherRecord,
        Resolved::NoKey => match prose::look(question, sought, evidence, call) {
            Some((node, found)) => {
                let place = Place { call, node };
                match supersede::later(evidence, call, node) {
                    Some(newer) => Found::Old(place, newer),
                    None => Found::Borne(place, found),
                }
            }
            None => Found::NoKey,
        },
    }
}

/// Whether the value is one of a list's: what is one of the `orders` is said under that key.
fn element(sought: &Sought<'_>, evidence: &Evidence, call: u32, list: u32) -> Option<Match> {
    let result = &evidence.seen(call).result;
    if result.node(list).kind != Kind::Array {
        return None;
    }
    result
        .children(list)
        .filter(|child| result.is_leaf(*child))
        .find_map(|child| sought.matches(result, child, &evidence.keys))
}

fn agree(evidence: &Evidence, call: u32, fits: &[resolve::Fit]) -> bool {
    let result = &evidence.seen(call).result;
    fits.iter().all(|fit| result.raw(fit.node) == result.raw(fits[0].node))
}

fn borne(claim: &Claim, evidence: &Evidence, place: Place, found: Match, same_id: usize) -> Verdict {
    let outcome = match found {
        Match::Exact => Outcome::Verified,
        Match::Rewritten => Outcome::Reformatted,
    };
    let mut why = format!("{} has {}", tell::call(evidence, place.call), tell::value(evidence, place));
    if same_id > 1 {
        let id = tell::short(claim.evidence.as_deref().unwrap_or(""));
        why = format!("{why}; {same_id} calls bear the id {id}");
    }
    Verdict::new(outcome, why, None).at(place)
}

fn superseded(evidence: &Evidence, place: Place, newer: Place) -> Verdict {
    let (old, new) = (evidence.seen(place.call), evidence.seen(newer.call));
    if (&old.id, old.name(), old.arguments_text()) == (&new.id, new.name(), new.arguments_text()) {
        let why = format!(
            "{} was seen with two results: {} and {}",
            tell::call(evidence, place.call),
            tell::value(evidence, place),
            tell::value(evidence, newer)
        );
        return Verdict::new(Outcome::Contested, why, None).at(newer);
    }
    let why = format!(
        "{} said so; {} has since said {}",
        tell::call(evidence, place.call),
        tell::call(evidence, newer.call),
        tell::value(evidence, newer)
    );
    Verdict::new(Outcome::Superseded, why, None).at(newer)
}

/// No cited call bears the claim: another one does, or the value stands elsewhere in what is cited.
fn unborne(
    question: &Question,
    sought: &Sought<'_>,
    evidence: &Evidence,
    cited: &[u32],
    found: &Found,
) -> Verdict {
    if let Found::Several(place) = found {
        let why = format!("several values of {} fit the key and differ", tell::call(evidence, place.call));
        return Verdict::new(Outcome::Ambiguous, why, None).at(*place);
    }
    if let Some(place) = elsewhere(question, sought, evidence, cited) {
        let there = cited.iter().any(|call| stands(sought, evidence, *call).is_some());
        let also = if there { "; the cited call has the value for something else" } else { "" };
        let why = format!("{} has {}{also}", tell::call(evidence, place.call), tell::value(evidence, place));
        return Verdict::new(Outcome::Elsewhere, why, None).at(place);
    }
    let stands = cited.iter().find_map(|call| Some((*call, stands(sought, evidence, *call)?)));
    let has = match found {
        Found::Otherwise(place) => {
            format!("; {} has {}", tell::call(evidence, place.call), tell::value(evidence, *place))
        }
        _ => String::new(),
    };
    if let Some((call, node)) = stands {
        let place = Place { call, node };
        let why = format!("the value is {} there{has}", tell::place(evidence, place));
        return Verdict::new(Outcome::Misattributed, why, None).at(place);
    }
    let why = match found {
        Found::Otherwise(place) => {
            format!("{} has {}", tell::call(evidence, place.call), tell::value(evidence, *place))
        }
        _ => format!("{} has no such value", tell::call(evidence, cited[0])),
    };
    Verdict::new(Outcome::NotFound, why, Some(cited[0]))
}

fn no_such_call(claim: &Claim, question: &Question, sought: &Sought<'_>, evidence: &Evidence) -> Verdict {
    let id = tell::short(claim.evidence.as_deref().unwrap_or(""));
    let also = elsewhere(question, sought, evidence, &[])
        .map(|place| format!("; {} has the value", tell::call(evidence, place.call)))
        .unwrap_or_default();
    if evidence.is_whole() {
        Verdict::new(Outcome::NoSuchCall, format!("no call of the run has the id {id}{also}"), None)
    } else {
        Verdict::new(Outcome::Unseen, format!("no call that was seen has the id {id}{also}"), None)
    }
}

/// A claim that cites nothing holds if some call bears it.
fn uncited(question: &Question, sought: &Sought<'_>, evidence: &Evidence) -> Verdict {
    match elsewhere(question, sought, evidence, &[]) {
        Some(place) => {
            let exact = evidence.seen(place.call).result.value(place.node) == sought.text();
            let outcome = if exact { Outcome::Verified } else { Outcome::Reformatted };
            let why = format!(
                "no call is cited; {} has {}",
                tell::call(evidence, place.call),
                tell::value(evidence, place)
            );
            Verdict::new(outcome, why, None).at(place)
        }
        None => Verdict::new(Outcome::Uncheckable, "no call is cited, and none is found that bears it", None),
    }
}

/// A value of another call that bears the claim and that nothing later contradicts.
fn elsewhere(question: &Question, sought: &Sought<'_>, evidence: &Evidence, cited: &[u32]) -> Option<Place> {
    let mut calls: Vec<u32> = Vec::new();
    for (_, hash) in &question.names {
        calls.extend(evidence.records_named(*hash).take(ELSEWHERE).map(|posting| posting.call));
    }
    if question.names.is_empty() {
        calls.extend((0..evidence.calls().len() as u32).rev().take(ELSEWHERE));
    }
    calls.sort_unstable_by(|a, b| b.cmp(a));
    calls.dedup();
    calls.retain(|call| !cited.contains(call));
    calls.into_iter().take(ELSEWHERE).find_map(|call| match look(question, sought, evidence, call) {
        Found::Borne(place, _) => Some(place),
        _ => None,
    })
}

/// Where in a call's result the value stands, under whatever key.
fn stands(sought: &Sought<'_>, evidence: &Evidence, call: u32) -> Option<u32> {
    let result = &evidence.seen(call).result;
    if sought.text().is_empty() {
        return None;
    }
    let is_it = |node: &u32| {
        let value = result.is_leaf(*node) || result.node(*node).kind == Kind::Array;
        value && sought.matches(result, *node, &evidence.keys).is_some()
    };
    let read = (0..result.nodes.len().min(LARGE) as u32).find(is_it);
    // What is written quite another way is found only in what is read through.
    let looked_up = || result.lookup()?.like(sought.sketch()).take(LARGE).find(is_it);
    read.or_else(looked_up).or_else(|| prose::mentions(sought, evidence, call))
}
