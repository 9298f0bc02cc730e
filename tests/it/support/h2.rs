//! HTTP/2: a client with prior knowledge, and an upstream behind TLS.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::soon;

/// A client on one connection.
#[derive(Clone)]
pub(crate) struct Client(http2::SendRequest<Full<Bytes>>);

/// A reply, whole.
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).await.unwrap();
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Client(sender)
    }

    pub(crate) async fn post(&self, path: &str, body: &[u8]) -> Got {
        let request = Request::post(format!("http://seam{path}")).header("x-a", "1");
        self.exchange(request.body(Full::new(Bytes::copy_from_slice(body))).unwrap()).await
    }

    pub(crate) async fn exchange(&self, request: Request<Full<Bytes>>) -> Got {
        let reply: Response<_> = soon(self.0.clone().send_request(request)).await.unwrap();
        let (head, body) = reply.into_parts();
        let body = soon(body.collect()).await.unwrap();
        let trailers = body.trailers().cloned();
        Got { status: head.status.as_u16(), headers: head.headers, body: body.to_bytes().to_vec(), trailers }
    }
}

/// An upstream behind TLS that offers `protocols` and says what it got.
pub(crate) struct TlsUpstream {
    address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl TlsUpstream {
    pub(crate) async fn start(protocols: &[&str]) -> TlsUpstream {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = acceptor(protocols);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client that does not trust it hangs up.
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let connection = auto::Builder::new(TokioExecutor::new());
                    let _ = connection.serve_connection(TokioIo::new(stream), service_fn(say)).await;
                });
            }
        });
        TlsUpstream { address, task }
    }

    pub(crate) fn authority(&self) -> String {
        format!("localhost:{}", self.address.port())
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}/v1", self.authority())
    }

    /// The file of the authority that vouches for it.
    #[expect(clippy::unused_self, reason = "a test asks the upstream that it started")]
    pub(crate) fn ca(&self) -> &'static str {
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/support/tls/ca.pem")
    }
}

impl Drop for TlsUpstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn say(request: Request<Incoming>) -> hyper::Result<Response<Full<Bytes>>> {
    let (head, body) = request.into_parts();
    let mut told = format!("{:?} {} {} ", head.version, head.method, head.uri).into_bytes();
    told.extend_from_slice(&body.collect().await?.to_bytes());
    Ok(Response::new(Full::new(told.into())))
}

fn acceptor(protocols: &[&str]) -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("tls/upstream.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/upstream.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}
