//! A fast stand-in for an OpenAI-compatible endpoint, on one thread.
//!
//! `mock ADDRESS`. It answers any request: with a chat completion of about 700 bytes, or, where the body has
//! `"stream":true`, with an event stream. Header `mock-stream: GAP,CHUNKS` paces that: a chunk every `GAP`
//! microseconds (0: all at once), `CHUNKS` of them. Each chunk's member `sent` is the clock when it was
//! written, in nanoseconds. Response header `mock-received` is the size of the body that came.

use std::cell::Cell;
use std::fmt::Write as _;
use std::io::Result;
use std::time::Duration;

use seam_compare::clock::now_ns;
use seam_compare::conversation::REPLY;
use seam_compare::wire::{Head, Link, Reads};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep_until};

/// What of a flood is written at once.
const AT_ONCE: usize = 16 << 10;

thread_local! {
    static REPLIES: Cell<u64> = const { Cell::new(0) };
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9100".to_owned());
    let listener = TcpListener::bind(&address).await?;
    LocalSet::new()
        .run_until(async move {
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    // A client that goes away is no fault of the mock's.
                    tokio::task::spawn_local(async move { serve(stream).await.ok() });
                }
            }
        })
        .await
}

async fn serve(stream: TcpStream) -> Result<()> {
    let mut link = Link::new(stream)?;
    let mut body = Vec::new();
    while let Some(head) = link.head(Reads::Requests, "mock-stream").await? {
        body.clear();
        link.body(&head, |part| body.extend_from_slice(part)).await?;
        let id = REPLIES.replace(REPLIES.get() + 1);
        if memchr::memmem::find(&body, br#""stream":true"#).is_some() {
            stream_reply(&mut link, &head, id, body.len()).await?;
        } else {
            link.write(whole_reply(id, body.len()).as_bytes()).await?;
        }
    }
    Ok(())
}

fn whole_reply(id: u64, received: usize) -> String {
    let text = serde_json::Value::from(REPLY);
    let body = format!(
        r#"{{"id":"chatcmpl-{id:012}","object":"chat.completion","created":1922222222,"model":"mock-1","choices":[{{"index":0,"message":{{"role":"assistant","content":{text},"refusal":null}},"logprobs":null,"finish_reason":"stop"}}],"usage":{{"prompt_tokens":1200,"completion_tokens":90,"total_tokens":1290}},"system_fingerprint":"fp_mock"}}"#
    );
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmock-received: {received}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

async fn stream_reply(link: &mut Link, head: &Head, id: u64, received: usize) -> Result<()> {
    let (gap, chunks) = pace(head.field.as_deref());
    let mut out = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nmock-received: {received}\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    let mut next = Instant::now();
    for n in 0..chunks {
        let word = REPLY.split(' ').cycle().nth(n % 64).unwrap_or_default();
        let word = serde_json::Value::from(format!(" {word}"));
        push(&mut out, &event(id, &format!(r#"{{"content":{word}}}"#), "null"));
        if gap > Duration::ZERO || out.len() >= AT_ONCE {
            link.write(out.as_bytes()).await?;
            out.clear();
        }
        if gap > Duration::ZERO {
            next += gap;
            sleep_until(next).await;
        }
    }
    push(&mut out, &event(id, "{}", r#""stop""#));
    push(&mut out, "data: [DONE]\n\n");
    out.push_str("0\r\n\r\n");
    link.write(out.as_bytes()).await
}

fn event(id: u64, delta: &str, finish: &str) -> String {
    let sent = now_ns();
    format!(
        "data: {{\"id\":\"chatcmpl-{id:012}\",\"object\":\"chat.completion.chunk\",\"created\":1922222222,\"model\":\"mock-1\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}],\"sent\":{sent}}}\n\n"
    )
}

fn push(out: &mut String, event: &str) {
    let _ = write!(out, "{:x}\r\n{event}\r\n", event.len());
}

/// The gap between chunks, and how many there are.
fn pace(field: Option<&str>) -> (Duration, usize) {
    let asked = field.and_then(|field| {
        let (gap, chunks) = field.split_once(',')?;
        Some((gap.trim().parse().ok()?, chunks.trim().parse().ok()?))
    });
    let (gap, chunks) = asked.unwrap_or((2_000, 64));
    (Duration::from_micros(gap), chunks)
}
