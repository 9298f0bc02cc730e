use super::*;
use proptest::prelude::*;
use serde::de::IgnoredAny;

fn read(text: &str) -> Result<(), Fault> {
    let mut cursor = Cursor::new(text);
    cursor.skip()?;
    cursor.end()
}

/// `skip` and a reading that goes down every object and list agree with serde_json.
fn check(text: &str) {
    let ours = read(text);
    let theirs = serde_json::from_slice::<IgnoredAny>(text.as_bytes());
    if ours != Err(Fault::TooDeep) {
        assert_eq!(ours.is_ok(), theirs.is_ok(), "{text:?}: {ours:?} {theirs:?}");
    }
    let mut cursor = Cursor::new(text);
    let descended = descend(&mut cursor).and_then(|()| cursor.end());
    assert_eq!(ours, descended, "{text:?}");
}

fn descend(cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    match cursor.peek() {
        Some(Kind::Object) => cursor.object(|inner, _| descend(inner)).map(drop),
        Some(Kind::Array) => cursor.array(descend).map(drop),
        Some(Kind::String) => cursor.string().map(drop),
        _ => cursor.skip().map(drop),
    }
}

fn decoded(text: &str) -> Cow<'_, str> {
    Cursor::new(text).string().expect("JSON").expect("a string")
}

#[test]
fn the_grammar_is_strict() {
    for text in [
        "",
        " ",
        "{}",
        "[]",
        "[ ]",
        "{ }",
        "[,]",
        "[1,]",
        "{,}",
        r#"{"a":1,}"#,
        r#"{"a"}"#,
        r#"{"a":}"#,
        "{a:1}",
        "nul",
        "null",
        "nulll",
        "true",
        "false",
        "tru e",
        "0",
        "-0",
        "01",
        "-",
        "1.",
        ".5",
        "1.5",
        "1e",
        "1e+",
        "1e+5",
        "1E-5",
        "1.5e3 ",
        "+1",
        "NaN",
        "[1 2]",
        r#""a"#,
        r#""\x""#,
        r#""\u12g4""#,
        r#""\ud800""#,
        r#""\"#,
        "\"\n\"",
        "\"\u{7f}\"",
        "{}{}",
        "[1]]",
        "[[[[1],2],{\"a\":[]}]]",
        "[}",
        "{]",
        "\u{feff}{}",
        "1 1",
        r#"{"a":1 "b":2}"#,
    ] {
        check(text);
    }
}

#[test]
fn depth_is_bounded_and_the_bound_is_reached() {
    let nest = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let mixed = |depth: usize| r#"{"a":[{"":"#.repeat(depth) + "1" + &"}]}".repeat(depth);
    check(&nest(MAX_DEPTH));
    assert_eq!(read(&nest(MAX_DEPTH)), Ok(()));
    check(&nest(MAX_DEPTH + 1));
    assert_eq!(read(&nest(MAX_DEPTH + 1)), Err(Fault::TooDeep));
    check(&mixed(42));
    assert_eq!(read(&mixed(42)), Ok(()));
    check(&mixed(43));
    assert_eq!(read(&mixed(43)), Err(Fault::TooDeep));
    assert_eq!(read(&"[".repeat(1_000_000)), Err(Fault::TooDeep));
}

#[test]
fn strings_are_borrowed_until_an_escape_needs_decoding() {
    assert!(matches!(decoded(r#" "häuser, plain and long enough for a chunk" "#), Cow::Borrowed(_)));
    assert_eq!(decoded(r#""a\"\\\/\b\f\n\r\tz""#), "a\"\\/\u{8}\u{c}\n\r\tz");
    assert_eq!(decoded(r#""\u00e4\uD83D\uDE00""#), "ä😀");
    assert_eq!(
        decoded(r#""\ud83dx\ude00\ud83d\u0041\ud83d\ud83d\ude00""#),
        "\u{fffd}x\u{fffd}\u{fffd}A\u{fffd}😀"
    );
}

#[test]
fn members_come_in_order_with_their_places_and_duplicates() {
    let text = r#" { "a" : [1, 2] , "b":"x", "\u0061": {"c":null} } tail"#;
    let mut cursor = Cursor::new(text);
    let mut seen = Vec::new();
    let span = cursor
        .object::<Fault>(|inner, key| {
            let value = inner.skip()?;
            seen.push((key.name.into_owned(), &text[key.start..value.end], &text[value]));
            Ok(())
        })
        .expect("JSON")
        .expect("an object");
    assert_eq!(&text[span.end..], " tail");
    let expected = [
        ("a".to_owned(), r#""a" : [1, 2]"#, "[1, 2]"),
        ("b".to_owned(), r#""b":"x""#, r#""x""#),
        ("a".to_owned(), r#""\u0061": {"c":null}"#, r#"{"c":null}"#),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_reader_skips_what_is_of_another_kind() {
    let mut cursor = Cursor::new(r#"[{"a":1}, "x", 7, -1, [2]]"#);
    let mut found = Vec::new();
    cursor
        .array::<Fault>(|inner| {
            found.push(inner.count()?);
            Ok(())
        })
        .expect("JSON");
    assert_eq!(found, [None, None, Some(7), None, None]);
}

#[test]
fn a_reading_goes_on_behind_a_known_element() {
    let text = r#"{"list":[{"a":1} , {"a":2},{"a":3} ],"after":true} "#;
    let at = text.find("} ,").expect("there") + 1;
    let mut cursor = Cursor::resume(text, at, 2);
    let mut rest = Vec::new();
    cursor
        .array_rest::<Fault>(|inner| {
            let span = inner.skip()?;
            rest.push(&text[span]);
            Ok(())
        })
        .expect("JSON");
    assert_eq!(rest, [r#"{"a":2}"#, r#"{"a":3}"#]);
    let mut keys = Vec::new();
    cursor
        .object_rest::<Fault>(|_, key| {
            keys.push(key.name.into_owned());
            Ok(())
        })
        .expect("JSON");
    cursor.end().expect("nothing behind it");
    assert_eq!(keys, ["after"]);
}

#[test]
fn a_scan_names_every_key_at_any_depth() {
    let text = r#"{"a":[{"b":1},{"c":{"d":[]}}],"e":2}"#;
    let mut keys = Vec::new();
    Cursor::new(text).scan(|key, at| keys.push((key, &text[at..=at]))).expect("JSON");
    assert_eq!(keys, [("a", "["), ("b", "1"), ("c", "{"), ("d", "["), ("e", "2")]);
}

/// Texts near JSON: its own tokens, in any order.
fn tokens() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"\\u00e9\\n\"",
        "\"",
        "\\",
        "0",
        "12",
        "-",
        ".",
        "e",
        "E+",
        "true",
        "false",
        "null",
        "nul",
        " ",
        "\n",
        "\u{1}",
        "\"ü\"",
        "\\ud800",
        "\u{feff}",
    ]);
    prop::collection::vec(token, 0..24).prop_map(|tokens| tokens.concat())
}

/// Values as serde_json writes them, compact or not.
fn values() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    let value = leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    });
    (value, any::<bool>()).prop_map(
        |(value, pretty)| {
            if pretty { format!("{value:#}") } else { value.to_string() }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn accepts_exactly_what_serde_json_accepts_of_token_soup(text in tokens()) {
        check(&text);
    }

    #[test]
    fn accepts_exactly_what_serde_json_accepts_of_any_text(text in ".*") {
        check(&text);
    }

    #[test]
    fn accepts_values_and_refuses_their_prefixes_as_serde_json_does(text in values(), cut in any::<prop::sample::Index>()) {
        prop_assert_eq!(read(&text), Ok(()));
        check(&text);
        let mut at = cut.index(text.len() + 1);
        while !text.is_char_boundary(at) { at -= 1; }
        check(&text[..at]);
    }

    #[test]
    fn what_is_quoted_reads_back(text in any::<String>()) {
        let mut out = Vec::new();
        quote(&text, &mut out);
        let written = String::from_utf8(out).expect("UTF-8 in, UTF-8 out");
        prop_assert_eq!(decoded(&written), text.as_str());
        prop_assert_eq!(serde_json::from_str::<String>(&written).expect("JSON"), text);
    }

    #[test]
    fn strings_decode_as_serde_json_decodes_them(text in any::<String>()) {
        let escaped: String = text.encode_utf16().fold(String::from("\""), |mut out, unit| {
            use std::fmt::Write;
            write!(out, "\\u{unit:04x}").expect("a string takes all");
            out
        }) + "\"";
        prop_assert_eq!(decoded(&escaped), text.as_str());
    }
}
