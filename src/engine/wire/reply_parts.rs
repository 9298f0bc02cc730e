//! Reads what the replies of both dialects share, usage and errors, and sums usages up.

use super::edit::members;
use super::json::{Cursor, Fault, Kind};
use super::object::{member, with_member};
use crate::engine::reply::{ReplyError, Usage};

/// The usage that comes next; none where it is null.
pub(super) fn usage(cursor: &mut Cursor<'_>) -> Result<Option<Usage>, Fault> {
    let mut usage = Usage::default();
    let there = cursor.object::<Fault>(|cursor, key| {
        match key.name.as_ref() {
            "prompt_tokens" | "input_tokens" => count(cursor, &mut usage.input)?,
            "completion_tokens" | "output_tokens" => count(cursor, &mut usage.output)?,
            // Beside the details, as DeepSeek and Anthropic name them.
            "prompt_cache_hit_tokens" | "cache_read_input_tokens" => count(cursor, &mut usage.cached)?,
            "cache_creation_input_tokens" => count(cursor, &mut usage.cache_write)?,
            "prompt_tokens_details" | "input_tokens_details" => {
                cursor.object::<Fault>(|cursor, key| match key.name.as_ref() {
                    "cached_tokens" => count(cursor, &mut usage.cached),
                    "cache_write_tokens" | "cache_creation_tokens" => count(cursor, &mut usage.cache_write),
                    _ => Ok(()),
                })?;
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(there.map(|_| usage))
}

fn count(cursor: &mut Cursor<'_>, into: &mut u64) -> Result<(), Fault> {
    if let Some(count) = cursor.count()? {
        *into = count;
    }
    Ok(())
}

/// The `usage` of a document, as text; none where it says none.
pub(super) fn usage_of(document: &str) -> Option<&str> {
    member(document, "usage").filter(|usage| usage.starts_with('{'))
}

/// The `usage` of a document with that of those before it; none where none is told.
pub(super) fn usage_with(document: &str, before: Option<&str>) -> Option<String> {
    match (before, usage_of(document)) {
        (Some(first), Some(second)) => summed(first, second),
        (first, second) => second.or(first).map(str::to_owned),
    }
}

/// The counts of two usages, one added to the other where both have it.
pub(super) fn summed(first: &str, second: &str) -> Option<String> {
    let mut out = second.to_owned();
    for name in members(second).ok()?.iter().map(|own| own.key.name.clone()) {
        let (Some(a), Some(b)) = (member(first, &name), member(second, &name)) else { continue };
        let sum = match (a.parse::<u64>(), b.parse::<u64>()) {
            (Ok(a), Ok(b)) => a.saturating_add(b).to_string(),
            _ if a.starts_with('{') && b.starts_with('{') => summed(a, b)?,
            _ => continue,
        };
        out = with_member(&out, &name, &sum)?;
    }
    Some(out)
}

/// The error that comes next: an object, or its message alone; none where it is null.
pub(super) fn error(cursor: &mut Cursor<'_>) -> Result<Option<ReplyError>, Fault> {
    match cursor.peek() {
        Some(Kind::Object) => {
            let mut error = ReplyError::default();
            cursor.object::<Fault>(|cursor, key| error_field(cursor, &key.name, &mut error).map(drop))?;
            Ok(Some(error))
        }
        Some(Kind::String) => {
            let message = word(cursor)?;
            Ok(Some(ReplyError { message, ..ReplyError::default() }))
        }
        _ => cursor.skip().map(|_| None),
    }
}

/// One field of an error, wherever the error's fields stand. Whether it is one; what is none is left unread.
pub(super) fn error_field(cursor: &mut Cursor<'_>, key: &str, error: &mut ReplyError) -> Result<bool, Fault> {
    match key {
        "type" => error.kind = word(cursor)?,
        "code" => error.code = word(cursor)?,
        "message" => error.message = word(cursor)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// A string, or a number in its digits; bounded.
fn word(cursor: &mut Cursor<'_>) -> Result<String, Fault> {
    const LIMIT: usize = 500;
    match cursor.peek() {
        Some(Kind::String) => {
            let text = cursor.string()?.unwrap_or_default();
            Ok(text.chars().take(LIMIT).collect())
        }
        Some(Kind::Number) => {
            let span = cursor.skip()?;
            Ok(cursor.raw(span).chars().take(LIMIT).collect())
        }
        _ => cursor.skip().map(|_| String::new()),
    }
}
