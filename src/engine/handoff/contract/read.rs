//! Reads what a sender wrote, in whatever shape it was said, into a [`Handoff`].
//!
//! The top decides which member feeds which field; `fields` reads the single
//! fields. Nothing is judged here and nothing believed: a fault is reported
//! with its path, the field that has it is dropped, the rest is kept.

use super::fields::FieldReader;
use super::names::{self, Field};
use super::tree::{self, Fault, Node};
use super::{Handoff, Line};
use crate::engine::event::{Code, Finding};

/// Arguments larger than this are not read.
pub const MAX_BYTES: usize = 256 * 1024;

const TWICE: &str = "the key comes twice, so the handoff is void";

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct Read {
    /// What the sender said; none where it said nothing, or nothing that can be told apart.
    pub handoff: Option<Handoff>,
    /// What was wrong with it.
    pub findings: Vec<Finding>,
}

/// Reads the arguments of a transfer call: the canonical form and the shapes
/// in the field, at the top, in one property (`handoff`), or as JSON inside a
/// string. Nothing said (`""`, `{}`, only the tool's own parameters) is no
/// handoff and no fault.
pub fn read(arguments: &str) -> Read {
    let mut read = Read::default();
    if arguments.len() > MAX_BYTES {
        let what = format!("{} bytes of arguments, at most {MAX_BYTES} are read", arguments.len());
        read.findings.push(Finding::new(Code::LimitReached, "arguments", what));
        return read;
    }
    if arguments.trim().is_empty() {
        return read;
    }
    let members = match open(arguments) {
        Ok(Node::Object(members)) => members,
        Ok(Node::Null) => return read,
        Ok(node) => {
            read.findings.push(unreadable(&format!("expected an object, got {}", node.kind())));
            return read;
        }
        Err(fault) => {
            read.findings.push(finding(&fault));
            return read;
        }
    };
    let mut reader = Reader { fields: FieldReader::default(), void: false };
    let handoff = reader.top(members);
    read.findings = reader.fields.into_findings();
    read.handoff = handoff.filter(|_| !reader.void);
    read
}

/// Text as a tree; a string that holds a tree (arguments encoded twice) is opened, up to twice.
fn open(text: &str) -> Result<Node, Fault> {
    let mut node = tree::parse(text)?;
    for _ in 0..2 {
        let Node::Text(inner) = &node else { break };
        if inner.trim().is_empty() {
            return Ok(Node::Null);
        }
        node = tree::parse(inner)?;
    }
    Ok(node)
}

fn finding(fault: &Fault) -> Finding {
    match fault {
        Fault::NotJson => unreadable("not JSON"),
        Fault::Duplicate(path) => Finding::new(Code::DuplicateKey, path, TWICE),
    }
}

fn unreadable(what: &str) -> Finding {
    Finding::new(Code::ArgumentsUnreadable, "arguments", what)
}

struct Reader {
    fields: FieldReader,
    /// Whether a nested text had a key twice.
    void: bool,
}

impl Reader {
    /// The arguments themselves. What the tool's own parameters say comes
    /// first; a nested contract fills the fields that they leave open.
    fn top(&mut self, members: Vec<(String, Node)>) -> Option<Handoff> {
        let mut own = Vec::new();
        let mut nested = None;
        for (name, node) in members {
            match self.nested(&name, node) {
                Nested::Contract(members) => nested = nested.or(Some((name, members))),
                Nested::Not(node) => own.push((name, node)),
            }
        }
        let mut handoff = self.contract("", own);
        if let Some((name, members)) = nested {
            let below = self.contract(&format!("{}.", tree::join("", &name)), members).unwrap_or_default();
            handoff = Some(filled(handoff.unwrap_or_default(), below));
        }
        handoff
    }

    /// Whether a member is a contract in itself: an object (or JSON text of
    /// one) under a name that says so, or under another with a contract in it.
    fn nested(&mut self, name: &str, node: Node) -> Nested {
        let said = matches!(names::snake(name).as_str(), "handoff" | "handoff_contract" | "contract");
        if !said
            && names::field(name).is_some_and(|(_, field)| !matches!(field, Field::Context | Field::Prose))
        {
            return Nested::Not(node);
        }
        let opened = match &node {
            Node::Text(text) if text.trim_start().starts_with('{') => match tree::parse(text) {
                Ok(tree) => Some(tree),
                Err(Fault::Duplicate(path)) if said => {
                    self.void = true;
                    self.fields.report(Code::DuplicateKey, &format!("{name}.{path}"), TWICE);
                    return Nested::Not(Node::Null);
                }
                Err(_) => None,
            },
            _ => None,
        };
        match opened.unwrap_or(node) {
            Node::Object(members) if said || names::bears_contract(marks(&members)) => {
                Nested::Contract(members)
            }
            node if said => self.not_an_object(name, node),
            node => Nested::Not(node),
        }
    }

    /// A contract was asked for and prose came: its words are kept as the context.
    fn not_an_object(&mut self, name: &str, node: Node) -> Nested {
        match node {
            Node::Null => {}
            Node::Text(text) if text.trim().is_empty() => {}
            Node::Text(text) => {
                self.fields.report(Code::SchemaFault, name, "expected object, got string");
                return Nested::Contract(vec![("message".to_owned(), Node::Text(text))]);
            }
            node => {
                self.fields.report(Code::SchemaFault, name, &format!("expected object, got {}", node.kind()));
            }
        }
        Nested::Not(Node::Null)
    }

    /// One object of contract fields; none where it has not one of them.
    fn contract(&mut self, prefix: &str, members: Vec<(String, Node)>) -> Option<Handoff> {
        let mut known: Vec<_> = members
            .into_iter()
            .filter_map(|(name, node)| names::field(&name).map(|(rank, field)| (rank, field, name, node)))
            .collect();
        // A stable sort: the preferred name of a field first, else the sender's order.
        known.sort_by_key(|(rank, ..)| *rank);
        let mut handoff = Handoff::default();
        let mut said = false;
        let mut objective = None;
        for (_, field, name, node) in known {
            let path = format!("{prefix}{name}");
            match field {
                // At the top this is the tool's own way to name the receiver.
                Field::Owned if prefix.is_empty() && names::snake(&name) == "to_agent" => {}
                Field::Owned => self.fields.owned(&path),
                Field::Objective => {
                    self.fields.owned(&path);
                    objective = objective.or(self.fields.text(&path, &node));
                    said = true;
                }
                field => {
                    self.field(&mut handoff, field, &path, &node);
                    said = true;
                }
            }
        }
        // Tools in the field ask for an objective and for no task: what the sender wrote there is
        // what it wants done. It never becomes the objective, which is the customer's.
        if handoff.task.is_none() {
            handoff.task = objective;
        }
        said.then_some(handoff)
    }

    fn field(&mut self, handoff: &mut Handoff, field: Field, path: &str, node: &Node) {
        let fields = &mut self.fields;
        match field {
            Field::Task => fill(&mut handoff.task, fields.text(path, node)),
            Field::Reason => fill(&mut handoff.reason, fields.text(path, node)),
            Field::Context => match node {
                // Some tools take named values as context: they are facts, and checked like them.
                Node::Object(_) => add(&mut handoff.established, fields.facts(path, node)),
                node => fill(&mut handoff.context, fields.text(path, node)),
            },
            Field::Prose => {
                let free = [&mut handoff.context, &mut handoff.reason, &mut handoff.task];
                if let Some(slot) = free.into_iter().find(|slot| slot.is_none()) {
                    *slot = fields.text(path, node);
                }
            }
            Field::Established => add(&mut handoff.established, fields.facts(path, node)),
            Field::Constraints => add(&mut handoff.constraints, fields.constraints(path, node)),
            Field::Decisions => add(&mut handoff.decisions, fields.lines(path, node)),
            Field::OpenQuestions => add(&mut handoff.open_questions, fields.lines(path, node)),
            Field::Remaining => add(&mut handoff.remaining, fields.lines(path, node)),
            Field::DoneWhen => add(&mut handoff.done_when, fields.lines(path, node)),
            Field::StopConditions => add(&mut handoff.stop_conditions, fields.lines(path, node)),
            Field::Commitments => add(&mut handoff.commitments, fields.lines(path, node)),
            Field::Tried => add(&mut handoff.tried, fields.lines(path, node)),
            Field::Artifacts => add(&mut handoff.artifacts, fields.artifacts(path, node)),
            Field::ReturnTo => {
                let name = fields.text(path, node).map(|line: Line| line.text);
                fill(&mut handoff.return_to, name);
            }
            Field::ReturnSchema => fill(&mut handoff.return_schema, fields.return_schema(path, node)),
            Field::Objective | Field::Owned => {}
        }
    }
}

/// The names of an object's members, and whether each is a list or a map.
fn marks(members: &[(String, Node)]) -> impl Iterator<Item = (&str, bool)> {
    members.iter().map(|(name, node)| (name.as_str(), matches!(node, Node::List(_) | Node::Object(_))))
}

fn fill<T>(slot: &mut Option<T>, value: Option<T>) {
    if slot.is_none() {
        *slot = value;
    }
}

/// Several names may feed one list, in turn.
fn add<T>(slot: &mut Option<Vec<T>>, values: Option<Vec<T>>) {
    if let Some(values) = values {
        slot.get_or_insert_default().extend(values);
    }
}

/// `first`, and `second` where that is silent.
fn filled(first: Handoff, second: Handoff) -> Handoff {
    Handoff {
        task: first.task.or(second.task),
        reason: first.reason.or(second.reason),
        established: first.established.or(second.established),
        constraints: first.constraints.or(second.constraints),
        decisions: first.decisions.or(second.decisions),
        open_questions: first.open_questions.or(second.open_questions),
        remaining: first.remaining.or(second.remaining),
        done_when: first.done_when.or(second.done_when),
        stop_conditions: first.stop_conditions.or(second.stop_conditions),
        context: first.context.or(second.context),
        commitments: first.commitments.or(second.commitments),
        tried: first.tried.or(second.tried),
        artifacts: first.artifacts.or(second.artifacts),
        return_to: first.return_to.or(second.return_to),
        return_schema: first.return_schema.or(second.return_schema),
    }
}

enum Nested {
    Contract(Vec<(String, Node)>),
    Not(Node),
}

#[cfg(test)]
mod tests;
