//! The store in memory: bounded in bytes, each entry with its own time to live.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use moka::Expiry;
use moka::sync::Cache;

use super::write::{Step, Version, Write};
use super::{Content, StoreError, Value};
use crate::clock::Clock;
use crate::engine::time::Timestamp;

/// What an entry costs beside its bytes: key, bookkeeping of the cache.
const OVERHEAD: usize = 200;

/// A member that is added again lives on from then, unless less than this part of its time is gone: what is
/// written with every request would else be written each time.
const FRESHENED: u32 = 16;

/// A bounded, expiring map in this process.
#[derive(Debug)]
pub(super) struct Memory {
    entries: Cache<String, Entry>,
    /// Held by whoever writes, so that writes happen one after the other.
    desk: Mutex<Desk>,
    touched: AtomicBool,
    clock: Clock,
}

/// What only writers see, and readers of lists.
#[derive(Debug, Default)]
struct Desk {
    /// The version given last.
    version: Version,
    lists: HashMap<String, List>,
}

/// Members by the time they were noted at; both hold the same.
#[derive(Debug, Default)]
struct List {
    by_time: BTreeSet<(Timestamp, String)>,
    times: HashMap<String, Timestamp>,
}

/// What stands under a key.
#[derive(Clone, Debug)]
struct Entry {
    what: What,
    ttl: Duration,
    expires: Timestamp,
}

#[derive(Clone, Debug)]
enum What {
    Value(Content, Version),
    Set(Vec<String>),
}

impl Memory {
    /// A store of at most `capacity` bytes; over that the least used entries go.
    pub(super) fn new(capacity: usize, clock: Clock) -> Memory {
        let entries = Cache::builder()
            .max_capacity(capacity as u64)
            .weigher(|key: &String, entry: &Entry| {
                u32::try_from(key.len() + entry.weight() + OVERHEAD).unwrap_or(u32::MAX)
            })
            .expire_after(PerEntry)
            .build();
        Memory { entries, desk: Mutex::default(), touched: AtomicBool::new(false), clock }
    }

    pub(super) fn value(&self, key: &str) -> Option<Value> {
        match self.fresh(&value_key(key))?.0 {
            What::Value(content, version) => Some((content, version)),
            What::Set(_) => None,
        }
    }

    pub(super) fn members(&self, key: &str) -> Vec<String> {
        match self.fresh(&set_key(key)) {
            Some((What::Set(members), _)) => members,
            Some((What::Value(..), _)) | None => Vec::new(),
        }
    }

    pub(super) fn newest(&self, list: &str, limit: usize) -> Vec<String> {
        let desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        let members = desk.lists.get(list).into_iter().flat_map(|list| list.by_time.iter().rev());
        members.take(limit).map(|(_, member)| member.clone()).collect()
    }

    pub(super) fn write(&self, write: Write) -> Result<(), StoreError> {
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        let found = |key: &str| self.value(key).map(|(_, version)| version);
        if write.expectations().any(|(key, expect)| !expect.holds(found(key))) {
            return Err(StoreError::Conflict);
        }
        self.touched.store(true, Ordering::Release);
        for step in write.steps {
            self.carry_out(step, &mut desk);
        }
        Ok(())
    }

    fn carry_out(&self, step: Step, desk: &mut Desk) {
        match step {
            Step::Put { key, value, ttl, .. } => {
                desk.version += 1;
                self.insert(value_key(&key), What::Value(value, desk.version), ttl);
            }
            Step::Add { key, member, cap, ttl } => {
                let key = set_key(&key);
                let (mut members, left) = match self.fresh(&key) {
                    Some((What::Set(members), left)) => (members, left),
                    _ => (Vec::new(), Duration::ZERO),
                };
                let is_there = members.contains(&member);
                if is_there && ttl.saturating_sub(left) < ttl / FRESHENED {
                    return;
                }
                if !is_there && members.len() < cap {
                    members.push(member);
                }
                self.insert(key, What::Set(members), ttl);
            }
            Step::Note { list, member, at, cap, ttl } => {
                desk.lists.entry(list).or_default().note(member, at, cap, ttl);
            }
            Step::RemoveValue { key } => self.entries.invalidate(&value_key(&key)),
            Step::RemoveSet { key } => self.entries.invalidate(&set_key(&key)),
            Step::Forget { list, member } => {
                if let Some(list) = desk.lists.get_mut(&list) {
                    list.forget(&member);
                }
            }
        }
    }

    pub(super) fn is_untouched(&self) -> bool {
        !self.touched.load(Ordering::Acquire)
    }

    /// All values and all sets, for tests.
    #[cfg(test)]
    pub(super) fn dump(&self) -> super::Dump {
        let mut dump = super::Dump::default();
        for (key, entry) in &self.entries {
            let key = key[2..].to_owned();
            match entry.what {
                What::Value(content, _) => {
                    drop(dump.values.insert(key, content.bytes().expect("it encodes")));
                }
                What::Set(members) => drop(dump.sets.insert(key, members)),
            }
        }
        dump
    }

    fn insert(&self, key: String, what: What, ttl: Duration) {
        let expires = self.clock.now().plus_ms(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        self.entries.insert(key, Entry { what, ttl, expires });
    }

    /// What stands under a key, and for how long yet. The cache drops entries in its own time; what is over by
    /// the clock is not given out meanwhile.
    fn fresh(&self, key: &str) -> Option<(What, Duration)> {
        // Most of what is looked for is not there: to know that costs less than to count it as a use.
        let entry = self.entries.contains_key(key).then(|| self.entries.get(key))??;
        let left = entry.expires.0.checked_sub(self.clock.now().0).filter(|left| *left > 0)?;
        Some((entry.what, Duration::from_millis(left)))
    }
}

fn value_key(key: &str) -> String {
    ["v:", key].concat()
}

fn set_key(key: &str) -> String {
    ["s:", key].concat()
}

impl List {
    fn note(&mut self, member: String, at: Timestamp, cap: usize, ttl: Duration) {
        self.forget(&member);
        self.times.insert(member.clone(), at);
        self.by_time.insert((at, member));
        let over = at.0.saturating_sub(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        let gone = |list: &List| {
            let oldest = list.by_time.first();
            oldest.is_some_and(|(at, _)| at.0 < over || list.by_time.len() > cap)
        };
        while gone(self)
            && let Some((_, member)) = self.by_time.pop_first()
        {
            self.times.remove(&member);
        }
    }

    fn forget(&mut self, member: &str) {
        if let Some(at) = self.times.remove(member) {
            self.by_time.remove(&(at, member.to_owned()));
        }
    }
}

impl Entry {
    fn weight(&self) -> usize {
        match &self.what {
            What::Value(content, _) => content.weight(),
            What::Set(members) => members.iter().map(String::len).sum(),
        }
    }
}

struct PerEntry;

impl Expiry<String, Entry> for PerEntry {
    fn expire_after_create(&self, _: &String, entry: &Entry, _: Instant) -> Option<Duration> {
        Some(entry.ttl)
    }
    fn expire_after_update(
        &self,
        _: &String,
        entry: &Entry,
        _: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Some(entry.ttl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::promises::{Subject, keeps_its_promises};
    use crate::store::{Expect, Store};

    fn start() -> Subject {
        let clock = Clock::manual(Timestamp(1_790_000_000_000));
        Subject::simulated(Store::memory(64 << 20, clock.clone()), clock, ())
    }

    keeps_its_promises!(Some(start()));

    #[test]
    fn over_its_capacity_the_least_used_goes() {
        let memory = Memory::new(100 << 10, Clock::manual(Timestamp(1)));
        for n in 0..100 {
            let value = bytes::Bytes::from(vec![0; 10 << 10]);
            let write = Write::default().put(n.to_string(), value, Expect::Absent, Duration::from_mins(1));
            memory.write(write).expect("it is written");
        }
        memory.entries.run_pending_tasks();
        let kept = (0..100).filter(|n: &u32| memory.value(&n.to_string()).is_some()).count();
        assert!((1..=10).contains(&kept), "{kept}");
    }

    #[test]
    fn a_member_that_is_added_again_lives_on_though_not_each_time_is_written() {
        let clock = Clock::manual(Timestamp(1));
        let memory = Memory::new(1 << 20, clock.clone());
        let ttl = Duration::from_secs(160);
        for step in [0, 9_000, 9_000, 9_000] {
            clock.advance_ms(step);
            memory.write(Write::default().add("a".into(), "b", 8, ttl)).expect("it is written");
        }
        clock.advance_ms(140_000);
        assert_eq!(memory.members("a"), ["b"], "it was added 140 seconds ago");
        clock.advance_ms(20_000);
        assert!(memory.members("a").is_empty());
    }

    #[test]
    fn it_is_untouched_until_something_is_kept() {
        let memory = Memory::new(1 << 20, Clock::System);
        assert!(memory.is_untouched());
        memory
            .write(Write::default().add("a".into(), "b", 1, Duration::from_secs(1)))
            .expect("it is written");
        assert!(!memory.is_untouched());
    }
}
