//! Puts a streamed Chat Completions reply together, event by event.
//!
//! By the specification a fragment of a call says its index, and the first one
//! also id and name. In the field the index is missing, is 0 for every call or
//! grows with every fragment, and id and name come once, never or always. So a
//! fragment is placed by index, then by id, then with the call opened last; and
//! one that repeats a name over arguments that are already whole opens a call.

use super::chat_chunk::{self, CallForm, Choice, Fragment};
use super::chat_frame::Frame;
use super::chat_reply::can_run;
use super::json;
use super::sse::Event;
use crate::engine::event::{Code, Finding};
use crate::engine::reply::{Reply, ReplyCall, Seen};

/// How many calls one reply may open; more are left out.
const MAX_CALLS: usize = 256;

/// Puts one reply together.
#[derive(Debug)]
pub(super) struct Assembler {
    reply: Reply,
    /// One for each of the reply's calls.
    open: Vec<Open>,
    /// Bytes that were kept; at most `limit`.
    size: usize,
    limit: usize,
    /// Something passed unread before the reply ended: a call may lack a part.
    gap: bool,
    /// The mark that nothing follows has come.
    done: bool,
    /// What stood around the last piece of text that was read whole.
    frame: Option<Frame>,
    /// How often in a row a chunk fitted no frame.
    unframed: u32,
}

/// After so many chunks that all differ, frames are no longer looked for.
const UNFRAMED: u32 = 16;

/// What is known of a call beside what it says.
#[derive(Debug)]
struct Open {
    index: Option<u64>,
    form: CallForm,
    /// A part of it was left out.
    cut: bool,
}

/// Where a fragment belongs.
enum Place {
    /// To this call.
    Call(usize),
    /// To this call, for want of a better one.
    Guess(usize),
    /// To a call of its own.
    New,
}

impl Assembler {
    /// An assembler that keeps up to `limit` bytes of text and calls.
    pub(super) fn new(limit: usize) -> Self {
        Assembler {
            reply: Reply::default(),
            open: Vec::new(),
            size: 0,
            limit,
            gap: false,
            done: false,
            frame: None,
            unframed: 0,
        }
    }

    /// The reply as far as it has come. A call is complete only once the reply has ended.
    pub(super) fn reply(&self) -> &Reply {
        &self.reply
    }

    /// Takes the next event and says what it holds; nothing where it adds nothing.
    pub(super) fn event(&mut self, event: &Event) -> Vec<Seen> {
        let Some(data) = event.data.as_ref().map(|data| data.trim_ascii()).filter(|data| !data.is_empty())
        else {
            return Vec::new();
        };
        if data == b"[DONE]" {
            self.done = true;
            self.settle();
            return vec![Seen::End];
        }
        let named = event.name.as_ref() == b"error";
        if let Some(text) = self.frame.as_ref().filter(|_| !named).and_then(|frame| frame.text(data)) {
            self.unframed = 0;
            self.keep(text, |reply| &mut reply.text);
            return vec![Seen::Text];
        }
        let read = std::str::from_utf8(data).ok().and_then(|text| Some((text, chat_chunk::read(text).ok()?)));
        let Some((text, chunk)) = read else {
            self.unread();
            return Vec::new();
        };
        if self.unframed < UNFRAMED {
            self.unframed += 1;
            self.frame = Frame::of(text, &chunk);
        }
        let mut seen = Vec::new();
        self.keep_once(&chunk.id, |reply| &mut reply.id);
        self.keep_once(&chunk.model, |reply| &mut reply.model);
        for choice in chunk.choices.unwrap_or_default() {
            self.reply.choices = self.reply.choices.max(choice.index.saturating_add(1));
            if choice.index == 0 {
                self.choice(&choice, &mut seen);
            }
        }
        if let Some(usage) = chunk.usage {
            self.reply.usage = Some(usage);
            seen.push(Seen::Usage);
        }
        if let Some(error) = chunk.error.or_else(|| named.then(Default::default)) {
            self.reply.error = Some(error);
            seen.push(Seen::Error);
        }
        self.settle();
        seen
    }

    /// An event passed by unread. Until the reply has ended, it may have held a part of a call.
    pub(super) fn unread(&mut self) {
        self.gap |= !self.reply.ended;
        self.find(Code::ReplyUnreadable, "stream", "an event could not be read");
        self.settle();
    }

    /// The stream is over, at its end or before.
    pub(super) fn finish(self) -> Reply {
        self.reply
    }

    fn choice(&mut self, choice: &Choice<'_>, seen: &mut Vec<Seen>) {
        if !choice.text.is_empty() || !choice.refusal.is_empty() {
            seen.push(Seen::Text);
            self.keep(&choice.text, |reply| &mut reply.text);
            self.keep(&choice.refusal, |reply| &mut reply.refusal);
        }
        for fragment in &choice.calls {
            seen.extend(self.fragment(fragment));
        }
        if choice.finish.is_some() {
            self.reply.finish = choice.finish;
            seen.push(Seen::End);
        }
    }

    fn fragment(&mut self, fragment: &Fragment<'_>) -> Option<Seen> {
        let at = match self.place(fragment) {
            Place::Call(at) => at,
            Place::Guess(at) => {
                self.find(
                    Code::FragmentUnplaced,
                    "tool_calls",
                    "a fragment names no call; the last one opened took it",
                );
                at
            }
            Place::New if self.open.len() == MAX_CALLS => {
                self.find(Code::LimitReached, "tool_calls", "more calls than are read");
                return None;
            }
            Place::New => {
                self.reply.calls.push(ReplyCall::default());
                self.open.push(Open { index: fragment.index, form: fragment.form, cut: false });
                self.open.len() - 1
            }
        };
        let named = self.reply.calls.get(at).is_some_and(|call| !call.name.is_empty());
        self.add(at, fragment);
        Some(if named || fragment.name.is_empty() { Seen::CallFragment(at) } else { Seen::CallOpened(at) })
    }

    fn add(&mut self, at: usize, fragment: &Fragment<'_>) {
        let size = self.size + fragment.id.len() + fragment.name.len() + fragment.arguments.len();
        let (Some(call), Some(open)) = (self.reply.calls.get_mut(at), self.open.get_mut(at)) else { return };
        if size > self.limit {
            open.cut = true;
            self.find(Code::LimitReached, "tool_calls", "a call is larger than what is kept of a reply");
            return;
        }
        self.size = size;
        if call.id.is_empty() {
            call.id.push_str(&fragment.id);
        }
        if call.name != fragment.name {
            call.name.push_str(&fragment.name);
        }
        call.arguments.push_str(&fragment.arguments);
        if fragment.form == CallForm::Custom {
            open.form = CallForm::Custom;
        }
    }

    fn place(&self, fragment: &Fragment<'_>) -> Place {
        let by_index =
            fragment.index.and_then(|index| self.open.iter().rposition(|open| open.index == Some(index)));
        let by_id = || {
            let same = |call: &ReplyCall| !fragment.id.is_empty() && call.id == fragment.id;
            self.reply.calls.iter().rposition(same)
        };
        if let Some(at) = by_index.or_else(by_id) {
            return if self.opens_anew(at, fragment) { Place::New } else { Place::Call(at) };
        }
        let Some(last) = self.reply.calls.len().checked_sub(1) else { return Place::New };
        let call = &self.reply.calls[last];
        let adds = !fragment.arguments.is_empty();
        let half = !call.arguments.is_empty() && !json::is_value(&call.arguments);
        match (fragment.id.is_empty(), fragment.name.is_empty()) {
            // Only more arguments; or a trailing delta without any, of a vendor's own fields.
            (true, true) if adds && fragment.form != CallForm::Legacy => Place::Guess(last),
            (true, true) => Place::Call(last),
            // The name repeated, and an index that is missing or grows with every fragment.
            (true, false) if call.name == fragment.name && half => Place::Call(last),
            (true, false)
                if call.name == fragment.name && fragment.index.is_none() && call.arguments.is_empty() =>
            {
                Place::Call(last)
            }
            // A fresh id in every fragment.
            (false, true) if half && adds => Place::Guess(last),
            _ => Place::New,
        }
    }

    /// Whether a fragment that has the index or the id of call `at` is another call all the same.
    fn opens_anew(&self, at: usize, fragment: &Fragment<'_>) -> bool {
        let call = &self.reply.calls[at];
        if fragment.name.is_empty() {
            return false;
        }
        let whole = !call.arguments.is_empty() && json::is_value(&call.arguments);
        let half = !call.arguments.is_empty() && !whole;
        let adds = !fragment.arguments.trim_ascii().is_empty();
        let other_id = !call.id.is_empty() && !fragment.id.is_empty() && call.id != fragment.id;
        if call.name == fragment.name || call.name.is_empty() {
            // The name repeated in every fragment, perhaps under fresh ids; or the same tool again.
            return if other_id { !half } else { whole && adds };
        }
        // Another name; where no arguments have come, it may be more of the same name.
        other_id || !call.arguments.is_empty() || adds
    }

    /// Brings up to date what follows from all that has come.
    fn settle(&mut self) {
        let reply = &mut self.reply;
        // An end stays an end, whatever follows it.
        reply.ended |= reply.finish.is_some() || (self.done && reply.error.is_none());
        if !reply.ended {
            return;
        }
        for (call, open) in reply.calls.iter_mut().zip(&self.open) {
            call.complete = !self.gap && !open.cut && can_run(call, open.form, reply.finish);
        }
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

#[cfg(test)]
mod tests;
