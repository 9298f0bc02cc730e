//! JSON as a sender wrote it: members in their order, numbers as they were
//! spelled, a duplicate key told from a plain one.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Values nested deeper than this are not read.
pub(super) const MAX_DEPTH: usize = 16;

/// One JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Null,
    Bool(bool),
    /// The number's own text.
    Number(String),
    Text(String),
    List(Vec<Node>),
    /// Each key once, in the order written.
    Object(Vec<(String, Node)>),
    /// A string that is not valid Unicode (a lone surrogate).
    Garbled,
    /// A list or object below [`MAX_DEPTH`].
    TooDeep,
}

/// Why a text gives no tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is not JSON.
    NotJson,
    /// An object has a key twice; the path of the second.
    Duplicate(String),
}

impl Node {
    /// What kind of value it is, in the words of JSON Schema.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Node::Null => "null",
            Node::Bool(_) => "boolean",
            Node::Number(_) => "number",
            Node::Text(_) => "string",
            Node::List(_) => "list",
            Node::Object(_) => "object",
            Node::Garbled => "a string that is not Unicode",
            Node::TooDeep => "a value nested too deep",
        }
    }

    /// The value as compact JSON text.
    pub(super) fn json(&self) -> String {
        match self {
            Node::Null | Node::Garbled | Node::TooDeep => "null".to_owned(),
            Node::Bool(bool) => bool.to_string(),
            Node::Number(number) => number.clone(),
            Node::Text(text) => json_string(text),
            Node::List(items) => {
                let items: Vec<_> = items.iter().map(Node::json).collect();
                format!("[{}]", items.join(","))
            }
            Node::Object(members) => {
                let members: Vec<_> = members
                    .iter()
                    .map(|(key, node)| format!("{}:{}", json_string(key), node.json()))
                    .collect();
                format!("{{{}}}", members.join(","))
            }
        }
    }
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Reads `text`, the whole of it.
pub(super) fn parse(text: &str) -> Result<Node, Fault> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|_| Fault::NotJson)?;
    node(raw, "", 0)
}

/// Each level reads its members as raw text and descends: work is bounded by
/// size times [`MAX_DEPTH`].
fn node(raw: &RawValue, path: &str, depth: usize) -> Result<Node, Fault> {
    let text = raw.get();
    let nested = matches!(text.as_bytes().first(), Some(b'{' | b'['));
    if nested && depth == MAX_DEPTH {
        return Ok(Node::TooDeep);
    }
    match text.as_bytes().first() {
        Some(b'n') => Ok(Node::Null),
        Some(b't') => Ok(Node::Bool(true)),
        Some(b'f') => Ok(Node::Bool(false)),
        Some(b'"') => Ok(serde_json::from_str(text).map_or(Node::Garbled, Node::Text)),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| Fault::NotJson)?;
            let items =
                items.iter().enumerate().map(|(i, raw)| node(raw, &format!("{path}[{i}]"), depth + 1));
            items.collect::<Result<_, _>>().map(Node::List)
        }
        Some(b'{') => {
            let members: Members<'_> = serde_json::from_str(text).map_err(|_| Fault::NotJson)?;
            object(members.0, path, depth)
        }
        _ => Ok(Node::Number(text.to_owned())),
    }
}

fn object(members: Vec<(String, &RawValue)>, path: &str, depth: usize) -> Result<Node, Fault> {
    let mut seen = HashSet::new();
    let mut read = Vec::with_capacity(members.len());
    for (key, raw) in members {
        let path = join(path, &key);
        if !seen.insert(key.clone()) {
            return Err(Fault::Duplicate(path));
        }
        let node = node(raw, &path, depth + 1)?;
        read.push((key, node));
    }
    Ok(Node::Object(read))
}

/// A path grown by a key. Keys are model text, and paths go to findings: the
/// key is cut to a plain word, the path bounded.
pub(super) fn join(path: &str, key: &str) -> String {
    if path.len() > 100 {
        return path.to_owned();
    }
    let key: String = key
        .chars()
        .take(40)
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '?' })
        .collect();
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// The members of an object, duplicates included: a map type would drop them.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;
            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_spelling_are_kept() {
        let text = r#"{"b":[1.50,1e3,-0],"a":{"x":null,"y":true,"z":"t\u00e9"}}"#;
        let tree = parse(text).unwrap();
        assert_eq!(tree.json(), text.replace("\\u00e9", "é"));
    }

    #[test]
    fn a_key_that_comes_twice_is_named_by_its_path() {
        let check = |text: &str, path: &str| {
            assert_eq!(parse(text), Err(Fault::Duplicate(path.to_owned())), "{text}");
        };
        check(r#"{"task":"a","task":"b"}"#, "task");
        check(r#"{"task":"a","\u0074ask":"b"}"#, "task");
        check(r#"{"facts":[{},{"key":1,"key":1}]}"#, "facts[1].key");
        check(r#"{"a b<":1,"a b<":2}"#, "a?b?");
    }

    #[test]
    fn odd_text_is_told_apart_and_never_panics() {
        assert_eq!(parse(""), Err(Fault::NotJson));
        assert_eq!(parse("{\"a\":"), Err(Fault::NotJson));
        assert_eq!(parse("{} x"), Err(Fault::NotJson));
        assert_eq!(parse(r#"["\ud800"]"#), Ok(Node::List(vec![Node::Garbled])));
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        // Whether the reader below gives up or the depth is cut here, nothing overflows.
        let _ = parse(&deep);
        let deep = "[".repeat(40) + &"]".repeat(40);
        assert!(format!("{:?}", parse(&deep).unwrap()).contains("TooDeep"));
    }
}
