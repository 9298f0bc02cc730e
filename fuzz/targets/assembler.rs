//! How a stream is cut changes nothing in the reply, and no call is complete before its end.
//!
//! The input's first byte is the size of the chunks, in its last bit the dialect; the rest is the stream.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use seam::engine::reply::{Reply, Seen};
use seam::engine::view::Dialect;
use seam::engine::wire::Assembler;
use seam::engine::wire::sse::{Piece, Splitter};

fuzz_target!(|input: &[u8]| {
    let [size, stream @ ..] = input else { return };
    let dialect = if size & 1 == 0 { Dialect::Chat } else { Dialect::Responses };
    let whole = assemble(dialect, &[stream]);
    let chunks: Vec<&[u8]> = stream.chunks(usize::from(*size) / 2 + 1).collect();
    assert_eq!(assemble(dialect, &chunks), whole);
    let (reply, seen) = whole;
    assert!(reply.ended || !reply.calls.iter().any(|call| call.complete));
    for seen in seen {
        if let Seen::CallOpened(call) | Seen::CallFragment(call) = seen {
            assert!(call < reply.calls.len());
        }
    }
});

fn assemble(dialect: Dialect, chunks: &[&[u8]]) -> (Reply, Vec<Seen>) {
    const LIMIT: usize = 1 << 16;
    let mut splitter = Splitter::new(LIMIT);
    let mut assembler = Assembler::new(dialect, LIMIT);
    let mut pieces = Vec::new();
    for chunk in chunks {
        pieces.extend(splitter.push(Bytes::copy_from_slice(chunk)));
    }
    pieces.extend(splitter.finish());
    let mut seen = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Event(event) => seen.extend(assembler.event(&event)),
            Piece::Unread(_) => assembler.unread(),
        }
    }
    (assembler.finish(), seen)
}
