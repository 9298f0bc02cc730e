//! The span of one exchange while it is told what happens, and the spans of
//! the transfers in it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use http::{HeaderMap, StatusCode};

use super::Making;
use super::context::{Context, TRACEPARENT};
use super::names::Name;
use super::span::{Kind, Span, Value};
use crate::config::TraceContext;
use crate::engine::custody::run::Run;
use crate::engine::decide::{Action, Decision};
use crate::engine::event::Finding;
use crate::engine::record::{Record, State};
use crate::engine::reply::{Finish, Reply};
use crate::engine::view::View;
use crate::telemetry::closed::Closed;
use crate::telemetry::reasons::Passed;

/// The span of one exchange, shared by all who have a part in it; sent when the last of them is done.
#[derive(Clone, Debug, Default)]
pub struct Trace(Option<Arc<Open>>);

struct Open {
    making: Arc<Making>,
    began: Instant,
    span: Mutex<Told>,
}

/// A span, and what is only known by and by.
struct Told {
    span: Span,
    /// Whether the client said what the span belongs to.
    continued: bool,
    stream: bool,
    first_chunk: bool,
    /// The span of the last transfer that was seen in this exchange.
    inner: Option<u64>,
}

/// Spans of transfers, made and not yet sent: what they tell has to be stored first.
#[must_use]
pub(crate) struct Transfers(Vec<(Arc<Making>, Span)>);

impl Transfers {
    /// What they tell has happened.
    pub(crate) fn send(self) {
        self.0.into_iter().for_each(|(making, span)| making.send(span));
    }
}

/// Where a transfer was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenIn {
    /// In its sender's reply.
    Reply,
    /// Only in its receiver's list.
    List,
}

impl std::fmt::Debug for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Open")
    }
}

impl Trace {
    /// The trace of an exchange whose span begins now. `continued`: its client said what it belongs to.
    pub(super) fn open(making: Arc<Making>, span: Span, continued: bool) -> Trace {
        let told = Told { span, continued, stream: false, first_chunk: false, inner: None };
        Trace(Some(Arc::new(Open { making, began: Instant::now(), span: Mutex::new(told) })))
    }

    /// The span of the exchange that this request belongs to.
    pub(crate) fn of(head: &http::request::Parts) -> Trace {
        head.extensions.get::<Trace>().cloned().unwrap_or_default()
    }

    /// Whether there is a span at all.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Tells the upstream of this span, where that is wanted.
    pub(crate) fn onward(&self, headers: &mut HeaderMap) {
        let Some(open) = &self.0 else { return };
        if open.making.context == TraceContext::On
            && let Some(value) = open.told(|told| told.span.context).value()
        {
            headers.insert(TRACEPARENT, value);
        }
    }

    /// An inspected request: one of either API.
    pub(crate) fn inspected(&self, bytes: usize) {
        self.tell(|told, making| {
            "chat".clone_into(&mut told.span.name);
            told.span.text(Name::Operation, "chat");
            told.span.text(Name::Provider, making.provider);
            told.span.number(Name::RequestBytes, bytes);
        });
    }

    /// It was read.
    pub(crate) fn read(&self, view: &View<'_>, agent: Option<&str>) {
        self.tell(|told, _| {
            if let Some(model) = view.model.as_deref() {
                told.span.text(Name::RequestModel, model);
                told.span.name = format!("chat {}", &model[..model.floor_char_boundary(64)]);
            }
            told.stream = view.stream;
            told.span.set(Name::RequestStream, Value::Is(view.stream));
            told.span.text(Name::Agent, agent.unwrap_or_default());
        });
    }

    /// What was decided. `shadow`: why it goes up as it came although it would have been changed;
    /// `asked`: its agent is asked for a handoff.
    pub(crate) fn decided(&self, decision: &Decision, shadow: Option<Passed>, asked: bool) {
        if self.0.is_none() {
            return;
        }
        self.found(&decision.findings);
        match (&decision.action, shadow) {
            (Action::Forward(_), _) if asked => self.tell(|told, _| told.span.text(Name::Outcome, "asked")),
            (Action::Forward(pass), _) => self.passed(Passed::from(*pass)),
            (Action::Rewrite(_), None) => self.tell(|told, _| told.span.text(Name::Outcome, "rewritten")),
            (Action::Refuse(_), None) => {}
            (Action::Rewrite(_) | Action::Refuse(_), Some(reason)) => self.passed(reason),
        }
        let Some(run) = &decision.run else { return };
        self.belongs(&run.id);
        let held = run.transfers.iter().find(|transfer| Some(transfer.record.hop) == decision.hop);
        if let Some(held) = held {
            self.holds(&held.record, held.trace.as_deref());
        }
    }

    /// It belongs to this run.
    pub(crate) fn belongs(&self, run: &str) {
        self.tell(|told, _| told.span.text(Name::Conversation, run));
    }

    /// Its agent holds the run by this transfer. `place`: the transfer's own place in a trace.
    fn holds(&self, record: &Record, place: Option<&str>) {
        self.tell(|told, making| {
            let place = place.and_then(Context::read).filter(|place| told.inner != Some(place.span));
            match place {
                Some(place) if told.continued => told.span.link = Some(place),
                Some(place) => {
                    told.span.context.trace = place.trace;
                    told.span.parent = Some(place.span);
                }
                None => {}
            }
            let span = &mut told.span;
            span.text(Name::Handoff, &record.id);
            span.number(Name::TokensBefore, record.tokens.before);
            span.number(Name::TokensAfter, record.tokens.after);
            if let Some(brief) = &record.brief {
                span.number(Name::BriefBytes, brief.len());
                if making.content {
                    span.content(Name::Brief, brief);
                }
            }
        });
    }

    /// It goes up as it came.
    pub(crate) fn passed(&self, reason: Passed) {
        self.tell(|told, _| {
            told.span.text(Name::Outcome, "passed");
            told.span.text(Name::Reason, reason.name());
        });
    }

    fn found(&self, findings: &[Finding]) {
        if !findings.is_empty() {
            self.tell(|told, _| told.span.set(Name::Findings, codes(findings)));
        }
    }

    /// The upstream's reply began.
    pub(crate) fn replied(&self, status: StatusCode) {
        self.tell(|told, _| {
            told.span.number(Name::Status, status.as_u16());
            if status.is_client_error() || status.is_server_error() {
                told.span.failed = true;
                told.span.text(Name::Error, status.as_str());
            }
        });
    }

    /// Bytes of the reply's body came.
    pub(crate) fn chunk(&self) {
        let Some(open) = &self.0 else { return };
        open.told(|told| {
            if told.stream && !std::mem::replace(&mut told.first_chunk, true) {
                told.span.set(Name::FirstChunk, Value::Real(open.began.elapsed().as_secs_f64()));
            }
        });
    }

    /// The reply was read to its end.
    pub(crate) fn answered(&self, reply: &Reply) {
        self.tell(|told, _| {
            let span = &mut told.span;
            span.text(Name::ResponseId, &reply.id);
            span.text(Name::ResponseModel, &reply.model);
            if let Some(finish) = reply.finish {
                span.set(Name::FinishReasons, Value::Texts(vec![finish_name(finish).to_owned()]));
            }
            if let Some(usage) = &reply.usage {
                span.number(Name::InputTokens, usage.input);
                span.number(Name::OutputTokens, usage.output);
                span.number(Name::CacheRead, usage.cached);
                span.number(Name::CacheCreation, usage.cache_write);
            }
        });
    }

    /// The exchange failed.
    pub(crate) fn failed(&self, outcome: &'static str, reason: &str) {
        self.tell(|told, _| {
            told.span.failed = true;
            told.span.text(Name::Outcome, outcome);
            told.span.text(Name::Error, reason);
        });
    }

    /// The transfers of these hops were seen: each is a span of its own inside this one, and is told its
    /// place in the trace, for its receiver's requests.
    pub(crate) fn transfers(&self, run: &mut Run, hops: &[u32], seen_in: SeenIn) -> Transfers {
        let mut made = Transfers(Vec::new());
        let Some(open) = &self.0 else { return made };
        let seen = run.transfers.iter_mut().filter(|transfer| hops.contains(&transfer.record.hop));
        for transfer in seen {
            let span = open.transfer(&transfer.record, seen_in);
            transfer.trace = Some(span.context.text());
            made.0.push((Arc::clone(&open.making), span));
        }
        made
    }

    fn tell(&self, what: impl FnOnce(&mut Told, &Making)) {
        if let Some(open) = &self.0 {
            open.told(|told| what(told, &open.making));
        }
    }
}

impl Open {
    fn transfer(&self, record: &Record, seen_in: SeenIn) -> Span {
        let making = &self.making;
        let outer = self.told(|told| told.span.context);
        let context = Context { span: making.id(), ..outer };
        self.told(|told| told.inner = Some(context.span));
        let now = self.now();
        let name = &record.call.name;
        let name = format!("execute_tool {}", &name[..name.floor_char_boundary(64)]);
        let mut span = Span::new(context, Some(outer.span), Kind::Internal, name, now);
        span.text(Name::Operation, "execute_tool");
        span.text(Name::Conversation, &record.run);
        span.text(Name::Tool, &record.call.name);
        span.text(Name::ToolType, "function");
        span.text(Name::ToolCall, &record.call.id);
        span.text(Name::Handoff, &record.id);
        span.text(Name::From, record.from_agent.as_deref().unwrap_or_default());
        span.text(Name::To, &record.to_agent);
        span.number(Name::Hop, record.hop);
        span.text(Name::Source, record.origin.name());
        span.text(Name::State, record.state.name());
        span.text(Name::SeenIn, if seen_in == SeenIn::Reply { "reply" } else { "list" });
        let held = record.facts.iter().filter(|fact| fact.outcome.holds()).count();
        span.number(Name::Established, held);
        span.number(Name::NotConfirmed, record.facts.len() - held);
        if !record.findings.is_empty() {
            span.set(Name::Findings, codes(&record.findings));
        }
        if making.content {
            span.content(Name::ToolArguments, &record.call.arguments);
        }
        span.failed = record.state == State::Refused;
        span
    }

    fn told<T>(&self, what: impl FnOnce(&mut Told) -> T) -> T {
        // Nothing is left half done under the lock, so a poisoned one is as good.
        what(&mut self.span.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// By the clock that does not jump, from where the span began.
    fn now(&self) -> u64 {
        let since = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.told(|told| told.span.start).saturating_add(since)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let end = self.now();
        let mut span = self.told(|told| told.span.clone());
        span.end = end;
        self.making.send(span);
    }
}

fn codes(findings: &[Finding]) -> Value {
    let mut names: Vec<&str> = findings.iter().map(|finding| finding.code.name()).collect();
    names.sort_unstable();
    names.dedup();
    Value::Texts(names.into_iter().map(str::to_owned).collect())
}

/// As the conventions spell them.
fn finish_name(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Calls => "tool_calls",
        Finish::Length => "length",
        Finish::Filter => "content_filter",
        Finish::Other => "other",
    }
}
