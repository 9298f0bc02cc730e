//! What waits of a streamed Responses reply.
//!
//! The events of a call that waits are written again, when it may go on, with
//! other arguments in each of them and in the whole reply at the end. Events
//! and items that go on are numbered anew where others wait or leave, since
//! clients put items together by their place. Hidden reasoning that nobody is
//! shown waits for what follows from it: without that it must not stand in a list.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};

use super::object::{has_member, with_member};
use super::reply_parts::{summed, usage_of};
use super::responses_document::{
    Edit, Standing, Top, Whose, edit_response, item_as, kind_of, leaving, output, quoted, says_arguments,
    top, whose,
};
use super::responses_item::EntryKind;
use super::sse::{Event, with_data};
use super::waiting::Earlier;
use crate::engine::reply::{Fate, Reply, Seen};

const ADDED: &str = "response.output_item.added";
const DONE: &str = "response.output_item.done";
/// Bytes of hidden reasoning that wait; more of it goes on.
const THOUGHT_CAP: usize = 256 << 10;

/// The events that wait.
#[derive(Debug)]
pub(super) struct Waiting {
    earlier: Earlier,
    queue: Vec<Entry>,
    /// Bytes in the queue, hidden reasoning apart.
    size: usize,
    /// Bytes of hidden reasoning in the queue; at most `THOUGHT_CAP`.
    thought_size: usize,
    /// The calls that wait, and those of which something has gone on.
    held: BTreeSet<usize>,
    passed: BTreeSet<usize>,
    /// The call at each place of upstream's output.
    calls: BTreeMap<u64, usize>,
    numbers: Numbers,
    /// Whether anything of this reply has gone on, and whether text has.
    began: bool,
    spoke: bool,
    /// The last `usage` of this reply.
    usage: Option<String>,
}

/// How events and items are numbered on their way to the client.
#[derive(Debug, Default)]
struct Numbers {
    /// Something has waited or left: from here on they are counted, not repeated.
    counts: bool,
    /// The number of the next event, once one has gone on.
    sequence: Option<u64>,
    /// The place of the next item, once one has gone on.
    place: Option<u64>,
    /// The place in the client's output by the place in upstream's.
    places: BTreeMap<u64, u64>,
}

/// An event that waits.
#[derive(Debug)]
struct Entry {
    event: Event,
    of: Of,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// This call.
    Call(usize),
    /// A call that was not opened.
    Stray,
    /// Hidden reasoning that waits, at this place of upstream's output.
    Thought(Option<u64>),
    /// Hidden reasoning that has gone on stood here: what comes behind follows from it, not from what waits before.
    Gone,
    /// Something said that the client is not to have.
    Muted,
    /// The beginning of a reply, where the client has had one.
    Beginning,
    Other,
}

impl Of {
    /// Whether it waits for what follows from it.
    fn waits_bound(self) -> bool {
        matches!(self, Of::Thought(_))
    }
}

impl Waiting {
    pub(super) fn new(earlier: Earlier) -> Waiting {
        let goes_on = earlier != Earlier::default();
        let numbers = Numbers {
            counts: goes_on,
            sequence: goes_on.then_some(earlier.events),
            place: goes_on.then_some(earlier.places),
            places: BTreeMap::new(),
        };
        Waiting {
            earlier,
            queue: Vec::new(),
            size: 0,
            thought_size: 0,
            held: BTreeSet::new(),
            passed: BTreeSet::new(),
            calls: BTreeMap::new(),
            numbers,
            began: false,
            spoke: false,
            usage: None,
        }
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn has_passed(&self, call: usize) -> bool {
        self.passed.contains(&call)
    }

    pub(super) fn holds_calls(&self) -> bool {
        self.queue.iter().any(|entry| matches!(entry.of, Of::Call(_) | Of::Stray))
    }

    pub(super) fn take(
        &mut self,
        event: Event,
        seen: &[Seen],
        holds: impl Fn(usize) -> bool,
        ending: bool,
    ) -> Option<Bytes> {
        let copy = event.clone();
        let Some(top) = named(&copy) else {
            // A comment, or what no reader can make anything of.
            if ending {
                self.queue_up(event, Of::Other);
                return None;
            }
            return Some(event.raw);
        };
        if ending {
            if seen.contains(&Seen::Usage) {
                self.usage = top.response.and_then(usage_of).map(str::to_owned).or(self.usage.take());
            }
            // What should have come before the end is still no concern of the client's.
            let of = if top.response.is_some() { Of::Other } else { self.of(&top, seen) };
            self.queue_up(event, of);
            return None;
        }
        let of = self.of(&top, seen);
        let mut out = Vec::new();
        match of {
            Of::Call(call) => {
                self.adopt(call, top.index);
                if holds(call) {
                    self.held.insert(call);
                    self.push(event, of, &top);
                    return None;
                }
                self.held.remove(&call);
                if !self.has_passed(call) {
                    out.extend(self.free(call));
                }
            }
            Of::Thought(_) if self.thought_size + event.raw.len() <= THOUGHT_CAP => {
                self.push(event, of, &top);
                return None;
            }
            Of::Stray => {
                self.push(event, of, &top);
                return None;
            }
            Of::Muted | Of::Beginning => {
                self.numbers.count(&top);
                if of == Of::Muted && self.queue.last().is_some_and(|last| last.of.waits_bound()) {
                    self.queue.push(Entry { event: Event::default(), of });
                }
                return None;
            }
            Of::Thought(_) => {
                // More than may wait: with the reasoning that stands right before it.
                let before = Self::opened(self.queue.iter()).into_iter().rev();
                let run: Vec<Of> = before.take_while(|of| of.waits_bound()).collect();
                out.extend(self.let_go(|other| run.contains(&other)));
                self.mark_gone();
            }
            Of::Other if self.opens(&top) => {
                let bound = self.bound(self.queue.len());
                out.extend(self.let_go(|other| bound.contains(&other)));
            }
            Of::Gone | Of::Other => {}
        }
        self.spoke |= seen.contains(&Seen::Text);
        out.push(self.pass(&event, of, &top, None));
        joined(out)
    }

    pub(super) fn release(&mut self, reply: &Reply, fate: impl Fn(usize) -> Fate) -> Vec<Bytes> {
        let odd = self.odd(&fate);
        let calls = reply.calls.len().max(self.held.last().map_or(0, |last| last + 1));
        let fates: Vec<Fate> = (0..calls)
            .map(|call| match fate(call) {
                _ if self.passed.contains(&call) => Fate::Whole,
                Fate::As { .. } if odd.contains(&call) => Fate::Drop,
                fate => fate,
            })
            .collect();
        let fate = |call: usize| fates.get(call).unwrap_or(&Fate::Whole);
        let changed = fates.iter().any(|fate| *fate != Fate::Whole);
        let leaves = self.leaving(|call| *fate(call) == Fate::Drop);
        let queue = std::mem::take(&mut self.queue);
        (self.size, self.thought_size) = (0, 0);
        let in_parts: BTreeSet<usize> = queue.iter().filter_map(Entry::part_of).collect();
        let (mut out, mut given) = (Vec::new(), BTreeSet::new());
        for (Entry { event, of }, leaves) in queue.into_iter().zip(leaves) {
            let goes = match of {
                Of::Call(call) => *fate(call) != Fate::Drop,
                Of::Stray => !changed,
                Of::Gone | Of::Muted | Of::Beginning => false,
                Of::Thought(_) | Of::Other => true,
            };
            if leaves || !goes {
                self.numbers.count(&named(&event).unwrap_or_default());
                continue;
            }
            let Some((text, top)) = text(&event).zip(named(&event)) else {
                out.push(event.raw);
                continue;
            };
            let new = match of {
                Of::Call(call) => match fate(call) {
                    Fate::As { name, arguments } => {
                        let is_first = || top.is_part() && given.insert(call);
                        let first = in_parts.contains(&call).then(is_first);
                        rewritten(text, &top, first, name, arguments)
                    }
                    Fate::Whole | Fate::Drop => Some(text.to_owned()),
                },
                _ if top.response.is_some() => Some(self.ended(text, &top, reply, |call| fate(call).clone())),
                _ => Some(text.to_owned()),
            };
            match new {
                Some(new) => out.push(self.pass(&event, of, &top, Some(new))),
                None => self.numbers.count(&top),
            }
        }
        out
    }

    pub(super) fn free(&mut self, call: usize) -> Vec<Bytes> {
        self.held.remove(&call);
        if self.queue.iter().any(|entry| entry.of == Of::Other) {
            // Nothing goes on ahead of a reply's end any more.
            return Vec::new();
        }
        let own = self.queue.iter().position(|entry| entry.of == Of::Call(call));
        let bound = self.bound(own.unwrap_or(self.queue.len()));
        self.let_go(|of| of == Of::Call(call) || bound.contains(&of))
    }

    pub(super) fn earlier(&self, reply: &Reply) -> Earlier {
        let before = &self.earlier;
        let usage = match (&before.usage, &self.usage) {
            (Some(first), Some(second)) => summed(first, second),
            (first, second) => second.clone().or_else(|| first.clone()),
        };
        let fresh = before.id.is_empty() && self.began;
        let mut items = before.items.clone();
        items.extend(self.whole().map(|response| self.gone(&response, reply)).unwrap_or_default());
        Earlier {
            id: if fresh { reply.id.clone() } else { before.id.clone() },
            began: before.began || self.began,
            spoke: before.spoke || self.spoke,
            usage,
            events: self.numbers.sequence.unwrap_or(before.events),
            places: self.numbers.place.unwrap_or(before.places),
            items,
        }
    }

    pub(super) fn message(&self, reply: &Reply) -> Option<String> {
        let has_all = |items: &[&str]| {
            let calls = whose(items, reply).into_iter().filter(|whose| *whose != Whose::Nobody);
            calls.count() == reply.calls.len()
        };
        let whole = self.whole();
        if let Some(items) = whole.as_deref().and_then(output).filter(|items| has_all(items)) {
            return Some(format!("[{}]", items.join(",")));
        }
        // The end does not repeat the output: all of it is known only where nothing of it has gone on.
        let closed =
            self.queue.iter().filter_map(|entry| named(&entry.event).filter(|top| top.kind == DONE)?.item);
        let items: Vec<&str> = closed.collect();
        (reply.text.is_empty() && has_all(&items)).then(|| format!("[{}]", items.join(",")))
    }

    /// What an event is about.
    fn of(&self, top: &Top<'_>, seen: &[Seen]) -> Of {
        for seen in seen {
            match *seen {
                Seen::CallOpened(call) | Seen::CallFragment(call) => return Of::Call(call),
                Seen::Stray => return Of::Stray,
                _ => {}
            }
        }
        let kind = top.kind.as_ref();
        let is_said = ["response.output_text.", "response.content_part.", "response.refusal."]
            .iter()
            .any(|beginning| kind.starts_with(beginning));
        match kind {
            "response.created" | "response.queued" | "response.in_progress" if self.earlier.began => {
                Of::Beginning
            }
            ADDED | DONE if top.item_kind() == Some(EntryKind::Reasoning) => {
                if kind == ADDED || self.thinks(top.index) { Of::Thought(top.index) } else { Of::Other }
            }
            ADDED | DONE if top.item_kind() == Some(EntryKind::Message) => {
                if self.earlier.spoke {
                    Of::Muted
                } else {
                    Of::Other
                }
            }
            _ if is_said && self.earlier.spoke => Of::Muted,
            _ if is_said || kind.starts_with("response.reasoning") => Of::Other,
            // Of an unknown type: about the call that stands in this place, if one does.
            _ => top.index.and_then(|place| self.calls.get(&place)).map_or(Of::Other, |call| Of::Call(*call)),
        }
    }

    /// Whether the reasoning at this place waits, or nothing of it has come yet.
    fn thinks(&self, place: Option<u64>) -> bool {
        place.is_some_and(|place| !self.numbers.places.contains_key(&place))
    }

    /// Whether an event begins an item that the client has nothing of.
    fn opens(&self, top: &Top<'_>) -> bool {
        top.index.map_or(top.item.is_some(), |place| !self.numbers.places.contains_key(&place))
    }

    /// The items of which these entries of the queue are, in the order in which they were opened.
    fn opened<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<Of> {
        let mut items: Vec<Of> = Vec::new();
        for entry in entries {
            if matches!(entry.of, Of::Gone | Of::Muted) || !items.contains(&entry.of) {
                items.push(entry.of);
            }
        }
        items
    }

    /// The hidden reasoning that waits for what stands behind these first entries of the queue.
    fn bound(&self, first: usize) -> Vec<Of> {
        let before = Self::opened(self.queue.iter().take(first)).into_iter().rev();
        let own = before.skip_while(|of| !of.waits_bound() && *of != Of::Gone);
        own.take_while(|of| of.waits_bound()).collect()
    }

    /// What of the queue leaves, if these calls do.
    fn leaving(&self, drops: impl Fn(usize) -> bool) -> Vec<bool> {
        // What ends a reply comes last, and nothing follows from anything there.
        let items = Self::opened(self.queue.iter().take_while(|entry| entry.of != Of::Other));
        let standing = items.iter().map(|of| match of {
            Of::Thought(_) | Of::Gone => Standing::Thought,
            Of::Call(call) if drops(*call) => Standing::Leaves,
            Of::Muted => Standing::Leaves,
            _ => Standing::Stays,
        });
        let leaves = leaving(&standing.collect::<Vec<_>>());
        let of = |entry: &Entry| items.iter().position(|of| *of == entry.of).is_some_and(|at| leaves[at]);
        self.queue.iter().map(of).collect()
    }

    /// The calls that wait and cannot become what they should.
    fn odd(&self, fate: impl Fn(usize) -> Fate) -> BTreeSet<usize> {
        let is_odd = |Entry { event, of }: &Entry| {
            let Of::Call(call) = *of else { return None };
            let Fate::As { name, arguments } = fate(call) else { return None };
            item_as(named(event)?.item?, &name, &arguments).is_none().then_some(call)
        };
        self.queue.iter().filter_map(is_odd).collect()
    }

    /// The last event, with the reply in it as its calls' fates say.
    fn ended(&self, document: &str, top: &Top<'_>, reply: &Reply, fate: impl Fn(usize) -> Fate) -> String {
        let edit = Edit {
            fate,
            muted: self.earlier.spoke,
            before: &self.earlier.items,
            usage: self.earlier.usage.as_deref(),
        };
        let place =
            |at: usize| self.numbers.places.get(&(at as u64)).copied().filter(|_| self.numbers.counts);
        let response = top.response.unwrap_or_default();
        let new = edit_response(response, reply, &edit, place).filter(|new| new != response);
        // Of a shape that cannot be edited: it holds no list that a call could stand in.
        new.and_then(|new| with_member(document, "response", &new)).unwrap_or_else(|| document.to_owned())
    }

    /// The reply as its last event holds it, if that waits.
    fn whole(&self) -> Option<String> {
        let mut last = self.queue.iter().rev().filter(|entry| entry.of == Of::Other);
        last.find_map(|entry| named(&entry.event)?.response.map(str::to_owned))
    }

    /// The items of this reply that the client has, and that can stand in a list.
    fn gone(&self, response: &str, reply: &Reply) -> Vec<String> {
        let Some(items) = output(response) else { return Vec::new() };
        let standing: Vec<Standing> = whose(&items, reply)
            .into_iter()
            .zip(&items)
            .enumerate()
            .map(|(at, (whose, item))| {
                let gone = match whose {
                    Whose::Call(call) => self.passed.contains(&call),
                    Whose::Twin(_) => false,
                    Whose::Nobody => self.numbers.places.contains_key(&(at as u64)),
                };
                match kind_of(item) {
                    _ if !gone => Standing::Leaves,
                    Some(EntryKind::Message) if self.earlier.spoke => Standing::Leaves,
                    Some(EntryKind::Reasoning) => Standing::Thought,
                    _ => Standing::Stays,
                }
            })
            .collect();
        let leaves = leaving(&standing);
        items.iter().zip(leaves).filter(|(_, leaves)| !leaves).map(|(item, _)| (*item).to_owned()).collect()
    }

    /// Lets go, as they came, the entries that are about this.
    fn let_go(&mut self, goes: impl Fn(Of) -> bool) -> Vec<Bytes> {
        let mut out = Vec::new();
        for Entry { event, of } in std::mem::take(&mut self.queue) {
            match named(&event).filter(|_| goes(of)) {
                Some(top) => {
                    let waited = if of.waits_bound() { &mut self.thought_size } else { &mut self.size };
                    *waited -= event.raw.len();
                    out.push(self.pass(&event, of, &top, None));
                    if of.waits_bound() {
                        self.mark_gone();
                    }
                }
                None => self.queue.push(Entry { event, of }),
            }
        }
        out
    }

    /// Marks the end of the queue as the place of reasoning that has gone on, where something waits before it.
    fn mark_gone(&mut self) {
        if self.queue.last().is_some_and(|last| last.of != Of::Gone) {
            self.queue.push(Entry { event: Event::default(), of: Of::Gone });
        }
    }

    /// The call stands at this place: what came for the place before is the call's.
    fn adopt(&mut self, call: usize, place: Option<u64>) {
        let Some(place) = place else { return };
        self.calls.insert(place, call);
        for entry in self.queue.iter_mut().filter(|entry| entry.of == Of::Stray) {
            if named(&entry.event).is_some_and(|top| top.index == Some(place)) {
                entry.of = Of::Call(call);
            }
        }
    }

    /// The event on its way, under its number, with this document instead of its own.
    fn pass(&mut self, event: &Event, of: Of, top: &Top<'_>, document: Option<String>) -> Bytes {
        if let Of::Call(call) = of {
            self.passed.insert(call);
        }
        self.began = true;
        let old = text(event).unwrap_or_default();
        let mut new = document.map_or(Cow::Borrowed(old), Cow::Owned);
        let sequence = top.sequence.map(|number| ("sequence_number", number, self.numbers.event(number)));
        let place = top.index.map(|place| ("output_index", place, self.numbers.item(place)));
        for (name, _, to) in sequence.into_iter().chain(place).filter(|(_, from, to)| from != to) {
            new = with_member(&new, name, &to.to_string()).map_or(new, Cow::Owned);
        }
        if new == old { event.raw.clone() } else { with_data(event, &new) }
    }

    /// Lets an event wait that others will pass.
    fn push(&mut self, event: Event, of: Of, top: &Top<'_>) {
        self.numbers.count(top);
        self.queue_up(event, of);
    }

    fn queue_up(&mut self, event: Event, of: Of) {
        let waiting = if of.waits_bound() { &mut self.thought_size } else { &mut self.size };
        *waiting += event.raw.len();
        self.queue.push(Entry { event, of });
    }
}

impl Numbers {
    /// From here on numbers are counted: this event waits, or leaves.
    fn count(&mut self, top: &Top<'_>) {
        if !self.counts {
            self.counts = true;
            self.sequence = self.sequence.or(top.sequence);
            self.place = self.place.or(top.index);
        }
    }

    /// The number of an event that goes on, by the one that it had.
    fn event(&mut self, number: u64) -> u64 {
        let to = self.sequence.filter(|_| self.counts).unwrap_or(number);
        self.sequence = Some(to.saturating_add(1));
        to
    }

    /// The place of an item that goes on, by the one that it had.
    fn item(&mut self, place: u64) -> u64 {
        if let Some(known) = self.places.get(&place) {
            return *known;
        }
        let to = self.place.filter(|_| self.counts).unwrap_or(place);
        self.place = Some(self.place.unwrap_or(0).max(to.saturating_add(1)));
        self.places.insert(place, to);
        to
    }
}

impl Entry {
    /// The call that this is a part of the arguments of.
    fn part_of(&self) -> Option<usize> {
        let Of::Call(call) = self.of else { return None };
        named(&self.event)?.is_part().then_some(call)
    }
}

/// An event of a call that becomes another. `first`: its arguments come in parts, and whether this event is
/// the first part; none where they come whole. None where nothing is left to say.
fn rewritten(
    document: &str,
    top: &Top<'_>,
    first: Option<bool>,
    name: &str,
    arguments: &str,
) -> Option<String> {
    match top.kind.as_ref() {
        ADDED => {
            let item = top.item?;
            let begins_with = if says_arguments(item) && first.is_none() { arguments } else { "" };
            with_member(document, "item", &item_as(item, name, begins_with)?)
        }
        DONE => with_member(document, "item", &item_as(top.item?, name, arguments)?),
        _ if top.is_part() => {
            with_member(document, "delta", &quoted(arguments)).filter(|_| first == Some(true))
        }
        "response.function_call_arguments.done" => {
            let whole = with_member(document, "arguments", &quoted(arguments))?;
            if has_member(document, "name") {
                with_member(&whole, "name", &quoted(name))
            } else {
                Some(whole)
            }
        }
        "response.custom_tool_call_input.done" => with_member(document, "input", &quoted(arguments)),
        // Nobody knows what else of the call it says.
        _ => None,
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
    if fates.iter().all(|fate| *fate == Fate::Whole) && earlier.usage.is_none() {
        return None;
    }
    // The client has been given nothing yet: the reply keeps what it says.
    let fate = |call: usize| fates.get(call).cloned().unwrap_or(Fate::Whole);
    let edit = Edit { fate, muted: false, before: &[], usage: earlier.usage.as_deref() };
    edit_response(body, reply, &edit, |_| None)
}

/// What an event says at its top; none where it holds no document.
fn named(event: &Event) -> Option<Top<'_>> {
    let mut top = top(text(event)?)?;
    if top.kind.is_empty() {
        top.kind = String::from_utf8_lossy(&event.name);
    }
    Some(top)
}

/// The document in an event; none where it holds none.
fn text(event: &Event) -> Option<&str> {
    std::str::from_utf8(event.data.as_ref()?).ok().map(str::trim).filter(|text| text.starts_with('{'))
}

/// Chunks as one; none where there is none.
fn joined(mut chunks: Vec<Bytes>) -> Option<Bytes> {
    if chunks.len() < 2 {
        return chunks.pop();
    }
    let mut out = BytesMut::with_capacity(chunks.iter().map(Bytes::len).sum());
    for chunk in &chunks {
        out.extend_from_slice(chunk);
    }
    Some(out.freeze())
}

#[cfg(test)]
mod tests;
