//! The store: where runs and the ways to find them live between requests. A
//! store keeps bytes under keys with versions; what they mean is not its business.

mod embedded;
mod error;
mod memory;
#[cfg(test)]
mod promises;
mod write;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

pub use embedded::OpenError;
pub use error::StoreError;
pub use write::{Expect, Version, Write};

use crate::clock::Clock;
use embedded::Embedded;
use memory::Memory;

/// The largest value a store takes: many times the largest run or log.
pub const VALUE_LIMIT: usize = 16 << 20;

/// The configured store. Cheap to clone.
///
/// The promises that every store keeps, whatever is behind it (`promises.rs`
/// checks them): a write is seen by every later read; writes that are given
/// together happen together, for one writer only where several expect the same
/// version; a set holds a member once, and is bounded; a list gives its newest
/// first, and is bounded; nothing outlives its time; values, sets and lists of
/// one name do not know of each other.
#[derive(Clone, Debug)]
pub struct Store {
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    /// In this process's memory: lost with it, shared with nobody.
    Memory(Arc<Memory>),
    /// In a file of this process: survives it, shared with nobody.
    File(Arc<Embedded>),
}

/// A value and its version.
pub type Value = (Bytes, Version);

impl Store {
    /// A store in this process's memory, of at most `capacity` bytes.
    pub fn memory(capacity: usize, clock: Clock) -> Store {
        Store { place: Place::Memory(Arc::new(Memory::new(capacity, clock))) }
    }

    /// A store in the file at `path`, of about `capacity` bytes at most.
    pub fn file(path: &Path, capacity: usize, clock: Clock) -> Result<Store, OpenError> {
        Ok(Store { place: Place::File(Arc::new(Embedded::open(path, capacity, clock)?)) })
    }

    /// The value under `key`.
    pub async fn get(&self, key: &str) -> Result<Option<Value>, StoreError> {
        Ok(self.values(&[key.to_owned()]).await?.pop().flatten())
    }

    /// The values under `keys`, in their order.
    pub async fn values(&self, keys: &[String]) -> Result<Vec<Option<Value>>, StoreError> {
        match &self.place {
            Place::Memory(memory) => Ok(keys.iter().map(|key| memory.value(key)).collect()),
            Place::File(file) => file.values(keys).await,
        }
    }

    /// The members of each of the sets under `keys`, in their order; an unknown set is empty.
    pub async fn members(&self, keys: &[String]) -> Result<Vec<Vec<String>>, StoreError> {
        match &self.place {
            Place::Memory(memory) => Ok(keys.iter().map(|key| memory.members(key)).collect()),
            Place::File(file) => file.members(keys).await,
        }
    }

    /// The members of a list, the newest first, `limit` at most.
    pub async fn newest(&self, list: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        match &self.place {
            Place::Memory(memory) => Ok(memory.newest(list, limit)),
            Place::File(file) => file.newest(list, limit).await,
        }
    }

    /// Writes all of it, or nothing.
    pub async fn write(&self, write: Write) -> Result<(), StoreError> {
        write.check()?;
        match &self.place {
            Place::Memory(memory) => memory.write(write),
            Place::File(file) => file.write(write).await,
        }
    }

    /// Whether nothing has ever been kept, so that a request need not be read to look anything up. A
    /// hint that costs nothing; where others may write, it is never given.
    pub fn is_untouched(&self) -> bool {
        match &self.place {
            Place::Memory(memory) => memory.is_untouched(),
            Place::File(file) => file.is_untouched(),
        }
    }
}

/// All values and all sets of a store.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct Dump {
    pub(crate) values: std::collections::BTreeMap<String, Bytes>,
    pub(crate) sets: std::collections::BTreeMap<String, Vec<String>>,
}

#[cfg(test)]
impl Store {
    /// What a store in memory holds.
    pub(crate) fn dump(&self) -> Dump {
        match &self.place {
            Place::Memory(memory) => memory.dump(),
            Place::File(_) => unreachable!("only what is in memory is dumped"),
        }
    }
}
