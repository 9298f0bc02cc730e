//! Edits the documents of a Responses reply: the object that a reply is, its
//! items, and the events about them. What is not named keeps its bytes.

use std::borrow::Cow;

use super::edit::{Piece, elements, members, rebuild};
use super::json::{Cursor, Kind};
use super::object::{member, with_member};
use super::reply_parts::{summed, usage_of};
use super::responses_item::{EntryKind, entry};
use crate::engine::reply::{Fate, Reply};

/// What a document says at its top: which event it is, and what it is about.
#[derive(Debug, Default)]
pub(super) struct Top<'t> {
    /// The event's type; empty where it says none.
    pub(super) kind: Cow<'t, str>,
    /// The event's place in the stream.
    pub(super) sequence: Option<u64>,
    /// The place in the output of the item that it is about.
    pub(super) index: Option<u64>,
    /// The item that it holds.
    pub(super) item: Option<&'t str>,
    /// The reply that it holds.
    pub(super) response: Option<&'t str>,
}

/// Reads what a document says at its top; none where it is no object.
pub(super) fn top(document: &str) -> Option<Top<'_>> {
    let mut top = Top::default();
    for own in members(document).ok()? {
        let value = document.get(own.value)?;
        match own.key.name.as_ref() {
            "type" => top.kind = Cow::Owned(text(value).unwrap_or_default()),
            "sequence_number" => top.sequence = value.parse().ok(),
            "output_index" => top.index = value.parse().ok(),
            "item" => top.item = Some(value),
            "response" => top.response = Some(value).filter(|value| value.starts_with('{')),
            _ => {}
        }
    }
    Some(top)
}

impl Top<'_> {
    /// Whether it is a part of a call's arguments.
    pub(super) fn is_part(&self) -> bool {
        matches!(
            self.kind.as_ref(),
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta"
        )
    }

    /// The kind of the item that the event holds.
    pub(super) fn item_kind(&self) -> Option<EntryKind> {
        self.item.and_then(kind_of)
    }
}

/// What becomes of a reply.
pub(super) struct Edit<'a, F> {
    /// What becomes of each call of the reply.
    pub(super) fate: F,
    /// Nothing that it says goes on, its calls do.
    pub(super) muted: bool,
    /// The items of earlier replies that the client has.
    pub(super) before: &'a [String],
    /// The `usage` of earlier replies.
    pub(super) usage: Option<&'a str>,
}

/// The object that a reply is, edited. `place` gives the place in the client's output of an item, by its place
/// in the upstream's; those without keep their order behind the others. None where it is of another shape.
pub(super) fn edit_response<F: Fn(usize) -> Fate>(
    response: &str,
    reply: &Reply,
    edit: &Edit<'_, F>,
    place: impl Fn(usize) -> Option<u64>,
) -> Option<String> {
    let mut whole = response.to_owned();
    if let Some(output) = member(response, "output").filter(|output| output.starts_with('[')) {
        let spans = elements(output, 0).ok()?;
        let items: Vec<&str> = spans.iter().filter_map(|span| output.get(span.clone())).collect();
        let become_what = whose(&items, reply).into_iter().zip(&items).map(|(call, item)| match call {
            Whose::Call(call) => becoming(item, &(edit.fate)(call)),
            Whose::Twin(calls) if calls.iter().any(|call| (edit.fate)(*call) != Fate::Whole) => {
                Becoming::Nothing
            }
            Whose::Nobody if edit.muted && kind_of(item) == Some(EntryKind::Message) => Becoming::Nothing,
            Whose::Twin(_) | Whose::Nobody => Becoming::Same,
        });
        let become_what: Vec<Becoming> = become_what.collect();
        let standing: Vec<Standing> =
            items.iter().zip(&become_what).map(|(item, new)| new.of(item)).collect();
        let leaves = leaving(&standing);
        let mut kept: Vec<usize> = (0..items.len()).filter(|&at| !leaves[at]).collect();
        kept.sort_by_key(|&at| place(at).unwrap_or(u64::MAX));
        let own = kept.into_iter().map(|at| match &become_what[at] {
            Becoming::Item(new) => Piece::Edited(at, new.clone().into_bytes()),
            _ => Piece::Old(at),
        });
        let pieces = edit.before.iter().map(|item| Piece::New(item.as_bytes())).chain(own);
        let mut new = Vec::with_capacity(output.len());
        rebuild(output.as_bytes(), &(0..output.len()), &spans, pieces, &mut new);
        let new = String::from_utf8(new).ok()?;
        if new != output {
            whole = with_member(&whole, "output", &new)?;
        }
    }
    let sum = edit.usage.zip(usage_of(response)).and_then(|(first, second)| summed(first, second));
    match sum {
        Some(sum) => with_member(&whole, "usage", &sum),
        None => Some(whole),
    }
}

/// The items of a reply's output, as text; none where it has no such list.
pub(super) fn output(response: &str) -> Option<Vec<&str>> {
    let output = member(response, "output").filter(|output| output.starts_with('['))?;
    elements(output, 0).ok()?.into_iter().map(|span| output.get(span)).collect()
}

/// Whose an item of the output is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// This call of the reply.
    Call(usize),
    /// A call that was not read, of the same tool as these.
    Twin(Vec<usize>),
    /// Not a call.
    Nobody,
}

/// Which calls of the reply the items of its output are.
pub(super) fn whose(items: &[&str], reply: &Reply) -> Vec<Whose> {
    let mut free: Vec<bool> = vec![true; reply.calls.len()];
    let mut of = |item: &&str| {
        let Some(entry) = entry(&mut Cursor::new(item)).ok() else { return Whose::Nobody };
        let Some(call) = entry.item.calls.first() else { return Whose::Nobody };
        if !matches!(entry.kind, EntryKind::Call | EntryKind::FreeCall) {
            return Whose::Nobody;
        }
        let alike = |exactly: bool| {
            (0..reply.calls.len()).find(|&at| {
                let known = &reply.calls[at];
                let same = known.id == call.id && known.name == call.name;
                free[at] && same && (!exactly || known.arguments == call.arguments)
            })
        };
        if let Some(at) = alike(true).or_else(|| alike(false)) {
            free[at] = false;
            return Whose::Call(at);
        }
        Whose::Twin((0..reply.calls.len()).filter(|&at| reply.calls[at].name == call.name).collect())
    };
    items.iter().map(&mut of).collect()
}

/// Whether something of a reply's output stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It stays.
    Stays,
    /// It leaves.
    Leaves,
    /// Hidden reasoning: it goes with what follows from it, the items up to the next reasoning.
    Thought,
}

/// What leaves, in order: with all that follows from hidden reasoning the reasoning leaves too, since no list
/// may hold the one without the other.
pub(super) fn leaving(standing: &[Standing]) -> Vec<bool> {
    let mut leaves: Vec<bool> = standing.iter().map(|one| *one == Standing::Leaves).collect();
    for at in (0..standing.len()).filter(|&at| standing[at] == Standing::Thought) {
        let behind = standing[at..].iter().skip_while(|one| **one == Standing::Thought);
        let mut group = behind.take_while(|one| **one != Standing::Thought).peekable();
        leaves[at] = group.peek().is_some() && group.all(|one| *one == Standing::Leaves);
    }
    leaves
}

/// What an item becomes.
enum Becoming {
    Same,
    Item(String),
    Nothing,
}

impl Becoming {
    fn of(&self, item: &str) -> Standing {
        match self {
            Becoming::Nothing => Standing::Leaves,
            Becoming::Same if kind_of(item) == Some(EntryKind::Reasoning) => Standing::Thought,
            Becoming::Same | Becoming::Item(_) => Standing::Stays,
        }
    }
}

fn becoming(item: &str, fate: &Fate) -> Becoming {
    match fate {
        Fate::Whole => Becoming::Same,
        Fate::Drop => Becoming::Nothing,
        // What cannot become the other call must not stay as it is.
        Fate::As { name, arguments } => {
            item_as(item, name, arguments).map_or(Becoming::Nothing, Becoming::Item)
        }
    }
}

/// A call's item with this name and these arguments. None where it is of a kind that cannot have them.
pub(super) fn item_as(item: &str, name: &str, arguments: &str) -> Option<String> {
    let same = member(item, "name").is_some_and(|old| text(old).as_deref() == Some(name));
    match kind_of(item)? {
        EntryKind::Call if member(item, "name").is_some() => {
            let named = if same { item.to_owned() } else { with_member(item, "name", &quoted(name))? };
            // Servers that send the arguments as JSON get JSON back.
            let value = match member(item, "arguments") {
                Some(old) if old.starts_with('{') && arguments.is_empty() => "{}".to_owned(),
                Some(old) if old.starts_with('{') => arguments.to_owned(),
                _ => quoted(arguments),
            };
            with_member(&named, "arguments", &value)
        }
        EntryKind::FreeCall if same => with_member(item, "input", &quoted(arguments)),
        _ => None,
    }
}

/// Whether a call's item says arguments.
pub(super) fn says_arguments(item: &str) -> bool {
    ["arguments", "input"].iter().any(|name| !matches!(member(item, name), None | Some("null" | r#""""#)))
}

/// The kind of an item; none where it is none.
pub(super) fn kind_of(item: &str) -> Option<EntryKind> {
    entry(&mut Cursor::new(item)).ok().map(|entry| entry.kind)
}

/// A text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A JSON string's text.
fn text(value: &str) -> Option<String> {
    let mut cursor = Cursor::new(value);
    (cursor.peek() == Some(Kind::String)).then(|| cursor.string().ok().flatten())?.map(Into::into)
}
