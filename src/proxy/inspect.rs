//! Where the engine is asked: the one file that takes an exchange to the store
//! and back. What to look up, what to decide and what to learn is the engine's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header, request, response};

use super::error::Refusal;
use crate::clock::Clock;
use crate::config::Config;
use crate::engine::custody::log::Log;
use crate::engine::custody::run::Run;
use crate::engine::decide::{self, Action, Circumstances, Decision, Found};
use crate::engine::event::{Code, Finding};
use crate::engine::hash::Hasher;
use crate::engine::learn::{Learned, learn};
use crate::engine::policy::{Mode, Policy};
use crate::engine::read::{Reading, reading};
use crate::engine::reply::Reply;
use crate::engine::time::Timestamp;
use crate::engine::view::Dialect;
use crate::engine::watch::Watcher;
use crate::engine::wire;
use crate::store::{Expect, Store, StoreError, Version};
use crate::telemetry::Telemetry;

/// Writers of one run that may come in between before a request gives up and passes as it is.
const TRIES: usize = 4;

/// What to do with an inspected request.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Send it up as it came.
    Forward,
    /// Send this in its place.
    Rewrite(Bytes),
    /// Answer it here.
    #[expect(dead_code, reason = "nothing is enforced yet")]
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
    store: Store,
    clock: Clock,
    tenant_header: Option<HeaderName>,
    run_header: Option<HeaderName>,
    agent_header: Option<HeaderName>,
    retention: Duration,
    pending: Duration,
    reply_limit: usize,
    telemetry: Arc<Telemetry>,
    /// Makes ids of runs unlike those of other processes.
    seed: String,
    runs: AtomicU64,
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
    /// What the client reads in the reply's head, if the request was changed.
    shown: Option<Shown>,
    watcher: Option<Watcher>,
}

#[derive(Debug)]
struct Shown {
    record: String,
    outcome: &'static str,
}

/// What a request's head says of its origin.
#[derive(Clone, Debug)]
struct Who {
    /// The head of every key.
    tenant: String,
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
        Inspector {
            inner: Arc::new(Inner {
                policy,
                store,
                clock,
                tenant_header: config.tenant_header.clone(),
                run_header: config.run_header.clone(),
                agent_header: config.agent_header.clone(),
                retention: config.retention,
                pending: config.pending_ttl,
                reply_limit: config.reply_limit,
                telemetry,
                seed,
                runs: AtomicU64::new(0),
            }),
        }
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
        let forward = (Verdict::Forward, None);
        let dialect =
            if head.uri.path().ends_with("/responses") { Dialect::Responses } else { Dialect::Chat };
        let asked = Asked::of(&head.headers);
        if asked == Asked::Off || !self.may_concern(body) {
            return forward;
        }
        let view = match wire::read(body, dialect) {
            Ok(view) => view,
            Err(wire::Unreadable::DialectUnsupported) => return forward,
            Err(why) => {
                self.telemetry.finding(&Finding::new(Code::BodyUnreadable, "body", why.to_string()));
                return forward;
            }
        };
        let who = self.who(&head.headers);
        let reading = reading(view, &self.policy.naming, who.agent.as_deref());
        if reading.offers.is_empty() && reading.transfers.is_empty() && self.store.is_untouched() {
            return forward;
        }
        let at = self.clock.now();
        let decision = match self.decide(&reading, &who, body, at).await {
            Ok(decision) => decision,
            Err(error) => {
                self.telemetry.store_failed(&error);
                return forward;
            }
        };
        self.telemetry.decided(&decision);
        let run = decision.run.as_ref().map_or_else(|| self.fresh_id(), |run| run.id.clone());
        let shown = decision.hop.and_then(|hop| {
            let held = decision.run.as_ref()?.transfers.iter().find(|transfer| transfer.record.hop == hop)?;
            Some(Shown {
                record: held.record.id.clone(),
                outcome: if decision.changed { "taken_up" } else { "held" },
            })
        });
        let observe = self.policy.mode == Mode::Observe || asked == Asked::Observe;
        let verdict = match decision.action {
            Action::Rewrite(plan) if !observe => Verdict::Rewrite(wire::apply(body, &reading.view, &plan)),
            Action::Rewrite(_) | Action::Forward(_) => Verdict::Forward,
        };
        let rewritten = matches!(verdict, Verdict::Rewrite(_));
        let exchange = decision.watch.then(|| Exchange {
            inner: shared.clone(),
            body: body.clone(),
            dialect,
            who,
            at,
            run,
            shown: shown.filter(|_| rewritten),
            watcher: None,
        });
        (verdict, exchange)
    }

    /// A look at the bytes alone: whether there can be anything to read in them.
    fn may_concern(&self, body: &[u8]) -> bool {
        !self.store.is_untouched() || self.policy.naming.may_be_named_in(body)
    }

    fn who(&self, headers: &HeaderMap) -> Who {
        let text = |name: &Option<HeaderName>| {
            let value = headers.get(name.as_ref()?)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let mut tenant = Hasher::new("tenant");
        match &self.tenant_header {
            Some(name) => tenant.bytes(headers.get(name).map_or(&b""[..], HeaderValue::as_bytes)),
            // A credential is one tenant. Only its hash is kept.
            None => {
                let credential = headers.get(header::AUTHORIZATION).or_else(|| headers.get("api-key"));
                tenant.bytes(credential.map_or(&b""[..], HeaderValue::as_bytes))
            }
        };
        Who {
            tenant: tenant.finish().to_string(),
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
        at: Timestamp,
    ) -> Result<Decision, StoreError> {
        let fresh = self.fresh_id();
        for _ in 0..TRIES {
            let (found, versions, logs) = self.look_up(reading, who).await?;
            let decision = decide::decide(
                reading,
                found,
                Circumstances {
                    policy: &self.policy,
                    now: at,
                    fresh_id: &fresh,
                    log: &|id| logs.get(id).and_then(|bytes| decoded(bytes)).unwrap_or_default(),
                    body: std::str::from_utf8(body).unwrap_or_default(),
                },
            );
            let Some(run) = decision.run.as_ref().filter(|_| decision.changed) else { return Ok(decision) };
            let expect = versions.get(&run.id).map_or(Expect::Absent, |version| Expect::Version(*version));
            match self.store.put(&who.run_key(&run.id), encoded(run), expect, self.retention).await {
                Ok(_) => {
                    self.index_new(reading, who, run).await?;
                    return Ok(decision);
                }
                Err(StoreError::Conflict) => {}
            }
        }
        Err(StoreError::Conflict)
    }

    /// A run that began with a transfer seen only in the list can be found by that call from now on.
    async fn index_new(&self, reading: &Reading<'_>, who: &Who, run: &Run) -> Result<(), StoreError> {
        for visible in &reading.transfers {
            if run.by_call(&visible.mark).is_some() {
                let key = who.key(&crate::engine::read::transfer_lookup(&visible.mark).key);
                self.store.add(&key, &run.id, decide::COMMON, self.retention).await?;
            }
        }
        Ok(())
    }

    async fn look_up(
        &self,
        reading: &Reading<'_>,
        who: &Who,
    ) -> Result<(Found, BTreeMap<String, Version>, BTreeMap<String, Bytes>), StoreError> {
        let lookups = reading.lookups(who.run.as_deref());
        let keys: Vec<String> = lookups.iter().map(|lookup| who.key(&lookup.key)).collect();
        let sets = decide::found(&lookups, self.store.members(&keys).await?);
        let mut found = Found { runs: BTreeMap::new(), sets };
        let mut versions = BTreeMap::new();
        let mut logs = BTreeMap::new();
        for id in decide::candidates(&found.sets) {
            if let Some((bytes, version)) = self.store.get(&who.run_key(&id)).await?
                && let Some(run) = decoded::<Run>(&bytes)
            {
                if let Some((log, _)) = self.store.get(&who.log_key(&id)).await? {
                    logs.insert(id.clone(), log);
                }
                versions.insert(id.clone(), version);
                found.runs.insert(id, run);
            }
        }
        Ok((found, versions, logs))
    }

    fn fresh_id(&self) -> String {
        fresh(&self.seed, self.runs.fetch_add(1, Ordering::Relaxed))
    }
}

impl Who {
    fn key(&self, key: &str) -> String {
        format!("{}/{key}", self.tenant)
    }

    fn run_key(&self, id: &str) -> String {
        format!("{}/run/{id}", self.tenant)
    }

    fn log_key(&self, id: &str) -> String {
        format!("{}/log/{id}", self.tenant)
    }
}

impl Exchange {
    /// The reply's head came: whether to watch the body.
    pub(crate) fn head(&mut self, head: &mut response::Parts) -> bool {
        if let Some(shown) = &self.shown {
            let name = HeaderValue::from_str(&shown.record).ok();
            head.headers.extend(name.map(|name| (HeaderName::from_static("seam-handoff"), name)));
            head.headers.insert("seam-outcome", HeaderValue::from_static(shown.outcome));
        }
        let encoded = head.headers.get(header::CONTENT_ENCODING).is_some_and(|value| value != "identity");
        if !head.status.is_success() || encoded {
            return false;
        }
        let kind = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
        let streamed = kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream");
        self.watcher = Some(Watcher::new(self.dialect, streamed, self.inner.reply_limit));
        true
    }

    /// Bytes from upstream in; bytes for the client out, possibly none yet.
    #[expect(clippy::unused_async, reason = "a held transfer call will be stored here before it is released")]
    pub(crate) async fn push(&mut self, chunk: Bytes) -> Vec<Bytes> {
        match &mut self.watcher {
            Some(watcher) => watcher.push(chunk),
            None => vec![chunk],
        }
    }

    /// Upstream ended cleanly or broke. What the reply teaches is stored before its last bytes are given out.
    pub(crate) async fn finish(&mut self, clean: bool) -> Vec<Bytes> {
        let Some(watcher) = self.watcher.take() else { return Vec::new() };
        let (reply, rest) = watcher.finish(clean);
        if let Some(reply) = reply
            && let Err(error) = self.learn(&reply).await
        {
            self.inner.telemetry.store_failed(&error);
        }
        rest
    }

    async fn learn(&self, reply: &Reply) -> Result<(), StoreError> {
        let Ok(view) = wire::read(&self.body, self.dialect) else { return Ok(()) };
        let inner = &self.inner;
        let reading = reading(view, &inner.policy.naming, self.who.agent.as_deref());
        let (run_key, log_key) = (self.who.run_key(&self.run), self.who.log_key(&self.run));
        for _ in 0..TRIES {
            let stored = inner.store.get(&run_key).await?;
            let expect = stored.as_ref().map_or(Expect::Absent, |(_, version)| Expect::Version(*version));
            let run = stored
                .and_then(|(bytes, _)| decoded(&bytes))
                .unwrap_or_else(|| Run::new(self.run.clone(), reading.is_opening()));
            let log = inner.store.get(&log_key).await?;
            let log_expect = log.as_ref().map_or(Expect::Absent, |(_, version)| Expect::Version(*version));
            let log: Log = log.and_then(|(bytes, _)| decoded(&bytes)).unwrap_or_default();
            let circumstances = Circumstances {
                policy: &inner.policy,
                now: self.at,
                fresh_id: &self.run,
                log: &|_| Log::default(),
                body: std::str::from_utf8(&self.body).unwrap_or_default(),
            };
            let learned = learn(&reading, reply, run, log, self.who.run.as_deref(), circumstances);
            match inner.store.put(&log_key, encoded(&learned.log), log_expect, inner.retention).await {
                Ok(_) => {}
                Err(StoreError::Conflict) => continue,
            }
            match inner.store.put(&run_key, encoded(&learned.run), expect, inner.retention).await {
                Ok(_) => {}
                Err(StoreError::Conflict) => continue,
            }
            self.index(&learned).await?;
            inner.telemetry.learned(&learned);
            return Ok(());
        }
        Err(StoreError::Conflict)
    }

    async fn index(&self, learned: &Learned) -> Result<(), StoreError> {
        for lookup in &learned.lookups {
            let ttl = if lookup.way.waits() { self.inner.pending } else { self.inner.retention };
            self.inner.store.add(&self.who.key(&lookup.key), &self.run, decide::COMMON, ttl).await?;
        }
        Ok(())
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

fn encoded<T: serde::Serialize>(value: &T) -> Bytes {
    serde_json::to_vec(value).map(Bytes::from).unwrap_or_default()
}

fn decoded<T: serde::de::DeserializeOwned>(bytes: &Bytes) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}
