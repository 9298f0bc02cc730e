//! Where the engine is asked: the one file that takes an exchange to the store
//! and back. What to look up, what to decide and what to learn is the engine's.

mod told;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header, request, response};
use wildmatch::WildMatch;

use super::error::Refusal;
use crate::clock::Clock;
use crate::config::live::{Live, Shadow};
use crate::config::{Config, OnFailure};
use crate::engine::compressed::Compressed;
use crate::engine::custody::log::Log;
use crate::engine::custody::run::Run;
use crate::engine::decide::{self, Action, Circumstances, Decision};
use crate::engine::event::{Code, Finding};
use crate::engine::hash::{self, Hasher};
use crate::engine::learn::{Terms, learn};
use crate::engine::policy::Policy;
use crate::engine::read::{Lookup, Reading, reading, transfer_lookup};
use crate::engine::reply::Reply;
use crate::engine::time::Timestamp;
use crate::engine::view::Dialect;
use crate::engine::watch::Watcher;
use crate::engine::wire;
use crate::runs::{Candidates, Runs, Tenant, Trouble};
use crate::store::{Store, StoreError};
use crate::telemetry::metrics::{Arm, Brief, Part};
use crate::telemetry::{Passed, Telemetry};
use told::Before;

/// Writers of one run that may come in between before a request gives up and passes as it is. Those of
/// this process queue, so each try is lost to another replica; time runs out before chance does.
const TRIES: usize = 16;

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
    live: Arc<Live>,
    runs: Arc<Runs>,
    clock: Clock,
    tenant_header: Option<HeaderName>,
    run_header: Option<HeaderName>,
    agent_header: Option<HeaderName>,
    /// Agents beside the run, by the name in the agent header.
    observers: Vec<WildMatch>,
    reply_limit: usize,
    on_failure: OnFailure,
    telemetry: Arc<Telemetry>,
    /// Makes ids of runs unlike those of other processes.
    seed: String,
    ids: AtomicU64,
}

/// One inspected exchange whose reply teaches something; lives until the reply ended.
#[derive(Debug)]
pub(crate) struct Exchange {
    inner: Arc<Inner>,
    /// The request as the client sent it.
    body: Bytes,
    dialect: Dialect,
    who: Who,
    at: Timestamp,
    run: String,
    arm: Arm,
    /// What the client reads in the reply's head, if the request was changed.
    shown: Option<Shown>,
    watch: Option<Watch>,
    held: Held,
}

/// How much of a reply was held, and since when.
#[derive(Debug, Default)]
struct Held {
    headed: Option<Instant>,
    since: Option<Instant>,
    bytes: usize,
    most: usize,
}

/// How the reply is read.
#[derive(Debug)]
enum Watch {
    Plain(Watcher),
    Compressed(Box<Compressed>),
}

#[derive(Debug)]
struct Shown {
    record: String,
    outcome: &'static str,
}

/// What a request's head says of its origin.
#[derive(Clone, Debug)]
struct Who {
    tenant: Tenant,
    agent: Option<String>,
    run: Option<String>,
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
                policy,
                live: Arc::new(Live::new(config.mode, config.rewrite_percent)),
                runs: Arc::new(runs),
                clock,
                tenant_header: config.tenant_header.clone(),
                run_header: config.run_header.clone(),
                agent_header: config.agent_header.clone(),
                observers: config.observers.iter().map(|pattern| WildMatch::new(pattern)).collect(),
                reply_limit: config.reply_limit,
                on_failure: config.on_failure,
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
        let forward = |reason| {
            self.telemetry.passed(reason);
            (Verdict::Forward, None)
        };
        let dialect =
            if head.uri.path().ends_with("/responses") { Dialect::Responses } else { Dialect::Chat };
        let asked = Asked::of(&head.headers);
        if asked == Asked::Off {
            return forward(Passed::Off);
        }
        if !self.may_concern(body) {
            return forward(Passed::NoTransfer);
        }
        let view = match wire::read(body, dialect) {
            Ok(view) => view,
            Err(why) => {
                self.telemetry.finding(&Finding::new(Code::BodyUnreadable, "body", why.to_string()));
                self.tell_undecided(&head.headers, None, Passed::BodyUnreadable);
                return (Verdict::Untouched(Passed::BodyUnreadable), None);
            }
        };
        let who = self.who(&head.headers);
        if who.agent.as_deref().is_some_and(|name| self.observers.iter().any(|known| known.matches(name))) {
            return forward(Passed::Observer);
        }
        let reading = reading(view, &self.policy.naming, who.agent.as_deref());
        if reading.offers.is_empty() && reading.transfers.is_empty() && self.runs.is_untouched() {
            return forward(Passed::NoTransfer);
        }
        let at = self.clock.now();
        let decided = self.decide(&reading, &who, body, asked, at);
        // A large future, in a box of its own: most requests never come here.
        let decided = self.runs.within_limit(Box::pin(decided)).await;
        let (decision, before) = match decided {
            Ok(decided) => decided,
            Err(trouble) => {
                self.telemetry.store_trouble(&trouble);
                let reason = Passed::from(&trouble);
                self.tell_undecided(&head.headers, Some(&reading), reason);
                return (Verdict::Untouched(reason), None);
            }
        };
        let shadow = decision.run.as_ref().and_then(|run| self.shadow(run, asked));
        self.tell_decision(&decision, &before, &reading, &head.headers, shadow, at);
        let run = decision.run.as_ref().map_or_else(|| self.fresh_id(), |run| run.id.clone());
        let shown = decision.hop.and_then(|hop| {
            let held = decision.run.as_ref()?.transfers.iter().find(|transfer| transfer.record.hop == hop)?;
            Some(Shown {
                record: held.record.id.clone(),
                outcome: if decision.changed { "taken_up" } else { "held" },
            })
        });
        let verdict = match decision.action {
            Action::Rewrite(plan) if shadow.is_none() => {
                Verdict::Rewrite(wire::apply(body, &reading.view, &plan))
            }
            Action::Refuse(finding) if shadow.is_none() => {
                let code = refusal_code(finding.code);
                return (Verdict::Refuse(Refusal { message: finding.what, param: None, code }), None);
            }
            Action::Rewrite(_) | Action::Refuse(_) | Action::Forward(_) => Verdict::Forward,
        };
        let rewritten = matches!(verdict, Verdict::Rewrite(_));
        let exchange = decision.watch.then(|| Exchange {
            inner: shared.clone(),
            body: body.clone(),
            dialect,
            who,
            at,
            run,
            arm: if shadow.is_some() { Arm::Observe } else { Arm::Rewrite },
            shown: shown.filter(|_| rewritten),
            watch: None,
            held: Held::default(),
        });
        (verdict, exchange)
    }

    /// Why a run's requests are left as they are, if they are.
    fn shadow(&self, run: &Run, asked: Asked) -> Option<Passed> {
        if asked == Asked::Observe {
            return Some(Passed::Observed);
        }
        self.live.shadow(&run.id).map(|shadow| match shadow {
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
        }
    }

    /// Looks the run up, decides, and stores what the decision changed; again if somebody came in between.
    async fn decide(
        &self,
        reading: &Reading<'_>,
        who: &Who,
        body: &Bytes,
        asked: Asked,
        at: Timestamp,
    ) -> Result<(Decision, Before), Trouble> {
        let fresh = unseen_id(reading, &who.tenant).unwrap_or_else(|| self.fresh_id());
        let lookups = reading.lookups(who.run.as_deref());
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
                    fresh_id: &fresh,
                    log: &|id| beside.log(id),
                    body: std::str::from_utf8(body).unwrap_or_default(),
                },
            );
            let Some(run) = decision.run.as_mut().filter(|_| decision.changed) else {
                return Ok((decision, before));
            };
            let shadow = self.shadow(run, asked).is_some();
            if let Some(taken) = decision.hop.and_then(|hop| run.transfer_mut(hop)) {
                taken.shadow = shadow;
            }
            let ways = new_ways(reading, run);
            match self.runs.keep(&who.tenant, run, None, beside.versions(&run.id), &ways, at).await {
                Ok(()) => return Ok((decision, before)),
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
    let id = Hasher::new("unseen run").bytes(tenant.as_bytes()).bytes(beginning.as_str().as_bytes()).finish();
    Some(id.as_str()[..16].to_owned())
}

/// A run that began with a transfer seen only in the list can be found by that call from now on.
fn new_ways(reading: &Reading<'_>, run: &Run) -> Vec<Lookup> {
    let known = reading.transfers.iter().filter(|visible| run.by_call(&visible.mark).is_some());
    known.map(|visible| transfer_lookup(&visible.mark)).collect()
}

impl Exchange {
    /// The reply's head came: whether to watch the body.
    pub(crate) fn head(&mut self, head: &mut response::Parts) -> bool {
        if let Some(shown) = &self.shown {
            let name = HeaderValue::from_str(&shown.record).ok();
            head.headers.extend(name.map(|name| (HeaderName::from_static("seam-handoff"), name)));
            head.headers.insert("seam-outcome", HeaderValue::from_static(shown.outcome));
        }
        if !head.status.is_success() {
            return false;
        }
        self.held.headed = Some(Instant::now());
        let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
        let kind = text(header::CONTENT_TYPE).trim_start().to_ascii_lowercase();
        let limit = self.inner.reply_limit;
        let watcher = Watcher::new(self.dialect, kind.starts_with("text/event-stream"), limit);
        self.watch = match text(header::CONTENT_ENCODING) {
            "" | "identity" => Some(Watch::Plain(watcher)),
            encoding => Compressed::new(encoding, watcher, limit).map(|it| Watch::Compressed(Box::new(it))),
        };
        if self.watch.is_none() {
            let what = "its content encoding is not known; nothing was learnt";
            self.inner.telemetry.finding(&Finding::new(Code::ReplyUnreadable, "content-encoding", what));
        }
        self.watch.is_some()
    }

    /// Bytes from upstream in; bytes for the client out, possibly none yet.
    #[expect(clippy::unused_async, reason = "a held transfer call will be stored here before it is released")]
    pub(crate) async fn push(&mut self, chunk: Bytes) -> Vec<Bytes> {
        let came = chunk.len();
        let out = match &mut self.watch {
            Some(Watch::Plain(watcher)) => watcher.push(chunk),
            Some(Watch::Compressed(watcher)) => watcher.push(chunk),
            None => vec![chunk],
        };
        self.held.passed(came, &out);
        out
    }

    /// Upstream ended cleanly or broke. What the reply teaches is stored before its last bytes are given
    /// out; a transfer that could not be stored is not completed where that was chosen.
    pub(crate) async fn finish(&mut self, clean: bool) -> Result<Vec<Bytes>, Passed> {
        let (reply, rest) = match self.watch.take() {
            Some(Watch::Plain(watcher)) => watcher.finish(clean),
            Some(Watch::Compressed(watcher)) => watcher.finish(clean),
            None => return Ok(Vec::new()),
        };
        let Some(reply) = reply else {
            if clean {
                let finding = Finding::new(Code::ReplyUnreadable, "body", "nothing was learnt from it");
                self.inner.telemetry.finding(&finding);
            }
            return Ok(rest);
        };
        let began = Instant::now();
        let mut unkept = None;
        if let Err(trouble) = self.inner.runs.within_limit(self.learn(&reply)).await {
            self.inner.telemetry.store_trouble(&trouble);
            let must_be_kept = self.inner.on_failure == OnFailure::Closed && self.transfers(&reply);
            unkept = must_be_kept.then(|| Passed::from(&trouble));
        }
        let telemetry = &self.inner.telemetry;
        telemetry.worked(Part::ReplyEnd, began.elapsed());
        if let Some(since) = self.held.since {
            telemetry.held(self.held.most, since.elapsed());
        }
        if let Some(usage) = &reply.usage {
            telemetry.spent(usage, if self.shown.is_some() { Brief::With } else { Brief::Without });
        }
        unkept.map_or(Ok(rest), Err)
    }

    /// Whether a reply calls one of the transfer tools on offer.
    fn transfers(&self, reply: &Reply) -> bool {
        let Ok(view) = wire::read(&self.body, self.dialect) else { return false };
        let reading = reading(view, &self.inner.policy.naming, self.who.agent.as_deref());
        let offered =
            |name: &str| reading.offers.iter().any(|offer| reading.view.tools[offer.tool].name == name);
        reply.calls.iter().any(|call| offered(&call.name))
    }

    async fn learn(&self, reply: &Reply) -> Result<(), Trouble> {
        let Ok(view) = wire::read(&self.body, self.dialect) else { return Ok(()) };
        let inner = &self.inner;
        let reading = reading(view, &inner.policy.naming, self.who.agent.as_deref());
        let tenant = &self.who.tenant;
        let request = Hasher::new("request").bytes(&self.body).finish();
        let _turn = inner.runs.turn(&self.run).await;
        for _ in 0..TRIES {
            let (run, log, versions) = inner.runs.load(tenant, &self.run).await?;
            let run = run.unwrap_or_else(|| Run::new(self.run.clone(), reading.is_opening(), self.at));
            let circumstances = Circumstances {
                policy: &inner.policy,
                now: self.at,
                fresh_id: &self.run,
                log: &|_| Log::default(),
                body: std::str::from_utf8(&self.body).unwrap_or_default(),
            };
            let terms = Terms {
                header: self.who.run.as_deref(),
                request: &request,
                asked: None,
                held: false,
                may_correct: false,
                corrections: &[],
            };
            let learned = learn(&reading, reply, run, log, terms, circumstances);
            let (run, log) = (&learned.run, &learned.log);
            match inner.runs.keep(tenant, run, Some(log), versions, &learned.lookups, self.at).await {
                Ok(()) => {
                    let after = self.held.headed.map(|headed| headed.elapsed()).unwrap_or_default();
                    inner.telemetry.learned(&learned, self.arm, after);
                    return Ok(());
                }
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::Conflict.into())
    }
}

/// What a client is told of a refusal, in OpenAI's error shape.
fn refusal_code(code: Code) -> &'static str {
    match code {
        Code::NotHolder => "seam_not_holder",
        Code::BudgetExceeded => "seam_budget_exceeded",
        _ => "seam_refused",
    }
}

impl Held {
    /// So much came, and this went out.
    fn passed(&mut self, came: usize, out: &[Bytes]) {
        let gone: usize = out.iter().map(Bytes::len).sum();
        self.bytes = (self.bytes + came).saturating_sub(gone);
        self.most = self.most.max(self.bytes);
        if self.bytes == 0 {
            self.since = None;
        } else if gone > 0 {
            // The oldest left; what is held now came with this chunk.
            self.since = Some(Instant::now());
        } else {
            self.since.get_or_insert_with(Instant::now);
        }
    }
}

/// The id of this process's `n`th run.
fn fresh(seed: &str, n: u64) -> String {
    Hasher::new("run").bytes(seed.as_bytes()).bytes(&n.to_le_bytes()).finish().as_str()[..16].to_owned()
}

/// What a request asks for itself, in the header `seam-mode`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    Observe,
    Off,
}

impl Asked {
    fn of(headers: &HeaderMap) -> Asked {
        match headers.get("seam-mode").map(HeaderValue::as_bytes) {
            Some(b"observe") => Asked::Observe,
            Some(b"off") => Asked::Off,
            _ => Asked::Nothing,
        }
    }
}

#[cfg(test)]
mod tests;
