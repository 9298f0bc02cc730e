//! The reply of an inspected exchange: watched as it passes, and learnt from
//! before its last bytes leave.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, header, response};

use super::held::Held;
use super::{Inner, TRIES, Who};
use crate::config::OnFailure;
use crate::engine::compressed::Compressed;
use crate::engine::custody::log::Log;
use crate::engine::custody::run::Run;
use crate::engine::decide::Circumstances;
use crate::engine::event::{Code, Finding};
use crate::engine::learn::{Learned, Terms, late_log, learn, may_wait};
use crate::engine::read::Reading;
use crate::engine::reply::Reply;
use crate::engine::time::Timestamp;
use crate::engine::watch::Watcher;
use crate::proxy::watched::{self, Broken, Step};
use crate::runs::{LateLog, Trouble};
use crate::store::{Content, StoreError};
use crate::telemetry::Passed;
use crate::telemetry::metrics::{Arm, Brief, Part};
use crate::telemetry::trace::SeenIn;

/// A run that begins with a larger request has its log made at once, so that nothing larger than a log is kept.
const LATE_BYTES: usize = 1 << 20;

/// One inspected exchange whose reply teaches something; lives until the reply ended.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(super) about: About,
    /// How its transfer calls wait, if they do; from the reply's head on that is in `watch`.
    pub(super) hold: Option<Box<super::held::Terms>>,
    watch: Option<Watch>,
    waited: Waited,
}

/// What is known of an exchange before its reply.
#[derive(Debug)]
pub(super) struct About {
    pub(super) inner: Arc<Inner>,
    /// The request as the client sent it.
    pub(super) body: Bytes,
    /// What it says.
    pub(super) reading: Arc<Reading<'static>>,
    pub(super) who: Who,
    pub(super) at: Timestamp,
    pub(super) run: String,
    pub(super) arm: Arm,
    /// What the client reads in the reply's head, if the request was changed.
    pub(super) shown: Option<Shown>,
    /// When the reply's head came.
    pub(super) headed: Option<Instant>,
}

/// How the reply is read.
#[derive(Debug)]
enum Watch {
    Plain(Watcher),
    Compressed(Box<Compressed>),
    Held(Box<Held>),
}

/// How much of a reply waited, and since when.
#[derive(Debug, Default)]
struct Waited {
    since: Option<Instant>,
    bytes: usize,
    most: usize,
}

#[derive(Debug)]
pub(super) struct Shown {
    /// The record whose brief the agent reads; none where it is only asked.
    pub(super) record: Option<String>,
    pub(super) outcome: &'static str,
}

impl Exchange {
    pub(super) fn new(about: About, hold: Option<Box<super::held::Terms>>) -> Exchange {
        Exchange { about, hold, watch: None, waited: Waited::default() }
    }

    /// Whether transfer calls of its reply wait, so that other bytes may leave than came.
    pub(crate) fn holds(&self) -> bool {
        self.hold.is_some() || matches!(self.watch, Some(Watch::Held(_)))
    }

    /// The reply's head came: whether to watch the body.
    pub(crate) fn head(&mut self, head: &mut response::Parts) -> bool {
        if let Some(shown) = &self.about.shown {
            let name = shown.record.as_deref().and_then(|record| HeaderValue::from_str(record).ok());
            head.headers.extend(name.map(|name| (HeaderName::from_static("seam-handoff"), name)));
            head.headers.insert("seam-outcome", HeaderValue::from_static(shown.outcome));
        }
        let hold = self.hold.take();
        if !head.status.is_success() {
            return false;
        }
        self.about.headed = Some(Instant::now());
        let kind = Kind::of(head);
        let limit = self.about.inner.reply_limit;
        let dialect = self.about.reading.view.dialect;
        if let Some(terms) = hold {
            self.watch = Held::new(*terms, &kind, dialect, limit).map(|held| Watch::Held(Box::new(held)));
            if self.watch.is_some() {
                head.headers.remove(header::CONTENT_ENCODING);
            }
        }
        if self.watch.is_none() {
            let watcher = Watcher::new(dialect, kind.streamed, limit);
            self.watch = match kind.encoding.as_deref() {
                None => Some(Watch::Plain(watcher)),
                Some(encoding) => {
                    Compressed::new(encoding, watcher, limit).map(|it| Watch::Compressed(Box::new(it)))
                }
            };
        }
        if self.watch.is_none() {
            let what = "its content encoding is not known; nothing was learnt";
            self.about.inner.telemetry.finding(&Finding::new(
                Code::ReplyUnreadable,
                "content-encoding",
                what,
            ));
        }
        self.watch.is_some()
    }

    /// What is told of the reply once it has ended.
    fn tell(&self, reply: &Reply, began: Instant) {
        let telemetry = &self.about.inner.telemetry;
        self.about.who.trace.answered(reply);
        telemetry.worked(Part::ReplyEnd, began.elapsed());
        if let Some(since) = self.waited.since {
            telemetry.held(self.waited.most, since.elapsed());
        }
        if let Some(usage) = &reply.usage {
            telemetry.spent(usage, if self.about.is_briefed() { Brief::With } else { Brief::Without });
        }
    }
}

impl watched::Watch for Exchange {
    /// Bytes from upstream in; bytes for the client out, possibly none yet.
    async fn push(&mut self, chunk: Bytes) -> Step {
        let came = chunk.len();
        let step = match &mut self.watch {
            Some(Watch::Plain(watcher)) => Step::Emit(watcher.push(chunk)),
            Some(Watch::Compressed(watcher)) => Step::Emit(watcher.push(chunk)),
            Some(Watch::Held(held)) => held.push(&self.about, chunk),
            None => Step::Emit(vec![chunk]),
        };
        if let Step::Emit(out) = &step {
            self.waited.passed(came, out);
        }
        step
    }

    /// Upstream ended cleanly or broke. What the reply teaches is stored before its last bytes are given
    /// out; a transfer that could not be stored is not completed where that was chosen.
    async fn finish(&mut self, clean: bool) -> Step {
        let began = Instant::now();
        let (reply, rest) = match self.watch.take() {
            Some(Watch::Plain(watcher)) => watcher.finish(clean),
            Some(Watch::Compressed(watcher)) => watcher.finish(clean),
            Some(Watch::Held(mut held)) => {
                let (reply, step) = held.finish(&self.about, clean).await;
                if let Some(reply) = reply {
                    self.tell(&reply, began);
                }
                self.watch = Some(Watch::Held(held));
                return step;
            }
            None => return Step::End(Vec::new()),
        };
        let about = &self.about;
        let Some(reply) = reply else {
            if clean {
                about.inner.unread();
            }
            return Step::End(rest);
        };
        let learned = about.learn(&reply, Asks::default()).await;
        let unkept = learned.err().filter(|_| about.must_keep(&reply));
        self.tell(&reply, began);
        unkept.map_or(Step::End(rest), |trouble| Step::Break(Broken::Unkept(Passed::from(&trouble))))
    }

    fn deadline(&self) -> Option<tokio::time::Instant> {
        match &self.watch {
            Some(Watch::Held(held)) => held.deadline(),
            _ => None,
        }
    }

    async fn expire(&mut self) -> Step {
        match &mut self.watch {
            Some(Watch::Held(held)) => held.expire(&self.about).await,
            _ => Step::Emit(Vec::new()),
        }
    }

    async fn again(&mut self, head: Option<&response::Parts>) -> Step {
        match &mut self.watch {
            Some(Watch::Held(held)) => held.again(&self.about, head).await,
            _ => Step::End(Vec::new()),
        }
    }

    fn is_transparent(&self) -> bool {
        !self.holds()
    }
}

/// What a reply is learnt from beside itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asks<'a> {
    /// See [`Terms`].
    pub(super) asked: Option<&'a crate::engine::handoff::inject::Asked>,
    pub(super) held: bool,
    pub(super) may_correct: bool,
    pub(super) corrections: &'a [crate::engine::record::Correction],
    /// See [`Terms`].
    pub(super) later: bool,
}

impl About {
    fn is_briefed(&self) -> bool {
        self.shown.as_ref().is_some_and(|shown| shown.record.is_some())
    }

    /// Whether a reply must not be completed where it could not be kept: it calls one of the transfer tools on
    /// offer, and failing was chosen.
    pub(super) fn must_keep(&self, reply: &Reply) -> bool {
        self.inner.on_failure == OnFailure::Closed
            && reply.calls.iter().any(|call| self.reading.offers_tool(&call.name))
    }

    /// Learns from a reply, and stores what it taught.
    pub(super) async fn learn(&self, reply: &Reply, asks: Asks<'_>) -> Result<Learned, Trouble> {
        // Large, and needed once at the end: the exchange does not carry it while its reply passes.
        let learning = Box::pin(self.learn_and_keep(reply, asks));
        let learned = self.inner.runs.within_limit(learning).await;
        if let Err(trouble) = &learned {
            self.inner.telemetry.store_trouble(trouble);
        }
        learned
    }

    async fn learn_and_keep(&self, reply: &Reply, asks: Asks<'_>) -> Result<Learned, Trouble> {
        let inner = &self.inner;
        let tenant = &self.who.tenant;
        let _turn = inner.runs.turn(&self.run).await;
        for _ in 0..TRIES {
            let (run, log, versions) = inner.runs.load(tenant, &self.run).await?;
            let later = run.is_none() && self.body.len() <= LATE_BYTES && may_wait(&self.reading, reply);
            let mut learned = self.learned(reply, run, Arc::clone(&log), Asks { later, ..asks });
            let hops = [learned.transfers.as_slice(), &learned.refused].concat();
            let spans = self.who.trace.transfers(Arc::make_mut(&mut learned.run), &hops, SeenIn::Reply);
            let changed = if later {
                Some(Arc::new(self.late_log(&learned)).into())
            } else {
                Some(&learned.log).filter(|learned| !Arc::ptr_eq(learned, &log)).cloned().map(Content::from)
            };
            match inner.runs.keep(tenant, &learned.run, changed, versions, &learned.lookups, self.at).await {
                Ok(()) => {
                    spans.send();
                    self.who.trace.belongs(&self.run);
                    let after = self.headed.map(|headed| headed.elapsed()).unwrap_or_default();
                    inner.telemetry.learned(&learned, self.arm, after);
                    return Ok(learned);
                }
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::Conflict.into())
    }

    /// The log of a run that began here, to be made when somebody asks for it.
    fn late_log(&self, learned: &Learned) -> LateLog {
        let (inner, reading, run) =
            (Arc::clone(&self.inner), Arc::clone(&self.reading), Arc::clone(&learned.run));
        let (request, now) = (*self.reading.request(&self.body), self.at);
        // The reading holds the texts as they stand in the body and as they read.
        LateLog::new(2 * self.body.len(), move || {
            let log = |_: &str| Log::default();
            let at =
                Circumstances { policy: &inner.policy, now, fresh_id: &String::new, log: &log, body: b"" };
            late_log(&reading, &run, &request, at)
        })
    }

    /// What a reply teaches a run, which is a new one where none is given.
    pub(super) fn learned(
        &self,
        reply: &Reply,
        run: Option<Arc<Run>>,
        log: Arc<Log>,
        asks: Asks<'_>,
    ) -> Learned {
        let begin = || Run::new(self.run.clone(), self.reading.is_opening(), self.at);
        let run = run.map_or_else(begin, Arc::unwrap_or_clone);
        let circumstances = Circumstances {
            policy: &self.inner.policy,
            now: self.at,
            fresh_id: &|| self.run.clone(),
            log: &|_| Log::default(),
            body: &self.body,
        };
        let terms = Terms {
            header: self.who.run.as_deref(),
            request: self.reading.request(&self.body),
            asked: asks.asked,
            held: asks.held,
            may_correct: asks.may_correct,
            corrections: asks.corrections,
            later: asks.later,
        };
        learn(&self.reading, reply, run, log, terms, circumstances)
    }
}

/// How a reply's body is written.
#[derive(Debug)]
pub(super) struct Kind {
    /// Whether it is an event stream.
    pub(super) streamed: bool,
    /// Its content encoding; none where it can be read as it is.
    pub(super) encoding: Option<String>,
}

impl Kind {
    pub(super) fn of(head: &response::Parts) -> Kind {
        let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
        let kind = text(header::CONTENT_TYPE).trim_start().to_ascii_lowercase();
        let encoding = text(header::CONTENT_ENCODING);
        Kind {
            streamed: kind.starts_with("text/event-stream"),
            encoding: (!matches!(encoding, "" | "identity")).then(|| encoding.to_owned()),
        }
    }
}

impl Waited {
    /// So much came, and this went out.
    fn passed(&mut self, came: usize, out: &[Bytes]) {
        let gone: usize = out.iter().map(Bytes::len).sum();
        self.bytes = (self.bytes + came).saturating_sub(gone);
        self.most = self.most.max(self.bytes);
        if self.bytes == 0 {
            self.since = None;
        } else if gone > 0 {
            // The oldest left; what is held now came with this chunk.
            self.since = Some(Instant::now());
        } else {
            self.since.get_or_insert_with(Instant::now);
        }
    }
}
