//! How a list is laid out for a server with a profile: which messages it
//! becomes, and what their contents are made of. The wire writes them.

use super::profile::{AfterResult, Neighbours, Opening, Profile, Standing};
use super::view::{Item, Role, Seal};

/// Stands between a result and a user's turn, where the server wants the model's side to speak there.
const NOTED: &str = "Noted.";
/// Stands ahead of an agent's first words, where the server wants a user to open.
const OPENED: &str = "(The conversation begins.)";

/// One message of the list to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Whose other fields it has.
    pub base: Base,
    /// What its content is made of, in order; never empty.
    pub parts: Vec<Part>,
}

/// Whose other fields a message has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// This item's.
    Item(usize),
    /// Nobody's: it was not there.
    New(Role),
}

/// A piece of a message's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The content of this item.
    Item(usize),
    /// The brief.
    Brief,
    /// A line between what different speakers, or turns, said.
    Line,
    /// These words.
    Words(&'static str),
}

/// Lays `items` out. `briefed`: a brief is to be placed; where the profile leaves standing instructions as
/// they are it stands in them already.
pub fn layout(items: &[Item<'_>], profile: &Profile, briefed: bool) -> Vec<Message> {
    let mut layout = Layout { items, profile, messages: Vec::with_capacity(items.len() + 1) };
    let mut slot = layout.slot(briefed && profile.system != Standing::AsSent);
    if profile.system == Standing::OneFirst && !slot.is_empty() {
        let first = slot.iter().find_map(|part| match part {
            Part::Item(at) => Some(Base::Item(*at)),
            _ => None,
        });
        let base = first.unwrap_or(Base::New(Role::System));
        layout.messages.push(Message { base, parts: std::mem::take(&mut slot) });
    }
    let mut before = None;
    for (at, item) in items.iter().enumerate() {
        if item.role == Role::System {
            if profile.system == Standing::AsSent {
                layout.messages.push(Message { base: Base::Item(at), parts: vec![Part::Item(at)] });
                before = before.map(|_| Role::System);
            }
            continue;
        }
        if !slot.is_empty() {
            let mut parts = std::mem::take(&mut slot);
            if item.role == Role::User {
                parts.extend([Part::Line, Part::Item(at)]);
                layout.messages.push(Message { base: Base::Item(at), parts });
                before = Some(Role::User);
                continue;
            }
            layout.messages.push(Message { base: Base::New(Role::User), parts });
            before = Some(Role::User);
        }
        layout.place(at, before);
        before = Some(item.role);
    }
    if !slot.is_empty() {
        layout.messages.push(Message { base: Base::New(Role::User), parts: slot });
    }
    layout.messages
}

struct Layout<'a> {
    items: &'a [Item<'a>],
    profile: &'a Profile,
    messages: Vec<Message>,
}

impl Layout<'_> {
    /// All standing instructions and the brief at their end; nothing where they stay as they are.
    fn slot(&self, briefed: bool) -> Vec<Part> {
        if self.profile.system == Standing::AsSent {
            return Vec::new();
        }
        let systems = (0..self.items.len()).filter(|&at| self.items[at].role == Role::System);
        systems.map(Part::Item).chain(briefed.then_some(Part::Brief)).collect()
    }

    fn place(&mut self, at: usize, before: Option<Role>) {
        let role = self.items[at].role;
        match before {
            None if self.profile.opening == Opening::User && role != Role::User => {
                self.add(Role::User, OPENED);
            }
            Some(Role::Tool) if self.profile.after_result == AfterResult::Assistant && role == Role::User => {
                self.add(Role::Assistant, NOTED);
            }
            Some(before) if before == role && self.join(at) => return,
            _ => {}
        }
        self.messages.push(Message { base: Base::Item(at), parts: vec![Part::Item(at)] });
    }

    fn add(&mut self, role: Role, words: &'static str) {
        self.messages.push(Message { base: Base::New(role), parts: vec![Part::Words(words)] });
    }

    /// Makes the item a part of the message before it; false where it has to stay one of its own.
    fn join(&mut self, at: usize) -> bool {
        let item = &self.items[at];
        let wanted = match self.profile.neighbours {
            Neighbours::AsSent => false,
            Neighbours::JoinCalls => !item.calls.is_empty(),
            Neighbours::Join => matches!(item.role, Role::User | Role::Assistant),
        };
        let items = self.items;
        let Some(last) = self.messages.last_mut().filter(|_| wanted) else { return false };
        match last.base {
            // Two that are bound to their own fields cannot be one.
            Base::Item(before) if binds(&items[before]) && binds(item) => return false,
            Base::Item(before) if binds(&items[before]) => {}
            Base::New(_) => return false,
            Base::Item(_) if binds(item) => last.base = Base::Item(at),
            Base::Item(_) => {}
        }
        last.parts.extend([Part::Line, Part::Item(at)]);
        self.join_earlier(item.role);
        true
    }

    /// Where only what stands ahead of calls is joined, the texts before the last one have been left alone so far.
    fn join_earlier(&mut self, role: Role) {
        while let [.., before, _] = &self.messages[..] {
            let open = |at: usize| self.items[at].role == role && !binds(&self.items[at]);
            if !matches!(before.base, Base::Item(at) if open(at)) {
                return;
            }
            let Some(mut last) = self.messages.pop() else { return };
            let Some(before) = self.messages.last_mut() else { return };
            before.base = last.base;
            before.parts.push(Part::Line);
            before.parts.append(&mut last.parts);
        }
    }
}

/// Whether a message is bound to fields of its own: it cannot become a part of another one.
fn binds(item: &Item<'_>) -> bool {
    !item.calls.is_empty() || item.seal != Seal::Open
}
