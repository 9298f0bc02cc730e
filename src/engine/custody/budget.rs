//! What a run may spend: tokens from the usage that passes by, money by a price
//! table, time from its first exchange. What is estimated never refuses.

use serde::{Deserialize, Serialize};

use crate::engine::event::{Code, Finding};
use crate::engine::record;
use crate::engine::reply::Usage;
use crate::engine::time::Timestamp;

/// Millionths of the price table's currency.
pub type Micros = u64;

/// What the operator allows a run; what is not set is not limited and not shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allowance {
    /// Transfers since the customer's last turn, to be shown.
    pub hops: Option<u32>,
    /// Tokens, in and out.
    pub tokens: Option<u64>,
    /// Money.
    pub spend: Option<Micros>,
    /// Milliseconds from the first exchange.
    pub deadline_ms: Option<u64>,
    /// What models cost.
    pub prices: Prices,
}

/// Prices by patterns over model names, the first that fits counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    /// Currency as shown, e.g. `USD`.
    pub currency: String,
    rows: Vec<Price>,
}

#[derive(Clone, Debug, PartialEq)]
struct Price {
    model: wildmatch::WildMatch,
    /// Millionths for a million tokens.
    input: u64,
    cached: u64,
    output: u64,
}

/// What a run has spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// Tokens, in and out.
    pub tokens: u64,
    /// Money, as far as prices are known.
    pub spend: Micros,
    /// Whether a part of it is estimated, since a client did not ask for usage.
    pub estimated: bool,
}

impl Spent {
    /// Adds what an exchange cost. Without usage, `bytes` of the list and the reply stand for it.
    pub fn add(&mut self, usage: Option<Usage>, bytes: (usize, usize), model: &str, prices: &Prices) {
        let usage = usage.unwrap_or_else(|| {
            self.estimated = true;
            Usage { input: bytes.0 as u64 / 4, output: bytes.1 as u64 / 4, ..Usage::default() }
        });
        self.tokens = self.tokens.saturating_add(usage.input).saturating_add(usage.output);
        self.spend = self.spend.saturating_add(prices.cost(usage, model));
    }
}

impl Prices {
    /// Reads a table: a line `currency USD`, then lines `model-pattern input cached output`, each a price of a
    /// million tokens. Behind `#` stands a comment. All problems are reported.
    pub fn parse(text: &str) -> Result<Prices, Vec<String>> {
        let mut prices = Prices { currency: "USD".into(), rows: Vec::new() };
        let mut problems = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [] => {}
                ["currency", name] => name.clone_into(&mut prices.currency),
                [model, input, cached, output] => match (micros(input), micros(cached), micros(output)) {
                    (Some(input), Some(cached), Some(output)) => {
                        let model = wildmatch::WildMatch::new(model);
                        prices.rows.push(Price { model, input, cached, output });
                    }
                    _ => problems.push(format!("line {}: a price is a number like 2.50", at + 1)),
                },
                _ => problems.push(format!("line {}: expected `model input cached output`", at + 1)),
            }
        }
        if problems.is_empty() { Ok(prices) } else { Err(problems) }
    }

    fn cost(&self, usage: Usage, model: &str) -> Micros {
        let Some(price) = self.rows.iter().find(|price| price.model.matches(model)) else { return 0 };
        let fresh = usage.input.saturating_sub(usage.cached);
        let of = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price) / 1_000_000;
        let cost = of(fresh, price.input) + of(usage.cached, price.cached) + of(usage.output, price.output);
        u64::try_from(cost).unwrap_or(u64::MAX)
    }
}

/// A decimal number in millionths; none if it is not one, or has more than six places.
pub fn micros(text: &str) -> Option<Micros> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if part.len() > 6 || !digits(whole) || !digits(part) || (whole.is_empty() && part.is_empty()) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: u64 = format!("{part:0<6}").parse().ok()?;
    whole.checked_mul(1_000_000)?.checked_add(part)
}

impl Allowance {
    /// What is left, as a receiver reads it; none where nothing is configured. Rounded down, so that it
    /// changes in coarse steps.
    pub fn left(&self, spent: Spent, hops: u32, begun: Timestamp) -> Option<record::Budget> {
        let left = record::Budget {
            hops_left: self.hops.map(|limit| limit.saturating_sub(hops)),
            tokens_left: self.tokens.map(|limit| limit.saturating_sub(spent.tokens) / 1000 * 1000),
            spend_left: self.spend.map(|limit| {
                let cents = limit.saturating_sub(spent.spend) / 10_000;
                format!("{}.{:02} {}", cents / 100, cents % 100, self.prices.currency)
            }),
            deadline: self.deadline_ms.map(|ms| begun.plus_ms(ms).rfc3339()),
        };
        (left != record::Budget::default()).then_some(left)
    }

    /// What is used up at `now`.
    pub fn exceeded(&self, spent: Spent, begun: Timestamp, now: Timestamp) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut find =
            |place: &str, what: String| findings.push(Finding::new(Code::BudgetExceeded, place, what));
        if let Some(limit) = self.tokens.filter(|limit| spent.tokens > *limit) {
            find("tokens", format!("{} spent, {limit} allowed", spent.tokens));
        }
        if let Some(limit) = self.spend.filter(|limit| spent.spend > *limit) {
            find("spend", format!("{} millionths spent, {limit} allowed", spent.spend));
        }
        if self.deadline_ms.is_some_and(|ms| now > begun.plus_ms(ms)) {
            find("deadline", "the run is past its deadline".into());
        }
        findings
    }

    /// Whether what is used up may refuse: what rests on estimates may not.
    pub fn may_refuse(spent: Spent, finding: &Finding) -> bool {
        !spent.estimated || finding.place == "deadline"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_exact_and_cached_tokens_cost_their_own() {
        let prices =
            Prices::parse("currency EUR\nsmall-* 0.15 0.075 0.60 # a comment\n* 2.50 1.25 10").unwrap();
        let usage = Usage { input: 1_000_000, cached: 400_000, output: 100_000, ..Usage::default() };
        let mut spent = Spent::default();
        spent.add(Some(usage), (0, 0), "small-7b", &prices);
        assert_eq!(spent, Spent { tokens: 1_100_000, spend: 90_000 + 30_000 + 60_000, estimated: false });
        spent.add(None, (400, 40), "large", &prices);
        assert_eq!(spent, Spent { tokens: 1_100_110, spend: 180_000 + 250 + 100, estimated: true });
    }

    #[test]
    fn a_table_that_cannot_be_read_says_where() {
        let problems = Prices::parse("gpt 1 2\n\nx 1 one 2").unwrap_err();
        assert_eq!(problems.len(), 2);
        assert!(problems[1].starts_with("line 3"), "{problems:?}");
        assert_eq!(micros("1.2345678"), None);
        assert_eq!(micros("."), None);
    }

    #[test]
    fn only_what_is_configured_is_shown_and_estimates_never_refuse() {
        let begun = Timestamp(0);
        assert_eq!(Allowance::default().left(Spent::default(), 3, begun), None);
        let allowance = Allowance { tokens: Some(10_000), spend: Some(1_500_000), ..Allowance::default() };
        let spent = Spent { tokens: 10_200, spend: 100_000, estimated: true };
        let left = allowance.left(spent, 0, begun).unwrap();
        assert_eq!((left.tokens_left, left.spend_left.as_deref()), (Some(0), Some("1.40 ")));
        let findings = allowance.exceeded(spent, begun, Timestamp(1));
        assert_eq!(findings.len(), 1);
        assert!(!Allowance::may_refuse(spent, &findings[0]));
    }
}
