//! Runs as they stand in the store: under which keys, in which form, and the
//! few things that are done with them.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use moka::sync::Cache;
use tokio::sync::{Mutex, MutexGuard};

use crate::engine::custody::log::Log;
use crate::engine::custody::run::Run;
use crate::engine::decide::{self, Found};
use crate::engine::hash::Hasher;
use crate::engine::read::Lookup;
use crate::engine::record::VERSION;
use crate::engine::time::Timestamp;
use crate::store::{Content, Live, Store, StoreError, Value, Version, Write};
use crate::telemetry::Telemetry;
use crate::telemetry::metrics::Call;

/// The list of runs in which something was transferred, over all tenants.
const RECENT: &str = "runs";
/// How many runs that list holds.
const RECENT_CAP: usize = 10_000;
/// Runs whose writers of this process wait for each other share this many queues.
const QUEUES: usize = 64;

/// Bytes that decoded runs and logs take at most, about, each.
const DECODED: u64 = 16 << 20;

/// The runs of all tenants.
#[derive(Debug)]
pub struct Runs {
    store: Store,
    retention: Duration,
    /// How long a way to find a run lives that serves only a waiting transfer.
    pending: Duration,
    queues: Vec<Mutex<()>>,
    hasher: RandomState,
    decoded: Decoded<Run>,
    logs: Arc<Decoded<Log>>,
    telemetry: Arc<Telemetry>,
}

/// What was decoded lately, with the bytes that it stands for.
struct Decoded<T>(Cache<String, (Bytes, Arc<T>)>);

/// A log that is made when somebody asks for it: most runs end before anything is transferred.
pub struct LateLog {
    log: LazyLock<Arc<Log>, Box<dyn FnOnce() -> Arc<Log> + Send>>,
    weight: usize,
}

/// Whose runs: the head of every key. What one tenant keeps is never found by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant(String);

/// What was found for a request.
#[derive(Debug)]
pub struct Candidates {
    /// For the decision.
    pub found: Found,
    /// What belongs to the runs in it.
    pub beside: Beside,
}

/// What stands beside the runs that were found.
#[derive(Debug)]
pub struct Beside {
    logs: BTreeMap<String, (Option<Content>, Versions)>,
    decoded: Arc<Decoded<Log>>,
}

/// The versions at which a run and its log were read; none of what was not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    run: Option<Version>,
    log: Option<Version>,
}

/// Why a run cannot be worked with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What stands in the store is not for this build to touch.
    #[error("run {run} {why}")]
    Unreadable {
        /// The run's id.
        run: String,
        /// Why.
        why: Unreadable,
    },
}

/// Why what stands in the store is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A newer release wrote it.
    #[error("was written by a newer release (format {0})")]
    Newer(u32),
    /// It is no run at all.
    #[error("cannot be read")]
    Damaged,
}

impl Tenant {
    /// The tenant that this names: a header's value, or a credential. Only its hash is kept.
    pub fn of(name: &[u8]) -> Tenant {
        Tenant(Hasher::new("tenant").bytes(name).finish().to_string())
    }

    /// The hash, to be part of another.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    fn lookup(&self, key: &str) -> String {
        [&self.0, "/", key].concat()
    }

    fn run(&self, id: &str) -> String {
        [&self.0, "/run/", id].concat()
    }

    fn log(&self, id: &str) -> String {
        [&self.0, "/log/", id].concat()
    }
}

impl Beside {
    /// The log of a run that was found.
    pub fn log(&self, id: &str) -> Log {
        let content = self.logs.get(id).and_then(|(content, _)| content.as_ref());
        content.map(|content| Arc::unwrap_or_clone(self.decoded.log(id, content))).unwrap_or_default()
    }

    /// The versions at which it was read.
    pub fn versions(&self, id: &str) -> Versions {
        self.logs.get(id).map(|(_, versions)| *versions).unwrap_or_default()
    }
}

impl<T> std::fmt::Debug for Decoded<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decoded")
    }
}

impl<T: Live> Decoded<T> {
    fn new() -> Self {
        let weigh = |id: &String, (bytes, _): &(Bytes, Arc<T>)| {
            // What is decoded is about as large as what it was decoded from.
            u32::try_from(id.len() + 2 * bytes.len()).unwrap_or(u32::MAX)
        };
        Decoded(Cache::builder().max_capacity(DECODED).weigher(weigh).build())
    }

    /// What a content stands for. Nobody writes the same bytes for something else, whatever wrote in between.
    fn of(
        &self,
        id: &str,
        content: &Content,
        decode: impl FnOnce(&Bytes) -> Result<T, Trouble>,
    ) -> Result<Arc<T>, Trouble> {
        if let Some(live) = content.live() {
            return Ok(live);
        }
        let bytes = content.bytes()?;
        if let Some((_, known)) = self.0.get(id).filter(|(known, _)| *known == bytes) {
            return Ok(known);
        }
        let decoded = Arc::new(decode(&bytes)?);
        self.0.insert(id.to_owned(), (bytes, Arc::clone(&decoded)));
        Ok(decoded)
    }
}

impl Decoded<Log> {
    /// The log that a content stands for. One that cannot be read is one of which everything was cut.
    fn log(&self, id: &str, content: &Content) -> Arc<Log> {
        if let Some(late) = content.live::<LateLog>() {
            return late.log();
        }
        let unread = || {
            let mut log = Log::default();
            log.cut = true;
            Arc::new(log)
        };
        let decode = |bytes: &Bytes| Ok(serde_json::from_slice(bytes).map_err(|_| StoreError::Conflict)?);
        self.of(id, content, decode).unwrap_or_else(|_| unread())
    }
}

impl LateLog {
    /// A log that `make` makes, of about so many bytes.
    pub fn new(weight: usize, make: impl FnOnce() -> Log + Send + 'static) -> LateLog {
        LateLog { log: LazyLock::new(Box::new(|| Arc::new(make()))), weight }
    }

    fn log(&self) -> Arc<Log> {
        Arc::clone(&self.log)
    }
}

impl std::fmt::Debug for LateLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LateLog")
    }
}

impl Live for LateLog {
    fn encode(&self) -> Result<Bytes, StoreError> {
        self.log().encode()
    }

    fn weight(&self) -> usize {
        self.weight
    }
}

impl Live for Log {
    fn encode(&self) -> Result<Bytes, StoreError> {
        encoded(self)
    }

    fn weight(&self) -> usize {
        self.bytes()
    }
}

impl Live for Run {
    fn encode(&self) -> Result<Bytes, StoreError> {
        encoded(self)
    }

    fn weight(&self) -> usize {
        self.bytes()
    }
}

impl Runs {
    /// The runs in `store`.
    pub fn new(store: Store, retention: Duration, pending: Duration, telemetry: Arc<Telemetry>) -> Runs {
        let queues = (0..QUEUES).map(|_| Mutex::default()).collect();
        let (hasher, decoded, logs) = (RandomState::new(), Decoded::new(), Arc::new(Decoded::new()));
        Runs { store, retention, pending, queues, hasher, decoded, logs, telemetry }
    }

    /// Asks the store, and tells telemetry how that went.
    async fn ask<T>(
        &self,
        call: Call,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let began = Instant::now();
        let answer = answer.await;
        self.telemetry.stored(call, answer.as_ref().err(), began.elapsed());
        answer
    }

    /// Whether the store answers.
    pub async fn answers(&self) -> bool {
        let asked = async { Ok(self.ask(Call::Read, self.store.get("health")).await?) };
        self.within_limit(asked).await.is_ok()
    }

    /// Whether there are none, as far as can be told without asking.
    pub fn is_untouched(&self) -> bool {
        self.store.is_untouched()
    }

    /// What `work` gives, if it does not wait for the store longer than an exchange may.
    pub async fn within_limit<T>(
        &self,
        work: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        let result = self.store.within_limit(work).await;
        if let Err(Trouble::Store(StoreError::TimedOut(_))) = &result {
            // A call that was cut off in the middle could not say so itself.
            self.telemetry.metrics.store_degraded.set(1);
        }
        result
    }

    /// The runs that a request may belong to.
    pub async fn find(&self, tenant: &Tenant, lookups: &[&Lookup]) -> Result<Candidates, Trouble> {
        let keys: Vec<String> = lookups.iter().map(|lookup| tenant.lookup(&lookup.key)).collect();
        let mut sets = decide::found(lookups, self.ask(Call::Find, self.store.members(&keys)).await?);
        let ids = decide::candidates(&sets);
        let beside = Beside { logs: BTreeMap::new(), decoded: Arc::clone(&self.logs) };
        let mut candidates = Candidates { found: Found::default(), beside };
        for (id, kept) in ids.iter().zip(self.load_all(tenant, &ids).await?) {
            let (run, log, read) = kept;
            let Some(run) = run else { continue };
            let run = self.decoded.of(id, &run, |bytes| decoded_run(id, bytes))?;
            candidates.found.runs.insert(id.clone(), run);
            candidates.beside.logs.insert(id.clone(), (log, read));
        }
        // A run that expired or was removed is known no more, whatever still points at it.
        for (_, set) in &mut sets {
            set.retain(|id| candidates.found.runs.contains_key(id) || !ids.contains(id));
        }
        sets.retain(|(_, set)| !set.is_empty());
        candidates.found.sets = sets;
        Ok(candidates)
    }

    /// A run and its log by its id.
    pub async fn load(
        &self,
        tenant: &Tenant,
        id: &str,
    ) -> Result<(Option<Arc<Run>>, Arc<Log>, Versions), Trouble> {
        let kept = self.load_all(tenant, std::slice::from_ref(&id.to_owned())).await?.pop();
        let (run, log, read) = kept.unwrap_or_default();
        let run = run.map(|run| self.decoded.of(id, &run, |bytes| decoded_run(id, bytes))).transpose()?;
        let log = log.map(|log| self.logs.log(id, &log)).unwrap_or_default();
        Ok((run, log, read))
    }

    /// Keeps a run as it is now, its log if that was changed too, and the ways to find it; nothing of it
    /// if somebody else wrote the run since it was read.
    pub async fn keep(
        &self,
        tenant: &Tenant,
        run: &Arc<Run>,
        log: Option<Content>,
        read: Versions,
        lookups: &[Lookup],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut write = Write::default();
        if let Some(log) = log {
            write = write.put(tenant.log(&run.id), log, read.log.into(), self.retention);
        }
        write = write.put(tenant.run(&run.id), Arc::clone(run), read.run.into(), self.retention);
        for lookup in lookups {
            let ttl = if lookup.way.waits() { self.pending } else { self.retention };
            write = write.add(tenant.lookup(&lookup.key), &run.id, decide::COMMON, ttl);
        }
        if !run.transfers.is_empty() {
            write = write.add(whose(&run.id), &tenant.0, 1, self.retention);
            write = write.note(RECENT, &run.id, now, RECENT_CAP, self.retention);
        }
        self.ask(Call::Write, self.store.write(write)).await
    }

    /// Waits until no other writer of this process is at work on the run. Writers of other processes are
    /// met by a conflict; without this queue, many at once would meet it again and again.
    pub async fn turn(&self, run: &str) -> MutexGuard<'_, ()> {
        let at = self.hasher.hash_one(run) as usize % self.queues.len();
        self.queues[at].lock().await
    }

    /// The runs in which something was transferred, of all tenants, the newest first. What this build
    /// cannot read is not among them.
    pub async fn recent(&self, limit: usize) -> Result<Vec<Run>, StoreError> {
        let ids = self.ask(Call::List, self.store.newest(RECENT, limit)).await?;
        let whose_keys: Vec<String> = ids.iter().map(|id| whose(id)).collect();
        let tenants = self.ask(Call::Find, self.store.members(&whose_keys)).await?;
        let keys: Vec<String> = (ids.iter().zip(tenants))
            .filter_map(|(id, tenant)| Some(Tenant(tenant.into_iter().next()?).run(id)))
            .collect();
        let values = self.ask(Call::Read, self.store.values(&keys)).await?.into_iter().flatten();
        let decoded = |(content, _): Value| match content.live() {
            Some(live) => Some(Arc::unwrap_or_clone(live)),
            None => decoded_run("", &content.bytes().ok()?).ok(),
        };
        Ok(values.filter_map(decoded).collect())
    }

    /// A run in which something was transferred, by its id alone, for who runs Seam.
    pub async fn by_id(&self, id: &str) -> Result<Option<Run>, Trouble> {
        match self.tenant_of(id).await? {
            Some(tenant) => Ok(self.load(&tenant, id).await?.0.map(Arc::unwrap_or_clone)),
            None => Ok(None),
        }
    }

    /// Removes a run and all that was said in it. Whether there was one.
    pub async fn remove(&self, id: &str) -> Result<bool, StoreError> {
        let Some(tenant) = self.tenant_of(id).await? else { return Ok(false) };
        let _turn = self.turn(id).await;
        // The ways to find it hold hashes alone, lead nowhere now, and end by themselves.
        let write = Write::default().remove(tenant.run(id)).remove(tenant.log(id));
        self.ask(Call::Write, self.store.write(write.remove(whose(id)).forget(RECENT, id))).await?;
        Ok(true)
    }

    async fn tenant_of(&self, id: &str) -> Result<Option<Tenant>, StoreError> {
        let found = self.ask(Call::Find, self.store.members(&[whose(id)])).await?;
        Ok(found.into_iter().flatten().next().map(Tenant))
    }

    /// Runs, logs and the versions of both, in one round.
    async fn load_all(
        &self,
        tenant: &Tenant,
        ids: &[String],
    ) -> Result<Vec<(Option<Content>, Option<Content>, Versions)>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<String> = ids.iter().flat_map(|id| [tenant.run(id), tenant.log(id)]).collect();
        let mut values = self.ask(Call::Read, self.store.values(&keys)).await?.into_iter();
        let mut next = || values.next().flatten();
        let split =
            |value: Option<Value>| value.map_or((None, None), |(b, version)| (Some(b), Some(version)));
        let pair = |_: &String| {
            let ((run, run_version), (log, log_version)) = (split(next()), split(next()));
            (run, log, Versions { run: run_version, log: log_version })
        };
        Ok(ids.iter().map(pair).collect())
    }
}

/// Where it is noted whose a run is.
fn whose(id: &str) -> String {
    ["whose/", id].concat()
}

fn encoded<T: serde::Serialize>(value: &T) -> Result<Bytes, StoreError> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|error| StoreError::Failed(error.to_string()))
}

/// Fields that an older release did not know have defaults; fields that a newer one adds under the same
/// format are passed over. A newer format is left alone.
fn decoded_run(id: &str, bytes: &[u8]) -> Result<Run, Trouble> {
    #[derive(serde::Deserialize)]
    struct Head {
        version: u32,
    }
    let version = match serde_json::from_slice::<Run>(bytes) {
        Ok(run) if run.version <= VERSION => return Ok(run),
        Ok(run) => Some(run.version),
        Err(_) => serde_json::from_slice::<Head>(bytes).ok().map(|head| head.version),
    };
    let why = match version {
        Some(version) if version > VERSION => Unreadable::Newer(version),
        _ => Unreadable::Damaged,
    };
    Err(Trouble::Unreadable { run: id.to_owned(), why })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clock::Clock;
    use crate::engine::read::Way;
    use crate::store::Expect;

    const HOUR: Duration = Duration::from_hours(1);

    struct Desk {
        runs: Runs,
        store: Store,
    }

    impl Desk {
        fn new() -> Desk {
            let store = Store::memory(1 << 20, Clock::manual(Timestamp(1_790_000_000_000)));
            Desk { runs: Runs::new(store.clone(), HOUR, HOUR, Arc::default()), store }
        }

        async fn write_raw(&self, tenant: &Tenant, id: &str, text: &str) {
            let bytes = Bytes::copy_from_slice(text.as_bytes());
            let write = Write::default().put(tenant.run(id), bytes, Expect::Absent, HOUR);
            let write = write.add(tenant.lookup(&way().key), id, 8, HOUR);
            self.store.write(write).await.expect("it is written");
        }
    }

    fn way() -> Lookup {
        Lookup { way: Way::Lineage, key: "line/abc".into() }
    }

    fn run(id: &str) -> Arc<Run> {
        let case = include_str!("../tests/golden/store/1.json");
        let case: serde_json::Value = serde_json::from_str(case).expect("JSON");
        let mut values = case["values"].as_object().expect("values").iter();
        let (_, text) = values.find(|(key, _)| key.contains("/run/")).expect("a run");
        let mut run: Run = serde_json::from_str(text.as_str().expect("text")).expect("a run");
        id.clone_into(&mut run.id);
        Arc::new(run)
    }

    #[tokio::test]
    async fn what_a_newer_release_wrote_is_left_alone() {
        let desk = Desk::new();
        let tenant = Tenant::of(b"one");
        for (id, text, why) in [
            ("newer", r#"{"version":2,"whatever":[]}"#, Unreadable::Newer(2)),
            ("no-run", r#"{"version":1}"#, Unreadable::Damaged),
            ("no-json", "\u{0}", Unreadable::Damaged),
            ("nothing", "", Unreadable::Damaged),
        ] {
            let trouble = Trouble::Unreadable { run: id.into(), why };
            desk.write_raw(&tenant, id, text).await;
            assert_eq!(desk.runs.load(&tenant, id).await.expect_err("unreadable"), trouble);
            let found = desk.runs.find(&tenant, &[&way()]).await;
            assert_eq!(found.expect_err("unreadable"), trouble, "it may be the one that is meant");
            desk.store.write(Write::default().remove(tenant.run(id))).await.expect("it is removed");
        }
        let mut newer = run("a");
        Arc::make_mut(&mut newer).version = VERSION + 1;
        let text = serde_json::to_string(&*newer).expect("JSON");
        desk.write_raw(&tenant, "a", &text).await;
        assert!(desk.runs.load(&tenant, "a").await.is_err(), "also where it reads like this one's");
    }

    #[tokio::test]
    async fn a_run_is_kept_for_one_writer_and_found_by_its_tenant_alone() {
        let desk = Desk::new();
        let (one, two) = (Tenant::of(b"one"), Tenant::of(b"two"));
        let read = Versions::default();
        let now = Timestamp(1);
        desk.runs
            .keep(&one, &run("a"), Some(Arc::new(Log::default()).into()), read, &[way()], now)
            .await
            .expect("it is kept");
        let again = desk.runs.keep(&one, &run("a"), None, read, &[way()], now).await;
        assert_eq!(again, Err(StoreError::Conflict));
        let found = desk.runs.find(&one, &[&way()]).await.expect("a store");
        assert_eq!(found.found.sets, [(Way::Lineage, vec!["a".to_owned()])]);
        desk.runs
            .keep(&one, &run("a"), None, found.beside.versions("a"), &[], now)
            .await
            .expect("it is kept");
        assert!(desk.runs.find(&two, &[&way()]).await.expect("a store").found.sets.is_empty());
        assert!(desk.runs.load(&two, "a").await.expect("a store").0.is_none());
    }

    proptest! {
        #[test]
        fn keys_of_two_tenants_never_meet(one: Vec<u8>, two: Vec<u8>, a in ".{0,40}", b in ".{0,40}") {
            prop_assume!(one != two);
            let keys = |tenant: &Tenant, id: &str| [tenant.run(id), tenant.log(id), tenant.lookup(id)];
            let (one, two) = (Tenant::of(&one), Tenant::of(&two));
            for key in keys(&one, &a) {
                prop_assert!(!keys(&two, &b).contains(&key) && !keys(&two, &a).contains(&key));
                prop_assert!(key != whose(&a) && key != whose(&b));
            }
        }
    }

    #[tokio::test]
    async fn who_runs_seam_sees_the_newest_runs_and_can_remove_them() {
        let desk = Desk::new();
        let read = Versions::default();
        for (n, id) in ["a", "b", "c"].into_iter().enumerate() {
            let tenant = Tenant::of(id.as_bytes());
            let at = Timestamp(n as u64);
            desk.runs
                .keep(&tenant, &run(id), Some(Arc::new(Log::default()).into()), read, &[way()], at)
                .await
                .expect("kept");
        }
        let tenant = Tenant::of(b"a");
        desk.runs
            .keep(
                &tenant,
                &Arc::new(Run::new("plain".into(), true, Timestamp(9))),
                None,
                read,
                &[],
                Timestamp(9),
            )
            .await
            .expect("");
        let ids = async |limit| -> Vec<String> {
            desk.runs.recent(limit).await.expect("a store").into_iter().map(|run| run.id).collect()
        };
        assert_eq!(ids(9).await, ["c", "b", "a"], "those in which something was transferred");
        assert_eq!(ids(1).await, ["c"]);
        assert!(desk.runs.by_id("b").await.expect("a store").is_some());
        assert_eq!(desk.runs.remove("b").await, Ok(true));
        assert_eq!(desk.runs.remove("b").await, Ok(false));
        assert!(desk.runs.by_id("b").await.expect("a store").is_none());
        assert_eq!(ids(9).await, ["c", "a"]);
        let tenant = Tenant::of(b"b");
        let values = desk.store.values(&[tenant.run("b"), tenant.log("b")]).await.expect("a store");
        assert!(values.iter().all(Option::is_none));
        let found = desk.runs.find(&tenant, &[&way()]).await.expect("a store");
        assert!(found.found.sets.is_empty(), "what points at it leads nowhere");
    }
}
