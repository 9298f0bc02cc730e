//! The record of one transfer: all that Seam keeps of it, and the one input of
//! the brief.

use serde::{Deserialize, Serialize};

use super::event::Finding;
use super::handoff::contract::{Handoff, Line};
use super::handoff::verify::Fact;
use super::time::Timestamp;

/// The version of the record's format that this build writes.
pub const VERSION: u32 = 1;

/// Where a handoff came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The client's own tool declares a contract and the sender filled it.
    Declared,
    /// Seam asked for it.
    Injected,
    /// Rules made it; the sender said nothing.
    Derived,
}

impl Origin {
    /// All of them.
    pub const ALL: &'static [Origin] = &[Origin::Declared, Origin::Injected, Origin::Derived];

    /// The name in records, logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Declared => "declared",
            Origin::Injected => "injected",
            Origin::Derived => "derived",
        }
    }
}

/// Where a record stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The transfer was seen; no receiver has asked yet.
    Pending,
    /// The receiver's first request came.
    TakenUp,
    /// The receiver gave the run back at once.
    Declined,
    /// Seam refused the transfer.
    Refused,
    /// No receiver came in time.
    Expired,
}

impl State {
    /// All of them.
    pub const ALL: &'static [State] =
        &[State::Pending, State::TakenUp, State::Declined, State::Refused, State::Expired];

    /// The name in records, logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::TakenUp => "taken_up",
            State::Declined => "declined",
            State::Refused => "refused",
            State::Expired => "expired",
        }
    }
}

/// The call that moved control.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferCall {
    /// The call's id; may repeat within a run.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as first seen.
    pub arguments: String,
}

/// One call that the run made, as a receiver should know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// The tool's name.
    pub name: String,
    /// The identifying arguments, `key=value`, bounded.
    pub arguments: String,
    /// What came of it: `ok`, `empty`, `error`, or a short identifying value.
    pub outcome: String,
}

/// What the run may still spend; only configured parts are there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Transfers left.
    pub hops_left: Option<u32>,
    /// Tokens left.
    pub tokens_left: Option<u64>,
    /// Money left, as written by the price table's currency, e.g. `1.40 USD`.
    pub spend_left: Option<String>,
    /// When the run has to be done, RFC 3339.
    pub deadline: Option<String>,
}

/// How much of the transcript does not travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Items (messages) left out.
    pub items: u32,
    /// Their size in estimated tokens (4 bytes of text a token).
    pub tokens: u64,
    /// Results that were shortened.
    pub shortened: u32,
    /// Whether nothing but the customer's own turns is left.
    #[serde(default)]
    pub all: bool,
}

/// Tokens of the list, estimated at 4 bytes of text a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// As the client sent it.
    pub before: u64,
    /// As it went up, brief included.
    pub after: u64,
}

/// A handoff that went back to its sender instead of to the client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Correction {
    /// What was wrong with it.
    pub findings: Vec<Finding>,
    /// Tokens read and written to ask again, where upstream told them.
    #[serde(default)]
    pub input: u64,
    /// The tokens of the answer.
    #[serde(default)]
    pub output: u64,
}

/// All that Seam keeps of one transfer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The format's version.
    pub version: u32,
    /// The record's id.
    pub id: String,
    /// The run it belongs to.
    pub run: String,
    /// The sender's name, where it is known.
    pub from_agent: Option<String>,
    /// The receiver's name, as the transfer spells it.
    pub to_agent: String,
    /// Agents that have held the run, oldest first.
    pub visited: Vec<String>,
    /// Which transfer of the run this is, from 1.
    pub hop: u32,
    /// Where it stands.
    pub state: State,
    /// When the transfer was seen.
    pub at: Timestamp,
    /// The call that moved control.
    pub call: TransferCall,
    /// Where the handoff came from.
    pub origin: Origin,
    /// The run's first customer turn, word for word, bounded.
    pub objective: Option<String>,
    /// The run's last customer turn, word for word, bounded; none if it is the first.
    pub latest_request: Option<String>,
    /// What the sender wrote, topped up and carried. Its claims stand in `facts`; of `established`
    /// only whether it was asked is kept (`Some` and empty).
    pub handoff: Handoff,
    /// The facts, each with what the check found.
    pub facts: Vec<Fact>,
    /// The run's own calls.
    pub actions_taken: Vec<Action>,
    /// What the run may still spend.
    pub budget: Option<Budget>,
    /// Texts beside and after the transfer call.
    pub parting_words: Vec<Line>,
    /// How much of the transcript was left out when the record was taken up.
    pub left_out: LeftOut,
    /// What the checks found.
    pub findings: Vec<Finding>,
    /// Tokens before and after.
    pub tokens: Tokens,
    /// The rendered brief, frozen when the record is taken up.
    pub brief: Option<String>,
    /// What went back to the sender before this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corrections: Vec<Correction>,
}
