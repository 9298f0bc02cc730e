//! The facts on the page: what is established, what the customer said, and
//! what is not confirmed.
//!
//! Facts that come from one call stand together under it, those of one record
//! in one line: provenance is named once, not once a fact.

use super::page::Page;
use super::table::{blocks, write_block};
use crate::engine::handoff::contract::{By, Confidence, Source};
use crate::engine::handoff::verify::{Age, Fact, Outcome};

/// Bytes of one value.
pub(super) const MAX_VALUE: usize = 500;
/// Bytes of one quote or explanation.
const MAX_NOTE: usize = 300;
/// Facts of one section.
const MAX_FACTS: usize = 200;
/// Bytes of one section; it ends after the fact that passes it.
const MAX_SECTION: usize = 24_000;

/// What the run bears out, each fact under the call that bears it. `asked`:
/// the sender was asked for facts.
pub(super) fn established(page: &mut Page, facts: &[Fact], asked: bool) {
    let holding: Vec<_> =
        facts.iter().filter(|fact| fact.outcome.holds() && fact.outcome != Outcome::Quoted).collect();
    page.say("Already established");
    if holding.is_empty() {
        page.say(match (facts.is_empty(), asked) {
            (false, _) => ": nothing that a tool's result bears out.\n",
            (true, true) => ": none, says the sender.\n",
            (true, false) => ": nothing.\n",
        });
        return;
    }
    let derived = holding.iter().all(|fact| fact.claim.by == By::Derived);
    page.say(" (do not ask for any of these");
    page.say(if derived { "; derived from tool results):\n" } else { "; checked against tool results):\n" });
    let start = page.len();
    let mut written = 0;
    'all: for group in groups(&holding[..holding.len().min(MAX_FACTS)]) {
        page.say("- ");
        provenance(page, group[0], derived);
        for (i, block) in blocks(&group).iter().enumerate() {
            page.say(if i == 0 { "" } else { "  " });
            written += write_block(page, block);
            note_age(page, block.first());
            page.say("\n");
            if page.len() - start > MAX_SECTION {
                break 'all;
            }
        }
    }
    left_out(page, holding.len() - written);
}

/// What the customer is quoted with.
pub(super) fn said(page: &mut Page, facts: &[Fact]) {
    let quoted: Vec<_> = facts.iter().filter(|fact| fact.outcome == Outcome::Quoted).collect();
    if quoted.is_empty() {
        return;
    }
    page.say("Said by the customer (do not ask again; no tool has checked it):\n");
    each(page, &quoted, |page, fact| {
        fact_itself(page, fact, "=");
        flags(page, fact);
        if let Some(words) = fact.claim.evidence.as_deref().filter(|words| *words != fact.claim.value.text) {
            page.say(", words: ").quote(words, MAX_NOTE);
        }
    });
}

/// What the run does not bear out, each with what is known against it.
pub(super) fn not_confirmed(page: &mut Page, facts: &[Fact]) {
    let open: Vec<_> = facts.iter().filter(|fact| !fact.outcome.holds()).collect();
    if open.is_empty() {
        return;
    }
    page.say("Not confirmed (check before you rely on any of these):\n");
    each(page, &open, |page, fact| {
        fact_itself(page, fact, "=");
        flags(page, fact);
        page.say(": ").say(objection(fact));
        if let Some(cited) = &fact.claim.evidence {
            page.say(", cited: ");
            cite(page, cited);
        }
        if fact.call.is_some() || fact.tool.is_some() {
            page.say(", see ");
            call(page, fact);
        }
        if !fact.why.is_empty() {
            page.say(", why: ").quote(&fact.why, MAX_NOTE);
        }
        for (i, words) in fact.contested_by.iter().enumerate() {
            page.say(if i == 0 { ", the customer: " } else { ", " }).quote(words, MAX_NOTE);
        }
    });
}

fn each(page: &mut Page, facts: &[&Fact], write: impl Fn(&mut Page, &Fact)) {
    let start = page.len();
    let mut written = 0;
    for fact in facts.iter().take(MAX_FACTS) {
        page.say("- ");
        write(page, fact);
        page.say("\n");
        written += 1;
        if page.len() - start > MAX_SECTION {
            break;
        }
    }
    left_out(page, facts.len() - written);
}

fn left_out(page: &mut Page, facts: usize) {
    if facts > 0 {
        page.say("- ").number(facts as u64).say(" more were left out here.\n");
    }
}

/// Facts that share a head: who put them in, and the call.
fn groups<'f>(facts: &[&'f Fact]) -> Vec<Vec<&'f Fact>> {
    gathered(facts, |a, b| a.claim.by == b.claim.by && (&a.call, &a.tool) == (&b.call, &b.tool))
}

/// Whether age says the same of two facts.
pub(super) fn same_age(a: &Fact, b: &Fact) -> bool {
    a.age == b.age && (a.age != Age::Stale || a.as_of == b.as_of)
}

/// Facts that are alike, together. The sender's keep their order: they are
/// gathered only where they stand side by side.
pub(super) fn gathered<'f>(facts: &[&'f Fact], alike: impl Fn(&Fact, &Fact) -> bool) -> Vec<Vec<&'f Fact>> {
    let mut all: Vec<Vec<&Fact>> = Vec::new();
    for fact in facts {
        let first = if fact.claim.by == By::Sender { all.len().saturating_sub(1) } else { 0 };
        match all[first..].iter_mut().find(|group| alike(group[0], fact)) {
            Some(group) => group.push(fact),
            None => all.push(vec![fact]),
        }
    }
    all
}

/// `[get_order call_7f31, carried] `
fn provenance(page: &mut Page, fact: &Fact, all_derived: bool) {
    let mark = match fact.claim.by {
        By::Derived if all_derived => "",
        by => mark(by),
    };
    if fact.call.is_none() && fact.tool.is_none() && mark.is_empty() {
        return;
    }
    page.say("[");
    call(page, fact);
    page.say(mark).say("] ");
}

/// Who put something in, where it was not the sender.
fn mark(by: By) -> &'static str {
    match by {
        By::Sender => "",
        By::Derived => ", derived",
        By::Carried => ", carried over",
        By::Policy => ", policy",
    }
}

fn call(page: &mut Page, fact: &Fact) {
    if let Some(tool) = &fact.tool {
        page.name(tool);
    }
    if let Some(id) = fact.call.as_deref().filter(|id| !id.is_empty()) {
        page.say(if fact.tool.is_some() { " " } else { "" }).name(id);
    }
}

/// A citation: a call id as it is, words quoted.
fn cite(page: &mut Page, cited: &str) {
    if cited.contains(' ') {
        page.quote(cited, MAX_NOTE);
    } else {
        page.name(cited);
    }
}

/// What age says of a whole line.
fn note_age(page: &mut Page, fact: &Fact) {
    match (fact.age, fact.as_of) {
        (Age::Ageless, _) => page,
        (Age::Fresh, _) => page.say(" (changes quickly)"),
        (Age::Stale, Some(at)) => page.say(", seen at ").time(at).say(RECHECK),
        (Age::Stale, None) => page.say(", seen at an unknown time").say(RECHECK),
    };
}

const RECHECK: &str = ", re-check before relying on it";

/// The fact with its record, on a line of its own.
fn fact_itself(page: &mut Page, fact: &Fact, is: &'static str) {
    if let Some(of) = &fact.claim.of {
        page.name(of).say(": ");
    }
    key_value(page, fact, is);
}

pub(super) fn key_value(page: &mut Page, fact: &Fact, is: &'static str) {
    match &fact.claim.key {
        Some(key) => page.name(key).say(is),
        None if is == "=" => page,
        None => page.say("was "),
    }
    .value(&fact.claim.value, MAX_VALUE);
}

/// What the sender adds to a fact, and that it is written another way in the result.
pub(super) fn flags(page: &mut Page, fact: &Fact) {
    // Whoever only copied a value did not write it another way.
    if fact.outcome == Outcome::Reformatted && fact.claim.by != By::Derived {
        page.say(" (reformatted)");
    }
    if fact.customer_only {
        page.say(" (only the customer said so)");
    }
    page.say(match fact.claim.confidence {
        None => "",
        Some(Confidence::High) => " (sender's confidence: high)",
        Some(Confidence::Medium) => " (sender's confidence: medium)",
        Some(Confidence::Low) => " (sender's confidence: low)",
    });
    if let Some(source) = &fact.claim.source_text {
        page.say(" (sender's source: ").quote(source, MAX_NOTE).say(")");
    }
}

/// What speaks against a fact, in words.
fn objection(fact: &Fact) -> &'static str {
    match fact.outcome {
        Outcome::NoSuchCall => "the cited call never ran",
        Outcome::Unseen => "the cited call was not seen here",
        Outcome::NotFound => "the cited result has no such value",
        Outcome::Misattributed => "the value belongs to another key or record",
        Outcome::Elsewhere => "it stands in another result than the cited one",
        Outcome::Superseded => "a later result says otherwise",
        Outcome::Contested => "contested",
        Outcome::Ambiguous => "several results fit and disagree",
        Outcome::NotQuoted => "no message of the customer has it",
        Outcome::Uncheckable if fact.claim.source == Some(Source::AgentInference) => {
            "the sender's own conclusion"
        }
        Outcome::Uncheckable => "there is nothing to check it against",
        // These hold and never come here; the list stays whole so that a new outcome needs its words.
        Outcome::Verified | Outcome::Reformatted | Outcome::Quoted => "",
    }
}
