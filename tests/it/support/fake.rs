//! Upstreams that answer as real servers do: each refuses what its server
//! refuses, in its form, and streams as oddly as it does.

mod door;
mod servers;
mod streams;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use door::Author;
pub(crate) use servers::{ALL, Server};

use super::prompt_cache::{PromptCache, Read};
use super::rules::{Fault, GoesBack, faults};

/// What the model says in one reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Turn {
    /// Its text.
    pub(crate) text: Option<String>,
    /// Its calls.
    pub(crate) calls: Vec<Called>,
}

/// One call of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Called {
    pub(crate) id: String,
    pub(crate) name: String,
    /// As the model writes them.
    pub(crate) arguments: String,
}

impl Turn {
    pub(crate) fn says(text: &str) -> Turn {
        Turn { text: Some(text.to_owned()), calls: Vec::new() }
    }

    pub(crate) fn calls(id: &str, name: &str, arguments: &str) -> Turn {
        Turn::default().and(id, name, arguments)
    }

    /// The same with one more call.
    pub(crate) fn and(mut self, id: &str, name: &str, arguments: &str) -> Turn {
        self.calls.push(Called { id: id.into(), name: name.into(), arguments: arguments.into() });
        self
    }

    /// The message that a client keeps of it, with what `server` wants back.
    pub(crate) fn message(&self, server: &Server) -> Value {
        let mut message = json!({"role": "assistant", "content": self.text});
        if !self.calls.is_empty() {
            message["tool_calls"] = self
                .calls
                .iter()
                .map(|call| {
                    json!({"id": call.id, "type": "function",
                        "function": {"name": call.name, "arguments": call.arguments}})
                })
                .collect();
            sign(&mut message, server);
        }
        message
    }
}

/// Puts on a message with calls what the server wants back with it.
pub(crate) fn sign(message: &mut Value, server: &Server) {
    match server.rules.goes_back {
        GoesBack::Nothing => {}
        GoesBack::OnMessage(field @ "reasoning_content") => message[field] = json!("The order first."),
        GoesBack::OnMessage(field) => {
            message[field] = json!([{"type": "reasoning.encrypted", "data": "b3BhcXVl", "index": 0}]);
        }
        GoesBack::OnCall(field) => {
            message["tool_calls"][0][field] = json!({"google": {"thought_signature": "c2VhbA=="}});
        }
    }
}

/// A request as the fake judged it.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    pub(crate) body: Value,
    pub(crate) faults: Vec<Fault>,
}

/// Whether a request that breaks a rule is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judge {
    /// It is, as by the real server.
    Refuse,
    /// It is answered all the same: the client's own list is as it is, and the conversation has to go on.
    Note,
}

#[derive(Default)]
struct Desk {
    script: VecDeque<(Turn, Judge)>,
    seen: Vec<Judged>,
    /// Where it reckons what a prompt costs.
    cache: Option<PromptCache>,
    /// Who says the words in place of the script.
    author: Option<Arc<Author>>,
}

/// A running fake. It ends when it is dropped.
pub(crate) struct Fake {
    pub(crate) server: &'static Server,
    pub(crate) address: SocketAddr,
    desk: Arc<Mutex<Desk>>,
    task: tokio::task::JoinHandle<()>,
}

impl Fake {
    pub(crate) async fn start(server: &'static Server) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let desk = Arc::new(Mutex::new(Desk::default()));
        let task = tokio::spawn({
            let desk = Arc::clone(&desk);
            async move {
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let desk = Arc::clone(&desk);
                    tokio::spawn(async move {
                        let answer = service_fn(|request| answer(server, Arc::clone(&desk), request));
                        let connection = hyper::server::conn::http1::Builder::new();
                        let _ = connection.serve_connection(TokioIo::new(stream), answer).await;
                    });
                }
            }
        });
        Fake { server, address, desk, task }
    }

    /// From now on its replies say what of the prompt was cached.
    pub(crate) fn caches(&self) {
        self.desk.lock().unwrap().cache = Some(PromptCache::default());
    }

    /// The base URL that a client would have.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What the model says next.
    pub(crate) fn next(&self, turn: Turn, judge: Judge) {
        self.desk.lock().unwrap().script.push_back((turn, judge));
    }

    /// The last request that came.
    pub(crate) fn last(&self) -> Judged {
        self.desk.lock().unwrap().seen.last().cloned().expect("a request came")
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    server: &'static Server,
    desk: Arc<Mutex<Desk>>,
    request: Request<Incoming>,
) -> hyper::Result<Response<Full<Bytes>>> {
    let body = request.into_body().collect().await?.to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let found = faults(&body, server.rules);
    let model = body["model"].as_str().unwrap_or_default().to_owned();
    let judged = Judged { body: body.clone(), faults: found.clone() };
    let author = desk.lock().unwrap().author.clone();
    let mut read = Read { input: 1, cached: 0 };
    let mut shape = server.shape;
    let (turn, judge) = if let Some(author) = author {
        // Clients that put the names of a call's fragments together cannot be asked here, with Seam or without.
        shape.name_again = false;
        author.turn(server, &judged).await
    } else {
        let mut desk = desk.lock().unwrap();
        read = desk.cache.as_mut().map_or(read, |cache| cache.read(&body));
        desk.seen.push(judged);
        desk.script.pop_front().unwrap_or((Turn::says("Yes."), Judge::Refuse))
    };
    let (status, kind, reply) = match found.first().filter(|_| judge == Judge::Refuse) {
        Some(fault) => {
            let (status, error) = (server.refuse)(fault);
            (status, "application/json", error.to_string())
        }
        None if body["stream"] == true => (200, "text/event-stream", streams::stream(shape, &turn, &model)),
        None => (200, "application/json", whole(server, &turn, read, &model).to_string()),
    };
    let reply = Response::builder().status(status).header("content-type", kind).body(Full::new(reply.into()));
    Ok(reply.unwrap())
}

/// The id of the next reply: clients merge messages of one id.
fn reply_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("chatcmpl-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn whole(server: &Server, turn: &Turn, read: Read, model: &str) -> Value {
    let finish = if turn.calls.is_empty() || server.shape.finish == servers::Finish::Stop {
        "stop"
    } else {
        "tool_calls"
    };
    json!({"id": reply_id(), "object": "chat.completion", "created": 1, "model": model,
        "choices": [{"index": 0, "message": turn.message(server), "finish_reason": finish}],
        "usage": {"prompt_tokens": read.input, "completion_tokens": 1, "total_tokens": read.input + 1,
            "prompt_tokens_details": {"cached_tokens": read.cached}}})
}

#[test]
fn every_profile_has_its_server_and_every_server_refuses_in_its_own_form() {
    let profiles: Vec<&str> = seam::config::profiles::ALL.iter().map(|(name, _)| *name).collect();
    assert_eq!(ALL.iter().map(|server| server.name).collect::<Vec<_>>(), profiles);
    for server in ALL {
        let (status, error) = (server.refuse)(&Fault { place: "messages[1]".into(), what: "odd".into() });
        assert!((400..=500).contains(&status) && error.to_string().contains("odd"), "{}", server.name);
    }
}

/// What Seam makes of a stream has to be what the model said, however its server spells it.
#[test]
fn every_servers_stream_is_read_as_what_the_model_said() {
    use seam::engine::view::Dialect;
    use seam::engine::watch::Watcher;
    let turns = [
        Turn::says("Yes – at noon."),
        Turn::calls("call_1", "transfer_to_dock", r#"{"reason":"a \"late\" ship – ü"}"#),
        Turn::calls("call_1", "look", r#"{"id":1}"#).and("call_2", "transfer_to_dock", "{}"),
    ];
    for server in ALL {
        for turn in &turns {
            let mut watcher = Watcher::new(Dialect::Chat, true, 1 << 20);
            let _ = watcher.push(streams::stream(server.shape, turn, "m").into());
            let (reply, _) = watcher.finish(true);
            let reply = reply.expect(server.name);
            let calls: Vec<Called> = reply
                .calls
                .iter()
                .map(|call| {
                    assert!(call.complete, "{}: {reply:?}", server.name);
                    Called { id: call.id.clone(), name: call.name.clone(), arguments: call.arguments.clone() }
                })
                .collect();
            assert_eq!(
                (calls, reply.text),
                (turn.calls.clone(), turn.text.clone().unwrap_or_default()),
                "{}",
                server.name
            );
        }
    }
}
