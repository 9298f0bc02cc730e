//! Hashing for what is hashed already.

use std::hash::{BuildHasher, Hasher};

use crate::engine::handoff::value::fold;

/// A cheap hasher of hashes. The seed is the id of the run's first call, which whoever writes a
/// result cannot choose, so that names and keys cannot be made to collide.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mixed(u64);

impl Mixed {
    /// The hasher of a run whose first call has this id.
    pub(crate) fn seeded(id: &str) -> Mixed {
        Mixed(fold::hash(id))
    }

    /// A text's hash from this seed.
    pub(crate) fn text(self, text: &str) -> u64 {
        fold::seeded(self.0, text)
    }
}

impl BuildHasher for Mixed {
    type Hasher = Mixed;

    fn build_hasher(&self) -> Mixed {
        *self
    }
}

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = fold::combine(self.0, value);
    }
}
