//! Calls that an agent would not have made, had it known what the run knew.

use serde_json::Value;

use crate::engine::handoff::derive::only_looks;
use crate::engine::handoff::evidence::Happening;
use crate::engine::handoff::value::fold::Words;
use crate::engine::handoff::value::same_text;
use crate::engine::handoff::verify::{Age, Fact};

/// Bytes of a call's arguments that are compared.
const ARGUMENTS: usize = 32 << 10;

/// Whether a call repeats one that the run had made and that was answered, while what it found still holds.
///
/// `run` is what had happened when the run moved, and `since` what has happened behind it. A call behind a
/// change is none, nor one whose earlier result is old by its rule (`facts` say so).
pub fn looked_up_again<'a>(
    name: &str,
    arguments: &str,
    run: impl Iterator<Item = Happening<'a>>,
    mut since: impl Iterator<Item = Happening<'a>>,
    facts: &[Fact],
) -> bool {
    let Some(arguments) = parsed(arguments).filter(|_| only_looks(name)) else { return false };
    let mut found: Option<&str> = None;
    for happening in run {
        let Happening::Call { id, name: earlier, arguments: given, result, .. } = happening else { continue };
        if !only_looks(earlier) {
            // What it found may hold no longer.
            found = None;
        } else if earlier == name
            && parsed(given).is_some_and(|given| given == arguments)
            && result.is_some_and(tells)
        {
            found = Some(id);
        }
    }
    let changed =
        since.any(|happening| matches!(happening, Happening::Call { name, .. } if !only_looks(name)));
    let old = |id: &str| facts.iter().any(|fact| fact.call.as_deref() == Some(id) && fact.age == Age::Stale);
    !changed && found.is_some_and(|id| !old(id))
}

/// Whether a result tells something.
fn tells(result: &str) -> bool {
    let text = result.trim();
    let head: String = text.chars().take(12).flat_map(char::to_lowercase).collect();
    !matches!(text, "" | "[]" | "{}" | "null") && !head.starts_with("error") && !head.contains("\"error")
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
