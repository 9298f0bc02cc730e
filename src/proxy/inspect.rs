//! The border to the engine: what it is shown of an exchange, and what it may say.

#![expect(
    dead_code,
    clippy::unused_async,
    clippy::unused_self,
    reason = "the shape of the border; until the engine speaks through it, everything is forwarded"
)]

use bytes::Bytes;
use http::{request, response};

use super::error::Refusal;

/// Decides about requests to inspected routes.
#[derive(Debug, Default)]
pub(crate) struct Inspector {}

/// One inspected exchange; lives until its reply ended. Dropped before
/// [`Exchange::finish`], the client went away.
#[derive(Debug)]
pub(crate) struct Exchange {}

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The same bytes go on.
    Forward,
    /// These bytes go on in their place.
    Rewrite(Bytes),
    /// Nothing goes on.
    Refuse(Refusal),
}

impl Inspector {
    /// Called with the whole body. `head` is the client's request head. `None` = nothing to watch in the reply.
    pub(crate) async fn request(&self, head: &request::Parts, body: &Bytes) -> (Verdict, Option<Exchange>) {
        let _ = (head, body);
        (Verdict::Forward, None)
    }
}

impl Exchange {
    /// The reply's head came (status, content type, content encoding): whether to watch the body. May add headers to
    /// the reply; one that changes the body's length has to remove `content-length` here.
    pub(crate) fn head(&mut self, head: &mut response::Parts) -> bool {
        let _ = head;
        false
    }

    /// Bytes from upstream in; bytes for the client out (possibly none yet: held).
    pub(crate) async fn push(&mut self, chunk: Bytes) -> Vec<Bytes> {
        vec![chunk]
    }

    /// Upstream ended cleanly (true) or broke (false).
    pub(crate) async fn finish(&mut self, clean: bool) -> Vec<Bytes> {
        let _ = clean;
        Vec::new()
    }
}
