//! What a finished exchange teaches: the run's agents, its log, the ways to
//! find it again, and the transfers that the reply made.

mod made;

use std::sync::Arc;

use super::custody::log::Log;
use super::custody::run::{Run, Transfer};
use super::decide::{Circumstances, learn_list, note_turns};
use super::event::{Code, Finding};
use super::handoff::compose;
use super::handoff::detect::announces_transfer;
use super::handoff::inject::Asked;
use super::handoff::speaker::{Speaker, Voice};
use super::hash::Hash;
use super::policy::Policy;
use super::read::{
    Lookup, Nobody, Reading, call_lineage, header_lookup, resent_lookup, response_lookup, text_lineage,
    transfer_lookup, turns_lookup, words_lookup, words_of_turns_lookup,
};
use super::record::{Correction, State};
use super::reply::{Fate, Finish, Reply};
use super::ruling::Ruling;
use super::signal::{Sign, Signal, behind};
use made::{Ruled, fates, keep, made, rule, two_transfers};

/// What is to be stored after an exchange.
#[derive(Debug)]
pub struct Learned {
    /// The run, brought up to date.
    pub run: Arc<Run>,
    /// Its log; the same as before, if it learned nothing.
    pub log: Arc<Log>,
    /// The ways to find it from now on.
    pub lookups: Vec<Lookup>,
    /// The transfers that wait for their receiver, by their `hop`.
    pub transfers: Vec<u32>,
    /// Those that were refused.
    pub refused: Vec<u32>,
    /// What becomes of the transfers.
    pub ruling: Ruling,
    /// The faults that the ruling rests on.
    pub faults: Vec<Finding>,
    /// What becomes of each of the reply's calls, if they were held: transfers only, every other call passes.
    pub fates: Vec<Fate>,
    /// What was found on the way.
    pub findings: Vec<Finding>,
    /// How many values of the holder's brief its reply was the first to use.
    pub values_used: u64,
    /// What shows for the first time that a transfer lost something.
    pub signals: Vec<Signal>,
}

/// Under what an exchange is learnt from.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The operator's run header.
    pub header: Option<&'a str>,
    /// The request, as the client sent it.
    pub request: &'a Hash,
    /// What its sender was asked.
    pub asked: Option<&'a Asked>,
    /// Whether the transfers wait for what is ruled.
    pub held: bool,
    /// Whether the sender can be asked once more.
    pub may_correct: bool,
    /// What went back to the sender already.
    pub corrections: &'a [Correction],
    /// The log learns the list when somebody asks for it: see [`may_wait`].
    pub later: bool,
}

/// Whether a run that begins with this exchange can go without its log until somebody asks for it: nothing is
/// transferred, and the list holds all that was said.
pub fn may_wait(reading: &Reading<'_>, reply: &Reply) -> bool {
    reading.transfers.is_empty()
        && !reading.view.is_delta()
        && !reading.view.server_state.stores
        && !reply.calls.iter().any(|call| reading.offers_tool(&call.name))
}

/// The log of a run that began with an exchange that could wait.
pub fn late_log(reading: &Reading<'_>, run: &Run, request: &Hash, at: Circumstances<'_>) -> Log {
    let mut log = Log::default();
    learn_list(&mut log, reading, run, at);
    log.note_read(request);
    log
}

/// Learns from an exchange. `run` and `log` are as stored now, or new.
pub fn learn(
    reading: &Reading<'_>,
    reply: &Reply,
    mut run: Run,
    mut log: Arc<Log>,
    terms: Terms<'_>,
    at: Circumstances<'_>,
) -> Learned {
    let begins = run.agents.is_empty();
    let speaker = run.admit(&reading.print, &reading.introduction());
    spend(&mut run, reading, reply, at);
    let first_reply = note_reply(&mut run, speaker, at);
    let voices = reading.voices(&run);
    let turns = log.customer_turns().count();
    if !terms.later && (reading.view.is_delta() || !log.has_read(terms.request)) {
        let log = Arc::make_mut(&mut log);
        learn_list(log, reading, &run, at);
        log.note_read(terms.request);
    }
    let unanswered = run.turn_open && turns > 0 && log.customer_turns().count() > turns;
    note_turns(&mut run, &log, reading, &voices, at.body);
    let mut lookups: Vec<Lookup> = terms.header.map(header_lookup).into_iter().collect();
    // Nothing else finds a run whose first request comes again.
    lookups.extend(begins.then(|| resent_lookup(terms.request)));
    let mut findings = reply.findings.clone();
    lookups.extend(reply_lookups(reading, reply, &log, &voices));
    for thought in &reply.reasoning {
        run.note_thought(&thought.id, reading.view.model.as_deref().unwrap_or(&reply.model));
    }

    let made = made(reading, reply, &run, &log, speaker, terms, at);
    for call in reply.calls.iter().filter(|call| !reading.offers_tool(&call.name)) {
        lookups.push(call_lineage(&call.id, &call.name, &call.arguments));
    }
    if made.len() > 1 {
        findings.push(two_transfers(made.len()));
    }
    findings.extend(odd_reply(reading, reply));
    let says_only = made.is_empty() && reply.calls.is_empty();
    let announced = says_only && !reading.offers.is_empty() && announces_transfer(&reply.text);
    if announced {
        let what = "the reply says that it transfers and calls no transfer tool";
        findings.push(Finding::new(Code::AnnouncedNotExecuted, "content", what));
    }
    if made.is_empty() {
        add_parting_words(&mut run, speaker, &reply.text, at);
    }
    let ruled = rule(reading, reply, &run, &made, terms, at.policy);
    let is_held_back = matches!(ruled.ruling, Ruling::Correct(_));
    if is_held_back {
        run.note_correction(*terms.request);
        if reading.view.server_state.stores && !reply.id.is_empty() {
            run.note_replaced(terms.request, &reply.id);
        }
        unnote_reply(&mut run, speaker);
    } else if first_reply && made.len() == 1 && reply.calls.len() == 1 {
        decline(&mut run, &made[0].transfer, &ruled.ruling, at.policy);
    }
    let reaches_client = matches!(ruled.ruling, Ruling::Release | Ruling::Redirect { .. });
    if reaches_client && !reply.id.is_empty() {
        run.note_given(terms.request, &reply.id);
    }
    let values_used = if reaches_client { note_used(&mut run, speaker, reply) } else { 0 };
    let signals = if reaches_client {
        losses(&mut run, &log, reply, speaker, [unanswered, announced])
    } else {
        Vec::new()
    };
    let fates = fates(reading, reply, &made, &ruled.ruling);
    let (transfers, refused) = keep(&mut run, made, &ruled.ruling, terms, at.policy);
    for transfer in run.transfers.iter().filter(|transfer| transfers.contains(&transfer.record.hop)) {
        lookups.push(transfer_lookup(&transfer.call));
        lookups.extend(transfer.delegated.iter().filter_map(|text| words_lookup(text)));
    }
    if transfers.is_empty() {
        // Nobody waits for a receiver.
    } else if reading.view.is_delta() {
        lookups.push(words_of_turns_lookup(log.customer_turns()));
    } else {
        // As the receiver's client will show the turns: it does not know this run's names.
        lookups.push(turns_lookup(&reading.voices(&Nobody)));
    }
    if reading.view.server_state.stores && !is_held_back {
        // The next request may show nothing of it.
        let kept = reply.calls.iter().filter(|call| call.complete && !reading.offers_tool(&call.name));
        Arc::make_mut(&mut log).learn_reply(kept, if transfers.is_empty() { &reply.text } else { "" });
    }
    if speaker.is_some() && !reading.is_bystander() {
        run.turn_open = !reply.calls.is_empty();
    }
    let Ruled { ruling, faults } = ruled;
    let run = Arc::new(run);
    Learned { run, log, lookups, transfers, refused, ruling, faults, fates, findings, values_used, signals }
}

/// Notes what shows that a transfer lost something: in the reply, and whether the customer was left `unanswered`
/// and a transfer `announced` only. Gives what is new.
fn losses(
    run: &mut Run,
    log: &Log,
    reply: &Reply,
    speaker: Option<usize>,
    [unanswered, announced]: [bool; 2],
) -> Vec<Signal> {
    let hop = run.holder.map_or(0, |holder| holder.hop);
    let mut signals = behind(run, log, reply, speaker);
    signals.extend(unanswered.then(|| Signal::new(Sign::Unanswered, hop, "")));
    signals.extend(announced.then(|| Signal::new(Sign::AnnouncedNotMade, hop, "")));
    run.note_signals(signals)
}

/// Notes which values of its brief the holder's reply uses, and gives how many it is the first to use.
fn note_used(run: &mut Run, speaker: Option<usize>, reply: &Reply) -> u64 {
    let Some(holder) = run.holder.filter(|holder| Some(holder.agent) == speaker) else { return 0 };
    let Some(transfer) = run.transfer_mut(holder.hop) else { return 0 };
    let says = |value: &str| {
        stands_in(&reply.text, value) || reply.calls.iter().any(|call| stands_in(&call.arguments, value))
    };
    let facts = transfer.record.facts.iter().enumerate();
    let used: Vec<usize> = facts
        .filter(|(at, fact)| !transfer.used.contains(at) && says(&fact.claim.value.text))
        .map(|(at, _)| at)
        .collect();
    transfer.used.extend(&used);
    used.len() as u64
}

/// Whether a value stands in a text by itself, not as part of a longer word or number.
fn stands_in(text: &str, value: &str) -> bool {
    // One letter or digit stands in any text.
    value.len() > 1
        && text.match_indices(value).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + value.len()..].chars().next();
            !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
        })
}

/// The ways in which a later request shows this reply, or names it.
fn reply_lookups(reading: &Reading<'_>, reply: &Reply, log: &Log, voices: &[Voice<'_>]) -> Vec<Lookup> {
    let shown = voices.iter().rev().find(|voice| voice.speaker == Speaker::Customer);
    let last_words = match shown {
        Some(voice) => voice.words.as_ref(),
        None if reading.view.is_delta() => log.customer_turns().next_back().unwrap_or_default(),
        None => "",
    };
    let mut lookups = reading.held_lookups();
    lookups.extend(text_lineage(&reply.text, last_words));
    if reading.view.server_state.stores && !reply.id.is_empty() {
        lookups.push(response_lookup(&reply.id));
    }
    lookups
}

/// What a reply should not be, whoever made it: of no words and no call, or a call of what nobody offered.
fn odd_reply(reading: &Reading<'_>, reply: &Reply) -> Vec<Finding> {
    let silent =
        [&reply.text, &reply.refusal].iter().all(|said| said.trim().is_empty()) && reply.calls.is_empty();
    if silent && reply.ended && matches!(reply.finish, Some(Finish::Stop) | None) {
        return vec![Finding::new(Code::EmptyTurn, "content", "the reply has neither text nor calls")];
    }
    let offered = |name: &str| reading.view.tools.iter().any(|tool| tool.name == name);
    let foreign = reply.calls.iter().filter(|call| !call.name.is_empty() && !offered(&call.name));
    let what = "the request offers no such tool";
    foreign.map(|call| Finding::new(Code::ForeignTool, bounded(&call.name), what)).collect()
}

/// A name as a finding repeats it.
fn bounded(name: &str) -> String {
    name.chars().take(80).collect()
}

/// Adds what the exchange cost.
fn spend(run: &mut Run, reading: &Reading<'_>, reply: &Reply, at: Circumstances<'_>) {
    let said: usize = reply.calls.iter().map(|call| call.arguments.len()).sum::<usize>() + reply.text.len();
    let bytes = (reading.view.items.iter().map(|item| item.text.len()).sum(), said);
    run.spent.add(reply.usage, bytes, &reply.model, &at.policy.allowance.prices);
}

/// The holder was heard of. Gives whether this was its first reply since it took the run up.
fn note_reply(run: &mut Run, speaker: Option<usize>, at: Circumstances<'_>) -> bool {
    let Some(holder) = run.holder.as_mut().filter(|holder| speaker == Some(holder.agent)) else {
        return false;
    };
    holder.seen = at.now;
    holder.replies = holder.replies.saturating_add(1);
    holder.replies == 1 && holder.hop != 0
}

/// What was noted is taken back: the reply goes back to the sender, and the client sees none of it.
fn unnote_reply(run: &mut Run, speaker: Option<usize>) {
    if let Some(holder) = run.holder.as_mut().filter(|holder| speaker == Some(holder.agent)) {
        holder.replies = holder.replies.saturating_sub(1);
    }
}

/// A receiver whose first reply gives the run back to its sender, before any other call, declines.
fn decline(run: &mut Run, made: &Transfer, ruling: &Ruling, policy: &Policy) {
    let terminal = policy.naming.is_terminal(&made.record.call.name, Some(&made.to));
    if terminal || *ruling != Ruling::Release {
        return;
    }
    let Some(held) = run.held() else { return };
    let (hop, sender) = (held.record.hop, held.sender);
    let by_name = held.record.from_agent.as_deref().is_some_and(|sender| made.to.is(sender));
    if !by_name && !sender.is_some_and(|sender| run.is_named(sender, &made.to)) {
        return;
    }
    if let Some(held) = run.transfer_mut(hop) {
        held.record.state = State::Declined;
        let what = "its first reply gives the run back";
        let place = held.record.to_agent.clone();
        held.record.findings.push(Finding::new(Code::Declined, place, what));
    }
}

/// What a sender says after its transfer call and before the receiver comes (strands asks it once more)
/// belongs to its parting words.
fn add_parting_words(run: &mut Run, speaker: Option<usize>, text: &str, at: Circumstances<'_>) {
    let Some(speaker) = speaker else { return };
    let Some(hop) = run.pending(at.now).find(|t| t.sender == Some(speaker)).map(|t| t.record.hop) else {
        return;
    };
    if let Some(transfer) = run.transfer_mut(hop) {
        transfer.record.parting_words.extend(compose::parting(text));
        transfer.record.parting_words.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_used_where_it_stands_by_itself() {
        let check =
            |text: &str, value: &str, expected| assert_eq!(stands_in(text, value), expected, "{text}");
        check("Your order 41182 is on its way.", "41182", true);
        check(r#"{"order":"41182"}"#, "41182", true);
        check("411820 and 141182", "41182", false);
        check("411820, then 41182", "41182", true);
        check("a", "a", false);
        check("für 41182€", "41182", true);
    }
}
