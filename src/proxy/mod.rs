//! One exchange, from the client's request to the end of the reply.
//!
//! [`request`] says which bodies are collected, [`inspect`] asks the engine,
//! [`forward`] makes the heads, [`crate::upstream`] carries them, [`reply`]
//! brings the body back, [`error`] knows every way to fail.

mod boundary;
mod error;
mod forward;
mod guard;
mod inspect;
mod reply;
mod request;
mod resubmit;
mod upgrade;
mod watched;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, Uri, request as head};
use hyper::body::{Body, Incoming};
use tracing::{debug, warn};

pub(crate) use inspect::Inspector;
pub(crate) use reply::Reply;

use crate::config::{Config, OnFailure};
use crate::drain::{Drain, Ending};
use crate::telemetry::metrics::{Part, Stage};
use crate::telemetry::trace::Trace;
use crate::telemetry::{Blame, Event, InFlight, Passed, Telemetry};
use crate::upstream::{self, Outgoing, Upstream};
use error::Failure;
use guard::{Panicked, caught, caught_now};
use inspect::{Exchange, Verdict};
use request::{Collected, Route};
use resubmit::Resubmit;
use watched::{Broken, Watched};

/// What every exchange shares.
#[derive(Debug)]
pub(crate) struct Shell {
    upstream: Upstream,
    inspector: Inspector,
    telemetry: Arc<Telemetry>,
    drain: Drain,
    ending: Ending,
    inspect_limit: usize,
    idle_timeout: Duration,
    on_failure: OnFailure,
}

impl Shell {
    /// What serves exchanges under `config`.
    pub(crate) fn new(
        config: &Config,
        upstream: Upstream,
        inspector: Inspector,
        telemetry: Arc<Telemetry>,
        drain: Drain,
    ) -> Shell {
        let ending = drain.ending();
        let (inspect_limit, idle_timeout) = (config.inspect_limit, config.idle_timeout);
        let on_failure = config.on_failure;
        Shell { upstream, inspector, telemetry, drain, ending, inspect_limit, idle_timeout, on_failure }
    }

    /// Serves one exchange; a failure is a reply too.
    pub(crate) async fn serve(
        self: Arc<Self>,
        mut request: Request<Incoming>,
    ) -> Result<Response<Reply>, Infallible> {
        self.telemetry.record(Event::Request);
        let trace = self.telemetry.tracer.begin(request.method(), request.headers());
        if trace.is_on() {
            request.extensions_mut().insert(trace.clone());
        }
        let mut exchange = pin!(self.exchange(request, trace.clone()));
        // The server polls once more when everything has to end: what has no reply yet gets this one.
        let reply = poll_fn(|cx| {
            if self.ending.is_up() { Poll::Ready(Err(Failure::Ending)) } else { exchange.as_mut().poll(cx) }
        })
        .await;
        Ok(reply.unwrap_or_else(|failure| self.failed(&failure, &trace)))
    }

    async fn exchange(
        self: &Arc<Self>,
        mut request: Request<Incoming>,
        trace: Trace,
    ) -> Result<Response<Reply>, Failure> {
        let in_flight = self.telemetry.begins(trace);
        if request.method() == Method::CONNECT {
            return Err(Failure::Tunnel);
        }
        if let Some(protocol) = forward::upgrade(request.headers()).cloned() {
            let client = upgrade::client_side(&mut request);
            let (mut head, body) = request.into_parts();
            let headers = std::mem::take(&mut head.headers);
            let mut onward = self.onward(&head, headers, Outgoing::streamed(VecDeque::new(), body))?;
            forward::ask_for_upgrade(onward.headers_mut(), &protocol);
            let mut reply = self.upstream.send_upgrade(onward).await.map_err(|fault| self.blamed(fault))?;
            upgrade::join(self, client, &mut reply);
            return self.reply(reply, None, in_flight).await;
        }
        let (mut head, body) = request.into_parts();
        let (body, exchange) = self.inspect(&head, body).await?;
        // Only an exchange that is watched may send its head once more.
        let headers =
            if exchange.is_some() { head.headers.clone() } else { std::mem::take(&mut head.headers) };
        let mut onward = self.onward(&head, headers, body)?;
        if exchange.is_some() {
            forward::ask_for_identity(onward.headers_mut());
        }
        let sent = Instant::now();
        let reply = self.upstream.send(onward).await.map_err(|fault| self.blamed(fault))?;
        self.telemetry.replied(reply.status(), sent.elapsed());
        let exchange = exchange.map(|exchange| (exchange, Resubmit::new(Arc::clone(self), head)));
        self.reply(reply, exchange, in_flight).await
    }

    /// The body that goes on, and who watches the reply.
    async fn inspect(
        &self,
        head: &head::Parts,
        body: Incoming,
    ) -> Result<(Outgoing, Option<Exchange>), Failure> {
        match Route::of(head) {
            Route::Inspect => (),
            Route::Compressed => {
                self.telemetry.record(Event::BodyCompressed);
                self.untouched(head, Passed::BodyCompressed)?;
                return Ok((Outgoing::streamed(VecDeque::new(), body), None));
            }
            Route::Stream => return Ok((Outgoing::streamed(VecDeque::new(), body), None)),
        }
        match request::collect(body, self.inspect_limit, self.idle_timeout).await? {
            Collected::Larger(first, rest) => {
                self.telemetry.record(Event::BodyTooLarge);
                self.untouched(head, Passed::BodyTooLarge)?;
                Ok((Outgoing::streamed(first, rest), None))
            }
            Collected::Whole(body, trailers) => {
                let (body, exchange) = self.judged(head, body).await?;
                Ok((Outgoing::whole(body, trailers), exchange))
            }
        }
    }

    /// The engine's word on a whole body; if it has none to give, the body goes on as it came.
    async fn judged(&self, head: &head::Parts, body: Bytes) -> Result<(Bytes, Option<Exchange>), Failure> {
        self.telemetry.record(Event::Inspected);
        Trace::of(head).inspected(body.len());
        let began = Instant::now();
        let judged = caught(self.inspector.request(head, &body)).await;
        self.telemetry.worked(Part::Request, began.elapsed());
        match judged {
            Ok((Verdict::Forward, exchange)) => Ok((body, exchange)),
            Ok((Verdict::Rewrite(body), exchange)) => Ok((body, exchange)),
            Ok((Verdict::Refuse(refusal), _)) => Err(Failure::Refused(refusal)),
            Ok((Verdict::Untouched(reason), _)) => {
                self.untouched(head, reason)?;
                Ok((body, None))
            }
            Err(panicked) => {
                self.panicked("request", &panicked);
                self.untouched(head, Passed::Panicked)?;
                Ok((body, None))
            }
        }
    }

    /// Seam cannot do its part: the original bytes go on, or the exchange fails, as was chosen.
    fn untouched(&self, head: &head::Parts, reason: Passed) -> Result<(), Failure> {
        match self.on_failure {
            OnFailure::Open => {
                Trace::of(head).passed(reason);
                self.telemetry.passed(reason);
                Ok(())
            }
            OnFailure::Closed => Err(Failure::Closed(reason)),
        }
    }

    /// The request as upstream gets it, with the headers that the client sent.
    fn onward(
        &self,
        client: &head::Parts,
        headers: HeaderMap,
        body: Outgoing,
    ) -> Result<Request<Outgoing>, Failure> {
        let mut headers = forward::request_headers(headers, client.version, self.upstream.host());
        if headers.contains_key(http::header::CONTENT_LENGTH)
            && let Some(length) = body.size_hint().exact()
        {
            headers.insert(http::header::CONTENT_LENGTH, length.into());
        }
        Trace::of(client).onward(&mut headers);
        let target = self.upstream.target(&client.uri).ok_or(Failure::Unforwardable)?;
        let mut request = Request::new(body);
        *request.method_mut() = client.method.clone();
        *request.uri_mut() = Uri::from(target);
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// The reply as the client gets it. Its head goes out at once, but for one reply: a plain one whose
    /// transfers are still to be ruled on.
    async fn reply(
        self: &Arc<Self>,
        reply: Response<upstream::Body>,
        exchange: Option<(Exchange, Resubmit)>,
        in_flight: InFlight,
    ) -> Result<Response<Reply>, Failure> {
        let (mut head, body) = reply.into_parts();
        in_flight.trace().replied(head.status);
        let switched = head.status == http::StatusCode::SWITCHING_PROTOCOLS;
        let protocol = head.headers.get(http::header::UPGRADE).cloned().filter(|_| switched);
        forward::reply_headers(&mut head.headers);
        if let Some(protocol) = protocol {
            forward::ask_for_upgrade(&mut head.headers, &protocol);
        }
        // What upstream's connection attached (its own upgrade, its own version) is not the client's.
        head.extensions.clear();
        head.version = http::Version::HTTP_11;
        let shell = Arc::clone(self);
        let watching = match exchange {
            Some((exchange, again)) => self.watching(&mut head, exchange).map(|exchange| (exchange, again)),
            None => None,
        };
        let Some((exchange, again)) = watching else {
            let body = Reply::straight(shell, &head, body, in_flight);
            return Ok(Response::from_parts(head, body));
        };
        let holds = exchange.holds();
        let told = Arc::clone(self);
        let mut body = Watched::new(body, exchange, again, move |panicked| told.panicked("reply", panicked));
        if holds {
            forward::without_length(&mut head.headers);
            if !reply::is_event_stream(&head) {
                let length = body.begun().await.map_err(|broken| self.broken(broken))?;
                head.headers.extend(length.map(|length| (http::header::CONTENT_LENGTH, length.into())));
            }
        }
        let body = Reply::watched(shell, &head, body, in_flight);
        Ok(Response::from_parts(head, body))
    }

    /// What a reply that breaks off is for the client.
    fn broken(&self, broken: Broken) -> Failure {
        match broken {
            Broken::Upstream(fault) => self.blamed(fault),
            Broken::Unkept(reason) => Failure::Closed(reason),
            Broken::Refused(refusal) => Failure::Refused(refusal),
        }
    }

    /// The exchange, if it wants to watch a reply with this head.
    fn watching(&self, head: &mut http::response::Parts, mut exchange: Exchange) -> Option<Exchange> {
        match caught_now(|| exchange.head(head)) {
            Ok(true) => {
                self.telemetry.record(Event::Watched);
                Some(exchange)
            }
            Ok(false) => None,
            Err(panicked) => {
                self.panicked("reply head", &panicked);
                None
            }
        }
    }

    fn blamed(&self, fault: upstream::Fault) -> Failure {
        Failure::Upstream(self.upstream.authority().to_string(), fault)
    }

    fn failed(&self, failure: &Failure, trace: &Trace) -> Response<Reply> {
        let is_refusal = matches!(failure, Failure::Refused(_));
        trace.failed(if is_refusal { "refused" } else { "failed" }, &failure.code());
        let event = match failure {
            Failure::Refused(_) => Event::Refused,
            _ => match failure.blame() {
                Blame::Upstream => Event::FailedUpstream,
                Blame::Caller => Event::FailedCaller,
                Blame::Us => Event::FailedUs,
            },
        };
        self.telemetry.record(event);
        self.telemetry.failed(failure.reason(), Stage::BeforeHead);
        match failure.blame() {
            // Callers can make as many of these as they like.
            Blame::Caller => debug!(reason = failure.code(), "an exchange failed: {}", failure.message()),
            blame => warn!(reason = failure.code(), ?blame, "an exchange failed: {}", failure.message()),
        }
        failure.response().map(Reply::own)
    }

    fn panicked(&self, place: &'static str, _: &Panicked) {
        self.telemetry.record(Event::Panicked);
        tracing::error!(place, "the engine panicked; the original bytes go on");
    }
}
