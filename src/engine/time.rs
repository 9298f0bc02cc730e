//! Points and spans of time, as plain numbers that the caller supplies.

use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch, as the shell's clock read them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Whole seconds from `earlier` to `self`; zero if `earlier` is later.
    pub fn seconds_since(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0) / 1000
    }

    /// This point in time, `ms` milliseconds later.
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> Timestamp {
        Timestamp(self.0.saturating_add(ms))
    }
}
