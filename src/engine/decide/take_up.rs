//! The receiver's first request: custody moves, the handoff is made whole, the
//! brief is rendered once and frozen.

use super::whose::group_end;
use super::{Action, Circumstances, Decision, Pass};
use crate::engine::custody::log::Log;
use crate::engine::custody::run::{Boundary, Fit, Holder, Run, TURNS, Transfer, Turn};
use crate::engine::event::{Code, Finding};
use crate::engine::handoff::compose::{self, Asking, Composed, Receiver};
use crate::engine::handoff::detect::{Destination, Spelled, is_confirmation};
use crate::engine::handoff::rebuild::{self, Ends, Foreign, Lacks, Rebuilt};
use crate::engine::handoff::speaker::{Speaker, Voice};
use crate::engine::handoff::{brief, transcript};
use crate::engine::hash;
use crate::engine::odd::odd_list;
use crate::engine::policy::Contract;
use crate::engine::read::{Reading, Visible, delegated, turn_hash};
use crate::engine::record::{LeftOut, Origin, Record, State, Tokens, TransferCall, VERSION};
use crate::engine::time::Timestamp;
use crate::engine::view::Role;

/// Bytes kept of a customer turn's element, to put it back.
const TURN_CAP: usize = 64 << 10;

/// A transfer call, wherever it was seen.
pub struct SeenTransfer<'a> {
    /// The call's id.
    pub id: &'a str,
    /// The tool's name.
    pub name: &'a str,
    /// The arguments, as the client sees them.
    pub arguments: &'a str,
    /// What the sender said, where it is more than these.
    pub said: Option<&'a str>,
    /// Who asked it for a contract.
    pub asking: Asking,
    /// What it is found by.
    pub mark: hash::Hash,
    /// Where it goes.
    pub to: Option<Destination>,
    /// The sender's name, where a client wrote it beside the call.
    pub from_name: Option<&'a str>,
    /// The text beside the call.
    pub beside: &'a str,
}

/// The transfer that a call makes, pending: what the sender said, checked against what the run shows.
pub fn transfer(
    run: &Run,
    log: &Log,
    seen: SeenTransfer<'_>,
    sender: Option<usize>,
    at: Circumstances<'_>,
) -> Transfer {
    let whole = run.whole && !log.cut;
    let said = seen.said.unwrap_or(seen.arguments);
    let Composed { origin, handoff, facts, findings } =
        compose::compose(said, seen.asking, log, whole, at.body, at.policy, at.now);
    let to = seen.to.unwrap_or_else(|| Destination {
        name: seen.name.to_owned(),
        uncounted: None,
        from: Spelled::InName,
    });
    let mut turns = log.customer_turns();
    let objective = turns.next().map(str::to_owned);
    let latest_request = turns.next_back().map(str::to_owned);
    let known_name = sender.and_then(|sender| run.agents[sender].name.clone());
    let hop = run.next_hop();
    Transfer {
        record: Record {
            version: VERSION,
            id: format!("{}-{hop}", run.id),
            run: run.id.clone(),
            from_agent: known_name.or_else(|| seen.from_name.map(str::to_owned)),
            to_agent: to.name.clone(),
            visited: run.visited(),
            hop,
            state: State::Pending,
            at: at.now,
            call: TransferCall {
                id: seen.id.to_owned(),
                name: seen.name.to_owned(),
                arguments: seen.arguments.to_owned(),
            },
            origin,
            objective,
            latest_request,
            handoff,
            facts,
            actions_taken: Vec::new(),
            budget: None,
            parting_words: compose::parting(seen.beside).into_iter().collect(),
            left_out: LeftOut::default(),
            findings,
            tokens: Tokens::default(),
            brief: None,
            corrections: Vec::new(),
        },
        to,
        sender,
        receiver: None,
        fit: Fit::None,
        call: seen.mark,
        delegated: delegated(seen.arguments),
        boundary: None,
        put_back: Vec::new(),
        turn: log.customer_turns().next_back().map(str::to_owned),
        results: 0,
        expires: at.now.plus_ms(at.policy.pending_ms),
        taken_up_at: None,
        shadow: false,
        trace: None,
        used: Vec::new(),
        generated: None,
        request: None,
    }
}

/// Takes up a transfer that waited.
pub(super) fn take_up(
    reading: &Reading<'_>,
    run: Run,
    hop: u32,
    agent_fit: Fit,
    at: Circumstances<'_>,
) -> Decision {
    let mut log = (at.log)(&run.id);
    learn_list(&mut log, reading, &run, at);
    with_log(reading, run, &log, hop, agent_fit, at)
}

/// Makes a record of a transfer that only the list shows, and takes it up.
pub(super) fn take_up_unseen(
    reading: &Reading<'_>,
    mut run: Run,
    visible: &Visible,
    agent_fit: Fit,
    at: Circumstances<'_>,
) -> Decision {
    let mut log = (at.log)(&run.id);
    learn_list(&mut log, reading, &run, at);
    let item = &reading.view.items[visible.item];
    let call = &item.calls[visible.call];
    let seen = SeenTransfer {
        id: &call.id,
        name: &call.name,
        arguments: &call.arguments,
        said: None,
        asking: Asking::Nobody,
        mark: visible.mark,
        to: visible.to.clone(),
        from_name: item.name.as_deref(),
        beside: &item.text,
    };
    let transfer = transfer(&run, &log, seen, None, at);
    let hop = run.push(transfer);
    with_log(reading, run, &log, hop, agent_fit, at)
}

/// `log` holds what the request shows.
fn with_log(
    reading: &Reading<'_>,
    mut run: Run,
    log: &Log,
    hop: u32,
    agent_fit: Fit,
    at: Circumstances<'_>,
) -> Decision {
    let Some(agent) = run.admit(&reading.print, &reading.introduction()) else {
        return Decision::forward(Pass::AgentUnclear, Some(run.into()), false);
    };
    let voices = owned(reading.voices(&run));
    note_turns(&mut run, log, reading, &voices, at.body);
    let whole = run.whole && !log.cut;
    let turns = [run.opening.clone(), run.latest.clone()];
    let hops = run.since_turn().count() as u32 + 1;
    let budget = at.policy.allowance.left(run.spent, hops, run.begun);
    let lifted = run.ledger.lift(&log.customer_turns());
    let ledger = run.ledger.clone();
    let Some(place) = run.transfers.iter().rposition(|transfer| transfer.record.hop == hop) else {
        return Decision::forward(Pass::NotReceiver, Some(run.into()), true);
    };
    let sender = run.transfers[place].sender.map(|sender| run.agents[sender].print.clone());
    let thoughts = rebuild::foreign_thoughts(reading, &run, &at.policy.unthinking);
    let others = Foreign { sender: sender.as_ref(), thoughts: &thoughts };
    let transfer = &mut run.transfers[place];
    if at.policy.contract == Contract::Read && transfer.record.origin == Origin::Derived {
        return Decision::forward(Pass::NoContract, Some(run.into()), true);
    }
    let end = set_boundary(transfer, reading);
    transfer.results = log.results();
    transfer.record.budget = budget;
    for text in lifted {
        let place: String = text.chars().take(80).collect();
        let what = "the customer took it back";
        transfer.record.findings.push(Finding::new(Code::ConstraintLifted, place, what));
    }
    compose::carry(&mut transfer.record, &ledger, log, whole, at.policy);
    compose::complete(&mut transfer.record, log, whole, &Receiver::of(&reading.view), at.policy);
    let rebuilt = fill(transfer, reading, &voices, end, others, at);
    transfer.put_back = match rebuilt.lacks {
        Lacks::Nothing => Vec::new(),
        Lacks::All => raw_turns(&turns),
        Lacks::Last => raw_turns(&turns[1..]),
    };
    let put_back = transfer.put_back.clone();
    let text = freeze(transfer, &rebuilt);
    transfer.taken_up_at = Some(at.now);
    transfer.receiver = Some(agent);
    transfer.fit = agent_fit;
    let findings = transfer.record.findings.clone();
    move_custody(&mut run, place, agent, hop, at.now);
    Decision {
        action: Action::Rewrite(Box::new(rebuilt.with(text, &put_back))),
        run: Some(run.into()),
        changed: true,
        hop: Some(hop),
        watch: true,
        ask: None,
        findings,
    }
}

/// Adds to the log what the request shows, all of the conversation or the end of it.
pub fn learn_list(log: &mut Log, reading: &Reading<'_>, run: &Run, at: Circumstances<'_>) {
    let (items, voices) = (&reading.view.items, reading.voices(run));
    // What a client's own tool took as the contract is said, not found out.
    let is_transfer = |item: usize, call: usize| {
        reading.is_transfer(item, call) || at.policy.is_submit(&items[item].calls[call].name)
    };
    if reading.view.is_delta() {
        log.learn_delta(items, &voices, is_transfer, at.now, run.turn_open);
    } else {
        log.learn(items, &voices, is_transfer, at.now);
    }
}

/// Where the part that is filtered ends, kept for the holder's later requests.
fn set_boundary(transfer: &mut Transfer, reading: &Reading<'_>) -> usize {
    let items = &reading.view.items;
    if reading.view.is_delta() {
        let answer =
            items.iter().rev().find(|item| item.answers.as_deref() == Some(&transfer.record.call.id));
        if let Some(name) = answer.and_then(|answer| confirmed_name(&answer.text, &transfer.to)) {
            transfer.record.to_agent = name;
        }
        return 0;
    }
    let Some(visible) = reading.transfers.iter().rev().find(|visible| visible.mark == transfer.call) else {
        let count = items.iter().filter(|item| item.role != Role::System).count();
        transfer.boundary = Some(Boundary::Hidden { count, prefix: hash::prefix(items, count) });
        return items.len();
    };
    transfer.boundary = Some(Boundary::Visible);
    let item = &items[visible.item];
    if transfer.record.from_agent.is_none() {
        transfer.record.from_agent = item.name.as_deref().map(str::to_owned);
    }
    let answer = visible.result.map(|result| &items[result]);
    if let Some(name) = answer.and_then(|answer| confirmed_name(&answer.text, &transfer.to)) {
        transfer.record.to_agent = name;
    }
    group_end(reading, visible)
}

/// The agent's real name, where the transfer's result has it: tool names are normalised one way.
fn confirmed_name(result: &str, to: &Destination) -> Option<String> {
    is_confirmation(result)?.agent.filter(|name| to.is(name))
}

/// Fills in what only the receiver's own request tells.
fn fill(
    transfer: &mut Transfer,
    reading: &Reading<'_>,
    voices: &[Voice<'_>],
    end: usize,
    others: Foreign<'_>,
    at: Circumstances<'_>,
) -> Rebuilt {
    let record = &mut transfer.record;
    let latest = voices.iter().rev().find(|voice| voice.speaker == Speaker::Customer);
    if let Some(latest) = latest.filter(|voice| record.objective.as_deref() != Some(&*voice.words)) {
        record.latest_request = Some(latest.words.clone().into_owned());
    }
    let ends = Ends { taken_up: end, filtered: end };
    let rebuilt = rebuild::rebuild(reading, voices, ends, others, at.policy);
    record.left_out = rebuilt.left_out;
    record.findings.extend(rebuilt.findings.iter().cloned());
    record.findings.extend(odd_list(reading));
    for words in rebuilt.parting(voices) {
        if !record.parting_words.contains(&words) {
            record.parting_words.push(words);
        }
    }
    rebuilt
}

/// Renders the brief. From here on it does not change while the receiver holds the run.
fn freeze(transfer: &mut Transfer, rebuilt: &Rebuilt) -> String {
    let record = &mut transfer.record;
    record.state = State::TakenUp;
    let text = brief::render(record);
    let brief_tokens = (text.len() / transcript::BYTES_A_TOKEN) as u64;
    record.tokens = Tokens { before: rebuilt.tokens_before, after: rebuilt.tokens_after + brief_tokens };
    record.brief = Some(text.clone());
    text
}

/// The receiver holds the run from now on.
fn move_custody(run: &mut Run, place: usize, agent: usize, hop: u32, now: Timestamp) {
    let transfer = &run.transfers[place];
    let (to, from, sender) =
        (transfer.record.to_agent.clone(), transfer.record.from_agent.clone(), transfer.sender);
    run.agents[agent].name.get_or_insert(to);
    if let (Some(sender), Some(from)) = (sender, from) {
        run.agents[sender].name.get_or_insert(from);
    }
    // What else waited has been passed over: control went here.
    for other in run.transfers.iter_mut().filter(|other| other.record.state == State::Pending) {
        other.record.state = State::Expired;
    }
    if run.holder.is_none_or(|holder| (holder.agent, holder.hop) != (agent, hop)) {
        run.hops += 1;
        run.holder = Some(Holder { agent, hop, seen: now, replies: 0 });
    }
    run.ledger.settle(&run.transfers[place].record);
}

/// Keeps the opening and the last customer turn as the bytes first seen.
pub fn note_turns(run: &mut Run, log: &Log, reading: &Reading<'_>, voices: &[Voice<'_>], body: &[u8]) {
    let customer = |at: &usize| voices[*at].speaker == Speaker::Customer;
    let turn = |at: usize| {
        let raw = body.get(reading.view.items[at].span.clone()).filter(|raw| raw.len() <= TURN_CAP);
        let raw = raw.and_then(|raw| str::from_utf8(raw).ok()).map(str::to_owned);
        Turn { words: voices[at].words.clone().into_owned(), raw }
    };
    let turns = if reading.view.is_delta() && !log.cut {
        log.customer_turns().map(turn_hash).collect()
    } else {
        reading.turns(voices)
    };
    if turns.len() > run.turns.len() && run.continues(&turns) {
        run.turns = turns;
        run.turns.truncate(TURNS);
    }
    if run.opening.is_none() {
        run.opening = (0..voices.len()).find(customer).map(turn);
    }
    if let Some(last) = (0..voices.len()).rev().find(customer).map(turn)
        && run.latest.as_ref().is_none_or(|known| known.words != last.words)
    {
        run.latest = Some(last);
    }
}

fn raw_turns(turns: &[Option<Turn>]) -> Vec<String> {
    let mut raw: Vec<String> = turns.iter().flatten().filter_map(|turn| turn.raw.clone()).collect();
    raw.dedup();
    raw
}

fn owned(voices: Vec<Voice<'_>>) -> Vec<Voice<'static>> {
    voices
        .into_iter()
        .map(|voice| Voice { speaker: voice.speaker, words: voice.words.into_owned().into() })
        .collect()
}
