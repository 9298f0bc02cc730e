//! The body of a reply: reading it drives the connection that it comes from.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::task::AbortHandle;

use super::Fault;
use super::h2::Guard;
use super::idle::Idle;
use super::line::Line;
use super::pool::Pool;

/// Frames that are ready together are joined up to this size: one write to the
/// client instead of many. A frame that is larger by itself is never copied.
const JOIN_BYTES: usize = 16 * 1024;
/// And up to this many, so that frames of one byte do not keep the task busy.
const JOIN_FRAMES: usize = 256;

/// A reply's body. It ends with the exchange: dropped before its end, it takes
/// the connection (or the HTTP/2 stream) with it.
#[derive(Debug)]
pub(crate) struct Body {
    incoming: Incoming,
    carrier: Carrier,
    idle: Idle,
    /// What was read beyond the joined frames that were handed out.
    held: Option<Result<Frame<Bytes>, Fault>>,
    /// Upstream ended: nothing more is to be read.
    over: bool,
}

/// Who moves the bytes of an exchange.
#[derive(Debug)]
pub(super) enum Carrier {
    /// Whoever reads the body; the line rests in the pool afterwards.
    Line(Box<Line>, Arc<Pool>),
    /// A task of its own, which ends with the body.
    Task { _abort: Abort },
    /// The task of a shared connection.
    Shared { _guard: Guard },
    /// Nobody any more.
    None,
}

/// Ends a task when dropped.
#[derive(Debug)]
pub(super) struct Abort(AbortHandle);

impl Carrier {
    pub(super) fn task(work: impl Future<Output = ()> + Send + 'static) -> Carrier {
        Carrier::Task { _abort: Abort(tokio::spawn(work).abort_handle()) }
    }
}

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Body {
    pub(super) fn new(incoming: Incoming, carrier: Carrier, idle: Idle) -> Body {
        Body { incoming, carrier, idle, held: None, over: false }
    }

    /// Lets the connection go if there is nothing more to read.
    pub(super) fn settle_if_over(&mut self, cx: &mut Context<'_>) {
        if !self.over && self.incoming.is_end_stream() {
            self.settle(cx);
        }
    }

    fn poll_incoming(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let incoming = &mut self.incoming;
        let frame = match &mut self.carrier {
            Carrier::Line(line, _) => line.poll(cx, |cx| Pin::new(&mut *incoming).poll_frame(cx)),
            _ => Pin::new(incoming).poll_frame(cx),
        };
        frame.map_err(Fault::ReplyBroke)
    }

    /// The reply is whole: the connection may serve another exchange.
    fn settle(&mut self, cx: &mut Context<'_>) {
        self.over = true;
        if let Carrier::Line(mut line, pool) = std::mem::replace(&mut self.carrier, Carrier::None)
            && line.is_open(cx)
        {
            let limit = self.idle.limit();
            line.rest(std::mem::replace(&mut self.idle, Idle::new(limit)));
            pool.put(line);
        }
    }

    /// What can be read without waiting, as one frame where that is cheap.
    fn poll_joined(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let mut joined = Joined::default();
        while !self.over {
            match self.poll_incoming(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    // With a told length nobody may ask again after the last byte.
                    self.settle_if_over(cx);
                    match frame.into_data() {
                        Ok(data) if data.is_empty() => continue,
                        Ok(data) if joined.takes(&data) => joined.push(data),
                        Ok(data) => self.held = Some(Ok(Frame::data(data))),
                        Err(trailers) => self.held = Some(Ok(trailers)),
                    }
                    if self.held.is_some() || joined.is_full() {
                        break;
                    }
                }
                Poll::Ready(Some(Err(fault))) => {
                    self.over = true;
                    self.carrier = Carrier::None;
                    self.held = Some(Err(fault));
                }
                Poll::Ready(None) => self.settle(cx),
                Poll::Pending if joined.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        match joined.into_frame() {
            Some(frame) => Poll::Ready(Some(Ok(frame))),
            None => Poll::Ready(self.held.take()),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let this = self.get_mut();
        if let Some(held) = this.held.take() {
            return Poll::Ready(Some(held));
        }
        match this.poll_joined(cx) {
            Poll::Ready(frame) => {
                this.idle.stir();
                Poll::Ready(frame)
            }
            Poll::Pending => match this.idle.poll(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(()) => {
                    this.over = true;
                    this.carrier = Carrier::None;
                    Poll::Ready(Some(Err(Fault::Silent(this.idle.limit()))))
                }
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_none() && (self.over || self.incoming.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.held {
            None => self.incoming.size_hint(),
            Some(_) => SizeHint::default(),
        }
    }
}

/// Data frames that were ready together.
#[derive(Default)]
struct Joined {
    /// The first frame stays as it is until a second one comes.
    first: Bytes,
    rest: BytesMut,
    frames: usize,
}

impl Joined {
    fn len(&self) -> usize {
        if self.rest.is_empty() { self.first.len() } else { self.rest.len() }
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn is_full(&self) -> bool {
        self.len() >= JOIN_BYTES || self.frames >= JOIN_FRAMES
    }

    /// Whether `data` can be added without growing beyond what is worth a copy.
    fn takes(&self, data: &Bytes) -> bool {
        self.is_empty() || self.len() + data.len() <= JOIN_BYTES
    }

    fn push(&mut self, data: Bytes) {
        self.frames += 1;
        if self.is_empty() {
            self.first = data;
            return;
        }
        if self.rest.is_empty() {
            self.rest.reserve(
                JOIN_BYTES.min((self.first.len() + data.len()) * 4).max(self.first.len() + data.len()),
            );
            self.rest.put_slice(&self.first);
        }
        self.rest.put_slice(&data);
    }

    fn into_frame(self) -> Option<Frame<Bytes>> {
        let data = if self.rest.is_empty() { self.first } else { self.rest.freeze() };
        Some(data).filter(|data| !data.is_empty()).map(Frame::data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(frames: &[usize], expected: &[usize]) {
        let mut out = Vec::new();
        let mut joined = Joined::default();
        for (index, size) in frames.iter().enumerate() {
            let data = Bytes::from(vec![index as u8; *size]);
            if joined.takes(&data) {
                joined.push(data);
            } else {
                out.push(std::mem::take(&mut joined));
                joined.push(data);
            }
        }
        out.push(joined);
        let whole: Vec<u8> = out
            .iter()
            .flat_map(|j| if j.rest.is_empty() { j.first.to_vec() } else { j.rest.to_vec() })
            .collect();
        let sent: Vec<u8> =
            frames.iter().enumerate().flat_map(|(index, size)| vec![index as u8; *size]).collect();
        assert_eq!(whole, sent, "joining changes no byte");
        assert_eq!(out.iter().map(Joined::len).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn small_frames_are_joined_and_large_ones_left_alone() {
        check(&[3, 4, 5], &[12]);
        check(&[100_000, 3], &[100_000, 3]);
        check(&[10_000, 10_000, 1], &[10_000, 10_001]);
        check(&[0, 5], &[5]);
    }
}
