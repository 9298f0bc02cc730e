//! Handoffs as JSON: ids, names, sizes and outcomes; what was said only where
//! the setting allows it.

use http::StatusCode;
use serde::Serialize;

use super::{Admin, Answer, PLAIN, Query, json, text};
use crate::engine::custody::run::{Boundary, Fit, Run, Transfer};
use crate::engine::event::Finding;
use crate::engine::handoff::detect::Spelled;
use crate::engine::handoff::verify::Fact;
use crate::engine::lists::Lists;
use crate::engine::record::{LeftOut, Tokens};
use crate::engine::report::{Report, Wanted};
use crate::engine::signal::Signal;
use crate::engine::time::Timestamp;
use crate::telemetry::passages::Passage;
use crate::telemetry::shown::{self, head};

impl Admin {
    /// The newest first.
    pub(super) async fn handoffs(&self, query: &Query<'_>) -> Answer {
        let runs = match query.run {
            Some(id) => self.runs.by_id(id).await.map(|run| run.into_iter().collect()).ok(),
            None => self.runs.recent(query.limit).await.ok(),
        };
        let Some(runs) = runs else { return store_fails() };
        let of_run =
            |run: &'_ Run| run.transfers.iter().map(|transfer| Seen::of(run, transfer)).collect::<Vec<_>>();
        let mut seen: Vec<Seen> = runs.iter().flat_map(of_run).collect();
        seen.sort_by_key(|seen| std::cmp::Reverse((seen.transfer.record.at, seen.transfer.record.hop)));
        seen.truncate(query.limit);
        json(&seen.iter().map(|seen| Handoff::of(seen, self.content)).collect::<Vec<_>>())
    }

    /// One, with all that is kept of it.
    pub(super) async fn handoff(&self, id: &str) -> Answer {
        match self.transfer(id).await {
            Ok(Some(seen)) => {
                let lists = self.telemetry.lists.of(id);
                json(&Whole::of(&seen, lists.as_deref(), self.content))
            }
            Ok(None) => no_such(),
            Err(answer) => answer,
        }
    }

    /// What led to a record, or let a request pass.
    pub(super) async fn explain(&self, id: &str) -> Answer {
        match self.transfer(id).await {
            Ok(Some(seen)) => json(&Explanation::of_record(&seen.transfer, self.content)),
            Ok(None) => match self.telemetry.passages.by_id(id) {
                Some(passage) => json(&Explanation::of_passage(&passage)),
                None => no_such(),
            },
            Err(answer) => answer,
        }
    }

    /// What the newest runs say together. Names of agents are percent-encoded in the query.
    pub(super) async fn report(&self, query: &Query<'_>) -> Answer {
        let Ok(runs) = self.runs.recent(query.limit).await else { return store_fails() };
        let pair = query.from.zip(query.to).map(|(from, to)| (decoded(from), decoded(to)));
        let since = query.since.map(Timestamp);
        json(&Report::of(&runs, &Wanted { since, pair, worst: query.worst }))
    }

    /// Requests that passed as they came, the newest first.
    pub(super) fn passes(&self, query: &Query<'_>) -> Answer {
        json(&self.telemetry.passages.newest(query.limit))
    }

    /// Removes a run and all that was said in it.
    pub(super) async fn remove(&self, run: &str) -> Answer {
        match self.runs.remove(run).await {
            Ok(true) => {
                self.telemetry.lists.forget(run);
                text(StatusCode::OK, PLAIN, "removed\n")
            }
            Ok(false) => no_such(),
            Err(_) => store_fails(),
        }
    }

    /// The transfer with this record: its id is the run's and the hop.
    pub(super) async fn transfer(&self, id: &str) -> Result<Option<Seen>, Answer> {
        let Some((run, _)) = id.rsplit_once('-') else { return Ok(None) };
        let run = self.runs.by_id(run).await.map_err(|_| store_fails())?;
        Ok(run.and_then(|run| {
            let transfer = run.transfers.iter().find(|transfer| transfer.record.id == id)?;
            Some(Seen::of(&run, transfer))
        }))
    }
}

/// A transfer, and what was seen behind it.
pub(super) struct Seen {
    pub(super) transfer: Transfer,
    /// What its sender is called.
    pub(super) from: Option<String>,
    pub(super) signals: Vec<Signal>,
}

impl Seen {
    fn of(run: &Run, transfer: &Transfer) -> Seen {
        let behind = run.signals.iter().filter(|signal| signal.hop == transfer.record.hop);
        Seen {
            transfer: transfer.clone(),
            from: run.sender_name(transfer).map(|name| head(name).to_owned()),
            signals: behind.cloned().collect(),
        }
    }
}

pub(super) fn store_fails() -> Answer {
    text(StatusCode::SERVICE_UNAVAILABLE, PLAIN, "the store fails\n")
}

pub(super) fn no_such() -> Answer {
    text(StatusCode::NOT_FOUND, PLAIN, "there is none with this id\n")
}

/// One handoff in a list.
#[derive(Serialize)]
struct Handoff<'t> {
    id: &'t str,
    run: &'t str,
    at: String,
    from: Option<&'t str>,
    to: &'t str,
    state: &'static str,
    source: &'static str,
    /// None as long as nobody took it up.
    arm: Option<&'static str>,
    hop: u32,
    facts: Vec<ShownFact<'t>>,
    findings: Vec<ShownFinding<'t>>,
    signals: Vec<ShownSignal<'t>>,
    tokens: Tokens,
}

#[derive(Serialize)]
struct ShownSignal<'t> {
    sign: &'static str,
    about: &'t str,
}

#[derive(Serialize)]
struct ShownFact<'t> {
    key: Option<&'t str>,
    /// Only where content is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'t str>,
    outcome: &'static str,
    /// The id of the call that bears it.
    evidence: Option<&'t str>,
    as_of: Option<String>,
    age: &'static str,
    /// Whether a reply of the receiver used it.
    used: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'t str>,
}

#[derive(Serialize)]
struct ShownFinding<'t> {
    code: &'static str,
    #[serde(rename = "where")]
    place: &'t str,
    what: &'t str,
}

impl<'t> Handoff<'t> {
    fn of(seen: &'t Seen, content: bool) -> Handoff<'t> {
        let transfer = &seen.transfer;
        let record = &transfer.record;
        let facts = record.facts.iter().enumerate();
        Handoff {
            id: &record.id,
            run: &record.run,
            at: record.at.rfc3339(),
            from: seen.from.as_deref(),
            to: head(&record.to_agent),
            state: record.state.name(),
            source: record.origin.name(),
            arm: transfer.arm(),
            hop: record.hop,
            facts: facts
                .map(|(at, fact)| ShownFact::of(fact, transfer.used.contains(&at), content))
                .collect(),
            findings: record.findings.iter().map(|finding| ShownFinding::of(finding, content)).collect(),
            signals: seen
                .signals
                .iter()
                .map(|signal| ShownSignal { sign: signal.sign.name(), about: name(&signal.about, content) })
                .collect(),
            tokens: record.tokens,
        }
    }
}

impl<'t> ShownFact<'t> {
    fn of(fact: &'t Fact, used: bool, content: bool) -> ShownFact<'t> {
        ShownFact {
            key: fact.claim.key.as_deref().map(|key| name(key, content)),
            value: content.then_some(fact.claim.value.text.as_str()),
            outcome: fact.outcome.name(),
            evidence: fact.call.as_deref().map(head),
            as_of: fact.as_of.map(Timestamp::rfc3339),
            age: fact.age.name(),
            used,
            why: content.then_some(fact.why.as_str()),
        }
    }
}

impl<'t> ShownFinding<'t> {
    fn of(finding: &'t Finding, content: bool) -> ShownFinding<'t> {
        ShownFinding { code: finding.code.name(), place: name(&finding.place, content), what: &finding.what }
    }
}

/// One handoff with all that is kept of it.
#[derive(Serialize)]
struct Whole<'t> {
    #[serde(flatten)]
    handoff: Handoff<'t>,
    call: ShownCall<'t>,
    visited: &'t [String],
    actions: usize,
    left_out: LeftOut,
    brief_bytes: Option<usize>,
    /// The receiver's list before and after, line by line, as long as this process remembers it.
    messages: Option<&'t Lists>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Content<'t>>,
}

#[derive(Serialize)]
struct ShownCall<'t> {
    id: &'t str,
    name: &'t str,
}

/// What was said.
#[derive(Serialize)]
struct Content<'t> {
    objective: Option<&'t str>,
    latest_request: Option<&'t str>,
    arguments: &'t str,
    handoff: &'t crate::engine::handoff::contract::Handoff,
    actions: &'t [crate::engine::record::Action],
    parting_words: &'t [crate::engine::handoff::contract::Line],
    brief: Option<&'t str>,
}

impl<'t> Whole<'t> {
    fn of(seen: &'t Seen, messages: Option<&'t Lists>, content: bool) -> Whole<'t> {
        let record = &seen.transfer.record;
        Whole {
            handoff: Handoff::of(seen, content),
            messages,
            call: ShownCall { id: head(&record.call.id), name: head(&record.call.name) },
            visited: &record.visited,
            actions: record.actions_taken.len(),
            left_out: record.left_out,
            brief_bytes: record.brief.as_ref().map(String::len),
            content: content.then(|| Content {
                objective: record.objective.as_deref(),
                latest_request: record.latest_request.as_deref(),
                arguments: &record.call.arguments,
                handoff: &record.handoff,
                actions: &record.actions_taken,
                parting_words: &record.parting_words,
                brief: record.brief.as_deref(),
            }),
        }
    }
}

/// Why something happened, step by step.
#[derive(Serialize)]
struct Explanation {
    id: String,
    /// `handoff` or `pass`.
    kind: &'static str,
    steps: Vec<Step>,
}

#[derive(Serialize)]
pub(super) struct Step {
    /// `detection`, `match`, `check` or `filter`; for a pass also `reason`.
    pub(super) step: &'static str,
    /// What was found, a sentence.
    pub(super) what: String,
}

impl Explanation {
    fn of_record(transfer: &Transfer, content: bool) -> Explanation {
        Explanation { id: transfer.record.id.clone(), kind: "handoff", steps: steps(transfer, content) }
    }

    fn of_passage(passage: &Passage) -> Explanation {
        let mut steps = vec![Step {
            step: "reason",
            what: format!("{}: {}", crate::telemetry::Closed::name(passage.reason), passage.reason.meaning()),
        }];
        steps.push(Step {
            step: "detection",
            what: format!(
                "It offers {} transfer tools, and {} transfers stand in its list.",
                passage.offers, passage.transfers
            ),
        });
        let ways = if passage.ways.is_empty() { "nothing".to_owned() } else { passage.ways.join(", ") };
        let found = passage.run.as_ref().map_or("found none".to_owned(), |run| format!("found {run}"));
        steps.push(Step { step: "match", what: format!("A run was looked for by {ways}, which {found}.") });
        steps.extend(
            passage.findings.iter().map(|code| Step { step: "check", what: format!("Finding {code}.") }),
        );
        Explanation { id: passage.id.clone(), kind: "pass", steps }
    }
}

/// What led to a record.
pub(super) fn steps(transfer: &Transfer, content: bool) -> Vec<Step> {
    let mut steps = vec![detection(transfer), matching(transfer)];
    steps.extend(checks(transfer, content));
    steps.push(filter(transfer));
    steps
}

fn detection(transfer: &Transfer) -> Step {
    let record = &transfer.record;
    let spelled = match transfer.to.from {
        Spelled::InName => "the tool's name",
        Spelled::InArgument => "an argument",
    };
    let seen = match transfer.sender {
        Some(_) => "in the sender's reply",
        None => "in the receiver's list alone: the reply was not watched",
    };
    let what = format!(
        "The call {} of {} is a transfer to {}, named by {spelled}. It was seen {seen}. The handoff is {}.",
        head(&record.call.id),
        head(&record.call.name),
        head(&record.to_agent),
        record.origin.name(),
    );
    Step { step: "detection", what }
}

fn matching(transfer: &Transfer) -> Step {
    let fit = match transfer.fit {
        Fit::None => "none",
        Fit::Plausible => "nothing spoke against it",
        Fit::Named => "its instructions or its client name it",
    };
    let boundary = match &transfer.boundary {
        None => "no boundary was set".to_owned(),
        Some(Boundary::Visible) => "the boundary lies behind the visible transfer and its result".to_owned(),
        Some(Boundary::Hidden { count, .. }) => {
            format!("the transfer is hidden, the boundary lies behind the first {count} messages")
        }
    };
    let what = match transfer.receiver {
        None => format!("No receiver took it up; it is {}.", transfer.record.state.name()),
        Some(_) => format!("An agent took it up: {fit}; {boundary}."),
    };
    Step { step: "match", what }
}

fn checks(transfer: &Transfer, content: bool) -> Vec<Step> {
    let record = &transfer.record;
    let facts = record.facts.iter().map(|fact| {
        let key = fact.claim.key.as_deref().map_or("a statement", |key| name(key, content));
        let call = fact.call.as_deref().map_or(String::new(), |call| format!(" by call {}", head(call)));
        let why = if content { format!(": {}", fact.why) } else { String::new() };
        format!("Fact {key} is {}{call}, {}{why}.", fact.outcome.name(), fact.age.name())
    });
    let findings = record.findings.iter().map(|finding| {
        format!("Finding {} at {}: {}.", finding.code.name(), name(&finding.place, content), finding.what)
    });
    facts.chain(findings).map(|what| Step { step: "check", what }).collect()
}

fn filter(transfer: &Transfer) -> Step {
    let record = &transfer.record;
    let LeftOut { items, tokens, shortened, .. } = record.left_out;
    let arm = match (&record.brief, transfer.shadow) {
        (None, _) => "There is no brief.",
        (Some(_), true) => "The brief was made in the shadow; the request went up as it came.",
        (Some(_), false) => "The brief stands in the receiver's system slot.",
    };
    let what = format!(
        "{items} messages (about {tokens} tokens) do not travel, {shortened} results were shortened, {} customer turns \
         were put back; about {} tokens before, {} after. {arm}",
        transfer.put_back.len(),
        record.tokens.before,
        record.tokens.after,
    );
    Step { step: "filter", what }
}

/// A percent-encoded value of a query.
pub(super) fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

/// A key or a path that a model wrote: without content it is shown only where it reads like one.
pub(super) fn name(text: &str, content: bool) -> &str {
    if content { head(text) } else { shown::name(text) }
}
