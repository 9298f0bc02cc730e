//! What to do with a request: whose it is, and if it is a receiver's, the plan
//! of its rebuilt list.

mod ask;
mod custody;
mod locate;
mod take_up;
mod whose;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use ask::Ask;
use locate::{Located, locate};
pub use take_up::{SeenTransfer, learn_list, note_turns, transfer};
use take_up::{take_up, take_up_unseen};
use whose::{Whose, ends, whose};

use super::custody::budget::Allowance;
use super::custody::log::Log;
use super::custody::run::Run;
use super::event::{Code, Finding};
use super::handoff::rebuild::{self, Ends, Foreign};
use super::policy::Policy;
use super::read::{Lookup, Reading, Way};
use super::time::Timestamp;
use super::view::{Keep, Plan};

/// A set of runs under one key that is this large says that the key is common, and tells nothing.
pub const COMMON: usize = 8;

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
    /// The reply is made in the background, and asked for later.
    Background,
}

impl Pass {
    /// All of them.
    pub const ALL: &'static [Pass] = &[
        Pass::NothingToDo,
        Pass::AlreadyBriefed,
        Pass::NotReceiver,
        Pass::AmbiguousRun,
        Pass::AgentUnclear,
        Pass::NoContract,
        Pass::SeveralChoices,
        Pass::Background,
    ];

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
            Pass::Background => "background",
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
    /// Do not forward it.
    Refuse(Finding),
}

/// What was decided.
#[derive(Debug)]
pub struct Decision {
    /// What to do with the bytes.
    pub action: Action,
    /// The run it belongs to; with `changed`, to be stored before anything is forwarded.
    pub run: Option<Arc<Run>>,
    /// Whether the run was changed.
    pub changed: bool,
    /// The `hop` of the record whose brief the receiver reads.
    pub hop: Option<u32>,
    /// Whether the reply teaches something.
    pub watch: bool,
    /// What is asked of the agent, whose reply may transfer.
    pub ask: Option<Ask>,
    /// What was found on the way.
    pub findings: Vec<Finding>,
}

impl Decision {
    fn forward(pass: Pass, run: Option<Arc<Run>>, watch: bool) -> Self {
        let findings = match pass {
            Pass::AmbiguousRun => vec![Finding::new(Code::AmbiguousRun, "run", "two runs fit the request")],
            Pass::AgentUnclear => {
                vec![Finding::new(Code::AgentUnclear, "agent", "the agent cannot be told from another one")]
            }
            _ => Vec::new(),
        };
        Decision { action: Action::Forward(pass), run, changed: false, hop: None, watch, ask: None, findings }
    }

    /// What becomes of an item of the list.
    fn keep(&self, item: usize) -> &Keep {
        match &self.action {
            Action::Rewrite(plan) => plan.keep.get(item).unwrap_or(&Keep::Whole),
            Action::Forward(_) | Action::Refuse(_) => &Keep::Whole,
        }
    }
}

/// What a look-up found: the runs by id, and which ids each way gave.
#[derive(Debug, Default)]
pub struct Found {
    /// The way, and the ids under its key.
    pub sets: Vec<(Way, Vec<String>)>,
    /// The runs that could be read.
    pub runs: BTreeMap<String, Arc<Run>>,
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
pub fn found(lookups: &[&Lookup], sets: Vec<Vec<String>>) -> Vec<(Way, Vec<String>)> {
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
    pub fresh_id: &'a dyn Fn() -> String,
    /// The log of a run, once it is known which.
    pub log: &'a dyn Fn(&str) -> Log,
    /// The body, to keep customer turns as the bytes first seen.
    pub body: &'a [u8],
}

/// Decides what to do with a request.
pub fn decide(reading: &Reading<'_>, found: Found, at: Circumstances<'_>) -> Decision {
    let decision = act(reading, found, at);
    let ask = ask::ask(reading, &decision, at);
    Decision { ask, ..decision }
}

fn act(reading: &Reading<'_>, mut found: Found, at: Circumstances<'_>) -> Decision {
    let offers = !reading.offers.is_empty();
    if reading.briefed {
        return Decision::forward(Pass::AlreadyBriefed, None, false);
    }
    if reading.view.choices > 1 {
        return Decision::forward(Pass::SeveralChoices, None, false);
    }
    if reading.view.server_state.background {
        return Decision::forward(Pass::Background, None, false);
    }
    let id = match locate(reading, &found, at.now) {
        Located::Ambiguous => return Decision::forward(Pass::AmbiguousRun, None, false),
        Located::Run(id) => Some(id.to_owned()),
        Located::Nowhere => None,
    };
    let run = match id.and_then(|id| found.runs.remove(&id)) {
        Some(run) => run,
        None if reading.last_answered().is_some() => Arc::new(Run::new((at.fresh_id)(), false, at.now)),
        None => {
            let pass = if offers { Pass::NotReceiver } else { Pass::NothingToDo };
            return Decision::forward(pass, None, offers);
        }
    };
    let exceeded = at.policy.allowance.exceeded(run.spent, run.begun, at.now);
    let refused = exceeded.iter().find(|finding| Allowance::may_refuse(run.spent, finding));
    if let Some(finding) = refused.filter(|_| at.policy.enforce.budget).cloned() {
        let mut decision = Decision::forward(Pass::NotReceiver, Some(run), false);
        decision.action = Action::Refuse(finding);
        decision.findings = exceeded;
        return decision;
    }
    let mut decision = decide_in(reading, run, at);
    decision.findings.extend(exceeded);
    decision
}

/// Decides about a request whose run is known.
fn decide_in(reading: &Reading<'_>, run: Arc<Run>, at: Circumstances<'_>) -> Decision {
    match whose(reading, &run, at.now) {
        Whose::Holder => rewrite_for_holder(reading, run, at),
        Whose::TakesUp { hop, agent_fit } => take_up(reading, Arc::unwrap_or_clone(run), hop, agent_fit, at),
        Whose::Unseen { visible, agent_fit } => {
            take_up_unseen(reading, Arc::unwrap_or_clone(run), &visible, agent_fit, at)
        }
        Whose::Unclear => Decision::forward(Pass::AgentUnclear, Some(run), false),
        Whose::Other => custody::other(reading, run, at),
    }
}

fn rewrite_for_holder(reading: &Reading<'_>, run: Arc<Run>, at: Circumstances<'_>) -> Decision {
    let Some(held) = run.held() else { return Decision::forward(Pass::NotReceiver, Some(run), true) };
    let hop = held.record.hop;
    let Some(text) = held.record.brief.clone() else {
        return Decision::forward(Pass::NoContract, Some(run), true);
    };
    let mut findings = Vec::new();
    let delta = reading.view.is_delta();
    let ends = ends(reading, held).filter(|_| !delta);
    if delta {
        findings.push(rebuild::unfiltered());
    } else if ends.is_none() {
        findings.push(Finding::new(
            Code::BoundaryLost,
            "messages",
            "the list no longer begins as it was taken up",
        ));
    }
    let voices = reading.voices(&*run);
    let thoughts = rebuild::foreign_thoughts(reading, &run, &at.policy.unthinking);
    let others = Foreign { sender: held.sender.map(|sender| &run.agents[sender].print), thoughts: &thoughts };
    let ends = ends.unwrap_or(Ends { taken_up: 0, filtered: 0 });
    let rebuilt = rebuild::rebuild(reading, &voices, ends, others, at.policy);
    let plan = rebuilt.with(text, &held.put_back);
    Decision {
        action: Action::Rewrite(Box::new(plan)),
        changed: false,
        hop: Some(hop),
        watch: true,
        ask: None,
        findings,
        run: Some(run),
    }
}
