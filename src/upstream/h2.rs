//! HTTP/2 connections to upstream: shared by many exchanges, each driven by one task.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use http::{Request, Response};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::time::Instant;

use super::body::{Body, Carrier};
use super::idle::Idle;
use super::line::{Unanswered, wait};
use super::request::Outgoing;
use crate::dial::Stream;

/// Exchanges at once on one connection; the next one opens another. Servers
/// commonly allow 100 or more, and one lost packet should not stop them all.
const STREAMS: usize = 100;
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
const HEAD_BYTES: u32 = 64 * 1024;
/// How a connection that died without a word is noticed while a reply is awaited.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection that many exchanges use.
#[derive(Debug)]
pub(super) struct Shared {
    sender: SendRequest<Outgoing>,
    users: Arc<Users>,
}

/// How many exchanges use a connection.
#[derive(Debug)]
struct Users {
    count: AtomicUsize,
    opened: Instant,
    /// Milliseconds after `opened` when the last exchange ended.
    rested_ms: AtomicUsize,
}

/// One exchange's place on a shared connection.
#[derive(Debug)]
pub(super) struct Place {
    sender: SendRequest<Outgoing>,
    guard: Guard,
}

/// Counts down when the exchange is over.
#[derive(Debug)]
pub(super) struct Guard(Arc<Users>);

impl Shared {
    pub(super) async fn open(stream: Stream) -> hyper::Result<Shared> {
        let (sender, connection) = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEAD_BYTES)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT)
            .handshake(TokioIo::new(stream))
            .await?;
        // Ends when the last sender is dropped and its streams are over.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "an HTTP/2 connection to upstream ended");
            }
        });
        let users =
            Users { count: AtomicUsize::new(0), opened: Instant::now(), rested_ms: AtomicUsize::new(0) };
        Ok(Shared { sender, users: Arc::new(users) })
    }

    /// Another handle to the same connection.
    pub(super) fn again(&self) -> Shared {
        Shared { sender: self.sender.clone(), users: Arc::clone(&self.users) }
    }

    /// Whether another exchange fits on it.
    pub(super) fn has_room(&self) -> bool {
        self.users.count.load(Ordering::Relaxed) < STREAMS
    }

    /// Whether it is of no more use: closed, or unused for `limit`.
    pub(super) fn is_spent(&self, limit: Duration) -> bool {
        let rested = Duration::from_millis(self.users.rested_ms.load(Ordering::Relaxed) as u64);
        let unused = self.users.count.load(Ordering::Relaxed) == 0;
        self.sender.is_closed() || (unused && self.users.opened.elapsed().saturating_sub(rested) > limit)
    }

    /// Takes a place on it.
    pub(super) fn enter(&self) -> Place {
        self.users.count.fetch_add(1, Ordering::Relaxed);
        Place { sender: self.sender.clone(), guard: Guard(Arc::clone(&self.users)) }
    }
}

impl Place {
    /// One exchange up to the reply's head.
    pub(super) async fn exchange(
        mut self,
        request: Request<Outgoing>,
        mut idle: Idle,
    ) -> Result<Response<Body>, Unanswered> {
        let progress = request.body().progress();
        let mut reply = pin!(self.sender.try_send_request(request));
        let mut sent = 0;
        let head = poll_fn(|cx| match reply.as_mut().poll(cx) {
            Poll::Ready(head) => Poll::Ready(head.map_err(Unanswered::from)),
            Poll::Pending => wait(&mut idle, &mut sent, progress.as_deref(), cx).map(Err),
        })
        .await?;
        idle.stir();
        let guard = self.guard;
        Ok(head.map(|incoming| Body::new(incoming, Carrier::Shared { _guard: guard }, idle)))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let rested = self.0.opened.elapsed().as_millis() as usize;
        self.0.rested_ms.store(rested, Ordering::Relaxed);
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}
