//! An agent that had the run before and is not its holder: the customer or the
//! client may have brought it back, or it goes on though it should not.

use std::sync::Arc;

use super::{Action, Circumstances, Decision, Pass, rewrite_for_holder};
use crate::engine::custody::agent::Recognised;
use crate::engine::custody::run::{Holder, Run};
use crate::engine::event::{Code, Finding};
use crate::engine::handoff::detect::{is_confirmation, is_refusal};
use crate::engine::handoff::speaker::Speaker;
use crate::engine::read::Reading;
use crate::engine::record::State;

/// Milliseconds after which a holder that was not heard of has lost the run.
const SILENCE_MS: u64 = 30 * 60 * 1000;

/// Decides about a request that is neither the holder's nor a receiver's.
pub(super) fn other(reading: &Reading<'_>, mut run: Arc<Run>, at: Circumstances<'_>) -> Decision {
    let watch = !reading.offers.is_empty() || !run.agents.is_empty();
    let forward = |run: Arc<Run>| {
        let known = !run.agents.is_empty();
        Decision::forward(Pass::NotReceiver, known.then_some(run), watch)
    };
    let (Recognised::Known(agent), Some(holder)) = (run.recognise(&reading.print), run.holder) else {
        return forward(run);
    };
    if !run.has_held(agent) || has_answer_of_its_own(reading, &run, agent) {
        return forward(run);
    }
    let silent = at.now.0.saturating_sub(holder.seen.0) > SILENCE_MS;
    if !silent && !is_new_turn(reading, &run) {
        let what = "it had the run before, and another agent holds it now";
        let finding = Finding::new(Code::NotHolder, name(&run, agent), what);
        let mut decision = forward(run);
        if at.policy.enforce.custody {
            decision.action = Action::Refuse(finding.clone());
        }
        decision.findings.push(finding);
        return decision;
    }
    let what =
        if silent { "the holder was silent for half an hour" } else { "the customer spoke, and it answers" };
    let finding = Finding::new(Code::Rerouted, name(&run, agent), what);
    let hop = run.last_received(agent);
    Arc::make_mut(&mut run).holder = Some(Holder { agent, hop, seen: at.now, replies: 0 });
    let mut decision = if run.held().is_some_and(|held| held.record.brief.is_some()) {
        rewrite_for_holder(reading, run, at)
    } else {
        forward(run)
    };
    decision.changed = true;
    decision.findings.push(finding);
    decision
}

/// Whether a call that the agent made itself has come back to it with an answer: the run was lent, not given.
fn has_answer_of_its_own(reading: &Reading<'_>, run: &Run, agent: usize) -> bool {
    let Some(held) = run.held().filter(|held| held.sender == Some(agent)) else { return false };
    let visible = reading.transfers.iter().rev().find(|visible| visible.mark == held.call);
    visible.and_then(|visible| visible.result).is_some_and(|result| {
        let text = &reading.view.items[result].text;
        is_confirmation(text).is_none() && !is_refusal(text)
    })
}

/// Whether the customer has spoken since the run was last heard of.
fn is_new_turn(reading: &Reading<'_>, run: &Run) -> bool {
    let voices = reading.voices(run);
    let last = voices.iter().rev().find(|voice| voice.speaker == Speaker::Customer);
    last.is_some_and(|last| run.latest.as_ref().is_none_or(|known| known.words != last.words))
}

fn name(run: &Run, agent: usize) -> &str {
    run.agents[agent].name.as_deref().unwrap_or("unnamed")
}

impl Run {
    /// Whether an agent has had the run: as a receiver, or as the sender of a transfer that was taken up.
    fn has_held(&self, agent: usize) -> bool {
        self.transfers.iter().filter(|transfer| transfer.record.state != State::Pending).any(|transfer| {
            transfer.receiver == Some(agent)
                || (transfer.receiver.is_some() && transfer.sender == Some(agent))
        })
    }

    /// The last transfer that this agent took up, by its `hop`; 0 if there is none.
    fn last_received(&self, agent: usize) -> u32 {
        let received = self.transfers.iter().rev().find(|transfer| transfer.receiver == Some(agent));
        received.map_or(0, |transfer| transfer.record.hop)
    }
}
