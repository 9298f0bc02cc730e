//! The ledger: what a run has settled, carried word for word to every later
//! brief, each once. A later sender can add to it and never drop from it.

use serde::{Deserialize, Serialize};

use crate::engine::handoff::contract::{By, Constraint, Handoff, Line, Lines, Scope, plain, same};
use crate::engine::handoff::derive;
use crate::engine::handoff::verify::Fact;
use crate::engine::record::Record;

/// Entries a list keeps; the oldest stay, since they were promised first.
const MOST: usize = 20;

/// What is carried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// Constraints for the whole run.
    constraints: Vec<Constraint>,
    decisions: Vec<Line>,
    commitments: Vec<Line>,
    stop_conditions: Vec<Line>,
    /// Facts that senders claimed and that held when they were checked.
    facts: Vec<Fact>,
}

impl Ledger {
    /// Takes over what a record settled.
    pub fn settle(&mut self, record: &Record) {
        let for_the_run = |constraint: &&Constraint| constraint.scope == Scope::Run;
        for constraint in record.handoff.constraints.iter().flatten().filter(for_the_run) {
            add(&mut self.constraints, constraint.clone(), |known| same(&known.text, &constraint.text));
        }
        for (list, said) in [
            (&mut self.decisions, &record.handoff.decisions),
            (&mut self.commitments, &record.handoff.commitments),
            (&mut self.stop_conditions, &record.handoff.stop_conditions),
        ] {
            for line in said.iter().flatten() {
                add(list, line.clone(), |known| same(&known.text, &line.text));
            }
        }
        let claimed = record.facts.iter().filter(|fact| fact.claim.by == By::Sender && fact.outcome.holds());
        for fact in claimed {
            // A newer value of the same key of the same record takes the place of the old one.
            self.facts.retain(|known| !is_same_key(known, fact));
            add(&mut self.facts, fact.clone(), |_| false);
        }
    }

    /// Lifts what the customer has taken back in these turns.
    pub fn lift<'a>(&mut self, turns: &(impl Iterator<Item = &'a str> + Clone)) -> Vec<String> {
        let mut lifted = Vec::new();
        self.constraints.retain(|constraint| {
            let stays = !(constraint.binds && derive::is_lifted(&constraint.text, turns.clone()));
            if !stays {
                lifted.push(constraint.text.clone());
            }
            stays
        });
        lifted
    }

    /// Adds what was settled before to a handoff that does not say it again.
    pub fn carry(&self, handoff: &mut Handoff) {
        let said = &mut handoff.constraints;
        for constraint in &self.constraints {
            if !said.iter().flatten().any(|known| same(&known.text, &constraint.text)) {
                said.get_or_insert_default().push(Constraint { by: By::Carried, ..constraint.clone() });
            }
        }
        carry(&mut handoff.decisions, &self.decisions);
        carry(&mut handoff.commitments, &self.commitments);
        carry(&mut handoff.stop_conditions, &self.stop_conditions);
    }

    /// The facts that senders claimed before, to be checked against what has happened since.
    pub fn facts(&self) -> &[Fact] {
        &self.facts
    }
}

/// Whether two facts are of one key of one record.
pub fn is_same_key(a: &Fact, b: &Fact) -> bool {
    a.claim.key.is_some()
        && a.claim.key.as_deref().map(plain) == b.claim.key.as_deref().map(plain)
        && a.claim.of.as_deref().map(plain) == b.claim.of.as_deref().map(plain)
}

fn carry(said: &mut Lines, settled: &[Line]) {
    for line in settled {
        if !said.iter().flatten().any(|known| same(&known.text, &line.text)) {
            said.get_or_insert_default().push(Line { text: line.text.clone(), by: By::Carried });
        }
    }
}

fn add<T>(list: &mut Vec<T>, entry: T, is_known: impl Fn(&T) -> bool) {
    if list.len() < MOST && !list.iter().any(is_known) {
        list.push(entry);
    }
}
