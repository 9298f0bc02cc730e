//! A reply whose transfer calls wait until it is known what becomes of them:
//! they go on, go back to the sender that wrote them, go elsewhere, or end in
//! a refusal.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::response;
use tokio::time::Instant;

use super::exchange::{About, Asks, Kind};
use crate::engine::compressed::Decoder;
use crate::engine::event::{Code, Finding};
use crate::engine::handoff::inject::Asked;
use crate::engine::policy::OnFailure;
use crate::engine::record::Correction;
use crate::engine::reply::{Fate, Reply};
use crate::engine::ruling::{Check, Refused, Ruling};
use crate::engine::time::Timestamp;
use crate::engine::view::Dialect;
use crate::engine::watch::{Hold, Holding};
use crate::engine::wire::{self, Earlier};
use crate::proxy::boundary::Boundary;
use crate::proxy::error::Refusal;
use crate::proxy::watched::{Broken, Step};
use crate::telemetry::Passed;

/// Keeps a stream alive in which nothing may be said yet. Readers of event streams skip comments.
const COMMENT: &[u8] = b": waiting for the end of a transfer\n\n";
/// After this much silence a comment is sent: less than the shortest idle timeout of common load balancers.
const COMMENT_EVERY: Duration = Duration::from_secs(3);

/// How a reply's transfer calls wait.
#[derive(Debug)]
pub(super) struct Terms {
    /// The request as upstream got it.
    pub(super) sent: Bytes,
    /// What its sender was asked.
    pub(super) asked: Option<Asked>,
    pub(super) hold: Hold,
    /// How long all corrections may take together.
    pub(super) correction_timeout: Duration,
}

/// The reply, and what came of those before it.
#[derive(Debug)]
pub(super) struct Held {
    terms: Terms,
    dialect: Dialect,
    limit: usize,
    holding: Holding,
    /// Reads a reply that comes compressed: what may change goes on decoded.
    decoder: Option<Decoder>,
    /// Since when time is counted here.
    began: Instant,
    /// What went back to the sender, oldest first.
    corrections: Vec<Correction>,
    /// When the corrections have to be over; none before the first.
    until: Option<Instant>,
    /// The reply that went back to its sender, for the case that nothing better comes.
    back: Option<(Holding, Reply)>,
    /// Whether the client stands between two events, and since when it has heard nothing.
    boundary: Boundary,
    heard: Instant,
}

impl Held {
    /// Holds a reply of this kind. None where its calls cannot be held.
    pub(super) fn new(terms: Terms, kind: &Kind, dialect: Dialect, limit: usize) -> Option<Held> {
        let decoder = match &kind.encoding {
            Some(encoding) => Some(Decoder::new(encoding, limit)?),
            None => None,
        };
        let hold = terms.hold.clone();
        let holding = Holding::new(dialect, kind.streamed, limit, hold, Earlier::default())?;
        let now = Instant::now();
        Some(Held {
            terms,
            dialect,
            limit,
            holding,
            decoder,
            began: now,
            corrections: Vec::new(),
            until: None,
            back: None,
            boundary: Boundary::default(),
            heard: now,
        })
    }

    pub(super) fn push(&mut self, about: &About, chunk: Bytes) -> Step {
        let chunk = match &mut self.decoder {
            None => chunk,
            Some(decoder) => match decoder.take(&chunk) {
                Ok(decoded) => decoded.into(),
                // Its head said that it goes on decoded: it cannot go on otherwise any more.
                Err(_) => return Step::Break(Broken::Unkept(Passed::ReplyUnreadable)),
            },
        };
        let was_over = self.holding.over().is_some();
        let out = self.holding.push(chunk, self.now());
        if !was_over {
            self.tell_if_over(about);
        }
        self.going(out)
    }

    /// The reply ended. Gives it, where it could be read, and what follows.
    pub(super) async fn finish(&mut self, about: &About, clean: bool) -> (Option<Reply>, Step) {
        let reply = self.holding.finish(clean);
        if !clean {
            return (None, Step::End(self.holding.release_broken()));
        }
        let Some(reply) = reply else {
            about.inner.unread();
            return (None, self.unruled(Passed::ReplyUnreadable));
        };
        if let (Some(correction), Some(usage)) = (self.corrections.last_mut(), &reply.usage) {
            (correction.input, correction.output) = (usage.input, usage.output);
            about.inner.telemetry.correction_cost(usage);
        }
        self.back = None;
        let step = self.rule(about, &reply, true).await;
        (Some(reply), step)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let bound = self.holding.deadline().map(|at| self.began + Duration::from_millis(at.0));
        let until = self.until.filter(|_| self.back.is_some());
        let comment = (self.holding.is_stream() && (bound.is_some() || until.is_some()))
            .then(|| self.heard + COMMENT_EVERY);
        [bound, until, comment].into_iter().flatten().min()
    }

    /// The deadline has passed.
    pub(super) async fn expire(&mut self, about: &About) -> Step {
        if self.back.is_some() && self.until.is_some_and(|until| until <= Instant::now()) {
            return self.uncorrected(about).await;
        }
        let out = self.holding.expire(self.now());
        if self.holding.over().is_some() {
            self.tell_if_over(about);
            return self.going(out);
        }
        let comments = self.holding.is_stream() && self.boundary.is_between_events();
        self.heard = Instant::now();
        Step::Emit(if comments { vec![Bytes::from_static(COMMENT)] } else { Vec::new() })
    }

    /// The sender answers what it was told, or cannot.
    pub(super) async fn again(&mut self, about: &About, head: Option<&response::Parts>) -> Step {
        let goes_on = head.is_some_and(|head| {
            let kind = Kind::of(head);
            head.status.is_success() && kind.encoding.is_none() && kind.streamed == self.holding.is_stream()
        });
        if goes_on { Step::Emit(Vec::new()) } else { self.uncorrected(about).await }
    }

    /// What becomes of a reply whose correction came to nothing.
    async fn uncorrected(&mut self, about: &About) -> Step {
        let Some((holding, reply)) = self.back.take() else { return Step::End(Vec::new()) };
        self.holding = holding;
        self.rule(about, &reply, false).await
    }

    /// Learns from the reply, and does with its transfers what is ruled.
    async fn rule(&mut self, about: &About, reply: &Reply, may_correct: bool) -> Step {
        if self.holding.over() == Some(OnFailure::Closed) {
            return Step::Break(Broken::Unkept(Passed::HoldLimit));
        }
        let held = self.holding.over().is_none();
        let message = if held && may_correct && self.has_time() { self.holding.message(reply) } else { None };
        let asks = Asks {
            // What went on as it came is known to the client as it came.
            asked: self.terms.asked.as_ref().filter(|_| held),
            held,
            may_correct: message.is_some(),
            corrections: &self.corrections,
            later: false,
        };
        let learned = match about.learn(reply, asks).await {
            Ok(learned) => learned,
            Err(trouble) if about.must_keep(reply) => {
                return Step::Break(Broken::Unkept(Passed::from(&trouble)));
            }
            Err(_) => return self.strip(about, reply),
        };
        match (learned.ruling, message) {
            (Ruling::Correct(answers), Some(message)) => {
                self.send_back(about, reply, &message, &answers, learned.faults).await
            }
            (Ruling::Refuse(refused), _) => Step::Break(Broken::Refused(refusal(refused))),
            (Ruling::Release | Ruling::Redirect { .. } | Ruling::Correct(_), _) => {
                self.release(reply, &learned.fates)
            }
        }
    }

    /// Asks the sender once more.
    async fn send_back(
        &mut self,
        about: &About,
        reply: &Reply,
        message: &str,
        answers: &[String],
        faults: Vec<Finding>,
    ) -> Step {
        let again = wire::resubmission(&self.terms.sent, self.dialect, message, reply, answers);
        let earlier = self.holding.earlier(reply);
        let (streamed, hold) = (self.holding.is_stream(), self.terms.hold.clone());
        let next = Holding::new(self.dialect, streamed, self.limit, hold, earlier);
        let (Ok(Some(request)), Some(next)) = (again, next) else {
            return Box::pin(self.rule(about, reply, false)).await;
        };
        self.decoder = None;
        self.until.get_or_insert_with(|| Instant::now() + self.terms.correction_timeout);
        self.corrections.push(Correction { findings: faults, ..Correction::default() });
        self.terms.sent = request.clone();
        self.back = Some((std::mem::replace(&mut self.holding, next), reply.clone()));
        Step::Again(request)
    }

    /// Nothing can be kept of the reply. What the client did not ask for is still no concern of its own.
    fn strip(&mut self, about: &About, reply: &Reply) -> Step {
        let asked = self.terms.asked.as_ref().filter(|_| self.holding.over().is_none());
        let asks = Asks { asked, ..Asks::default() };
        self.release(reply, &about.learned(reply, None, Arc::default(), asks).fates)
    }

    fn release(&mut self, reply: &Reply, fates: &[Fate]) -> Step {
        let fate = |call: usize| fates.get(call).cloned().unwrap_or(Fate::Whole);
        match self.holding.release(reply, fate) {
            Some(out) => Step::End(out),
            None => self.unruled(Passed::ReplyUnreadable),
        }
    }

    /// Nothing is known of what waits: it goes on as it came, or the reply fails, as was chosen.
    fn unruled(&mut self, reason: Passed) -> Step {
        match self.terms.hold.on_failure {
            OnFailure::Open => Step::End(self.holding.release_raw()),
            OnFailure::Closed => Step::Break(Broken::Unkept(reason)),
        }
    }

    fn going(&mut self, out: Vec<Bytes>) -> Step {
        if self.holding.over() == Some(OnFailure::Closed) {
            return Step::Break(Broken::Unkept(Passed::HoldLimit));
        }
        if out.iter().any(|bytes| !bytes.is_empty()) {
            self.heard = Instant::now();
        }
        for bytes in &out {
            self.boundary.pass(bytes);
        }
        Step::Emit(out)
    }

    fn tell_if_over(&self, about: &About) {
        if self.holding.over().is_some() {
            let what = "a transfer call waited too long, or grew too large, to be held";
            about.inner.telemetry.finding(&Finding::new(Code::LimitReached, "hold", what));
        }
    }

    fn has_time(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() < until)
    }

    /// Milliseconds since it began: what is held here knows no other clock.
    fn now(&self) -> Timestamp {
        Timestamp(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

/// What a client is told of a refused transfer.
fn refusal(refused: Refused) -> Refusal {
    let code = match refused.check {
        Check::Contract => "seam_contract",
        Check::Facts => "seam_facts",
        Check::Hops => "seam_hops",
    };
    Refusal { message: refused.message, param: None, code }
}
