//! What waits of a streamed Chat Completions reply.
//!
//! A call that waits is written again, when it may go on, into the chunk that
//! opened it, whole; its later chunks leave. So the client gets the upstream's
//! own chunk with other arguments in it. Calls that need not wait pass; where
//! they stood behind one that does, they move up in the numbering, since
//! clients put fragments together by index and expect the first one first.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::chat_document::{Change, Edit, Edited, Place, calls, changed, edit, first_said};
use super::object::{member, with_member, without_member};
use super::reply_parts::{summed, usage_of};
use super::sse::{Event, with_data};
use super::waiting::Earlier;
use crate::engine::reply::{Fate, Reply, Seen};

/// Side fields of a message that hold its hidden reasoning; some providers want them back verbatim.
const REASONING: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_details"];
/// Bytes of hidden reasoning that are kept of one reply.
const REASONING_CAP: usize = 256 << 10;

/// The events that wait.
#[derive(Debug)]
pub(super) struct Waiting {
    earlier: Earlier,
    queue: Vec<Entry>,
    /// Bytes in the queue.
    size: usize,
    /// The calls that wait.
    held: BTreeSet<usize>,
    /// The index under which each call goes on that has begun to: they count up in the order of going.
    numbers: BTreeMap<usize, usize>,
    /// Whether anything of this reply has gone on, and whether text has.
    began: bool,
    spoke: bool,
    /// The last `usage` of this reply.
    usage: Option<String>,
    /// Side fields of the message, by name.
    reasoning: BTreeMap<&'static str, String>,
    reasoning_size: usize,
}

/// An event that waits, and the call of each of its fragments.
#[derive(Debug)]
struct Entry {
    event: Event,
    fragments: Vec<usize>,
}

impl Waiting {
    pub(super) fn new(earlier: Earlier) -> Waiting {
        Waiting {
            earlier,
            queue: Vec::new(),
            size: 0,
            held: BTreeSet::new(),
            numbers: BTreeMap::new(),
            began: false,
            spoke: false,
            usage: None,
            reasoning: BTreeMap::new(),
            reasoning_size: 0,
        }
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn has_passed(&self, call: usize) -> bool {
        self.numbers.contains_key(&call)
    }

    pub(super) fn holds_calls(&self) -> bool {
        self.queue.iter().any(|entry| entry.fragments.iter().any(|call| self.held.contains(call)))
    }

    pub(super) fn take(
        &mut self,
        event: Event,
        seen: &[Seen],
        holds: impl Fn(usize) -> bool,
        ending: bool,
    ) -> Option<Bytes> {
        let fragments: Vec<usize> = seen
            .iter()
            .filter_map(|seen| match seen {
                Seen::CallOpened(call) | Seen::CallFragment(call) => Some(*call),
                _ => None,
            })
            .collect();
        for &call in &fragments {
            if holds(call) {
                self.held.insert(call)
            } else {
                self.held.remove(&call)
            };
        }
        self.note(&event, seen);
        if ending {
            self.push(event, fragments);
            return None;
        }
        if !fragments.iter().any(|call| self.held.contains(call)) {
            return self.pass(&event, &fragments, seen.contains(&Seen::Text));
        }
        self.split(&event, &fragments, seen.contains(&Seen::Text))
    }

    pub(super) fn release(&mut self, reply: &Reply, fate: impl Fn(usize) -> Fate) -> Vec<Bytes> {
        let fates: BTreeMap<usize, Fate> = self.held.iter().map(|&call| (call, fate(call))).collect();
        let mut gone = BTreeSet::new();
        let mut out = Vec::new();
        for Entry { event, fragments } in std::mem::take(&mut self.queue) {
            let changes = fragments.iter().map(|call| match fates.get(call) {
                Some(Fate::Drop) => Change::Cut,
                None | Some(Fate::Whole) => Change::Keep(self.place(*call)),
                Some(Fate::As { .. }) if !gone.insert(*call) => Change::Trim(self.place(*call)),
                Some(Fate::As { name, arguments }) => {
                    let id = reply.calls.get(*call).map_or("", |call| call.id.as_str());
                    Change::As { id, name, arguments, place: self.place(*call) }
                }
            });
            let changes: Vec<Change<'_>> = changes.collect();
            out.extend(self.edited(&event, &changes));
        }
        self.size = 0;
        out
    }

    pub(super) fn free(&mut self, call: usize) -> Vec<Bytes> {
        self.held.remove(&call);
        let mut out = Vec::new();
        for Entry { event, fragments } in std::mem::take(&mut self.queue) {
            if !fragments.contains(&call) {
                self.queue.push(Entry { event, fragments });
                continue;
            }
            self.size -= event.raw.len();
            let (own, others): (Vec<usize>, Vec<usize>) = fragments.iter().partition(|other| **other == call);
            out.extend(
                part(&event, &fragments, |other| other == call)
                    .and_then(|part| self.pass(&part, &own, false)),
            );
            if let Some(rest) = part(&event, &fragments, |other| other != call).filter(|_| !others.is_empty())
            {
                self.push(rest, others);
            }
        }
        out
    }

    pub(super) fn earlier(&self, reply: &Reply) -> Earlier {
        let before = &self.earlier;
        let usage = match (&before.usage, &self.usage) {
            (Some(first), Some(second)) => summed(first, second),
            (first, second) => second.clone().or_else(|| first.clone()),
        };
        let fresh = before.id.is_empty() && self.began;
        Earlier {
            id: if fresh { reply.id.clone() } else { before.id.clone() },
            began: before.began || self.began,
            spoke: before.spoke || self.spoke,
            usage,
            ..Earlier::default()
        }
    }

    pub(super) fn message(&self, reply: &Reply) -> Option<String> {
        let mut list = String::from("[");
        for (at, call) in reply.calls.iter().enumerate() {
            let element = self.opening(at)?;
            let named = Change::As {
                id: &call.id,
                name: &call.name,
                arguments: &call.arguments,
                place: Place::default(),
            };
            let (bare, _) = without_member(&element, "index")?;
            let whole = changed(&bare, named).ok()??;
            if call.id.is_empty() {
                return None;
            }
            list.push_str(if at == 0 { "" } else { "," });
            list.push_str(&whole);
        }
        list.push(']');
        let content = serde_json::Value::from(reply.text.as_str()).to_string();
        let content = if reply.text.is_empty() { "null" } else { &content };
        let mut message = format!(r#"{{"role":"assistant","content":{content},"tool_calls":{list}}}"#);
        for (name, value) in &self.reasoning {
            let value = if value.starts_with('[') {
                value.clone()
            } else {
                serde_json::Value::from(value.as_str()).to_string()
            };
            message = with_member(&message, name, &value)?;
        }
        Some(message)
    }

    /// The element that opened a call, if it waits and is of the usual form.
    fn opening(&self, call: usize) -> Option<String> {
        let (entry, at) = self.queue.iter().find_map(|entry| {
            entry.fragments.iter().position(|other| *other == call).map(|at| (entry, at))
        })?;
        let (element, legacy) = calls(text(&entry.event)?)?.into_iter().nth(at)?;
        (!legacy).then(|| element.to_owned())
    }

    fn note(&mut self, event: &Event, seen: &[Seen]) {
        let Some(document) = text(event) else { return };
        if seen.contains(&Seen::Usage) {
            self.usage = usage_of(document).map(str::to_owned).or(self.usage.take());
        }
        if memchr::memmem::find(document.as_bytes(), b"reasoning").is_none() {
            return;
        }
        let Some(said) = first_said(document) else { return };
        for name in REASONING {
            let Some(value) = member(said, name) else { continue };
            self.reasoning_size += value.len();
            if self.reasoning_size > REASONING_CAP {
                return;
            }
            let known = self.reasoning.entry(name).or_default();
            if let Ok(text) = serde_json::from_str::<String>(value) {
                known.push_str(&text);
            } else if let Some(inside) = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                let before = known
                    .strip_suffix(']')
                    .filter(|before| before.len() > 1)
                    .map(|before| format!("{before},"));
                *known = format!("{}{inside}]", before.unwrap_or_else(|| "[".to_owned()));
            }
        }
        self.reasoning.retain(|_, value| !value.is_empty());
    }

    /// The event on its way, with what has to change in it.
    fn pass(&mut self, event: &Event, fragments: &[usize], text: bool) -> Option<Bytes> {
        let changes: Vec<Change<'_>> = fragments.iter().map(|call| Change::Keep(self.place(*call))).collect();
        let out = self.edited(event, &changes)?;
        self.began |= event.data.is_some();
        self.spoke |= text && !self.earlier.spoke;
        Some(out)
    }

    /// Lets go what need not wait of an event, and keeps the rest.
    fn split(&mut self, event: &Event, fragments: &[usize], text: bool) -> Option<Bytes> {
        let (held, free): (Vec<usize>, Vec<usize>) =
            fragments.iter().partition(|call| self.held.contains(call));
        match part(event, fragments, |call| !held.contains(&call)) {
            None => {
                self.push(event.clone(), fragments.to_vec());
                None
            }
            Some(rest) => {
                if let Some(part) = part_of_calls(event, fragments, &held) {
                    self.push(part, held);
                }
                self.pass(&rest, &free, text)
            }
        }
    }

    fn edited(&self, event: &Event, calls: &[Change<'_>]) -> Option<Bytes> {
        let fresh = self.earlier == Earlier::default();
        if fresh && calls.iter().all(Change::is_none) || text(event).is_none() {
            return Some(event.raw.clone());
        }
        let earlier = (!fresh).then_some(&self.earlier);
        let Some(edited) = edit(text(event)?, &Edit { calls, only_calls: false, earlier }) else {
            // Of a shape that cannot be edited: it goes on only if nothing had to leave it.
            return calls.is_empty().then(|| event.raw.clone());
        };
        match edited {
            Edited::Nothing => None,
            Edited::Document(document) => Some(with_data(event, &document)),
        }
    }

    /// Where a call stands among those that go on.
    fn place(&mut self, call: usize) -> Place {
        let next = self.numbers.len();
        Place { from: call, to: *self.numbers.entry(call).or_insert(next) }
    }

    fn push(&mut self, event: Event, fragments: Vec<usize>) {
        self.size += event.raw.len();
        self.queue.push(Entry { event, fragments });
    }
}

/// A reply that came as one body, with its calls as their fates say.
pub(super) fn edit_whole(
    body: &str,
    reply: &Reply,
    earlier: &Earlier,
    fate: impl Fn(usize) -> Fate,
) -> Option<String> {
    let fates: Vec<Fate> = (0..reply.calls.len()).map(fate).collect();
    let changes = reply.calls.iter().zip(&fates).map(|(call, fate)| match fate {
        Fate::Whole => kept(true),
        Fate::Drop => Change::Cut,
        Fate::As { name, arguments } => Change::As { id: &call.id, name, arguments, place: Place::default() },
    });
    // The client has been given nothing yet: the reply keeps its own id and text.
    let earlier = Earlier { usage: earlier.usage.clone(), ..Earlier::default() };
    let calls: Vec<Change<'_>> = changes.collect();
    if calls.iter().all(Change::is_none) && earlier.usage.is_none() {
        return None;
    }
    match edit(body, &Edit { calls: &calls, only_calls: false, earlier: Some(&earlier) })? {
        Edited::Document(document) => Some(document),
        Edited::Nothing => None,
    }
}

/// The event with the fragments of some calls alone; none where nothing is left of it.
fn part(event: &Event, fragments: &[usize], stays: impl Fn(usize) -> bool) -> Option<Event> {
    let changes: Vec<Change<'_>> = fragments.iter().map(|call| kept(stays(*call))).collect();
    document(event, &Edit { calls: &changes, ..Edit::default() })
}

/// The event with nothing in it but the fragments of some calls.
fn part_of_calls(event: &Event, fragments: &[usize], held: &[usize]) -> Option<Event> {
    let changes: Vec<Change<'_>> = fragments.iter().map(|call| kept(held.contains(call))).collect();
    document(event, &Edit { calls: &changes, only_calls: true, earlier: None })
}

fn kept(stays: bool) -> Change<'static> {
    if stays { Change::Keep(Place::default()) } else { Change::Cut }
}

fn document(event: &Event, change: &Edit<'_>) -> Option<Event> {
    match edit(text(event)?, change)? {
        Edited::Nothing => None,
        Edited::Document(document) => {
            let raw = with_data(event, &document);
            Some(Event { raw, name: event.name.clone(), data: Some(Bytes::from(document)) })
        }
    }
}

/// The document in an event; none where it holds none.
fn text(event: &Event) -> Option<&str> {
    std::str::from_utf8(event.data.as_ref()?).ok().map(str::trim).filter(|text| text.starts_with('{'))
}
