//! Where the engine is asked: the one file that takes an exchange to the store
//! and back. What to look up, what to decide and what to learn is the engine's.

mod exchange;
mod held;
mod readings;
mod told;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header, request};
use wildmatch::WildMatch;

use super::error::Refusal;
use crate::clock::Clock;
use crate::config::live::{Live, Shadow};
use crate::config::{Config, OnFailure};
use crate::engine::custody::run::Run;
use crate::engine::decide::{self, Action, Circumstances, Decision};
use crate::engine::event::{Code, Finding};
use crate::engine::handoff::inject::Asked;
use crate::engine::hash::{self, Hasher};
use crate::engine::policy::{self, Policy};
use crate::engine::read::{Lookup, Reading, header_lookup, resent_lookup, transfer_lookup};
use crate::engine::time::Timestamp;
use crate::engine::view::{Dialect, Plan};
use crate::engine::watch::Hold;
use crate::engine::wire;
use crate::runs::{Candidates, Runs, Tenant, Trouble};
use crate::store::{Store, StoreError};
use crate::telemetry::metrics::Arm;
use crate::telemetry::trace::{SeenIn, Trace};
use crate::telemetry::{Passed, Telemetry};
pub(crate) use exchange::Exchange;
use exchange::{About, Shown};
use readings::Readings;
use told::{Before, Course};

/// Writers of one run that may come in between before a request gives up and passes as it is. Those of
/// this process queue, so each try is lost to another replica; time runs out before chance does.
const TRIES: usize = 16;

/// OpenAI's SDKs count here how often they have sent a request before.
const RETRIES: &str = "x-stainless-retry-count";

/// What to do with an inspected request.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Send it up as it came.
    Forward,
    /// Send this in its place.
    Rewrite(Bytes),
    /// Seam cannot do its part, for this reason.
    Untouched(Passed),
    /// Answer it here.
    Refuse(Refusal),
}

/// Asks the engine about requests and teaches it from replies.
#[derive(Clone, Debug)]
pub(crate) struct Inspector {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    policy: Policy,
    readings: Readings,
    live: Arc<Live>,
    runs: Arc<Runs>,
    clock: Clock,
    tenant_header: Option<HeaderName>,
    run_header: Option<HeaderName>,
    agent_header: Option<HeaderName>,
    /// Agents beside the run, by the name in the agent header.
    observers: Vec<WildMatch>,
    reply_limit: usize,
    /// The bounds of what is held; the tools are those of each request.
    hold: Hold,
    correction_timeout: Duration,
    on_failure: OnFailure,
    /// Whether people may see what was said.
    content: bool,
    /// Milliseconds for which it is kept.
    retention_ms: u64,
    telemetry: Arc<Telemetry>,
    /// Makes ids of runs unlike those of other processes.
    seed: String,
    ids: AtomicU64,
}

/// What a request's head says of its origin.
#[derive(Clone, Debug)]
struct Who {
    tenant: Tenant,
    agent: Option<String>,
    run: Option<String>,
    /// The span of its exchange.
    trace: Trace,
    /// Whether the client says that it sends the request once more.
    retries: bool,
}

impl Inspector {
    /// An inspector under `config`. `seed` makes the ids of runs unlike those of other processes.
    pub(crate) fn new(
        config: &Config,
        policy: Policy,
        store: Store,
        clock: Clock,
        seed: String,
        telemetry: Arc<Telemetry>,
    ) -> Self {
        let runs = Runs::new(store, config.retention, config.pending_ttl, Arc::clone(&telemetry));
        Inspector {
            inner: Arc::new(Inner {
                readings: Readings::new(Arc::clone(&policy.naming)),
                policy,
                live: Arc::new(Live::new(config.mode, config.rewrite_percent)),
                runs: Arc::new(runs),
                clock,
                tenant_header: config.tenant_header.clone(),
                run_header: config.run_header.clone(),
                agent_header: config.agent_header.clone(),
                observers: config.observers.iter().map(|pattern| WildMatch::new(pattern)).collect(),
                reply_limit: config.reply_limit,
                hold: hold(config),
                correction_timeout: config.correction_timeout,
                on_failure: config.on_failure,
                content: config.admin_content,
                retention_ms: u64::try_from(config.retention.as_millis()).unwrap_or(u64::MAX),
                telemetry,
                seed,
                ids: AtomicU64::new(0),
            }),
        }
    }

    /// The runs it works with.
    pub(crate) fn runs(&self) -> Arc<Runs> {
        Arc::clone(&self.inner.runs)
    }

    /// The settings that can change.
    pub(crate) fn live(&self) -> Arc<Live> {
        Arc::clone(&self.inner.live)
    }

    /// Called with the whole body. `None`: nothing to watch in the reply.
    pub(crate) async fn request(&self, head: &request::Parts, body: &Bytes) -> (Verdict, Option<Exchange>) {
        self.inner.request(&self.inner, head, body).await
    }
}

impl Inner {
    async fn request(
        &self,
        shared: &Arc<Inner>,
        head: &request::Parts,
        body: &Bytes,
    ) -> (Verdict, Option<Exchange>) {
        let trace = Trace::of(head);
        let forward = |reason| {
            trace.passed(reason);
            self.telemetry.passed(reason);
            (Verdict::Forward, None)
        };
        let dialect =
            if head.uri.path().ends_with("/responses") { Dialect::Responses } else { Dialect::Chat };
        let wish = Wish::of(&head.headers);
        if wish == Wish::Off {
            return forward(Passed::Off);
        }
        if !self.may_concern(body) {
            return forward(Passed::NoTransfer);
        }
        let who = Who { trace: trace.clone(), ..self.who(&head.headers) };
        let reading = match self.readings.read(body, dialect, who.agent.as_deref()) {
            Ok(reading) => reading,
            Err(why) => {
                self.telemetry.finding(&Finding::new(Code::BodyUnreadable, "body", why.to_string()));
                self.tell_undecided(&head.headers, None, Passed::BodyUnreadable);
                return (Verdict::Untouched(Passed::BodyUnreadable), None);
            }
        };
        trace.read(&reading.view, who.agent.as_deref());
        if who.agent.as_deref().is_some_and(|name| self.observers.iter().any(|known| known.matches(name))) {
            return forward(Passed::Observer);
        }
        if reading.offers.is_empty() && reading.transfers.is_empty() && self.runs.is_untouched() {
            return forward(Passed::NoTransfer);
        }
        let at = self.clock.now();
        let decided = self.decide(&reading, &who, body, wish, at);
        // A large future, in a box of its own: most requests never come here.
        let decided = self.runs.within_limit(Box::pin(decided)).await;
        let (mut decision, before) = match decided {
            Ok(decided) => decided,
            Err(trouble) => {
                self.telemetry.store_trouble(&trouble);
                let reason = Passed::from(&trouble);
                self.tell_undecided(&head.headers, Some(&reading), reason);
                return (Verdict::Untouched(reason), None);
            }
        };
        let run = decision.run.as_ref().map_or_else(|| self.fresh_id(), |run| run.id.clone());
        let shadow = self.shadow(&run, wish);
        let ask = decision.ask.take().filter(|_| shadow.is_none());
        let course = match shadow {
            Some(reason) => Course::Shadow(reason),
            None if ask.is_some() => Course::Asked,
            None => Course::Kept,
        };
        self.tell_decision(&decision, &before, &reading, &head.headers, course, at);
        who.trace.decided(&decision, shadow, ask.is_some());
        let shown = decision.hop.and_then(|hop| {
            let held = decision.run.as_ref()?.transfers.iter().find(|transfer| transfer.record.hop == hop)?;
            let record = Some(held.record.id.clone());
            Some(Shown { record, outcome: if decision.changed { "taken_up" } else { "held" } })
        });
        let verdict = match decision.action {
            Action::Rewrite(plan) if shadow.is_none() => {
                let plan = ask.as_ref().map_or_else(|| (*plan).clone(), |ask| ask.in_plan(&plan));
                Verdict::Rewrite(wire::apply(body, &reading.view, &plan))
            }
            Action::Refuse(finding) if shadow.is_none() => {
                let code = refusal_code(finding.code);
                return (Verdict::Refuse(Refusal { message: finding.what, param: None, code }), None);
            }
            Action::Rewrite(_) | Action::Refuse(_) | Action::Forward(_) => match &ask {
                Some(ask) => {
                    Verdict::Rewrite(wire::apply(body, &reading.view, &ask.in_plan(&Plan::default())))
                }
                None => Verdict::Forward,
            },
        };
        let shown = match &verdict {
            Verdict::Rewrite(_) => shown.or(Some(Shown { record: None, outcome: "asked" })),
            _ => None,
        };
        if !decision.watch {
            return (verdict, None);
        }
        let sent = if let Verdict::Rewrite(sent) = &verdict { sent.clone() } else { body.clone() };
        let asked = ask.and_then(|ask| ask.asked);
        let holds = shadow.is_none()
            && !reading.offers.is_empty()
            && wire::can_hold(dialect)
            && (asked.is_some() || self.policy.enforce.transfers());
        let hold = holds.then(|| Box::new(self.terms(&reading, sent, asked)));
        let arm = if shadow.is_some() { Arm::Observe } else { Arm::Rewrite };
        let (inner, body) = (shared.clone(), body.clone());
        let about = About { inner, body, reading, who, at, run, arm, shown, headed: None };
        (verdict, Some(Exchange::new(about, hold)))
    }

    /// How the transfer calls of this request's reply wait.
    fn terms(&self, reading: &Reading<'_>, sent: Bytes, asked: Option<Asked>) -> held::Terms {
        let names =
            reading.offers.iter().map(|offer| reading.view.tools[offer.tool].name.clone().into_owned());
        let hold = Hold { tools: names.collect(), ..self.hold.clone() };
        held::Terms { sent, asked, hold, correction_timeout: self.correction_timeout }
    }

    /// A reply could not be read.
    fn unread(&self) {
        let finding = Finding::new(Code::ReplyUnreadable, "body", "nothing was learnt from it");
        self.telemetry.finding(&finding);
    }

    /// Why a run's requests are left as they are, if they are.
    fn shadow(&self, run: &str, wish: Wish) -> Option<Passed> {
        if wish == Wish::Observe {
            return Some(Passed::Observed);
        }
        self.live.shadow(run).map(|shadow| match shadow {
            Shadow::Observe => Passed::Observed,
            Shadow::ControlArm => Passed::ControlArm,
        })
    }

    /// A look at the bytes alone: whether there can be anything to read in them.
    fn may_concern(&self, body: &[u8]) -> bool {
        !self.runs.is_untouched() || self.policy.naming.may_be_named_in(body)
    }

    fn who(&self, headers: &HeaderMap) -> Who {
        let text = |name: &Option<HeaderName>| {
            let value = headers.get(name.as_ref()?)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let name = match &self.tenant_header {
            Some(name) => headers.get(name),
            // A credential is one tenant.
            None => headers.get(header::AUTHORIZATION).or_else(|| headers.get("api-key")),
        };
        Who {
            tenant: Tenant::of(name.map_or(&b""[..], HeaderValue::as_bytes)),
            agent: text(&self.agent_header),
            run: text(&self.run_header),
            trace: Trace::default(),
            retries: headers.get(RETRIES).is_some_and(|count| count != "0"),
        }
    }

    /// Looks the run up, decides, and stores what the decision changed; again if somebody came in between.
    async fn decide(
        &self,
        reading: &Reading<'_>,
        who: &Who,
        body: &Bytes,
        wish: Wish,
        at: Timestamp,
    ) -> Result<(Decision, Before), Trouble> {
        let fresh = OnceLock::new();
        let fresh_id = || unseen_id(reading, &who.tenant).unwrap_or_else(|| self.fresh_id());
        let named = who.run.as_deref().map(header_lookup);
        let resent = who.retries.then(|| resent_lookup(reading.request(body)));
        let lookups: Vec<&Lookup> = named.iter().chain(reading.lookups()).chain(&resent).collect();
        let mut turn = None;
        for _ in 0..TRIES {
            let Candidates { found, beside } = self.runs.find(&who.tenant, &lookups).await?;
            let before = Before::of(&found);
            let mut decision = decide::decide(
                reading,
                found,
                Circumstances {
                    policy: &self.policy,
                    now: at,
                    fresh_id: &|| fresh.get_or_init(fresh_id).clone(),
                    log: &|id| beside.log(id),
                    body,
                },
            );
            let Some(run) = decision.run.as_mut().filter(|_| decision.changed) else {
                return Ok((decision, before));
            };
            let shadow = self.shadow(&run.id, wish).is_some();
            if let Some(hop) = decision.hop
                && let Some(taken) = Arc::make_mut(run).transfer_mut(hop)
            {
                taken.shadow = shadow;
            }
            let unseen: Vec<u32> =
                decision.hop.into_iter().filter(|hop| is_new_to_the_list(run, *hop)).collect();
            let spans = who.trace.transfers(Arc::make_mut(run), &unseen, SeenIn::List);
            let ways = new_ways(reading, run);
            match self.runs.keep(&who.tenant, run, None, beside.versions(&run.id), &ways, at).await {
                Ok(()) => {
                    spans.send();
                    return Ok((decision, before));
                }
                Err(StoreError::Conflict) if turn.is_none() => turn = Some(self.runs.turn(&run.id).await),
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::Conflict.into())
    }

    fn fresh_id(&self) -> String {
        fresh(&self.seed, self.ids.fetch_add(1, Ordering::Relaxed))
    }
}

/// The id of a run that begins with a transfer that only the list shows: the same wherever the same list
/// is seen, so that of many requests at once, through any replica, one begins the run and the others meet it.
fn unseen_id(reading: &Reading<'_>, tenant: &Tenant) -> Option<String> {
    let result = reading.last_answered()?.result?;
    let items = &reading.view.items[..=result];
    let beginning = hash::prefix(items, items.len());
    let id =
        Hasher::new("unseen run").bytes(tenant.as_bytes()).bytes(beginning.to_string().as_bytes()).finish();
    Some(id.digits(16))
}

/// Whether nobody saw the transfer of this hop before the list showed it.
fn is_new_to_the_list(run: &Run, hop: u32) -> bool {
    let transfer = run.transfers.iter().find(|transfer| transfer.record.hop == hop);
    transfer.is_some_and(|transfer| transfer.sender.is_none() && transfer.trace.is_none())
}

/// A run that began with a transfer seen only in the list can be found by that call from now on.
fn new_ways(reading: &Reading<'_>, run: &Run) -> Vec<Lookup> {
    let known = reading.transfers.iter().filter(|visible| run.by_call(&visible.mark).is_some());
    known.map(|visible| transfer_lookup(&visible.mark)).collect()
}

/// What a client is told of a refusal, in OpenAI's error shape.
fn refusal_code(code: Code) -> &'static str {
    match code {
        Code::NotHolder => "seam_not_holder",
        Code::BudgetExceeded => "seam_budget_exceeded",
        _ => "seam_refused",
    }
}

/// The bounds of what is held of a reply.
fn hold(config: &Config) -> Hold {
    Hold {
        tools: Vec::new(),
        bytes: config.hold_bytes,
        ms: u64::try_from(config.hold_timeout.as_millis()).unwrap_or(u64::MAX),
        on_failure: match config.on_failure {
            OnFailure::Open => policy::OnFailure::Open,
            OnFailure::Closed => policy::OnFailure::Closed,
        },
    }
}

/// The id of this process's `n`th run.
fn fresh(seed: &str, n: u64) -> String {
    Hasher::new("run").bytes(seed.as_bytes()).bytes(&n.to_le_bytes()).finish().digits(16)
}

/// What a request asks for itself, in the header `seam-mode`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Nothing,
    Observe,
    Off,
}

impl Wish {
    fn of(headers: &HeaderMap) -> Wish {
        match headers.get("seam-mode").map(HeaderValue::as_bytes) {
            Some(b"observe") => Wish::Observe,
            Some(b"off") => Wish::Off,
            _ => Wish::Nothing,
        }
    }
}

#[cfg(test)]
mod tests;
