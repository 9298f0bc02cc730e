//! Reads one item of the Responses dialect: of a request's input, or of a reply's output.
//!
//! New kinds of items come every few months. What has a call id is a call, or
//! a result if its kind says so; what has none passes as it is.

use std::borrow::Cow;

use super::json::{Cursor, Kind};
use super::request_parts::{arguments, content};
use super::{Once, Unreadable};
use crate::engine::view::{Call, Form, Item, Role, Seal};

/// An item, with what only this dialect says of it.
#[derive(Debug)]
pub(super) struct Entry<'b> {
    /// The item in the view's terms.
    pub(super) item: Item<'b>,
    /// Its own id, which is not the id that pairs a call with its result. Empty where it has none.
    pub(super) id: Cow<'b, str>,
    /// Its kind.
    pub(super) kind: EntryKind,
    /// How far it has come; none where it does not say.
    pub(super) status: Option<Cow<'b, str>>,
    /// Reasoning that only the provider can read; empty where there is none.
    pub(super) encrypted: Cow<'b, str>,
}

/// The kinds of items that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// Something said.
    Message,
    /// A call with arguments in JSON.
    Call,
    /// A call with free text.
    FreeCall,
    /// What a call gave.
    Result,
    /// Hidden reasoning.
    Reasoning,
    /// Another item by its id, which only the upstream has.
    Reference,
    /// Anything else.
    Other,
}

/// An item with nothing in it.
pub(super) fn blank<'b>(role: Role) -> Item<'b> {
    Item {
        span: 0..0,
        role,
        name: None,
        text: Cow::Borrowed(""),
        form: Form::None,
        content: None,
        calls: Vec::new(),
        answers: None,
        seal: Seal::Open,
        media: 0,
    }
}

/// The fields of an item, before its kind is known.
struct Fields<'b> {
    kind: Option<Cow<'b, str>>,
    role: Option<Cow<'b, str>>,
    id: Option<Cow<'b, str>>,
    call_id: Option<Cow<'b, str>>,
    approval: Option<Cow<'b, str>>,
    name: Option<Cow<'b, str>>,
    arguments: Cow<'b, str>,
    status: Option<Cow<'b, str>>,
    encrypted: Option<Cow<'b, str>>,
    /// Holds what `content` says.
    said: Item<'b>,
    /// Holds what `output` says.
    given: Item<'b>,
    signed: bool,
    /// `content` is neither text nor parts.
    odd: bool,
}

/// Reads the item that comes next.
pub(super) fn entry<'b>(cursor: &mut Cursor<'b>) -> Result<Entry<'b>, Unreadable> {
    let mut once = Once::new(&[
        "type",
        "role",
        "content",
        "id",
        "call_id",
        "approval_request_id",
        "name",
        "arguments",
        "input",
        "action",
        "operation",
        "output",
        "status",
        "encrypted_content",
    ]);
    let mut fields = Fields {
        kind: None,
        role: None,
        id: None,
        call_id: None,
        approval: None,
        name: None,
        arguments: Cow::Borrowed(""),
        status: None,
        encrypted: None,
        said: blank(Role::Other),
        given: blank(Role::Tool),
        signed: false,
        odd: false,
    };
    let start = cursor.start();
    let span = cursor.object(|cursor, key| {
        once.note(&key)?;
        match key.name.as_ref() {
            "type" => fields.kind = cursor.string()?,
            "role" => fields.role = cursor.string()?,
            "content" => (fields.signed, fields.odd) = contained(cursor, &mut fields.said)?,
            "id" => fields.id = cursor.string()?,
            "call_id" => fields.call_id = cursor.string()?,
            "approval_request_id" => fields.approval = cursor.string()?,
            "name" => fields.name = cursor.string()?,
            "arguments" | "input" | "action" | "operation" => fields.arguments = arguments(cursor)?,
            "output" => {
                contained(cursor, &mut fields.given)?;
            }
            "status" => fields.status = cursor.string()?,
            "encrypted_content" => fields.encrypted = cursor.string()?,
            _ => {}
        }
        Ok::<_, Unreadable>(())
    })?;
    let span = span.ok_or(Unreadable::OddShape { key: "input", at: start })?;
    let mut entry = fields.entry().ok_or(Unreadable::OddShape { key: "content", at: start })?;
    for call in &mut entry.item.calls {
        call.span = span.clone();
    }
    entry.item.span = span;
    Ok(entry)
}

/// Reads text or parts into `item`. Whether it is signed, and whether it is of another shape.
fn contained<'b>(cursor: &mut Cursor<'b>, item: &mut Item<'b>) -> Result<(bool, bool), Unreadable> {
    if let Some(Kind::String | Kind::Array | Kind::Null) = cursor.peek() {
        return Ok((content(cursor, item)?, false));
    }
    item.media += cursor.skip()?.len();
    Ok((false, true))
}

impl<'b> Fields<'b> {
    /// The item; none if it is a message of an unknown shape.
    fn entry(mut self) -> Option<Entry<'b>> {
        let kind = self.kind.take();
        let id = self.id.clone().unwrap_or_default();
        let (kind, item) = match kind.as_deref() {
            None | Some("message") if self.role.is_some() => {
                if self.odd {
                    return None;
                }
                let seal = if self.signed { Seal::Signed } else { Seal::Open };
                (EntryKind::Message, Item { role: role(self.role.as_deref()), seal, ..self.said })
            }
            None | Some("item_reference") if self.id.is_some() => (EntryKind::Reference, referred(&id)),
            Some("reasoning") => {
                (EntryKind::Reasoning, Item { seal: Seal::Reasoning, ..blank(Role::Assistant) })
            }
            Some("mcp_approval_request") => {
                (EntryKind::Call, called(id.clone(), self.name, kind.clone(), self.arguments))
            }
            Some("mcp_approval_response") => {
                (EntryKind::Result, Item { answers: self.approval, ..blank(Role::Tool) })
            }
            Some(result) if result.ends_with("_output") && self.call_id.is_some() => {
                (EntryKind::Result, Item { answers: self.call_id, ..self.given })
            }
            Some(call) if self.call_id.is_some() => {
                let form = if call == "custom_tool_call" { EntryKind::FreeCall } else { EntryKind::Call };
                let call_id = self.call_id.unwrap_or_default();
                (form, called(call_id, self.name, kind.clone(), self.arguments))
            }
            _ => (EntryKind::Other, blank(Role::Other)),
        };
        Some(Entry { item, id, kind, status: self.status, encrypted: self.encrypted.unwrap_or_default() })
    }
}

fn role(role: Option<&str>) -> Role {
    match role {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => Role::Other,
    }
}

/// A call. Kinds that have no name of their own (a shell, a computer) go by their kind.
fn called<'b>(
    id: Cow<'b, str>,
    name: Option<Cow<'b, str>>,
    kind: Option<Cow<'b, str>>,
    arguments: Cow<'b, str>,
) -> Item<'b> {
    let call = Call { id, name: name.or(kind).unwrap_or_default(), arguments, span: 0..0 };
    Item { calls: vec![call], ..blank(Role::Assistant) }
}

/// An item that only the upstream has. Its id tells what the model's side made.
fn referred<'b>(id: &str) -> Item<'b> {
    match id.split_once('_') {
        Some(("rs", _)) => Item { seal: Seal::Reasoning, ..blank(Role::Assistant) },
        Some(("msg" | "fc" | "ctc", _)) => blank(Role::Assistant),
        _ => blank(Role::Other),
    }
}
