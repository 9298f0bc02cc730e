//! What the engine found and did, counted and logged: ids, names and outcomes,
//! never content.

use std::sync::atomic::{AtomicU64, Ordering};

use tracing::{debug, info, warn};

use super::Telemetry;
use crate::engine::decide::{Action, Decision, Pass};
use crate::engine::event::{Code, Finding};
use crate::engine::learn::Learned;
use crate::engine::record::Record;
use crate::runs::Trouble;

/// The counters that the engine's events add to.
#[derive(Debug)]
pub(super) struct Counts {
    findings: [AtomicU64; Code::ALL.len()],
    passes: [AtomicU64; Pass::ALL.len()],
    rewrites: AtomicU64,
    store_failures: AtomicU64,
}

impl Default for Counts {
    fn default() -> Self {
        Counts {
            findings: std::array::from_fn(|_| AtomicU64::new(0)),
            passes: std::array::from_fn(|_| AtomicU64::new(0)),
            rewrites: AtomicU64::new(0),
            store_failures: AtomicU64::new(0),
        }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Telemetry {
    /// A finding was made.
    pub fn finding(&self, finding: &Finding) {
        add(&self.engine.findings[finding.code as usize]);
        debug!(code = finding.code.name(), place = finding.place, what = finding.what, "finding");
    }

    /// How often a finding of this kind was made since the start.
    pub fn findings(&self, code: Code) -> u64 {
        self.engine.findings[code as usize].load(Ordering::Relaxed)
    }

    /// How often a request passed for this reason since the start.
    pub fn passes(&self, reason: Pass) -> u64 {
        self.engine.passes[reason as usize].load(Ordering::Relaxed)
    }

    /// How many requests were rebuilt, or would have been in observe mode, since the start.
    pub fn rewrites(&self) -> u64 {
        self.engine.rewrites.load(Ordering::Relaxed)
    }

    /// How often the store could not do what was asked since the start.
    pub fn store_failures(&self) -> u64 {
        self.engine.store_failures.load(Ordering::Relaxed)
    }

    /// A request was decided.
    pub fn decided(&self, decision: &Decision) {
        decision.findings.iter().for_each(|finding| self.finding(finding));
        match &decision.action {
            Action::Forward(reason) => {
                add(&self.engine.passes[*reason as usize]);
                debug!(reason = reason.name(), "passed");
            }
            Action::Refuse(finding) => debug!(code = finding.code.name(), "refused"),
            Action::Rewrite(_) => {
                add(&self.engine.rewrites);
                if decision.changed
                    && let Some(held) = decision.run.as_ref().and_then(|run| run.held())
                {
                    taken_up(&held.record);
                }
            }
        }
    }

    /// An exchange was learnt from.
    pub fn learned(&self, learned: &Learned) {
        learned.findings.iter().for_each(|finding| self.finding(finding));
        for transfer in learned.run.transfers.iter().filter(|t| learned.transfers.contains(&t.record.hop)) {
            transfer.record.findings.iter().for_each(|finding| self.finding(finding));
            let record = &transfer.record;
            info!(id = record.id, to = record.to_agent, facts = record.facts.len(), "transfer seen");
        }
    }

    /// What the store was asked for an exchange could not be had.
    pub fn store_trouble(&self, trouble: &Trouble) {
        add(&self.engine.store_failures);
        match trouble {
            Trouble::Store(error) => {
                warn!(%error, "the store failed an exchange");
                self.finding(&Finding::new(Code::StoreFailed, "store", error.reason()));
            }
            Trouble::Unreadable { run, why } => {
                warn!(run, %why, "a run was left alone");
                self.finding(&Finding::new(Code::RunUnreadable, "store", why.to_string()));
            }
        }
    }
}

/// One line a transfer that a person can read.
fn taken_up(record: &Record) {
    let held = record.facts.iter().filter(|fact| fact.outcome.holds()).count();
    info!(
        id = record.id,
        run = record.run,
        from = record.from_agent.as_deref().unwrap_or("unknown"),
        to = record.to_agent,
        hop = record.hop,
        established = held,
        not_confirmed = record.facts.len() - held,
        findings = record.findings.len(),
        tokens_before = record.tokens.before,
        tokens_after = record.tokens.after,
        "transfer taken up"
    );
}
