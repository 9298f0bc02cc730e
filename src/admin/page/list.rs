//! The page's first view: what the newest transfers say together, and each of them.

use maud::{Markup, html};

use super::{graph, grouped, words};
use crate::engine::custody::run::{Run, Transfer};
use crate::engine::handoff::verify::Outcome;
use crate::engine::record::State;
use crate::engine::report::{Report, Tally, Wanted, is_fault};
use crate::engine::signal::Sign;
use crate::engine::time::Timestamp;
use crate::telemetry::shown::head;

/// What the view is made of.
pub(super) struct Listed {
    rows: Vec<Row>,
    report: Report,
    /// Transfers before the search.
    all: usize,
    /// The words that are searched for.
    pub(super) wanted: String,
}

/// What stands for a sender that nobody named.
pub(super) const UNKNOWN: &str = "(unknown)";

struct Row {
    id: String,
    at: Timestamp,
    from: String,
    to: String,
    state: State,
    origin: &'static str,
    arm: Option<&'static str>,
    hop: u32,
    established: usize,
    not_confirmed: usize,
    findings: Vec<&'static str>,
    signs: Vec<Sign>,
    tokens: (u64, u64),
}

impl Listed {
    /// The transfers of `runs` that have all the words in `wanted`, the newest first.
    pub(super) fn of(runs: &[Run], wanted: String, limit: usize) -> Listed {
        let transfers = runs.iter().flat_map(|run| run.transfers.iter().map(move |transfer| (run, transfer)));
        let mut rows: Vec<Row> = transfers.map(|(run, transfer)| Row::of(run, transfer)).collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.at, row.hop)));
        rows.truncate(limit);
        let all = rows.len();
        let lower = wanted.to_lowercase();
        rows.retain(|row| lower.split_whitespace().all(|word| row.has(word)));
        Listed { rows, report: Report::of(runs, &Wanted::default()), all, wanted }
    }
}

impl Row {
    fn of(run: &Run, transfer: &Transfer) -> Row {
        let record = &transfer.record;
        let outcomes = || record.facts.iter().map(|fact| fact.outcome);
        let mut signs: Vec<Sign> =
            run.signals.iter().filter(|signal| signal.hop == record.hop).map(|signal| signal.sign).collect();
        signs.sort_unstable();
        signs.dedup();
        let mut findings: Vec<&'static str> =
            record.findings.iter().map(|finding| finding.code.name()).collect();
        findings.dedup();
        Row {
            id: record.id.clone(),
            at: record.at,
            from: head(run.sender_name(transfer).unwrap_or(UNKNOWN)).to_owned(),
            to: head(&record.to_agent).to_owned(),
            state: record.state,
            origin: record.origin.name(),
            arm: transfer.arm(),
            hop: record.hop,
            established: outcomes().filter(|outcome| outcome.holds()).count(),
            not_confirmed: outcomes().filter(|outcome| is_fault(*outcome)).count(),
            findings,
            signs,
            tokens: (record.tokens.before, record.tokens.after),
        }
    }

    /// Whether a word of a search stands in it. `trouble` finds whatever needs a look.
    fn has(&self, word: &str) -> bool {
        let arm = self.arm.unwrap_or_default();
        let texts = [&*self.id, &*self.from, &*self.to, self.state.name(), self.origin, arm];
        let trouble = word == "trouble" && self.is_troubled();
        let named = texts.into_iter().any(|text| text.to_lowercase().contains(word));
        trouble
            || named
            || self.signs.iter().any(|sign| sign.name().contains(word))
            || self.findings.iter().any(|code| code.contains(word))
    }

    fn is_troubled(&self) -> bool {
        self.not_confirmed > 0 || !self.signs.is_empty() || !self.findings.is_empty()
    }
}

/// The search that stands above the list.
pub(super) fn search(wanted: &str) -> Markup {
    html! {
        form.search role="search" method="get" action="/page" {
            input id="search" type="search" name="q" value=(wanted) maxlength="200" autocomplete="off"
                spellcheck="false" aria-label="Search transfers" placeholder="Agent, id, state, finding …";
        }
        span.state id="state" role="status" {}
    }
}

/// The part that changes as transfers come.
pub(super) fn live(listed: &Listed) -> Markup {
    html! {
        (tiles(&listed.report))
        div.columns {
            section.list aria-labelledby="transfers" {
                div.heading {
                    h1 id="transfers" { "Transfers" }
                    span.muted {
                        @if listed.rows.len() == listed.all { (listed.all) " newest" }
                        @else { (listed.rows.len()) " of " (listed.all) }
                    }
                    nav.chips aria-label="Filters" {
                        @for (name, q) in FILTERS {
                            a.chip href=(filter(q)) aria-current=[(listed.wanted.trim() == q).then_some("true")] { (name) }
                        }
                    }
                }
                @if listed.rows.is_empty() { (nothing(listed)) }
                @else { ol.rows { @for row in &listed.rows { li { (line(row)) } } } }
            }
            aside {
                section.card aria-labelledby="graph" {
                    h2 id="graph" { "Who hands to whom" }
                    (graph::graph(&listed.report))
                    (pairs(&listed.report))
                }
                section.card aria-labelledby="signs" {
                    h2 id="signs" { "Lost behind transfers" }
                    (signs(&listed.report.all))
                }
            }
        }
    }
}

/// Searches that people make often.
const FILTERS: [(&str, &str); 4] =
    [("All", ""), ("Trouble", "trouble"), ("Asked again", "re_asked"), ("Pending", "pending")];

fn filter(q: &str) -> String {
    if q.is_empty() { "/page".to_owned() } else { format!("/page?q={q}") }
}

fn tiles(report: &Report) -> Markup {
    let all = &report.all;
    let established = all.established();
    let faults: u64 = Outcome::ALL
        .iter()
        .filter(|outcome| is_fault(**outcome))
        .filter_map(|outcome| all.facts.get(outcome.name()))
        .sum();
    let tile = |name: &str, value: String, note: String, bad: bool| {
        html! { div.tile { dt { (name) } dd.bad[bad] { (value) } dd.note { (note) } } }
    };
    let share = |sign| {
        let rate = all.rate(sign);
        (rate.seen, format!("of {} taken up", grouped(rate.of)))
    };
    let (asked, of_asked) = share(Sign::ReAsked);
    let (looked, of_looked) = share(Sign::RepeatedLookup);
    let runs = format!("in {} {}", grouped(report.runs), if report.runs == 1 { "run" } else { "runs" });
    html! {
        dl.tiles {
            (tile("Transfers", grouped(all.transfers), runs, false))
            (tile("Established facts", grouped(established), per(established, all.transfers), false))
            (tile("Not confirmed", grouped(faults), format!("{} stale", grouped(all.stale)), faults > 0))
            (tile("Asked again", grouped(asked), of_asked, asked > 0))
            (tile("Looked up again", grouped(looked), of_looked, looked > 0))
            (tile("Tokens a receiver reads", change(all.tokens_before, all.tokens_after),
                format!("{} → {}", grouped(all.tokens_before), grouped(all.tokens_after)), false))
        }
    }
}

fn per(count: u64, transfers: u64) -> String {
    if transfers == 0 {
        return "none yet".to_owned();
    }
    format!("{:.1} a transfer", count as f64 / transfers as f64)
}

/// How a sum of tokens changed.
fn change(before: u64, after: u64) -> String {
    if before == 0 {
        return "–".to_owned();
    }
    let percent = (after as f64 / before as f64 - 1.0) * 100.0;
    format!("{}{:.0} %", if percent < -0.5 { "−" } else { "+" }, percent.abs())
}

fn nothing(listed: &Listed) -> Markup {
    html! {
        @if listed.all == 0 {
            p.empty { "No transfer yet. The next one shows here by itself." }
        } @else {
            p.empty { "No transfer has all of these words. " a href="/page" { "Show all" } }
        }
    }
}

fn line(row: &Row) -> Markup {
    let at = row.at.rfc3339();
    html! {
        a.row href={ "/page/handoffs/" (row.id) } data-step=(row.id) {
            time datetime=(at) title=(at) { (clock(&at)) }
            span.way {
                span.agent.muted[row.from == UNKNOWN] { (row.from) } span.to aria-label="to" { "→" } span.agent { (row.to) }
                @if row.hop > 1 { span.hop title="hop" { "hop " (row.hop) } }
            }
            span.badges {
                (state(row.state))
                @if row.arm == Some("observe") { span.badge.off title="The request went up as it came." { "observed" } }
                @for sign in &row.signs { span.badge.bad { (words(sign.name())) } }
                @if !row.findings.is_empty() {
                    span.badge.warn title=(row.findings.join(", ")) { (count(row.findings.len(), "finding")) }
                }
            }
            span.facts {
                span title="established" { (row.established) " est." }
                @if row.not_confirmed > 0 { span.bad title="not confirmed" { (row.not_confirmed) " not" } }
            }
            span.tokens title="estimated tokens, before and after" {
                @if row.tokens.1 > 0 { (grouped(row.tokens.0)) " → " (grouped(row.tokens.1)) } @else { "–" }
            }
        }
    }
}

/// One of many, in words.
pub(super) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The time of day in a time.
fn clock(at: &str) -> &str {
    at.get(11..19).unwrap_or(at)
}

/// A state as a badge.
pub(super) fn state(state: State) -> Markup {
    let kind = match state {
        State::TakenUp => "good",
        State::Pending => "info",
        State::Expired => "off",
        State::Declined | State::Refused => "bad",
    };
    html! { span class={ "badge " (kind) } { (words(state.name())) } }
}

fn pairs(report: &Report) -> Markup {
    /// Pairs that are shown.
    const MOST: usize = 12;
    html! {
        @if !report.pairs.is_empty() {
            div.scroll tabindex="0" role="region" aria-label="Pairs of agents" {
                table.pairs {
                    thead { tr {
                        th scope="col" { "From" } th scope="col" { "To" }
                        th.n scope="col" { abbr title="transfers" { "Tr." } }
                        th.n scope="col" { abbr title="asked again" { "Asked" } }
                        th.n scope="col" { abbr title="looked up again" { "Looked" } }
                        th.n scope="col" { abbr title="bounced" { "Back" } }
                    } }
                    tbody { @for pair in report.pairs.iter().take(MOST) { tr {
                        td title=(graph::agent(&pair.from)) { (graph::agent(&pair.from)) }
                        td title=(graph::agent(&pair.to)) { (graph::agent(&pair.to)) }
                        td.n { (grouped(pair.tally.transfers)) }
                        (figure(pair.tally.rate(Sign::ReAsked).seen))
                        (figure(pair.tally.rate(Sign::RepeatedLookup).seen))
                        (figure(pair.tally.bounced))
                    } } }
                }
            }
            @if report.pairs.len() > MOST { p.muted { "and " (report.pairs.len() - MOST) " more; seam report has all" } }
        }
    }
}

fn figure(number: u64) -> Markup {
    html! { td class=(if number > 0 { "n bad" } else { "n muted" }) { (grouped(number)) } }
}

fn signs(all: &Tally) -> Markup {
    let rows = Sign::ALL.iter().map(|sign| (words(sign.name()), all.rate(*sign).seen));
    let rows = rows.chain([("bounced".to_owned(), all.bounced)]);
    let of = all.taken_up().max(1);
    html! {
        ul.bars { @for (name, seen) in rows {
            li {
                span { (name) }
                span class=(if seen > 0 { "n bad" } else { "n muted" }) { (grouped(seen)) }
                progress max=(of) value=(seen) aria-label=(name) {}
            }
        } }
    }
}
