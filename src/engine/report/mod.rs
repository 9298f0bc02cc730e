//! What the records of many runs say together: who hands to whom, what was
//! lost on the way, and whether briefs help. Counts and names only.

mod rate;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use rate::Rate;

use super::custody::run::{Run, Transfer};
use super::event::Code;
use super::handoff::verify::{Age, Outcome};
use super::record::State;
use super::signal::Sign;
use super::time::Timestamp;

/// Which transfers are reported.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Those from then on.
    pub since: Option<Timestamp>,
    /// Those of this sender and receiver.
    pub pair: Option<(String, String)>,
    /// How many of the worst are named.
    pub worst: usize,
}

/// The report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Runs with a transfer in the report.
    pub runs: u64,
    /// All transfers together.
    pub all: Tally,
    /// By sender and receiver, the most frequent first.
    pub pairs: Vec<Pair>,
    /// Those that were taken up, by whether the receiver read a brief: `rewrite`, and `observe` where it was
    /// made in the shadow.
    pub arms: BTreeMap<String, Tally>,
    /// How many transfers the runs had: hops to runs.
    pub hops: BTreeMap<u32, u64>,
    /// Ways through agents that came back to where they began, to runs that went them; the most frequent first.
    pub cycles: Vec<Cycle>,
    /// The transfers behind which most was wrong, the worst first.
    pub worst: Vec<Worst>,
}

/// Transfers counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// How many.
    pub transfers: u64,
    /// By where they stand: `taken_up`, `declined`, ...
    pub states: BTreeMap<String, u64>,
    /// By where the handoff came from: `declared`, `injected`, `derived`.
    pub origins: BTreeMap<String, u64>,
    /// Facts by outcome of their check: `verified`, `misattributed`, ...
    pub facts: BTreeMap<String, u64>,
    /// Facts that were too old at the transfer.
    pub stale: u64,
    /// Findings by code.
    pub findings: BTreeMap<String, u64>,
    /// Transfers behind which a sign was seen, by sign.
    pub signs: BTreeMap<String, u64>,
    /// Transfers that came back: declined, or to an agent that had been visited with nothing new since.
    pub bounced: u64,
    /// Estimated tokens of the receivers' lists as clients sent them, and with the brief.
    pub tokens_before: u64,
    /// See `tokens_before`.
    pub tokens_after: u64,
    /// Milliseconds from the sender's request to the receiver's first, over those that were taken up.
    pub waited_ms: u64,
}

/// The transfers from one agent to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The sender; empty where nobody named it.
    pub from: String,
    /// The receiver, as the transfers spell it.
    pub to: String,
    /// Its transfers.
    #[serde(flatten)]
    pub tally: Tally,
}

/// A way that came back to where it began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cycle {
    /// The agents on it, the first one also last.
    pub agents: Vec<String>,
    /// Runs that went it.
    pub runs: u64,
}

/// A transfer behind which much was wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Worst {
    /// The handoff's id.
    pub id: String,
    /// The sender; empty where nobody named it.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// How many things.
    pub count: u64,
    /// Which: signs, outcomes of facts and findings, each with how often.
    pub what: BTreeMap<String, u64>,
}

impl Report {
    /// The report on the transfers of `runs` that are wanted.
    pub fn of<'r>(runs: impl IntoIterator<Item = &'r Run>, wanted: &Wanted) -> Report {
        let mut report = Report::default();
        let mut pairs: BTreeMap<(String, String), Tally> = BTreeMap::new();
        let mut cycles: BTreeMap<Vec<String>, u64> = BTreeMap::new();
        for run in runs {
            let mut transfers = run.transfers.iter().filter(|transfer| wanted.has(run, transfer)).peekable();
            if transfers.peek().is_none() {
                continue;
            }
            report.runs += 1;
            let mut hops = 0;
            for transfer in transfers {
                hops += 1;
                let signs = signs(run, transfer);
                report.all.add(transfer, &signs);
                let (from, to) = ends(run, transfer);
                pairs.entry((from.to_owned(), to.to_owned())).or_default().add(transfer, &signs);
                if let Some(arm) = transfer.arm() {
                    report.arms.entry(arm.to_owned()).or_default().add(transfer, &signs);
                }
                report.worst.extend(Worst::of(run, transfer, &signs));
            }
            *report.hops.entry(hops).or_default() += 1;
            for cycle in cycles_of(run, wanted) {
                *cycles.entry(cycle).or_default() += 1;
            }
        }
        report.pairs = pairs.into_iter().map(|((from, to), tally)| Pair { from, to, tally }).collect();
        report.pairs.sort_by_key(|pair| std::cmp::Reverse(pair.tally.transfers));
        report.cycles = cycles.into_iter().map(|(agents, runs)| Cycle { agents, runs }).collect();
        report.cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.runs));
        report.worst.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.id.cmp(&b.id)));
        report.worst.truncate(wanted.worst);
        report
    }
}

impl Wanted {
    fn has(&self, run: &Run, transfer: &Transfer) -> bool {
        let (from, to) = ends(run, transfer);
        self.since.is_none_or(|since| transfer.record.at >= since)
            && self.pair.as_ref().is_none_or(|(sender, receiver)| sender == from && receiver == to)
    }
}

impl Tally {
    fn add(&mut self, transfer: &Transfer, signs: &[Sign]) {
        let record = &transfer.record;
        self.transfers += 1;
        one(&mut self.states, record.state.name());
        one(&mut self.origins, record.origin.name());
        for fact in &record.facts {
            one(&mut self.facts, fact.outcome.name());
            self.stale += u64::from(fact.age == Age::Stale);
        }
        for finding in &record.findings {
            one(&mut self.findings, finding.code.name());
        }
        for sign in signs {
            one(&mut self.signs, sign.name());
        }
        let visited = record.findings.iter().any(|finding| finding.code == Code::Visited);
        self.bounced += u64::from(record.state == State::Declined || visited);
        self.tokens_before += record.tokens.before;
        self.tokens_after += record.tokens.after;
        self.waited_ms += transfer.taken_up_at.map_or(0, |at| at.0.saturating_sub(record.at.0));
    }

    /// How many transfers had a sign behind them, of all that were taken up.
    pub fn rate(&self, sign: Sign) -> Rate {
        let seen = self.signs.get(sign.name()).copied().unwrap_or(0);
        Rate { seen, of: self.taken_up().max(seen) }
    }

    /// Transfers that a receiver took up.
    pub fn taken_up(&self) -> u64 {
        let count = |state: State| self.states.get(state.name()).copied().unwrap_or(0);
        count(State::TakenUp) + count(State::Declined)
    }

    /// Facts that passed their check.
    pub fn established(&self) -> u64 {
        let holds = Outcome::ALL.iter().filter(|outcome| outcome.holds());
        holds.filter_map(|outcome| self.facts.get(outcome.name())).sum()
    }
}

impl Worst {
    fn of(run: &Run, transfer: &Transfer, signs: &[Sign]) -> Option<Worst> {
        let record = &transfer.record;
        let mut what: BTreeMap<String, u64> = BTreeMap::new();
        for sign in signs {
            one(&mut what, sign.name());
        }
        let failed = record.facts.iter().filter(|fact| is_fault(fact.outcome));
        failed.for_each(|fact| one(&mut what, fact.outcome.name()));
        let told_by_facts =
            |code: Code| matches!(code, Code::FactNotConfirmed | Code::FactCitedWrong | Code::FactStale);
        let findings = record.findings.iter().filter(|finding| !told_by_facts(finding.code));
        findings.for_each(|finding| one(&mut what, finding.code.name()));
        let count = what.values().sum();
        let (from, to) = ends(run, transfer);
        let (from, to) = (from.to_owned(), to.to_owned());
        (count > 0).then(|| Worst { id: record.id.clone(), from, to, count, what })
    }
}

/// Whether a fact was told wrong; what nobody can check is not.
pub fn is_fault(outcome: Outcome) -> bool {
    !outcome.holds() && !matches!(outcome, Outcome::Unseen | Outcome::Uncheckable | Outcome::Ambiguous)
}

/// The kinds of signs behind a transfer, each once.
fn signs(run: &Run, transfer: &Transfer) -> Vec<Sign> {
    let behind = run.signals.iter().filter(|signal| signal.hop == transfer.record.hop);
    let mut signs: Vec<Sign> = behind.map(|signal| signal.sign).collect();
    signs.sort_unstable();
    signs.dedup();
    signs
}

fn ends<'r>(run: &'r Run, transfer: &'r Transfer) -> (&'r str, &'r str) {
    (run.sender_name(transfer).unwrap_or(""), &transfer.record.to_agent)
}

/// The ways of a run that came back to where they began, each once, by the names that transfers use.
fn cycles_of(run: &Run, wanted: &Wanted) -> Vec<Vec<String>> {
    let taken = |state: State| matches!(state, State::TakenUp | State::Declined);
    let transfers =
        run.transfers.iter().filter(|transfer| wanted.has(run, transfer) && taken(transfer.record.state));
    let mut path: Vec<&str> = Vec::new();
    let mut cycles: Vec<Vec<String>> = Vec::new();
    for transfer in transfers {
        let (from, to) = ends(run, transfer);
        if path.last() != Some(&from) {
            path = vec![from];
        }
        if let Some(began) = path.iter().position(|agent| *agent == to) {
            let cycle: Vec<String> =
                path[began..].iter().chain([&to]).map(|&agent| agent.to_owned()).collect();
            if !cycles.contains(&cycle) {
                cycles.push(cycle);
            }
            path.truncate(began);
        }
        path.push(to);
    }
    cycles
}

fn one(counts: &mut BTreeMap<String, u64>, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => drop(counts.insert(name.to_owned(), 1)),
    }
}

#[cfg(test)]
mod tests;
