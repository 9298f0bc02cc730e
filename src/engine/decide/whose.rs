//! Whose request it is: the holder's, a receiver's, or somebody's that a
//! transfer in the list does not make a receiver.

use crate::engine::custody::agent::Recognised;
use crate::engine::custody::run::{Boundary, Fit, Run, Transfer};
use crate::engine::handoff::detect::{Destination, Offered, is_refusal};
use crate::engine::handoff::rebuild::Ends;
use crate::engine::hash;
use crate::engine::read::{Reading, Visible};
use crate::engine::record::State;
use crate::engine::time::Timestamp;
use crate::engine::view::Role;

pub(super) enum Whose {
    /// The agent that holds the run.
    Holder,
    /// The receiver of a transfer that waits.
    TakesUp { hop: u32, agent_fit: Fit },
    /// The receiver of a visible transfer that Seam did not see happen.
    Unseen { visible: Visible, agent_fit: Fit },
    /// A sender's, or somebody else's.
    Other,
    /// It cannot be told.
    Unclear,
}

pub(super) fn whose(reading: &Reading<'_>, run: &Run, now: Timestamp) -> Whose {
    let agent = run.recognise(&reading.print);
    if agent == Recognised::Unclear {
        return if run.transfers.is_empty() { Whose::Other } else { Whose::Unclear };
    }
    if run.holder.is_some_and(|holder| agent == Recognised::Known(holder.agent)) {
        return Whose::Holder;
    }
    let last = reading.last_answered();
    let by_last = last.and_then(|visible| run.by_call(&visible.mark));
    let mut best = (Fit::None, 0);
    for transfer in run.pending(now).filter(|transfer| !is_passed_over(reading, transfer, by_last)) {
        let tail = is_tail(reading, last) || is_answered_last(reading, transfer);
        let fit = fit(reading, run, agent, &transfer.to, transfer.sender, tail);
        // The newest of those that fit alike.
        if fit > best.0 {
            best = (fit, transfer.record.hop);
        }
    }
    if let (agent_fit @ (Fit::Plausible | Fit::Named), hop) = best {
        return Whose::TakesUp { hop, agent_fit };
    }
    let Some(visible) = last else { return Whose::Other };
    match by_last {
        Some(known) => {
            let fit = fit(reading, run, agent, &known.to, known.sender, is_tail(reading, last));
            let free = known.record.state == State::Expired;
            // Whoever came first may have been a bystander: the one that fits better has it.
            if fit > Fit::None && (free || fit > known.fit) {
                Whose::TakesUp { hop: known.record.hop, agent_fit: fit }
            } else {
                Whose::Other
            }
        }
        None if is_behind_boundary(reading, run, visible) => {
            let Some(to) = &visible.to else { return Whose::Other };
            let fit = fit(reading, run, agent, to, None, is_tail(reading, last));
            // Whoever still offers a transfer to anybody may be the sender, asked once more: nobody saw it send.
            let open = reading.offers.iter().any(|offer| offer.to == Offered::Open);
            if fit > if open { Fit::Plausible } else { Fit::None } {
                Whose::Unseen { visible: visible.clone(), agent_fit: fit }
            } else {
                Whose::Other
            }
        }
        None => Whose::Other,
    }
}

/// Whether the list shows that control did not go this transfer's way: another one was answered after it, or in
/// its place, or the client refused it.
fn is_passed_over(reading: &Reading<'_>, transfer: &Transfer, by_last: Option<&Transfer>) -> bool {
    if by_last.is_some_and(|answered| answered.record.hop > transfer.record.hop) {
        return true;
    }
    let Some(shown) = reading.transfers.iter().rev().find(|visible| visible.mark == transfer.call) else {
        return false;
    };
    match shown.result {
        Some(result) => is_refusal(&reading.view.items[result].text),
        None => by_last.is_some_and(|answered| answered.record.state == State::Pending),
    }
}

/// Whether a transfer stands behind what the holder already answered for.
fn is_behind_boundary(reading: &Reading<'_>, run: &Run, visible: &Visible) -> bool {
    let Some(held) = run.held() else { return true };
    match ends(reading, held) {
        Some(ends) => visible.item >= ends.filtered,
        // The holder's own list is another agent's by now; its call, if it is there, is older.
        None => reading.transfers.iter().all(|other| other.mark != held.call || other.item < visible.item),
    }
}

fn is_tail(reading: &Reading<'_>, visible: Option<&Visible>) -> bool {
    visible.is_some_and(|visible| visible.result == Some(reading.view.items.len() - 1))
}

/// Whether the list ends in the result of a transfer whose call only the upstream has.
fn is_answered_last(reading: &Reading<'_>, transfer: &Transfer) -> bool {
    let answers = reading.view.items.last().and_then(|item| item.answers.as_deref());
    reading.view.is_delta() && answers.is_some_and(|id| !id.is_empty() && id == transfer.record.call.id)
}

/// How well the request's agent fits a destination.
fn fit(
    reading: &Reading<'_>,
    run: &Run,
    agent: Recognised,
    to: &Destination,
    sender: Option<usize>,
    tail: bool,
) -> Fit {
    if let Recognised::Known(index) = agent {
        if sender == Some(index) {
            return Fit::None;
        }
        if run.agents[index].name.is_some() {
            return if run.is_named(index, to) { Fit::Named } else { Fit::None };
        }
        // Known, but by no name: an earlier agent that comes back has to show that it is meant.
        if run.is_named(index, to) {
            return Fit::Named;
        }
        let lists_others = reading.offers.iter().any(|offer| offer.to != Offered::Open);
        if !lists_others && !tail && !reading.calls_itself(to) {
            return Fit::None;
        }
    }
    if let Some(name) = &reading.print.named {
        return if to.is(name) { Fit::Named } else { Fit::None };
    }
    // An agent that still offers a transfer to X is not X.
    if reading.offers_transfer_to(to) {
        return Fit::None;
    }
    if reading.is_bystander() {
        return Fit::None;
    }
    let has_tools = !reading.view.tools.is_empty();
    match (has_tools, reading.calls_itself(to)) {
        (true, true) => Fit::Named,
        (true, false) => Fit::Plausible,
        // Title and summary calls beside the run have no tools either: only a request that answers the
        // transfer itself is taken for the receiver's.
        (false, named) if tail => {
            if named {
                Fit::Named
            } else {
                Fit::Plausible
            }
        }
        (false, _) if reading.introduces_itself(to) => Fit::Named,
        (false, _) => Fit::None,
    }
}

/// Where the receiver's part of the list begins, for a transfer that was taken up.
pub(super) fn ends(reading: &Reading<'_>, transfer: &Transfer) -> Option<Ends> {
    let visible = visible_boundary(reading, transfer);
    let taken_up = match &transfer.boundary {
        Some(Boundary::Visible) | None => visible?,
        Some(Boundary::Hidden { .. }) => hidden_boundary(reading, transfer)?,
    };
    Some(Ends { taken_up, filtered: visible.map_or(taken_up, |visible| visible.max(taken_up)) })
}

fn visible_boundary(reading: &Reading<'_>, transfer: &Transfer) -> Option<usize> {
    let visible = reading.transfers.iter().rev().find(|visible| visible.mark == transfer.call)?;
    Some(group_end(reading, visible))
}

/// Behind all that belongs to the transfer's call, and the results of the calls beside it.
pub(super) fn group_end(reading: &Reading<'_>, visible: &Visible) -> usize {
    let items = &reading.view.items;
    let end = reading.groups().end(visible.item);
    let is_beside = |at: &usize| {
        items[*at].answers.is_some()
            && reading.results.iter().any(|((call, _), result)| result == at && *call < end)
    };
    (end..items.len()).take_while(is_beside).last().map_or(end, |last| last + 1)
}

pub(super) fn hidden_boundary(reading: &Reading<'_>, transfer: &Transfer) -> Option<usize> {
    let Some(Boundary::Hidden { count, prefix }) = &transfer.boundary else { return None };
    let items = &reading.view.items;
    let end = match count {
        0 => reading.view.leading_system(),
        n => items.iter().enumerate().filter(|(_, item)| item.role != Role::System).nth(n - 1)?.0 + 1,
    };
    (hash::prefix(items, *count) == *prefix).then_some(end)
}
