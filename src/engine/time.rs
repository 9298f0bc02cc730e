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

    /// RFC 3339 in UTC, to the second: `2026-08-08T21:46:10Z`.
    pub fn rfc3339(self) -> String {
        let seconds = self.0 / 1000;
        let (days, of_day) = (seconds / 86_400, seconds % 86_400);
        // Days since 1 March of year 0, in eras of 400 years: leap days then come last (H. Hinnant, "chrono-Compatible
        // Low-Level Date Algorithms").
        let days = days + 719_468;
        let (era, of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = era * 400 + year_of_era + u64::from(month <= 2);
        let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3339_knows_leap_years() {
        let check =
            |seconds: u64, expected: &str| assert_eq!(Timestamp(seconds * 1000 + 999).rfc3339(), expected);
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_399, "2000-02-28T23:59:59Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(951_868_800, "2000-03-01T00:00:00Z");
        check(1_786_225_570, "2026-08-08T21:46:10Z");
        check(4_107_542_400, "2100-03-01T00:00:00Z");
        Timestamp(u64::MAX).rfc3339();
    }
}
