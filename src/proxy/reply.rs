//! The reply's body on its way to the client: passed as it comes, or through
//! the exchange that watches it, and the honest end of one that breaks.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::response;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use tracing::warn;

use super::Shell;
use super::boundary::Boundary;
use super::error::Failure;
use super::watched::{Broken, Watched};
use crate::engine::wire::Ending;
use crate::telemetry::metrics::Stage;
use crate::telemetry::{Event, InFlight};
use crate::upstream;

/// What a client is sent.
#[expect(clippy::large_enum_variant, reason = "nearly every reply is the large one")]
pub(crate) enum Reply {
    /// Bytes of our own.
    Own(Full<Bytes>),
    /// Upstream's body.
    Upstream(Passing),
}

/// A body from upstream, and what has to be known to end it well.
pub(crate) struct Passing {
    source: Source,
    shell: Arc<Shell>,
    /// Whether an error can be told as one more event.
    events: bool,
    /// Whether the client has whole events only so far.
    boundary: Boundary,
    ending: Ending,
    /// Breaks the connection at the next poll.
    breaking: Option<Failure>,
    ended: bool,
    in_flight: InFlight,
}

enum Source {
    /// As it comes.
    Straight(upstream::Body),
    /// Through the exchange that watches it.
    Watched(Watched),
}

impl Reply {
    pub(crate) fn own(body: Bytes) -> Reply {
        Reply::Own(Full::new(body))
    }

    /// A body that nobody watches.
    pub(crate) fn straight(
        shell: Arc<Shell>,
        head: &response::Parts,
        body: upstream::Body,
        in_flight: InFlight,
    ) -> Reply {
        Reply::passing(shell, head, Source::Straight(body), in_flight)
    }

    /// A body that goes through an exchange.
    pub(super) fn watched(
        shell: Arc<Shell>,
        head: &response::Parts,
        body: Watched,
        in_flight: InFlight,
    ) -> Reply {
        Reply::passing(shell, head, Source::Watched(body), in_flight)
    }

    fn passing(shell: Arc<Shell>, head: &response::Parts, source: Source, mut in_flight: InFlight) -> Reply {
        let events = takes_events(head);
        if is_event_stream(head) {
            in_flight.streams();
        }
        Reply::Upstream(Passing {
            source,
            shell,
            events,
            boundary: Boundary::default(),
            ending: Ending::default(),
            breaking: None,
            ended: false,
            in_flight,
        })
    }
}

/// Whether bytes may be added to an event stream: not if they are compressed, or counted.
fn takes_events(head: &response::Parts) -> bool {
    is_event_stream(head)
        && !head.headers.contains_key(CONTENT_ENCODING)
        && !head.headers.contains_key(CONTENT_LENGTH)
}

/// Whether a reply with this head is an event stream.
pub(super) fn is_event_stream(head: &response::Parts) -> bool {
    let kind = head.headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    kind.len() >= 17 && kind[..17].eq_ignore_ascii_case(b"text/event-stream")
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        match self.get_mut() {
            Reply::Own(body) => Pin::new(body).poll_frame(cx).map_err(|never| match never {}),
            Reply::Upstream(passing) => passing.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Reply::Own(body) => body.is_end_stream(),
            Reply::Upstream(passing) => {
                passing.breaking.is_none() && (passing.ended || passing.source.is_end_stream())
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Reply::Own(body) => body.size_hint(),
            Reply::Upstream(passing) => match &passing.source {
                Source::Straight(body) => body.size_hint(),
                Source::Watched(_) => SizeHint::default(),
            },
        }
    }
}

impl Passing {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        if self.ended {
            return Poll::Ready(self.breaking.take().map(Err));
        }
        if self.shell.ending.is_up() {
            return self.fail(Failure::Ending, cx);
        }
        let frame = match &mut self.source {
            Source::Straight(body) => {
                Pin::new(body).poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(Broken::Upstream)))
            }
            Source::Watched(watched) => watched.poll_frame(cx),
        };
        match frame {
            Poll::Ready(Some(Ok(frame))) => {
                self.in_flight.trace().chunk();
                if self.events
                    && let Some(data) = frame.data_ref()
                {
                    self.boundary.pass(data);
                    self.ending.pass(data);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(broken))) => {
                let failure = self.shell.broken(broken);
                self.fail(failure, cx)
            }
            Poll::Ready(None) => {
                self.ended = true;
                Poll::Ready(None)
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// The head is out: an event stream that stands between two events ends in
    /// an error event. Anything else breaks off, as it would without Seam: half
    /// an event cannot be taken back, and must not be made to look whole.
    fn fail(
        &mut self,
        failure: Failure,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        self.ended = true;
        let refused = matches!(failure, Failure::Refused(_));
        self.in_flight.trace().failed(if refused { "refused" } else { "failed" }, &failure.code());
        self.shell.telemetry.record(if refused { Event::Refused } else { Event::ReplyBroken });
        self.shell.telemetry.failed(failure.reason(), Stage::InReply);
        warn!(reason = failure.code(), blame = ?failure.blame(), "a reply broke off: {}", failure.message());
        if self.events && self.boundary.is_between_events() {
            let body = failure.body();
            let event = self.ending.error_event(std::str::from_utf8(&body).unwrap_or_default());
            return Poll::Ready(Some(Ok(Frame::data(event))));
        }
        // An error ends the client's connection at once, with all that it has not been sent yet: what
        // came before the break gets the time to be written.
        self.breaking = Some(failure);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Source {
    fn is_end_stream(&self) -> bool {
        match self {
            Source::Straight(body) => body.is_end_stream(),
            Source::Watched(watched) => watched.is_end_stream(),
        }
    }
}
