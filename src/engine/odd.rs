//! What is odd in a client's list and is left as it is: reported, never mended.

use std::cell::LazyCell;

use super::event::{Code, Finding};
use super::hash::{Hash, Hasher};
use super::read::Reading;
use super::view::{Dialect, Item, Role};
use super::wire::nested_calls;

/// Items that have to come again, in order, before a list is said to hold its conversation twice: a customer
/// may well say a thing again and get the same answer.
const TWICE: usize = 4;

/// What is odd in the list of a request.
pub fn odd_list(reading: &Reading<'_>) -> Vec<Finding> {
    let items = &reading.view.items;
    let mut findings = Vec::new();
    if let Some(count) = repeated(items) {
        let what = format!("the first {count} items come again behind themselves");
        findings.push(Finding::new(Code::DuplicateRun, "messages", what));
    } else if let Some(at) = retold(items) {
        let what = "a history in one text tells calls that stand in the list as well";
        findings.push(Finding::new(Code::DuplicateRun, format!("item {at}"), what));
    }
    let state = &reading.view.server_state;
    if reading.view.dialect == Dialect::Responses && state.refers && !state.stores {
        let what = "items by their ids alone, and the request asks that nothing be kept";
        findings.push(Finding::new(Code::ReferenceNotKept, "input", what));
    }
    findings
}

/// How many items the conversation begins with twice.
fn repeated(items: &[Item<'_>]) -> Option<usize> {
    let said: Vec<&Item<'_>> = items.iter().filter(|item| item.role != Role::System).collect();
    let first = said.first()?;
    let mut begins = (TWICE..=said.len() / 2).filter(|&n| may_be_alike(first, said[n])).peekable();
    // Of nearly every list nothing has to be hashed.
    begins.peek()?;
    let hashes: Vec<LazyCell<Hash, _>> = said.iter().map(|item| LazyCell::new(|| content(item))).collect();
    begins.find(|n| (0..*n).all(|at| *hashes[at] == *hashes[n + at]))
}

/// Told by what is seen at once: false only where two items certainly differ.
fn may_be_alike(one: &Item<'_>, other: &Item<'_>) -> bool {
    let begins = |item: &Item<'_>| item.text.chars().find(|c| !c.is_whitespace());
    one.role == other.role && one.calls.len() == other.calls.len() && begins(one) == begins(other)
}

fn content(item: &Item<'_>) -> Hash {
    let mut hasher = Hasher::new("item");
    hasher.bytes(&[item.role as u8]).text(&item.text);
    for call in &item.calls {
        hasher.call(call);
    }
    hasher.bytes(item.answers.as_deref().unwrap_or_default().as_bytes()).finish()
}

/// The item whose text nests a call that the list holds too.
fn retold(items: &[Item<'_>]) -> Option<usize> {
    let stands = |id: &str| items.iter().flat_map(|item| &item.calls).any(|call| call.id == id);
    items.iter().position(|item| nested_calls(&item.text).iter().any(|call| stands(&call.id)))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::engine::handoff::detect::Naming;
    use crate::engine::read::reading;
    use crate::engine::wire;

    fn check(dialect: Dialect, body: &str, expected: &[Code]) {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let naming = std::sync::Arc::new(Naming::default());
        let reading = reading(wire::read(&body, dialect).expect("a body"), &naming, None);
        let codes: Vec<Code> = odd_list(&reading).into_iter().map(|finding| finding.code).collect();
        assert_eq!(codes, expected, "{}", String::from_utf8_lossy(&body));
    }

    fn chat(messages: &[&str]) -> String {
        let said = |text: &&str| {
            let (role, text) = text.split_once(' ').expect("a role and a text");
            format!(r#"{{"role":"{role}","content":"{text}"}}"#)
        };
        let messages: Vec<String> = messages.iter().map(said).collect();
        format!(r#"{{"messages":[{}]}}"#, messages.join(","))
    }

    #[test]
    fn a_conversation_that_comes_twice_is_told_from_a_customer_who_repeats_himself() {
        let once = ["user Hi", "assistant Hello", "user Which pier?", "assistant Pier 4", "user Which pier?"];
        check(Dialect::Chat, &chat(&once), &[]);
        check(Dialect::Chat, &chat(&[&["system S"], &once[..], &once[..]].concat()), &[Code::DuplicateRun]);
        let again = ["user Hi", "assistant Hello", "user Hi", "assistant Hello", "user Hi"];
        check(Dialect::Chat, &chat(&again[..]), &[]);
        check(Dialect::Chat, r#"{"messages":[]}"#, &[]);
    }

    #[test]
    fn references_to_what_nobody_kept_are_told() {
        let body = |store| {
            format!(
                r#"{{"store":{store},"input":[{{"role":"user","content":"x"}},{{"type":"item_reference","id":"msg_1"}}]}}"#
            )
        };
        check(Dialect::Responses, &body(true), &[]);
        check(Dialect::Responses, &body(false), &[Code::ReferenceNotKept]);
        check(Dialect::Responses, r#"{"store":false,"input":"x"}"#, &[]);
    }
}
