//! The demo's upstream: a model whose answers are written down, behind a real
//! socket on loopback. It keeps every request body that reaches it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::chat::Received;
use super::story::Answer;

/// A running scripted upstream; it ends when it is dropped.
#[derive(Debug)]
pub(super) struct Upstream {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Script {
    answers: VecDeque<Answer>,
    received: Vec<Bytes>,
}

impl Upstream {
    /// Listens on a free port of loopback.
    pub(super) async fn start() -> io::Result<Upstream> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let script = Arc::<Mutex<Script>>::default();
        let accepting = tokio::spawn(accept(listener, Arc::clone(&script)));
        Ok(Upstream { address, script, accepting })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the next requests are answered with, one each.
    pub(super) fn rehearse(&self, answers: &[Answer]) {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        *script = Script { answers: answers.iter().copied().collect(), received: Vec::new() };
    }

    /// The bodies of all requests since the last rehearsal.
    pub(super) fn received(&self) -> Vec<Bytes> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).received.clone()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, script: Arc<Mutex<Script>>) {
    // A listener on loopback that fails is gone; whoever connects next is told so.
    while let Ok((stream, _)) = listener.accept().await {
        let script = Arc::clone(&script);
        let service = service_fn(move |request| answer(request, Arc::clone(&script)));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(
    request: Request<Incoming>,
    script: Arc<Mutex<Script>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let Ok(body) = request.into_body().collect().await.map(http_body_util::Collected::to_bytes) else {
        return Ok(refused("the request broke off"));
    };
    let next = {
        let mut script = script.lock().unwrap_or_else(PoisonError::into_inner);
        script.received.push(body.clone());
        script.answers.pop_front()
    };
    Ok(match (serde_json::from_slice::<Received>(&body), next) {
        (Err(error), _) => refused(&error.to_string()),
        (_, None) => refused("the script has no further answer"),
        (Ok(received), Some(answer)) if received.stream => reply("text/event-stream", streamed(answer)),
        (Ok(_), Some(answer)) => reply("application/json", whole(answer).to_string()),
    })
}

fn reply(kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut reply = Response::new(Full::new(Bytes::from(body)));
    reply.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(kind));
    reply
}

fn refused(why: &str) -> Response<Full<Bytes>> {
    let error =
        json!({"error": {"message": why, "type": "invalid_request_error", "param": null, "code": null}});
    let mut reply = reply("application/json", error.to_string());
    *reply.status_mut() = StatusCode::BAD_REQUEST;
    reply
}

fn whole(answer: Answer) -> Value {
    let calls = answer.call.map(|[id, name, arguments]| {
        json!([{"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}])
    });
    let mut message = json!({"role": "assistant", "content": answer.text});
    if let Some(calls) = calls {
        message["tool_calls"] = calls;
    }
    json!({
        "id": "chatcmpl-demo", "object": "chat.completion", "created": 0, "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish(answer)}],
    })
}

/// The answer in small events, as a model writes it.
fn streamed(answer: Answer) -> String {
    let mut deltas = vec![json!({"role": "assistant", "content": null})];
    deltas.extend(answer.text.into_iter().flat_map(words).map(|word| json!({"content": word})));
    if let Some([id, name, arguments]) = answer.call {
        let function = json!({"name": name, "arguments": ""});
        deltas
            .push(json!({"tool_calls": [{"index": 0, "id": id, "type": "function", "function": function}]}));
        let fragments = arguments.as_bytes().chunks(8).map(String::from_utf8_lossy);
        deltas.extend(
            fragments
                .map(|fragment| json!({"tool_calls": [{"index": 0, "function": {"arguments": fragment}}]})),
        );
    }
    let mut events: String = deltas.into_iter().map(|delta| event(&delta, None)).collect();
    events.push_str(&event(&json!({}), Some(finish(answer))));
    events.push_str("data: [DONE]\n\n");
    events
}

fn event(delta: &Value, finish: Option<&str>) -> String {
    let chunk = json!({
        "id": "chatcmpl-demo", "object": "chat.completion.chunk", "created": 0, "model": "scripted",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    });
    format!("data: {chunk}\n\n")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

fn finish(answer: Answer) -> &'static str {
    if answer.call.is_some() { "tool_calls" } else { "stop" }
}
