//! What a receiver's tools take: the names of their arguments, as words.

use std::collections::HashSet;

use serde_json::Value;

use crate::engine::handoff::value::fold::{self, Words};
use crate::engine::view::Tool;

/// Depth to which a schema's properties are followed.
const DEEPEST: usize = 8;
/// Names that are kept.
const MOST: usize = 512;

/// Arguments that hold what a model writes itself: no result is looked through for them.
const WRITTEN: &[&str] = &[
    "reason",
    "summary",
    "thought",
    "query",
    "text",
    "message",
    "note",
    "description",
    "expression",
    "comment",
    "content",
    "title",
    "subject",
    "body",
    "prompt",
    "question",
    "task",
    "context",
    "params",
    "parameter",
    "option",
    "value",
    "data",
    "input",
    "limit",
    "offset",
    "page",
    "sort",
    "order by",
    "format",
    "language",
];

/// The arguments that somebody's tools take.
#[derive(Clone, Debug, Default)]
pub struct Wants {
    /// Arguments of one value, each as its words in singular.
    values: Vec<Vec<String>>,
    /// Arguments that are lists or objects of something the schema does not describe: `passengers`.
    holders: Vec<Vec<String>>,
    /// What identifying arguments name: `order` of `order_id` and `order_ids`.
    named: HashSet<String>,
}

impl Wants {
    /// What these tools take, at any depth of their schemas.
    pub fn of_tools(tools: &[Tool<'_>]) -> Wants {
        let mut wants = Wants::default();
        for tool in tools.iter().filter(|tool| !searches(&tool.name)) {
            if let Some(Ok(schema)) = tool.parameters.as_deref().map(serde_json::from_str::<Value>) {
                wants.add_properties(&schema, DEEPEST);
            }
        }
        wants.tidy();
        wants
    }

    /// What calls with these arguments (JSON texts) took.
    pub fn of_calls<'a>(arguments: impl Iterator<Item = &'a str>) -> Wants {
        let mut wants = Wants::default();
        for text in arguments {
            if let Ok(value) = serde_json::from_str::<Value>(text) {
                wants.add_members(&value, DEEPEST);
            }
        }
        wants.tidy();
        wants
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.holders.is_empty()
    }

    /// Whether an argument takes a value that stands there, told by words. A key of one word (`id`) is told by
    /// what is around it: `payment_id` takes the `id` of a `payment method`. A key of several says it itself:
    /// one of the two has all the words of the other (`new_item_ids` takes an `item_id`, not a `tracking_id`).
    pub(super) fn take(&self, place: &Place) -> bool {
        let key = &place.key;
        self.values.iter().any(|argument| {
            let within = |word| key.contains(word);
            argument.last() == key.last()
                && if key.len() == 1 {
                    argument.iter().all(|word| within(word) || place.around.contains(word))
                } else {
                    argument.iter().all(within) || key.iter().all(|word| argument.contains(word))
                }
        })
    }

    /// Whether an argument takes what the value is a part of, as `passengers` takes what stands in
    /// `saved_passengers`.
    pub(super) fn hold(&self, place: &Place) -> bool {
        self.holders.iter().any(|holder| holder.iter().all(|word| place.around.contains(word)))
    }

    /// Whether an argument identifies what this key lists: `order_id` what stands under `orders`.
    pub(super) fn name(&self, place: &Place) -> bool {
        self.named.contains(&place.key.join(" "))
    }

    fn add(&mut self, name: &str, holder: bool) {
        let words = words(name);
        let known = self.values.len() + self.holders.len();
        if words.is_empty() || known >= MOST || WRITTEN.contains(&words.join(" ").as_str()) {
            return;
        }
        if let Some((last, stem)) = words.split_last()
            && is_id(last)
            && !stem.is_empty()
        {
            self.named.insert(stem.join(" "));
        }
        if holder {
            self.holders.push(words.clone());
        }
        self.values.push(words);
    }

    fn add_properties(&mut self, schema: &Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match schema {
            Value::Object(members) => {
                for (key, below) in members {
                    if let ("properties", Value::Object(properties)) = (key.as_str(), below) {
                        for (name, below) in properties {
                            self.add(name, is_undescribed(below));
                            self.add_properties(below, depth);
                        }
                    } else if below.is_object() || below.is_array() {
                        self.add_properties(below, depth);
                    }
                }
            }
            Value::Array(list) => list.iter().for_each(|below| self.add_properties(below, depth)),
            _ => {}
        }
    }

    fn add_members(&mut self, value: &Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match value {
            Value::Object(members) => {
                for (name, below) in members {
                    self.add(name, false);
                    self.add_members(below, depth);
                }
            }
            Value::Array(list) => list.iter().take(4).for_each(|below| self.add_members(below, depth)),
            _ => {}
        }
    }

    fn tidy(&mut self) {
        for list in [&mut self.values, &mut self.holders] {
            list.sort();
            list.dedup();
        }
    }
}

/// Where a value stands, as words in singular.
#[derive(Debug)]
pub(super) struct Place {
    /// Of its own key.
    key: Vec<String>,
    /// Of the keys and the record around it.
    around: Vec<String>,
}

impl Place {
    /// The place of a key, in what is named by `around`.
    pub(super) fn new(key: &str, around: &str) -> Place {
        Place { key: words(key), around: words(around) }
    }
}

/// Whether a tool looks for something that is not known yet: what it takes is not what a result has given.
fn searches(name: &str) -> bool {
    Words::of(name)
        .iter()
        .next()
        .is_some_and(|first| matches!(first, "find" | "search" | "lookup" | "look" | "query"))
}

/// Whether a property's schema says that it holds something, and not what.
fn is_undescribed(schema: &Value) -> bool {
    let has = |key: &str| schema.get(key).is_some_and(|below| !below.is_null());
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => !has("properties"),
        Some("array") => schema.get("items").is_none_or(|items| {
            let kind = items.get("type").and_then(Value::as_str);
            items.get("properties").is_none() && matches!(kind, None | Some("object"))
        }),
        _ => false,
    }
}

/// A name's words, each in singular.
fn words(name: &str) -> Vec<String> {
    Words::of(name).iter().map(singular).collect()
}

fn singular(word: &str) -> String {
    match word {
        "ids" => "id".to_owned(),
        "nos" => "no".to_owned(),
        _ => fold::singular(word).into_owned(),
    }
}

fn is_id(word: &str) -> bool {
    matches!(word, "id" | "uuid" | "number" | "no" | "code" | "key" | "ref" | "reference" | "name")
}
