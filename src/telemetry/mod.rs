//! What happened, in one place: every event is recorded here, counted, and
//! logged where a person should know.

mod engine;
pub mod log;

use std::sync::atomic::{AtomicU64, Ordering};

/// Who is to blame for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The endpoint behind Seam.
    Upstream,
    /// The client in front of it.
    Caller,
    /// Seam.
    Us,
}

macro_rules! events {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal,)+) => {
        /// Every event of the shell. The list is closed: counters come from it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Event { $($(#[doc = $doc])+ $name,)+ }

        impl Event {
            /// All of them.
            pub const ALL: &'static [Event] = &[$(Event::$name,)+];

            /// The name in logs and metrics.
            pub fn name(self) -> &'static str {
                match self { $(Event::$name => $text,)+ }
            }
        }
    };
}

events! {
    /// A request came.
    Request = "request",
    /// A request was read whole and given to the engine.
    Inspected = "inspected",
    /// A request to an inspected route was over the limit and streamed on.
    BodyTooLarge = "body_too_large",
    /// A request to an inspected route was compressed and passed untouched.
    BodyCompressed = "body_compressed",
    /// The engine's part of an exchange panicked; the original bytes went on.
    Panicked = "panicked",
    /// A reply's body is watched.
    Watched = "watched",
    /// A connection switched protocols and became a tunnel.
    Upgraded = "upgraded",
    /// A connection to upstream was opened.
    Connected = "connected",
    /// A request found its pooled connection closed and went out on a fresh one.
    Resent = "resent",
    /// An exchange failed before its head was out, through upstream.
    FailedUpstream = "failed_upstream",
    /// An exchange failed before its head was out, through the caller.
    FailedCaller = "failed_caller",
    /// An exchange failed before its head was out, through Seam.
    FailedUs = "failed_us",
    /// A request was refused on the engine's word.
    Refused = "refused",
    /// A reply broke after its head was out.
    ReplyBroken = "reply_broken",
}

/// The counters of one running Seam.
#[derive(Debug)]
pub struct Telemetry {
    engine: engine::Counts,
    counts: [AtomicU64; Event::ALL.len()],
}

impl Default for Telemetry {
    fn default() -> Self {
        Telemetry { engine: engine::Counts::default(), counts: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl Telemetry {
    /// Records that `event` happened.
    pub fn record(&self, event: Event) {
        self.counts[event as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How often `event` happened since the start.
    pub fn count(&self, event: Event) -> u64 {
        self.counts[event as usize].load(Ordering::Relaxed)
    }
}
