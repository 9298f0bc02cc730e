//! Spans on their way to an OTLP receiver: gathered, bounded, sent in the
//! background. Nobody waits for them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use prost::Message as _;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::{info, warn};

use super::span::{Span, request};
use crate::config::BaseUrl;
use crate::dial::{self, Connector, Offer};
use crate::server::chain;
use crate::telemetry::metrics::{Exported, Metrics};

/// Spans that wait to be sent.
pub(super) const WAITING: usize = 2_048;
/// Spans in one request.
const BATCH: usize = 512;
/// How long the first span of a batch waits for others.
const GATHER: Duration = Duration::from_secs(1);
/// How long a receiver may take over one request.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait before each further try.
const AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];
/// What is read of a receiver's answer, so that its connection ends well.
const ANSWER_BYTES: usize = 64 * 1024;

/// What the exporter is told.
pub(super) enum Message {
    /// A span that has ended.
    Span(Box<Span>),
    /// Send what is there now, and say when that was tried.
    Flush(oneshot::Sender<()>),
}

/// Where spans are sent.
pub(super) struct Receiver {
    connector: Connector,
    host: HeaderValue,
    path: Uri,
    headers: HeaderMap,
}

/// Why a request with spans was not taken.
#[derive(Debug, thiserror::Error)]
enum Unsent {
    #[error("it cannot be reached")]
    Dial(#[from] dial::Fault),
    #[error("the exchange with it broke off")]
    Broke(#[from] hyper::Error),
    #[error("it did not answer within {} s", PATIENCE.as_secs())]
    Slow,
    #[error("it answered with status {0}")]
    Refused(StatusCode),
}

impl Unsent {
    /// What the protocol lets be sent again
    /// (<https://opentelemetry.io/docs/specs/otlp/#retryable-response-codes>).
    fn may_be_sent_again(&self) -> bool {
        match self {
            Unsent::Dial(_) | Unsent::Broke(_) | Unsent::Slow => true,
            Unsent::Refused(status) => matches!(status.as_u16(), 429 | 502..=504),
        }
    }
}

impl Receiver {
    /// The receiver at `base`; `/v1/traces` is put behind its path unless it is there.
    pub(super) fn new(base: &BaseUrl, connector: Connector, headers: HeaderMap) -> Option<Receiver> {
        let path = if base.path.ends_with("/v1/traces") {
            base.path.clone()
        } else {
            format!("{}/v1/traces", base.path)
        };
        let host = HeaderValue::from_str(base.authority.as_str()).ok()?;
        Some(Receiver { connector, host, path: path.parse().ok()?, headers })
    }

    /// Sends spans once, on a connection of its own: one a second at most.
    async fn send(&self, body: Bytes) -> Result<(), Unsent> {
        timeout(PATIENCE, self.exchange(body)).await.unwrap_or(Err(Unsent::Slow))
    }

    async fn exchange(&self, body: Bytes) -> Result<(), Unsent> {
        let stream = self.connector.connect(Offer::Http1).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.clone();
        let headers = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("seam/", env!("CARGO_PKG_VERSION"))));
        headers.extend(self.headers.clone());
        let answered = async move {
            let answer = sender.send_request(request).await?;
            let status = answer.status();
            // What it says of what it did not take helps nobody here.
            let _ = Limited::new(answer.into_body(), ANSWER_BYTES).collect().await;
            drop(sender);
            Ok::<_, hyper::Error>(status)
        };
        let (status, _) = tokio::join!(answered, connection);
        match status? {
            status if status.is_success() => Ok(()),
            status => Err(Unsent::Refused(status)),
        }
    }
}

/// Sends what comes until nobody is left who could send more.
pub(super) async fn run(mut spans: mpsc::Receiver<Message>, receiver: Receiver, metrics: Arc<Metrics>) {
    let mut told = false;
    while let Some(gathered) = gather(&mut spans).await {
        let Gathered { batch, flushed } = gathered;
        if !batch.is_empty() {
            let tries = if flushed.is_some() { 0 } else { AGAIN.len() };
            let outcome = deliver(&receiver, &batch, tries).await;
            let kind = if outcome.is_ok() { Exported::Sent } else { Exported::Failed };
            metrics.spans.add((kind,), batch.len() as u64);
            match outcome {
                Ok(()) if told => {
                    info!("the receiver of traces takes them again");
                    told = false;
                }
                Err(unsent) if !told => {
                    warn!(error = %chain(&unsent), "the receiver of traces took none; the next failures are only counted");
                    told = true;
                }
                _ => {}
            }
        }
        if let Some(flushed) = flushed {
            // Who asked may have stopped waiting.
            let _ = flushed.send(());
        }
    }
}

async fn deliver(receiver: &Receiver, batch: &[Span], tries: usize) -> Result<(), Unsent> {
    let body = Bytes::from(request(batch).encode_to_vec());
    let mut waits = AGAIN.iter().take(tries);
    loop {
        let Err(unsent) = receiver.send(body.clone()).await else { return Ok(()) };
        match waits.next().filter(|_| unsent.may_be_sent_again()) {
            Some(wait) => sleep(*wait).await,
            None => return Err(unsent),
        }
    }
}

/// What is sent at once.
#[derive(Default)]
struct Gathered {
    batch: Vec<Span>,
    flushed: Option<oneshot::Sender<()>>,
}

/// Waits for spans; none once nobody is left who could send one.
async fn gather(spans: &mut mpsc::Receiver<Message>) -> Option<Gathered> {
    let mut gathered = Gathered::default();
    let mut next = spans.recv().await?;
    let deadline = Instant::now() + GATHER;
    loop {
        match next {
            Message::Span(span) => gathered.batch.push(*span),
            Message::Flush(flushed) => gathered.flushed = Some(flushed),
        }
        if gathered.flushed.is_some() || gathered.batch.len() == BATCH {
            return Some(gathered);
        }
        next = match timeout_at(deadline, spans.recv()).await {
            Ok(Some(message)) => message,
            Ok(None) | Err(_) => return Some(gathered),
        };
    }
}
