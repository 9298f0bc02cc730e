//! Unquoted values, and the escapes of quoted ones.

use super::super::document::Kind;
use super::scan::find_quote;

/// The kind of an unquoted literal; none if it is a word.
pub(super) fn literal(text: &str) -> Option<Kind> {
    if text.as_bytes().first().is_some_and(|b| b.is_ascii_digit() || *b == b'-') {
        return is_number(text).then_some(Kind::Number);
    }
    match text {
        "true" | "false" | "True" | "False" => Some(Kind::Bool),
        "null" | "None" | "nil" | "undefined" | "NaN" | "nan" => Some(Kind::Null),
        _ => None,
    }
}

/// Whether the text is a number as JSON spells it, with at most 64 bytes.
fn is_number(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let start = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits(start);
    if whole == 0 || bytes.len() > 64 || (whole > 1 && bytes[start] == b'0') {
        return false;
    }
    let mut at = start + whole;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        at += 1 + fraction;
        if fraction == 0 {
            return false;
        }
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(bytes.len().min(at + 1 + sign));
        at += 1 + sign + exponent;
        if exponent == 0 {
            return false;
        }
    }
    at == bytes.len()
}

/// Decodes the escapes that JSON and Python write.
pub(crate) fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = find_quote(rest.as_bytes(), b'\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(c) = rest.chars().next() else { break };
        rest = &rest[c.len_utf8()..];
        match c {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' | 'f' => out.push(' '),
            'u' => rest = unicode_escape(rest, 4, &mut out),
            'U' => rest = unicode_escape(rest, 8, &mut out),
            'x' => rest = unicode_escape(rest, 2, &mut out),
            other => out.push(other),
        }
    }
    out.push_str(rest);
    out
}

/// Decodes `digits` hex digits, with the second half of a surrogate pair where one follows.
fn unicode_escape<'r>(rest: &'r str, digits: usize, out: &mut String) -> &'r str {
    let hex = |text: &str| {
        let part = text.get(..digits)?;
        if part.bytes().all(|b| b.is_ascii_hexdigit()) { u32::from_str_radix(part, 16).ok() } else { None }
    };
    let Some(code) = hex(rest) else { return rest };
    let after = &rest[digits..];
    if (0xd800..0xdc00).contains(&code)
        && let Some(low) = after.strip_prefix("\\u").and_then(hex)
        && (0xdc00..0xe000).contains(&low)
    {
        out.extend(char::from_u32(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)));
        return &after[6..];
    }
    out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_their_kind() {
        for (text, kind) in [
            ("0", Some(Kind::Number)),
            ("-1.50e+3", Some(Kind::Number)),
            ("007", None),
            ("1.", None),
            ("1e", None),
            ("-", None),
            ("1-2", None),
            ("True", Some(Kind::Bool)),
            ("None", Some(Kind::Null)),
            ("yes", None),
            ("", None),
        ] {
            assert_eq!(literal(text), kind, "{text}");
        }
    }

    #[test]
    fn escapes_are_decoded_and_broken_ones_do_no_harm() {
        for (raw, text) in [
            (r#"a\"b\\c"#, r#"a"b\c"#),
            (r"\u00fc\x41", "\u{fc}A"),
            (r"\ud83d\ude00", "\u{1f600}"),
            (r"\ud83d", "\u{fffd}"),
            (r"\u00", "00"),
            ("\\", ""),
            (r"\é", "é"),
        ] {
            assert_eq!(unescape(raw), text, "{raw}");
        }
    }
}
