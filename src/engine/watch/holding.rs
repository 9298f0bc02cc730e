//! The watched reply whose transfer calls wait: text and other calls pass at
//! once, a transfer call and what ends the reply stay until it is known what
//! becomes of them. What is held is bounded in bytes and in time.

use bytes::{Bytes, BytesMut};

use crate::engine::policy::OnFailure;
use crate::engine::reply::{Fate, Reply, Seen};
use crate::engine::time::Timestamp;
use crate::engine::view::Dialect;
use crate::engine::wire::sse::{Event, Piece, Splitter};
use crate::engine::wire::{self, Assembler, Earlier, Waiting};

/// What is held, and for how long at most.
#[derive(Clone, Debug)]
pub struct Hold {
    /// The names of the transfer tools on offer.
    pub tools: Vec<String>,
    /// Bytes that may wait.
    pub bytes: usize,
    /// Milliseconds that a transfer call may wait for its end.
    pub ms: u64,
    /// What happens at a bound.
    pub on_failure: OnFailure,
}

/// Watches one reply whose transfer calls wait.
#[derive(Debug)]
pub struct Holding {
    dialect: Dialect,
    hold: Hold,
    limit: usize,
    earlier: Earlier,
    body: Body,
    /// When a transfer call began to wait.
    since: Option<Timestamp>,
    /// A bound was reached: nothing is held any more, or nothing goes on any more.
    over: Option<OnFailure>,
}

#[derive(Debug)]
enum Body {
    Plain(BytesMut),
    Stream(Box<Stream>),
}

#[derive(Debug)]
struct Stream {
    splitter: Splitter,
    assembler: Assembler,
    waiting: Waiting,
    /// The calls whose names have not come far enough to tell.
    undecided: Vec<usize>,
    /// The calls that wait.
    held: Vec<usize>,
    /// The reply has said that it ends.
    ending: bool,
}

/// What a call's name says so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Transfer,
    /// It may become a transfer's name.
    Open,
    Other,
}

impl Holding {
    /// Watches a reply of at most `limit` bytes, which goes on from `earlier`. None for a dialect whose calls
    /// cannot be held.
    pub fn new(
        dialect: Dialect,
        streamed: bool,
        limit: usize,
        hold: Hold,
        earlier: Earlier,
    ) -> Option<Holding> {
        let waiting = Waiting::new(dialect, earlier.clone())?;
        let body = if streamed {
            Body::Stream(Box::new(Stream {
                splitter: Splitter::new(limit),
                assembler: Assembler::new(dialect, limit),
                waiting,
                undecided: Vec::new(),
                held: Vec::new(),
                ending: false,
            }))
        } else {
            Body::Plain(BytesMut::new())
        };
        Some(Holding { dialect, hold, limit, earlier, body, since: None, over: None })
    }

    /// Whether the reply is an event stream.
    pub fn is_stream(&self) -> bool {
        matches!(self.body, Body::Stream(_))
    }

    /// Takes a chunk and gives what may go on now.
    pub fn push(&mut self, chunk: Bytes, now: Timestamp) -> Vec<Bytes> {
        let mut out = Vec::new();
        match &mut self.body {
            Body::Plain(_) if self.over == Some(OnFailure::Open) => return vec![chunk],
            Body::Plain(copy) => {
                copy.extend_from_slice(&chunk);
                if copy.len() > self.limit {
                    return self.give_up();
                }
            }
            Body::Stream(stream) => {
                for piece in stream.splitter.push(chunk) {
                    if self.over == Some(OnFailure::Closed) {
                        break;
                    }
                    match piece {
                        Piece::Event(event) => out.extend(stream.event(event, &self.hold.tools, self.over)),
                        Piece::Unread(raw) => {
                            stream.assembler.unread();
                            out.push(raw);
                        }
                    }
                    if stream.waiting.size() > self.hold.bytes && !stream.ending && self.over.is_none() {
                        self.over = Some(self.hold.on_failure);
                        out.extend(stream.give_up(self.hold.on_failure));
                    }
                }
                let waits = stream.waiting.holds_calls() && !stream.ending;
                self.since = waits.then(|| self.since.unwrap_or(now));
            }
        }
        out
    }

    /// When [`Holding::expire`] has to be called, if nothing comes before.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.since.filter(|_| self.over.is_none()).map(|since| since.plus_ms(self.hold.ms))
    }

    /// The deadline has passed: gives what goes on now.
    pub fn expire(&mut self, now: Timestamp) -> Vec<Bytes> {
        match self.deadline() {
            Some(deadline) if deadline <= now => self.give_up(),
            _ => Vec::new(),
        }
    }

    /// The bound that was reached, by what happens at it.
    pub fn over(&self) -> Option<OnFailure> {
        self.over
    }

    /// The reply ended. Gives what it said, if it ended cleanly and could be read.
    pub fn finish(&mut self, clean: bool) -> Option<Reply> {
        match &mut self.body {
            Body::Plain(copy) => clean.then(|| wire::read_reply(copy, self.dialect).ok()).flatten(),
            Body::Stream(stream) => {
                if let Some(Piece::Event(event)) = stream.splitter.finish() {
                    // What no blank line ended may go on only with the reply's end.
                    stream.ending = true;
                    stream.event(event, &self.hold.tools, self.over);
                }
                clean.then(|| stream.assembler.reply().clone())
            }
        }
    }

    /// Lets go what was held: each of the reply's calls by its fate. None where a call had to change and could
    /// not be changed.
    pub fn release(&mut self, reply: &Reply, fate: impl Fn(usize) -> Fate) -> Option<Vec<Bytes>> {
        match &mut self.body {
            Body::Plain(copy) if self.over.is_some() => {
                copy.clear();
                Some(Vec::new())
            }
            Body::Plain(copy) => {
                let body = copy.split().freeze();
                let edited = wire::edit_reply(&body, self.dialect, reply, &self.earlier, &fate);
                let must = (0..reply.calls.len()).any(|call| fate(call) != Fate::Whole);
                match edited {
                    Some(edited) => Some(vec![edited]),
                    None => (!must).then(|| vec![body]),
                }
            }
            Body::Stream(stream) => {
                let over = self.over;
                Some(
                    stream
                        .waiting
                        .release(reply, |call| if over.is_some() { Fate::Whole } else { fate(call) }),
                )
            }
        }
    }

    /// Lets go what was held as it came: nothing is known of it.
    pub fn release_raw(&mut self) -> Vec<Bytes> {
        match &mut self.body {
            Body::Plain(copy) => vec![copy.split().freeze()],
            Body::Stream(stream) => stream.waiting.release(&Reply::default(), |_| Fate::Whole),
        }
    }

    /// Lets go what was held of a reply that broke off: nothing of a call that could be run.
    pub fn release_broken(&mut self) -> Vec<Bytes> {
        match &mut self.body {
            Body::Plain(copy) => vec![copy.split().freeze()],
            Body::Stream(stream) => {
                let reply = stream.assembler.reply().clone();
                let dropped = if self.over.is_some() { Fate::Whole } else { Fate::Drop };
                stream.waiting.release(&reply, |_| dropped.clone())
            }
        }
    }

    /// The reply as the message that a request repeats; none where it cannot be one.
    pub fn message(&self, reply: &Reply) -> Option<String> {
        match &self.body {
            Body::Plain(copy) => wire::message_of(copy, self.dialect),
            Body::Stream(stream) => stream.waiting.message(reply),
        }
    }

    /// What the client knows of this reply and those before it, if all that waits never goes on.
    pub fn earlier(&self, reply: &Reply) -> Earlier {
        match &self.body {
            Body::Plain(copy) => {
                let usage = wire::usage_with(copy, self.dialect, self.earlier.usage.as_deref());
                Earlier { usage, ..Earlier::default() }
            }
            Body::Stream(stream) => stream.waiting.earlier(reply),
        }
    }

    fn give_up(&mut self) -> Vec<Bytes> {
        self.over = Some(self.hold.on_failure);
        if self.hold.on_failure == OnFailure::Closed {
            return Vec::new();
        }
        match &mut self.body {
            Body::Plain(copy) => vec![copy.split().freeze()],
            Body::Stream(stream) => stream.give_up(self.hold.on_failure),
        }
    }
}

impl Stream {
    /// What goes on at a bound.
    fn give_up(&mut self, on_failure: OnFailure) -> Vec<Bytes> {
        match on_failure {
            OnFailure::Open => self.waiting.release(&Reply::default(), |_| Fate::Whole),
            OnFailure::Closed => Vec::new(),
        }
    }

    /// Takes an event and gives what goes on because of it.
    fn event(&mut self, event: Event, tools: &[String], over: Option<OnFailure>) -> Vec<Bytes> {
        let seen = self.assembler.event(&event);
        self.ending |= seen.contains(&Seen::End);
        let mut out = Vec::new();
        if over.is_none() {
            for seen in &seen {
                if let Seen::CallOpened(call) | Seen::CallFragment(call) = *seen {
                    out.extend(self.judge(call, tools));
                }
            }
        }
        let holds =
            |call: usize| over.is_none() && (self.held.contains(&call) || self.undecided.contains(&call));
        out.extend(self.waiting.take(event, &seen, holds, self.ending));
        out
    }

    /// Tells by a call's name whether it waits. Gives what need not have waited.
    fn judge(&mut self, call: usize, tools: &[String]) -> Vec<Bytes> {
        let is_new = !self.held.contains(&call) && !self.undecided.contains(&call);
        // A call that has been let go stays so.
        if is_new && self.waiting.has_passed(call) {
            return Vec::new();
        }
        let Some(known) = self.assembler.reply().calls.get(call) else { return Vec::new() };
        let named = Named::of(&known.name, !known.arguments.is_empty(), tools);
        match named {
            Named::Transfer if is_new => self.held.push(call),
            Named::Open if is_new => self.undecided.push(call),
            Named::Other if is_new => {}
            Named::Open => {}
            Named::Transfer => {
                self.undecided.retain(|other| *other != call);
                if !self.held.contains(&call) {
                    self.held.push(call);
                }
            }
            Named::Other if self.undecided.contains(&call) => {
                self.undecided.retain(|other| *other != call);
                return self.waiting.free(call);
            }
            // The name grew beyond a transfer's.
            Named::Other => {
                self.held.retain(|other| *other != call);
                return self.waiting.free(call);
            }
        }
        Vec::new()
    }
}

impl Named {
    /// A name may come in pieces until its arguments begin.
    fn of(name: &str, has_arguments: bool, tools: &[String]) -> Named {
        if tools.iter().any(|tool| tool == name) {
            Named::Transfer
        } else if !has_arguments && tools.iter().any(|tool| tool.starts_with(name)) {
            Named::Open
        } else {
            Named::Other
        }
    }
}
