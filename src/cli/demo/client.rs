//! The demo's client: a small agent stack that sends what an SDK sends, over a
//! connection of its own, and knows nothing of Seam but its address.

use std::net::SocketAddr;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::value::RawValue;
use tokio::net::TcpStream;

use super::chat::{self, Call, Chunk, Completion, Function, Message};
use super::story::{Agent, Delivery, History, Scene};

/// Why a conversation did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("{0} cannot be connected to")]
    Connect(SocketAddr, #[source] std::io::Error),
    #[error("the exchange broke")]
    Exchange(#[from] hyper::Error),
    #[error("a request cannot be written")]
    Request(#[from] http::Error),
    #[error("the answer was {0}: {1}")]
    Refused(StatusCode, String),
    #[error("the answer is no completion")]
    Unreadable(#[from] serde_json::Error),
    #[error("the answer holds no choice")]
    Empty,
    #[error("the tool {0} does not exist")]
    NoSuchTool(String),
    #[error("the conversation did not end")]
    Endless,
}

/// Requests after which a conversation has gone wrong.
const MOST_REQUESTS: usize = 12;

/// Plays the client's side of `scene` against `address` and gives what the customer was last told.
pub(super) async fn converse(scene: &Scene, address: SocketAddr) -> Result<String, Failure> {
    let mut connection = Connection::open(address).await?;
    let mut customer = scene.customer.iter();
    let mut list: Vec<Message> =
        customer.next().map(|turn| Message::text("user", turn)).into_iter().collect();
    let mut holder = &scene.sender;
    for _ in 0..MOST_REQUESTS {
        let reply = connection.complete(scene.delivery, holder, &list).await?;
        list.push(reply.clone());
        for call in &reply.tool_calls {
            if call.function.name == format!("transfer_to_{}", scene.receiver.name) {
                holder = &scene.receiver;
                list.push(Message::result(call, &format!(r#"{{"assistant": "{}"}}"#, holder.name)));
                if scene.history == History::WithoutTools {
                    list.retain(|message| message.tool_calls.is_empty() && message.role != "tool");
                }
            } else {
                list.push(Message::result(call, result(scene, call)?));
            }
        }
        if reply.tool_calls.is_empty() {
            match customer.next() {
                Some(turn) => list.push(Message::text("user", turn)),
                None => return Ok(reply.content.unwrap_or_default()),
            }
        }
    }
    Err(Failure::Endless)
}

fn result(scene: &Scene, call: &Call) -> Result<&'static str, Failure> {
    let known = scene.results.iter().find(|(tool, _)| *tool == call.function.name);
    known.map(|(_, result)| *result).ok_or_else(|| Failure::NoSuchTool(call.function.name.clone()))
}

struct Connection {
    address: SocketAddr,
    sender: SendRequest<Full<Bytes>>,
}

impl Connection {
    async fn open(address: SocketAddr) -> Result<Connection, Failure> {
        let stream = TcpStream::connect(address).await.map_err(|error| Failure::Connect(address, error))?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // What goes wrong on it is told to whoever waits for an answer.
        tokio::spawn(connection);
        Ok(Connection { address, sender })
    }

    /// Asks for the agent's next message.
    async fn complete(
        &mut self,
        delivery: Delivery,
        agent: &Agent,
        list: &[Message],
    ) -> Result<Message, Failure> {
        let mut messages = vec![Message::text("system", agent.instructions)];
        messages.extend_from_slice(list);
        let tools: &RawValue = serde_json::from_str(agent.tools)?;
        let stream = delivery == Delivery::Streamed;
        let body =
            serde_json::to_vec(&chat::Request { model: "scripted", messages: &messages, tools, stream })?;
        let request = Request::post("/v1/chat/completions")
            .header(HOST, self.address.to_string())
            .header(AUTHORIZATION, "Bearer demo")
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))?;
        self.sender.ready().await?;
        let reply = self.sender.send_request(request).await?;
        let status = reply.status();
        let body = reply.into_body().collect().await?.to_bytes();
        match status {
            StatusCode::OK if stream => assembled(&body),
            StatusCode::OK => {
                let whole: Completion = serde_json::from_slice(&body)?;
                whole.choices.into_iter().next().map(|choice| choice.message).ok_or(Failure::Empty)
            }
            _ => Err(Failure::Refused(status, String::from_utf8_lossy(&body).into_owned())),
        }
    }
}

/// The message that an event stream adds up to.
fn assembled(stream: &[u8]) -> Result<Message, Failure> {
    let stream = String::from_utf8_lossy(stream);
    let mut message = Message { role: "assistant".to_owned(), ..Message::default() };
    for data in
        stream.lines().filter_map(|line| line.strip_prefix("data: ")).take_while(|data| *data != "[DONE]")
    {
        let chunk: Chunk = serde_json::from_str(data)?;
        for piece in chunk.choices {
            if let Some(text) = piece.delta.content {
                message.content.get_or_insert_default().push_str(&text);
            }
            for part in piece.delta.tool_calls {
                if message.tool_calls.len() <= part.index {
                    let function =
                        Function { name: part.function.name.unwrap_or_default(), arguments: String::new() };
                    let kind = "function".to_owned();
                    message.tool_calls.push(Call { id: part.id.unwrap_or_default(), kind, function });
                }
                if let Some(call) = message.tool_calls.get_mut(part.index) {
                    call.function.arguments.push_str(&part.function.arguments);
                }
            }
        }
    }
    Ok(message)
}
