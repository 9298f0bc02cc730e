//! Where wall-clock time comes from: the one place that reads it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::engine::time::Timestamp;

/// A source of wall-clock time; cheap to clone.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's clock.
    System,
    /// A clock that stands where it was put, for tests and replays.
    Manual(Arc<AtomicU64>),
}

/// Nanoseconds since the Unix epoch, for what other programs compare with their own clocks.
pub fn nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

impl Clock {
    /// A manual clock that stands at `start`; all clones move together.
    pub fn manual(start: Timestamp) -> Clock {
        Clock::Manual(Arc::new(AtomicU64::new(start.0)))
    }

    /// The time now. A machine whose clock stands before 1970 reads as 1970.
    pub fn now(&self) -> Timestamp {
        match self {
            Clock::System => Timestamp(
                SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
            ),
            Clock::Manual(at) => Timestamp(at.load(Ordering::Relaxed)),
        }
    }

    /// Puts a manual clock forward; the machine's clock is left alone.
    pub fn advance_ms(&self, ms: u64) {
        if let Clock::Manual(at) = self {
            at.fetch_add(ms, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told_and_its_clones_with_it() {
        let clock = Clock::manual(Timestamp(1_000));
        let clone = clock.clone();
        clock.advance_ms(250);
        assert_eq!(clone.now(), Timestamp(1_250));
    }
}
