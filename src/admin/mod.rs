//! The admin listener: health and metrics for machines, handoffs for those who
//! run Seam.

mod handoffs;
mod health;
mod may;
mod page;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::net::TcpListener;

use crate::config::{Config, OnFailure, Secret};
use crate::drain::{Drain, Signal};
use crate::runs::Runs;
use crate::telemetry::Telemetry;

/// Probes, scrapers and people need no more.
const CONNECTIONS: usize = 64;

const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
/// Prometheus' text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

type Answer = Response<Full<Bytes>>;

/// What the admin listener answers from.
#[derive(Debug)]
pub struct Admin {
    runs: Arc<Runs>,
    telemetry: Arc<Telemetry>,
    drain: Drain,
    on_failure: OnFailure,
    token: Option<Secret>,
    /// Whether what was said may be shown.
    content: bool,
}

/// Answers until `signal` says that everything ends: while draining, `/ready` has to be asked still.
pub async fn serve(listener: TcpListener, admin: Arc<Admin>, signal: Signal) {
    let exchange = move |request: Request<Incoming>, peer: SocketAddr| {
        let admin = Arc::clone(&admin);
        async move {
            let (head, _) = request.into_parts();
            Ok::<_, Infallible>(admin.answer(&head, peer).await)
        }
    };
    crate::server::serve(listener, CONNECTIONS, signal, exchange).await;
}

impl Admin {
    /// What `config` lets be seen of `runs` and `telemetry`.
    pub(crate) fn new(config: &Config, runs: Arc<Runs>, telemetry: Arc<Telemetry>, drain: Drain) -> Admin {
        Admin {
            runs,
            telemetry,
            drain,
            on_failure: config.on_failure,
            token: config.admin_token.clone(),
            content: config.admin_content,
        }
    }

    async fn answer(&self, head: &http::request::Parts, peer: SocketAddr) -> Answer {
        let path = head.uri.path();
        if let Some(guarded) = Guarded::of(path) {
            let token = self.token.as_ref();
            return match guarded {
                _ if may::see(head, peer, token) => self.guarded(&guarded, head).await,
                Guarded::Page(_) if token.is_some_and(|token| may::signs_in(head, token)) => {
                    self.guarded(&guarded, head).await
                }
                Guarded::Page(_) if token.is_some() => page::who_are_you(),
                _ => not_found(),
            };
        }
        if !reads(&head.method) {
            return not_allowed("GET, HEAD");
        }
        match path {
            "/live" => text(StatusCode::OK, PLAIN, "live\n"),
            "/ready" => self.ready().await,
            "/metrics" => self.metrics(),
            _ => not_found(),
        }
    }

    async fn guarded(&self, guarded: &Guarded<'_>, head: &http::request::Parts) -> Answer {
        let allowed = match guarded {
            Guarded::Run(_) => "DELETE",
            _ => "GET, HEAD",
        };
        let fits = match guarded {
            Guarded::Run(_) => head.method == Method::DELETE,
            _ => reads(&head.method),
        };
        if !fits {
            return not_allowed(allowed);
        }
        let query = Query::of(head.uri.query().unwrap_or_default());
        match guarded {
            Guarded::Handoffs => self.handoffs(&query).await,
            Guarded::Handoff(id) if query.explain => self.explain(id).await,
            Guarded::Handoff(id) => self.handoff(id).await,
            Guarded::Passes => self.passes(&query),
            Guarded::Report => self.report(&query).await,
            Guarded::Run(id) => self.remove(id).await,
            Guarded::Page(view) => self.page(*view, &query).await,
        }
    }
}

/// What not everybody may see.
enum Guarded<'p> {
    Handoffs,
    Handoff(&'p str),
    Passes,
    Report,
    Run(&'p str),
    Page(page::View<'p>),
}

impl Guarded<'_> {
    fn of(path: &str) -> Option<Guarded<'_>> {
        match path {
            "/handoffs" => Some(Guarded::Handoffs),
            "/passes" => Some(Guarded::Passes),
            "/report" => Some(Guarded::Report),
            _ => path
                .strip_prefix("/handoffs/")
                .map(Guarded::Handoff)
                .or_else(|| path.strip_prefix("/runs/").map(Guarded::Run))
                .or_else(|| page::View::of(path).map(Guarded::Page)),
        }
    }
}

/// What a query asks.
#[derive(Debug, Default, PartialEq, Eq)]
struct Query<'q> {
    limit: usize,
    run: Option<&'q str>,
    explain: bool,
    /// Milliseconds since 1970.
    since: Option<u64>,
    from: Option<&'q str>,
    to: Option<&'q str>,
    worst: usize,
    /// The words that people search for, percent-encoded.
    q: Option<&'q str>,
}

impl Query<'_> {
    /// How many are listed where nothing is said, and at most.
    const LIMIT: usize = 100;
    const MOST: usize = 1_000;

    /// What is not known is passed over.
    fn of(query: &str) -> Query<'_> {
        let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let mut asked = Query { limit: Query::LIMIT, ..Query::default() };
        for (name, value) in pairs {
            match name {
                "limit" => asked.limit = value.parse().unwrap_or(Query::LIMIT).min(Query::MOST),
                "run" => asked.run = Some(value),
                "explain" => asked.explain = true,
                "since" => asked.since = value.parse().ok(),
                "from" => asked.from = Some(value),
                "to" => asked.to = Some(value),
                "q" => asked.q = Some(value),
                "worst" => asked.worst = value.parse().unwrap_or_default(),
                _ => {}
            }
        }
        asked
    }
}

fn reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

fn text(status: StatusCode, kind: &'static str, words: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(words.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

fn json(value: &impl serde::Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(body) => text(StatusCode::OK, JSON, body),
        Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, "it cannot be written as JSON\n"),
    }
}

fn not_found() -> Answer {
    text(StatusCode::NOT_FOUND, PLAIN, "here are /live, /ready and /metrics\n")
}

fn not_allowed(allowed: &'static str) -> Answer {
    let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, PLAIN, format!("only {allowed}\n"));
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_as_far_as_it_is_known() {
        let check = |query: &str, limit, run, explain| {
            assert_eq!(Query::of(query), Query { limit, run, explain, ..Query::default() }, "{query}");
        };
        check("", 100, None, false);
        check("limit=5&run=abc&x=y", 5, Some("abc"), false);
        check("explain", 100, None, true);
        check("limit=1000000&explain=", 1_000, None, true);
        check("limit=-1", 100, None, false);
    }
}
