//! Calls that an agent would not have made, had it known what the run knew.

use serde_json::Value;

use super::known::stands_in;
use crate::engine::handoff::derive::only_looks;
use crate::engine::handoff::evidence::Happening;
use crate::engine::handoff::value::fold::Words;
use crate::engine::handoff::value::same_text;
use crate::engine::handoff::verify::{Age, Fact};

/// Bytes of a call's arguments that are compared.
const ARGUMENTS: usize = 32 << 10;
/// Bytes of a result that are read.
const RESULT: usize = 64 << 10;
/// Bytes at the head of a result in words that say whether it is an error.
const HEAD: usize = 120;
/// Values of a call's arguments that are looked for.
const VALUES: usize = 64;

/// Whether a call repeats one that the run had made and that was answered, while what it found still holds.
///
/// `run` is what had happened when the run moved, and `since` what has happened behind it. A call behind a
/// change that may have touched what was found is none, nor one whose earlier result is old by its rule
/// (`facts` say so).
pub fn looked_up_again<'a>(
    name: &str,
    arguments: &str,
    run: impl Iterator<Item = Happening<'a>>,
    mut since: impl Iterator<Item = Happening<'a>>,
    facts: &[Fact],
) -> bool {
    let Some(arguments) = parsed(arguments).filter(|_| only_looks(name)) else { return false };
    let mut found: Option<Found<'_>> = None;
    for happening in run {
        let Happening::Call { id, name: earlier, arguments: given, result, .. } = happening else { continue };
        if !only_looks(earlier) {
            found = found.filter(|found| !found.touched_by(given, result));
        } else if earlier == name
            && let Some(result) = result.filter(|result| tells(result))
            && parsed(given).is_some_and(|given| given == arguments)
        {
            found = Some(Found { id, by: values(&arguments), result: Words::of(bounded(result)) });
        }
    }
    let Some(found) = found else { return false };
    let touches = |happening: Happening<'_>| match happening {
        Happening::Call { name, arguments, result, .. } => {
            !only_looks(name) && found.touched_by(arguments, result)
        }
        _ => false,
    };
    let old = |fact: &Fact| fact.call.as_deref() == Some(found.id) && fact.age == Age::Stale;
    !since.any(touches) && !facts.iter().any(old)
}

/// What an earlier call found.
struct Found<'a> {
    id: &'a str,
    /// The values of its arguments.
    by: Vec<Words>,
    result: Words,
}

impl Found<'_> {
    /// Whether a call that may have changed something has to do with it: one names what the other was given or
    /// has found. Where one of them was given nothing, it may.
    fn touched_by(&self, arguments: &str, result: Option<&str>) -> bool {
        let Some(given) = parsed(arguments).map(|arguments| values(&arguments)) else { return true };
        if given.is_empty() || self.by.is_empty() {
            return true;
        }
        let result = Words::of(bounded(result.unwrap_or_default()));
        self.by.iter().any(|value| given.contains(value) || stands_in(&result, value))
            || given.iter().any(|value| stands_in(&self.result, value))
    }
}

/// The texts and numbers in a call's arguments, however deep.
fn values(arguments: &Value) -> Vec<Words> {
    let mut values = Vec::new();
    let mut open = vec![arguments];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            _ => values.extend(scalar(value).map(|text| Words::of(&text)).filter(|text| !text.is_empty())),
        }
        if values.len() == VALUES {
            break;
        }
    }
    values
}

/// Whether a result tells something: it is neither empty nor an error.
fn tells(result: &str) -> bool {
    let text = result.trim();
    match serde_json::from_str(bounded(text)) {
        Ok(Value::Object(members)) => !fails(&members) && members.values().any(|value| !is_empty(value)),
        Ok(value) => !is_empty(&value),
        Err(_) => tells_in_words(text),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether an object says that it stands for a failure.
fn fails(members: &serde_json::Map<String, Value>) -> bool {
    let is_false = |value: &Value| value == &Value::Bool(false);
    members.iter().any(|(key, value)| match key.to_ascii_lowercase().as_str() {
        "error" | "errors" | "exception" => !is_empty(value) && !is_false(value),
        "iserror" | "is_error" => value == &Value::Bool(true),
        "success" | "ok" => is_false(value),
        "status" => value.as_str().is_some_and(|status| {
            ["error", "failed", "failure"].iter().any(|failed| status.eq_ignore_ascii_case(failed))
        }),
        _ => false,
    })
}

/// The same of a result in words, or of words that a printed object wraps.
fn tells_in_words(text: &str) -> bool {
    let printed = text.starts_with('[').then(|| text.split_once("text=")).flatten();
    let said = printed.map_or(text, |(_, said)| said);
    let words = Words::of(&said[..said.floor_char_boundary(HEAD)]);
    let nothing = words.word(0) == "no" && words.iter().any(|word| word == "found")
        || stands_in(&words, &Words::of("not found"));
    !text.is_empty() && !nothing && !matches!(words.word(0), "error" | "err" | "exception" | "traceback")
}

fn bounded(text: &str) -> &str {
    &text[..text.floor_char_boundary(RESULT)]
}

/// The key under which a call is given another value than the one that was established for the same record. A
/// value that the customer or a result has named is no mistake of the agent's.
pub fn contradicted<'f>(
    arguments: &str,
    facts: &'f [Fact],
    said_or_found: impl Fn(&str) -> bool,
) -> Option<&'f str> {
    let Some(Value::Object(arguments)) = parsed(arguments) else { return None };
    let texts: Vec<(Words, String)> =
        arguments.iter().filter_map(|(key, value)| Some((Words::of(key), scalar(value)?))).collect();
    facts.iter().filter(|fact| fact.outcome.holds()).find_map(|fact| {
        let key = fact.claim.key.as_deref()?;
        let record = fact.claim.of.as_deref()?.rsplit(' ').next()?;
        let last = Words::of(key.rsplit(['.', '/']).next()?);
        let (_, given) = texts.iter().find(|(own, _)| own.text == last.text)?;
        let about = texts.iter().any(|(own, text)| own.text != last.text && same_text(text, record));
        let other = !same_text(given, &fact.claim.value.text) && !given.trim().is_empty();
        (about && other && !said_or_found(given)).then_some(key)
    })
}

fn parsed(arguments: &str) -> Option<Value> {
    (arguments.len() <= ARGUMENTS).then(|| serde_json::from_str(arguments).ok()).flatten()
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
