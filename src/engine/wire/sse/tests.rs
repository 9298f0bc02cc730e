use proptest::prelude::*;

use super::*;

fn split(chunks: &[&[u8]], limit: usize) -> Vec<Piece> {
    let mut splitter = Splitter::new(limit);
    let mut pieces: Vec<Piece> =
        chunks.iter().flat_map(|chunk| splitter.push(Bytes::copy_from_slice(chunk))).collect();
    pieces.extend(splitter.finish());
    pieces
}

/// Each event as `name|data`, `-` where it has no data.
fn show(pieces: &[Piece]) -> Vec<String> {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    pieces
        .iter()
        .map(|piece| match piece {
            Piece::Event(event) => {
                format!("{}|{}", text(&event.name), event.data.as_ref().map_or("-".into(), text))
            }
            Piece::Unread(raw) => format!("unread {}", raw.len()),
        })
        .collect()
}

fn check(stream: &str, expected: &[&str]) {
    let whole = split(&[stream.as_bytes()], 1000);
    assert_eq!(show(&whole), expected, "{stream:?}");
    let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
    assert_eq!(split(&bytes, 1000), whole, "{stream:?}, byte by byte");
}

#[test]
fn events_end_at_a_blank_line_of_any_kind() {
    check("data: a\n\ndata: b\n\n", &["|a", "|b"]);
    check("data: a\r\n\r\ndata: b\r\n\r\n", &["|a", "|b"]);
    check("data: a\r\rdata: b\r\r", &["|a", "|b"]);
    check("data: a\n\r\ndata: b\r\n\n", &["|a", "|b"]);
    check("data: a\r\n\rdata: b\n\r", &["|a", "|b"]);
}

#[test]
fn fields_are_decoded() {
    check("event: ping\ndata: {\ndata:  \"a\"\ndata:}\nid: 7\n\n", &["ping|{\n \"a\"\n}"]);
    check("event:ping\ndata:x\n\n", &["ping|x"]);
    check("data\ndata\n\n", &["|\n"]);
    check("data:\n\n", &["|"]);
    check("\u{feff}data: x\n\n\u{feff}data: y\n\n", &["|x", "|-"]);
    check("database: x\ndata : y\n\n", &["|-"]);
}

#[test]
fn comments_and_lone_blank_lines_are_events_without_data() {
    check(": ping\n\ndata: a\n\n\n\n", &["|-", "|a", "|-", "|-"]);
    check(": ping\ndata: a\n\n", &["|a"]);
}

#[test]
fn the_rest_that_no_blank_line_ended_is_given_at_the_end() {
    check("data: a\n\ndata: [DONE]", &["|a", "|[DONE]"]);
    check("data: a\n\ndata: [DONE]\n", &["|a", "|[DONE]"]);
    check("", &[]);
}

#[test]
fn a_complete_event_is_not_held_until_the_next_one() {
    for stream in ["data: a\n\n", "data: a\r\n\r\n", "data: a\r\r", ": ping\n\n"] {
        let mut splitter = Splitter::new(1000);
        assert_eq!(splitter.push(Bytes::from_static(stream.as_bytes())).len(), 1, "{stream:?}");
        assert_eq!(splitter.held(), 0);
    }
}

#[test]
fn an_event_inside_one_chunk_is_not_copied() {
    let chunk = Bytes::from_static(b"data: first\n\nevent: e\ndata: second\n\n");
    let there = chunk.as_ptr_range();
    let mut splitter = Splitter::new(1000);
    for piece in splitter.push(chunk.clone()) {
        let Piece::Event(event) = piece else { panic!("small") };
        assert!(there.contains(&event.raw.as_ptr()));
        assert!(there.contains(&event.data.expect("has data").as_ptr()));
    }
}

#[test]
fn an_event_over_the_limit_passes_unread_and_the_next_is_read() {
    let stream = b"data: a\n\ndata: 0123456789\n\ndata: b\n\n";
    assert_eq!(show(&split(&[stream], 12)), ["|a", "unread 18", "|b"]);
    let pieces = split(&stream.chunks(1).collect::<Vec<_>>(), 12);
    let events: Vec<_> = pieces.iter().filter(|piece| matches!(piece, Piece::Event(_))).cloned().collect();
    assert_eq!(show(&events), ["|a", "|b"]);
    let held: usize = pieces.iter().map(|piece| piece.raw().len()).sum();
    assert_eq!(held, stream.len());
}

/// Bytes near an event stream, broken UTF-8 included.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let token = prop::sample::select(vec![
        &b"data: "[..],
        b"data:",
        b"event: x",
        b": c",
        b"\n",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\r\n\r\n",
        b"{\"a\":1}",
        b"\xc3\xa4",
        b"\xff",
        b"\xef\xbb\xbf",
        b"a long stretch of text",
        b"\0",
    ]);
    prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_split_gives_the_same_events_and_every_byte(
        stream in streams(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        limit in 8_usize..200,
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut from = 0;
        for to in cuts.into_iter().chain([stream.len()]) {
            chunks.push(&stream[from..to]);
            from = to;
        }
        let (whole, cut) = (split(&[&stream], limit), split(&chunks, limit));
        for pieces in [&whole, &cut] {
            let joined: Vec<u8> = pieces.iter().flat_map(|piece| piece.raw().to_vec()).collect();
            prop_assert_eq!(&joined, &stream);
        }
        let events = |pieces: &[Piece]| -> Vec<Piece> {
            pieces.iter().filter(|piece| matches!(piece, Piece::Event(_))).cloned().collect()
        };
        prop_assert_eq!(events(&whole), events(&cut));
    }
}
