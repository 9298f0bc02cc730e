//! Listeners and client connections: HTTP/1.1 and HTTP/2 with prior knowledge,
//! with limits on heads and on how many there are. Knows no JSON.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tracing::{debug, warn};

use crate::drain::{Phase, Signal};

/// The largest request head, and the most that is read from a client at once.
const HEAD_BYTES: u32 = 64 * 1024;
/// How long a head may take, and a connection may rest between requests:
/// longer than common clients keep one (Go: 90 s), so that they close first.
const HEAD_TIMEOUT: Duration = Duration::from_mins(2);
/// Exchanges at once on one HTTP/2 connection.
const STREAMS: u32 = 256;
/// HTTP/2 flow-control windows: enough for a long conversation without a round trip.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
/// How long to rest when the machine is out of descriptors.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// Why a reply's body broke off.
type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Accepts connections until draining begins, at most `limit` at once; each
/// holds a clone of `signal` until it ended. `exchange` is told who asks.
pub async fn serve<E, F, B>(listener: TcpListener, limit: usize, mut signal: Signal, exchange: E)
where
    E: Fn(Request<Incoming>, SocketAddr) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<B>, Infallible>> + Send + 'static,
    B: Body<Error: Into<Failed>, Data: Send> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)));
    loop {
        let accepted = tokio::select! {
            biased;
            () = signal.reached(Phase::Draining) => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let Some((stream, peer, place)) = accepted else { continue };
        let (exchange, signal) = (exchange.clone(), signal.clone());
        tokio::spawn(async move {
            connection(stream, signal, move |request| exchange(request, peer)).await;
            drop(place);
        });
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => Some((stream, peer, place)),
        Err(error) => {
            warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_REST).await;
            None
        }
    }
}

async fn connection<E, F, B>(stream: TcpStream, mut signal: Signal, exchange: E)
where
    E: Fn(Request<Incoming>) -> F + Send + 'static,
    F: Future<Output = Result<Response<B>, Infallible>> + Send + 'static,
    B: Body<Error: Into<Failed>, Data: Send> + Send + 'static,
{
    // Without it the last small chunk of an event stream waits for the client's acknowledgement.
    let _ = stream.set_nodelay(true);
    let builder = protocol(signal.clone());
    let mut connection =
        pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service_fn(exchange)));
    let mut phase = Phase::Draining;
    let result = loop {
        tokio::select! {
            biased;
            result = connection.as_mut() => break result,
            () = signal.reached(phase), if phase != Phase::Serving => match phase {
                Phase::Draining => {
                    connection.as_mut().graceful_shutdown();
                    phase = Phase::Ending;
                }
                // The replies see it by themselves: polling the connection once more lets them.
                Phase::Ending | Phase::Serving => phase = Phase::Serving,
            },
        }
    };
    if let Err(error) = result {
        debug!(error = %chain(error.as_ref()), "a client's connection ended");
    }
}

fn protocol(signal: Signal) -> auto::Builder<Tasks> {
    let mut builder = auto::Builder::new(Tasks(signal));
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        // Lines of a head: hyper's own limit of 100, which needs no allocation.
        .max_buf_size(HEAD_BYTES as usize)
        // What upstream sent is what the client gets, its date included.
        .auto_date_header(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD_BYTES)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .auto_date_header(false);
    builder
}

/// Runs the exchanges of an HTTP/2 connection; each is woken when everything has to end.
#[derive(Clone)]
struct Tasks(Signal);

impl<F> hyper::rt::Executor<F> for Tasks
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, future: F) {
        let mut signal = self.0.clone();
        tokio::spawn(async move {
            let mut future = pin!(future);
            tokio::select! {
                biased;
                _ = future.as_mut() => return,
                () = signal.reached(Phase::Ending) => (),
            }
            future.await;
        });
    }
}

/// An error with its causes, for a log line.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let words = next.to_string();
        // Some errors repeat their cause in their own words.
        if !text.ends_with(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = next.source();
    }
    text
}
