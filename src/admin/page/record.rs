//! One record: where it came from and went, what it carries, what was found, what its
//! receiver read, and why.

use maud::{Markup, html};

use super::list::{UNKNOWN, count, state};
use super::{contract, grouped, lines, size, words};
use crate::admin::handoffs::{Seen, name, steps};
use crate::engine::custody::run::Transfer;
use crate::engine::handoff::verify::{Age, Fact};
use crate::engine::lists::Lists;
use crate::engine::report::is_fault;
use crate::engine::signal::Signal;
use crate::engine::time::Timestamp;
use crate::telemetry::shown::head;

/// The title of a record's page.
pub(super) fn title(seen: &Seen) -> String {
    format!("{} to {}", sender(seen), head(&seen.transfer.record.to_agent))
}

/// What stands above it.
pub(super) fn back() -> Markup {
    html! { a.back href="/page" id="back" { span aria-hidden="true" { "←" } " All transfers" } span.state {} }
}

/// A record, its signals, and the lists at its take-up.
pub(super) fn record(seen: &Seen, lists: Option<&Lists>, content: bool) -> Markup {
    let transfer = &seen.transfer;
    let record = &transfer.record;
    html! {
        (heading(seen))
        (figures(transfer, &seen.signals))
        @if !content {
            p.notice { "What was said is not shown. " code { "SEAM_ADMIN_CONTENT=on" } " shows values, quotes, texts and the brief." }
        }
        div.columns.even {
            div {
                section.card data-step="facts" tabindex="-1" aria-labelledby="facts" {
                    h2 id="facts" { "Facts" span.muted { (count(record.facts.len(), "fact")) } }
                    (facts(transfer, content))
                }
                section.card data-step="contract" tabindex="-1" aria-labelledby="contract" {
                    h2 id="contract" { "Handoff" span.muted { (words(record.origin.name())) } }
                    (contract::fields(record, content))
                }
            }
            div {
                section.card data-step="findings" tabindex="-1" aria-labelledby="findings" {
                    h2 id="findings" { "Findings and signals"
                        span.muted { (record.findings.len() + seen.signals.len()) } }
                    (findings(seen, content))
                }
                section.card data-step="why" tabindex="-1" aria-labelledby="why" {
                    h2 id="why" { "Why" }
                    ol.why { @for step in steps(transfer, content) { li { span.badge.off { (step.step) } span { (step.what) } } } }
                }
            }
        }
        section.card data-step="lists" tabindex="-1" aria-labelledby="lists" {
            h2 id="lists" { "The receiver's messages" span.muted { "before and after" } }
            (lines::lines(transfer, lists))
        }
        section.card data-step="brief" tabindex="-1" aria-labelledby="brief" {
            h2 id="brief" { "Brief" span.muted {
                @match &record.brief { Some(brief) => (size(brief.len())), None => "none" }
            } }
            (brief(transfer, content))
        }
    }
}

fn sender(seen: &Seen) -> &str {
    seen.from.as_deref().unwrap_or(UNKNOWN)
}

fn heading(seen: &Seen) -> Markup {
    let transfer = &seen.transfer;
    let record = &transfer.record;
    let at = record.at.rfc3339();
    html! {
        div.title {
            h1 { (sender(seen)) span.to aria-label="to" { "→" } (head(&record.to_agent)) }
            span.badges {
                (state(record.state))
                @if transfer.shadow { span.badge.off { "observed: bytes unchanged" } }
                @else if record.brief.is_some() { span.badge.info { "rewritten" } }
            }
        }
        dl.meta {
            div { dt { "Record" } dd.mono { (record.id) } }
            div { dt { "Run" } dd.mono { (record.run) } }
            div { dt { "Hop" } dd { (record.hop) } }
            div { dt { "Seen" } dd { time datetime=(at) { (human(&at)) } } }
            @if let Some(taken) = transfer.taken_up_at {
                div { dt { "Taken up after" } dd { (grouped(taken.0.saturating_sub(record.at.0))) " ms" } }
            }
            div { dt { "Call" } dd.mono { (head(&record.call.name)) } }
            @if !record.visited.is_empty() {
                div { dt { "Held before by" } dd { (record.visited.iter().map(|agent| head(agent)).collect::<Vec<_>>().join(", ")) } }
            }
        }
    }
}

fn figures(transfer: &Transfer, signals: &[Signal]) -> Markup {
    let record = &transfer.record;
    let holds = record.facts.iter().filter(|fact| fact.outcome.holds()).count();
    let faults = record.facts.iter().filter(|fact| is_fault(fact.outcome)).count();
    let tile =
        |name: &str, value: String, bad: bool| html! { div.tile { dt { (name) } dd.bad[bad] { (value) } } };
    html! {
        dl.tiles.short {
            (tile("Established", holds.to_string(), false))
            (tile("Not confirmed", faults.to_string(), faults > 0))
            (tile("Findings", record.findings.len().to_string(), false))
            (tile("Signals", signals.len().to_string(), !signals.is_empty()))
            (tile("Over the limit", count(record.left_out.items as usize, "message"), false))
            (tile("Tokens", format!("{} → {}", grouped(record.tokens.before), grouped(record.tokens.after)), false))
        }
    }
}

fn facts(transfer: &Transfer, content: bool) -> Markup {
    let facts = &transfer.record.facts;
    html! {
        @if facts.is_empty() { p.empty { "None: the sender claimed nothing, and no tool had told anything." } }
        @else {
            div.scroll tabindex="0" role="region" aria-label="Facts" {
                table {
                    thead { tr {
                        th scope="col" { "Key" }
                        @if content { th scope="col" { "Value" } }
                        th scope="col" { "Outcome" } th scope="col" { "Evidence" } th scope="col" { "Seen" }
                    } }
                    tbody { @for (at, fact) in facts.iter().enumerate() {
                        (row(fact, transfer.used.contains(&at), content))
                    } }
                }
            }
        }
    }
}

fn row(fact: &Fact, used: bool, content: bool) -> Markup {
    let kind = match fact.outcome {
        outcome if outcome.holds() => "good",
        outcome if is_fault(outcome) => "bad",
        _ => "off",
    };
    html! {
        tr {
            td.mono {
                (fact.claim.key.as_deref().map_or("(statement)", |key| name(key, content)))
                @if used { span.used title="The receiver used it." { "used" } }
            }
            @if content { td.value { (fact.claim.value.text) } }
            td {
                span class={ "badge " (kind) } title=[content.then_some(&*fact.why)] { (words(fact.outcome.name())) }
                @if fact.age == Age::Stale { span.badge.warn { "stale" } }
            }
            td.mono { (fact.call.as_deref().map_or("–", head)) }
            td.muted.mono { (fact.as_of.map_or_else(|| "–".to_owned(), clock)) }
        }
    }
}

/// The time of day.
fn clock(at: Timestamp) -> String {
    at.rfc3339().get(11..19).unwrap_or_default().to_owned()
}

/// A time as people read it.
fn human(at: &str) -> String {
    at.get(..19).unwrap_or(at).replace('T', " ")
}

fn findings(seen: &Seen, content: bool) -> Markup {
    let findings = &seen.transfer.record.findings;
    html! {
        @if findings.is_empty() && seen.signals.is_empty() { p.empty { "None." } }
        ul.found {
            @for signal in &seen.signals { li {
                span.badge.bad { (words(signal.sign.name())) }
                @if !signal.about.is_empty() { code { (name(&signal.about, content)) } }
            } }
            @for finding in findings { li {
                span.badge.warn title=(finding.code.meaning()) { (words(finding.code.name())) }
                code { (name(&finding.place, content)) }
                span { (finding.what) }
            } }
        }
    }
}

fn brief(transfer: &Transfer, content: bool) -> Markup {
    html! {
        @match &transfer.record.brief {
            None => p.empty { "Not made yet: the receiver has not asked." },
            Some(brief) if content => pre.brief { (brief) },
            Some(brief) => p.empty {
                (size(brief.len())) " in " (count(brief.lines().count(), "line")) ", about "
                (grouped(brief.len() as u64 / 4)) " tokens."
            },
        }
    }
}
