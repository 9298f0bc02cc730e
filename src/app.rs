//! Wiring: from settings to listeners that serve until they are drained.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tracing::info;

use crate::config::Config;
use crate::drain::{Drain, Latch};
use crate::proxy::{Inspector, Shell};
use crate::telemetry::Telemetry;
use crate::upstream::Upstream;

/// Seam, bound to its ports and ready to run.
#[derive(Debug)]
pub struct App {
    shell: Arc<Shell>,
    listener: TcpListener,
    admin_listener: TcpListener,
    telemetry: Arc<Telemetry>,
    drain: Drain,
    /// Dropped when clients are served.
    serving: Latch,
    max_connections: usize,
    drain_timeout: Duration,
}

/// Why Seam cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A port cannot be had.
    #[error("{variable}={address} cannot be listened on")]
    Bind {
        /// The setting.
        variable: &'static str,
        /// Its value.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The way to upstream cannot be set up.
    #[error("connections to the upstream cannot be set up")]
    Upstream(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl App {
    /// Builds everything and binds the ports. From then on the kernel queues
    /// connections; they are served by [`App::run`].
    pub async fn bind(config: &Config) -> Result<App, StartError> {
        let telemetry = Arc::new(Telemetry::default());
        let drain = Drain::default();
        let serving = drain.latch();
        let upstream = Upstream::new(config, Arc::clone(&telemetry))
            .map_err(|error| StartError::Upstream(Box::new(error)))?;
        let inspector = Inspector::default();
        let shell = Arc::new(Shell::new(config, upstream, inspector, Arc::clone(&telemetry), drain.clone()));
        let listener = listen("SEAM_LISTEN", config.listen).await?;
        let admin_listener = listen("SEAM_ADMIN_LISTEN", config.admin_listen).await?;
        let (max_connections, drain_timeout) = (config.max_connections, config.drain_timeout);
        Ok(App { shell, listener, admin_listener, telemetry, drain, serving, max_connections, drain_timeout })
    }

    /// Where clients connect.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Where health is asked.
    pub fn admin_address(&self) -> io::Result<SocketAddr> {
        self.admin_listener.local_addr()
    }

    /// The counters.
    pub fn telemetry(&self) -> Arc<Telemetry> {
        Arc::clone(&self.telemetry)
    }

    /// The way to end it.
    pub fn drain(&self) -> Drain {
        self.drain.clone()
    }

    /// Serves until it was asked to end and what ran has finished, or was cut off.
    pub async fn run(self) {
        let admin_drain = Drain::default();
        let admin = crate::admin::serve(self.admin_listener, self.drain.clone(), admin_drain.signal());
        let admin = tokio::spawn(admin);
        let shell = self.shell;
        let exchange = move |request| Arc::clone(&shell).serve(request);
        let signal = self.drain.signal();
        tokio::spawn(crate::server::serve(self.listener, self.max_connections, signal, exchange));
        drop(self.serving);
        self.drain.finished(self.drain_timeout).await;
        admin.abort();
        info!("ended");
    }
}

async fn listen(variable: &'static str, address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|source| StartError::Bind { variable, address, source })
}
