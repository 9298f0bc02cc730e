//! The store in memory: bounded in bytes, each entry with its own time to live.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use moka::Expiry;
use moka::ops::compute::{CompResult, Op};
use moka::sync::Cache;

use super::{Expect, StoreError, Version};

/// What stands under a key.
#[derive(Clone, Debug)]
enum Entry {
    Value { bytes: Bytes, version: Version, ttl: Duration },
    Set { members: Vec<String>, ttl: Duration },
}

impl Entry {
    fn ttl(&self) -> Duration {
        match self {
            Entry::Value { ttl, .. } | Entry::Set { ttl, .. } => *ttl,
        }
    }

    fn weight(&self) -> usize {
        match self {
            Entry::Value { bytes, .. } => bytes.len(),
            Entry::Set { members, .. } => members.iter().map(String::len).sum(),
        }
    }
}

struct PerEntry;

impl Expiry<String, Entry> for PerEntry {
    fn expire_after_create(&self, _: &String, entry: &Entry, _: Instant) -> Option<Duration> {
        Some(entry.ttl())
    }
    fn expire_after_update(
        &self,
        _: &String,
        entry: &Entry,
        _: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Some(entry.ttl())
    }
}

/// A bounded, expiring map in this process.
#[derive(Clone, Debug)]
pub struct Memory {
    entries: Cache<String, Entry>,
    touched: Arc<AtomicBool>,
}

/// What an entry costs beside its bytes: key, bookkeeping of the cache.
const OVERHEAD: usize = 200;

impl Memory {
    /// A store of at most `capacity` bytes; over that the least used entries go.
    pub fn new(capacity: u64) -> Self {
        let entries = Cache::builder()
            .max_capacity(capacity)
            .weigher(|key: &String, entry: &Entry| {
                u32::try_from(key.len() + entry.weight() + OVERHEAD).unwrap_or(u32::MAX)
            })
            .expire_after(PerEntry)
            .build();
        Memory { entries, touched: Arc::new(AtomicBool::new(false)) }
    }

    pub(super) fn get(&self, key: &str) -> Option<(Bytes, Version)> {
        match self.entries.get(key)? {
            Entry::Value { bytes, version, .. } => Some((bytes, version)),
            Entry::Set { .. } => None,
        }
    }

    pub(super) fn put(
        &self,
        key: &str,
        bytes: Bytes,
        expect: Expect,
        ttl: Duration,
    ) -> Result<Version, StoreError> {
        self.touched.store(true, Ordering::Release);
        let mut written = Err(StoreError::Conflict);
        let slot = &mut written;
        let result = self.entries.entry_by_ref(key).and_compute_with(move |current| {
            let found = match current.map(moka::Entry::into_value) {
                Some(Entry::Value { version, .. }) => Expect::Version(version),
                Some(Entry::Set { .. }) | None => Expect::Absent,
            };
            if found != expect {
                return Op::Nop;
            }
            let version = match found {
                Expect::Absent => 1,
                Expect::Version(version) => version + 1,
            };
            *slot = Ok(version);
            Op::Put(Entry::Value { bytes, version, ttl })
        });
        match result {
            CompResult::Inserted(_) | CompResult::ReplacedWith(_) => written,
            _ => Err(StoreError::Conflict),
        }
    }

    pub(super) fn add(&self, key: &str, member: &str, cap: usize, ttl: Duration) {
        self.touched.store(true, Ordering::Release);
        self.entries.entry_by_ref(key).and_compute_with(|current| {
            let mut members = match current.map(moka::Entry::into_value) {
                Some(Entry::Set { members, .. }) => members,
                Some(Entry::Value { .. }) | None => Vec::new(),
            };
            if !members.iter().any(|known| known == member) && members.len() < cap {
                members.push(member.to_owned());
            }
            Op::Put(Entry::Set { members, ttl })
        });
    }

    pub(super) fn members(&self, key: &str) -> Vec<String> {
        match self.entries.get(key) {
            Some(Entry::Set { members, .. }) => members,
            Some(Entry::Value { .. }) | None => Vec::new(),
        }
    }

    pub(super) fn is_untouched(&self) -> bool {
        !self.touched.load(Ordering::Acquire)
    }
}
