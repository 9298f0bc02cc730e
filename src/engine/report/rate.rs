//! A share of a count, with how sure it is.

use serde::{Deserialize, Serialize};

/// So many of so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// How many it was.
    pub seen: u64,
    /// Of how many.
    pub of: u64,
}

impl Rate {
    /// The share; 0 of none.
    pub fn share(self) -> f64 {
        if self.of == 0 { 0.0 } else { self.seen as f64 / self.of as f64 }
    }

    /// Where the true share lies with 95 % confidence (E. B. Wilson, "Probable Inference, the Law of Succession,
    /// and Statistical Inference", 1927); everything where nothing was counted.
    pub fn interval(self) -> (f64, f64) {
        const Z: f64 = 1.96;
        if self.of == 0 {
            return (0.0, 1.0);
        }
        let (n, p) = (self.of as f64, self.share());
        let spread = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        let (centre, scale) = (p + Z * Z / (2.0 * n), 1.0 + Z * Z / n);
        (((centre - spread) / scale).max(0.0), ((centre + spread) / scale).min(1.0))
    }

    /// Whether two shares differ beyond what chance explains: their intervals do not meet.
    pub fn differs(self, other: Rate) -> bool {
        let (a, b) = (self.interval(), other.interval());
        a.1 < b.0 || b.1 < a.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_wilsons() {
        let check = |seen, of, low: f64, high: f64| {
            let (a, b) = Rate { seen, of }.interval();
            assert!((a - low).abs() < 0.001 && (b - high).abs() < 0.001, "{seen} of {of}: {a} {b}");
        };
        check(0, 0, 0.0, 1.0);
        check(0, 10, 0.0, 0.2775);
        check(5, 10, 0.2366, 0.7634);
        check(92, 418, 0.1830, 0.2623);
        check(10, 10, 0.7225, 1.0);
    }

    #[test]
    fn shares_differ_where_chance_cannot_explain_it() {
        let rate = |seen, of| Rate { seen, of };
        assert!(rate(90, 400).differs(rate(20, 400)));
        assert!(!rate(3, 10).differs(rate(1, 10)));
        assert!(!rate(0, 0).differs(rate(5, 10)));
    }
}
