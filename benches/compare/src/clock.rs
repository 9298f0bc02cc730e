//! The machine's monotonic clock, which two processes can compare.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since some moment that is the same for every process.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
