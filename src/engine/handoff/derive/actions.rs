//! What the run did, and what it tried in vain.

use std::collections::HashSet;

use super::is_identifier;
use crate::engine::handoff::contract::{By, Line};
use crate::engine::handoff::evidence::{CallSeen, Ended, Evidence};
use crate::engine::handoff::value::fold::{Words, singular};
use crate::engine::record::Action;

/// Actions, and dead ends, that are kept: the newest.
const MOST: usize = 12;
/// Arguments of a call that are named.
const MOST_ARGUMENTS: usize = 4;
/// Bytes of one argument's value, and of what an error says.
const LONGEST_VALUE: usize = 60;
const LONGEST_ERROR: usize = 60;

/// Identifiers of a result that are looked at for one that is new.
const MOST_MADE: usize = 8;

/// First words of tools that only look: what they found is told as facts.
const LOOKS: &[&str] = &[
    "get",
    "find",
    "search",
    "list",
    "lookup",
    "look",
    "read",
    "fetch",
    "check",
    "query",
    "show",
    "view",
    "describe",
    "retrieve",
    "calculate",
    "calc",
    "compute",
    "think",
    "count",
    "estimate",
    "browse",
    "track",
    "compare",
    "validate",
    "verify",
    "inspect",
    "load",
    "select",
    "explain",
    "summarize",
    "preview",
    "ask",
    "route",
];

/// First words of tools whose names are questions.
const QUESTIONS: &[&str] = &["is", "has", "are", "can", "does", "which", "what", "who", "where", "when"];

/// Last words of tools that are called after what they tell.
const TOLD: &[&str] = &[
    "info",
    "information",
    "detail",
    "status",
    "state",
    "history",
    "report",
    "balance",
    "hour",
    "price",
    "rate",
    "log",
    "lookup",
    "search",
    "list",
    "summary",
    "availability",
    "forecast",
    "profile",
    "schedule",
];

/// Words that tie what a tool tells to what it is asked by: `vehicle_by_plate`, `price_of`.
const LINKS: &[&str] = &["by", "of"];

/// First words of tools that change something, whatever their names end in.
const CHANGES: &[&str] = &[
    "accept", "activate", "add", "append", "apply", "approve", "assign", "book", "cancel", "change", "clear",
    "close", "confirm", "create", "delete", "edit", "extend", "file", "generate", "insert", "issue", "log",
    "make", "mark", "modify", "move", "open", "pay", "place", "post", "process", "publish", "put", "refresh",
    "register", "remove", "replace", "request", "reserve", "reset", "run", "save", "schedule", "send", "set",
    "submit", "switch", "sync", "toggle", "trigger", "update", "upgrade", "upload", "write",
];

/// First words that are nouns before what is told of them (`order_status`), else something that is done.
const DONE: &[&str] = &["order", "return", "refund", "exchange", "transfer", "charge", "buy", "swap", "ship"];

/// The calls that may have changed something and did not fail, in order, each once.
pub fn actions(evidence: &Evidence) -> Vec<Action> {
    let calls = newest_of_each(evidence, |call| {
        matches!(call.ended, Ended::Ok | Ended::Empty) && !only_looks(call.name())
    });
    calls
        .into_iter()
        .map(|call| Action {
            name: evidence.calls()[call].name().to_owned(),
            arguments: arguments(evidence, call),
            outcome: outcome(evidence, call),
        })
        .collect()
}

/// The calls that failed or found nothing and were not made again with success, in order, each once.
pub fn tried(evidence: &Evidence) -> Vec<Line> {
    let succeeded: HashSet<(&str, &str)> =
        evidence.calls().iter().filter(|call| call.ended == Ended::Ok).map(same_call).collect();
    // A tool that returns nothing when it has done its work is not a dead end.
    let dead = |call: &CallSeen| {
        let failed = match call.ended {
            Ended::Error => true,
            Ended::Empty => only_looks(call.name()),
            Ended::Ok | Ended::NoResult => false,
        };
        failed && !succeeded.contains(&same_call(call))
    };
    newest_of_each(evidence, dead)
        .into_iter()
        .map(|call| {
            let seen = &evidence.calls()[call];
            let what = match seen.ended {
                Ended::Error => bounded(first_line(seen.result_text()), LONGEST_ERROR),
                _ => "nothing found",
            };
            let arguments = arguments(evidence, call);
            let space = if arguments.is_empty() { "" } else { " " };
            Line { text: format!("{}{space}{arguments}: {what}", seen.name()), by: By::Derived }
        })
        .collect()
}

/// The places of these calls, the newest of those that are alike, the newest ones of all, in order.
fn newest_of_each(evidence: &Evidence, wanted: impl Fn(&CallSeen) -> bool) -> Vec<usize> {
    let mut seen = HashSet::new();
    let newest = evidence.calls().iter().enumerate().rev().filter(|(_, call)| wanted(call));
    let mut calls: Vec<usize> =
        newest.filter(|(_, call)| seen.insert(same_call(call))).map(|(at, _)| at).take(MOST).collect();
    calls.reverse();
    calls
}

fn same_call(call: &CallSeen) -> (&str, &str) {
    (call.name(), call.arguments_text())
}

/// Whether a tool's name says that it changes nothing: it begins with a verb that only looks, asks a question
/// (`is_covered`), or is the name of what it tells, with no verb in it (`opening_hours`, `order_by_phone`). A
/// plug-in's name may stand before it.
pub fn only_looks(name: &str) -> bool {
    let name = name.rsplit(['-', '.', '/', ':']).next().unwrap_or_default();
    let words = Words::of(name);
    let (first, last) = (words.word(0), words.word(words.len().saturating_sub(1)));
    if LOOKS.contains(&first) || words.len() > 1 && QUESTIONS.contains(&first) {
        return true;
    }
    let tied = (1..words.len()).any(|at| LINKS.contains(&words.word(at))) && !DONE.contains(&first);
    words.len() > 1 && (tied || TOLD.contains(&&*singular(last))) && !CHANGES.contains(&first)
}

/// The arguments that say what a call was about, as `key=value`.
fn arguments(evidence: &Evidence, call: usize) -> String {
    let mut named: Vec<String> = evidence
        .identifying_arguments(call)
        .take(MOST_ARGUMENTS)
        .map(|(key, value)| format!("{key}={}", bounded(&value, LONGEST_VALUE)))
        .collect();
    if named.is_empty() {
        named = short_arguments(evidence.calls()[call].arguments_text());
    }
    named.join(" ")
}

/// The first scalars among arguments of which none identifies anything.
fn short_arguments(arguments: &str) -> Vec<String> {
    let members: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(arguments).unwrap_or_default();
    let scalars = members.iter().filter_map(|(key, value)| {
        let text = match value {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Number(number) => number.to_string(),
            serde_json::Value::Bool(flag) => flag.to_string(),
            _ => return None,
        };
        (text.len() <= LONGEST_VALUE).then(|| format!("{key}={text}"))
    });
    scalars.take(MOST_ARGUMENTS / 2).collect()
}

/// What came of a call: the identifier that it made, where there is one.
fn outcome(evidence: &Evidence, call: usize) -> String {
    if evidence.calls()[call].ended == Ended::Empty {
        return "empty".to_owned();
    }
    let before = &evidence.calls()[..call];
    let is_new = |value: &str| {
        !evidence.calls()[call].arguments_text().contains(value)
            && !before
                .iter()
                .any(|seen| seen.result_text().contains(value) || seen.arguments_text().contains(value))
    };
    let made = evidence
        .leaves_of(call)
        .map(|leaf| leaf.value().trim().to_owned())
        .filter(|value| value.len() <= LONGEST_VALUE && is_identifier(value))
        .take(MOST_MADE)
        .find(|value| is_new(value));
    made.unwrap_or_else(|| "ok".to_owned())
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}

fn bounded(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::handoff::evidence::Happening;

    fn evidence(calls: &[(&str, &str, &str)]) -> Evidence {
        let calls = calls.iter().map(|&(name, arguments, result)| Happening::Call {
            id: "c",
            name,
            arguments,
            result: Some(result),
            as_of: None,
        });
        Evidence::index(calls, true)
    }

    fn check(calls: &[(&str, &str, &str)], done: &[&str], in_vain: &[&str]) {
        let evidence = evidence(calls);
        let shown = |action: &Action| format!("{} {} -> {}", action.name, action.arguments, action.outcome);
        assert_eq!(actions(&evidence).iter().map(shown).collect::<Vec<_>>(), done);
        assert_eq!(tried(&evidence).iter().map(|line| line.text.as_str()).collect::<Vec<_>>(), in_vain);
    }

    #[test]
    fn what_changes_something_is_done_and_what_looks_is_not() {
        check(
            &[
                ("get_loan", r#"{"loan_id":"l_77"}"#, r#"{"loan_id":"l_77","member":"mb_5001"}"#),
                (
                    "extend_loan",
                    r#"{"loan_id":"l_77","days":7}"#,
                    r#"{"loan_id":"l_77","member":"mb_5001","receipt":"rc_901"}"#,
                ),
                ("Desk-send_note", r#"{"text":"done"}"#, ""),
                ("Desk-find_member", r#"{"name":"Ida"}"#, "[]"),
            ],
            &["extend_loan loan_id=l_77 -> rc_901", "Desk-send_note text=done -> empty"],
            &["Desk-find_member name=Ida: nothing found"],
        );
    }

    #[test]
    fn a_dead_end_is_one_until_the_same_call_succeeds() {
        check(
            &[
                ("extend_loan", r#"{"loan_id":"l_1"}"#, "Error: loan is blocked\nby the desk"),
                ("extend_loan", r#"{"loan_id":"l_2"}"#, "Error: try later"),
                ("extend_loan", r#"{"loan_id":"l_2"}"#, "ok"),
                ("extend_loan", r#"{"loan_id":"l_1"}"#, "Error: loan is blocked\nby the desk"),
            ],
            &["extend_loan loan_id=l_2 -> ok"],
            &["extend_loan loan_id=l_1: Error: loan is blocked"],
        );
    }

    #[test]
    fn the_newest_are_kept() {
        let names: Vec<String> = (0..50).map(|n| format!("close_{n}")).collect();
        let calls: Vec<(&str, &str, &str)> = names.iter().map(|name| (name.as_str(), "{}", "ok")).collect();
        let actions = actions(&evidence(&calls));
        assert_eq!((actions.len(), actions[0].name.as_str()), (MOST, "close_38"));
    }
}
