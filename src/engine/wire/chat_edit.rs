//! Carries out a plan on the body of a Chat Completions request, by splicing bytes.

use super::edit::{Member, Piece, append, elements, members, rebuild, text_part};
use super::json::{Fault, quote};
use super::object::{member, with_member};
use crate::engine::view::{Form, Item, Keep, Plan, Span, View};

/// The type of a part that holds text.
const TEXT: &str = "text";

/// What `plan` makes of the list in `body`, which `view` was read from.
///
/// A brief whose place is not in the rebuilt list goes into a new message in front.
pub(super) fn edits(body: &[u8], view: &View<'_>, plan: &Plan) -> Vec<(Span, Vec<u8>)> {
    let spans: Vec<Span> = view.items.iter().map(|item| item.span.clone()).collect();
    let keep = |index: usize| plan.keep.get(index).unwrap_or(&Keep::Whole);
    let carrier = plan.brief_after.filter(|&index| index < view.items.len() && *keep(index) != Keep::Drop);
    let new = plan.brief.as_deref().filter(|_| carrier.is_none()).map(system_message);

    let mut pieces: Vec<Piece<'_>> = new.iter().map(|message| Piece::New(message)).collect();
    for (index, item) in view.items.iter().enumerate() {
        pieces.extend(put_back(plan, |place| place == index));
        if *keep(index) == Keep::Drop {
            continue;
        }
        let brief = plan.brief.as_deref().filter(|_| carrier == Some(index));
        let arguments = |call| plan.arguments_of(index, call);
        pieces.push(match edited(body, item, keep(index), brief, &arguments) {
            Some(bytes) => Piece::Edited(index, bytes),
            None => Piece::Old(index),
        });
    }
    pieces.extend(put_back(plan, |place| place >= view.items.len()));

    let added = plan.put_back.iter().map(|(_, bytes)| bytes.len() + 1).sum::<usize>();
    let brief = plan.brief.as_ref().map_or(0, |brief| brief.len() + brief.len() / 8 + 64);
    let mut out = Vec::with_capacity(view.list.len() + added + brief);
    rebuild(body, &view.list, &spans, pieces, &mut out);
    vec![(view.list.clone(), out)]
}

fn put_back(plan: &Plan, here: impl Fn(usize) -> bool) -> impl Iterator<Item = Piece<'_>> {
    plan.put_back.iter().filter(move |(place, _)| here(*place)).map(|(_, bytes)| Piece::New(bytes))
}

fn system_message(brief: &str) -> Vec<u8> {
    let mut out = br#"{"role":"system","content":"#.to_vec();
    quote(brief, &mut out);
    out.push(b'}');
    out
}

/// The message's new bytes, or none where it stays as it is.
fn edited<'a>(
    body: &[u8],
    item: &Item<'_>,
    keep: &Keep,
    brief: Option<&str>,
    arguments: &impl Fn(usize) -> Option<&'a str>,
) -> Option<Vec<u8>> {
    let (cut, shortened) = match keep {
        Keep::Whole | Keep::Drop => (&[][..], None),
        Keep::WithoutCalls(calls) => (calls.as_slice(), None),
        Keep::Shortened(text) => (&[][..], Some(text.as_str())),
    };
    let start = |call: &usize| item.calls.get(*call)?.span.start.checked_sub(item.span.start);
    let other: Vec<(usize, &str)> =
        (0..item.calls.len()).filter_map(|call| Some((start(&call)?, arguments(call)?))).collect();
    if cut.is_empty() && shortened.is_none() && brief.is_none() && other.is_empty() {
        return None;
    }
    let text = std::str::from_utf8(body.get(item.span.clone())?).ok()?;
    let cut: Vec<usize> = cut.iter().filter_map(start).collect();
    edit_message(&Message { text, item, cut, other, shortened, brief }).ok()
}

/// A message to edit. Places are counted from the message's first byte.
struct Message<'a> {
    text: &'a str,
    item: &'a Item<'a>,
    /// Where the calls start that are cut out.
    cut: Vec<usize>,
    /// Where the calls start that get other arguments, and these.
    other: Vec<(usize, &'a str)>,
    shortened: Option<&'a str>,
    brief: Option<&'a str>,
}

impl Message<'_> {
    /// The other arguments of the call that starts here.
    fn arguments(&self, start: usize) -> Option<&str> {
        self.other.iter().find(|(at, _)| *at == start).map(|(_, text)| *text)
    }
}

fn edit_message(message: &Message<'_>) -> Result<Vec<u8>, Fault> {
    let members = members(message.text)?;
    let mut pieces = Vec::with_capacity(members.len() + 1);
    for (index, member) in members.iter().enumerate() {
        pieces.extend(match member.key.name.as_ref() {
            "content" => {
                let old = message.text.get(member.value.clone()).unwrap_or_default();
                Some(with_value(message, member, index, content(message, old)?))
            }
            "tool_calls" => calls(message, member, index)?,
            "function_call" if message.cut.contains(&member.value.start) => None,
            "function_call" => {
                let old = message.text.get(member.value.clone()).unwrap_or_default();
                let new = message.arguments(member.value.start).and_then(|text| called_with(old, text));
                Some(with_value(message, member, index, new.map(String::into_bytes)))
            }
            _ => Some(Piece::Old(index)),
        });
    }
    let absent = !members.iter().any(|member| member.key.name == "content");
    let value = if absent { content(message, "null")? } else { None };
    let added = value.map(|value| [br#""content":"#.as_slice(), &value].concat());
    pieces.extend(added.as_deref().map(Piece::New));

    let spans: Vec<Span> = members.iter().map(|member| member.key.start..member.value.end).collect();
    let mut out = Vec::with_capacity(message.text.len());
    rebuild(message.text.as_bytes(), &(0..message.text.len()), &spans, pieces, &mut out);
    Ok(out)
}

/// The member with another value, or as it was.
fn with_value<'a>(
    message: &Message<'_>,
    member: &Member<'_>,
    index: usize,
    value: Option<Vec<u8>>,
) -> Piece<'a> {
    let Some(value) = value else { return Piece::Old(index) };
    let key = message.text.get(member.key.start..member.value.start).unwrap_or_default();
    Piece::Edited(index, [key.as_bytes(), &value].concat())
}

/// The content's new value in place of `old`, or none where it stays.
fn content(message: &Message<'_>, old: &str) -> Result<Option<Vec<u8>>, Fault> {
    let mut out = Vec::new();
    match (message.shortened, message.brief) {
        (Some(text), _) if message.item.form == Form::Parts => {
            out.push(b'[');
            text_part(TEXT, text, &mut out);
            out.push(b']');
        }
        (Some(text), _) => quote(text, &mut out),
        (None, Some(brief)) => append(message.item, old, brief, TEXT, &mut out)?,
        (None, None) => return Ok(None),
    }
    Ok(Some(out))
}

/// `tool_calls` without the calls that are cut out; none where no call is left.
fn calls<'a>(message: &Message<'_>, member: &Member<'_>, index: usize) -> Result<Option<Piece<'a>>, Fault> {
    let elements = elements(message.text, member.value.start)?;
    let left: Vec<usize> =
        (0..elements.len()).filter(|&element| !message.cut.contains(&elements[element].start)).collect();
    let edited = left.iter().any(|&element| message.arguments(elements[element].start).is_some());
    if left.len() == elements.len() && !edited {
        return Ok(Some(Piece::Old(index)));
    }
    if left.is_empty() {
        return Ok(None);
    }
    let pieces = left.into_iter().map(|element| {
        let old = message.text.get(elements[element].clone()).unwrap_or_default();
        let new = message.arguments(elements[element].start).and_then(|text| call_with(old, text));
        new.map_or(Piece::Old(element), |new| Piece::Edited(element, new.into_bytes()))
    });
    let mut value = Vec::with_capacity(member.value.len());
    rebuild(message.text.as_bytes(), &member.value, &elements, pieces, &mut value);
    Ok(Some(with_value(message, member, index, Some(value))))
}

/// An element of `tool_calls` with other arguments.
pub(super) fn call_with(call: &str, arguments: &str) -> Option<String> {
    with_member(call, "function", &called_with(member(call, "function")?, arguments)?)
}

/// The inside of `function` or `function_call` with other arguments.
pub(super) fn called_with(called: &str, arguments: &str) -> Option<String> {
    let mut value = Vec::with_capacity(arguments.len() + arguments.len() / 8 + 2);
    quote(arguments, &mut value);
    with_member(called, "arguments", std::str::from_utf8(&value).ok()?)
}

#[cfg(test)]
mod tests;
