//! A new connection to an endpoint: name, TCP, the proxy on the way, TLS.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::config::{BaseUrl, Http2, Proxies, Proxy, Roots};
use crate::tls::{self, TlsError};

/// No single address of several may use up the whole of the connect timeout.
const LEAST_PER_ADDRESS: Duration = Duration::from_millis(250);
/// The longest head with which a proxy may answer.
const PROXY_HEAD_BYTES: usize = 8 * 1024;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The host's name has no address.
    #[error("its name cannot be resolved")]
    Resolve(#[source] io::Error),
    /// No address of the host took the connection.
    #[error("it cannot be connected to")]
    Connect(#[source] io::Error),
    /// The proxy on the way cannot be reached, or opened no tunnel; with its host and port.
    #[error("the proxy {0} on the way to it opened no tunnel")]
    Proxy(String, #[source] io::Error),
    /// The connection was not made in time.
    #[error("connecting took longer than {} ms", .0.as_millis())]
    Timeout(Duration),
    /// TLS failed: the certificate, the name on it, or the protocol.
    #[error("TLS with it failed")]
    Tls(#[source] io::Error),
}

/// What is offered to the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// Whatever the settings allow.
    Any,
    /// HTTP/1.1 alone, for what cannot be shared.
    Http1,
}

/// Opens connections to one endpoint.
pub(crate) struct Connector {
    host: String,
    port: u16,
    timeout: Duration,
    proxy: Option<Proxy>,
    tls: Option<Tls>,
}

/// How an endpoint is connected to.
#[derive(Clone, Debug)]
pub(crate) struct Manner<'c> {
    /// Whom to trust.
    pub(crate) roots: &'c Roots,
    /// Whether HTTP/2 is offered.
    pub(crate) http2: Http2,
    /// What may lie on the way.
    pub(crate) proxies: &'c Proxies,
    /// How long it may take in all.
    pub(crate) timeout: Duration,
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
    pub(crate) fn new(base: &BaseUrl, manner: &Manner<'_>) -> Result<Connector, TlsError> {
        let tls = if base.tls { Some(Tls::new(base, manner.roots, manner.http2)?) } else { None };
        let proxy = manner.proxies.on_the_way(base).cloned();
        Ok(Connector { host: base.host.clone(), port: base.port, timeout: manner.timeout, proxy, tls })
    }

    /// Whether a connection may turn out to be HTTP/2.
    pub(crate) fn may_share(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.offers_http2)
    }

    /// A new connection, made within the connect timeout.
    pub(crate) async fn connect(&self, offer: Offer) -> Result<Stream, Fault> {
        match timeout(self.timeout, self.open(offer)).await {
            Ok(result) => result,
            Err(_) => Err(Fault::Timeout(self.timeout)),
        }
    }

    async fn open(&self, offer: Offer) -> Result<Stream, Fault> {
        let deadline = Instant::now() + self.timeout;
        let tcp = match &self.proxy {
            None => tcp(&self.host, self.port, deadline).await?,
            Some(proxy) => {
                self.through(proxy, deadline).await.map_err(|error| Fault::Proxy(proxy.to_string(), error))?
            }
        };
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

impl Connector {
    /// A tunnel to the endpoint, whose name the proxy looks up.
    async fn through(&self, proxy: &Proxy, deadline: Instant) -> io::Result<TcpStream> {
        let mut tunnel = tcp(&proxy.host, proxy.port, deadline).await.map_err(|fault| match fault {
            Fault::Resolve(error) | Fault::Connect(error) => error,
            other => io::Error::other(other),
        })?;
        let host = &self.host;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let place = format!("{host}:{}", self.port);
        let mut head = format!("CONNECT {place} HTTP/1.1\r\nhost: {place}\r\n");
        if let Some(login) = &proxy.login {
            head.push_str("proxy-authorization: ");
            head.push_str(login.reveal());
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        tunnel.write_all(head.as_bytes()).await?;
        opened(&mut tunnel).await?;
        Ok(tunnel)
    }
}

/// Reads the head with which a proxy answers, and not a byte more: what follows is the endpoint's.
async fn opened(tunnel: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == PROXY_HEAD_BYTES {
            return Err(io::Error::other("the head of its answer is too long"));
        }
        head.push(tunnel.read_u8().await?);
    }
    let status = head.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2..5)).unwrap_or_default();
    match status {
        [b'2', _, _] => Ok(()),
        [a, b, c] if status.iter().all(u8::is_ascii_digit) => {
            let status: String = [*a, *b, *c].map(char::from).into_iter().collect();
            Err(io::Error::other(format!("it answered with status {status}")))
        }
        _ => Err(io::Error::other("its answer is no HTTP")),
    }
}

async fn tcp(host: &str, port: u16, deadline: Instant) -> Result<TcpStream, Fault> {
    let addresses: Vec<SocketAddr> = lookup_host((host, port)).await.map_err(Fault::Resolve)?.collect();
    first_to_answer(&addresses, deadline).await.map_err(Fault::Connect)
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
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Whether the endpoint chose HTTP/2.
    pub(crate) fn speaks_http2(&self) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(answer: &[u8], expected: Result<&[u8], &str>) {
        let mut answer = answer;
        let opened = opened(&mut answer).await.map_err(|error| error.to_string());
        let left = opened.map(|()| answer);
        assert_eq!(left.as_ref().map_err(String::as_str), expected.as_ref().map_err(|words| *words));
    }

    #[tokio::test]
    async fn a_tunnel_is_open_after_the_head_and_no_later_byte_is_taken() {
        check(b"HTTP/1.1 200 Connection established\r\nvia: x\r\n\r\nTLS", Ok(b"TLS")).await;
        check(b"HTTP/1.0 200 OK\r\n\r\n", Ok(b"")).await;
        check(b"HTTP/1.1 407 Who\r\n\r\n", Err("it answered with status 407")).await;
        check(b"SSH-2.0-x\r\n\r\n", Err("its answer is no HTTP")).await;
        check(b"HTTP/1.1 200 OK\r\n", Err("unexpected end of file")).await;
        check(&[b'x'; 9_000], Err("the head of its answer is too long")).await;
    }
}
