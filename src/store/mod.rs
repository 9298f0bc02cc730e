//! The store: where runs and the ways to find them live between requests. A
//! store keeps bytes under keys with versions; what they mean is not its business.

mod content;
mod embedded;
mod error;
mod memory;
mod patience;
#[cfg(test)]
mod promises;
mod redis;
mod write;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

#[cfg(test)]
use bytes::Bytes;

pub(crate) use self::redis::Address;
pub use content::{Content, Live};
pub use embedded::OpenError;
pub use error::StoreError;
pub use write::{Expect, Version, Write};

use self::redis::Redis;
use crate::clock::Clock;
use embedded::Embedded;
use memory::Memory;
use patience::Patience;

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
    /// None where nothing has to be waited for.
    patience: Option<Arc<Patience>>,
}

#[derive(Clone, Debug)]
enum Place {
    /// In this process's memory: lost with it, shared with nobody.
    Memory(Arc<Memory>),
    /// In a file of this process: survives it, shared with nobody.
    File(Arc<Embedded>),
    /// In a server that others use, too.
    Redis(Arc<Redis>),
}

/// A value and its version.
pub type Value = (Content, Version);

impl Store {
    /// A store in this process's memory, of at most `capacity` bytes.
    pub fn memory(capacity: usize, clock: Clock) -> Store {
        Store { place: Place::Memory(Arc::new(Memory::new(capacity, clock))), patience: None }
    }

    /// A store in the file at `path`, of about `capacity` bytes at most. A call takes `limit` at most.
    pub fn file(path: &Path, capacity: usize, limit: Duration, clock: Clock) -> Result<Store, OpenError> {
        let file = Embedded::open(path, capacity, clock)?;
        Ok(Store { place: Place::File(Arc::new(file)), patience: Some(Arc::new(Patience::new(limit))) })
    }

    /// A store in a Redis server, connected to when it is first asked. A call takes `limit` at most.
    pub(crate) fn redis(address: Address, limit: Duration) -> Store {
        let redis = Redis::new(address);
        Store { place: Place::Redis(Arc::new(redis)), patience: Some(Arc::new(Patience::new(limit))) }
    }

    /// The value under `key`.
    pub async fn get(&self, key: &str) -> Result<Option<Value>, StoreError> {
        Ok(self.values(&[key.to_owned()]).await?.pop().flatten())
    }

    /// The values under `keys`, in their order.
    pub async fn values(&self, keys: &[String]) -> Result<Vec<Option<Value>>, StoreError> {
        self.patiently(async {
            match &self.place {
                Place::Memory(memory) => Ok(keys.iter().map(|key| memory.value(key)).collect()),
                Place::File(file) => file.values(keys).await,
                Place::Redis(redis) => redis.values(keys).await,
            }
        })
        .await
    }

    /// The members of each of the sets under `keys`, in their order; an unknown set is empty.
    pub async fn members(&self, keys: &[String]) -> Result<Vec<Vec<String>>, StoreError> {
        self.patiently(async {
            match &self.place {
                Place::Memory(memory) => Ok(keys.iter().map(|key| memory.members(key)).collect()),
                Place::File(file) => file.members(keys).await,
                Place::Redis(redis) => redis.members(keys).await,
            }
        })
        .await
    }

    /// The members of a list, the newest first, `limit` at most.
    pub async fn newest(&self, list: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        self.patiently(async {
            match &self.place {
                Place::Memory(memory) => Ok(memory.newest(list, limit)),
                Place::File(file) => file.newest(list, limit).await,
                Place::Redis(redis) => redis.newest(list, limit).await,
            }
        })
        .await
    }

    /// Writes all of it, or nothing.
    pub async fn write(&self, write: Write) -> Result<(), StoreError> {
        self.patiently(async {
            match &self.place {
                Place::Memory(memory) => memory.write(write.checked()?),
                Place::File(file) => file.write(write).await,
                Place::Redis(redis) => redis.write(write).await,
            }
        })
        .await
    }

    /// Whether it answers.
    pub async fn reach(&self) -> Result<(), StoreError> {
        self.newest("", 1).await.map(drop)
    }

    /// Whether nothing has ever been kept, so that a request need not be read to look anything up. A
    /// hint that costs nothing; where others may write, it is never given.
    pub fn is_untouched(&self) -> bool {
        match &self.place {
            Place::Memory(memory) => memory.is_untouched(),
            Place::File(file) => file.is_untouched(),
            Place::Redis(_) => false,
        }
    }

    /// What `work` gives, if it does not wait for the store longer than one call may. It is boxed: an
    /// exchange that asks for nothing need not be as large as one that does.
    pub async fn within_limit<T, E: From<StoreError>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let work = Box::pin(work);
        let Some(limit) = self.patience.as_ref().map(|patience| patience.limit()) else { return work.await };
        tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(StoreError::TimedOut(limit).into()))
    }

    async fn patiently<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let Some(patience) = &self.patience else { return call.await };
        let result = patience.wait(call).await;
        if let (Err(StoreError::TimedOut(_)), Place::Redis(redis)) = (&result, &self.place) {
            redis.let_go();
        }
        result
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
            Place::File(_) | Place::Redis(_) => unreachable!("only what is in memory is dumped"),
        }
    }
}
