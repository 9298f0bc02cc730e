//! Signs that a transfer lost something: what went on behind it that a good
//! handoff prevents. Told by rules from what was said and called, without a
//! model; `docs/signals.md` has the rules and how often they are right.

mod behind;
mod calls;
mod known;
mod requests;

use serde::{Deserialize, Serialize};

pub use behind::behind;
pub use calls::{contradicted, looked_up_again};
pub use known::{Known, Slot};
pub use requests::{asked_again, greets, repeats};

/// A kind of sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sign {
    /// The receiver asked for a value that was known, or the customer had to say again what it had said.
    ReAsked,
    /// The receiver made an earlier agent's call again, while its result still held.
    RepeatedLookup,
    /// The receiver greeted a customer whose conversation was under way.
    GreetedAgain,
    /// The agent said that it transfers and called no transfer tool.
    AnnouncedNotMade,
    /// The customer spoke again before its last turn had an answer.
    Unanswered,
    /// A call's argument is another value than the one that was established for the same record.
    WrongValue,
}

impl Sign {
    /// All of them, in the order of the docs.
    pub const ALL: &'static [Sign] = &[
        Sign::ReAsked,
        Sign::RepeatedLookup,
        Sign::GreetedAgain,
        Sign::AnnouncedNotMade,
        Sign::Unanswered,
        Sign::WrongValue,
    ];

    /// The name in records, reports and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Sign::ReAsked => "re_asked",
            Sign::RepeatedLookup => "repeated_lookup",
            Sign::GreetedAgain => "greeted_again",
            Sign::AnnouncedNotMade => "announced_not_made",
            Sign::Unanswered => "unanswered",
            Sign::WrongValue => "wrong_value",
        }
    }
}

/// A sign that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// What kind of sign.
    pub sign: Sign,
    /// The transfer behind which it was seen, by its hop; 0 before the first.
    pub hop: u32,
    /// What it is about: a key, a tool's name, or empty. Bounded; no value.
    pub about: String,
}

impl Signal {
    /// A signal behind the transfer `hop`.
    pub fn new(sign: Sign, hop: u32, about: impl Into<String>) -> Signal {
        let mut about = about.into();
        about.truncate(about.floor_char_boundary(ABOUT));
        Signal { sign, hop, about }
    }
}

/// Bytes of what a signal is about.
const ABOUT: usize = 80;
