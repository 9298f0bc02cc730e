//! One HTTP/1.1 connection to upstream, taken whole by one exchange at a time
//! and driven by it.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::time::Instant;

use super::Fault;
use super::body::{Body, Carrier};
use super::idle::Idle;
use super::pool::Pool;
use super::request::{Outgoing, Progress};
use super::waking::Waking;
use crate::dial::Stream;

/// The largest head of a reply, and the most that is read from upstream at once.
const READ_BYTES: usize = 64 * 1024;

/// A connection and the handle to send on it.
pub(super) struct Line {
    sender: SendRequest<Outgoing>,
    /// Gone once the connection has ended.
    connection: Option<Connection<TokioIo<Stream>, Outgoing>>,
    waking: Waking,
    /// Kept from one exchange to the next, since its timer may be.
    idle: Option<Idle>,
    /// When it was last used.
    pub(super) rested: Instant,
}

/// An exchange without a reply, and the request if nothing of it was sent.
pub(super) struct Unanswered {
    pub(super) fault: Fault,
    pub(super) unsent: Option<Request<Outgoing>>,
}

impl Line {
    pub(super) async fn open(stream: Stream) -> hyper::Result<Box<Line>> {
        let (sender, connection) =
            Builder::new().max_buf_size(READ_BYTES).handshake(TokioIo::new(stream)).await?;
        Ok(Box::new(Line {
            sender,
            connection: Some(connection),
            waking: Waking::default(),
            idle: None,
            rested: Instant::now(),
        }))
    }

    /// Reads from the connection, and moves its bytes both ways as far as the socket lets it.
    pub(super) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut read: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let connection = &mut self.connection;
        self.waking.poll(cx, |cx| {
            drive(connection, cx);
            read(cx)
        })
    }

    /// Whether another request can be sent now; notices a close that has arrived.
    pub(super) fn is_open(&mut self, cx: &mut Context<'_>) -> bool {
        let _ = self.poll(cx, |_| Poll::<()>::Pending);
        self.connection.is_some() && self.sender.is_ready()
    }

    /// Made ready to rest, after an exchange that waited with `idle`.
    pub(super) fn rest(&mut self, idle: Idle) {
        self.idle = Some(idle);
        self.rested = Instant::now();
    }

    /// One exchange up to the reply's head. The line goes into the reply's body.
    pub(super) async fn exchange(
        mut self: Box<Self>,
        request: Request<Outgoing>,
        limit: Duration,
        pool: &Arc<Pool>,
    ) -> Result<Response<Body>, Unanswered> {
        let progress = request.body().progress();
        let mut idle = self.idle.take().unwrap_or_else(|| Idle::new(limit));
        idle.stir();
        let mut reply = pin!(self.sender.try_send_request(request));
        let (connection, waking, mut sent) = (&mut self.connection, &self.waking, 0);
        let head = poll_fn(|cx| {
            let head = waking.poll(cx, |cx| {
                drive(connection, cx);
                reply.as_mut().poll(cx)
            });
            match head {
                Poll::Ready(head) => Poll::Ready(head.map_err(Unanswered::from)),
                Poll::Pending => wait(&mut idle, &mut sent, progress.as_deref(), cx).map(Err),
            }
        })
        .await?;
        idle.stir();
        let carrier = match progress {
            // The client still sends. It may not read the reply before it is done, so the request must
            // not depend on the reply being read: the connection gets a task of its own.
            Some(progress) if !progress.is_done() => match self.connection.take() {
                Some(connection) => Carrier::task(async move {
                    let _ = connection.await;
                }),
                None => Carrier::None,
            },
            _ => Carrier::Line(self, Arc::clone(pool)),
        };
        let mut reply = head.map(|incoming| Body::new(incoming, carrier, idle));
        // Nobody reads a body that is empty.
        poll_fn(|cx| {
            reply.body_mut().settle_if_over(cx);
            Poll::Ready(())
        })
        .await;
        Ok(reply)
    }

    /// One exchange that may end in a tunnel.
    pub(super) async fn exchange_upgradeable(
        mut self: Box<Self>,
        request: Request<Outgoing>,
        mut idle: Idle,
    ) -> Result<Response<Body>, Fault> {
        let carrier = match self.connection.take() {
            Some(connection) => Carrier::task(async move {
                let _ = connection.with_upgrades().await;
            }),
            None => Carrier::None,
        };
        let progress = request.body().progress();
        let mut reply = pin!(self.sender.try_send_request(request));
        let mut sent = 0;
        let head = poll_fn(|cx| match reply.as_mut().poll(cx) {
            Poll::Ready(head) => Poll::Ready(head.map_err(Unanswered::from)),
            Poll::Pending => wait(&mut idle, &mut sent, progress.as_deref(), cx).map(Err),
        })
        .await
        .map_err(|unanswered| unanswered.fault)?;
        idle.stir();
        Ok(head.map(|incoming: Incoming| Body::new(incoming, carrier, idle)))
    }
}

/// Lets a connection do what it can; one that has ended goes.
fn drive(connection: &mut Option<Connection<TokioIo<Stream>, Outgoing>>, cx: &mut Context<'_>) {
    if let Some(driven) = connection
        && Pin::new(driven).poll(cx).is_ready()
    {
        // What went wrong, if anything, is told to the request or the reply's body.
        *connection = None;
    }
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line").field("rested", &self.rested).finish_non_exhaustive()
    }
}

impl From<TrySendError<Request<Outgoing>>> for Unanswered {
    fn from(mut error: TrySendError<Request<Outgoing>>) -> Self {
        let unsent = error.take_message();
        let error = error.into_error();
        let fault = if error.is_user() { Fault::RequestBroke(error) } else { Fault::NoReply(error) };
        Unanswered { fault, unsent }
    }
}

/// Waits for a reply's head: a frame of the request counts as a sign of life.
pub(super) fn wait(
    idle: &mut Idle,
    sent: &mut usize,
    progress: Option<&Progress>,
    cx: &mut Context<'_>,
) -> Poll<Unanswered> {
    if let Some(progress) = progress
        && progress.frames() != *sent
    {
        *sent = progress.frames();
        idle.stir();
    }
    idle.poll(cx).map(|()| Unanswered { fault: Fault::Silent(idle.limit()), unsent: None })
}
