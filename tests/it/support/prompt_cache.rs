//! A provider's prompt cache, as documented: the longest beginning that a
//! request shares with an earlier one, from 1,024 tokens on, in steps of 128.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::Value;

/// Shorter beginnings are not cached.
const LEAST: usize = 1_024;
/// What is cached grows by so much.
pub(crate) const STEP: usize = 128;

/// What one request cost to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    /// Tokens of the prompt.
    pub(crate) input: usize,
    /// Of these, tokens that were cached.
    pub(crate) cached: usize,
}

impl Read {
    pub(crate) fn uncached(self) -> usize {
        self.input - self.cached
    }
}

/// The prompts that came so far.
#[derive(Debug, Default)]
pub(crate) struct PromptCache {
    seen: Vec<Vec<u32>>,
    /// Tokens of each piece of a prompt that was rendered before.
    known: HashMap<String, Vec<u32>>,
}

impl PromptCache {
    /// Takes a request in.
    pub(crate) fn read(&mut self, body: &Value) -> Read {
        let mut tokens = Vec::new();
        for piece in rendered(body) {
            let known =
                self.known.entry(piece).or_insert_with_key(|piece| bpe_openai::o200k_base().encode(piece));
            tokens.extend_from_slice(known);
        }
        let shared = self.seen.iter().map(|seen| common(seen, &tokens)).max().unwrap_or(0);
        let cached = if shared < LEAST { 0 } else { shared - shared % STEP };
        let read = Read { input: tokens.len(), cached };
        self.seen.push(tokens);
        read
    }
}

fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The prompt as a model reads it, piece by piece: tools, then messages, each with all that it says.
fn rendered(body: &Value) -> Vec<String> {
    let mut prompt = vec![format!("{}\n{}\n", body["model"], body["tools"])];
    for message in body["messages"].as_array().into_iter().flatten() {
        let mut piece = format!("<|{}|>{}\n", message["role"], message["name"]);
        for field in ["content", "tool_calls", "tool_call_id"] {
            if !message[field].is_null() {
                writeln!(piece, "{}", message[field]).unwrap();
            }
        }
        prompt.push(piece);
    }
    prompt
}

#[test]
fn only_a_long_common_beginning_is_cached_and_in_steps() {
    let body = |system: &str, last: &str| serde_json::json!({"model": "m", "messages": [{"role": "system", "content": system}, {"role": "user", "content": last}]});
    let long = "The ferry leaves at noon. ".repeat(400);
    let mut cache = PromptCache::default();
    assert_eq!(cache.read(&body(&long, "a")).cached, 0);
    let again = cache.read(&body(&long, "b"));
    assert!(again.cached % STEP == 0 && again.uncached() < 2 * STEP, "{again:?}");
    assert_eq!(cache.read(&body(&format!("Now: 12. {long}"), "b")).cached, 0);
    assert_eq!(cache.read(&body("Short.", "b")).cached, 0);
}
