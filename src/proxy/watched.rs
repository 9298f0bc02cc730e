//! A reply's body on its way through the exchange that watches it, in the task that reads it.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::BodyExt;

use super::guard::{Panicked, caught};
use super::inspect::Exchange;
use crate::telemetry::Passed;
use crate::upstream::Fault;

/// What reads a reply as it passes, and says what passes when.
pub(super) trait Watch: Send + 'static {
    /// Bytes from upstream in; bytes for the client out.
    fn push(&mut self, chunk: Bytes) -> impl Future<Output = Vec<Bytes>> + Send;
    /// Upstream ended cleanly, or broke. An error: what is left must not reach the client.
    fn finish(&mut self, clean: bool) -> impl Future<Output = Result<Vec<Bytes>, Passed>> + Send;
}

/// Why a body ends before its end.
#[derive(Debug)]
pub(super) enum Broken {
    /// Upstream broke off.
    Upstream(Fault),
    /// Seam could not keep what it must not let pass unkept.
    Unkept(Passed),
}

impl Watch for Exchange {
    fn push(&mut self, chunk: Bytes) -> impl Future<Output = Vec<Bytes>> + Send {
        Exchange::push(self, chunk)
    }

    fn finish(&mut self, clean: bool) -> impl Future<Output = Result<Vec<Bytes>, Passed>> + Send {
        Exchange::finish(self, clean)
    }
}

/// A body that goes through its exchange.
///
/// One state machine for the whole of the reply is allocated once. It runs
/// inside whoever reads the body, hands out frames through `out`, and goes on
/// only once those are taken.
pub(super) struct Watched {
    work: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    out: Out,
}

/// Frames between the work and the reader of the body; never held across a poll.
#[derive(Clone, Default)]
struct Out(Arc<Mutex<Queue>>);

type Queue = VecDeque<Result<Frame<Bytes>, Broken>>;

impl Watched {
    /// `body`, seen by `exchange`; a panic of that is told to `tell` and ends nothing else.
    pub(super) fn new<B, E, T>(body: B, exchange: E, tell: T) -> Watched
    where
        B: Body<Data = Bytes, Error = Fault> + Send + Unpin + 'static,
        E: Watch,
        T: Fn(&Panicked) + Send + 'static,
    {
        let out = Out::default();
        let watcher = Watcher { exchange: Some(exchange), withheld: Withheld::default(), tell };
        let work = Box::pin(watch(body, watcher, out.clone()));
        Watched { work: Some(work), out }
    }

    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            if let Some(frame) = self.out.queue().pop_front() {
                return Poll::Ready(Some(frame));
            }
            let Some(work) = &mut self.work else { return Poll::Ready(None) };
            match work.as_mut().poll(cx) {
                Poll::Ready(()) => self.work = None,
                Poll::Pending if self.out.queue().is_empty() => return Poll::Pending,
                Poll::Pending => (),
            }
        }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.work.is_none() && self.out.queue().is_empty()
    }
}

impl Out {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands out data and waits until it is taken.
    async fn send(&self, chunks: impl IntoIterator<Item = Bytes>) {
        let frames = chunks.into_iter().filter(|chunk| !chunk.is_empty()).map(|chunk| Ok(Frame::data(chunk)));
        self.queue().extend(frames);
        // No waker: whoever takes the frames polls again by itself.
        poll_fn(|_| if self.queue().is_empty() { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

async fn watch<B, E, T>(mut body: B, mut watcher: Watcher<E, T>, out: Out)
where
    B: Body<Data = Bytes, Error = Fault> + Unpin,
    E: Watch,
    T: Fn(&Panicked),
{
    let mut last = None;
    while let Some(frame) = body.frame().await {
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) => out.send(watcher.push(data).await).await,
            // Trailers, or the break: nothing comes after it.
            Ok(Err(trailers)) => last = Some(Ok(trailers)),
            Err(fault) => last = Some(Err(Broken::Upstream(fault))),
        }
    }
    let clean = !matches!(last, Some(Err(_)));
    match watcher.finish(clean).await {
        Ok(rest) => out.send(rest).await,
        Err(reason) => last = Some(Err(Broken::Unkept(reason))),
    }
    out.queue().extend(last);
}

/// An exchange that cannot hurt: when it panics, what it held goes on as it came.
struct Watcher<E, T> {
    /// Gone once it has panicked.
    exchange: Option<E>,
    withheld: Withheld,
    tell: T,
}

impl<E: Watch, T: Fn(&Panicked)> Watcher<E, T> {
    async fn push(&mut self, data: Bytes) -> Vec<Bytes> {
        let Some(exchange) = &mut self.exchange else { return vec![data] };
        self.withheld.came(data.clone());
        match caught(exchange.push(data)).await {
            Ok(chunks) => {
                self.withheld.left(&chunks);
                chunks
            }
            Err(panicked) => self.give_up(&panicked),
        }
    }

    async fn finish(&mut self, clean: bool) -> Result<Vec<Bytes>, Passed> {
        let Some(exchange) = &mut self.exchange else { return Ok(Vec::new()) };
        match caught(exchange.finish(clean)).await {
            Ok(finished) => finished,
            Err(panicked) => Ok(self.give_up(&panicked)),
        }
    }

    fn give_up(&mut self, panicked: &Panicked) -> Vec<Bytes> {
        self.exchange = None;
        (self.tell)(panicked);
        std::mem::take(&mut self.withheld.0).into()
    }
}

/// What went into an exchange and has not come out.
#[derive(Default)]
struct Withheld(VecDeque<Bytes>);

impl Withheld {
    fn came(&mut self, data: Bytes) {
        self.0.push_back(data);
    }

    /// As much as `chunks` hold has come out, in the order in which it went in.
    fn left(&mut self, chunks: &[Bytes]) {
        let mut gone: usize = chunks.iter().map(Bytes::len).sum();
        while gone > 0
            && let Some(first) = self.0.front_mut()
        {
            let part = gone.min(first.len());
            bytes::Buf::advance(first, part);
            gone -= part;
            if first.is_empty() {
                self.0.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::stream;
    use http_body_util::StreamBody;

    use super::*;

    /// Holds everything back, and lets it go or panics when it meets a word.
    #[derive(Default)]
    struct Holder {
        held: Vec<Bytes>,
    }

    impl Watch for Holder {
        async fn push(&mut self, chunk: Bytes) -> Vec<Bytes> {
            // As if a record were stored first.
            tokio::task::yield_now().await;
            assert!(&chunk[..] != b"panic", "as it was told");
            self.held.push(chunk.clone());
            if &chunk[..] == b"go" { std::mem::take(&mut self.held) } else { Vec::new() }
        }

        async fn finish(&mut self, clean: bool) -> Result<Vec<Bytes>, Passed> {
            if self.held.last().is_some_and(|last| &last[..] == b"unkept") {
                return Err(Passed::StoreFailed);
            }
            assert!(self.held.last().is_none_or(|last| &last[..] != b"panic at the end"), "as it was told");
            let mut rest = std::mem::take(&mut self.held);
            rest.push(Bytes::from_static(if clean { b"(end)" } else { b"(break)" }));
            Ok(rest)
        }
    }

    /// What comes out for frames going in; `BREAK` is upstream breaking off, `X: Y` a trailer.
    async fn watched(frames: &[&'static str]) -> (Vec<String>, usize) {
        let frames: Vec<_> = frames
            .iter()
            .map(|frame| match frame.split_once(": ") {
                _ if *frame == "BREAK" => Err(Fault::Silent(std::time::Duration::ZERO)),
                Some((name, value)) => {
                    let line = (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap());
                    Ok(Frame::trailers(http::HeaderMap::from_iter([line])))
                }
                None => Ok(Frame::data(Bytes::from_static(frame.as_bytes()))),
            })
            .collect();
        let panics = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&panics);
        let body = StreamBody::new(stream::iter(frames));
        let mut watched = Watched::new(body, Holder::default(), move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let mut out = Vec::new();
        while let Some(frame) = poll_fn(|cx| watched.poll_frame(cx)).await {
            out.push(match frame.map(Frame::into_data) {
                Ok(Ok(data)) => String::from_utf8(data.to_vec()).unwrap(),
                Ok(Err(trailers)) => format!("{trailers:?}", trailers = trailers.into_trailers().unwrap()),
                Err(Broken::Upstream(_)) => "BREAK".to_owned(),
                Err(Broken::Unkept(reason)) => format!("UNKEPT {reason:?}"),
            });
        }
        assert!(watched.is_end_stream());
        (out, panics.load(Ordering::Relaxed))
    }

    async fn check(frames: &[&'static str], expected: &[&str], panics: usize) {
        let (out, panicked) = watched(frames).await;
        assert_eq!(
            (out.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), panicked),
            (expected, panics)
        );
    }

    #[tokio::test]
    async fn what_is_held_leaves_when_the_exchange_says_so() {
        check(&["a", "b", "go", "c"], &["a", "b", "go", "c", "(end)"], 0).await;
        check(&[], &["(end)"], 0).await;
        check(&["a", "X: 1"], &["a", "(end)", r#"{"x": "1"}"#], 0).await;
    }

    #[tokio::test]
    async fn a_break_comes_after_what_was_held() {
        check(&["a", "BREAK"], &["a", "(break)", "BREAK"], 0).await;
    }

    #[tokio::test]
    async fn what_was_not_kept_does_not_leave() {
        check(&["a", "go", "b", "unkept", "X: 1"], &["a", "go", "UNKEPT StoreFailed"], 0).await;
    }

    #[tokio::test]
    async fn a_panic_costs_no_byte() {
        check(&["a", "go", "b", "panic", "c"], &["a", "go", "b", "panic", "c"], 1).await;
        check(&["a", "panic at the end"], &["a", "panic at the end"], 1).await;
        check(&["panic", "panic"], &["panic", "panic"], 1).await;
    }

    #[test]
    fn what_is_withheld_is_what_went_in_and_did_not_come_out() {
        let mut withheld = Withheld::default();
        withheld.came(Bytes::from_static(b"abc"));
        withheld.left(&[]);
        withheld.came(Bytes::from_static(b"def"));
        withheld.left(&[Bytes::from_static(b"abcd")]);
        assert_eq!(withheld.0, [Bytes::from_static(b"ef")]);
    }
}
