//! The evidence index: what the run's tools returned and its customer said,
//! indexed once, so that checking a fact costs what the fact costs.
//!
//! Every result is read into a tree of values ([`read`]), its records are found
//! ([`records`]), and the records are posted under their names, so that a later
//! result for the same record is found without a search.

mod document;
mod keys;
mod leaf;
mod lookup;
mod mixed;
mod postings;
mod read;
mod records;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

pub use document::Kind;
pub use leaf::{Leaf, RecordName};

pub(crate) use document::Document;
pub(crate) use keys::{Class, KeyId, Keys, Tool};
pub(crate) use lookup::LARGE;
pub(crate) use postings::Posting;
pub(crate) use read::{Limits, read};
pub(crate) use records::{How, Name, Records};

use mixed::Mixed;
use postings::Postings;

use crate::engine::event::{Code, Finding};
use crate::engine::handoff::value::fold::{self, Words};
use crate::engine::time::Timestamp;

/// One thing that happened in the run, in order.
#[derive(Clone, Copy, Debug)]
pub enum Happening<'a> {
    /// A tool call, with its result where it has one. Ids repeat: the place in the order tells calls apart.
    Call {
        /// The call's id as the client has it.
        id: &'a str,
        /// The tool's name.
        name: &'a str,
        /// The arguments, JSON text.
        arguments: &'a str,
        /// The result's text.
        result: Option<&'a str>,
        /// When the result was first seen, if that can be known.
        as_of: Option<Timestamp>,
    },
    /// A turn of the customer.
    Customer(&'a str),
    /// What an agent said to the customer.
    Agent(&'a str),
}

/// How a call went, as its result tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It returned something.
    Ok,
    /// It returned nothing: no text, an empty list or object, null.
    Empty,
    /// It returned an error.
    Error,
    /// No result was seen.
    NoResult,
}

/// A call of the run.
#[derive(Debug)]
pub struct CallSeen {
    /// Its id; others may bear it too.
    pub id: Box<str>,
    /// The call before it under the same id's hash.
    before: Option<u32>,
    /// When the result was first seen, if that can be known.
    pub as_of: Option<Timestamp>,
    /// How it went.
    pub ended: Ended,
    /// Its place among all that happened.
    pub place: u32,
    pub(crate) tool: Arc<Tool>,
    pub(crate) arguments: Document,
    pub(crate) result: Document,
    pub(crate) records: Records,
}

impl CallSeen {
    /// The tool's name.
    pub fn name(&self) -> &str {
        &self.tool.name
    }

    /// The result's text as it came; empty where there is none.
    pub fn result_text(&self) -> &str {
        self.result.whole()
    }

    /// The node that a record's keys hang on.
    pub(crate) fn top(&self, record: u32, keys: &Keys) -> u32 {
        if record == 0 { records::core(&self.result, keys) } else { self.records.all[record as usize].node }
    }

    /// The innermost record that a node of the result belongs to and that has an identity.
    pub(crate) fn record_of(&self, node: u32) -> u32 {
        self.records.known(self.records.of(node))
    }

    /// A record's name as the call spells it.
    pub(crate) fn spelled<'s>(&'s self, name: &Name, keys: &'s Keys) -> Cow<'s, str> {
        name.spelled(&self.result, &self.arguments, keys)
    }

    /// A record's name, folded and run together.
    pub(crate) fn folded(&self, name: &Name, keys: &Keys) -> String {
        Words::of(&self.spelled(name, keys)).text
    }

    /// The arguments' text as it came.
    pub fn arguments_text(&self) -> &str {
        self.arguments.whole()
    }
}

/// What somebody said.
#[derive(Debug)]
pub struct Turn {
    /// Whether it was the customer, else an agent.
    pub customer: bool,
    /// The words.
    pub text: Box<str>,
    /// Its place among all that happened.
    pub place: u32,
    words: OnceLock<Words>,
}

impl Turn {
    /// The words, folded; made when first asked for, as most turns are never searched.
    pub(crate) fn words(&self) -> &Words {
        self.words.get_or_init(|| Words::of(&self.text))
    }
}

/// The index.
#[derive(Debug, Default)]
pub struct Evidence {
    whole: bool,
    places: u32,
    calls: Vec<CallSeen>,
    turns: Vec<Turn>,
    /// The newest call of each id, by the id's hash.
    by_id: HashMap<u64, u32, Mixed>,
    tools: HashMap<Box<str>, Arc<Tool>>,
    pub(crate) keys: Keys,
    by_name: Postings,
    reading: read::Room,
    finding: records::Room,
}

impl Evidence {
    /// Indexes a run. `whole` says that Seam saw the run from its first request.
    pub fn index<'a>(run: impl IntoIterator<Item = Happening<'a>>, whole: bool) -> Evidence {
        let mut evidence = Evidence { whole, ..Evidence::default() };
        evidence.extend(run);
        evidence
    }

    /// Adds what has happened since.
    pub fn extend<'a>(&mut self, run: impl IntoIterator<Item = Happening<'a>>) {
        let run = run.into_iter();
        self.calls.reserve(run.size_hint().0);
        for happening in run {
            match happening {
                Happening::Call { id, name, arguments, result, as_of } => {
                    self.call(id, name, arguments, result, as_of);
                }
                Happening::Customer(text) => self.turn(true, text),
                Happening::Agent(text) => self.turn(false, text),
            }
            self.places += 1;
        }
    }

    /// Whether Seam saw the run from its first request.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// How many things have happened: what `extend` has still to be given begins there.
    pub fn len(&self) -> usize {
        self.places as usize
    }

    /// Whether nothing has happened.
    pub fn is_empty(&self) -> bool {
        self.places == 0
    }

    /// The calls, in order.
    pub fn calls(&self) -> &[CallSeen] {
        &self.calls
    }

    /// What was said, in order.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// The customer's turns, in order.
    pub fn customer_turns(&self) -> impl DoubleEndedIterator<Item = &Turn> {
        self.turns.iter().filter(|turn| turn.customer)
    }

    /// All values of all results, in order.
    pub fn leaves(&self) -> impl Iterator<Item = Leaf<'_>> {
        (0..self.calls.len() as u32).flat_map(move |call| self.leaves_of(call as usize))
    }

    /// The values of one call's result, in order.
    pub fn leaves_of(&self, call: usize) -> impl Iterator<Item = Leaf<'_>> {
        let nodes = self.calls.get(call).map_or(0, |seen| seen.result.nodes.len() as u32);
        (0..nodes).filter_map(move |node| Leaf::new(self, call as u32, node))
    }

    /// A call's scalar arguments that say what it was about: key and value.
    pub fn identifying_arguments(
        &self,
        call: usize,
    ) -> impl Iterator<Item = (&str, std::borrow::Cow<'_, str>)> {
        self.calls.get(call).into_iter().flat_map(move |seen| {
            let arguments = &seen.arguments;
            arguments.children(records::core(arguments, &self.keys)).filter_map(move |child| {
                let node = arguments.node(child);
                let key = &self.keys[node.key];
                let short = matches!(node.kind, Kind::Text | Kind::Number) && node.len <= 96;
                (short && (key.names() || matches!(key.class, Class::Name | Class::Day)))
                    .then(|| (&*key.text, arguments.value(child)))
            })
        })
    }

    /// What could not be indexed.
    pub fn findings(&self) -> Vec<Finding> {
        let bounded = self.calls.iter().filter(|call| call.result.bounded || call.arguments.bounded);
        bounded
            .take(20)
            .map(|call| {
                Finding::new(Code::LimitReached, &*call.id, "a result was indexed up to a bound only")
            })
            .collect()
    }

    /// Whether a text stands in some result, letter by letter; the newest results are searched, up to a bound.
    pub(crate) fn results_mention(&self, text: &str) -> bool {
        const BYTES: usize = 1 << 20;
        let mut left = BYTES;
        self.calls.iter().rev().any(|call| {
            let result = call.result.whole();
            let searched = left > 0;
            left = left.saturating_sub(result.len());
            searched && memchr::memmem::find(result.as_bytes(), text.trim().as_bytes()).is_some()
        })
    }

    /// The calls with this id, the newest first.
    pub(crate) fn with_id<'e>(&'e self, id: &'e str) -> impl Iterator<Item = u32> + 'e {
        let newest = self.by_id.get(&fold::hash(id)).copied();
        std::iter::successors(newest, |call| self.seen(*call).before)
            .filter(|call| *self.seen(*call).id == *id)
    }

    pub(crate) fn seen(&self, call: u32) -> &CallSeen {
        &self.calls[call as usize]
    }

    /// Whether some record of the run bears a name.
    pub(crate) fn is_name(&self, hash: u64) -> bool {
        self.records_named(hash).next().is_some()
    }

    /// All records with a name, newest first.
    pub(crate) fn records_named(&self, hash: u64) -> impl Iterator<Item = Posting> + '_ {
        self.by_name.named(hash)
    }

    fn turn(&mut self, customer: bool, text: &str) {
        let turn = Turn { customer, text: text.into(), place: self.places, words: OnceLock::new() };
        self.turns.push(turn);
    }

    /// What is known of the tool of this name; the same tools are called again and again.
    fn tool(&mut self, name: &str) -> Arc<Tool> {
        if let Some(known) = self.tools.get(name) {
            return Arc::clone(known);
        }
        let tool = Arc::new(Tool::new(name));
        self.tools.insert(name.into(), Arc::clone(&tool));
        tool
    }

    fn call(
        &mut self,
        id: &str,
        name: &str,
        arguments: &str,
        result: Option<&str>,
        as_of: Option<Timestamp>,
    ) {
        let index = self.calls.len() as u32;
        if index == 0 {
            let seed = Mixed::seeded(id);
            self.by_name = Postings::seeded(seed);
            self.by_id = HashMap::with_capacity_and_hasher(self.calls.capacity(), seed);
            self.keys = Keys::seeded(seed);
        }
        let tool = self.tool(name);
        let argument_limits = Limits { nodes: 2_000, ..Limits::DEFAULT };
        let room = &mut self.reading;
        let arguments = read::read_in(room, arguments, &mut self.keys, argument_limits);
        let document = read::read_in(room, result.unwrap_or(""), &mut self.keys, Limits::DEFAULT);
        let records = records::identify(&document, &arguments, &tool, &self.keys, &mut self.finding);
        let ended = ended(&document, result, &self.keys);
        for name in records.own_names() {
            self.by_name.add(name.hash, index, name.record);
        }
        let before = self.by_id.insert(fold::hash(id), index);
        self.calls.push(CallSeen {
            id: id.into(),
            before,
            as_of,
            ended,
            place: self.places,
            tool,
            arguments,
            result: document,
            records,
        });
    }
}

/// How a call went.
fn ended(document: &Document, result: Option<&str>, keys: &Keys) -> Ended {
    let Some(text) = result else { return Ended::NoResult };
    let text = text.trim();
    if says_error(text) {
        return Ended::Error;
    }
    let core = records::core(document, keys);
    let empty = match document.node(core).kind {
        Kind::Object | Kind::Array => document.node(core).end == core + 1,
        Kind::Region => {
            document.node(core).end == core + 1 || {
                let only = core + 1;
                document.node(only).end == document.node(core).end
                    && match document.node(only).kind {
                        Kind::Null => true,
                        Kind::Object | Kind::Array => document.node(only).end == only + 1,
                        _ => false,
                    }
            }
        }
        _ => false,
    };
    if text.is_empty() || empty {
        return Ended::Empty;
    }
    let says_so = |index: u32| {
        let node = document.node(index);
        let key = &keys[node.key];
        if !key.outcome {
            return false;
        }
        match key.words().text.as_str() {
            "error" | "errors" | "exception" => {
                node.kind != Kind::Null
                    && node.len > 0
                    && !matches!(document.raw(index), "[]" | "{}" | "false")
            }
            "iserror" => matches!(document.raw(index), "true" | "True"),
            "success" | "ok" => matches!(document.raw(index), "false" | "False"),
            "status" => matches!(document.raw(index), "error" | "failed" | "failure"),
            _ => false,
        }
    };
    // The result proper, and what is wrapped around it.
    let error = [core, 0, 1]
        .into_iter()
        .filter(|top| (*top as usize) < document.nodes.len())
        .any(|top| document.children(top).take(32).any(says_so));
    if error { Ended::Error } else { Ended::Ok }
}

fn says_error(text: &str) -> bool {
    let begins = |start: &str| {
        text.as_bytes().get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start.as_bytes()))
    };
    ["error:", "error ", "err:", "exception", "traceback", "failed:"].into_iter().any(begins)
        || text.eq_ignore_ascii_case("error")
}

#[cfg(test)]
mod tests;
