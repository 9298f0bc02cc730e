//! What must not stand where, checked over the source itself.

use std::fs;
use std::path::{Path, PathBuf};

/// Names that are a dialect's own: fields, and kinds of items and events.
const CHAT: &[&str] = &[
    "messages",
    "tool_calls",
    "tool_call_id",
    "choices",
    "delta",
    "finish_reason",
    "response_format",
    "reasoning_content",
    "reasoning_details",
    "max_completion_tokens",
    "prompt_tokens",
    "completion_tokens",
    "prompt_tokens_details",
    "stream_options",
];
const RESPONSES: &[&str] = &[
    "call_id",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "item_reference",
    "input_text",
    "output_text",
    "output_index",
    "item_id",
    "sequence_number",
    "previous_response_id",
    "encrypted_content",
    "incomplete_details",
    "input_tokens",
    "output_tokens",
    "input_tokens_details",
    "response.created",
    "response.completed",
    "response.output_item.added",
    "response.output_item.done",
    "response.function_call_arguments.delta",
];

/// Where such names may stand beside `src/engine/wire`, and why.
const MAY: &[(&str, &[&str], &str)] = &[
    (
        "src/cli",
        &["messages", "tool_calls", "tool_call_id", "choices", "delta", "finish_reason"],
        "demo, replay and verify play a client and an upstream of their own: they speak a dialect, they read none",
    ),
    (
        "src/telemetry/trace",
        &["tool_calls"],
        "the word that the conventions for traces have for why a model stopped",
    ),
    (
        "src/engine/handoff/contract",
        &["tool_call_id", "call_id"],
        "words that contracts in the field have for their evidence; they stand in arguments, not in a dialect's fields",
    ),
];
/// Names that tell people the place of a finding, in the words of the dialect that most of them know.
const PLACES: &[&str] = &["messages", "tool_calls"];

#[test]
fn the_names_of_the_dialects_stay_in_wire() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    assert!(files.len() > 100, "the source is there");
    let mut strays = Vec::new();
    for path in files {
        let name = path.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/");
        if name.starts_with("src/engine/wire/") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source file");
        for word in CHAT.iter().chain(RESPONSES) {
            let may =
                |(place, words, _): &(&str, &[&str], &str)| name.starts_with(place) && words.contains(word);
            if MAY.iter().any(may) {
                continue;
            }
            let shown = stands_in(&code(&text), word);
            strays.extend(shown.into_iter().map(|line| format!("{name}: {word:?} in `{line}`")));
        }
    }
    assert!(strays.is_empty(), "names of a dialect outside src/engine/wire:\n{}", strays.join("\n"));
}

/// The lines in which a word is a whole string, or a whole one inside a string.
fn stands_in(code: &str, word: &str) -> Vec<String> {
    let hits = code.match_indices(word).filter(|(at, _)| {
        let (before, behind) = (&code[..*at], &code[at + word.len()..]);
        let is_quoted = before.ends_with('"') && (behind.starts_with('"') || behind.starts_with("\\\""));
        let call = before.rfind("Finding::new(").map(|start| &before[start..]);
        let is_place = PLACES.contains(&word) && call.is_some_and(|call| !call.contains(';'));
        is_quoted && !is_place
    });
    let line = |at: usize| {
        let start = code[..at].rfind('\n').map_or(0, |end| end + 1);
        code[start..].lines().next().unwrap_or_default().trim().to_owned()
    };
    hits.map(|(at, _)| line(at)).collect()
}

/// A file without its tests and comments.
fn code(text: &str) -> String {
    let own = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    own.lines().filter(is_code).flat_map(|line| [line, "\n"]).collect()
}

/// The Rust files below a folder, test modules of their own left out.
fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && name != "tests" {
            sources(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") && name != "tests.rs" {
            into.push(path);
        }
    }
}

#[test]
fn a_name_is_found_as_a_string_and_as_part_of_one() {
    let check =
        |code: &str, expected: usize| assert_eq!(stands_in(code, "messages").len(), expected, "{code}");
    check(r#"member(body, "messages")"#, 1);
    check(r#""{\"messages\":[]}""#, 1);
    check(r#"let messages = "no messages";"#, 0);
    check("Finding::new(\n    Code::BoundaryLost,\n    \"messages\",", 0);
    check("Finding::new(Code::X, \"\"); member(body, \"messages\")", 1);
}
