//! How a stream is cut changes nothing in the reply, nor in what goes on of it where calls wait; no call is complete
//! before its end.
//!
//! The input's first byte is the size of the chunks, in its last bit the dialect; the rest is the stream.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use seam::engine::policy::OnFailure;
use seam::engine::reply::{Fate, Reply, Seen};
use seam::engine::time::Timestamp;
use seam::engine::view::Dialect;
use seam::engine::watch::{Hold, Holding};
use seam::engine::wire::sse::{Piece, Splitter};
use seam::engine::wire::{Assembler, Earlier};

const LIMIT: usize = 1 << 16;
/// A transfer tool, whose arguments are never what the client gets.
const TOOL: &str = "transfer_to_x";

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
    for (fate, earlier) in [(Fate::Drop, Earlier::default()), (as_other(), spoken())] {
        let (at_once, at_end) = hold(dialect, &[stream], &fate, &earlier);
        assert_eq!(hold(dialect, &chunks, &fate, &earlier), (at_once, at_end));
    }
});

fn as_other() -> Fate {
    Fate::As { name: "transfer_to_human".into(), arguments: r#"{"why":"x"}"#.into() }
}

/// A client that has been given text.
fn spoken() -> Earlier {
    let usage = Some(r#"{"input_tokens":1,"prompt_tokens":1}"#.into());
    let items = vec![r#"{"type":"message","content":[]}"#.into()];
    Earlier { id: "first".into(), began: true, spoke: true, usage, events: 7, places: 1, items }
}

/// What goes on at once, and what at the end, where the calls of one tool have this fate.
fn hold(dialect: Dialect, chunks: &[&[u8]], fate: &Fate, earlier: &Earlier) -> (Vec<u8>, Vec<u8>) {
    let hold = Hold { tools: vec![TOOL.into()], bytes: LIMIT, ms: 1_000, on_failure: OnFailure::Open };
    let Some(mut holding) = Holding::new(dialect, true, LIMIT, hold, earlier.clone()) else {
        return Default::default();
    };
    let mut at_once = Vec::new();
    for chunk in chunks {
        at_once.extend(holding.push(Bytes::copy_from_slice(chunk), Timestamp(0)));
    }
    let reply = holding.finish(true).unwrap_or_default();
    holding.message(&reply);
    holding.earlier(&reply);
    let fate = |call: usize| {
        let is_held = reply.calls.get(call).is_some_and(|call| call.name == TOOL);
        if is_held { fate.clone() } else { Fate::Whole }
    };
    let at_end = holding.release(&reply, fate).unwrap_or_default();
    (at_once.concat(), at_end.concat())
}

fn assemble(dialect: Dialect, chunks: &[&[u8]]) -> (Reply, Vec<Seen>) {
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
