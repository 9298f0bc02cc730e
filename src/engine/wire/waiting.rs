//! What waits of a streamed reply: the fragments of calls that may not go on
//! yet, and what ends the reply. Everything else passes as it comes.

use bytes::Bytes;

use super::sse::Event;
use super::{chat_waiting, responses_waiting};
use crate::engine::reply::{Fate, Reply, Seen};
use crate::engine::view::Dialect;

/// Whether calls of this dialect's replies can be held, and their arguments changed.
pub fn can_hold(dialect: Dialect) -> bool {
    match dialect {
        Dialect::Chat | Dialect::Responses => true,
    }
}

/// What a reply goes on from, where it is not the first that upstream gave: the client knows of one reply only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Earlier {
    /// The id that the client has seen; empty where it has seen none.
    pub id: String,
    /// Whether the client has been told who speaks.
    pub began: bool,
    /// Whether the client has been given text.
    pub spoke: bool,
    /// The `usage` of all earlier replies, as JSON; none where they had none.
    pub usage: Option<String>,
    /// The number of the next event, where events are numbered.
    pub events: u64,
    /// The place of the next item in the reply's output, where items have places.
    pub places: u64,
    /// The items that the client has been given, as JSON, where a reply's end repeats them.
    pub items: Vec<String>,
}

/// The events that wait.
#[derive(Debug)]
pub struct Waiting(Kind);

#[derive(Debug)]
enum Kind {
    Chat(chat_waiting::Waiting),
    Responses(responses_waiting::Waiting),
}

impl Waiting {
    /// Nothing waits yet. None for a dialect whose calls cannot be held.
    pub fn new(dialect: Dialect, earlier: Earlier) -> Option<Waiting> {
        match dialect {
            Dialect::Chat => Some(Waiting(Kind::Chat(chat_waiting::Waiting::new(earlier)))),
            Dialect::Responses => Some(Waiting(Kind::Responses(responses_waiting::Waiting::new(earlier)))),
        }
    }

    /// Takes an event and what was seen in it, and gives what may go on now. `holds` tells which calls wait;
    /// with `ending`, the event waits whole.
    pub fn take(
        &mut self,
        event: Event,
        seen: &[Seen],
        holds: impl Fn(usize) -> bool,
        ending: bool,
    ) -> Option<Bytes> {
        match &mut self.0 {
            Kind::Chat(chat) => chat.take(event, seen, holds, ending),
            Kind::Responses(responses) => responses.take(event, seen, holds, ending),
        }
    }

    /// Whether something of this call has gone on.
    pub fn has_passed(&self, call: usize) -> bool {
        match &self.0 {
            Kind::Chat(chat) => chat.has_passed(call),
            Kind::Responses(responses) => responses.has_passed(call),
        }
    }

    /// Bytes that wait.
    pub fn size(&self) -> usize {
        match &self.0 {
            Kind::Chat(chat) => chat.size(),
            Kind::Responses(responses) => responses.size(),
        }
    }

    /// Whether a fragment of a call waits.
    pub fn holds_calls(&self) -> bool {
        match &self.0 {
            Kind::Chat(chat) => chat.holds_calls(),
            Kind::Responses(responses) => responses.holds_calls(),
        }
    }

    /// Lets everything go on: each held call by its fate, the others as they came.
    pub fn release(&mut self, reply: &Reply, fate: impl Fn(usize) -> Fate) -> Vec<Bytes> {
        match &mut self.0 {
            Kind::Chat(chat) => chat.release(reply, fate),
            Kind::Responses(responses) => responses.release(reply, fate),
        }
    }

    /// Lets one call go on, as it came: it need not have waited.
    pub fn free(&mut self, call: usize) -> Vec<Bytes> {
        match &mut self.0 {
            Kind::Chat(chat) => chat.free(call),
            Kind::Responses(responses) => responses.free(call),
        }
    }

    /// What the client knows of this reply and those before it, if all that waits never goes on.
    pub fn earlier(&self, reply: &Reply) -> Earlier {
        match &self.0 {
            Kind::Chat(chat) => chat.earlier(reply),
            Kind::Responses(responses) => responses.earlier(reply),
        }
    }

    /// The reply as the message that a request repeats; none where it cannot be one.
    pub fn message(&self, reply: &Reply) -> Option<String> {
        match &self.0 {
            Kind::Chat(chat) => chat.message(reply),
            Kind::Responses(responses) => responses.message(reply),
        }
    }
}
