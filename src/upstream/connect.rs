//! A new connection to upstream: name, TCP, TLS.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Fault;
use crate::config::{BaseUrl, Config, Http2, Roots};
use crate::tls::{self, TlsError};

/// No single address of several may use up the whole of the connect timeout.
const LEAST_PER_ADDRESS: Duration = Duration::from_millis(250);

/// What is offered to upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// Whatever the settings allow.
    Any,
    /// HTTP/1.1 alone, for what cannot be shared.
    Http1,
}

/// Opens connections to one endpoint.
pub(super) struct Connector {
    host: String,
    port: u16,
    timeout: Duration,
    tls: Option<Tls>,
}

struct Tls {
    name: ServerName<'static>,
    any: TlsConnector,
    http1: TlsConnector,
    offers_http2: bool,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connector({}:{})", self.host, self.port)
    }
}

impl Connector {
    pub(super) fn new(config: &Config) -> Result<Connector, TlsError> {
        let base = &config.upstream;
        let tls = if base.tls { Some(Tls::new(base, &config.upstream_ca, config.http2)?) } else { None };
        Ok(Connector { host: base.host.clone(), port: base.port, timeout: config.connect_timeout, tls })
    }

    /// Whether a connection may turn out to be HTTP/2.
    pub(super) fn may_share(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.offers_http2)
    }

    /// A new connection, made within the connect timeout.
    pub(super) async fn connect(&self, offer: Offer) -> Result<Stream, Fault> {
        match timeout(self.timeout, self.open(offer)).await {
            Ok(result) => result,
            Err(_) => Err(Fault::ConnectTimeout(self.timeout)),
        }
    }

    async fn open(&self, offer: Offer) -> Result<Stream, Fault> {
        let deadline = Instant::now() + self.timeout;
        let addresses: Vec<SocketAddr> =
            lookup_host((self.host.as_str(), self.port)).await.map_err(Fault::Resolve)?.collect();
        let tcp = first_to_answer(&addresses, deadline).await.map_err(Fault::Connect)?;
        // A request is written in one piece; waiting for more to send only delays it.
        tcp.set_nodelay(true).map_err(Fault::Connect)?;
        let Some(tls) = &self.tls else { return Ok(Stream::Plain(tcp)) };
        let connector = match offer {
            Offer::Any => &tls.any,
            Offer::Http1 => &tls.http1,
        };
        let stream = connector.connect(tls.name.clone(), tcp).await.map_err(Fault::Tls)?;
        Ok(Stream::Tls(Box::new(stream)))
    }
}

/// Tries the addresses in turn; each but the last gets its share of the time left.
async fn first_to_answer(addresses: &[SocketAddr], deadline: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for (tried, address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let share = (left / (addresses.len() - tried) as u32).max(LEAST_PER_ADDRESS);
        match timeout_at(Instant::now() + share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::new(io::ErrorKind::TimedOut, format!("{address} did not answer")),
        }
    }
    Err(last)
}

impl Tls {
    fn new(base: &BaseUrl, roots: &Roots, http2: Http2) -> Result<Tls, TlsError> {
        let name = tls::name(&base.host)?;
        let offers_http2 = http2 == Http2::Auto;
        let mut http1 = tls::client(roots)?;
        http1.alpn_protocols = vec![b"http/1.1".to_vec()];
        let mut any = http1.clone();
        if offers_http2 {
            any.alpn_protocols.insert(0, b"h2".to_vec());
        }
        Ok(Tls { name, any: Arc::new(any).into(), http1: Arc::new(http1).into(), offers_http2 })
    }
}

/// A connection, with or without TLS.
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Whether upstream chose HTTP/2.
    pub(super) fn speaks_http2(&self) -> bool {
        match self {
            Stream::Plain(_) => false,
            Stream::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }
}
