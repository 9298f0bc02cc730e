//! The check: a claim against the evidence, without a model.

mod check;
mod contest;
mod joined;
mod prose;
mod question;
mod quote;
mod resolve;
mod statement;
pub(crate) mod supersede;
mod tell;

use serde::{Deserialize, Serialize};

use question::Question;

use super::contract::{Claim, Source};
use super::evidence::Evidence;
use super::freshness::Freshness;
use crate::engine::time::Timestamp;

/// What a check found. Only [`Outcome::holds`] ones are rendered as established.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The cited call ran, and the value stands in its result under that key of that record.
    Verified,
    /// The same, written another way.
    Reformatted,
    /// No such id, and Seam saw the run from its first request.
    NoSuchCall,
    /// No such id, but Seam did not see the whole run; never a fault.
    Unseen,
    /// The call ran, its result has no such value.
    NotFound,
    /// The value stands there, under another key or another record.
    Misattributed,
    /// True, but by another call than the cited one.
    Elsewhere,
    /// A later result for the same record and key says otherwise.
    Superseded,
    /// A later customer turn corrects it, or results for one call differ.
    Contested,
    /// Several calls or records fit and disagree.
    Ambiguous,
    /// A customer's message has it.
    Quoted,
    /// No customer's message has it.
    NotQuoted,
    /// An inference, or nothing to check against.
    Uncheckable,
}

impl Outcome {
    /// All of them.
    pub const ALL: &'static [Outcome] = &[
        Outcome::Verified,
        Outcome::Reformatted,
        Outcome::NoSuchCall,
        Outcome::Unseen,
        Outcome::NotFound,
        Outcome::Misattributed,
        Outcome::Elsewhere,
        Outcome::Superseded,
        Outcome::Contested,
        Outcome::Ambiguous,
        Outcome::Quoted,
        Outcome::NotQuoted,
        Outcome::Uncheckable,
    ];

    /// The name in records, docs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Verified => "verified",
            Outcome::Reformatted => "reformatted",
            Outcome::NoSuchCall => "no_such_call",
            Outcome::Unseen => "unseen",
            Outcome::NotFound => "not_found",
            Outcome::Misattributed => "misattributed",
            Outcome::Elsewhere => "elsewhere",
            Outcome::Superseded => "superseded",
            Outcome::Contested => "contested",
            Outcome::Ambiguous => "ambiguous",
            Outcome::Quoted => "quoted",
            Outcome::NotQuoted => "not_quoted",
            Outcome::Uncheckable => "uncheckable",
        }
    }

    /// Whether the run bears the claim out.
    pub fn holds(self) -> bool {
        matches!(self, Outcome::Verified | Outcome::Reformatted | Outcome::Quoted)
    }
}

/// What age says about a fact, judged once, at the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Age {
    /// No rule, or immutable: it does not age.
    Ageless,
    /// It has a rule and is within it; it changes quickly.
    Fresh,
    /// It has a rule and is past it, or nobody knows when it was seen.
    Stale,
}

impl Age {
    /// All of them.
    pub const ALL: &'static [Age] = &[Age::Ageless, Age::Fresh, Age::Stale];

    /// The name in records, docs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Age::Ageless => "ageless",
            Age::Fresh => "fresh",
            Age::Stale => "stale",
        }
    }
}

/// A claim with what the check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What was claimed.
    #[serde(flatten)]
    pub claim: Claim,
    /// What the check found.
    pub outcome: Outcome,
    /// Why, in a few words that name calls, keys and records; no more than 300 bytes.
    pub why: String,
    /// The call that bears it (or, for `elsewhere` and `superseded`, the other call): its id.
    pub call: Option<String>,
    /// That call's tool.
    pub tool: Option<String>,
    /// When the result was first seen, where that can be known.
    pub as_of: Option<Timestamp>,
    /// What age says.
    pub age: Age,
    /// The customer's words that contest it, bounded.
    pub contested_by: Vec<String>,
    /// A tool is cited for what only the customer said.
    #[serde(default)]
    pub customer_only: bool,
}

/// Checks claims against the evidence and judges their age at `now`.
pub fn verify(claims: Vec<Claim>, evidence: &Evidence, freshness: &Freshness, now: Timestamp) -> Vec<Fact> {
    claims.into_iter().map(|claim| fact(claim, evidence, freshness, now)).collect()
}

fn fact(claim: Claim, evidence: &Evidence, freshness: &Freshness, now: Timestamp) -> Fact {
    let (verdict, turn) = check(&claim, evidence);
    let seen = verdict.call.map(|call| evidence.seen(call));
    let as_of = seen.and_then(|seen| seen.as_of);
    let mut fact = Fact {
        outcome: verdict.outcome,
        why: verdict.why,
        call: seen.map(|seen| seen.id.to_string()),
        tool: seen.map(|seen| seen.name().to_string()),
        as_of,
        age: if verdict.call.is_some() { freshness.judge(&claim, as_of, now) } else { Age::Ageless },
        contested_by: Vec::new(),
        customer_only: false,
        claim,
    };
    if fact.outcome.holds() {
        contest(&mut fact, verdict.place, turn, evidence);
    } else {
        only_customer(&mut fact, evidence);
    }
    fact.why = tell::bounded(fact.why);
    fact
}

/// Checks a claim by where it is said to come from. The number is the customer's turn that has it.
fn check(claim: &Claim, evidence: &Evidence) -> (check::Verdict, Option<u32>) {
    match claim.source {
        Some(Source::AgentInference) => {
            (check::Verdict::new(Outcome::Uncheckable, "the sender's own conclusion", None), None)
        }
        Some(Source::CustomerUtterance) => quote::check(claim, evidence),
        Some(Source::ToolResult) | None => match Question::of(claim, evidence) {
            Some(question) => (check::keyed(claim, &question, evidence), None),
            None => (statement::check(claim, evidence), None),
        },
    }
}

/// Looks for later words of the customer that speak against a fact that holds.
fn contest(fact: &mut Fact, place: Option<supersede::Place>, turn: Option<u32>, evidence: &Evidence) {
    let established = match (place, turn) {
        (Some(place), _) => evidence.seen(place.call).place,
        (None, Some(turn)) => turn,
        (None, None) => return,
    };
    let standing = contest::Standing {
        key: fact.claim.key.as_deref(),
        value: &fact.claim.value.text,
        place: established,
        result: place,
    };
    let Some(against) = contest::against(&standing, evidence) else { return };
    let own = turn.and_then(|turn| evidence.customer_turns().find(|own| own.place == turn));
    fact.contested_by = own.into_iter().chain([against]).map(|turn| tell::words(&turn.text)).collect();
    fact.outcome = Outcome::Contested;
    fact.why = format!("the customer has since said \"{}\"; {}", tell::short(&against.text), fact.why);
}

/// Marks a fact for which a tool is cited and that only the customer has said.
fn only_customer(fact: &mut Fact, evidence: &Evidence) {
    let cites_tool = !matches!(fact.claim.source, Some(Source::CustomerUtterance | Source::AgentInference));
    let unborne = matches!(
        fact.outcome,
        Outcome::NotFound | Outcome::NoSuchCall | Outcome::Unseen | Outcome::Uncheckable
    );
    if !cites_tool || !unborne {
        return;
    }
    let value = &fact.claim.value.text;
    if quote::said_by_customer(evidence, value).is_some() && !evidence.results_mention(value) {
        fact.customer_only = true;
        fact.why = format!("only the customer said so; {}", fact.why);
    }
}

#[cfg(test)]
mod tests;
