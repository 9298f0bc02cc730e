//! The admin listener: `/live` and `/ready`.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::net::TcpListener;

use crate::drain::{Drain, Phase, Signal};

/// Probes and scrapers need no more.
const CONNECTIONS: usize = 64;

/// Answers until `signal` says that everything ends: while draining, `/ready` has to be asked still.
pub async fn serve(listener: TcpListener, drain: Drain, signal: Signal) {
    let exchange = move |request: Request<Incoming>| {
        let answer = answer(request.method(), request.uri().path(), &drain);
        async move { Ok::<_, Infallible>(answer) }
    };
    crate::server::serve(listener, CONNECTIONS, signal, exchange).await;
}

fn answer(method: &Method, path: &str, drain: &Drain) -> Response<Full<Bytes>> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
    }
    match path {
        "/live" => text(StatusCode::OK, "live\n"),
        "/ready" if drain.is_ready() => text(StatusCode::OK, "ready\n"),
        "/ready" if drain.phase() == Phase::Serving => text(StatusCode::SERVICE_UNAVAILABLE, "starting\n"),
        "/ready" => text(StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
        _ => text(StatusCode::NOT_FOUND, "here are /live and /ready\n"),
    }
}

fn text(status: StatusCode, words: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(words.as_bytes())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(drain: &Drain, path: &str, expected: u16) {
        assert_eq!(answer(&Method::GET, path, drain).status().as_u16(), expected, "{path}");
    }

    #[test]
    fn ready_follows_the_process_and_live_does_not() {
        let drain = Drain::default();
        let latch = drain.latch();
        check(&drain, "/ready", 503);
        drop(latch);
        check(&drain, "/ready", 200);
        drain.ask();
        check(&drain, "/ready", 503);
        check(&drain, "/live", 200);
        check(&drain, "/metrics", 404);
    }
}
