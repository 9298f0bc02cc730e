//! The wire: bytes to the neutral view and back, by splicing. Knows no handoffs.

#[cfg(test)]
mod captures;
mod chat;
mod chat_chunk;
mod chat_document;
mod chat_edit;
mod chat_fit;
mod chat_frame;
mod chat_reply;
mod chat_stream;
mod chat_waiting;
mod edit;
mod ending;
pub mod json;
mod names;
mod nested;
pub mod object;
mod reply_parts;
mod request_parts;
mod responses;
mod responses_document;
mod responses_edit;
mod responses_item;
mod responses_reply;
mod responses_resubmit;
mod responses_stream;
mod responses_waiting;
mod resubmit;
pub mod sse;
mod tools;
mod waiting;

use bytes::Bytes;

pub use ending::Ending;
pub use names::{Name, names};
pub use nested::{NestedCall, nested_calls};
pub use resubmit::{can_ask_again, message_of, resubmission};
pub use tools::takes_parameters;
pub use waiting::{Earlier, Waiting, can_hold};

use super::profile::Standing;
use super::reply::{Fate, Reply, Seen};
use super::view::{Dialect, Item, Plan, View};

/// Why a body or a reply could not be read. Whoever meets it forwards the bytes as they are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The bytes are not UTF-8 from this byte on.
    #[error("not UTF-8 at byte {0}")]
    NotUtf8(usize),
    /// The grammar of JSON is broken at this byte.
    #[error("not JSON at byte {0}")]
    NotJson(usize),
    /// Nested deeper than [`json::MAX_DEPTH`].
    #[error("nested deeper than {} levels", json::MAX_DEPTH)]
    TooDeep,
    /// The body is JSON, but not an object.
    #[error("not a JSON object")]
    NotAnObject,
    /// The conversation under this key is missing or is not a list.
    #[error("`{0}` is not a list")]
    NotAList(&'static str),
    /// A key that is read comes twice in one object; which one counts is anybody's guess.
    #[error("key `{key}` comes twice, again at byte {at}")]
    DuplicateKey {
        /// The key.
        key: &'static str,
        /// Where it comes again.
        at: usize,
    },
    /// A value is of a kind that the dialect does not know in this place.
    #[error("`{key}` is of an unknown shape at byte {at}")]
    OddShape {
        /// What the value should have been.
        key: &'static str,
        /// Where it stands.
        at: usize,
    },
}

impl From<json::Fault> for Unreadable {
    fn from(fault: json::Fault) -> Self {
        match fault {
            json::Fault::Syntax(at) => Unreadable::NotJson(at),
            json::Fault::TooDeep => Unreadable::TooDeep,
        }
    }
}

/// Reads the body of a request.
pub fn read(body: &[u8], dialect: Dialect) -> Result<View<'_>, Unreadable> {
    read_on(body, dialect, None)
}

/// Reads the body of a request, but for the items that an earlier reading of the same bytes has.
pub fn read_on<'b>(
    body: &'b [u8],
    dialect: Dialect,
    known: Option<Known<'_>>,
) -> Result<View<'b>, Unreadable> {
    match dialect {
        Dialect::Chat => chat::read(utf8(body)?, known),
        Dialect::Responses => responses::read(utf8(body)?, known),
    }
}

/// An earlier reading, whose body began with the same bytes.
#[derive(Clone, Copy, Debug)]
pub struct Known<'k> {
    /// What was read.
    pub view: &'k View<'static>,
    /// How many bytes the two bodies have in common at least.
    pub same: usize,
}

impl<'k> Known<'k> {
    /// The items of a list that begins at `start`, as far as they are in common, and where the last one ends.
    fn items(&self, start: usize) -> Option<(&'k [Item<'static>], usize)> {
        let list = self.view.items.get(self.view.head.items..).unwrap_or_default();
        let count = list.iter().take_while(|item| item.span.end <= self.same).count();
        let end = list[..count].last()?.span.end;
        (self.view.list.start == start).then_some((&list[..count], end))
    }
}

/// Carries out `plan` on the body that `view` was read from. Every byte that
/// the plan does not name stays as it is; the plan that changes nothing gives
/// the same bytes.
pub fn apply(body: &[u8], view: &View<'_>, plan: &Plan) -> Bytes {
    let fitted = match view.dialect {
        Dialect::Chat if !plan.profile.is_plain() => fitted(body, view, plan),
        // One upstream alone speaks this dialect in earnest, and it is the reference.
        Dialect::Chat | Dialect::Responses => None,
    };
    fitted.unwrap_or_else(|| spliced(body, view, plan))
}

/// The same for a server that wants more of a list than others: the list is written, read again as it stands,
/// and laid out. None where that cannot be done.
fn fitted(body: &[u8], view: &View<'_>, plan: &Plan) -> Option<Bytes> {
    // Where standing instructions move, the brief goes where they go.
    let moves = plan.profile.system != Standing::AsSent;
    let list = if moves {
        spliced(body, view, &Plan { brief: None, ..plan.clone() })
    } else {
        spliced(body, view, plan)
    };
    let text = std::str::from_utf8(&list).ok()?;
    let brief = plan.brief.as_deref().filter(|_| moves);
    chat_fit::fit(text, &chat::read(text, None).ok()?, plan.profile, brief).ok().map(Bytes::from)
}

fn spliced(body: &[u8], view: &View<'_>, plan: &Plan) -> Bytes {
    let mut edits = match view.dialect {
        Dialect::Chat => chat_edit::edits(body, view, plan),
        Dialect::Responses => responses_edit::edits(body, view, plan),
    };
    edits.extend(tools::edits(body, view, plan));
    edit::splice(body, edits).into()
}

/// Reads a reply that came as one body, the whole of it.
pub fn read_reply(body: &[u8], dialect: Dialect) -> Result<Reply, Unreadable> {
    match dialect {
        Dialect::Chat => chat_reply::read(utf8(body)?),
        Dialect::Responses => responses_reply::read(utf8(body)?),
    }
}

/// The `usage` of a plain reply, as JSON, with that of those before it; none where none is told.
pub fn usage_with(body: &[u8], dialect: Dialect, before: Option<&str>) -> Option<String> {
    match dialect {
        // Both have it in the same place.
        Dialect::Chat | Dialect::Responses => reply_parts::usage_with(utf8(body).unwrap_or_default(), before),
    }
}

/// The plain reply with its calls as their fates say, going on from `earlier`. None where nothing changes, or
/// where it cannot be edited.
pub fn edit_reply(
    body: &[u8],
    dialect: Dialect,
    reply: &Reply,
    earlier: &Earlier,
    fate: impl Fn(usize) -> Fate,
) -> Option<Bytes> {
    let body = utf8(body).ok()?;
    let edited = match dialect {
        Dialect::Chat => chat_waiting::edit_whole(body, reply, earlier, fate),
        Dialect::Responses => responses_waiting::edit_whole(body, reply, earlier, fate),
    };
    edited.map(Bytes::from)
}

/// Puts a streamed reply together, event by event.
#[derive(Debug)]
pub struct Assembler(Stream);

#[derive(Debug)]
enum Stream {
    Chat(chat_stream::Assembler),
    Responses(responses_stream::Assembler),
}

impl Assembler {
    /// An assembler that keeps up to `limit` bytes of text and calls.
    pub fn new(dialect: Dialect, limit: usize) -> Self {
        Assembler(match dialect {
            Dialect::Chat => Stream::Chat(chat_stream::Assembler::new(limit)),
            Dialect::Responses => Stream::Responses(responses_stream::Assembler::new(limit)),
        })
    }

    /// Takes the next event and says what it holds; nothing where it adds nothing.
    pub fn event(&mut self, event: &sse::Event) -> Vec<Seen> {
        match &mut self.0 {
            Stream::Chat(chat) => chat.event(event),
            Stream::Responses(responses) => responses.event(event),
        }
    }

    /// An event passed by unread. Until the reply has ended, it may have held
    /// a part of a call, so no call is complete any more.
    pub fn unread(&mut self) {
        match &mut self.0 {
            Stream::Chat(chat) => chat.unread(),
            Stream::Responses(responses) => responses.unread(),
        }
    }

    /// The reply as far as it has come. A call is complete only once the reply has ended.
    pub fn reply(&self) -> &Reply {
        match &self.0 {
            Stream::Chat(chat) => chat.reply(),
            Stream::Responses(responses) => responses.reply(),
        }
    }

    /// The stream is over, at its proper end or before it.
    pub fn finish(self) -> Reply {
        match self.0 {
            Stream::Chat(chat) => chat.finish(),
            Stream::Responses(responses) => responses.finish(),
        }
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, Unreadable> {
    std::str::from_utf8(bytes).map_err(|error| Unreadable::NotUtf8(error.valid_up_to()))
}

/// The keys that are read in one object, and which of them have come.
struct Once {
    keys: &'static [&'static str],
    seen: u32,
}

impl Once {
    fn new(keys: &'static [&'static str]) -> Self {
        debug_assert!(keys.len() <= 32, "a bit a key");
        Once { keys, seen: 0 }
    }

    /// Refuses the second coming of a key that is read.
    fn note(&mut self, key: &json::Key<'_>) -> Result<(), Unreadable> {
        let Some(place) = self.keys.iter().position(|known| *known == key.name) else { return Ok(()) };
        let bit = 1 << place;
        if self.seen & bit != 0 {
            return Err(Unreadable::DuplicateKey { key: self.keys[place], at: key.start });
        }
        self.seen |= bit;
        Ok(())
    }
}
