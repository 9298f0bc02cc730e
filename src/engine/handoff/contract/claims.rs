//! Reads the facts that a sender claims, in the forms in which senders write
//! them: rows, statements, maps from key to value.

use super::fields::{FieldReader, first, first_text, is_schema};
use super::names::snake;
use super::tree::Node;
use super::{Claim, Confidence, MAX_TEXT, Source, Value};
use crate::engine::event::Code;

/// Facts read of one handoff.
pub const MAX_FACTS: usize = 500;

const KEY: &[&str] = &["key", "name", "field", "attribute"];
const VALUE: &[&str] = &["value"];
const STATEMENT: &[&str] = &["text", "claim", "fact", "statement", "finding", "content", "description"];
const EVIDENCE: &[&str] =
    &["evidence", "call_id", "tool_call_id", "citation", "quote", "evidence_id", "message_id"];

impl FieldReader {
    /// The facts: objects, statements, or a map from key to value.
    pub(super) fn facts(&mut self, path: &str, node: &Node) -> Option<Vec<Claim>> {
        if let Node::Object(members) = node {
            return self.map(path, node, members).map(|facts| self.capped(path, facts, MAX_FACTS));
        }
        self.list(path, node, MAX_FACTS, FieldReader::fact).map(flat)
    }

    /// One entry of the facts. A map in the list may hold several.
    fn fact(&mut self, path: &str, node: &Node) -> Option<Vec<Claim>> {
        match node {
            Node::Text(text) => {
                let text = text.trim();
                if text.is_empty() {
                    return None;
                }
                Some(vec![statement(&self.bounded(path, text))])
            }
            Node::Object(_) if is_schema(node) => {
                self.expected(path, "a fact", node);
                None
            }
            Node::Object(members) => {
                let known = |name: &str| [KEY, VALUE, STATEMENT].concat().contains(&name);
                if members.iter().any(|(name, _)| known(&snake(name))) {
                    self.claim(path, node, members).map(|claim| vec![claim])
                } else {
                    self.map(path, node, members)
                }
            }
            node => {
                self.expected(path, "a fact", node);
                None
            }
        }
    }

    fn claim(&mut self, path: &str, node: &Node, members: &[(String, Node)]) -> Option<Claim> {
        if first(node, VALUE).is_some_and(is_schema) {
            self.expected(&format!("{path}.value"), "a value", node);
            return None;
        }
        let statement_text = first_text(node, STATEMENT);
        let value = first(node, VALUE).filter(|value| **value != Node::Null);
        let (key, value) = match (first_text(node, KEY), value, statement_text) {
            (key, Some(value), text) => (key.or(text), value.clone()),
            (key, None, Some(text)) => (key, Node::Text(text)),
            (_, None, None) => {
                self.report(Code::SchemaFault, &format!("{path}.value"), "expected a value, got none");
                return None;
            }
        };
        let mut claim = match (&key, &value) {
            (None, Node::Text(text)) => statement(&self.bounded(path, text.trim())),
            _ => Claim::default(),
        };
        if claim.value.text.is_empty() {
            claim.value = self.value(path, &value)?;
        }
        claim.key = key.map(|key| self.bounded(&format!("{path}.key"), &key));
        claim.of = first_text(node, &["of", "record", "entity", "subject"]);
        let confidence = first(node, &["confidence"]);
        claim.confidence = confidence.and_then(|said| self.confidence(&format!("{path}.confidence"), said));
        if let Some(evidence) = first(node, EVIDENCE) {
            claim.evidence = self.evidence(&format!("{path}.evidence"), evidence).or(claim.evidence);
        }
        if let Some(said) = first(node, &["source", "src", "provenance", "origin"]) {
            let said = self.string(&format!("{path}.source"), said);
            claim = with_source(claim, said);
        }
        for (name, _) in members {
            if matches!(snake(name).as_str(), "as_of" | "as_of_s" | "outcome" | "age") {
                self.owned(&format!("{path}.{}", snake(name)));
            }
        }
        Some(claim)
    }

    /// An object of plain values: a fact each.
    fn map(&mut self, path: &str, node: &Node, members: &[(String, Node)]) -> Option<Vec<Claim>> {
        if is_schema(node) {
            self.expected(path, "a list of facts", node);
            return None;
        }
        let mut facts = Vec::new();
        for (i, (key, node)) in members.iter().enumerate() {
            if *node == Node::Null || *node == Node::Text(String::new()) {
                continue;
            }
            let Some(value) = self.value(&format!("{path}[{i}]"), node) else { continue };
            let key = key.trim();
            let key = (!key.is_empty()).then(|| self.bounded(path, key));
            facts.push(Claim { key, value, ..Claim::default() });
        }
        Some(facts)
    }

    fn value(&mut self, path: &str, node: &Node) -> Option<Value> {
        let (text, quoted) = match node {
            Node::Text(text) => (text.clone(), true),
            Node::Garbled | Node::TooDeep | Node::Null => {
                self.expected(path, "a value", node);
                return None;
            }
            node => (node.json(), false),
        };
        // Cut JSON is JSON no more.
        let quoted = quoted || text.len() > MAX_TEXT;
        Some(Value { text: self.bounded(path, &text), quoted })
    }

    /// What a fact cites: one text, or a list of them.
    fn evidence(&mut self, path: &str, node: &Node) -> Option<String> {
        let Node::List(items) = node else { return self.string(path, node) };
        let cited: Vec<_> = items.iter().filter_map(|item| self.string(path, item)).collect();
        (!cited.is_empty()).then(|| self.bounded(path, &cited.join(" ")))
    }

    fn confidence(&mut self, path: &str, node: &Node) -> Option<Confidence> {
        match node {
            Node::Null => None,
            Node::Text(text) => match snake(text).as_str() {
                "high" => Some(Confidence::High),
                "medium" => Some(Confidence::Medium),
                "low" => Some(Confidence::Low),
                _ => {
                    self.report(Code::SchemaFault, path, "expected high, medium or low, got another word");
                    None
                }
            },
            node => {
                self.expected(path, "high, medium or low", node);
                None
            }
        }
    }
}

fn flat(facts: Vec<Vec<Claim>>) -> Vec<Claim> {
    facts.into_iter().flatten().take(MAX_FACTS).collect()
}

/// A statement; a citation in brackets at its end (`... [call_7f31]`) is its evidence.
fn statement(text: &str) -> Claim {
    let (text, evidence) = match cited_at_end(text) {
        Some((text, id)) => (text, Some(id.to_owned())),
        None => (text, None),
    };
    Claim { value: Value { text: text.to_owned(), quoted: true }, evidence, ..Claim::default() }
}

fn cited_at_end(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_end().trim_end_matches('.');
    let (before, id) = match text.as_bytes().last()? {
        b']' => text[..text.len() - 1].rsplit_once('[')?,
        b')' => text[..text.len() - 1].rsplit_once('(')?,
        _ => return None,
    };
    let id = id.rsplit(' ').next()?;
    let before = before.trim_end();
    let is_word = id.len() >= 4 && id.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:".contains(c));
    let is_id = is_word && id.contains('_') && id.chars().any(|c| c.is_ascii_digit());
    ((is_id || is_call_id(id)) && !before.is_empty()).then_some((before, id))
}

/// Whether a word has the form that providers give the ids of calls.
fn is_call_id(word: &str) -> bool {
    const FORMS: &[&str] = &["call_", "call-", "toolu_", "tooluse_", "chatcmpl-tool-", "functions."];
    word.len() >= 8 && FORMS.iter().any(|form| word.starts_with(form))
}

/// The source as the sender put it: one of the three, or prose, of which a call id is taken as citation.
fn with_source(claim: Claim, said: Option<String>) -> Claim {
    let Some(said) = said else { return claim };
    let source = match snake(&said).as_str() {
        "tool_result" | "tool" | "tool_call" | "tool_output" => Source::ToolResult,
        "customer_utterance" | "customer" | "user" | "user_utterance" => Source::CustomerUtterance,
        "agent_inference" | "inference" | "agent" | "assumption" => Source::AgentInference,
        _ => {
            let edge = |c: char| !c.is_ascii_alphanumeric();
            let cited =
                said.split(|c: char| c.is_whitespace() || ",;()[]".contains(c)).map(|w| w.trim_matches(edge));
            let cited = cited.filter(|word| is_call_id(word)).map(str::to_owned).next();
            return Claim { evidence: claim.evidence.or(cited), source_text: Some(said), ..claim };
        }
    };
    Claim { source: Some(source), ..claim }
}
