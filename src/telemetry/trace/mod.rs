//! Traces: one span a request and one a transfer, for an OTLP receiver. What a
//! span is told here is ids, names, sizes and outcomes; content only where the
//! setting allows it.

mod context;
mod exchange;
mod export;
pub mod names;
mod span;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{HeaderMap, Method};
use tokio::sync::{mpsc, oneshot};

pub use exchange::{SeenIn, Trace};

use crate::clock;
use crate::config::{BaseUrl, Config, Http2, TraceContext};
use crate::dial::{Connector, Manner};
use crate::telemetry::metrics::{Exported, Metrics};
use crate::tls::TlsError;
use context::Context;
use export::{Message, Receiver, WAITING};
use names::Name;
use span::{Kind, Span};

/// How long the last spans may take at the end of the process.
const FAREWELL: Duration = Duration::from_secs(2);

/// Makes spans, or none where nobody receives them.
#[derive(Debug, Default)]
pub struct Tracer(Option<Arc<Making>>);

/// What every span is made with.
struct Making {
    queue: mpsc::Sender<Message>,
    metrics: Arc<Metrics>,
    context: TraceContext,
    content: bool,
    provider: &'static str,
    upstream: BaseUrl,
    /// Ids have to be unlike those of other processes; they are no secret.
    ids: RandomState,
    number: AtomicU64,
}

impl std::fmt::Debug for Making {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Making").field("context", &self.context).finish_non_exhaustive()
    }
}

impl Tracer {
    /// Sends spans to where `config` says, if it does. Needs a runtime.
    pub(super) fn start(config: &Config, metrics: &Arc<Metrics>) -> Result<Tracer, TlsError> {
        let Some(base) = &config.trace_endpoint else { return Ok(Tracer::default()) };
        let manner = Manner {
            roots: &config.trace_ca,
            http2: Http2::Off,
            proxies: &config.proxies,
            timeout: config.connect_timeout,
        };
        let connector = Connector::new(base, &manner)?;
        let receiver = Receiver::new(base, connector, config.trace_headers.clone())
            .ok_or_else(|| TlsError::Name(base.authority.to_string()))?;
        let (queue, spans) = mpsc::channel(WAITING);
        tokio::spawn(export::run(spans, receiver, Arc::clone(metrics)));
        Ok(Tracer(Some(Arc::new(Making {
            queue,
            metrics: Arc::clone(metrics),
            context: config.trace_context,
            content: config.trace_content,
            provider: provider(&config.upstream.host),
            upstream: config.upstream.clone(),
            ids: RandomState::new(),
            number: AtomicU64::new(0),
        }))))
    }

    /// A request came.
    pub(crate) fn begin(&self, method: &Method, headers: &HeaderMap) -> Trace {
        let Some(making) = &self.0 else { return Trace::default() };
        let client = match making.context {
            TraceContext::Off => None,
            TraceContext::On | TraceContext::In => Context::of(headers),
        };
        if client.is_some_and(|client| !client.sampled) {
            return Trace::default();
        }
        let trace = client.map_or_else(|| making.trace_id(), |client| client.trace);
        let context = Context { trace, span: making.id(), sampled: true };
        let parent = client.map(|client| client.span);
        let mut span = Span::new(context, parent, Kind::Client, method.to_string(), clock::nanos());
        span.text(Name::Method, method.as_str());
        span.text(Name::ServerAddress, &making.upstream.host);
        span.number(Name::ServerPort, making.upstream.port);
        Trace::open(Arc::clone(making), span, client.is_some())
    }

    /// Sends what waits, and waits for that a moment: the process ends.
    pub(crate) async fn flush(&self) {
        let Some(making) = &self.0 else { return };
        let (done, flushed) = oneshot::channel();
        let flush = async {
            if making.queue.send(Message::Flush(done)).await.is_ok() {
                let _ = flushed.await;
            }
        };
        // Who does not take the last spans in time does without them.
        let _ = tokio::time::timeout(FAREWELL, flush).await;
    }
}

impl Making {
    /// Never zero, which the standard forbids.
    fn id(&self) -> u64 {
        self.ids.hash_one(self.number.fetch_add(1, Ordering::Relaxed)).max(1)
    }

    fn trace_id(&self) -> u128 {
        (u128::from(self.id()) << 64) | u128::from(self.id())
    }

    /// Hands a span over, or drops it: nobody waits for the receiver.
    fn send(&self, span: Span) {
        if self.queue.try_send(Message::Span(Box::new(span))).is_err() {
            self.metrics.spans.one((Exported::Dropped,));
        }
    }
}

/// Who is behind a host, as the conventions call them; any other speaks OpenAI's API.
fn provider(host: &str) -> &'static str {
    const KNOWN: [(&str, &str); 9] = [
        ("openai.azure.com", "azure.ai.openai"),
        ("services.ai.azure.com", "azure.ai.inference"),
        ("anthropic.com", "anthropic"),
        ("generativelanguage.googleapis.com", "gcp.gemini"),
        ("aiplatform.googleapis.com", "gcp.vertex_ai"),
        ("mistral.ai", "mistral_ai"),
        ("deepseek.com", "deepseek"),
        ("groq.com", "groq"),
        ("x.ai", "x_ai"),
    ];
    let host = host.to_ascii_lowercase();
    let is_of =
        |domain: &str| host.strip_suffix(domain).is_some_and(|head| head.is_empty() || head.ends_with('.'));
    KNOWN.iter().find(|(domain, _)| is_of(domain)).map_or("openai", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_told_by_its_host() {
        let check = |host: &str, expected: &str| assert_eq!(provider(host), expected, "{host}");
        check("api.openai.com", "openai");
        check("shop.openai.azure.com", "azure.ai.openai");
        check("API.mistral.ai", "mistral_ai");
        check("notmistral.ai", "openai");
        check("127.0.0.1", "openai");
    }

    /// Spans that nobody takes.
    fn unsent(waiting: usize) -> (Tracer, mpsc::Receiver<Message>, Arc<Metrics>) {
        let upstream = (crate::config::parse::BASE_URL.parse)("http://127.0.0.1:9").expect("it reads");
        let (queue, spans) = mpsc::channel(waiting);
        let metrics: Arc<Metrics> = Arc::default();
        let making = Making {
            queue,
            metrics: Arc::clone(&metrics),
            context: TraceContext::On,
            content: false,
            provider: "openai",
            upstream,
            ids: RandomState::new(),
            number: AtomicU64::new(0),
        };
        (Tracer(Some(Arc::new(making))), spans, metrics)
    }

    #[test]
    fn what_cannot_wait_is_dropped_and_counted() {
        let (tracer, _spans, metrics) = unsent(3);
        for _ in 0..10 {
            drop(tracer.begin(&Method::POST, &HeaderMap::new()));
        }
        assert_eq!(metrics.spans.value((Exported::Dropped,)), 7);
    }

    #[test]
    fn a_span_is_sent_once_when_the_last_of_its_exchange_is_done() {
        let (tracer, mut spans, _) = unsent(3);
        let trace = tracer.begin(&Method::POST, &HeaderMap::new());
        let other = trace.clone();
        drop(trace);
        assert!(spans.try_recv().is_err());
        drop(other);
        assert!(spans.try_recv().is_ok() && spans.try_recv().is_err());
    }

    #[test]
    fn without_a_receiver_nothing_is_made() {
        let trace = Tracer::default().begin(&Method::POST, &HeaderMap::new());
        let mut headers = HeaderMap::new();
        trace.onward(&mut headers);
        trace.inspected(3);
        assert!(headers.is_empty());
    }
}
