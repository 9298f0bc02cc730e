//! Reads single fields of the contract from whatever JSON stands there, and
//! collects what is wrong with them.

use super::names::{member, snake};
use super::tree::{self, Node};
use super::{Artifact, By, Constraint, Line, ReturnSchema, Scope, StatedBy};
use crate::engine::event::{Code, Finding};

/// Entries read of one list.
pub const MAX_ENTRIES: usize = 100;
/// Bytes read of one text.
pub const MAX_TEXT: usize = 4_000;
/// Findings kept of one handoff.
const MAX_FINDINGS: usize = 64;

/// The faults met so far.
#[derive(Debug, Default)]
pub(super) struct FieldReader {
    findings: Vec<Finding>,
}

impl FieldReader {
    pub(super) fn into_findings(self) -> Vec<Finding> {
        self.findings
    }

    /// Adds a finding, up to a bound; the last one says that there were more.
    pub(super) fn report(&mut self, code: Code, path: &str, what: &str) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Finding::new(code, path, what));
        } else if self.findings.len() == MAX_FINDINGS {
            self.findings.push(Finding::new(Code::LimitReached, "findings", "more were found than are kept"));
        }
    }

    /// A value that Seam owns was written by the sender.
    pub(super) fn owned(&mut self, path: &str) {
        self.report(Code::OwnedField, path, "Seam owns this value; what the sender wrote is ignored");
    }

    pub(super) fn expected(&mut self, path: &str, expected: &str, got: &Node) {
        self.report(Code::SchemaFault, path, &format!("expected {expected}, got {}", got.kind()));
    }

    /// One text. Null and white space say nothing.
    pub(super) fn text(&mut self, path: &str, node: &Node) -> Option<Line> {
        self.string(path, node).map(line)
    }

    pub(super) fn string(&mut self, path: &str, node: &Node) -> Option<String> {
        match node {
            Node::Null => None,
            Node::Text(text) => {
                let text = text.trim();
                (!text.is_empty()).then(|| self.bounded(path, text))
            }
            node => {
                self.expected(path, "string", node);
                None
            }
        }
    }

    pub(super) fn bounded(&mut self, path: &str, text: &str) -> String {
        let kept = head(text);
        if kept.len() < text.len() {
            let what = format!("{} bytes, the first {} are kept", text.len(), kept.len());
            self.report(Code::LimitReached, path, &what);
        }
        kept.to_owned()
    }

    /// A list of lines. Null, an empty list and the word for it are *none, says the sender*.
    pub(super) fn lines(&mut self, path: &str, node: &Node) -> Option<Vec<Line>> {
        self.list(path, node, MAX_ENTRIES, FieldReader::line)
    }

    pub(super) fn constraints(&mut self, path: &str, node: &Node) -> Option<Vec<Constraint>> {
        self.list(path, node, MAX_ENTRIES, FieldReader::constraint)
    }

    /// The artifacts: objects, references, or a map from name to reference.
    pub(super) fn artifacts(&mut self, path: &str, node: &Node) -> Option<Vec<Artifact>> {
        if let Node::Object(members) = node
            && !is_schema(node)
        {
            let artifacts = members.iter().filter_map(|(name, node)| self.named_artifact(path, name, node));
            let artifacts: Vec<_> = artifacts.collect();
            return Some(self.capped(path, artifacts, MAX_ENTRIES));
        }
        self.list(path, node, MAX_ENTRIES, FieldReader::artifact)
    }

    /// The shape wanted back: a name, rows of name and type, a map of them, or a JSON schema.
    pub(super) fn return_schema(&mut self, path: &str, node: &Node) -> Option<ReturnSchema> {
        let rows = match node {
            Node::Object(members) => {
                let members = match member(node, "properties") {
                    Some(Node::Object(properties)) => properties,
                    _ => members,
                };
                members.iter().map(|(name, kind)| (name.clone(), type_name(kind))).collect()
            }
            Node::List(_) => self.list(path, node, MAX_ENTRIES, FieldReader::row)?,
            node => return self.string(path, node).map(ReturnSchema::Name),
        };
        let mut rows: Vec<(String, String)> = self.capped(path, rows, MAX_ENTRIES);
        // The form that is asked for is a list; one entry without a type is the name of a schema.
        if let [(name, kind)] = &mut rows[..]
            && kind.is_empty()
        {
            return Some(ReturnSchema::Name(std::mem::take(name)));
        }
        (!rows.is_empty()).then_some(ReturnSchema::Rows(rows))
    }

    /// A row of the shape wanted back: `name: type`, or an object of the two.
    fn row(&mut self, path: &str, node: &Node) -> Option<(String, String)> {
        if let Node::Text(text) = node {
            let text = self.bounded(path, text.trim());
            let (name, kind) = text.split_once(':').unwrap_or((&text, ""));
            return Some((name.trim().to_owned(), kind.trim().to_owned()));
        }
        let row = first_text(node, &["name", "key", "field"]).map(|name| (name, type_name(node)));
        if row.is_none() {
            self.expected(path, "a row of name and type", node);
        }
        row
    }

    /// A list in any of the forms in which senders write one: JSON inside a
    /// string and a single entry without its list are taken for what they are.
    pub(super) fn list<T>(
        &mut self,
        path: &str,
        node: &Node,
        max: usize,
        mut entry: impl FnMut(&mut Self, &str, &Node) -> Option<T>,
    ) -> Option<Vec<T>> {
        let opened = match node {
            Node::Text(text) if text.trim_start().starts_with('[') => tree::parse(text).ok(),
            _ => None,
        };
        let node = opened.as_ref().unwrap_or(node);
        match node {
            Node::Null => Some(Vec::new()),
            Node::Text(text) if says_none(text) => Some(Vec::new()),
            Node::Text(_) => Some(entry(self, path, node).into_iter().collect()),
            Node::List(items) => {
                let mut entries = Vec::new();
                for (i, item) in items.iter().enumerate() {
                    let alone = items.len() == 1 && matches!(item, Node::Text(text) if says_none(text));
                    if alone || *item == Node::Null || *item == Node::Text(String::new()) {
                        continue;
                    }
                    if entries.len() == max {
                        let what = format!("{} entries, the first {max} are kept", items.len());
                        self.report(Code::LimitReached, path, &what);
                        break;
                    }
                    entries.extend(entry(self, &format!("{path}[{i}]"), item));
                }
                Some(entries)
            }
            node => {
                self.expected(path, "list", node);
                None
            }
        }
    }

    pub(super) fn capped<T>(&mut self, path: &str, mut entries: Vec<T>, max: usize) -> Vec<T> {
        if entries.len() > max {
            let what = format!("{} entries, the first {max} are kept", entries.len());
            self.report(Code::LimitReached, path, &what);
            entries.truncate(max);
        }
        entries
    }

    /// One entry of a list: a text, or an object with a text and what goes with it.
    fn line(&mut self, path: &str, node: &Node) -> Option<Line> {
        let Node::Object(_) = node else { return self.text(path, node) };
        let text = if is_schema(node) { None } else { first_text(node, LINE) };
        let Some(text) = text else {
            self.expected(path, "string", node);
            return None;
        };
        let text = match first_text(
            node,
            &["why", "reason", "rationale", "because", "outcome", "result", "error"],
        ) {
            Some(why) => format!("{text}: {why}"),
            None => text,
        };
        Some(line(self.bounded(path, &text)))
    }

    fn constraint(&mut self, path: &str, node: &Node) -> Option<Constraint> {
        let Line { text, by } = self.line(path, node)?;
        let scope = self.word(&format!("{path}.scope"), node, "scope", SCOPES);
        let stated_by = self.word(&format!("{path}.stated_by"), node, "stated_by", STATED_BY);
        // A rule without a scope is kept for the whole run: one carried too far is a smaller harm
        // than one that is lost. Whether it binds is not for the sender to say.
        Some(Constraint { text, scope: scope.unwrap_or(Scope::Run), stated_by, binds: false, by })
    }

    /// A member that holds one of a few words.
    fn word<T: Copy>(&mut self, path: &str, node: &Node, name: &str, words: &[(&str, T)]) -> Option<T> {
        let said = member(node, name)?;
        if *said == Node::Null {
            return None;
        }
        let text = if let Node::Text(text) = said { snake(text) } else { String::new() };
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            self.report(
                Code::SchemaFault,
                path,
                &format!("expected {}, got another value", words.join(" or ")),
            );
        }
        found
    }

    fn artifact(&mut self, path: &str, node: &Node) -> Option<Artifact> {
        let reference = match node {
            Node::Text(_) => self.string(path, node),
            Node::Object(_) => first(node, REFERENCE).and_then(|node| self.reference(path, node)),
            _ => None,
        };
        let Some(reference) = reference else {
            self.report(Code::SchemaFault, &format!("{path}.ref"), "expected a reference, got none");
            return None;
        };
        Some(Artifact {
            name: first_text(node, &["name", "title"]),
            kind: first_text(node, &["kind", "type", "media_type"]),
            reference,
            summary: first_text(node, &["summary", "description"]),
            outcome: None,
        })
    }

    fn named_artifact(&mut self, path: &str, name: &str, node: &Node) -> Option<Artifact> {
        let name = self.bounded(path, name.trim());
        if matches!(node, Node::Object(_)) && first(node, REFERENCE).is_some() {
            let artifact = self.artifact(path, node)?;
            return Some(Artifact { name: Some(name), ..artifact });
        }
        let reference = self.reference(path, node)?;
        Some(Artifact { name: Some(name), reference, ..Artifact::default() })
    }

    /// A reference as text. A list or an object is taken as it stands, for the judgement to find it by value.
    fn reference(&mut self, path: &str, node: &Node) -> Option<String> {
        match node {
            Node::Null => None,
            Node::List(_) | Node::Object(_) | Node::Number(_) | Node::Bool(_) => {
                Some(self.bounded(path, &node.json()))
            }
            node => self.string(path, node),
        }
    }
}

const LINE: &[&str] = &[
    "text",
    "decision",
    "question",
    "step",
    "action",
    "constraint",
    "rule",
    "condition",
    "commitment",
    "promise",
    "attempt",
    "tried",
    "what",
    "statement",
    "content",
    "description",
    "item",
    "name",
    "title",
];
const REFERENCE: &[&str] = &["ref", "reference", "uri", "url", "path", "id", "value"];
const SCOPES: &[(&str, Scope)] = &[("run", Scope::Run), ("task", Scope::Task)];
const STATED_BY: &[(&str, StatedBy)] = &[("customer", StatedBy::Customer), ("policy", StatedBy::Policy)];

fn line(text: String) -> Line {
    Line { text, by: By::Sender }
}

/// A text's first [`MAX_TEXT`] bytes, to the last whole character.
fn head(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The first of `names` that the object has.
pub(super) fn first<'t>(node: &'t Node, names: &[&str]) -> Option<&'t Node> {
    let Node::Object(members) = node else { return None };
    names
        .iter()
        .find_map(|wanted| members.iter().find(|(name, _)| snake(name) == *wanted).map(|(_, node)| node))
}

/// The first of `names` that holds a text, bounded like any.
pub(super) fn first_text(node: &Node, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| match first(node, &[name]) {
        Some(Node::Text(text)) if !text.trim().is_empty() => Some(head(text.trim()).to_owned()),
        Some(Node::Number(number)) => Some(number.clone()),
        _ => None,
    })
}

/// Whether an object is a piece of a schema instead of a value: models echo what they were shown.
pub(super) fn is_schema(node: &Node) -> bool {
    let typed = match member(node, "type") {
        Some(Node::Text(kind)) => matches!(
            kind.as_str(),
            "string"
                | "str"
                | "array"
                | "list"
                | "object"
                | "dict"
                | "integer"
                | "int"
                | "number"
                | "float"
                | "boolean"
                | "bool"
                | "null"
        ),
        Some(Node::List(_)) => true,
        _ => false,
    };
    typed && first(node, REFERENCE).is_none()
        || ["$ref", "anyOf", "oneOf", "items", "properties"]
            .iter()
            .any(|key| matches!(member(node, key), Some(Node::Object(_) | Node::List(_))))
}

/// The type that a row, or a property of a schema, gives.
fn type_name(node: &Node) -> String {
    match node {
        Node::Text(kind) => kind.trim().to_owned(),
        Node::Object(_) => first_text(node, &["type", "kind"]).unwrap_or_default(),
        node => node.kind().to_owned(),
    }
}

/// Whether a text is a word for *nothing*.
pub(super) fn says_none(text: &str) -> bool {
    let word = text.trim().trim_end_matches('.').to_ascii_lowercase();
    matches!(word.as_str(), "" | "none" | "n/a" | "na" | "nil" | "null" | "nothing" | "-" | "[]" | "none.")
}
