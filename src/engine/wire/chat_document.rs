//! Edits one JSON document of a Chat Completions reply, a whole body or one
//! chunk of a stream: calls leave, become others or get another place. What is
//! not named keeps its bytes.

use super::chat_edit::called_with;
use super::edit::{Piece, elements, members, rebuild};
use super::json::{Cursor, Kind, quote};
use super::object::{has_member, member, with_member, without_member};
use super::reply_parts::{summed, usage_of};
use super::waiting::Earlier;
use crate::engine::view::Span;

/// What becomes of the document.
#[derive(Debug, Default)]
pub(super) struct Edit<'a> {
    /// What becomes of each call or fragment of one, in the document's order.
    pub(super) calls: &'a [Change<'a>],
    /// Nothing but the calls stays of what the choice says.
    pub(super) only_calls: bool,
    /// What the client knows of an earlier reply, which this one goes on from.
    pub(super) earlier: Option<&'a Earlier>,
}

/// What becomes of a call, or of a fragment of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change<'a> {
    /// It stays, perhaps in another place.
    Keep(Place),
    /// It leaves.
    Cut,
    /// It becomes the whole call, in one piece.
    As { id: &'a str, name: &'a str, arguments: &'a str, place: Place },
    /// Its arguments have gone on in an earlier fragment: it stays if it says anything else.
    Trim(Place),
}

/// Where a call stands among the reply's calls, and where it shall: a fragment whose index is `from` gets `to`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Change<'_> {
    /// Whether nothing changes.
    pub(super) fn is_none(&self) -> bool {
        matches!(self, Change::Keep(place) if place.from == place.to)
    }
}

/// The edited document.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Edited {
    /// Nothing is left that would say anything.
    Nothing,
    /// This.
    Document(String),
}

/// Edits a document. None where it is not of the shape that `edit` was made for.
pub(super) fn edit(document: &str, edit: &Edit<'_>) -> Option<Edited> {
    let mut whole = document.to_owned();
    let mut bare = false;
    if let Some(choices) = member(document, "choices").filter(|choices| choices.starts_with('[')) {
        let spans = elements(choices, 0).ok()?;
        let first = spans.iter().position(|span| is_first(&choices[span.clone()]));
        if let Some(at) = first {
            let choice = &choices[spans[at].clone()];
            let (new, says) = edit_choice(choice, edit)?;
            let cut = edit.calls.iter().any(|change| matches!(change, Change::Cut | Change::Trim(_)));
            let muted = edit.earlier.is_some_and(|earlier| earlier.began || earlier.spoke);
            bare =
                !says && (cut || muted) && new != choice && spans.len() == 1 && is_silent(document, "usage");
            let pieces = (0..spans.len()).map(|index| {
                if index == at { Piece::Edited(at, new.clone().into_bytes()) } else { Piece::Old(index) }
            });
            whole = with_member(&whole, "choices", &list(choices, &spans, pieces)?)?;
        } else if !edit.calls.is_empty() {
            return None;
        }
    } else if !edit.calls.is_empty() {
        return None;
    }
    if bare {
        return Some(Edited::Nothing);
    }
    if edit.only_calls && !is_silent(&whole, "usage") {
        whole = with_member(&whole, "usage", "null")?;
    }
    if let Some(earlier) = edit.earlier {
        whole = retouch(whole, earlier)?;
    }
    Some(Edited::Document(whole))
}

/// The calls or fragments of the first choice, in the document's order: each element, and whether it is the
/// one call of the legacy form.
pub(super) fn calls(document: &str) -> Option<Vec<(&str, bool)>> {
    let choices = member(document, "choices")?;
    let span = elements(choices, 0).ok()?.into_iter().find(|span| is_first(&choices[span.clone()]))?;
    let (_, said) = said(&choices[span])?;
    let mut calls = Vec::new();
    for part in parts(said)? {
        match part.kind {
            Part::Calls(list) => calls.extend(list.into_iter().map(|span| (&said[span], false))),
            Part::Legacy => calls.push((&said[part.value], true)),
            Part::Other => {}
        }
    }
    Some(calls)
}

/// What the first choice says: its `message` or `delta`.
pub(super) fn first_said(document: &str) -> Option<&str> {
    let choices = member(document, "choices")?;
    let span = elements(choices, 0).ok()?.into_iter().find(|span| is_first(&choices[span.clone()]))?;
    said(&choices[span]).map(|(_, said)| said)
}

fn retouch(document: String, earlier: &Earlier) -> Option<String> {
    let mut whole = document;
    if !earlier.id.is_empty() && member(&whole, "id").is_some_and(|id| id.starts_with('"')) {
        whole = with_member(&whole, "id", &quoted(&earlier.id)?)?;
    }
    if let Some((first, second)) = earlier.usage.as_deref().zip(usage_of(&whole)) {
        let sum = summed(first, second)?;
        whole = with_member(&whole, "usage", &sum)?;
    }
    Some(whole)
}

/// The choice edited, and whether it still says anything.
fn edit_choice(choice: &str, edit: &Edit<'_>) -> Option<(String, bool)> {
    let Some((key, said)) = said(choice) else {
        return edit.calls.is_empty().then(|| (choice.to_owned(), true));
    };
    let (new, says) = edit_said(said, edit)?;
    let mut whole = if new == said { choice.to_owned() } else { with_member(choice, key, &new)? };
    if edit.only_calls && !is_silent(&whole, "finish_reason") {
        whole = with_member(&whole, "finish_reason", "null")?;
    }
    let says = says || !is_silent(&whole, "finish_reason");
    Some((whole, says))
}

fn edit_said(said: &str, edit: &Edit<'_>) -> Option<(String, bool)> {
    let mut changes = edit.calls.iter();
    let (mut pieces, mut spans, mut says) = (Vec::new(), Vec::new(), false);
    for (index, part) in parts(said)?.into_iter().enumerate() {
        spans.push(part.key.start..part.value.end);
        let value = &said[part.value.clone()];
        let new = match &part.kind {
            Part::Calls(list) => {
                let mut left = Vec::new();
                for span in list {
                    let element = &said[span.clone()];
                    left.push(changed(element, *changes.next()?).ok()?);
                }
                if left.iter().all(Option::is_none) && !left.is_empty() {
                    continue;
                }
                let pieces = left.into_iter().enumerate().filter_map(|(at, new)| {
                    let new = new?;
                    Some(Piece::Edited(at, new.into_bytes()))
                });
                let spans: Vec<Span> = list
                    .iter()
                    .map(|span| span.start - part.value.start..span.end - part.value.start)
                    .collect();
                says |= !spans.is_empty();
                self::list(value, &spans, pieces)?
            }
            Part::Legacy => {
                let Some(new) = changed_legacy(value, *changes.next()?).ok()? else { continue };
                says = true;
                new
            }
            Part::Other if edit.only_calls => continue,
            Part::Other => {
                let name = part.name.as_str();
                let earlier = edit.earlier;
                let leaves = match name {
                    "role" => earlier.is_some_and(|earlier| earlier.began),
                    "content" | "refusal" => earlier.is_some_and(|earlier| earlier.spoke),
                    _ => false,
                };
                if leaves {
                    continue;
                }
                says |= name != "role" && !says_nothing(value);
                pieces.push(Piece::Old(index));
                continue;
            }
        };
        let head = &said[part.key.start..part.value.start];
        pieces.push(Piece::Edited(index, [head, &new].concat().into_bytes()));
    }
    // A document with fewer calls than were seen in it is not the one that was seen.
    if changes.next().is_some() {
        return None;
    }
    Some((list(said, &spans, pieces)?, says))
}

/// The element is of no shape that can be edited.
#[derive(Debug)]
pub(super) struct Odd;

/// The element as it goes on; none where it does not.
pub(super) fn changed(element: &str, change: Change<'_>) -> Result<Option<String>, Odd> {
    Ok(match change {
        Change::Cut => None,
        Change::Keep(place) => Some(placed(element, place).ok_or(Odd)?),
        Change::As { id, name, arguments, place } => {
            Some(whole_call(element, id, name, arguments, place).ok_or(Odd)?)
        }
        Change::Trim(place) => {
            let (rest, _) = without_member(element, "function").ok_or(Odd)?;
            let own = members(&rest).map_err(|_| Odd)?;
            let more = own.iter().any(|own| {
                let told = matches!(own.key.name.as_ref(), "index" | "id" | "type");
                !told && !says_nothing(&rest[own.value.clone()])
            });
            if more { Some(placed(&rest, place).ok_or(Odd)?) } else { None }
        }
    })
}

fn whole_call(element: &str, id: &str, name: &str, arguments: &str, place: Place) -> Option<String> {
    let mut whole = placed(element, place)?;
    if !id.is_empty() && member(&whole, "id").is_none_or(|old| text(old).as_deref() != Some(id)) {
        whole = with_member(&whole, "id", &quoted(id)?)?;
    }
    let called = member(&whole, "function").filter(|called| called.starts_with('{')).unwrap_or("{}");
    let called = called_as(called, name, arguments)?;
    with_member(&whole, "function", &called)
}

fn changed_legacy(called: &str, change: Change<'_>) -> Result<Option<String>, Odd> {
    Ok(match change {
        Change::Cut | Change::Trim(_) => None,
        Change::Keep(_) => Some(called.to_owned()),
        Change::As { name, arguments, .. } => Some(called_as(called, name, arguments).ok_or(Odd)?),
    })
}

fn called_as(called: &str, name: &str, arguments: &str) -> Option<String> {
    let mut whole = called.to_owned();
    if member(&whole, "name").is_none_or(|old| text(old).as_deref() != Some(name)) {
        whole = with_member(&whole, "name", &quoted(name)?)?;
    }
    // Servers that send the arguments as JSON get JSON back.
    if member(&whole, "arguments").is_some_and(|old| old.starts_with('{')) {
        return with_member(&whole, "arguments", arguments);
    }
    called_with(&whole, arguments)
}

fn placed(element: &str, place: Place) -> Option<String> {
    let from = place.from.to_string();
    if place.from == place.to || member(element, "index") != Some(&from) {
        return Some(element.to_owned());
    }
    with_member(element, "index", &place.to.to_string())
}

/// One member of what a choice says.
struct Said {
    key: Span,
    name: String,
    value: Span,
    kind: Part,
}

enum Part {
    /// The list of calls, by elements.
    Calls(Vec<Span>),
    /// The one call of the legacy form.
    Legacy,
    Other,
}

/// The members of what a choice says. Of a key that comes twice the last one counts.
fn parts(said: &str) -> Option<Vec<Said>> {
    let own = members(said).ok()?;
    let last = |name: &str| own.iter().rposition(|member| member.key.name == name);
    let (calls, legacy) = (last("tool_calls"), last("function_call"));
    let mut parts = Vec::with_capacity(own.len());
    for (index, member) in own.iter().enumerate() {
        let value = &said[member.value.clone()];
        let kind = if Some(index) == calls && value.starts_with('[') {
            Part::Calls(elements(said, member.value.start).ok()?)
        } else if Some(index) == legacy && value.starts_with('{') {
            Part::Legacy
        } else {
            Part::Other
        };
        let name = member.key.name.clone().into_owned();
        parts.push(Said {
            key: member.key.start..member.value.start,
            name,
            value: member.value.clone(),
            kind,
        });
    }
    Some(parts)
}

/// What a choice says, and under which key.
fn said(choice: &str) -> Option<(&'static str, &str)> {
    let of = |key| member(choice, key).filter(|said| said.starts_with('{')).map(|said| (key, said));
    of("delta").or_else(|| of("message"))
}

fn is_first(choice: &str) -> bool {
    choice.starts_with('{') && matches!(member(choice, "index"), None | Some("0" | "null"))
}

fn is_silent(object: &str, name: &str) -> bool {
    !has_member(object, name) || member(object, name).is_some_and(says_nothing)
}

fn says_nothing(value: &str) -> bool {
    let inside = |open, close| value.strip_prefix(open).and_then(|rest: &str| rest.strip_suffix(close));
    value == "null"
        || value == r#""""#
        || inside('[', ']').is_some_and(|rest| rest.trim().is_empty())
        || inside('{', '}').is_some_and(|rest| rest.trim().is_empty())
}

/// A list or object at the front of `text`, rebuilt.
fn list<'a>(text: &str, spans: &[Span], pieces: impl IntoIterator<Item = Piece<'a>>) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    rebuild(text.as_bytes(), &(0..text.len()), spans, pieces, &mut out);
    String::from_utf8(out).ok()
}

fn quoted(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len() + 2);
    quote(text, &mut out);
    String::from_utf8(out).ok()
}

/// A JSON string's text.
fn text(value: &str) -> Option<String> {
    let mut cursor = Cursor::new(value);
    (cursor.peek() == Some(Kind::String)).then(|| cursor.string().ok().flatten())?.map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAY: Place = Place { from: 0, to: 0 };

    #[track_caller]
    fn check(document: &str, changes: &[Change<'_>], expected: &str) {
        let got = edit(document, &Edit { calls: changes, ..Edit::default() });
        let expected = match expected {
            "" => Edited::Nothing,
            text => Edited::Document(text.to_owned()),
        };
        assert_eq!(got, Some(expected), "{document}");
    }

    fn becomes<'a>(name: &'a str, arguments: &'a str) -> Change<'a> {
        Change::As { id: "c1", name, arguments, place: STAY }
    }

    /// A chunk whose delta is this.
    fn chunk(delta: &str) -> String {
        format!(
            r#"{{"id":"r", "choices":[{{"index":0, "delta":{delta},"finish_reason":null}}],"usage":null}}"#
        )
    }

    #[test]
    fn a_call_becomes_another_and_the_rest_keeps_its_bytes() {
        check(
            &chunk(
                r#"{"role":"assistant","tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":""},"x":[ 1 ]}]}"#,
            ),
            &[becomes("f", r#"{"a":1}"#)],
            &chunk(
                r#"{"role":"assistant","tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\":1}"},"x":[ 1 ]}]}"#,
            ),
        );
        // The id or the name came later than the first fragment.
        check(
            &chunk(r#"{"tool_calls":[{"index":0,"id":""}]}"#),
            &[becomes("f", "{}")],
            &chunk(r#"{"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}}]}"#),
        );
        check(
            r#"{"choices":[{"message":{"content":null, "function_call":{"arguments":"{\"h\":1}","name":"f"}}}]}"#,
            &[becomes("f", "{}")],
            r#"{"choices":[{"message":{"content":null, "function_call":{"arguments":"{}","name":"f"}}}]}"#,
        );
        check(
            r#"{"choices":[{"message":{"tool_calls":[{"id":"c1","function":{"name":"f","arguments":{"h":1}}}]}}]}"#,
            &[becomes("f", "{}")],
            r#"{"choices":[{"message":{"tool_calls":[{"id":"c1","function":{"name":"f","arguments":{}}}]}}]}"#,
        );
    }

    #[test]
    fn what_is_cut_leaves_no_trace() {
        let one = r#"{"index":0,"function":{"arguments":"x"}}"#;
        let two = r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}"#;
        let keep = Change::Keep(Place { from: 1, to: 0 });
        check(&chunk(&format!(r#"{{"tool_calls":[{one}]}}"#)), &[Change::Cut], "");
        check(
            &chunk(&format!(r#"{{"content":"Hi","tool_calls":[{one}]}}"#)),
            &[Change::Cut],
            &chunk(r#"{"content":"Hi"}"#),
        );
        check(
            &chunk(&format!(r#"{{"tool_calls":[{one}, {two}]}}"#)),
            &[Change::Cut, keep],
            &chunk(r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]}"#),
        );
        let end = r#"{"choices":[{"delta":{"tool_calls":[{"index":0}]},"finish_reason":"stop"}]}"#;
        check(end, &[Change::Cut], r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#);
    }

    #[test]
    fn a_later_fragment_stays_only_for_what_else_it_says() {
        check(
            &chunk(r#"{"tool_calls":[{"index":0,"function":{"arguments":"x"}}]}"#),
            &[Change::Trim(STAY)],
            "",
        );
        check(
            &chunk(r#"{"tool_calls":[{"index":0,"function":{"arguments":"x"},"extra_content":{"s":"t"}}]}"#),
            &[Change::Trim(STAY)],
            &chunk(r#"{"tool_calls":[{"index":0,"extra_content":{"s":"t"}}]}"#),
        );
    }

    #[test]
    fn the_held_part_of_a_mixed_chunk_is_its_calls() {
        let mixed = r#"{"choices":[{"delta":{"content":"Hi","tool_calls":[{"index":0,"id":"a"},{"index":1,"id":"b"}]},"finish_reason":"x"}],"usage":{"total_tokens":2}}"#;
        let held =
            edit(mixed, &Edit { calls: &[Change::Cut, Change::Keep(STAY)], only_calls: true, earlier: None });
        let expected = r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b"}]},"finish_reason":null}],"usage":null}"#;
        assert_eq!(held, Some(Edited::Document(expected.to_owned())));
    }

    #[test]
    fn what_goes_on_from_an_earlier_reply_looks_like_one() {
        let earlier = Earlier {
            id: "first".into(),
            began: true,
            spoke: true,
            usage: Some(r#"{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":3},"x":1}"#.into()),
            ..Earlier::default()
        };
        let check = |document: &str, expected: Option<&str>| {
            let got = edit(document, &Edit { earlier: Some(&earlier), ..Edit::default() });
            let expected = expected.map_or(Edited::Nothing, |text| Edited::Document(text.to_owned()));
            assert_eq!(got, Some(expected), "{document}");
        };
        check(r#"{"id":"r","choices":[{"delta":{"role":"assistant","content":""}}]}"#, None);
        check(r#"{"id":"r","choices":[{"delta":{"content":"Again."}}]}"#, None);
        check(
            r#"{"id":"r","choices":[{"delta":{},"finish_reason":"stop"}]}"#,
            Some(r#"{"id":"first","choices":[{"delta":{},"finish_reason":"stop"}]}"#),
        );
        check(
            r#"{"id":"r","choices":[],"usage":{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":4},"y":2}}"#,
            Some(
                r#"{"id":"first","choices":[],"usage":{"prompt_tokens":15,"prompt_tokens_details":{"cached_tokens":7},"y":2}}"#,
            ),
        );
    }

    #[test]
    fn a_document_of_another_shape_is_not_edited() {
        let cut = |document: &str| edit(document, &Edit { calls: &[Change::Cut], ..Edit::default() });
        for document in
            ["", "[]", "{}", r#"{"choices":[]}"#, r#"{"choices":[{"delta":{}}]}"#, r#"{"choices":[7]}"#]
        {
            assert_eq!(cut(document), None, "{document}");
        }
    }
}
