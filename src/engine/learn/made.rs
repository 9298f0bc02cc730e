//! The transfers that a reply makes: read from its calls, ruled on, and put
//! into the run.

use super::Terms;
use crate::engine::custody::judge::judge;
use crate::engine::custody::log::Log;
use crate::engine::custody::run::{Run, Transfer};
use crate::engine::decide::{Circumstances, SeenTransfer, transfer};
use crate::engine::event::{Code, Finding};
use crate::engine::handoff::compose::Asking;
use crate::engine::handoff::contract::declares_contract;
use crate::engine::handoff::detect::Destination;
use crate::engine::handoff::verify::Fact;
use crate::engine::policy::Policy;
use crate::engine::read::{Reading, transfer_mark};
use crate::engine::record::State;
use crate::engine::reply::{Fate, Finish, Reply, ReplyCall};
use crate::engine::ruling::{Refused, Ruling, answer, terminal};

/// Bytes of generated arguments that are kept to be put back.
const GENERATED_CAP: usize = 32 << 10;

/// A transfer that a reply's call makes, and what is wrong with it.
pub(super) struct Made {
    /// The call's place in the reply.
    call: usize,
    pub(super) transfer: Transfer,
    /// Whether somebody asked its sender for a contract.
    asked: bool,
    /// The arguments as the client is to see them, where these are others than the sender's.
    declared: Option<String>,
}

/// A ruling, and the faults that it rests on.
pub(super) struct Ruled {
    pub(super) ruling: Ruling,
    pub(super) faults: Vec<Finding>,
}

/// The transfers that a reply's calls make.
pub(super) fn made(
    reading: &Reading<'_>,
    reply: &Reply,
    run: &Run,
    log: &Log,
    speaker: Option<usize>,
    terms: Terms<'_>,
    at: Circumstances<'_>,
) -> Vec<Made> {
    let offered = reply.calls.iter().enumerate().filter(|(_, call)| reading.offers_tool(&call.name));
    offered
        .filter_map(|(place, call)| {
            let taken = terms.asked.and_then(|asked| asked.take(&call.name, &call.arguments));
            let asks = terms.asked.is_some_and(|asked| asked.asks(&call.name));
            // Half a transfer is no transfer. Whole arguments that are no JSON are one that said nothing.
            let garbled = !call.complete && terms.held && is_garbled(reply);
            if !call.complete && !garbled {
                return None;
            }
            let bare = terms.asked.is_some_and(|asked| asked.is_bare(&call.name));
            let declared = match &taken {
                Some(taken) => Some(taken.declared.clone()).filter(|declared| *declared != call.arguments),
                None => (garbled && bare).then(|| "{}".to_owned()),
            };
            let arguments = declared.as_deref().unwrap_or(&call.arguments);
            let submitted = submitted(reading, reply, place, at.policy);
            let said = taken.as_ref().and_then(|taken| taken.said.as_deref()).or(submitted.as_deref());
            let tool = reading.view.tools.iter().find(|tool| tool.name == call.name);
            let declares = tool.and_then(|tool| tool.parameters.as_deref()).is_some_and(declares_contract);
            let asking = match (asks, declares || submitted.is_some()) {
                (true, _) => Asking::Seam,
                (false, true) => Asking::Client,
                (false, false) => Asking::Nobody,
            };
            let to = at.policy.naming.destination(&call.name, arguments);
            let seen = SeenTransfer {
                id: &call.id,
                name: &call.name,
                arguments,
                said: said.or_else(|| garbled.then_some(call.arguments.as_str())),
                asking,
                mark: transfer_mark(&call.id, &call.name, arguments),
                to,
                from_name: None,
                beside: &reply.text,
            };
            let mut transfer = transfer(run, log, seen, speaker, at);
            let against = judge(&transfer, reading, run, log, at.policy.hops);
            transfer.record.findings.extend(against);
            transfer.record.corrections = terms.corrections.to_vec();
            transfer.request = Some(*terms.request);
            let kept = declared.is_some() && !garbled && call.arguments.len() <= GENERATED_CAP;
            transfer.generated = kept.then(|| call.arguments.clone());
            Some(Made { call: place, transfer, asked: asking != Asking::Nobody, declared })
        })
        .collect()
}

/// Whether a call of a reply that is not complete is so because of what the model wrote, not because
/// something is missing.
fn is_garbled(reply: &Reply) -> bool {
    reply.ended && !matches!(reply.finish, Some(Finish::Length | Finish::Filter))
}

/// The contract that the client's own tool took for the transfer at this place: in the same reply, or in the
/// list behind the last transfer.
fn submitted(reading: &Reading<'_>, reply: &Reply, place: usize, policy: &Policy) -> Option<String> {
    let beside = reply.calls[..place].iter().rev().find(|call| call.complete && policy.is_submit(&call.name));
    if let Some(call) = beside {
        return Some(call.arguments.clone());
    }
    let behind = reading.transfers.last().map_or(0, |last| last.item);
    let items = reading.view.items.get(behind..)?;
    let calls = items.iter().rev().flat_map(|item| item.calls.iter().rev());
    calls
        .into_iter()
        .find(|call| policy.is_submit(&call.name))
        .map(|call| call.arguments.clone().into_owned())
}

/// What becomes of the transfers.
pub(super) fn rule(
    reading: &Reading<'_>,
    reply: &Reply,
    run: &Run,
    made: &[Made],
    terms: Terms<'_>,
    policy: &Policy,
) -> Ruled {
    let two = two_transfers(made.len());
    let of = |made_one: &Made| {
        let mut faults: Vec<Finding> = policy
            .enforce
            .faults(&made_one.transfer.record.findings, made_one.asked)
            .into_iter()
            .cloned()
            .collect();
        faults.extend((made.len() > 1 && policy.enforce.hops).then(|| two.clone()));
        faults
    };
    let each: Vec<Vec<Finding>> = made.iter().map(of).collect();
    let mut faults: Vec<Finding> = each.iter().flatten().cloned().collect();
    faults.dedup();
    let Some(worst) = made.iter().zip(&each).find(|(_, faults)| !faults.is_empty()).map(|(made, _)| made)
    else {
        return Ruled { ruling: Ruling::Release, faults };
    };
    let record = &worst.transfer.record;
    let answered = made.len() == reply.calls.len() && reply.calls.iter().all(|call| !call.id.is_empty());
    let ruling = if !terms.held {
        Ruling::Release
    } else if terms.may_correct && answered && run.corrected(terms.request) < policy.corrections {
        let answers = made.iter().zip(&each).map(|(made, faults)| {
            let faults = explained(faults, &made.transfer.record.facts);
            answer(&made.transfer.record.call.name, &faults.iter().collect::<Vec<_>>())
        });
        Ruling::Correct(answers.collect())
    } else if policy.naming.is_terminal(&record.call.name, Some(&worst.transfer.to)) {
        let (name, arguments) = (record.call.name.clone(), record.call.arguments.clone());
        Ruling::Redirect { call: worst.call, name, arguments }
    } else if let Some((name, arguments)) = terminal(reading, &record.handoff, policy) {
        Ruling::Redirect { call: worst.call, name, arguments }
    } else {
        Refused::of(&record.to_agent, &faults).map_or(Ruling::Release, Ruling::Refuse)
    };
    Ruled { ruling, faults }
}

/// The faults, each fact's with why it failed: its sender may read values, a log may not.
fn explained(faults: &[Finding], facts: &[Fact]) -> Vec<Finding> {
    let mut told = faults.to_vec();
    let mut failed: Vec<&Fact> = facts.iter().filter(|fact| !fact.outcome.holds()).collect();
    for fault in told.iter_mut().filter(|fault| fault.code == Code::FactNotConfirmed) {
        // Two facts may have one key: they are told in their order.
        if let Some(at) = failed.iter().position(|fact| fact.outcome.name() == fault.what) {
            fault.what = format!("{}: {}", fault.what, failed.remove(at).why);
        }
    }
    told
}

/// What becomes of each of the reply's calls.
pub(super) fn fates(reading: &Reading<'_>, reply: &Reply, made: &[Made], ruling: &Ruling) -> Vec<Fate> {
    let fate = |(place, call): (usize, &ReplyCall)| {
        let made = made.iter().find(|made| made.call == place)?;
        Some(match ruling {
            Ruling::Redirect { call: to, name, arguments } if *to == place => {
                Fate::As { name: name.clone(), arguments: arguments.clone() }
            }
            Ruling::Release => match &made.declared {
                Some(arguments) => Fate::As { name: call.name.clone(), arguments: arguments.clone() },
                None => Fate::Whole,
            },
            _ => Fate::Drop,
        })
    };
    let other = |call: &ReplyCall| {
        // Half a transfer is no transfer.
        if reading.offers_tool(&call.name) { Fate::Drop } else { Fate::Whole }
    };
    reply.calls.iter().enumerate().map(|(n, call)| fate((n, call)).unwrap_or_else(|| other(call))).collect()
}

/// Puts the transfers into the run as the ruling says. Gives those that wait for a receiver, and those that
/// were refused, by their hops.
pub(super) fn keep(
    run: &mut Run,
    made: Vec<Made>,
    ruling: &Ruling,
    terms: Terms<'_>,
    policy: &Policy,
) -> (Vec<u32>, Vec<u32>) {
    let (mut waiting, mut refused) = (Vec::new(), Vec::new());
    let release = |run: &mut Run, mut transfer: Transfer| {
        let terminal = policy.naming.is_terminal(&transfer.record.call.name, Some(&transfer.to));
        if terminal {
            // There is no receiver here: it is final when it is released.
            transfer.record.state = State::TakenUp;
        }
        let hop = run.push(transfer);
        if terminal {
            run.ended_by = Some(hop);
        }
        hop
    };
    if made.is_empty() || matches!(ruling, Ruling::Correct(_)) {
        return (waiting, refused);
    }
    run.supersede(terms.request);
    for Made { call, transfer, .. } in made {
        match ruling {
            Ruling::Release | Ruling::Correct(_) => waiting.push(release(run, transfer)),
            Ruling::Refuse(_) => refused.push(run.push_refused(transfer)),
            Ruling::Redirect { call: to, name, arguments } => {
                if *to == call && *name == transfer.record.call.name {
                    waiting.push(release(run, transfer));
                    continue;
                }
                if *to == call {
                    waiting.push(release(run, redirected(&transfer, name, arguments)));
                }
                refused.push(run.push_refused(transfer));
            }
        }
    }
    (waiting, refused)
}

/// The same transfer, to the terminal tool.
fn redirected(transfer: &Transfer, name: &str, arguments: &str) -> Transfer {
    let mut other = transfer.clone();
    other.call = transfer_mark(&transfer.record.call.id, name, arguments);
    name.clone_into(&mut other.record.call.name);
    arguments.clone_into(&mut other.record.call.arguments);
    other.to = Destination::of_tool(name);
    other.record.to_agent = other.to.name.clone();
    other.delegated = Vec::new();
    other.generated = None;
    other
}

pub(super) fn two_transfers(count: usize) -> Finding {
    Finding::new(Code::TwoTransfers, "tool_calls", format!("{count} transfers"))
}
