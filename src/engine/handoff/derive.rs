//! A handoff by rules, where the sender said nothing or not everything: what
//! the tools returned, what was done and tried, what the customer forbade.

mod actions;
mod facts;
mod lifts;
mod limits;
mod said;
mod values;
mod wants;

pub use actions::{actions, only_looks, tried};
pub use facts::facts;
pub use lifts::is_lifted;
pub use limits::limits;
pub use said::said;
pub use wants::Wants;

/// How much derived facts may say, in bytes of keys, values and what they need around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Facts at most.
    pub facts: usize,
    /// Bytes of them all.
    pub bytes: usize,
    /// Up to so many bytes, what the receiver needs by no sign is told as well: a small run is told whole.
    pub small: usize,
}

impl Room {
    /// Beside a transcript: what is needed at once, the rest can be looked up there.
    pub fn beside_transcript() -> Room {
        Room { facts: 60, bytes: 1_200, small: 800 }
    }

    /// In place of a transcript of so many bytes: a share of it, so that it stays the smaller of the two.
    pub fn instead_of(transcript_bytes: usize) -> Room {
        Room { facts: 200, bytes: (800 + transcript_bytes / 8).min(16_000), small: 400 }
    }
}

/// Whether a value names something by its looks: no white space, digits in it, and neither an amount nor a
/// time; a short number may be anything.
fn is_identifier(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let time_or_amount = letters <= 1 && text.contains(['-', ':', '.', '/', ',']);
    let long_enough = if letters == 0 { digits >= 7 } else { digits > 0 && digits + letters >= 4 };
    long_enough && !time_or_amount && !text.contains(char::is_whitespace)
}
