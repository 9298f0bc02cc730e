//! The check: a claim against the evidence, without a model.

mod check;
mod joined;
mod prose;
mod question;
mod resolve;
pub(crate) mod supersede;
mod tell;

use serde::{Deserialize, Serialize};

use question::Question;

use super::contract::Claim;
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

fn fact(claim: Claim, evidence: &Evidence, _freshness: &Freshness, _now: Timestamp) -> Fact {
    let verdict = match Question::of(&claim, evidence) {
        Some(question) => check::keyed(&claim, &question, evidence),
        None => check::Verdict::new(Outcome::Uncheckable, "", None),
    };
    let seen = verdict.call.map(|call| evidence.seen(call));
    Fact {
        outcome: verdict.outcome,
        why: tell::bounded(verdict.why),
        call: seen.map(|seen| seen.id.to_string()),
        tool: seen.map(|seen| seen.name.to_string()),
        as_of: seen.and_then(|seen| seen.as_of),
        age: Age::Ageless,
        contested_by: Vec::new(),
        customer_only: false,
        claim,
    }
}
