//! One JSON object as text: a member put in, replaced or cut out. Whatever is
//! not named keeps its bytes.

use super::edit::{Piece, members, rebuild};
use crate::engine::view::Span;

/// The value of a member, as text; the last one where the key comes twice, as most readers take it. None
/// where `object` is no object or has no such member.
pub fn member<'t>(object: &'t str, name: &str) -> Option<&'t str> {
    let span = members(object).ok()?.into_iter().rfind(|member| member.key.name == name)?.value;
    object.get(span)
}

/// Whether `object` is a JSON object with a member of this name.
pub fn has_member(object: &str, name: &str) -> bool {
    member(object, name).is_some()
}

/// The object with this value under `name`: in the place of the old one, or behind all others. None where
/// `object` is no object.
pub fn with_member(object: &str, name: &str, value: &str) -> Option<String> {
    let whole = outer(object, '{')?;
    let own = members(object).ok()?;
    let spans: Vec<Span> = own.iter().map(|member| member.key.start..member.value.end).collect();
    let place = own.iter().rposition(|member| member.key.name == name);
    let mut added = Vec::new();
    let mut pieces: Vec<Piece<'_>> = (0..own.len()).map(Piece::Old).collect();
    if let Some(at) = place {
        let key = object.get(own[at].key.start..own[at].value.start)?;
        pieces[at] = Piece::Edited(at, [key, value].concat().into_bytes());
    } else {
        super::json::quote(name, &mut added);
        added.push(b':');
        added.extend_from_slice(value.as_bytes());
        pieces.push(Piece::New(&added));
    }
    rebuilt(object, &whole, &spans, pieces)
}

/// The object without the members of this name, and their values. None where `object` is no object.
pub fn without_member<'t>(object: &'t str, name: &str) -> Option<(String, Vec<&'t str>)> {
    let whole = outer(object, '{')?;
    let own = members(object).ok()?;
    let spans: Vec<Span> = own.iter().map(|member| member.key.start..member.value.end).collect();
    let (cut, kept): (Vec<usize>, Vec<usize>) = (0..own.len()).partition(|&at| own[at].key.name == name);
    let values = cut.iter().filter_map(|&at| object.get(own[at].value.clone())).collect();
    Some((rebuilt(object, &whole, &spans, kept.into_iter().map(Piece::Old))?, values))
}

/// The list with one more element behind all others. None where `list` is no list.
pub fn with_element(list: &str, element: &str) -> Option<String> {
    let whole = outer(list, '[')?;
    let spans = super::edit::elements(list, whole.start).ok()?;
    let pieces = (0..spans.len()).map(Piece::Old).chain([Piece::New(element.as_bytes())]);
    rebuilt(list, &whole, &spans, pieces)
}

/// The one value in `text`, which opens with this bracket, without the white space around it.
fn outer(text: &str, bracket: char) -> Option<Span> {
    let mut cursor = super::json::Cursor::new(text);
    let span = cursor.skip().ok()?;
    cursor.end().ok()?;
    text.get(span.clone())?.starts_with(bracket).then_some(span)
}

fn rebuilt<'a>(
    text: &str,
    whole: &Span,
    spans: &[Span],
    pieces: impl IntoIterator<Item = Piece<'a>>,
) -> Option<String> {
    let mut out = text.as_bytes().get(..whole.start)?.to_vec();
    rebuild(text.as_bytes(), whole, spans, pieces, &mut out);
    out.extend_from_slice(text.as_bytes().get(whole.end..)?);
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_put_in_or_replaced() {
        let check = |object: &str, expected: Option<&str>| {
            assert_eq!(with_member(object, "b", "[2]").as_deref(), expected, "{object}");
        };
        check("{}", Some(r#"{"b":[2]}"#));
        check(r#" { "a" : 1.50 } "#, Some(r#" { "a" : 1.50,"b":[2]} "#));
        check(r#"{"b" : 1, "a": 2}"#, Some(r#"{"b" : [2], "a": 2}"#));
        check(r#"{"\u0062":1}"#, Some(r#"{"\u0062":[2]}"#));
        check("[]", None);
        check("{} x", None);
        check("", None);
    }

    #[test]
    fn members_are_cut_out_with_one_comma_each() {
        let check = |object: &str, expected: Option<(&str, &[&str])>| {
            let cut = without_member(object, "b");
            assert_eq!(
                cut.as_ref().map(|(left, values)| (left.as_str(), values.as_slice())),
                expected,
                "{object}"
            );
        };
        check(r#"{"b":{"x":[1]}}"#, Some(("{}", &[r#"{"x":[1]}"#])));
        check(r#"{"a": 1, "b": 2}"#, Some((r#"{"a": 1}"#, &["2"])));
        check(r#"{"b": 2, "a": 1 }"#, Some((r#"{"a": 1 }"#, &["2"])));
        check(r#"{"a":1, "b":2, "c":3}"#, Some((r#"{"a":1,"c":3}"#, &["2"])));
        check(r#"{"b":1,"a":0,"b":2}"#, Some((r#"{"a":0}"#, &["1", "2"])));
        check(r#"{ "a":0 }"#, Some((r#"{ "a":0 }"#, &[])));
        check("[1]", None);
        check(r#"{"b":"#, None);
    }

    #[test]
    fn a_list_takes_one_more() {
        assert_eq!(with_element("[]", "1").as_deref(), Some("[1]"));
        assert_eq!(with_element(r#"[ "a" ]"#, "1").as_deref(), Some(r#"[ "a",1]"#));
        assert_eq!(with_element("{}", "1"), None);
    }
}
