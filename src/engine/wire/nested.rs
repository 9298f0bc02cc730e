//! A conversation nested in one text, as the OpenAI Agents SDK writes it
//! (`nest_handoff_history`): numbered lines between two marks, each a turn or
//! an item as JSON. Read for what identifies the run; never evidence.

use serde::Deserialize;

/// Lines that are read of one block.
const MOST: usize = 2_000;

/// A call in a nested conversation.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub struct NestedCall {
    /// The call's id.
    #[serde(rename = "call_id")]
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub arguments: String,
}

/// The calls of a conversation nested in `text`, in order; none where it nests nothing.
pub fn nested_calls(text: &str) -> Vec<NestedCall> {
    let Some((_, block)) = text.split_once("<CONVERSATION HISTORY>") else { return Vec::new() };
    block
        .lines()
        .take(MOST)
        .filter_map(|line| {
            let (number, item) = line.split_once(". ")?;
            let is_item = number.bytes().all(|b| b.is_ascii_digit()) && item.starts_with('{');
            is_item.then(|| serde_json::from_str(item).ok())?
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_between_the_turns() {
        let text = "So far:\n<CONVERSATION HISTORY>\n1. user: where is 3. {\"call_id\": 1}?\n2. {\"arguments\": \"{}\", \
            \"call_id\": \"c1\", \"name\": \"find\", \"type\": \"function_call\"}\n3. {\"call_id\": \"c1\", \"output\": \
            \"x\"}\n4. {broken\n</CONVERSATION HISTORY>";
        let call = NestedCall { id: "c1".into(), name: "find".into(), arguments: "{}".into() };
        assert_eq!(nested_calls(text), [call]);
        assert_eq!(nested_calls("1. {\"call_id\": \"c\", \"name\": \"n\", \"arguments\": \"{}\"}"), []);
    }
}
