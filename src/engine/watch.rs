//! The watched reply: bytes in, the same bytes out, and what they said. What
//! ends a reply is held until the caller has stored what the reply teaches,
//! so that no client can ask again before Seam knows.
//!
//! A reply that comes compressed, though nobody asked for it, is forwarded as
//! it is and decoded in a bounded copy.

mod holding;

use bytes::{Bytes, BytesMut};

pub use holding::{Hold, Holding};

use super::reply::{Reply, Seen};
use super::view::Dialect;
use super::wire::sse::{Piece, Splitter};
use super::wire::{self, Assembler};

/// Watches one reply.
#[derive(Debug)]
pub struct Watcher {
    dialect: Dialect,
    body: Body,
    limit: usize,
    /// Bytes that wait for the reply's end. Only the end of a reply is held: at most `limit` bytes.
    held: Vec<Bytes>,
}

#[derive(Debug)]
enum Body {
    /// The reply was too large or too odd to read: the rest passes unread.
    Unread,
    Plain {
        copy: BytesMut,
    },
    Stream(Box<Stream>),
}

#[derive(Debug)]
struct Stream {
    splitter: Splitter,
    assembler: Assembler,
    /// The reply has said that it ends.
    ending: bool,
}

impl Watcher {
    /// Watches a reply of at most `limit` bytes; of a larger one nothing is learnt.
    pub fn new(dialect: Dialect, streamed: bool, limit: usize) -> Self {
        let body = if streamed {
            let (splitter, assembler) = (Splitter::new(limit), Assembler::new(dialect, limit));
            Body::Stream(Box::new(Stream { splitter, assembler, ending: false }))
        } else {
            Body::Plain { copy: BytesMut::new() }
        };
        Watcher { dialect, body, limit, held: Vec::new() }
    }

    /// Takes a chunk and gives what may go on now.
    pub fn push(&mut self, chunk: Bytes) -> Vec<Bytes> {
        match &mut self.body {
            Body::Unread => vec![chunk],
            Body::Plain { copy } => {
                if copy.len() + chunk.len() > self.limit {
                    return self.stop_reading(chunk);
                }
                copy.extend_from_slice(&chunk);
                // The last chunk is the reply's end, and which is the last is known at the next.
                std::mem::replace(&mut self.held, vec![chunk])
            }
            Body::Stream(stream) => {
                let Stream { splitter, assembler, ending } = &mut **stream;
                let (came, waited) = (chunk.clone(), splitter.held());
                let (mut first, mut passed) = (Bytes::new(), 0);
                for piece in splitter.push(chunk) {
                    match &piece {
                        Piece::Event(event) => *ending |= assembler.event(event).contains(&Seen::End),
                        Piece::Unread(_) => assembler.unread(),
                    }
                    if *ending {
                        self.held.push(piece.raw().clone());
                        continue;
                    }
                    if passed == 0 {
                        first = piece.raw().clone();
                    }
                    passed += piece.raw().len();
                }
                // Only the first event may have begun in an earlier chunk; the others go on as one piece of this.
                match first.len() {
                    0 => Vec::new(),
                    whole if whole == passed => vec![first],
                    _ if waited == 0 => vec![came.slice(..passed)],
                    begun => vec![first, came.slice(begun - waited..passed - waited)],
                }
            }
        }
    }

    /// The reply ended. Gives what it said, if it ended cleanly and could be read, and the bytes that were held.
    pub fn finish(mut self, clean: bool) -> (Option<Reply>, Vec<Bytes>) {
        let reply = match self.body {
            Body::Plain { copy } if clean => wire::read_reply(&copy, self.dialect).ok(),
            Body::Unread | Body::Plain { .. } => None,
            Body::Stream(stream) => {
                let Stream { mut splitter, mut assembler, .. } = *stream;
                if let Some(rest) = splitter.finish() {
                    if let Piece::Event(event) = &rest {
                        assembler.event(event);
                    }
                    self.held.push(rest.raw().clone());
                }
                clean.then(|| assembler.finish())
            }
        };
        (reply, self.held)
    }

    fn stop_reading(&mut self, chunk: Bytes) -> Vec<Bytes> {
        self.body = Body::Unread;
        let mut out = std::mem::take(&mut self.held);
        out.push(chunk);
        out
    }
}
