//! The connection to Redis: made when it is needed, by one for all, and made
//! anew when it is lost.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo, RedisError};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tracing::debug;

use crate::store::StoreError;

/// How long connecting may take, TLS and login included. Whoever waits for it gives up earlier; the
/// connection is there for the next one.
const CONNECT: Duration = Duration::from_secs(5);
/// Calls that wait to be sent; more wait before that.
const QUEUED: usize = 1024;
/// Bytes of an error's text that are told.
const TOLD: usize = 200;

/// Where a server is, and how to log in there.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) tls: Option<(TlsConnector, ServerName<'static>)>,
    pub(crate) login: RedisConnectionInfo,
}

/// Shows no credential.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({}:{})", self.host, self.port)
    }
}

/// A connection that many calls share.
#[derive(Clone, Debug)]
pub(super) struct Link {
    connection: MultiplexedConnection,
    driver: Arc<Driver>,
}

/// The task that reads and writes a connection; it ends with the connection's last user.
#[derive(Debug)]
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Link {
    /// To send calls by.
    pub(super) fn connection(&self) -> MultiplexedConnection {
        self.connection.clone()
    }

    /// Whether the other side has ended it.
    pub(super) fn is_lost(&self) -> bool {
        self.driver.0.is_finished()
    }
}

/// The connection as it stands.
#[derive(Clone, Debug)]
enum Phase {
    Connecting,
    Up(Link),
    Down(StoreError),
}

/// Gives out the one connection there is, and makes it where there is none.
#[derive(Debug)]
pub(super) struct Links {
    address: Address,
    current: Mutex<Option<watch::Receiver<Phase>>>,
}

impl Links {
    pub(super) fn new(address: Address) -> Links {
        Links { address, current: Mutex::default() }
    }

    /// The connection, once it is there.
    pub(super) async fn link(&self) -> Result<Link, StoreError> {
        let mut phase = self.phase();
        let settled = phase.wait_for(|phase| !matches!(phase, Phase::Connecting)).await;
        match settled.as_deref() {
            Ok(Phase::Up(link)) => Ok(link.clone()),
            Ok(Phase::Down(error)) => Err(error.clone()),
            Ok(Phase::Connecting) | Err(_) => {
                Err(StoreError::Unreachable("connecting was given up".to_owned()))
            }
        }
    }

    /// Forgets the connection, or only this one if it is still the one there is.
    pub(super) fn let_go(&self, link: Option<&Link>) {
        let mut current = self.current();
        let is_meant = |phase: &Phase| match phase {
            Phase::Up(up) => link.is_none_or(|link| Arc::ptr_eq(&up.driver, &link.driver)),
            // It gives up by itself.
            Phase::Connecting | Phase::Down(_) => false,
        };
        if current.as_ref().is_some_and(|phase| is_meant(&phase.borrow())) {
            *current = None;
        }
    }

    fn phase(&self) -> watch::Receiver<Phase> {
        let mut current = self.current();
        let is_usable = |phase: &Phase| match phase {
            Phase::Connecting => true,
            // A server that went away while nobody asked is noticed here, and nobody's call fails for it.
            Phase::Up(link) => !link.is_lost(),
            Phase::Down(_) => false,
        };
        if let Some(phase) = current.as_ref().filter(|phase| is_usable(&phase.borrow())) {
            return phase.clone();
        }
        let (tell, phase) = watch::channel(Phase::Connecting);
        let address = self.address.clone();
        // A task of its own: whoever asks first may give up before the connection is there.
        tokio::spawn(async move {
            let settled = match timeout(CONNECT, address.connect()).await {
                Ok(Ok(link)) => Phase::Up(link),
                Ok(Err(error)) => Phase::Down(error),
                Err(_) => Phase::Down(StoreError::Unreachable(format!(
                    "it did not take the connection within {} s",
                    CONNECT.as_secs()
                ))),
            };
            debug!(up = matches!(settled, Phase::Up(_)), "connecting to the store ended");
            // Nobody may wait any more.
            let _ = tell.send(settled);
        });
        *current = Some(phase.clone());
        phase
    }

    fn current(&self) -> MutexGuard<'_, Option<watch::Receiver<Phase>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Address {
    async fn connect(&self) -> Result<Link, StoreError> {
        let unreachable = |error: std::io::Error| StoreError::Unreachable(error.to_string());
        let tcp = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(unreachable)?;
        tcp.set_nodelay(true).map_err(unreachable)?;
        match &self.tls {
            None => self.log_in(tcp).await,
            Some((tls, name)) => {
                self.log_in(tls.connect(name.clone(), tcp).await.map_err(unreachable)?).await
            }
        }
    }

    async fn log_in(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Result<Link, StoreError> {
        // Calls are bounded by whoever makes them.
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_connection_timeout(None)
            .set_pipeline_buffer_size(QUEUED);
        let logged_in = MultiplexedConnection::new_with_config(&self.login, stream, config).await;
        let (connection, driver) = logged_in.map_err(|error| told(&error))?;
        Ok(Link { connection, driver: Arc::new(Driver(tokio::spawn(driver))) })
    }
}

/// An error in the store's words. What a server says is bounded; a credential is not in it.
pub(super) fn told(error: &RedisError) -> StoreError {
    let mut text = error.to_string();
    if let Some((at, _)) = text.char_indices().nth(TOLD) {
        text.truncate(at);
    }
    if error.is_io_error() || error.is_connection_dropped() {
        StoreError::Unreachable(text)
    } else {
        StoreError::Failed(text)
    }
}
