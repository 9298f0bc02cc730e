//! Why a request passed as it came, and why one failed: closed lists, from
//! which metrics and `docs/reasons.md` come.

use std::fmt::Write as _;

use super::closed::{Closed, closed};
use crate::engine::decide::Pass;
use crate::runs::Trouble;

closed! {
    /// Why a request to an inspected route went up as the bytes that came.
    pub enum Passed {
        /// Nothing in it names a transfer, and nothing was ever kept that it could belong to.
        NoTransfer = "no_transfer",
        /// It neither offers nor holds a transfer, and no run knows it.
        NothingToDo = "nothing_to_do",
        /// Its system slot ends in a brief already.
        AlreadyBriefed = "already_briefed",
        /// It is a sender's, or another agent's, that did not receive the run.
        NotReceiver = "not_receiver",
        /// Two runs fit it; Seam never guesses.
        AmbiguousRun = "ambiguous_run",
        /// Its agent cannot be told from another one.
        AgentUnclear = "agent_unclear",
        /// The sender declared no handoff, and `SEAM_CONTRACT=read` asks for nothing else.
        NoContract = "no_contract",
        /// More than one choice is asked for (`n` above 1).
        SeveralChoices = "several_choices",
        /// Its reply is made in the background and asked for later.
        Background = "background",
        /// It is of an agent beside the run (`SEAM_OBSERVERS`).
        Observer = "observer",
        /// It is a receiver's, and `SEAM_MODE` or its `seam-mode` header is `observe`: the brief was made in the shadow.
        Observed = "observed",
        /// It is a receiver's, of a run outside `SEAM_REWRITE_PERCENT`: the brief was made in the shadow.
        ControlArm = "control_arm",
        /// Its `seam-mode` header is `off`.
        Off = "off",
        /// Its body is not JSON of the shape that its route promises.
        BodyUnreadable = "body_unreadable",
        /// Its body is larger than `SEAM_INSPECT_LIMIT`.
        BodyTooLarge = "body_too_large",
        /// Its body is compressed.
        BodyCompressed = "body_compressed",
        /// The store failed, did not answer in time, or others kept writing the same run.
        StoreFailed = "store_failed",
        /// Its run stands in the store in a form that this build must not touch.
        RunUnreadable = "run_unreadable",
        /// Its reply could not be read, or not written again, so that nothing could be taken out of it.
        ReplyUnreadable = "reply_unreadable",
        /// A transfer call of its reply could not be held to its end (`SEAM_HOLD_TIMEOUT`, `SEAM_HOLD_BYTES`).
        HoldLimit = "hold_limit",
        /// The engine panicked: a bug.
        Panicked = "panicked",
    }
}

impl From<Pass> for Passed {
    fn from(pass: Pass) -> Passed {
        match pass {
            Pass::NothingToDo => Passed::NothingToDo,
            Pass::AlreadyBriefed => Passed::AlreadyBriefed,
            Pass::NotReceiver => Passed::NotReceiver,
            Pass::AmbiguousRun => Passed::AmbiguousRun,
            Pass::AgentUnclear => Passed::AgentUnclear,
            Pass::NoContract => Passed::NoContract,
            Pass::SeveralChoices => Passed::SeveralChoices,
            Pass::Background => Passed::Background,
        }
    }
}

impl From<&Trouble> for Passed {
    fn from(trouble: &Trouble) -> Passed {
        match trouble {
            Trouble::Store(_) => Passed::StoreFailed,
            Trouble::Unreadable { .. } => Passed::RunUnreadable,
        }
    }
}

closed! {
    /// Why an exchange failed. With `seam_` in front it is the `code` of the error that the client reads.
    pub enum Failed {
        /// The upstream's name has no address.
        UpstreamUnknownHost = "upstream_unknown_host",
        /// No address of the upstream took the connection.
        UpstreamUnreachable = "upstream_unreachable",
        /// The proxy on the way to the upstream (`HTTPS_PROXY`) cannot be reached, or opened no tunnel.
        UpstreamProxy = "upstream_proxy",
        /// Connecting to the upstream took longer than `SEAM_CONNECT_TIMEOUT`.
        UpstreamConnectTimeout = "upstream_connect_timeout",
        /// TLS with the upstream failed: the certificate, the name on it, or the protocol.
        UpstreamTls = "upstream_tls",
        /// The upstream closed the connection, or sent no HTTP, before a reply's head was whole.
        UpstreamNoReply = "upstream_no_reply",
        /// The upstream sent nothing for `SEAM_IDLE_TIMEOUT`.
        UpstreamTimeout = "upstream_timeout",
        /// The upstream's reply broke off in its body.
        UpstreamReplyBroken = "upstream_reply_broken",
        /// The client's body broke off.
        RequestBroken = "request_broken",
        /// The client's body stopped coming for `SEAM_IDLE_TIMEOUT`.
        RequestTimeout = "request_timeout",
        /// A tunnel through Seam was asked for.
        NoForwardProxy = "no_forward_proxy",
        /// The request's target is not a path.
        RequestUnforwardable = "request_unforwardable",
        /// Seam refused the request on the engine's word; the client reads a code of its own.
        Refused = "refused",
        /// Seam could not do its part and `SEAM_ON_FAILURE` is `closed`.
        FailedClosed = "failed_closed",
        /// The process ends.
        Ending = "ending",
    }
}

/// `docs/reasons.md`.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Reasons\n\n\
         Why a request went up as it came, and why an exchange failed. Both lists are closed, and the names are the same in \
         `/metrics`, in `/passes` on the admin listener, in logs and in `seam explain`.\n\n\
         This page is made from the lists in `src/telemetry/reasons.rs`.\n\n\
         ## Why a request passed\n\n\
         A request to any other route than `.../chat/completions` and `.../responses` is streamed on unread and has no \
         reason. With `SEAM_ON_FAILURE=closed` the reasons from `body_unreadable` on fail the exchange instead; the code \
         of the error is then the reason with `seam_` in front.\n\n\
         | reason | means |\n|---|---|\n",
    );
    rows::<Passed>(&mut page, Passed::meaning);
    page.push_str("\n## Why an exchange failed\n\n| reason | means |\n|---|---|\n");
    rows::<Failed>(&mut page, Failed::meaning);
    page
}

fn rows<T: Closed>(page: &mut String, meaning: fn(T) -> &'static str) {
    for value in T::ALL {
        // A string takes all that is written to it.
        let _ = writeln!(page, "| `{}` | {} |", value.name(), meaning(*value));
    }
}
