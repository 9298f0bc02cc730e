//! What happened, in one place: every event is recorded here, counted, and
//! logged where a person should know.

mod closed;
mod engine;
mod family;
pub mod lists;
pub mod log;
pub mod metrics;
pub mod passages;
pub mod reasons;
pub(crate) mod shown;
pub mod trace;

use std::sync::Arc;
use std::time::Duration;

pub use closed::Closed;
pub use reasons::{Failed, Passed};

use closed::closed;
use lists::TakenUp;
use metrics::{Call, Metrics, Part, Stage, Status};
use passages::Passages;
use trace::{Trace, Tracer};

use crate::config::Config;
use crate::store::StoreError;
use crate::tls::TlsError;

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

closed! {
    /// Every event of the shell.
    pub enum Event {
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
}

/// What one running Seam counts and remembers of its work.
#[derive(Debug, Default)]
pub struct Telemetry {
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// Requests that passed as they came, lately.
    pub passages: Passages,
    /// The lists of the last take-ups.
    pub lists: TakenUp,
    /// Makes spans.
    pub tracer: Tracer,
}

/// Counts one exchange as in flight until it is dropped.
#[derive(Debug)]
pub struct InFlight {
    telemetry: Arc<Telemetry>,
    is_stream: bool,
    trace: Trace,
}

impl Telemetry {
    /// Telemetry as `config` wants it. Needs a runtime.
    pub(crate) fn new(config: &Config) -> Result<Telemetry, TlsError> {
        let metrics = Arc::default();
        let tracer = Tracer::start(config, &metrics)?;
        Ok(Telemetry { metrics, tracer, ..Telemetry::default() })
    }

    /// Records that `event` happened.
    pub fn record(&self, event: Event) {
        self.metrics.events.one((event,));
    }

    /// How often `event` happened since the start.
    pub fn count(&self, event: Event) -> u64 {
        self.metrics.events.value((event,))
    }

    /// An exchange began, whose span is `trace`.
    pub fn begins(self: &Arc<Self>, trace: Trace) -> InFlight {
        self.metrics.exchanges_in_flight.add(1);
        InFlight { telemetry: Arc::clone(self), is_stream: false, trace }
    }

    /// A request to an inspected route went up as it came.
    pub fn passed(&self, reason: Passed) {
        self.metrics.passed.one((reason,));
    }

    /// An exchange failed.
    pub fn failed(&self, reason: Failed, stage: Stage) {
        self.metrics.failures.one((reason, stage));
    }

    /// Upstream's reply began, `after` the request went up.
    pub fn replied(&self, status: http::StatusCode, after: Duration) {
        let class = match status.as_u16() {
            0..200 => Status::Informational,
            200..300 => Status::Success,
            300..400 => Status::Redirection,
            400..500 => Status::ClientError,
            _ => Status::ServerError,
        };
        self.metrics.upstream_replies.one((class,));
        self.metrics.upstream_head.time((), after);
    }

    /// Seam worked on an exchange.
    pub fn worked(&self, part: Part, span: Duration) {
        self.metrics.overhead.time((part,), span);
    }

    /// The end of a watched reply was held.
    pub fn held(&self, bytes: usize, span: Duration) {
        self.metrics.held_bytes.measure((), bytes as u64);
        self.metrics.held_seconds.time((), span);
    }

    /// The store was asked. What somebody else wrote in between is the store at work, not in trouble.
    pub fn stored(&self, call: Call, error: Option<&StoreError>, span: Duration) {
        self.metrics.store_seconds.time((call,), span);
        if let Some(error) = error {
            self.metrics.store_errors.one((call, error.into()));
        }
        let is_trouble =
            error.is_some_and(|error| !matches!(error, StoreError::Conflict | StoreError::TooLarge { .. }));
        self.metrics.store_degraded.set(is_trouble.into());
    }
}

impl InFlight {
    /// Its span.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Its reply is an event stream.
    pub fn streams(&mut self) {
        if !self.is_stream {
            self.is_stream = true;
            self.telemetry.metrics.streams_in_flight.add(1);
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.telemetry.metrics.exchanges_in_flight.add(-1);
        if self.is_stream {
            self.telemetry.metrics.streams_in_flight.add(-1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_is_in_flight_until_it_is_dropped() {
        let telemetry = Arc::new(Telemetry::default());
        let mut exchange = telemetry.begins(Trace::default());
        exchange.streams();
        exchange.streams();
        let standing = || {
            let metrics = &telemetry.metrics;
            (metrics.exchanges_in_flight.value(), metrics.streams_in_flight.value())
        };
        assert_eq!(standing(), (1, 1));
        drop(exchange);
        assert_eq!(standing(), (0, 0));
    }

    #[test]
    fn the_store_is_degraded_until_it_answers() {
        let telemetry = Telemetry::default();
        let check = |error: Option<StoreError>, expected| {
            telemetry.stored(Call::Read, error.as_ref(), Duration::ZERO);
            assert_eq!(telemetry.metrics.store_degraded.value(), expected, "{error:?}");
        };
        check(Some(StoreError::Resting), 1);
        check(None, 0);
        check(Some(StoreError::Conflict), 0);
    }
}
