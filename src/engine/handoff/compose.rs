//! A handoff from what the sender said and what the run shows: read, judged
//! and verified when the transfer is seen; made whole by rules when the
//! receiver takes it up, since only then its tools are known.

use memchr::memmem;

use super::contract::{self, By, Claim, Constraint, Handoff, Line, Scope, StatedBy, plain, same};
use super::derive::{self, Room, Wants};
use super::evidence::Evidence;
use super::transcript::Form;
use super::verify::{Age, Fact, Outcome, verify};
use crate::engine::custody::ledger::{Ledger, is_same_key};
use crate::engine::custody::log::Log;
use crate::engine::event::{Code, Finding};
use crate::engine::policy::{Contract, Policy};
use crate::engine::record::{Origin, Record};
use crate::engine::time::Timestamp;
use crate::engine::view::View;

/// Bytes kept of one piece of parting words.
const PARTING_CAP: usize = 1000;

/// Who asked a sender for a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// Nobody; it may have said one all the same.
    Nobody,
    /// The client's own tool.
    Client,
    /// Seam.
    Seam,
}

/// What a sender said, checked.
#[derive(Debug)]
pub struct Composed {
    /// Where the handoff came from.
    pub origin: Origin,
    /// What was said, without its facts.
    pub handoff: Handoff,
    /// The facts that were claimed, checked.
    pub facts: Vec<Fact>,
    /// What the checks found.
    pub findings: Vec<Finding>,
}

/// Reads, judges and verifies what a sender said in its transfer call. `whole`: the log is the whole run;
/// `shown`: what the sender had before it, as it was written.
pub fn compose(
    said: &str,
    asking: Asking,
    log: &Log,
    whole: bool,
    shown: &[u8],
    policy: &Policy,
    now: Timestamp,
) -> Composed {
    let contract::Read { handoff, mut findings } = contract::read(said);
    let mut handoff = handoff.unwrap_or_default();
    // A reason or a message beside a destination is no contract, and is not judged as one.
    let origin = match asking {
        _ if !handoff.is_contract() => Origin::Derived,
        Asking::Seam => Origin::Injected,
        Asking::Client | Asking::Nobody => Origin::Declared,
    };
    // Who was asked and said nothing is judged for that.
    if origin != Origin::Derived || asking != Asking::Nobody {
        findings.extend(contract::judge(&handoff));
    }
    bind(&mut handoff, log, &policy.rules);
    // What stays behind is an empty list where the sender said *none*.
    let claims = handoff.established.as_mut().map(std::mem::take).unwrap_or_default();
    let mut facts = if claims.is_empty() {
        Vec::new()
    } else {
        verify(claims, &Evidence::index(log.happenings(), whole), &policy.freshness, now)
    };
    for fact in &mut facts {
        pass_on(fact, shown);
    }
    findings.extend(facts.iter().filter_map(finding));
    Composed { origin, handoff, facts, findings }
}

/// Who cites what it was told did not make it up: a client may pass on, in a text, what ran elsewhere.
fn pass_on(fact: &mut Fact, shown: &[u8]) {
    let cited = fact.claim.evidence.as_deref().map(str::trim).filter(|id| id.len() > 1);
    if fact.outcome == Outcome::NoSuchCall
        && cited.is_some_and(|id| memmem::find(shown, id.as_bytes()).is_some())
    {
        fact.outcome = Outcome::Unseen;
        fact.why.replace_range(.., "no call that was seen has this id; the request shows it in a text");
    }
}

/// A constraint binds where the customer is quoted with it, word for word, or the operator's rules have it.
fn bind(handoff: &mut Handoff, log: &Log, rules: &[String]) {
    for constraint in handoff.constraints.iter_mut().flatten() {
        let words = plain(&constraint.text);
        let quoted = || log.customer_turns().any(|turn| plain(turn).contains(&words));
        if rules.iter().any(|rule| same(rule, &constraint.text)) {
            constraint.stated_by = Some(StatedBy::Policy);
            constraint.binds = true;
        } else {
            constraint.binds =
                constraint.stated_by == Some(StatedBy::Customer) && !words.is_empty() && quoted();
        }
    }
}

/// Adds to a record what the run settled before, and the operator's own rules. Carried facts are checked
/// against what has happened since: what no longer holds is not carried.
pub fn carry(record: &mut Record, ledger: &Ledger, log: &Log, whole: bool, policy: &Policy) {
    ledger.carry(&mut record.handoff);
    for rule in &policy.rules {
        let constraints = record.handoff.constraints.get_or_insert_default();
        if !constraints.iter().any(|known| same(&known.text, rule)) {
            constraints.push(Constraint {
                text: rule.clone(),
                scope: Scope::Run,
                stated_by: Some(StatedBy::Policy),
                binds: true,
                by: By::Policy,
            });
        }
    }
    let unsaid =
        ledger.facts().iter().filter(|fact| !record.facts.iter().any(|said| is_same_key(said, fact)));
    let claims: Vec<Claim> = unsaid.map(|fact| Claim { by: By::Carried, ..fact.claim.clone() }).collect();
    if !claims.is_empty() {
        let evidence = Evidence::index(log.happenings(), whole);
        let facts = verify(claims, &evidence, &policy.freshness, record.at);
        record.facts.extend(facts.into_iter().filter(|fact| fact.outcome.holds()));
    }
}

/// What the receiver's first request shows of it.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// What its tools take.
    wants: Wants,
    /// Bytes of tool results in its list.
    results: usize,
}

impl Receiver {
    /// The receiver of this request.
    pub fn of(view: &View<'_>) -> Receiver {
        let results = view.items.iter().filter(|item| item.answers.is_some());
        Receiver { wants: Wants::of_tools(&view.tools), results: results.map(|item| item.text.len()).sum() }
    }
}

/// Adds to a record what rules can tell from the run: facts, what was done and tried, what the customer
/// forbade.
pub fn complete(record: &mut Record, log: &Log, whole: bool, receiver: &Receiver, policy: &Policy) {
    if policy.contract < Contract::Derive {
        return;
    }
    let evidence = Evidence::index(log.happenings(), whole);
    let mut derived = derive::facts(&evidence, &receiver.wants, room(&evidence, log, receiver, policy));
    if policy.transcript.form == Form::None {
        derived.extend(derive::said(&evidence, &derived));
    }
    let known = |claim: &Claim| {
        record.facts.iter().any(|fact| {
            fact.outcome.holds() && fact.claim.value.text == claim.value.text && fact.call == claim.evidence
        })
    };
    let claims: Vec<Claim> = derived.into_iter().filter(|claim| !known(claim)).collect();
    // What the rules cannot prove themselves is not told: nobody claimed it. Where several rows bear one name,
    // a value may hold of its call and not of that name.
    let (holding, failed): (Vec<Fact>, Vec<Fact>) = verify(claims, &evidence, &policy.freshness, record.at)
        .into_iter()
        .partition(|fact| fact.outcome.holds());
    record.facts.extend(holding);
    let claims = failed
        .into_iter()
        .filter(|fact| matches!(fact.outcome, Outcome::Misattributed | Outcome::Ambiguous))
        .map(|fact| Claim { of: None, ..fact.claim })
        .collect();
    let facts = verify(claims, &evidence, &policy.freshness, record.at);
    record.facts.extend(facts.into_iter().filter(|fact| fact.outcome.holds()));
    record.actions_taken = derive::actions(&evidence);
    let tried = derive::tried(&evidence);
    if !tried.is_empty() {
        record.handoff.tried.get_or_insert_default().extend(tried);
    }
    let constraints = &mut record.handoff.constraints;
    for text in derive::limits(log.customer_turns()) {
        if derive::is_lifted(text, log.customer_turns()) {
            continue;
        }
        if !constraints.iter().flatten().any(|known| same(&known.text, text)) {
            constraints.get_or_insert_default().push(Constraint {
                text: text.to_owned(),
                scope: Scope::Run,
                stated_by: Some(StatedBy::Customer),
                binds: true,
                by: By::Derived,
            });
        }
    }
}

/// How much may be derived: more where the results do not travel, because the policy leaves them out or
/// because the client has done so already.
fn room(evidence: &Evidence, log: &Log, receiver: &Receiver, policy: &Policy) -> Room {
    let results: usize = evidence.calls().iter().map(|call| call.result_text().len()).sum();
    match policy.transcript.form {
        Form::Window | Form::Full if receiver.results * 2 >= results => Room::beside_transcript(),
        _ => Room::instead_of(log.bytes()),
    }
}

/// What is to be reported of a fact.
fn finding(fact: &Fact) -> Option<Finding> {
    let place = fact.claim.key.as_deref().unwrap_or("statement");
    let place: String = place.chars().take(80).collect();
    match fact.outcome {
        // An inference is nobody's fault, and what Seam did not see it cannot judge.
        Outcome::Unseen | Outcome::Uncheckable => None,
        // The citation is put right, not its sender.
        Outcome::Elsewhere => Some(Finding::new(Code::FactCitedWrong, place, "true by another call")),
        outcome if !outcome.holds() => {
            // Why stands in the fact: it quotes values, and a finding is logged.
            Some(Finding::new(Code::FactNotConfirmed, place, outcome.name()))
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
    let text = &text[..text.floor_char_boundary(PARTING_CAP)];
    (!text.is_empty()).then(|| Line { text: text.to_owned(), by: By::Derived })
}
