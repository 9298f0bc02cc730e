//! The neutral view of a request: what both dialects say, in one shape, with
//! the byte ranges it was read from. Knows no field name of either dialect.

use std::borrow::Cow;
use std::ops::Range;

use super::profile::Profile;

/// A range of bytes in the request body.
pub type Span = Range<usize>;

/// The wire format of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `/chat/completions`
    Chat,
    /// `/responses`
    Responses,
}

/// A request as the engine sees it. Borrows from the body wherever the JSON
/// text needs no decoding.
#[derive(Clone, Debug)]
pub struct View<'b> {
    /// The wire format the body is in.
    pub dialect: Dialect,
    /// The model that is asked for.
    pub model: Option<Cow<'b, str>>,
    /// Whether the reply is asked for as an event stream.
    pub stream: bool,
    /// How many alternative replies are asked for (`n`); 1 where absent.
    pub choices: u32,
    /// Whether the request fixes the reply's shape to a JSON schema, as title and guardrail calls do.
    pub shaped_reply: bool,
    /// The tools on offer, in the client's order.
    pub tools: Vec<Tool<'b>>,
    /// The conversation: the items of the head, then one entry an element of the client's list.
    pub items: Vec<Item<'b>>,
    /// The list's JSON value, brackets included; one string where the client wrote its only item so, and
    /// empty where it sent no list.
    pub list: Span,
    /// Standing instructions outside the list.
    pub head: Head,
    /// What the upstream keeps of the conversation.
    pub server_state: ServerState<'b>,
    /// The hidden reasoning items of the list, in order.
    pub hidden: Vec<Hidden<'b>>,
}

/// The same text, in bytes of its own.
fn own(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}

/// A hidden reasoning item.
#[derive(Clone, Debug)]
pub struct Hidden<'b> {
    /// Which item it is.
    pub item: usize,
    /// Its id.
    pub id: Cow<'b, str>,
}

impl View<'_> {
    /// The same view, which outlives the body that it was read from.
    pub fn into_owned(self) -> View<'static> {
        View {
            dialect: self.dialect,
            model: self.model.map(own),
            stream: self.stream,
            choices: self.choices,
            shaped_reply: self.shaped_reply,
            tools: self.tools.into_iter().map(Tool::into_owned).collect(),
            items: self.items.into_iter().map(Item::into_owned).collect(),
            list: self.list,
            head: self.head,
            server_state: self.server_state.into_owned(),
            hidden: self.hidden.into_iter().map(Hidden::into_owned).collect(),
        }
    }

    /// How many system-type items stand before anything else.
    pub fn leading_system(&self) -> usize {
        self.items.iter().take_while(|item| item.role == Role::System).count()
    }

    /// Whether the list holds only what is new, and the upstream has what came before.
    pub fn is_delta(&self) -> bool {
        self.server_state.previous.is_some() || self.server_state.conversation.is_some()
    }
}

impl Hidden<'_> {
    fn into_owned(self) -> Hidden<'static> {
        Hidden { item: self.item, id: own(self.id) }
    }
}

/// Standing instructions in a field of their own, outside the list. Their items are the first of
/// [`View::items`], since a model reads them first.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// How many of the view's items they are.
    pub items: usize,
    /// The JSON value of their field, null too, where the body has one.
    pub span: Option<Span>,
}

/// What the upstream keeps of the conversation, as far as the request says it.
#[derive(Clone, Debug, Default)]
pub struct ServerState<'b> {
    /// The id of the reply that the request goes on from.
    pub previous: Option<Cow<'b, str>>,
    /// The id of the stored conversation that it belongs to.
    pub conversation: Option<Cow<'b, str>>,
    /// Whether a later request may go on from the reply to this one.
    pub stores: bool,
    /// Whether the reply is made in the background, to be asked for later.
    pub background: bool,
    /// Whether the list refers to items by ids alone.
    pub refers: bool,
}

impl ServerState<'_> {
    fn into_owned(self) -> ServerState<'static> {
        ServerState {
            previous: self.previous.map(own),
            conversation: self.conversation.map(own),
            stores: self.stores,
            background: self.background,
            refers: self.refers,
        }
    }
}

/// A tool on offer.
#[derive(Clone, Debug)]
pub struct Tool<'b> {
    /// The name by which the model calls it.
    pub name: Cow<'b, str>,
    /// What the client says it does.
    pub description: Option<Cow<'b, str>>,
    /// The raw JSON schema of its parameters, where one is given.
    pub parameters: Option<Cow<'b, str>>,
    /// The element in the list of tools.
    pub span: Span,
}

impl Tool<'_> {
    fn into_owned(self) -> Tool<'static> {
        Tool {
            name: own(self.name),
            description: self.description.map(own),
            parameters: self.parameters.map(own),
            span: self.span,
        }
    }
}

/// Who an item of the list is from, as the wire says it. Whether a `User` item
/// is the customer's is decided in `handoff::speaker`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Standing instructions (`system`, `developer`).
    System,
    /// The user's side.
    User,
    /// The model's side.
    Assistant,
    /// A tool's result.
    Tool,
    /// Anything else; passed as it is.
    Other,
}

impl Role {
    /// The name on the admin listener.
    pub fn name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
            Role::Other => "other",
        }
    }
}

/// How an item's content is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// No content, or null.
    None,
    /// One string.
    Text,
    /// A list of parts.
    Parts,
}

/// One element of the client's list.
#[derive(Clone, Debug)]
pub struct Item<'b> {
    /// The element's bytes, without separators.
    pub span: Span,
    /// Who it is from.
    pub role: Role,
    /// The `name` the client put on it.
    pub name: Option<Cow<'b, str>>,
    /// Its text, decoded; text parts joined by a line break; empty where it has none.
    pub text: Cow<'b, str>,
    /// How the content is written.
    pub form: Form,
    /// The JSON value of the content, where there is one.
    pub content: Option<Span>,
    /// The tool calls in it, in order.
    pub calls: Vec<Call<'b>>,
    /// The call id that it answers, where it is a result. Legacy results without an id: empty.
    pub answers: Option<Cow<'b, str>>,
    /// What ties the item to others or to its own bytes.
    pub seal: Seal,
    /// Bytes of images, audio and files inside; they count as bytes, not as text.
    pub media: usize,
}

impl Item<'_> {
    fn into_owned(self) -> Item<'static> {
        Item {
            span: self.span,
            role: self.role,
            name: self.name.map(own),
            text: own(self.text),
            form: self.form,
            content: self.content,
            calls: self.calls.into_iter().map(Call::into_owned).collect(),
            answers: self.answers.map(own),
            seal: self.seal,
            media: self.media,
        }
    }
}

/// Whether an item may lose a part of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// Nothing binds it: a call may be cut out.
    Open,
    /// A signature or hidden reasoning covers it: it stays whole or goes whole.
    Signed,
    /// It is a reasoning item, bound to the items after it.
    Reasoning,
}

/// A tool call.
#[derive(Clone, Debug)]
pub struct Call<'b> {
    /// Its id; ids repeat in the wild, so position decides what answers it. Empty where it has none.
    pub id: Cow<'b, str>,
    /// The tool's name.
    pub name: Cow<'b, str>,
    /// The arguments as the model wrote them, decoded from the JSON string.
    pub arguments: Cow<'b, str>,
    /// The call's element in its message, or the item itself.
    pub span: Span,
}

impl Call<'_> {
    fn into_owned(self) -> Call<'static> {
        Call { id: own(self.id), name: own(self.name), arguments: own(self.arguments), span: self.span }
    }
}

/// What a rebuilt request looks like, in the view's own terms. The dialect
/// turns it into edits of bytes (`wire::apply`).
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The brief, to stand at the end of the receiver's own instructions.
    pub brief: Option<String>,
    /// Which system item carries the brief (index into `View::items`); none: a new one is put first, or
    /// where the dialect has a field for standing instructions, it stands there.
    pub brief_after: Option<usize>,
    /// What becomes of each item; one entry an item, in order.
    pub keep: Vec<Keep>,
    /// Why an item does not travel as it was, for people; one entry an item, or none at all.
    pub why: Vec<Option<Why>>,
    /// Items to put back as bytes, each before the item of that index (`items.len()` is the end).
    pub put_back: Vec<(usize, bytes::Bytes)>,
    /// Tools that get other parameters: the index into `View::tools`, and their JSON schema.
    pub parameters: Vec<(usize, String)>,
    /// Calls that get other arguments.
    pub arguments: Vec<Arguments>,
    /// The reply that the request goes on from, where that is another than it says.
    pub previous: Option<String>,
    /// What the server wants of the list.
    pub profile: Profile,
}

/// Other arguments for a call in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// The item it stands in.
    pub item: usize,
    /// Its place among the item's calls.
    pub call: usize,
    /// The arguments, as a model writes them.
    pub text: String,
}

impl Plan {
    /// The other arguments of a call, where it gets any.
    pub fn arguments_of(&self, item: usize, call: usize) -> Option<&str> {
        let of_call = |other: &&Arguments| other.item == item && other.call == call;
        self.arguments.iter().find(of_call).map(|other| other.text.as_str())
    }
}

/// What becomes of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Its bytes, as they are.
    Whole,
    /// Without these of its calls (indices into `Item::calls`).
    WithoutCalls(Vec<usize>),
    /// With its text replaced (an oversized result); everything else as it is.
    Shortened(String),
    /// Not at all.
    Drop,
}

/// Why an item does not travel as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// It is the sender's system text.
    SenderInstructions,
    /// It is a trace of a transfer in prose.
    Trace,
    /// It is a transfer's call or result.
    Transfer,
    /// It is half of a pair whose other half is missing, or reasoning that nothing follows from.
    Broken,
    /// It is hidden reasoning that the receiver's model cannot read, or follows from it.
    Unreadable,
    /// It is a result that is too long.
    TooLong,
    /// It is the sender's word beside its transfer or behind it, and stands in the brief.
    Parting,
    /// It is more than the transcript may hold.
    OverLimit,
}

impl Why {
    /// All of them.
    pub const ALL: &'static [Why] = &[
        Why::SenderInstructions,
        Why::Trace,
        Why::Transfer,
        Why::Broken,
        Why::Unreadable,
        Why::TooLong,
        Why::Parting,
        Why::OverLimit,
    ];

    /// The name on the admin listener.
    pub fn name(self) -> &'static str {
        match self {
            Why::SenderInstructions => "sender_instructions",
            Why::Trace => "trace_in_prose",
            Why::Transfer => "transfer",
            Why::Broken => "broken_pair",
            Why::Unreadable => "unreadable_reasoning",
            Why::TooLong => "too_long",
            Why::Parting => "parting_words",
            Why::OverLimit => "over_the_limit",
        }
    }
}
