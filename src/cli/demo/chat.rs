//! The Chat Completions wire as the demo's client and upstream write and read
//! it: their own, small, and no part of the proxy.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The body of a request.
#[derive(Debug, Serialize)]
pub(super) struct Request<'a> {
    pub(super) model: &'static str,
    pub(super) messages: &'a [Message],
    pub(super) tools: &'a RawValue,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) stream: bool,
}

/// What is read of a request that reached upstream.
#[derive(Debug, Deserialize)]
pub(super) struct Received {
    pub(super) messages: Vec<Message>,
    #[serde(default)]
    pub(super) stream: bool,
}

/// A message of the list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Message {
    pub(super) role: String,
    #[serde(default)]
    pub(super) content: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<Call>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tool_call_id: Option<String>,
}

impl Message {
    /// A message of text.
    pub(super) fn text(role: &str, content: &str) -> Message {
        Message { role: role.to_owned(), content: Some(content.to_owned()), ..Message::default() }
    }

    /// The result of a call.
    pub(super) fn result(call: &Call, content: &str) -> Message {
        Message { tool_call_id: Some(call.id.clone()), ..Message::text("tool", content) }
    }
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) function: Function,
}

/// What is called, with the arguments as text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) arguments: String,
}

/// A whole reply.
#[derive(Debug, Deserialize)]
pub(super) struct Completion {
    pub(super) choices: Vec<Choice>,
}

/// One of its choices.
#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    pub(super) message: Message,
}

/// One event of a streamed reply.
#[derive(Debug, Deserialize)]
pub(super) struct Chunk {
    pub(super) choices: Vec<Piece>,
}

/// One of its choices.
#[derive(Debug, Deserialize)]
pub(super) struct Piece {
    pub(super) delta: Delta,
}

/// What an event adds to the message.
#[derive(Debug, Deserialize)]
pub(super) struct Delta {
    #[serde(default)]
    pub(super) content: Option<String>,
    #[serde(default)]
    pub(super) tool_calls: Vec<CallPiece>,
}

/// What an event adds to a call.
#[derive(Debug, Deserialize)]
pub(super) struct CallPiece {
    pub(super) index: usize,
    #[serde(default)]
    pub(super) id: Option<String>,
    pub(super) function: FunctionPiece,
}

/// A part of a call's function.
#[derive(Debug, Deserialize)]
pub(super) struct FunctionPiece {
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) arguments: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
