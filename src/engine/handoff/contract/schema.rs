//! The contract as a JSON schema: what a sender is asked for.
//!
//! Strict form holds everywhere: every key required, no further ones, no free
//! maps, no length or number limits. What there is nothing to say about is an
//! empty string or an empty list. The order of the keys is the order in which
//! a model writes them, so the task comes first and what builds on the facts
//! after them.

/// Which of the contract's fields a sender is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fields {
    /// The fields that every transfer needs.
    #[default]
    Core,
    /// All that a sender may write.
    Full,
}

/// The schema of one handoff, compact: an object with the fields asked for.
/// At most 300 tokens for [`Fields::Core`], 500 for [`Fields::Full`].
pub fn schema(fields: Fields) -> String {
    let fact = object(FACT, fields);
    object(FIELDS, fields).replace(FACT_HERE, &fact)
}

/// The description that the schema gives a field, e.g. to know it when a sender echoes it.
pub(super) fn description(name: &str) -> Option<&'static str> {
    let row = FIELDS.iter().find(|row| row.name == name)?;
    row.schema.split_once("\"description\":\"")?.1.split_once('"').map(|(text, _)| text)
}

/// One property of a schema.
struct Row {
    name: &'static str,
    asked: Fields,
    /// The property's own schema.
    schema: &'static str,
}

const fn core(name: &'static str, schema: &'static str) -> Row {
    Row { name, asked: Fields::Core, schema }
}

const fn full(name: &'static str, schema: &'static str) -> Row {
    Row { name, asked: Fields::Full, schema }
}

/// Stands where the schema of a fact is put in: it differs between core and full.
const FACT_HERE: &str = "FACT";

const FIELDS: &[Row] = &[
    core("task", r#"{"type":"string","description":"for the receiver, one imperative sentence"}"#),
    core("reason", r#"{"type":"string"}"#),
    core("established", r#"{"type":"array","items":FACT}"#),
    core(
        "constraints",
        r#"{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"},"scope":{"type":"string","enum":["run","task"]},"stated_by":{"type":"string","enum":["customer","policy"]}},"required":["text","scope","stated_by"],"additionalProperties":false}}"#,
    ),
    core("decisions", r#"{"type":"array","items":{"type":"string"}}"#),
    full("commitments", r#"{"type":"array","items":{"type":"string"}}"#),
    full("tried", r#"{"type":"array","description":"dead ends","items":{"type":"string"}}"#),
    core("open_questions", r#"{"type":"array","items":{"type":"string"}}"#),
    core("remaining", r#"{"type":"array","description":"ordered","items":{"type":"string"}}"#),
    core("done_when", r#"{"type":"array","items":{"type":"string"}}"#),
    full("stop_conditions", r#"{"type":"array","items":{"type":"string"}}"#),
    full("context", r#"{"type":"string","description":"under 200 tokens"}"#),
    full(
        "artifacts",
        r#"{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"kind":{"type":"string"},"ref":{"type":"string"},"summary":{"type":"string"}},"required":["name","kind","ref","summary"],"additionalProperties":false}}"#,
    ),
    full("return_to", r#"{"type":"string","description":"agent"}"#),
    full("return_schema", r#"{"type":"array","description":"name: type","items":{"type":"string"}}"#),
];

const FACT: &[Row] = &[
    core("key", r#"{"type":"string"}"#),
    core("value", r#"{"type":"string"}"#),
    core("of", r#"{"type":"string","description":"e.g. order 41182"}"#),
    core("source", r#"{"type":"string","enum":["tool_result","customer_utterance","agent_inference"]}"#),
    core("evidence", r#"{"type":"string","description":"call id or quote"}"#),
    full("confidence", r#"{"type":"string","enum":["high","medium","low"]}"#),
];

/// A closed object of the rows that are asked for, all of them required.
fn object(rows: &[Row], fields: Fields) -> String {
    let asked = || rows.iter().filter(|row| row.asked == Fields::Core || fields == Fields::Full);
    let properties: Vec<_> = asked().map(|row| format!("\"{}\":{}", row.name, row.schema)).collect();
    let required: Vec<_> = asked().map(|row| format!("\"{}\"", row.name)).collect();
    format!(
        "{{\"type\":\"object\",\"properties\":{{{}}},\"required\":[{}],\"additionalProperties\":false}}",
        properties.join(","),
        required.join(",")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::engine::handoff::contract::{declares_contract, read};

    fn tree(fields: Fields) -> Value {
        serde_json::from_str(&schema(fields)).expect("the schema is JSON")
    }

    /// Every object closed and complete; counts properties and depth on the way.
    fn strict(schema: &Value, depth: usize, properties: &mut usize) -> usize {
        let mut deepest = depth;
        if let Some(own) = schema.get("properties").and_then(Value::as_object) {
            assert_eq!(schema["additionalProperties"], false);
            let mut required: Vec<_> =
                schema["required"].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
            required.sort_unstable();
            let mut keys: Vec<_> = own.keys().map(String::as_str).collect();
            keys.sort_unstable();
            assert_eq!(keys, required);
            *properties += own.len();
            for below in own.values() {
                deepest = deepest.max(strict(below, depth + 1, properties));
            }
        }
        if let Some(items) = schema.get("items") {
            deepest = deepest.max(strict(items, depth, properties));
        }
        deepest
    }

    #[test]
    fn strict_mode_takes_it_at_every_provider() {
        for fields in [Fields::Core, Fields::Full] {
            let mut properties = 0;
            let depth = strict(&tree(fields), 1, &mut properties);
            assert!(depth <= 4, "{fields:?}: {depth} levels");
            assert!(properties <= 40, "{fields:?}: {properties} properties");
            // Measured with o200k: 4.2 bytes a token. What is left is for the property around it.
            let limit = if fields == Fields::Core { 295 } else { 490 };
            assert!(schema(fields).len() * 10 / 42 <= limit, "{fields:?}: {} bytes", schema(fields).len());
        }
    }

    #[test]
    fn what_it_asks_for_is_what_is_read() {
        for fields in [Fields::Core, Fields::Full] {
            assert!(declares_contract(&schema(fields)));
            let schema = tree(fields);
            for name in schema["properties"].as_object().unwrap().keys() {
                let arguments = match schema["properties"][name]["type"].as_str() {
                    Some("array") => format!(r#"{{"{name}":[]}}"#),
                    _ => format!(r#"{{"{name}":"x"}}"#),
                };
                let read = read(&arguments);
                let said = serde_json::to_value(read.handoff).unwrap();
                assert!(!said[name].is_null() || name == "return_schema", "{name}");
                assert_eq!(read.findings, [], "{name}");
            }
        }
    }
}
