//! The neutral view of a reply: what both dialects answer, plain or streamed,
//! in one shape. Knows no field name of either dialect.

use super::event::Finding;

/// A reply, or as much of it as has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The reply's id; empty where it has none.
    pub id: String,
    /// The model that answered; empty where the reply does not say.
    pub model: String,
    /// The visible text.
    pub text: String,
    /// The words in which the model refused, where it did.
    pub refusal: String,
    /// The calls, in the order in which they were opened.
    pub calls: Vec<ReplyCall>,
    /// The hidden reasoning items, where the dialect has such.
    pub reasoning: Vec<ReplyReasoning>,
    /// Why the model stopped; none until it says.
    pub finish: Option<Finish>,
    /// What was spent, where the reply says it; the last word counts.
    pub usage: Option<Usage>,
    /// How many alternative replies there are. Only the first of them is read.
    pub choices: u32,
    /// What the upstream said went wrong.
    pub error: Option<ReplyError>,
    /// Whether the reply came to its proper end; a dropped connection is none.
    pub ended: bool,
    /// What was odd about it.
    pub findings: Vec<Finding>,
}

/// A call in a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyCall {
    /// Its id; empty where it has none.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, decoded from the JSON string.
    pub arguments: String,
    /// Whether it can be run: the reply ended properly, and the arguments are
    /// one JSON value, or empty, or free text by the call's kind.
    pub complete: bool,
}

/// Hidden reasoning in a reply. It binds the items after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyReasoning {
    /// Its id; empty where it has none.
    pub id: String,
    /// What only the provider can read; empty where the reply does not carry it.
    pub encrypted: String,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    /// It had said what it wanted to say.
    Stop,
    /// It wants calls to be run.
    Calls,
    /// It ran out of room.
    Length,
    /// A filter cut it off.
    Filter,
    /// Anything else.
    Other,
}

/// Tokens that a reply reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens read, cached ones included where the upstream includes them.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens of the input that came from the prompt cache.
    pub cached: u64,
    /// Tokens of the input that were written to the prompt cache.
    pub cache_write: u64,
}

/// What becomes of a call on its way to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes on as it came.
    Whole,
    /// It goes on in one piece, with this name and these arguments.
    As {
        /// The tool's name.
        name: String,
        /// The arguments, as a model writes them.
        arguments: String,
    },
    /// Nothing of it goes on.
    Drop,
}

/// An error that the upstream reports in a body or in the middle of a stream. Every part is bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyError {
    /// Its type, as written.
    pub kind: String,
    /// Its code, as written; a number in digits.
    pub code: String,
    /// Its message.
    pub message: String,
}

/// What one event of a streamed reply holds. A call is named by its index into [`Reply::calls`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Visible text or a refusal.
    Text,
    /// A call, and for the first time its name.
    CallOpened(usize),
    /// More of a call. A call whose name has not come yet also shows as this.
    CallFragment(usize),
    /// More of a call that has not been opened; it may still come whole.
    Stray,
    /// The end of the reply: why the model stopped, or the mark that nothing follows. May come twice.
    End,
    /// What was spent.
    Usage,
    /// An error.
    Error,
}
