//! What an exchange shows of the transfer behind which it stands.

use std::cell::OnceCell;

use super::{Known, Sign, Signal, asked_again, contradicted, greets, looked_up_again, repeats};
use crate::engine::custody::log::Log;
use crate::engine::custody::run::{Run, Transfer};
use crate::engine::handoff::evidence::Happening;
use crate::engine::handoff::value::fold::Words;
use crate::engine::reply::Reply;

/// So many replies of a receiver are looked at: what a handoff lost shows early.
const REPLIES: u32 = 10;

/// The signs in a reply of the agent `speaker`, whose exchange `log` has and which `run` has counted.
pub fn behind(run: &Run, log: &Log, reply: &Reply, speaker: Option<usize>) -> Vec<Signal> {
    let Some(holder) = run.holder.filter(|holder| Some(holder.agent) == speaker && holder.hop != 0) else {
        return Vec::new();
    };
    let held = run.transfers.iter().find(|transfer| transfer.record.hop == holder.hop);
    let Some(transfer) = held.filter(|_| holder.replies <= REPLIES) else { return Vec::new() };
    let hop = holder.hop;
    // Most replies ask for nothing, and need not be held against what is known.
    let known = OnceCell::new();
    let known = || known.get_or_init(|| Known::of(&transfer.record.facts, turns_before(log, transfer)));
    let mut signals = Vec::new();
    let re_asked = asked_again(known, &reply.text);
    let again = said_again(log, transfer);
    let repeated = again.into_iter().flat_map(|(asked, turn)| repeats(known, asked, turn));
    for slot in re_asked.into_iter().chain(repeated) {
        // Without a key only the customer's own words call it something.
        signals.push(Signal::new(Sign::ReAsked, hop, slot.key.as_deref().unwrap_or("said by customer")));
    }
    if holder.replies == 1 && greets(&reply.text) && log.agent_spoke() {
        signals.push(Signal::new(Sign::GreetedAgain, hop, ""));
    }
    for call in reply.calls.iter().filter(|call| call.complete) {
        let (run, since) = (log.happenings(), log.happenings());
        let (run, since) = (before(run, transfer.results), behind_results(since, transfer.results));
        if !log.cut && looked_up_again(&call.name, &call.arguments, run, since, &transfer.record.facts) {
            signals.push(Signal::new(Sign::RepeatedLookup, hop, &*call.name));
        }
        if let Some(key) = contradicted(&call.arguments, &transfer.record.facts, |value| named(log, value)) {
            signals.push(Signal::new(Sign::WrongValue, hop, key));
        }
    }
    signals
}

/// The customer's turns up to the one at which the transfer was made.
fn turns_before<'l>(log: &'l Log, transfer: &Transfer) -> impl Iterator<Item = &'l str> + Clone + use<'l> {
    let made_at = transfer.turn.as_deref();
    let last = log.customer_turns().enumerate().filter(|(_, turn)| Some(*turn) == made_at).last();
    log.customer_turns().take(last.map_or(usize::MAX, |(at, _)| at + 1))
}

/// What an agent said last before the customer's last turn, and that turn, if it came behind the transfer.
fn said_again<'l>(log: &'l Log, transfer: &Transfer) -> Option<(&'l str, &'l str)> {
    let mut asked = None;
    let mut last = None;
    for happening in log.happenings() {
        match happening {
            Happening::Agent(text) => asked = Some(text),
            Happening::Customer(turn) => last = asked.map(|asked| (asked, turn)),
            Happening::Call { .. } => {}
        }
    }
    last.filter(|(_, turn)| transfer.turn.as_deref() != Some(*turn))
}

/// What happened until the run had so many results.
fn before<'l>(
    log: impl Iterator<Item = Happening<'l>>,
    results: usize,
) -> impl Iterator<Item = Happening<'l>> {
    let mut seen = 0;
    log.take_while(move |happening| {
        seen += usize::from(has_result(happening));
        seen <= results
    })
}

/// What happened from then on.
fn behind_results<'l>(
    log: impl Iterator<Item = Happening<'l>>,
    results: usize,
) -> impl Iterator<Item = Happening<'l>> {
    let mut seen = 0;
    log.skip_while(move |happening| {
        seen += usize::from(has_result(happening));
        seen <= results
    })
}

fn has_result(happening: &Happening<'_>) -> bool {
    matches!(happening, Happening::Call { result: Some(_), .. })
}

/// Whether the customer or a result has named a value.
fn named(log: &Log, value: &str) -> bool {
    let value = Words::of(value);
    log.happenings().any(|happening| match happening {
        Happening::Customer(text) | Happening::Call { result: Some(text), .. } => {
            super::known::stands_in(&Words::of(text), &value)
        }
        Happening::Agent(_) | Happening::Call { .. } => false,
    })
}
