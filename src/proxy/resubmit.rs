//! Asks upstream once more in the course of one exchange: the client's request
//! with another body. What it is asked, and what becomes of the answer, is for
//! whoever asks: a sender that is corrected, a tool that Seam answers itself.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{Response, request};
use tracing::debug;

use super::Shell;
use super::forward;
use super::watched::Again;
use crate::upstream::{self, Outgoing};

/// The way back to upstream for one exchange.
pub(super) struct Resubmit {
    shell: Arc<Shell>,
    /// The head of the client's request.
    head: request::Parts,
}

impl Resubmit {
    /// Asks under the head of a client's request.
    pub(super) fn new(shell: Arc<Shell>, head: request::Parts) -> Resubmit {
        Resubmit { shell, head }
    }
}

impl Again for Resubmit {
    type Body = upstream::Body;

    async fn send(&self, body: Bytes) -> Option<Response<upstream::Body>> {
        let headers = self.head.headers.clone();
        let mut onward = self.shell.onward(&self.head, headers, Outgoing::whole(body, None)).ok()?;
        forward::ask_for_identity(onward.headers_mut());
        let sent = Instant::now();
        match self.shell.upstream.send(onward).await {
            Ok(reply) => {
                self.shell.telemetry.replied(reply.status(), sent.elapsed());
                Some(reply)
            }
            Err(fault) => {
                let failure = self.shell.blamed(fault);
                debug!(reason = failure.code(), "upstream could not be asked once more: {failure}");
                None
            }
        }
    }
}
