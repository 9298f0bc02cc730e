//! What the engine found and did, counted and logged: ids, names and outcomes,
//! never content.

use std::time::Duration;

use tracing::{debug, info, warn};

use super::metrics::{Arm, Brief, Field, Rule, Side, Spent, Value};
use super::{Closed, Passed, Telemetry, shown};
use crate::engine::custody::run::Run;
use crate::engine::event::{Code, Finding};
use crate::engine::handoff::transcript::BYTES_A_TOKEN;
use crate::engine::learn::Learned;
use crate::engine::record::{Record, State};
use crate::engine::reply::Usage;
use crate::engine::ruling::Ruling;
use crate::runs::Trouble;

/// Bytes of a name in a log line: a client chooses what its agents are called.
const NAME_BYTES: usize = 80;

impl Telemetry {
    /// A finding was made.
    pub fn finding(&self, finding: &Finding) {
        self.metrics.findings.one((finding.code,));
        if finding.code == Code::Filler {
            self.metrics.filler.one((Field::of(&finding.place),));
        }
        let place = shown::name(&finding.place);
        debug!(code = finding.code.name(), place, what = finding.what, "finding");
    }

    /// How often a finding of this kind was made since the start.
    pub fn findings(&self, code: Code) -> u64 {
        self.metrics.findings.value((code,))
    }

    /// A request that shows an answered transfer went up as it came.
    pub fn unmatched(&self, reason: Passed) {
        self.metrics.boundaries_unmatched.one((reason,));
    }

    /// A request could be refused for what was found, whether or not it is.
    pub fn refusable(&self, findings: &[Finding]) {
        // The other rules are judged where the transfer is made, and counted there.
        let judged_here = |rule: &Rule| matches!(rule, Rule::Custody | Rule::Budget);
        let mut broken: Vec<Rule> = findings.iter().filter_map(broken_rule).filter(judged_here).collect();
        broken.dedup();
        for rule in broken {
            self.metrics.would_refuse.one((rule,));
        }
    }

    /// A request was refused for what was found.
    pub fn refused(&self, finding: &Finding) {
        debug!(code = finding.code.name(), "refused");
        if let Some(rule) = Rule::broken_by(finding.code) {
            self.metrics.refusals.one((rule,));
        }
    }

    /// A receiver's request was rebuilt, or would have been.
    pub fn rebuilt(&self, arm: Arm) {
        self.metrics.rewrites.one((arm,));
    }

    /// The transfer of this hop was taken up.
    pub fn taken_up(&self, run: &Run, hop: u32, arm: Arm) {
        let Some(record) = run.transfers.iter().map(|t| &t.record).find(|record| record.hop == hop) else {
            return;
        };
        let metrics = &self.metrics;
        metrics.transfers.one((record.state, record.origin, arm));
        metrics.hops.measure((), u64::from(run.hops));
        metrics.list_tokens.add((Side::Before, arm), record.tokens.before);
        metrics.list_tokens.add((Side::After, arm), record.tokens.after);
        for fact in &record.facts {
            metrics.facts.one((fact.outcome, fact.age));
        }
        if arm == Arm::Rewrite {
            metrics.brief_values.add((Value::Told,), record.facts.len() as u64);
        }
        log_taken_up(record, arm);
    }

    /// Transfers came to another state beside the one that was taken up.
    pub fn moved(&self, record: &Record, arm: Arm) {
        self.metrics.transfers.one((record.state, record.origin, arm));
    }

    /// An exchange was learnt from. `after`: since the reply's head.
    pub fn learned(&self, learned: &Learned, arm: Arm, after: Duration) {
        learned.findings.iter().for_each(|finding| self.finding(finding));
        self.ruled(learned);
        let mut broken: Vec<Rule> = learned.findings.iter().filter_map(broken_rule).collect();
        for transfer in learned.run.transfers.iter().filter(|t| learned.transfers.contains(&t.record.hop)) {
            let record = &transfer.record;
            record.findings.iter().for_each(|finding| self.finding(finding));
            broken.extend(record.findings.iter().filter_map(broken_rule));
            self.metrics.transfers.one((State::Pending, record.origin, arm));
            let written = transfer.generated.as_ref().unwrap_or(&record.call.arguments);
            let tokens = written.len().div_ceil(BYTES_A_TOKEN);
            self.metrics.contract_tokens.measure((record.origin,), tokens as u64);
            self.metrics.contract_seconds.time((record.origin,), after);
            info!(id = record.id, to = name(&record.to_agent), facts = record.facts.len(), "transfer seen");
        }
        for transfer in learned.run.transfers.iter().filter(|t| learned.refused.contains(&t.record.hop)) {
            transfer.record.findings.iter().for_each(|finding| self.finding(finding));
            broken.extend(transfer.record.findings.iter().filter_map(broken_rule));
            self.metrics.transfers.one((State::Refused, transfer.record.origin, arm));
        }
        for rule in Rule::ALL.iter().filter(|rule| broken.contains(rule)) {
            self.metrics.would_refuse.one((*rule,));
        }
        self.metrics.brief_values.add((Value::Used,), learned.values_used);
        for signal in &learned.signals {
            self.metrics.signals.one((signal.sign, arm));
        }
    }

    /// A sender was asked for the contract.
    pub fn asked(&self) {
        self.metrics.asked.one(());
    }

    /// An upstream reported what the answer to a correction cost.
    pub fn correction_cost(&self, usage: &Usage) {
        let tokens = &self.metrics.correction_tokens;
        tokens.add((Spent::Input,), usage.input);
        tokens.add((Spent::CacheRead,), usage.cached);
        tokens.add((Spent::CacheWrite,), usage.cache_write);
        tokens.add((Spent::Output,), usage.output);
    }

    /// What was ruled about a reply's transfers.
    fn ruled(&self, learned: &Learned) {
        let metrics = &self.metrics;
        let mut broken: Vec<Rule> = learned.faults.iter().filter_map(broken_rule).collect();
        broken.sort_by_key(|rule| rule.name());
        broken.dedup();
        for rule in broken {
            match learned.ruling {
                Ruling::Correct(_) => metrics.corrections.one((rule,)),
                Ruling::Redirect { .. } => metrics.redirects.one((rule,)),
                Ruling::Refuse(_) => metrics.refusals.one((rule,)),
                Ruling::Release => {}
            }
        }
        if learned.ruling != Ruling::Release {
            let codes: Vec<&str> = learned.faults.iter().map(|fault| fault.code.name()).collect();
            info!(run = learned.run.id, ruling = learned.ruling.name(), ?codes, "transfer kept back");
        }
    }

    /// An upstream reported what a reply cost.
    pub fn spent(&self, usage: &Usage, brief: Brief) {
        let tokens = &self.metrics.upstream_tokens;
        tokens.add((Spent::Input, brief), usage.input);
        tokens.add((Spent::CacheRead, brief), usage.cached);
        tokens.add((Spent::CacheWrite, brief), usage.cache_write);
        tokens.add((Spent::Output, brief), usage.output);
    }

    /// What the store was asked for an exchange could not be had.
    pub fn store_trouble(&self, trouble: &Trouble) {
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

fn broken_rule(finding: &Finding) -> Option<Rule> {
    Rule::broken_by(finding.code)
}

fn name(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES)]
}

/// One line a transfer that a person can read.
fn log_taken_up(record: &Record, arm: Arm) {
    let held = record.facts.iter().filter(|fact| fact.outcome.holds()).count();
    info!(
        id = record.id,
        run = record.run,
        from = name(record.from_agent.as_deref().unwrap_or("unknown")),
        to = name(&record.to_agent),
        hop = record.hop,
        source = record.origin.name(),
        arm = arm.name(),
        established = held,
        not_confirmed = record.facts.len() - held,
        findings = record.findings.len(),
        tokens_before = record.tokens.before,
        tokens_after = record.tokens.after,
        "transfer taken up"
    );
}
