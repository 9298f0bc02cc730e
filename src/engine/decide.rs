//! What to do with a request: whose it is, and if it is a receiver's, the plan
//! of its rebuilt list.

use std::collections::BTreeMap;

use super::custody::agent::Recognised;
use super::custody::log::Log;
use super::custody::run::{Boundary, Fit, Holder, Run, TURNS, Transfer, Turn};
use super::event::{Code, Finding};
use super::handoff::compose::{self, Composed};
use super::handoff::detect::{Destination, Offered, Spelled, is_confirmation};
use super::handoff::speaker::{Speaker, Voice};
use super::handoff::{brief, rebuild};
use super::hash;
use super::policy::{Contract, Policy};
use super::read::{Lookup, Nobody, Reading, Visible, Way, delegated};
use super::record::{Origin, Record, State, Tokens, TransferCall, VERSION};
use super::time::Timestamp;
use super::view::{Plan, Role};

/// A set of runs under one key that is this large says that the key is common, and tells nothing.
pub const COMMON: usize = 8;
/// Bytes kept of a customer turn's element, to put it back.
const TURN_CAP: usize = 64 << 10;

/// Why a request passed as it was. The list is closed; docs and metrics come from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pass {
    /// It neither offers nor holds a transfer, and no run knows it.
    NothingToDo,
    /// Its system slot ends in a brief already.
    AlreadyBriefed,
    /// It is a sender's, or another agent's, that did not receive the run.
    NotReceiver,
    /// Two runs fit it.
    AmbiguousRun,
    /// Its agent cannot be told from another one.
    AgentUnclear,
    /// The client declared no handoff, and nothing else was asked for.
    NoContract,
    /// The upstream is asked for several choices.
    SeveralChoices,
}

impl Pass {
    /// The name in logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Pass::NothingToDo => "nothing_to_do",
            Pass::AlreadyBriefed => "already_briefed",
            Pass::NotReceiver => "not_receiver",
            Pass::AmbiguousRun => "ambiguous_run",
            Pass::AgentUnclear => "agent_unclear",
            Pass::NoContract => "no_contract",
            Pass::SeveralChoices => "several_choices",
        }
    }
}

/// What to do with a request.
#[derive(Debug)]
pub enum Action {
    /// Forward it as it is.
    Forward(Pass),
    /// Forward it rebuilt.
    Rewrite(Box<Plan>),
}

/// What was decided.
#[derive(Debug)]
pub struct Decision {
    /// What to do with the bytes.
    pub action: Action,
    /// The run it belongs to; with `changed`, to be stored before anything is forwarded.
    pub run: Option<Run>,
    /// Whether the run was changed.
    pub changed: bool,
    /// The `hop` of the record whose brief the receiver reads.
    pub hop: Option<u32>,
    /// Whether the reply teaches something.
    pub watch: bool,
    /// What was found on the way.
    pub findings: Vec<Finding>,
}

impl Decision {
    fn forward(pass: Pass, run: Option<Run>, watch: bool) -> Self {
        let findings = match pass {
            Pass::AmbiguousRun => vec![Finding::new(Code::AmbiguousRun, "run", "two runs fit the request")],
            Pass::AgentUnclear => {
                vec![Finding::new(Code::AgentUnclear, "agent", "the agent cannot be told from another one")]
            }
            _ => Vec::new(),
        };
        Decision { action: Action::Forward(pass), run, changed: false, hop: None, watch, findings }
    }
}

/// What a look-up found: the runs by id, and which ids each way gave.
#[derive(Debug, Default)]
pub struct Found {
    /// The way, and the ids under its key.
    pub sets: Vec<(Way, Vec<String>)>,
    /// The runs that could be read.
    pub runs: BTreeMap<String, Run>,
}

/// The ids worth loading from what the look-ups gave.
pub fn candidates(sets: &[(Way, Vec<String>)]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for (_, set) in sets.iter().filter(|(way, set)| set.len() < COMMON || way.waits()) {
        for id in set {
            if ids.len() < 2 * COMMON && !ids.contains(id) {
                ids.push(id.clone());
            }
        }
    }
    ids
}

/// Pairs look-ups with what the store gave for them.
pub fn found(lookups: &[Lookup], sets: Vec<Vec<String>>) -> Vec<(Way, Vec<String>)> {
    lookups.iter().map(|lookup| lookup.way).zip(sets).filter(|(_, set)| !set.is_empty()).collect()
}

/// Everything a decision rests on beside the request and the runs.
#[derive(Clone, Copy)]
pub struct Circumstances<'a> {
    /// The operator's choices.
    pub policy: &'a Policy,
    /// When the request came.
    pub now: Timestamp,
    /// An id for a run that may have to begin here.
    pub fresh_id: &'a str,
    /// The log of a run, once it is known which.
    pub log: &'a dyn Fn(&str) -> Log,
    /// The body, to keep customer turns as the bytes first seen.
    pub body: &'a str,
}

/// Decides what to do with a request.
pub fn decide(reading: &Reading<'_>, mut found: Found, at: Circumstances<'_>) -> Decision {
    let offers = !reading.offers.is_empty();
    if reading.briefed {
        return Decision::forward(Pass::AlreadyBriefed, None, false);
    }
    if reading.view.choices > 1 {
        return Decision::forward(Pass::SeveralChoices, None, false);
    }
    let id = match locate(reading, &found, at.now) {
        Located::Ambiguous => return Decision::forward(Pass::AmbiguousRun, None, false),
        Located::Run(id) => Some(id.to_owned()),
        Located::Nowhere => None,
    };
    let run = match id.and_then(|id| found.runs.remove(&id)) {
        Some(run) => run,
        None if reading.last_answered().is_some() => Run::new(at.fresh_id.to_owned(), false),
        None => {
            let pass = if offers { Pass::NotReceiver } else { Pass::NothingToDo };
            return Decision::forward(pass, None, offers);
        }
    };
    match whose(reading, &run, at.now) {
        Whose::Holder => rewrite_for_holder(reading, run, at),
        Whose::TakesUp { hop, agent_fit } => take_up(reading, run, hop, agent_fit, at),
        Whose::Unseen { visible, agent_fit } => take_up_unseen(reading, run, &visible, agent_fit, at),
        Whose::Unclear => Decision::forward(Pass::AgentUnclear, Some(run), false),
        Whose::Other => {
            let watch = offers || !run.agents.is_empty();
            let known = !run.agents.is_empty();
            Decision::forward(Pass::NotReceiver, known.then_some(run), watch)
        }
    }
}

enum Located<'a> {
    Run(&'a str),
    Nowhere,
    Ambiguous,
}

/// Which run the request belongs to, the surest way first; two that fit are never guessed between.
fn locate<'a>(reading: &Reading<'_>, found: &'a Found, now: Timestamp) -> Located<'a> {
    let sets = |way: Way| found.sets.iter().filter(move |(other, _)| *other == way).map(|(_, set)| set);
    if let Some(id) = sets(Way::Header).find_map(|set| set.first()) {
        return Located::Run(id);
    }
    let turns = reading.turns(&reading.voices(&Nobody));
    let fits = |way: Way, id: &String| {
        // Words alone are alike in many runs: what the customer said since tells them apart.
        way != Way::Text || found.runs.get(id).is_some_and(|run| run.continues(&turns))
    };
    for way in [Way::Call, Way::Lineage, Way::Text] {
        let mut candidates: Option<Vec<&String>> = None;
        for set in sets(way).filter(|set| set.len() < COMMON) {
            let fitting: Vec<&String> = set.iter().filter(|id| fits(way, id)).collect();
            match fitting[..] {
                [only] => return Located::Run(only),
                [] => {}
                _ => candidates = candidates.or(Some(fitting)),
            }
        }
        let Some(mut fitting) = candidates else { continue };
        let by_lineage = |id: &&String| sets(Way::Lineage).chain(sets(Way::Text)).any(|set| set.contains(id));
        if way == Way::Call {
            fitting.retain(|id| by_lineage(id));
        }
        let live = |id: &&String| found.runs.get(*id).is_some_and(|run| !run.transfers.is_empty());
        return match fitting[..] {
            [only] => Located::Run(only),
            // Runs that nothing was transferred in are alike so far: this one begins anew.
            _ if !fitting.iter().any(live) && way != Way::Call => Located::Nowhere,
            _ => Located::Ambiguous,
        };
    }
    let waiting = || sets(Way::Turns).chain(sets(Way::Words));
    let mut fitting: Vec<&String> = waiting()
        .flatten()
        .filter(|id| found.runs.get(*id).is_some_and(|run| waits_for(reading, run, now)))
        .collect();
    fitting.sort_unstable();
    fitting.dedup();
    // Where too many runs open alike, the one that is meant may not even have been loaded.
    let crowded = waiting().any(|set| set.len() >= COMMON);
    match fitting[..] {
        [] => Located::Nowhere,
        [only] if !crowded => Located::Run(only),
        _ => Located::Ambiguous,
    }
}

/// Whether a run waits for this very request, or has taken it up before.
fn waits_for(reading: &Reading<'_>, run: &Run, now: Timestamp) -> bool {
    match whose(reading, run, now) {
        Whose::TakesUp { .. } => true,
        Whose::Holder => run.held().is_some_and(|held| hidden_boundary(reading, held).is_some()),
        Whose::Unseen { .. } | Whose::Other | Whose::Unclear => false,
    }
}

enum Whose {
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

fn whose(reading: &Reading<'_>, run: &Run, now: Timestamp) -> Whose {
    let agent = run.recognise(&reading.print);
    if agent == Recognised::Unclear {
        return if run.transfers.is_empty() { Whose::Other } else { Whose::Unclear };
    }
    if run.holder.is_some_and(|holder| agent == Recognised::Known(holder.agent)) {
        return Whose::Holder;
    }
    let last = reading.last_answered();
    let by_last = last.and_then(|visible| run.by_call(&visible.mark));
    for transfer in run.pending(now) {
        // A transfer that the list shows to be older than another answered one has been passed over.
        if by_last.is_some_and(|newer| newer.record.hop > transfer.record.hop) {
            continue;
        }
        let fit = fit(reading, run, agent, &transfer.to, transfer.sender, is_tail(reading, last));
        if fit > Fit::None {
            return Whose::TakesUp { hop: transfer.record.hop, agent_fit: fit };
        }
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
            if fit > Fit::None {
                Whose::Unseen { visible: visible.clone(), agent_fit: fit }
            } else {
                Whose::Other
            }
        }
        None => Whose::Other,
    }
}

/// Whether a transfer stands behind what the holder already answered for.
fn is_behind_boundary(reading: &Reading<'_>, run: &Run, visible: &Visible) -> bool {
    let Some(held) = run.held() else { return true };
    match boundary(reading, held) {
        Some(end) => visible.item >= end,
        // The holder's own list is another agent's by now; its call, if it is there, is older.
        None => reading.transfers.iter().all(|other| other.mark != held.call || other.item < visible.item),
    }
}

fn is_tail(reading: &Reading<'_>, visible: Option<&Visible>) -> bool {
    visible.is_some_and(|visible| visible.result == Some(reading.view.items.len() - 1))
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

/// Where the filtered part of the list ends for a transfer that was taken up.
fn boundary(reading: &Reading<'_>, transfer: &Transfer) -> Option<usize> {
    match &transfer.boundary {
        Some(Boundary::Visible) | None => visible_boundary(reading, transfer),
        Some(Boundary::Hidden { .. }) => hidden_boundary(reading, transfer),
    }
}

fn visible_boundary(reading: &Reading<'_>, transfer: &Transfer) -> Option<usize> {
    let visible = reading.transfers.iter().rev().find(|visible| visible.mark == transfer.call)?;
    Some(group_end(reading, visible))
}

/// Behind the transfer's message and every result of its calls.
fn group_end(reading: &Reading<'_>, visible: &Visible) -> usize {
    let calls = reading.view.items[visible.item].calls.len();
    let results = (0..calls).filter_map(|call| reading.results.get(&(visible.item, call)));
    results.copied().max().unwrap_or(visible.item) + 1
}

fn hidden_boundary(reading: &Reading<'_>, transfer: &Transfer) -> Option<usize> {
    let Some(Boundary::Hidden { count, prefix }) = &transfer.boundary else { return None };
    let items = &reading.view.items;
    let end = match count {
        0 => reading.view.leading_system(),
        n => items.iter().enumerate().filter(|(_, item)| item.role != Role::System).nth(n - 1)?.0 + 1,
    };
    (hash::prefix(items, *count) == *prefix).then_some(end)
}

fn rewrite_for_holder(reading: &Reading<'_>, run: Run, at: Circumstances<'_>) -> Decision {
    let Some(held) = run.held() else { return Decision::forward(Pass::NotReceiver, Some(run), true) };
    let hop = held.record.hop;
    let Some(text) = held.record.brief.clone() else {
        return Decision::forward(Pass::NoContract, Some(run), true);
    };
    let mut findings = Vec::new();
    let end = boundary(reading, held);
    if end.is_none() {
        findings.push(Finding::new(
            Code::BoundaryLost,
            "messages",
            "the list no longer begins as it was taken up",
        ));
    }
    let voices = reading.voices(&run);
    let foreign = held.sender.map(|sender| &run.agents[sender].print);
    let rebuilt = rebuild::rebuild(reading, &voices, end.unwrap_or(0), foreign, &held.put_back, at.policy);
    let plan = rebuilt.with_brief(text);
    Decision {
        action: Action::Rewrite(Box::new(plan)),
        changed: false,
        hop: Some(hop),
        watch: true,
        findings,
        run: Some(run),
    }
}

/// Makes a record of a transfer that only the list shows, and takes it up.
fn take_up_unseen(
    reading: &Reading<'_>,
    mut run: Run,
    visible: &Visible,
    agent_fit: Fit,
    at: Circumstances<'_>,
) -> Decision {
    let mut log = (at.log)(&run.id);
    let voices = reading.voices(&run);
    log.learn(&reading.view.items, &voices, |item, call| reading.is_transfer(item, call), at.now);
    let transfer = transfer(&run, &log, visible_call(reading, visible), None, at);
    let hop = run.push(transfer);
    take_up(reading, run, hop, agent_fit, at)
}

fn visible_call<'a>(reading: &'a Reading<'_>, visible: &'a Visible) -> SeenTransfer<'a> {
    let item = &reading.view.items[visible.item];
    let call = &item.calls[visible.call];
    SeenTransfer {
        id: &call.id,
        name: &call.name,
        arguments: &call.arguments,
        mark: visible.mark.clone(),
        to: visible.to.clone(),
        from_name: item.name.as_deref(),
        beside: &item.text,
    }
}

/// A transfer call, wherever it was seen.
pub struct SeenTransfer<'a> {
    /// The call's id.
    pub id: &'a str,
    /// The tool's name.
    pub name: &'a str,
    /// The arguments.
    pub arguments: &'a str,
    /// What it is found by.
    pub mark: hash::Hash,
    /// Where it goes.
    pub to: Option<Destination>,
    /// The sender's name, where a client wrote it beside the call.
    pub from_name: Option<&'a str>,
    /// The text beside the call.
    pub beside: &'a str,
}

/// The transfer that a call makes, pending: composed from what the sender said and what the run shows.
pub fn transfer(
    run: &Run,
    log: &Log,
    seen: SeenTransfer<'_>,
    sender: Option<usize>,
    at: Circumstances<'_>,
) -> Transfer {
    let Composed { origin, handoff, facts, actions_taken, findings } = compose::compose(&compose::Said {
        arguments: seen.arguments,
        log,
        whole: run.whole && !log.cut,
        policy: at.policy,
        now: at.now,
        carried: run.held().map(|held| &held.record),
    });
    let to = seen.to.unwrap_or_else(|| Destination {
        name: seen.name.to_owned(),
        uncounted: None,
        from: Spelled::InName,
    });
    let mut turns = log.customer_turns();
    let objective = turns.next().map(str::to_owned);
    let latest_request = turns.next_back().map(str::to_owned);
    let from_agent = sender
        .and_then(|sender| run.agents[sender].name.clone())
        .or_else(|| seen.from_name.map(str::to_owned));
    let parting_words = compose::parting(seen.beside).into_iter().collect();
    let hop = run.next_hop();
    Transfer {
        record: Record {
            version: VERSION,
            id: format!("{}-{hop}", run.id),
            run: run.id.clone(),
            from_agent,
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
            actions_taken,
            budget: None,
            parting_words,
            left_out: super::record::LeftOut::default(),
            findings,
            tokens: Tokens::default(),
            brief: None,
        },
        to,
        sender,
        receiver: None,
        fit: Fit::None,
        call: seen.mark,
        delegated: delegated(seen.arguments),
        boundary: None,
        put_back: Vec::new(),
        expires: at.now.plus_ms(at.policy.pending_ms),
    }
}

/// The receiver's first request: custody moves, the brief is rendered and frozen.
fn take_up(reading: &Reading<'_>, mut run: Run, hop: u32, agent_fit: Fit, at: Circumstances<'_>) -> Decision {
    let Some(agent) = run.admit(&reading.print) else {
        return Decision::forward(Pass::AgentUnclear, Some(run), false);
    };
    let voices: Vec<Voice<'static>> = owned(reading.voices(&run));
    let opening_turns = (run.opening.clone(), run.latest.clone());
    let holder_moves = run.holder != Some(Holder { agent, hop });
    let sender_print = {
        let Some(transfer) = run.transfer_mut(hop) else {
            return Decision::forward(Pass::NotReceiver, Some(run), true);
        };
        transfer.sender
    }
    .map(|sender| run.agents[sender].print.clone());
    let Some(transfer) = run.transfer_mut(hop) else {
        return Decision::forward(Pass::NotReceiver, Some(run), true);
    };
    if at.policy.contract == Contract::Read && transfer.record.origin == Origin::Derived {
        return Decision::forward(Pass::NoContract, Some(run), true);
    }
    let visible = reading.transfers.iter().rev().find(|visible| visible.mark == transfer.call);
    let end = match visible {
        Some(visible) => {
            transfer.boundary = Some(Boundary::Visible);
            let item = &reading.view.items[visible.item];
            if transfer.record.from_agent.is_none() {
                transfer.record.from_agent = item.name.as_deref().map(str::to_owned);
            }
            if visible.result.is_none() {
                let what = "the call that moved control has no result in the list";
                transfer.record.findings.push(Finding::new(
                    Code::TransferResultMissing,
                    &*transfer.record.call.id,
                    what,
                ));
            }
            if let Some(name) = confirmed_name(reading, visible, &transfer.to) {
                transfer.record.to_agent = name;
            }
            group_end(reading, visible)
        }
        None => {
            let items = &reading.view.items;
            let count = items.iter().filter(|item| item.role != Role::System).count();
            transfer.boundary = Some(Boundary::Hidden { count, prefix: hash::prefix(items, count) });
            items.len()
        }
    };
    let latest = voices.iter().rev().find(|voice| voice.speaker == Speaker::Customer);
    if let Some(latest) = latest.filter(|voice| transfer.record.objective.as_deref() != Some(&*voice.words)) {
        transfer.record.latest_request = Some(latest.words.clone().into_owned());
    }
    transfer.put_back = match reading.view.items.iter().any(|item| item.role == Role::User) {
        true => Vec::new(),
        false => put_back(&opening_turns.0, &opening_turns.1),
    };
    let rebuilt =
        rebuild::rebuild(reading, &voices, end, sender_print.as_ref(), &transfer.put_back, at.policy);
    transfer.record.left_out = rebuilt.left_out;
    transfer.record.findings.extend(rebuilt.findings.iter().cloned());
    transfer.record.parting_words.extend(rebuilt.parting(&voices));
    transfer.record.parting_words.dedup();
    transfer.record.state = State::TakenUp;
    transfer.receiver = Some(agent);
    transfer.fit = agent_fit;
    let text = brief::render(&transfer.record);
    transfer.record.tokens =
        Tokens { before: rebuilt.tokens_before, after: rebuilt.tokens_after + estimate(&text) };
    transfer.record.brief = Some(text.clone());
    let name = transfer.record.to_agent.clone();
    let sender = transfer.sender;
    let from = transfer.record.from_agent.clone();
    run.agents[agent].name.get_or_insert(name);
    if let (Some(sender), Some(from)) = (sender, from) {
        run.agents[sender].name.get_or_insert(from);
    }
    // What else waited has been passed over: control went here.
    for other in run.transfers.iter_mut().filter(|other| other.record.state == State::Pending) {
        other.record.state = State::Expired;
    }
    if holder_moves {
        run.hops += 1;
    }
    run.holder = Some(Holder { agent, hop });
    note_turns(&mut run, reading, &voices, at.body);
    let plan = rebuilt.with_brief(text);
    let findings = run.held().map(|held| held.record.findings.clone()).unwrap_or_default();
    Decision {
        action: Action::Rewrite(Box::new(plan)),
        run: Some(run),
        changed: true,
        hop: Some(hop),
        watch: true,
        findings,
    }
}

/// The agent's real name, where the transfer's result has it: tool names are normalised one way.
fn confirmed_name(reading: &Reading<'_>, visible: &Visible, to: &Destination) -> Option<String> {
    let result = &reading.view.items[visible.result?];
    is_confirmation(&result.text)?.agent.filter(|name| to.is(name))
}

fn put_back(opening: &Option<Turn>, latest: &Option<Turn>) -> Vec<String> {
    let mut turns: Vec<String> =
        [opening, latest].into_iter().flatten().filter_map(|turn| turn.raw.clone()).collect();
    turns.dedup();
    turns
}

/// Keeps the opening and the last customer turn as the bytes first seen.
pub fn note_turns(run: &mut Run, reading: &Reading<'_>, voices: &[Voice<'_>], body: &str) {
    let customer = |at: &usize| voices[*at].speaker == Speaker::Customer;
    let turn = |at: usize| {
        let raw = &body[reading.view.items[at].span.clone()];
        Turn {
            words: voices[at].words.clone().into_owned(),
            raw: (raw.len() <= TURN_CAP).then(|| raw.to_owned()),
        }
    };
    let turns = reading.turns(voices);
    if turns.len() > run.turns.len() && run.continues(&turns) {
        run.turns = turns;
        run.turns.truncate(TURNS);
    }
    if run.opening.is_none() {
        run.opening = (0..voices.len()).find(customer).map(turn);
    }
    if let Some(last) = (0..voices.len()).rev().find(customer) {
        let last = turn(last);
        if run.latest.as_ref().is_none_or(|known| known.words != last.words) {
            run.latest = Some(last);
        }
    }
}

fn owned(voices: Vec<Voice<'_>>) -> Vec<Voice<'static>> {
    voices
        .into_iter()
        .map(|voice| Voice { speaker: voice.speaker, words: voice.words.into_owned().into() })
        .collect()
}

/// A token is 4 bytes of text here, and is called an estimate.
pub fn estimate(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}
