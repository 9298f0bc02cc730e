//! The judgement of a transfer by the run's own rules: how many hops, to whom,
//! and whether anything has happened since that agent had the run.

use super::log::Log;
use super::run::{Run, Transfer};
use crate::engine::event::{Code, Finding};
use crate::engine::handoff::detect::{Offered, same_agent};
use crate::engine::read::Reading;
use crate::engine::record::State;

/// How many transfers a run may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Since the customer's last turn.
    pub since_turn: u32,
    /// Over the whole run.
    pub whole_run: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { since_turn: 12, whole_run: 100 }
    }
}

/// Names of agents that a finding lists.
const NAMES: usize = 20;

/// What speaks against a transfer that `sender` makes in a reply to `reading`.
pub fn judge(
    transfer: &Transfer,
    reading: &Reading<'_>,
    run: &Run,
    log: &Log,
    limits: Limits,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let to = &transfer.to;
    let mut find = |code, what: String| findings.push(Finding::new(code, &*to.name, what));
    if let Some(hop) = run.ended_by {
        find(Code::AfterTerminal, format!("transfer {hop} ended the run"));
    }
    if run.hops + 1 > limits.whole_run {
        find(Code::HopLimit, format!("{} transfers in the run, at most {}", run.hops + 1, limits.whole_run));
    }
    let since = run.since_turn().count() as u32;
    if since + 1 > limits.since_turn {
        let limit = limits.since_turn;
        find(Code::HopLimit, format!("{} transfers since the customer spoke, at most {limit}", since + 1));
    }
    let sender = transfer.sender.map(|sender| &run.agents[sender]);
    let is_self = sender.and_then(|agent| agent.name.as_deref()).is_some_and(|name| to.is(name))
        || (sender.is_some_and(|agent| agent.name.is_none()) && reading.introduces_itself(to));
    if is_self {
        find(Code::SelfTransfer, "the agent has the run already".into());
    } else if !is_offered(transfer, reading) {
        find(Code::UnknownDestination, format!("the request does not offer this agent{}", offered(reading)));
    } else if !is_return(transfer, run) && !declines(transfer, run) && is_visited(transfer, run, log) {
        find(
            Code::Visited,
            "it has had the run since the customer spoke, and nothing new is known since".into(),
        );
    }
    findings
}

/// Whether the tool that was called can go there.
fn is_offered(transfer: &Transfer, reading: &Reading<'_>) -> bool {
    reading.offers.iter().any(|offer| {
        reading.view.tools[offer.tool].name == transfer.record.call.name
            && match &offer.to {
                Offered::Named(_) | Offered::Open => true,
                Offered::OneOf(names) => names.iter().any(|name| transfer.to.is(name)),
            }
    })
}

/// The agents that the request offers, for whoever is told of a wrong one.
fn offered(reading: &Reading<'_>) -> String {
    let names = reading.offers.iter().flat_map(|offer| match &offer.to {
        Offered::Named(to) => vec![to.name.as_str()],
        Offered::OneOf(names) => names.iter().map(String::as_str).collect(),
        Offered::Open => Vec::new(),
    });
    let names: Vec<String> = names.take(NAMES).map(|name| name.chars().take(80).collect()).collect();
    if names.is_empty() { String::new() } else { format!(", only: {}", names.join(", ")) }
}

/// A dispatch by the agent that wants the result back, and the way back to it.
fn is_return(transfer: &Transfer, run: &Run) -> bool {
    let sender = transfer.sender.and_then(|sender| run.agents[sender].name.as_deref());
    run.transfers
        .iter()
        .filter_map(|known| known.record.handoff.return_to.as_deref())
        .any(|wanted| transfer.to.is(wanted) || sender.is_some_and(|sender| same_agent(sender, wanted)))
}

/// A receiver that gives the run back to its sender in its first reply; not to one that gave it back itself.
fn declines(transfer: &Transfer, run: &Run) -> bool {
    let first = run.holder.is_some_and(|holder| transfer.sender == Some(holder.agent) && holder.replies == 1);
    let back = |held: &Transfer| match &held.record.from_agent {
        Some(name) => transfer.to.is(name),
        None => held.sender.is_some_and(|sender| run.is_named(sender, &transfer.to)),
    };
    let gave_back =
        |taken: &Transfer| taken.record.state == State::Declined && transfer.to.is(&taken.record.to_agent);
    first && run.held().is_some_and(back) && !run.since_turn().any(gave_back)
}

/// Whether the destination had the run since the customer spoke, and nothing was found out since.
fn is_visited(transfer: &Transfer, run: &Run, log: &Log) -> bool {
    let results = log.results();
    run.since_turn().any(|taken| {
        let from = taken.record.from_agent.as_deref();
        // Who received it had it from then on; who sent it had it until then.
        let sent = || match from {
            Some(name) => transfer.to.is(name),
            None => taken.sender.is_some_and(|sender| run.is_named(sender, &transfer.to)),
        };
        let had = transfer.to.is(&taken.record.to_agent) || sent();
        had && taken.results == results
    })
}

impl Run {
    /// The transfers that were taken up since the customer's last turn.
    pub fn since_turn(&self) -> impl Iterator<Item = &Transfer> {
        let turn = self.latest.as_ref().map(|turn| turn.words.as_str());
        self.transfers.iter().filter(move |transfer| {
            matches!(transfer.record.state, State::TakenUp | State::Declined)
                && transfer.turn.as_deref() == turn
        })
    }
}
