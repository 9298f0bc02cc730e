//! The store: where runs and the ways to find them live between requests. A
//! store keeps bytes under keys with versions; what they mean is not its business.

mod memory;

use std::time::Duration;

use bytes::Bytes;

pub use memory::Memory;

/// A value's version. Grows with every write of its key.
pub type Version = u64;

/// What a write expects to find; the write happens only then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No value under the key.
    Absent,
    /// The value of this version.
    Version(Version),
}

/// Why a store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else wrote in between: read again and decide again.
    #[error("the value was written by somebody else in between")]
    Conflict,
}

/// The configured store.
///
/// The promises that every store keeps, whatever is behind it: a write is seen
/// by every later read; a write that expects a version happens for one writer
/// only; a set never holds a member twice and says so when it is full; nothing
/// outlives its time.
#[derive(Clone, Debug)]
pub enum Store {
    /// In this process's memory: lost with it, shared with nobody.
    Memory(Memory),
}

impl Store {
    /// The value under `key`, with its version.
    pub async fn get(&self, key: &str) -> Result<Option<(Bytes, Version)>, StoreError> {
        match self {
            Store::Memory(memory) => Ok(memory.get(key)),
        }
    }

    /// Writes `value` if `expect` holds, to live for `ttl` from now. Gives the new version.
    pub async fn put(
        &self,
        key: &str,
        value: Bytes,
        expect: Expect,
        ttl: Duration,
    ) -> Result<Version, StoreError> {
        match self {
            Store::Memory(memory) => memory.put(key, value, expect, ttl),
        }
    }

    /// Adds `member` to the set under `key`, which holds `cap` at most; the set lives for `ttl` from now.
    /// A full set stays full: that a key is common is worth knowing, who came first is not.
    pub async fn add(&self, key: &str, member: &str, cap: usize, ttl: Duration) -> Result<(), StoreError> {
        match self {
            Store::Memory(memory) => memory.add(key, member, cap, ttl),
        }
        Ok(())
    }

    /// The members of each of the sets, in the order of `keys`.
    pub async fn members(&self, keys: &[String]) -> Result<Vec<Vec<String>>, StoreError> {
        match self {
            Store::Memory(memory) => Ok(keys.iter().map(|key| memory.members(key)).collect()),
        }
    }

    /// Whether nothing has ever been kept: a request need not be read to look anything up.
    pub fn is_untouched(&self) -> bool {
        match self {
            Store::Memory(memory) => memory.is_untouched(),
        }
    }
}
