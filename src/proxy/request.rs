//! Which requests are inspected, and the collecting of their bodies up to a bound.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method, request};
use hyper::body::{Body, Incoming};

use super::error::Failure;
use crate::upstream::Idle;

/// What is done with a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Collected and shown to the engine.
    Inspect,
    /// It would be, but it is compressed.
    Compressed,
    /// Streamed on unread.
    Stream,
}

impl Route {
    /// Told from the head alone.
    pub(crate) fn of(head: &request::Parts) -> Route {
        let path = head.uri.path();
        let is_known = path.ends_with("/chat/completions") || path.ends_with("/responses");
        if head.method != Method::POST || !is_known || !may_be_json(&head.headers) {
            Route::Stream
        } else if is_encoded(&head.headers) {
            Route::Compressed
        } else {
            Route::Inspect
        }
    }
}

fn may_be_json(headers: &HeaderMap) -> bool {
    // Clients that forget the header, or send what their HTTP library makes up, still send JSON.
    headers.get(CONTENT_TYPE).is_none_or(|value| {
        let kind = value.as_bytes().to_ascii_lowercase();
        memchr::memmem::find(&kind, b"json").is_some() || kind.starts_with(b"text/plain")
    })
}

fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_ENCODING).is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// A body as far as it was collected.
#[derive(Debug)]
pub(crate) enum Collected {
    /// All of it, and the trailers behind it.
    Whole(Bytes, Option<HeaderMap>),
    /// It is larger than the limit: what was read, and the rest.
    Larger(VecDeque<Bytes>, Incoming),
}

/// Collects a body up to `limit`; between two frames it waits at most `idle`.
pub(crate) async fn collect(mut body: Incoming, limit: usize, idle: Duration) -> Result<Collected, Failure> {
    let told = body.size_hint().exact();
    if told.is_some_and(|length| length > limit as u64) {
        return Ok(Collected::Larger(VecDeque::new(), body));
    }
    let (mut frames, mut length) = (VecDeque::new(), 0);
    let mut idle = Idle::new(idle);
    // The first poll asks for the body. What came with the head is there at the next, and no wait for it.
    let mut asked = false;
    while let Some(frame) = next_frame(&mut body, &mut idle, &mut asked).await? {
        match frame.into_data() {
            Ok(data) => {
                length += data.len();
                frames.push_back(data);
                if length > limit {
                    return Ok(Collected::Larger(frames, body));
                }
            }
            Err(frame) => return Ok(Collected::Whole(join(frames, length), frame.into_trailers().ok())),
        }
        if told == Some(length as u64) {
            break;
        }
    }
    Ok(Collected::Whole(join(frames, length), None))
}

async fn next_frame(
    body: &mut Incoming,
    idle: &mut Idle,
    asked: &mut bool,
) -> Result<Option<http_body::Frame<Bytes>>, Failure> {
    idle.stir();
    poll_fn(|cx| match Pin::new(&mut *body).poll_frame(cx) {
        Poll::Ready(frame) => Poll::Ready(frame.transpose().map_err(Failure::RequestBroke)),
        Poll::Pending if std::mem::replace(asked, true) => {
            idle.poll(cx).map(|()| Err(Failure::RequestSilent))
        }
        Poll::Pending => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await
}

fn join(mut frames: VecDeque<Bytes>, length: usize) -> Bytes {
    if frames.len() < 2 {
        return frames.pop_front().unwrap_or_default();
    }
    let mut whole = BytesMut::with_capacity(length);
    for frame in frames {
        whole.extend_from_slice(&frame);
    }
    whole.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn check(method: &str, path: &str, headers: &[(&str, &str)], expected: Route) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        assert_eq!(Route::of(&head), expected, "{method} {path} {headers:?}");
    }

    #[test]
    fn two_routes_are_inspected_under_any_prefix() {
        check("POST", "/v1/chat/completions?a=1", &[], Route::Inspect);
        check(
            "POST",
            "/openai/deployments/x/chat/completions",
            &[("content-type", "application/json")],
            Route::Inspect,
        );
        check(
            "POST",
            "/v1/responses",
            &[("content-type", "application/json; charset=utf-8")],
            Route::Inspect,
        );
        check("POST", "/v1/responses/resp_1/cancel", &[], Route::Stream);
        check("GET", "/v1/responses", &[], Route::Stream);
        check("POST", "/v1/embeddings", &[], Route::Stream);
        check("POST", "/v1/chat/completions", &[("content-type", "multipart/form-data")], Route::Stream);
        check("POST", "/v1/chat/completions", &[("content-encoding", "gzip")], Route::Compressed);
        check("POST", "/v1/chat/completions", &[("content-encoding", "identity")], Route::Inspect);
    }
}
