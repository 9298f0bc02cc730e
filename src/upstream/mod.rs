//! The way to the endpoint behind Seam: one pool of connections, whose HTTP/1.1
//! ones are driven by whoever uses them. Knows no JSON.
//!
//! A pooled client usually gives every connection a task of its own, which
//! costs a hop between two tasks for each chunk of a reply. Here an exchange
//! takes the whole connection: the task that serves the client also reads from
//! upstream, inside the reply's body ([`body`]). HTTP/2 connections are shared,
//! so those keep a task.

mod body;
mod h2;
mod idle;
mod line;
mod pool;
mod request;
mod waking;

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Request, Response, Uri, Version};
use http_body::Body as _;

pub(crate) use body::Body;
pub(crate) use idle::Idle;
pub(crate) use request::Outgoing;

use crate::config::{BaseUrl, Config};
use crate::dial::{self, Connector, Manner, Offer};
use crate::telemetry::{Event, Telemetry};
use crate::tls::TlsError;
use line::{Line, Unanswered};
use pool::Pool;

/// Why upstream gave no reply, or not the whole of one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// There is no connection to it.
    #[error(transparent)]
    Dial(#[from] dial::Fault),
    /// The connection ended, or the reply could not be read, before its head was whole.
    #[error("it gave no reply")]
    NoReply(#[source] hyper::Error),
    /// Nothing came for too long.
    #[error("it sent nothing for {} s", .0.as_secs_f32())]
    Silent(Duration),
    /// The request's body could not be read to its end: the caller's doing.
    #[error("the request's body broke off")]
    RequestBroke(#[source] hyper::Error),
    /// The reply broke off in its body.
    #[error("its reply broke off")]
    ReplyBroke(#[source] hyper::Error),
}

/// The endpoint and the connections to it.
#[derive(Debug)]
pub(crate) struct Upstream {
    base: BaseUrl,
    host: HeaderValue,
    connector: Connector,
    pool: Arc<Pool>,
    idle_timeout: Duration,
    telemetry: Arc<Telemetry>,
}

/// What HTTP version a request is dressed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dress {
    Http1,
    Http2,
}

impl Upstream {
    /// The endpoint that `config` names. No connection is made yet.
    pub(crate) fn new(config: &Config, telemetry: Arc<Telemetry>) -> Result<Upstream, TlsError> {
        let base = config.upstream.clone();
        let host = HeaderValue::from_str(base.authority.as_str())
            .map_err(|_| TlsError::Name(base.authority.to_string()))?;
        let manner = Manner {
            roots: &config.upstream_ca,
            http2: config.http2,
            proxies: &config.proxies,
            timeout: config.connect_timeout,
        };
        let connector = Connector::new(&base, &manner)?;
        let pool = Pool::new(config.pool_idle_timeout);
        Ok(Upstream { base, host, connector, pool, idle_timeout: config.idle_timeout, telemetry })
    }

    /// The host and port, as they may be shown.
    pub(crate) fn authority(&self) -> &Authority {
        &self.base.authority
    }

    /// What stands in the `Host` header of a request to it.
    pub(crate) fn host(&self) -> &HeaderValue {
        &self.host
    }

    /// Where a request for `target` goes: as it is, with the base URL's path
    /// put in front unless it begins with it.
    pub(crate) fn target(&self, target: &Uri) -> Option<PathAndQuery> {
        let asked = target.path_and_query().map_or("/", PathAndQuery::as_str);
        let prefix = self.base.path.as_str();
        let is_inside = |rest: &str| rest.is_empty() || rest.starts_with(['/', '?']);
        let inside = asked.strip_prefix(prefix).is_some_and(is_inside);
        match target.path_and_query() {
            Some(path) if inside || asked == "*" => Some(path.clone()),
            _ => format!("{prefix}{asked}").parse().ok(),
        }
    }

    /// Sends a request whose head is made for the way onward (see `proxy::forward`),
    /// its URI a path alone, and gives the reply as soon as its
    /// head came. Dropping the future, or the reply's body, ends the exchange.
    pub(crate) async fn send(&self, mut request: Request<Outgoing>) -> Result<Response<Body>, Fault> {
        let mut resent = false;
        loop {
            if let Some(shared) = self.pool.share() {
                self.dress(&mut request, Dress::Http2);
                match shared.exchange(request, self.idle()).await {
                    Err(Unanswered { unsent: Some(back), .. }) if !resent => request = back,
                    other => return other.map_err(|unanswered| unanswered.fault),
                }
            } else if let Some(line) = self.pool.take().await {
                self.dress(&mut request, Dress::Http1);
                match line.exchange(request, self.idle_timeout, &self.pool).await {
                    Err(Unanswered { unsent: Some(back), .. }) if !resent => request = back,
                    other => return other.map_err(|unanswered| unanswered.fault),
                }
            } else {
                return self.send_fresh(request).await;
            }
            // Nothing of it was sent: the pooled connection had closed. A fresh one is its one more try.
            self.telemetry.record(Event::Resent);
            resent = true;
            self.pool.clear();
        }
    }

    /// Sends a request that asks to switch protocols, on a connection of its
    /// own; a reply with status 101 can be upgraded.
    pub(crate) async fn send_upgrade(&self, mut request: Request<Outgoing>) -> Result<Response<Body>, Fault> {
        let stream = self.connector.connect(Offer::Http1).await?;
        self.telemetry.record(Event::Connected);
        self.dress(&mut request, Dress::Http1);
        let line = Line::open(stream).await.map_err(Fault::NoReply)?;
        line.exchange_upgradeable(request, self.idle()).await
    }

    async fn send_fresh(&self, mut request: Request<Outgoing>) -> Result<Response<Body>, Fault> {
        let gate = if self.connector.may_share() { self.pool.dialling().await } else { None };
        if let Some(shared) = self.pool.share() {
            drop(gate);
            self.dress(&mut request, Dress::Http2);
            return shared.exchange(request, self.idle()).await.map_err(|unanswered| unanswered.fault);
        }
        let stream = self.connector.connect(Offer::Any).await?;
        self.telemetry.record(Event::Connected);
        if stream.speaks_http2() {
            let shared = h2::Shared::open(stream).await.map_err(Fault::NoReply)?;
            self.pool.offer(&shared);
            drop(gate);
            self.dress(&mut request, Dress::Http2);
            let stream = shared.enter();
            return stream.exchange(request, self.idle()).await.map_err(|unanswered| unanswered.fault);
        }
        self.pool.speaks_http1();
        drop(gate);
        self.dress(&mut request, Dress::Http1);
        let line = Line::open(stream).await.map_err(Fault::NoReply)?;
        line.exchange(request, self.idle_timeout, &self.pool).await.map_err(|unanswered| unanswered.fault)
    }

    fn idle(&self) -> Idle {
        Idle::new(self.idle_timeout)
    }

    /// Fits URI, version, host and framing to the protocol; may be done again for another.
    fn dress(&self, request: &mut Request<Outgoing>, dress: Dress) {
        let path = request.uri().path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
        match dress {
            Dress::Http1 => {
                *request.version_mut() = Version::HTTP_11;
                *request.uri_mut() = Uri::from(path);
                request.headers_mut().insert(HOST, self.host.clone());
                let unframed =
                    !request.body().is_end_stream() && request.body().size_hint().exact().is_none();
                if unframed && !request.headers().contains_key(CONTENT_LENGTH) {
                    // Said aloud, because hyper drops a body of unknown length of methods that seldom have one.
                    request.headers_mut().insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
                }
            }
            Dress::Http2 => {
                *request.version_mut() = Version::HTTP_2;
                let scheme = if self.base.tls { Scheme::HTTPS } else { Scheme::HTTP };
                let mut parts = http::uri::Parts::default();
                parts.scheme = Some(scheme);
                parts.authority = Some(self.base.authority.clone());
                parts.path_and_query = Some(path);
                if let Ok(uri) = Uri::from_parts(parts) {
                    *request.uri_mut() = uri;
                }
                remove_in_order(request.headers_mut(), |name| *name == HOST || *name == TRANSFER_ENCODING);
            }
        }
    }
}

/// Removes headers without moving the others, as `HeaderMap::remove` does.
fn remove_in_order(headers: &mut HeaderMap, unwanted: impl Fn(&http::HeaderName) -> bool) {
    if !headers.keys().any(&unwanted) {
        return;
    }
    let mut kept = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers.iter().filter(|(name, _)| !unwanted(name)) {
        kept.append(name.clone(), value.clone());
    }
    *headers = kept;
}
