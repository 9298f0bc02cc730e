//! The receiver's message list as its client sent it and as it went up, side by side.

use maud::{Markup, html};

use super::list::count;
use super::{size, words};
use crate::engine::custody::run::Transfer;
use crate::engine::lists::{Fate, Line, Lists, Row};
use crate::telemetry::shown::head;

/// Both lists, if they are still remembered.
pub(super) fn lines(transfer: &Transfer, lists: Option<&Lists>) -> Markup {
    let Some(lists) = lists else { return html! { p.empty { (missing(transfer)) } } };
    let mut number = 0;
    html! {
        @if transfer.shadow {
            p.notice { "The right side is what would have gone up. The request went up as it came." }
        }
        div.lists {
            div.pair.names { span { "As the client sent it" } span { "As it went up" } }
            @for line in &lists.lines {
                @if let Line::Item(_) = line { @let () = number += 1; }
                @if let Line::Gap { lines } = line { @let () = number += lines; }
                (pair(line, number))
            }
        }
    }
}

/// Why there are none.
fn missing(transfer: &Transfer) -> &'static str {
    if transfer.receiver.is_none() {
        "No receiver has asked yet."
    } else {
        "No longer kept: the lists of the last take-ups stand in the memory of the process that saw them."
    }
}

fn pair(line: &Line, number: usize) -> Markup {
    match line {
        Line::Item(row) => item(row, number),
        Line::Brief { bytes } => html! {
            div.pair { span.absent {} div.side.brief { a href="#brief" { "The brief" } span.bytes { (size(*bytes)) } } }
        },
        Line::PutBack { bytes } => html! {
            div.pair {
                span.absent {}
                div.side.back { span.role { "user" } span.reason { "put back: the client had dropped it" }
                    span.bytes { (size(*bytes)) } }
            }
        },
        Line::Gap { lines } => html! { p.gap { (count(*lines, "message")) " in between" } },
    }
}

fn item(row: &Row, number: usize) -> Markup {
    html! {
        div.pair {
            div.side {
                span.number { (number) }
                span class={ "role " (row.role) } { (row.role) }
                @for call in &row.calls { code { (head(call)) } }
                span.bytes { (size(row.bytes)) @if row.media > 0 { " + " (size(row.media)) " media" } }
                @if let Some(text) = &row.text { @if !text.is_empty() { p.text { (text) } } }
            }
            div class={ "side " (row.fate.name()) } {
                @if row.fate == Fate::Kept { span.reason { "the same bytes" } }
                @else { span.badge.warn[row.fate != Fate::LeftOut] { (words(row.fate.name())) } }
                @if let Some(why) = row.why { span.reason { (words(why)) } }
                @if row.fate != Fate::LeftOut { span.bytes { (size(row.bytes_after)) } }
            }
        }
    }
}
