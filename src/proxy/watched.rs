//! A reply's body on its way through the exchange that watches it, in the task that reads it.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Response, response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::error::Refusal;
use super::guard::{Panicked, caught};
use crate::telemetry::Passed;
use crate::upstream::Fault;

/// What reads a reply as it passes, and says what passes when.
pub(super) trait Watch: Send + 'static {
    /// Bytes came from upstream.
    fn push(&mut self, chunk: Bytes) -> impl Future<Output = Step> + Send;
    /// Upstream ended cleanly, or broke; in that case the break follows what is said here.
    fn finish(&mut self, clean: bool) -> impl Future<Output = Step> + Send;
    /// When [`Watch::expire`] is to be called, if nothing comes before.
    fn deadline(&self) -> Option<Instant>;
    /// The deadline has passed.
    fn expire(&mut self) -> impl Future<Output = Step> + Send;
    /// What was asked for with [`Step::Again`] begins to come under this head, or cannot be had.
    fn again(&mut self, head: Option<&response::Parts>) -> impl Future<Output = Step> + Send;
    /// Whether the bytes that leave are those that came, in their order.
    fn is_transparent(&self) -> bool;
}

/// What happens next.
#[derive(Debug)]
pub(super) enum Step {
    /// These bytes go on.
    Emit(Vec<Bytes>),
    /// Upstream is asked once more, with this body; what it answers goes on in this reply.
    Again(Bytes),
    /// These bytes are the last.
    End(Vec<Bytes>),
    /// The reply breaks off here.
    Break(Broken),
}

/// Asks upstream once more in the course of one reply.
pub(super) trait Again: Send + 'static {
    /// What it answers with.
    type Body: Body<Data = Bytes, Error = Fault> + Send + Unpin + 'static;
    /// Sends the same request with another body. None where no reply came; the reason is told elsewhere.
    fn send(&self, body: Bytes) -> impl Future<Output = Option<Response<Self::Body>>> + Send;
}

/// Why a body ends before its end.
#[derive(Debug)]
pub(super) enum Broken {
    /// Upstream broke off.
    Upstream(Fault),
    /// Seam could not keep what it must not let pass unkept.
    Unkept(Passed),
    /// What it says was refused.
    Refused(Refusal),
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

/// Small chunks that go on together are joined up to this size.
const JOIN_BYTES: usize = 64 * 1024;

/// Frames between the work and the reader of the body; never held across a poll.
#[derive(Clone, Default)]
struct Out(Arc<Mutex<Queue>>);

type Queue = VecDeque<Result<Frame<Bytes>, Broken>>;

impl Watched {
    /// `body`, seen by `exchange`, which may ask upstream once more by `again`; a panic is told to `tell` and
    /// ends nothing else.
    pub(super) fn new<E, A, T>(body: A::Body, exchange: E, again: A, tell: T) -> Watched
    where
        E: Watch,
        A: Again + Sync,
        T: Fn(&Panicked) + Send + 'static,
    {
        let out = Out::default();
        let watcher = Watcher { exchange: Some(exchange), withheld: Withheld::default(), tell };
        let work = Box::pin(watch(body, watcher, again, out.clone()));
        Watched { work: Some(work), out }
    }

    /// Waits for the first of it, while its head can still be another. Gives its length, if all of it is here;
    /// an error where it has failed already.
    pub(super) async fn begun(&mut self) -> Result<Option<u64>, Broken> {
        poll_fn(|cx| {
            loop {
                let mut queue = self.out.queue();
                if let Some(failed) = queue.iter().position(Result::is_err)
                    && let Some(Err(broken)) = queue.remove(failed)
                {
                    return Poll::Ready(Err(broken));
                }
                let lengths = queue.iter().flatten().map(|frame| frame.data_ref().map(Bytes::len));
                let length = lengths.sum::<Option<usize>>().map(|length| length as u64);
                let some = !queue.is_empty();
                drop(queue);
                match &mut self.work {
                    None => return Poll::Ready(Ok(length)),
                    Some(_) if some => return Poll::Ready(Ok(None)),
                    Some(work) => match work.as_mut().poll(cx) {
                        Poll::Ready(()) => self.work = None,
                        Poll::Pending if self.out.queue().is_empty() => return Poll::Pending,
                        Poll::Pending => (),
                    },
                }
            }
        })
        .await
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
        self.leave(chunks);
        // No waker: whoever takes the frames polls again by itself.
        poll_fn(|_| if self.queue().is_empty() { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Hands out data behind which nothing waits.
    fn leave(&self, chunks: impl IntoIterator<Item = Bytes>) {
        let chunks: Vec<Bytes> = chunks.into_iter().filter(|chunk| !chunk.is_empty()).collect();
        let size: usize = chunks.iter().map(Bytes::len).sum();
        // Each frame is written by itself, and what writes them takes only so many at once.
        let chunks =
            if chunks.len() > 2 && size <= JOIN_BYTES { vec![chunks.concat().into()] } else { chunks };
        self.queue().extend(chunks.into_iter().map(|chunk| Ok(Frame::data(chunk))));
    }
}

/// What comes next of a body.
enum Next {
    Data(Bytes),
    Trailers(HeaderMap),
    Broke(Fault),
    Over,
    /// Nothing came before the deadline.
    Late,
}

async fn watch<E, A, T>(mut body: A::Body, mut watcher: Watcher<E, T>, again: A, out: Out)
where
    E: Watch,
    A: Again + Sync,
    T: Fn(&Panicked),
{
    let mut trailers = None;
    loop {
        let mut step = match next(&mut body, watcher.deadline()).await {
            Next::Data(data) => watcher.push(data).await,
            // Nothing comes after them but the end.
            Next::Trailers(last) => {
                trailers = Some(Ok(Frame::trailers(last)));
                continue;
            }
            Next::Late => watcher.expire().await,
            Next::Over => watcher.finish(true).await,
            Next::Broke(fault) => return broke(&mut watcher, fault, &out).await,
        };
        loop {
            step = match step {
                Step::Emit(chunks) => {
                    out.send(chunks).await;
                    break;
                }
                Step::End(chunks) => {
                    out.leave(chunks);
                    out.queue().extend(trailers);
                    return;
                }
                Step::Break(broken) => {
                    out.queue().push_back(Err(broken));
                    return;
                }
                Step::Again(request) => {
                    trailers = None;
                    let (reply, step) = resubmitted(&mut watcher, &again, request, &out).await;
                    if let Some(reply) = reply {
                        body = reply;
                    }
                    step
                }
            }
        }
    }
}

/// What follows upstream's break.
async fn broke<E: Watch, T: Fn(&Panicked)>(watcher: &mut Watcher<E, T>, fault: Fault, out: &Out) {
    let broken = match watcher.finish(false).await {
        Step::Break(broken) => broken,
        Step::Emit(chunks) | Step::End(chunks) => {
            out.leave(chunks);
            Broken::Upstream(fault)
        }
        Step::Again(_) => Broken::Upstream(fault),
    };
    out.queue().push_back(Err(broken));
}

/// Asks upstream once more, and keeps the client's reply alive meanwhile.
async fn resubmitted<E: Watch, A: Again + Sync, T: Fn(&Panicked)>(
    watcher: &mut Watcher<E, T>,
    again: &A,
    request: Bytes,
    out: &Out,
) -> (Option<A::Body>, Step) {
    let mut sending = pin!(again.send(request));
    loop {
        let reply = tokio::select! {
            biased;
            reply = &mut sending => reply,
            () = at(watcher.deadline()) => match watcher.expire().await {
                Step::Emit(chunks) => {
                    out.send(chunks).await;
                    continue;
                }
                other => return (None, other),
            },
        };
        let Some((head, body)) = reply.map(Response::into_parts) else {
            return (None, watcher.again(None).await);
        };
        let step = watcher.again(Some(&head)).await;
        return (Some(body), step);
    }
}

async fn next<B: Body<Data = Bytes, Error = Fault> + Unpin>(body: &mut B, deadline: Option<Instant>) -> Next {
    let frame = tokio::select! {
        biased;
        frame = body.frame() => frame,
        () = at(deadline) => return Next::Late,
    };
    match frame.map(|frame| frame.map(Frame::into_data)) {
        Some(Ok(Ok(data))) => Next::Data(data),
        Some(Ok(Err(frame))) => Next::Trailers(frame.into_trailers().unwrap_or_default()),
        Some(Err(fault)) => Next::Broke(fault),
        None => Next::Over,
    }
}

/// Waits for a point in time; for ever without one.
async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// An exchange that cannot hurt: when it panics, what it held goes on as it came.
struct Watcher<E, T> {
    /// Gone once it has panicked.
    exchange: Option<E>,
    withheld: Withheld,
    tell: T,
}

impl<E: Watch, T: Fn(&Panicked)> Watcher<E, T> {
    async fn push(&mut self, data: Bytes) -> Step {
        let Some(exchange) = &mut self.exchange else { return Step::Emit(vec![data]) };
        let transparent = exchange.is_transparent();
        if transparent {
            self.withheld.came(data.clone());
        }
        match caught(exchange.push(data)).await {
            Ok(step) => {
                if let (Step::Emit(chunks), true) = (&step, transparent) {
                    self.withheld.left(chunks);
                }
                step
            }
            Err(panicked) => self.give_up(&panicked, transparent),
        }
    }

    async fn finish(&mut self, clean: bool) -> Step {
        let Some(exchange) = &mut self.exchange else { return Step::End(Vec::new()) };
        let transparent = exchange.is_transparent();
        match caught(exchange.finish(clean)).await {
            Ok(step) => step,
            Err(panicked) => match self.give_up(&panicked, transparent) {
                Step::Emit(chunks) => Step::End(chunks),
                other => other,
            },
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.exchange.as_ref()?.deadline()
    }

    async fn expire(&mut self) -> Step {
        let Some(exchange) = &mut self.exchange else { return Step::Emit(Vec::new()) };
        let transparent = exchange.is_transparent();
        match caught(exchange.expire()).await {
            Ok(step) => step,
            Err(panicked) => self.give_up(&panicked, transparent),
        }
    }

    async fn again(&mut self, head: Option<&response::Parts>) -> Step {
        let Some(exchange) = &mut self.exchange else { return Step::End(Vec::new()) };
        match caught(exchange.again(head)).await {
            Ok(step) => step,
            Err(panicked) => self.give_up(&panicked, false),
        }
    }

    /// The bytes that came and have not left; where others leave than come, none can be told to be missing.
    fn give_up(&mut self, panicked: &Panicked, transparent: bool) -> Step {
        self.exchange = None;
        (self.tell)(panicked);
        if transparent {
            Step::Emit(std::mem::take(&mut self.withheld.0).into())
        } else {
            Step::Break(Broken::Unkept(Passed::Panicked))
        }
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

    use futures_util::stream::{self, StreamExt};
    use http_body_util::StreamBody;

    use super::*;

    /// Holds everything back, and lets it go or panics when it meets a word.
    #[derive(Default)]
    struct Holder {
        held: Vec<Bytes>,
        /// Whether it is late after a second.
        waits: bool,
        /// Whether other bytes leave than came.
        opaque: bool,
    }

    impl Watch for Holder {
        async fn push(&mut self, chunk: Bytes) -> Step {
            // As if a record were stored first.
            tokio::task::yield_now().await;
            assert!(&chunk[..] != b"panic", "as it was told");
            self.held.push(chunk.clone());
            Step::Emit(if &chunk[..] == b"go" { std::mem::take(&mut self.held) } else { Vec::new() })
        }

        async fn finish(&mut self, clean: bool) -> Step {
            match self.held.last().map(|last| &last[..]) {
                Some(b"unkept") => return Step::Break(Broken::Unkept(Passed::StoreFailed)),
                Some(b"again") => return Step::Again(Bytes::from_static(b"once more")),
                Some(b"panic at the end") => panic!("as it was told"),
                _ => {}
            }
            let mut rest = std::mem::take(&mut self.held);
            rest.push(Bytes::from_static(if clean { b"(end)" } else { b"(break)" }));
            Step::End(rest)
        }

        fn deadline(&self) -> Option<Instant> {
            self.waits.then(|| Instant::now() + std::time::Duration::from_secs(1))
        }

        async fn expire(&mut self) -> Step {
            self.waits = false;
            Step::Emit(vec![Bytes::from_static(b"(late)")])
        }

        async fn again(&mut self, head: Option<&response::Parts>) -> Step {
            self.held.clear();
            match head {
                Some(_) => Step::Emit(vec![Bytes::from_static(b"(again)")]),
                None => Step::End(vec![Bytes::from_static(b"(in vain)")]),
            }
        }

        fn is_transparent(&self) -> bool {
            !self.opaque
        }
    }

    type Frames = StreamBody<stream::BoxStream<'static, Result<Frame<Bytes>, Fault>>>;

    /// Answers with these frames, and gives none the next time.
    struct Once(Mutex<Option<&'static [&'static str]>>);

    impl Again for Once {
        type Body = Frames;

        async fn send(&self, body: Bytes) -> Option<Response<Frames>> {
            assert_eq!(body, "once more");
            let frames = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
            Some(Response::new(self::frames(frames)))
        }
    }

    /// Frames; `BREAK` is upstream breaking off, `X: Y` a trailer, `WAIT` two seconds.
    fn frames(frames: &[&'static str]) -> Frames {
        let frames = frames.to_vec();
        let frame = async |frame: &'static str| match frame.split_once(": ") {
            _ if frame == "BREAK" => Some(Err(Fault::Silent(std::time::Duration::ZERO))),
            _ if frame == "WAIT" => {
                tokio::time::sleep(std::time::Duration::from_secs(2)).await;
                None
            }
            Some((name, value)) => {
                let line = (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap());
                Some(Ok(Frame::trailers(HeaderMap::from_iter([line]))))
            }
            None => Some(Ok(Frame::data(Bytes::from_static(frame.as_bytes())))),
        };
        StreamBody::new(stream::iter(frames).filter_map(frame).boxed())
    }

    /// What comes out for frames going in.
    async fn watched(holder: Holder, first: &[&'static str]) -> (Vec<String>, usize) {
        let panics = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&panics);
        let again = Once(Mutex::new(Some(&["c", "go", "again"])));
        let mut watched = Watched::new(frames(first), holder, again, move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let mut out = Vec::new();
        while let Some(frame) = poll_fn(|cx| watched.poll_frame(cx)).await {
            out.push(match frame.map(Frame::into_data) {
                Ok(Ok(data)) => String::from_utf8(data.to_vec()).unwrap(),
                Ok(Err(trailers)) => format!("{trailers:?}", trailers = trailers.into_trailers().unwrap()),
                Err(Broken::Upstream(_)) => "BREAK".to_owned(),
                Err(Broken::Unkept(reason)) => format!("UNKEPT {reason:?}"),
                Err(Broken::Refused(refusal)) => format!("REFUSED {}", refusal.code),
            });
        }
        assert!(watched.is_end_stream());
        (out, panics.load(Ordering::Relaxed))
    }

    async fn check(frames: &[&'static str], expected: &[&str], panics: usize) {
        let (out, panicked) = watched(Holder::default(), frames).await;
        assert_eq!(
            (out.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), panicked),
            (expected, panics)
        );
    }

    #[tokio::test]
    async fn what_is_held_leaves_when_the_exchange_says_so() {
        check(&["a", "b", "go", "c"], &["abgo", "c", "(end)"], 0).await;
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

    #[tokio::test]
    async fn where_other_bytes_leave_than_came_a_panic_breaks_off() {
        let holder = Holder { opaque: true, ..Holder::default() };
        let (out, panicked) = watched(holder, &["a", "go", "b", "panic", "c"]).await;
        assert_eq!((out, panicked), (vec!["a".into(), "go".into(), "UNKEPT Panicked".into()], 1));
    }

    #[tokio::test]
    async fn upstream_is_asked_once_more_in_the_same_reply() {
        check(&["a", "go", "b", "again"], &["a", "go", "(again)", "c", "go", "(in vain)"], 0).await;
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_told_when_it_is_late() {
        let holder = Holder { waits: true, ..Holder::default() };
        let (out, _) = watched(holder, &["a", "WAIT", "go"]).await;
        assert_eq!(out, ["(late)", "a", "go", "(end)"]);
    }

    #[tokio::test]
    async fn a_reply_whose_head_waits_begins_with_its_end() {
        let begun = async |holder: Holder, first: &[&'static str]| {
            let again = Once(Mutex::new(None));
            let mut watched = Watched::new(frames(first), holder, again, |_| ());
            watched.begun().await
        };
        assert!(matches!(begun(Holder::default(), &["ab", "c"]).await, Ok(Some(8))));
        assert!(matches!(begun(Holder::default(), &["go", "c"]).await, Ok(None)));
        assert!(matches!(begun(Holder::default(), &["a", "X: 1"]).await, Ok(None)));
        assert!(matches!(begun(Holder::default(), &["a", "BREAK"]).await, Err(Broken::Upstream(_))));
        assert!(matches!(begun(Holder::default(), &["unkept"]).await, Err(Broken::Unkept(_))));
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
