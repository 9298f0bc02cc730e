//! The body of a request on its way to upstream: whole, or as the client sends it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

/// A request's body.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// All of it is here.
    Whole(Option<Bytes>, Option<Box<HeaderMap>>),
    /// The rest comes from the client.
    Streamed(Box<Streamed>),
}

/// A body that is passed on as it comes.
#[derive(Debug)]
pub(crate) struct Streamed {
    /// What was read before it was decided to stream.
    first: VecDeque<Bytes>,
    rest: Incoming,
    progress: Arc<Progress>,
}

/// How far a streamed body has come, for whoever waits for the reply.
#[derive(Debug, Default)]
pub(super) struct Progress {
    frames: AtomicUsize,
    done: AtomicBool,
}

impl Progress {
    /// Grows with every frame.
    pub(super) fn frames(&self) -> usize {
        self.frames.load(Ordering::Relaxed)
    }

    /// Whether the client has sent all of it.
    pub(super) fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }
}

impl Outgoing {
    /// A body that is here, with the trailers that came behind it.
    pub(crate) fn whole(data: Bytes, trailers: Option<HeaderMap>) -> Outgoing {
        Outgoing::Whole(Some(data).filter(|data| !data.is_empty()), trailers.map(Box::new))
    }

    /// What the client sends, behind what was already read of it.
    pub(crate) fn streamed(first: VecDeque<Bytes>, rest: Incoming) -> Outgoing {
        if first.is_empty() && rest.is_end_stream() {
            return Outgoing::Whole(None, None);
        }
        Outgoing::Streamed(Box::new(Streamed { first, rest, progress: Arc::default() }))
    }

    pub(super) fn progress(&self) -> Option<Arc<Progress>> {
        match self {
            Outgoing::Whole(..) => None,
            Outgoing::Streamed(streamed) => Some(Arc::clone(&streamed.progress)),
        }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Outgoing::Whole(data, trailers) => {
                let data = data.take().map(Frame::data);
                Poll::Ready(
                    data.or_else(|| trailers.take().map(|trailers| Frame::trailers(*trailers))).map(Ok),
                )
            }
            Outgoing::Streamed(streamed) => streamed.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Outgoing::Whole(data, trailers) => data.is_none() && trailers.is_none(),
            Outgoing::Streamed(streamed) => streamed.is_end(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            // Trailers need a body whose length is not told beforehand.
            Outgoing::Whole(_, Some(_)) => SizeHint::default(),
            Outgoing::Whole(data, None) => SizeHint::with_exact(data.as_ref().map_or(0, Bytes::len) as u64),
            Outgoing::Streamed(streamed) => {
                let first: u64 = streamed.first.iter().map(|data| data.len() as u64).sum();
                let rest = streamed.rest.size_hint();
                rest.exact().map_or_else(SizeHint::default, |rest| SizeHint::with_exact(first + rest))
            }
        }
    }
}

impl Streamed {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let frame = match self.first.pop_front() {
            Some(data) => Some(Ok(Frame::data(data))),
            None => ready!(Pin::new(&mut self.rest).poll_frame(cx)),
        };
        self.progress.frames.fetch_add(1, Ordering::Relaxed);
        if frame.is_none() || self.is_end() {
            self.progress.done.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end(&self) -> bool {
        self.first.is_empty() && self.rest.is_end_stream()
    }
}
