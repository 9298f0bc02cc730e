//! Puts a streamed Responses reply together, event by event.
//!
//! An item is opened by one event, grows by others and is closed by one that
//! holds the whole of it; the last event holds the whole reply. A later word
//! on the same thing is the better one: encrypted reasoning may be unfinished
//! where the item opens. Servers that leave events out are read from those that come.

use std::borrow::Cow;

use super::Unreadable;
use super::json::Cursor;
use super::reply_parts::{error, error_field};
use super::responses_item::{Entry, EntryKind, entry};
use super::responses_reply::{self as whole, Object, object};
use super::sse::Event;
use crate::engine::event::{Code, Finding};
use crate::engine::reply::{Reply, ReplyCall, ReplyError, ReplyReasoning, Seen};

/// How many calls, and how many reasoning items, one reply may hold; more are left out.
const MAX_ITEMS: usize = 256;

/// Puts one reply together.
#[derive(Debug)]
pub(super) struct Assembler {
    reply: Reply,
    /// One for each of the reply's calls.
    open: Vec<Open>,
    /// The output that the last text belonged to.
    speaking: Option<u64>,
    /// Bytes that were kept; at most `limit`.
    size: usize,
    limit: usize,
    /// Something passed unread before the reply ended: a call may lack a part.
    gap: bool,
}

/// What is known of a call beside what it says.
#[derive(Debug)]
struct Open {
    /// Its place in the reply's output.
    index: Option<u64>,
    /// The id of its item.
    item: String,
    kind: EntryKind,
    /// The whole of it has come.
    done: bool,
    /// It stands in the reply's last event.
    confirmed: bool,
    /// A part of it was left out.
    cut: bool,
}

/// What an event says.
#[derive(Debug, Default)]
struct Said<'b> {
    kind: Cow<'b, str>,
    index: Option<u64>,
    item_id: Cow<'b, str>,
    delta: Cow<'b, str>,
    /// `arguments` or `input`: the whole of what the deltas brought.
    arguments: Option<Cow<'b, str>>,
    item: Option<Entry<'b>>,
    response: Option<Object<'b>>,
    error: Option<ReplyError>,
    flat: ReplyError,
}

impl Assembler {
    /// An assembler that keeps up to `limit` bytes of text and calls.
    pub(super) fn new(limit: usize) -> Self {
        Assembler { reply: Reply::default(), open: Vec::new(), speaking: None, size: 0, limit, gap: false }
    }

    /// The reply as far as it has come. A call is complete only once the reply has completed.
    pub(super) fn reply(&self) -> &Reply {
        &self.reply
    }

    /// Takes the next event and says what it holds; nothing where it adds nothing.
    pub(super) fn event(&mut self, event: &Event) -> Vec<Seen> {
        let Some(data) = event.data.as_ref().map(|data| data.trim_ascii()).filter(|data| !data.is_empty())
        else {
            return Vec::new();
        };
        // Not of this dialect, but some servers end every stream so.
        if data == b"[DONE]" {
            return vec![Seen::End];
        }
        let Some((text, said)) =
            std::str::from_utf8(data).ok().and_then(|text| Some((text, read(text).ok()?)))
        else {
            self.unread();
            return Vec::new();
        };
        let named = std::str::from_utf8(&event.name).unwrap_or_default();
        let kind = if said.kind.is_empty() { named } else { said.kind.as_ref() };
        let mut seen = Vec::new();
        match kind {
            "response.output_text.delta" => self.text(&said, &mut seen),
            "response.refusal.delta" => {
                self.keep(&said.delta, |reply| &mut reply.refusal);
                seen.push(Seen::Text);
            }
            "response.output_item.added" => seen.extend(self.item(&said, false)),
            "response.output_item.done" => seen.extend(self.item(&said, true)),
            "response.function_call_arguments.delta"
            | "response.function_call_arguments.done"
            | "response.custom_tool_call_input.delta"
            | "response.custom_tool_call_input.done" => seen.push(self.arguments(&said)),
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                self.end(text, said, &mut seen);
            }
            kind if kind == "error" || said.error.is_some() => {
                self.reply.error = Some(said.error.unwrap_or(said.flat));
                seen.push(Seen::Error);
            }
            _ => {
                if let Some(object) = &said.response {
                    self.keep_once(&object.id, |reply| &mut reply.id);
                    self.keep_once(&object.model, |reply| &mut reply.model);
                }
            }
        }
        seen
    }

    /// An event passed by unread. Until the reply has ended, it may have held a part of a call.
    pub(super) fn unread(&mut self) {
        self.gap |= !self.reply.ended;
        self.find(Code::ReplyUnreadable, "stream", "an event could not be read");
    }

    /// The stream is over, at its end or before.
    pub(super) fn finish(self) -> Reply {
        self.reply
    }

    fn text(&mut self, said: &Said<'_>, seen: &mut Vec<Seen>) {
        if said.delta.is_empty() {
            return;
        }
        if self.speaking != said.index && !self.reply.text.is_empty() {
            self.keep("\n", |reply| &mut reply.text);
        }
        self.speaking = said.index;
        self.keep(&said.delta, |reply| &mut reply.text);
        seen.push(Seen::Text);
    }

    /// An item opens, or has come whole.
    fn item(&mut self, said: &Said<'_>, done: bool) -> Option<Seen> {
        let entry = said.item.as_ref()?;
        match entry.kind {
            EntryKind::Call | EntryKind::FreeCall => self.call(entry, said.index, done),
            EntryKind::Reasoning if done => {
                self.reasoning(entry);
                None
            }
            _ => None,
        }
    }

    fn call(&mut self, entry: &Entry<'_>, index: Option<u64>, done: bool) -> Option<Seen> {
        let call = whole::call(entry)?;
        let place = self.place(index, &entry.id, &call.id);
        let at = match place {
            Some(at) => at,
            None if self.open.len() == MAX_ITEMS => {
                self.find(Code::LimitReached, "output", "more calls than are read");
                return None;
            }
            None => {
                self.reply.calls.push(ReplyCall::default());
                let item = entry.id.to_string();
                self.open.push(Open {
                    index,
                    item,
                    kind: entry.kind,
                    done: false,
                    confirmed: false,
                    cut: false,
                });
                self.open.len() - 1
            }
        };
        // An item that opens may come with its first arguments; none of it is lost, none doubled.
        if done || place.is_none() {
            self.replace(at, call);
        }
        self.open[at].done |= done && whole::is_done(entry);
        Some(if place.is_none() { Seen::CallOpened(at) } else { Seen::CallFragment(at) })
    }

    /// More of a call's arguments, or all of them.
    fn arguments(&mut self, said: &Said<'_>) -> Seen {
        let Some(at) = self.place(said.index, &said.item_id, "") else {
            // The item that it belongs to may still come whole.
            self.find(Code::FragmentUnplaced, "output", "a fragment belongs to no call that was opened");
            return Seen::Stray;
        };
        match &said.arguments {
            Some(all) => {
                let arguments = all.to_string();
                self.replace(at, ReplyCall { arguments, ..self.reply.calls[at].clone() });
            }
            None if self.open[at].done => {}
            None => self.grow(at, &said.delta),
        }
        Seen::CallFragment(at)
    }

    /// Which call is meant: by its item's id, else by its place in the output. Some servers make up a new item
    /// id in every event, some count no places, and call ids repeat: what contradicts is another call.
    fn place(&self, index: Option<u64>, item: &str, call: &str) -> Option<usize> {
        let same = |known: &str, said: &str| !said.is_empty() && known == said;
        let fits = |known: &str, said: &str| known.is_empty() || said.is_empty() || known == said;
        let calls = || self.open.iter().zip(&self.reply.calls);
        let by_item = || calls().rposition(|(open, _)| same(&open.item, item));
        let by_index = || {
            calls().rposition(|(open, known)| {
                open.index.is_some() && open.index == index && fits(&known.id, call)
            })
        };
        let by_call = || calls().rposition(|(open, known)| same(&known.id, call) && fits(&open.item, item));
        by_item().or_else(by_index).or_else(by_call)
    }

    fn reasoning(&mut self, entry: &Entry<'_>) {
        let ReplyReasoning { id, encrypted } = whole::reasoning(entry);
        let known = self.reply.reasoning.iter().position(|known| !id.is_empty() && known.id == id);
        if known.is_some() || self.reply.reasoning.len() == MAX_ITEMS {
            return;
        }
        if self.size + id.len() + encrypted.len() > self.limit {
            self.find(Code::LimitReached, "reasoning", "more reasoning than is kept of a reply");
            return;
        }
        self.size += id.len() + encrypted.len();
        self.reply.reasoning.push(ReplyReasoning { id, encrypted });
    }

    /// The last event: how the reply ended, and all of it once more.
    fn end(&mut self, text: &str, said: Said<'_>, seen: &mut Vec<Seen>) {
        let Some(object) = said.response else { return self.unread() };
        self.keep_once(&object.model, |reply| &mut reply.model);
        // Where the ids differ, the last one is what a later request goes on from.
        if !object.id.is_empty() && self.reply.id != object.id {
            self.size = self.size.saturating_sub(std::mem::take(&mut self.reply.id).len());
            self.keep(&object.id, |reply| &mut reply.id);
        }
        let silent = self.reply.text.is_empty() && self.reply.refusal.is_empty();
        for (index, entry) in object.output.iter().flatten().enumerate() {
            match entry.kind {
                EntryKind::Call | EntryKind::FreeCall => {
                    if let Some(Seen::CallOpened(at) | Seen::CallFragment(at)) =
                        self.call(entry, Some(index as u64), true)
                    {
                        self.open[at].confirmed = true;
                    }
                }
                EntryKind::Reasoning => self.reasoning(entry),
                EntryKind::Message if silent => {
                    let said = whole::said(text, entry);
                    let between = !self.reply.text.is_empty() && !said.text.is_empty();
                    self.keep(if between { "\n" } else { "" }, |reply| &mut reply.text);
                    self.keep(&said.text, |reply| &mut reply.text);
                    self.keep(&said.refusal, |reply| &mut reply.refusal);
                }
                _ => {}
            }
        }
        let completed = object.is_completed();
        if object.usage.is_some() {
            seen.push(Seen::Usage);
        }
        object.conclude(&mut self.reply);
        for (call, open) in self.reply.calls.iter_mut().zip(&self.open) {
            let whole_call = open.done && !open.cut && (open.confirmed || !self.gap);
            call.complete = completed && whole_call && whole::can_run(call, open.kind);
        }
        if self.reply.error.is_some() {
            seen.push(Seen::Error);
        }
        seen.push(Seen::End);
    }

    fn grow(&mut self, at: usize, more: &str) {
        if self.size + more.len() > self.limit {
            return self.cut(at);
        }
        self.size += more.len();
        self.reply.calls[at].arguments.push_str(more);
    }

    fn replace(&mut self, at: usize, new: ReplyCall) {
        let bytes = |call: &ReplyCall| call.id.len() + call.name.len() + call.arguments.len();
        let size = self.size.saturating_sub(bytes(&self.reply.calls[at])) + bytes(&new);
        if size > self.limit {
            return self.cut(at);
        }
        self.size = size;
        self.reply.calls[at] = new;
    }

    fn cut(&mut self, at: usize) {
        self.open[at].cut = true;
        self.find(Code::LimitReached, "output", "a call is larger than what is kept of a reply");
    }

    fn keep(&mut self, more: &str, into: impl Fn(&mut Reply) -> &mut String) {
        if self.size + more.len() > self.limit {
            self.find(Code::LimitReached, "text", "the text is longer than what is kept of a reply");
            return;
        }
        self.size += more.len();
        into(&mut self.reply).push_str(more);
    }

    fn keep_once(&mut self, word: &str, into: impl Fn(&mut Reply) -> &mut String) {
        if into(&mut self.reply).is_empty() {
            self.keep(word, into);
        }
    }

    fn find(&mut self, code: Code, place: &str, what: &str) {
        if !self.reply.findings.iter().any(|finding| finding.code == code && finding.place == place) {
            self.reply.findings.push(Finding::new(code, place, what));
        }
    }
}

fn read(text: &str) -> Result<Said<'_>, Unreadable> {
    let mut cursor = Cursor::new(text);
    let mut said = Said::default();
    cursor
        .object(|cursor, key| {
            match key.name.as_ref() {
                "type" => said.kind = cursor.string()?.unwrap_or_default(),
                "output_index" => said.index = cursor.count()?,
                "item_id" => said.item_id = cursor.string()?.unwrap_or_default(),
                "delta" => said.delta = cursor.string()?.unwrap_or_default(),
                "arguments" | "input" => said.arguments = cursor.string()?,
                "item" => said.item = Some(entry(cursor)?),
                "response" => said.response = object(cursor)?,
                "error" => said.error = error(cursor)?,
                name => drop(error_field(cursor, name, &mut said.flat)?),
            }
            Ok::<_, Unreadable>(())
        })?
        .ok_or(Unreadable::NotAnObject)?;
    cursor.end()?;
    Ok(said)
}

#[cfg(test)]
mod tests;
