//! A report as text for a terminal, or as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::cli::quiet;
use crate::engine::handoff::verify::Outcome;
use crate::engine::report::{Pair, Rate, Report, Tally};
use crate::engine::signal::Sign;

/// How it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Markdown,
}

/// Rows that are shown of a list.
const ROWS: usize = 20;

/// The whole report.
pub(super) fn report(report: &Report, compare: bool, format: Format) -> String {
    let mut page = Page { text: String::new(), format };
    if report.all.transfers == 0 {
        return "No transfer was seen yet.\n".to_owned();
    }
    page.heading(&format!("{} transfers in {} runs", report.all.transfers, report.runs));
    page.lines(&summary(&report.all));
    page.heading("What was lost behind a transfer");
    page.table(&["sign", "transfers", "share of those taken up"], signs(&report.all));
    page.heading("Facts");
    page.table(&["outcome", "facts"], facts(&report.all));
    page.heading("Who hands to whom");
    let head = [
        "from",
        "to",
        "transfers",
        "established",
        "not confirmed",
        "asked again",
        "looked up again",
        "bounced",
        "tokens",
    ];
    page.table(&head, report.pairs.iter().take(ROWS).map(pair).collect());
    if !report.cycles.is_empty() {
        page.heading("Ways that came back");
        let rows = report.cycles.iter().take(ROWS);
        page.table(
            &["way", "runs"],
            rows.map(|cycle| vec![way(&cycle.agents), cycle.runs.to_string()]).collect(),
        );
    }
    page.heading("Transfers a run");
    page.table(
        &["transfers", "runs"],
        report.hops.iter().map(|(hops, runs)| vec![hops.to_string(), runs.to_string()]).collect(),
    );
    if !report.all.findings.is_empty() {
        page.heading("Findings");
        page.table(&["finding", "times"], most_first(&report.all.findings));
    }
    if compare {
        page.heading("With a brief, and without");
        page.table(&["sign", "with", "without", "differs"], arms(report));
    }
    if !report.worst.is_empty() {
        page.heading("The worst");
        let rows = report.worst.iter().map(|worst| {
            let what: Vec<String> = worst.what.iter().map(|(name, count)| times(name, *count)).collect();
            vec![worst.id.clone(), format!("{} to {}", agent(&worst.from), agent(&worst.to)), what.join(", ")]
        });
        page.table(&["handoff", "transfer", "what"], rows.collect());
    }
    page.text
}

/// What is said first.
fn summary(all: &Tally) -> Vec<String> {
    let count = |counts: &BTreeMap<String, u64>| {
        let each: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
        each.join(", ")
    };
    let taken_up = all.taken_up();
    let mut lines = vec![
        format!("state: {}", count(&all.states)),
        format!("handoff: {}", count(&all.origins)),
        format!(
            "established facts: {} ({:.1} a transfer)",
            all.established(),
            ratio(all.established(), all.transfers)
        ),
    ];
    if all.tokens_before > 0 {
        lines.push(format!(
            "receivers' lists, estimated tokens: {} as clients sent them, {} with the brief ({:+.0} %)",
            all.tokens_before,
            all.tokens_after,
            (ratio(all.tokens_after, all.tokens_before) - 1.0) * 100.0
        ));
    }
    if taken_up > 0 && all.waited_ms > 0 {
        let seconds = ratio(all.waited_ms, taken_up) / 1_000.0;
        lines.push(format!("from the sender's request to the receiver's: {seconds:.1} s on average"));
    }
    lines
}

fn signs(all: &Tally) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Sign::ALL
        .iter()
        .map(|sign| {
            let rate = all.rate(*sign);
            vec![sign.name().to_owned(), rate.seen.to_string(), share(rate)]
        })
        .collect();
    let bounced = Rate { seen: all.bounced, of: all.transfers };
    rows.push(vec!["bounced".to_owned(), bounced.seen.to_string(), share(bounced)]);
    rows
}

fn facts(all: &Tally) -> Vec<Vec<String>> {
    let of = |outcome: &Outcome| all.facts.get(outcome.name()).copied().unwrap_or(0);
    let seen = Outcome::ALL.iter().filter(|outcome| of(outcome) > 0);
    let mut rows: Vec<_> =
        seen.map(|outcome| vec![outcome.name().to_owned(), of(outcome).to_string()]).collect();
    if all.stale > 0 {
        rows.push(vec!["stale (of these)".to_owned(), all.stale.to_string()]);
    }
    rows
}

fn pair(pair: &Pair) -> Vec<String> {
    let tally = &pair.tally;
    let facts: u64 = tally.facts.values().sum();
    let signed = |sign: Sign| tally.signs.get(sign.name()).copied().unwrap_or(0).to_string();
    vec![
        agent(&pair.from),
        agent(&pair.to),
        tally.transfers.to_string(),
        tally.established().to_string(),
        (facts - tally.established()).to_string(),
        signed(Sign::ReAsked),
        signed(Sign::RepeatedLookup),
        tally.bounced.to_string(),
        format!("{} → {}", tally.tokens_before, tally.tokens_after),
    ]
}

fn arms(report: &Report) -> Vec<Vec<String>> {
    let none = Tally::default();
    let arm = |name: &str| report.arms.get(name).unwrap_or(&none);
    let (with, without) = (arm("rewrite"), arm("observe"));
    let row = |sign: &Sign| {
        let (a, b) = (with.rate(*sign), without.rate(*sign));
        vec![sign.name().to_owned(), spread(a), spread(b), if a.differs(b) { "yes" } else { "no" }.to_owned()]
    };
    Sign::ALL.iter().map(row).collect()
}

fn most_first(counts: &BTreeMap<String, u64>) -> Vec<Vec<String>> {
    let mut rows: Vec<_> = counts.iter().collect();
    rows.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    rows.into_iter().map(|(name, count)| vec![name.clone(), count.to_string()]).collect()
}

fn way(agents: &[String]) -> String {
    agents.iter().map(|name| agent(name)).collect::<Vec<_>>().join(" > ")
}

fn agent(name: &str) -> String {
    if name.is_empty() { "(unknown)".to_owned() } else { quiet(name) }
}

fn times(name: &str, count: u64) -> String {
    if count == 1 { name.to_owned() } else { format!("{name} ×{count}") }
}

fn share(rate: Rate) -> String {
    format!("{:.0} %", rate.share() * 100.0)
}

/// A share with its interval of 95 %.
fn spread(rate: Rate) -> String {
    let (low, high) = rate.interval();
    format!("{} of {}: {} ({:.0} to {:.0})", rate.seen, rate.of, share(rate), low * 100.0, high * 100.0)
}

fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

struct Page {
    text: String,
    format: Format,
}

// Writing to a string cannot fail.
impl Page {
    fn heading(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let _ = match self.format {
            Format::Text => writeln!(self.text, "{text}"),
            Format::Markdown => writeln!(self.text, "## {text}\n"),
        };
    }

    fn lines(&mut self, lines: &[String]) {
        let mark = if self.format == Format::Markdown { "- " } else { "  " };
        for line in lines {
            let _ = writeln!(self.text, "{mark}{line}");
        }
    }

    fn table(&mut self, head: &[&str], rows: Vec<Vec<String>>) {
        let rows: Vec<Vec<String>> =
            std::iter::once(head.iter().map(|&cell| cell.to_owned()).collect()).chain(rows).collect();
        let width = |column: usize| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        for (at, row) in rows.iter().enumerate() {
            let line = match self.format {
                Format::Text => {
                    let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
                    format!("  {}", cells.collect::<Vec<_>>().join("  "))
                }
                Format::Markdown => {
                    let cells = row.iter().map(|cell| cell.replace('|', "\\|"));
                    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
                }
            };
            let _ = writeln!(self.text, "{}", line.trim_end());
            if at == 0 && self.format == Format::Markdown {
                let _ = writeln!(self.text, "|{}", "---|".repeat(head.len()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_pairs() -> Report {
        let tally = |transfers: u64, re_asked: u64| Tally {
            transfers,
            states: BTreeMap::from([("taken_up".to_owned(), transfers)]),
            facts: BTreeMap::from([("verified".to_owned(), 6), ("no_such_call".to_owned(), 1)]),
            signs: BTreeMap::from([("re_asked".to_owned(), re_asked)]),
            tokens_before: 900,
            tokens_after: 600,
            waited_ms: 3_000 * transfers,
            ..Tally::default()
        };
        let pair = |from: &str, to: &str, transfers| Pair {
            from: from.into(),
            to: to.into(),
            tally: tally(transfers, 1),
        };
        Report {
            runs: 3,
            all: tally(4, 2),
            pairs: vec![pair("desk", "garage", 3), pair("", "till\u{1b}[31m", 1)],
            arms: BTreeMap::from([("rewrite".to_owned(), tally(2, 0)), ("observe".to_owned(), tally(2, 2))]),
            hops: BTreeMap::from([(1, 2), (2, 1)]),
            ..Report::default()
        }
    }

    fn check(format: Format, compare: bool, lines: &[&str]) {
        let text = report(&two_pairs(), compare, format);
        for line in lines {
            assert!(text.lines().any(|own| own == *line), "{line:?} in\n{text}");
        }
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn a_report_is_tables_for_a_terminal() {
        check(
            Format::Text,
            true,
            &[
                "4 transfers in 3 runs",
                "  receivers' lists, estimated tokens: 900 as clients sent them, 600 with the brief (-33 %)",
                "  from the sender's request to the receiver's: 3.0 s on average",
                "  re_asked            2          50 %",
                "  (unknown)  till\u{fffd}[31m  1          6            1              1            0                0        900 → 600",
                "  re_asked            0 of 2: 0 % (0 to 66)  2 of 2: 100 % (34 to 100)  no",
            ],
        );
    }

    #[test]
    fn a_report_is_tables_in_markdown() {
        check(
            Format::Markdown,
            false,
            &["## 4 transfers in 3 runs", "| outcome | facts |", "|---|---|", "| no_such_call | 1 |"],
        );
    }

    #[test]
    fn without_transfers_there_is_nothing_to_report() {
        assert_eq!(report(&Report::default(), true, Format::Text), "No transfer was seen yet.\n");
    }
}
