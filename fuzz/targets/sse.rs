//! Any split of a stream gives the same events, and every byte.
//!
//! The input's first byte is the limit, the second the size of the chunks, the rest is the stream.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use seam::engine::wire::sse::{Piece, Splitter};

fuzz_target!(|input: &[u8]| {
    let [limit, size, stream @ ..] = input else { return };
    let limit = usize::from(*limit) + 4;
    let whole = split(&[stream], limit);
    let chunks: Vec<&[u8]> = stream.chunks(usize::from(*size) + 1).collect();
    let cut = split(&chunks, limit);
    for pieces in [&whole, &cut] {
        let joined: Vec<u8> = pieces.iter().flat_map(|piece| piece.raw().to_vec()).collect();
        assert_eq!(joined, stream);
    }
    assert_eq!(events(&whole), events(&cut));
});

fn split(chunks: &[&[u8]], limit: usize) -> Vec<Piece> {
    let mut splitter = Splitter::new(limit);
    let mut pieces = Vec::new();
    for chunk in chunks {
        pieces.extend(splitter.push(Bytes::copy_from_slice(chunk)));
        assert!(splitter.held() <= limit);
    }
    pieces.extend(splitter.finish());
    pieces
}

fn events(pieces: &[Piece]) -> Vec<&Piece> {
    pieces.iter().filter(|piece| matches!(piece, Piece::Event(_))).collect()
}
