//! Wiring: from settings to listeners that serve until they are drained.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::ServerName;
use tokio::net::TcpListener;
use tokio_rustls::TlsConnector;
use tracing::{info, warn};

use crate::admin::Admin;
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::drain::{Drain, Latch};
use crate::engine::custody::budget::Allowance;
use crate::engine::custody::judge::Limits;
use crate::engine::handoff::contract::Fields;
use crate::engine::handoff::detect::Naming;
use crate::engine::handoff::transcript;
use crate::engine::policy::{Contract, Mode, Policy};
use crate::proxy::{Inspector, Shell};
use crate::reload::Reload;
use crate::runs::Runs;
use crate::store::{self, Address, Store};
use crate::telemetry::Telemetry;
use crate::tls;
use crate::upstream::Upstream;

/// Seam, bound to its ports and ready to run.
#[derive(Debug)]
pub struct App {
    shell: Arc<Shell>,
    listener: TcpListener,
    admin_listener: TcpListener,
    admin: Arc<Admin>,
    telemetry: Arc<Telemetry>,
    runs: Arc<Runs>,
    reload: Reload,
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
    /// The file of live settings does not read.
    #[error("SEAM_LIVE_FILE does not read: {0}")]
    Live(String),
    /// The store cannot be opened.
    #[error("the store cannot be opened")]
    Store(#[source] store::OpenError),
    /// The way to the store's server cannot be set up.
    #[error("connections to the store cannot be set up")]
    StoreTls(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The way to the receiver of traces cannot be set up.
    #[error("connections to the receiver of traces cannot be set up")]
    Traces(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The way to upstream cannot be set up.
    #[error("connections to the upstream cannot be set up")]
    Upstream(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl App {
    /// Builds everything and binds the ports. From then on the kernel queues
    /// connections; they are served by [`App::run`].
    pub async fn bind(config: &Config) -> Result<App, StartError> {
        let telemetry = Telemetry::new(config).map_err(|error| StartError::Traces(Box::new(error)))?;
        let telemetry = Arc::new(telemetry);
        let drain = Drain::default();
        let serving = drain.latch();
        let upstream = Upstream::new(config, Arc::clone(&telemetry))
            .map_err(|error| StartError::Upstream(Box::new(error)))?;
        let store = store(config)?;
        tokio::spawn(say_if_unreachable(store.clone()));
        let seed = seed();
        let inspector =
            Inspector::new(config, policy(config), store, Clock::System, seed, Arc::clone(&telemetry));
        let reload =
            Reload::new(config, inspector.live(), Arc::clone(&telemetry)).map_err(StartError::Live)?;
        let runs = inspector.runs();
        let admin = Arc::new(Admin::new(config, Arc::clone(&runs), Arc::clone(&telemetry), drain.clone()));
        let shell = Arc::new(Shell::new(config, upstream, inspector, Arc::clone(&telemetry), drain.clone()));
        let listener = listen("SEAM_LISTEN", config.listen).await?;
        let admin_listener = listen("SEAM_ADMIN_LISTEN", config.admin_listen).await?;
        let (max_connections, drain_timeout) = (config.max_connections, config.drain_timeout);
        Ok(App {
            shell,
            listener,
            admin_listener,
            admin,
            telemetry,
            runs,
            reload,
            drain,
            serving,
            max_connections,
            drain_timeout,
        })
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

    /// The runs that it keeps.
    pub(crate) fn runs(&self) -> Arc<Runs> {
        Arc::clone(&self.runs)
    }

    /// The way to end it.
    pub fn drain(&self) -> Drain {
        self.drain.clone()
    }

    /// Serves until it was asked to end and what ran has finished, or was cut off.
    pub async fn run(self) {
        let admin_drain = Drain::default();
        let admin = crate::admin::serve(self.admin_listener, self.admin, admin_drain.signal());
        let admin = tokio::spawn(admin);
        let shell = self.shell;
        let exchange = move |request, _| Arc::clone(&shell).serve(request);
        let signal = self.drain.signal();
        tokio::spawn(crate::server::serve(self.listener, self.max_connections, signal, exchange));
        drop(self.serving);
        tokio::select! {
            () = self.drain.finished(self.drain_timeout) => (),
            () = self.reload.run() => (),
        }
        self.telemetry.tracer.flush().await;
        admin.abort();
        info!("ended");
    }
}

/// The engine's part of the settings.
pub(crate) fn policy(config: &Config) -> Policy {
    Policy {
        mode: match config.mode {
            config::Mode::Observe => Mode::Observe,
            config::Mode::Rewrite => Mode::Rewrite,
        },
        contract: match config.contract {
            config::Contract::Read => Contract::Read,
            config::Contract::Derive => Contract::Derive,
            config::Contract::Inject => Contract::Inject,
        },
        fields: match config.contract_fields {
            config::ContractFields::Core => Fields::Core,
            config::ContractFields::Full => Fields::Full,
        },
        corrections: config.corrections,
        submit_tool: config.submit_tool.clone().unwrap_or_default(),
        naming: Naming::new(&config.transfer_tools, &config.not_transfer, Some(&config.terminal)).into(),
        transcript: transcript::Policy {
            form: match config.transcript {
                config::Transcript::Window => transcript::Form::Window,
                config::Transcript::Full => transcript::Form::Full,
                config::Transcript::Dialogue => transcript::Form::Dialogue,
                config::Transcript::None => transcript::Form::None,
            },
            tokens: config.transcript_tokens as u64,
            turns: config.transcript_turns,
            result_bytes: config.result_bytes,
        },
        profile: config.server.profile,
        unthinking: config.server.unthinking.clone(),
        freshness: config.freshness.clone(),
        hops: Limits {
            since_turn: config.hops.map_or(Limits::default().since_turn, |limit| limit as u32),
            whole_run: config.run_hops as u32,
        },
        allowance: Allowance {
            hops: config.hops.map(|limit| limit as u32),
            tokens: config.budget_tokens.map(|tokens| tokens as u64),
            spend: config.budget_spend,
            deadline_ms: config.budget_time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            prices: config.prices_file.clone(),
        },
        rules: config.policy_file.clone(),
        enforce: config.enforce,
        pending_ms: u64::try_from(config.pending_ttl.as_millis()).unwrap_or(u64::MAX),
    }
}

/// A wrong address or password is to be told at the start, not by the first transfer that is lost.
async fn say_if_unreachable(store: Store) {
    if let Err(error) = store.reach().await {
        warn!(%error, "the store does not answer yet; it is asked again with each exchange");
    }
}

fn store(config: &Config) -> Result<Store, StartError> {
    let (capacity, limit) = (config.store_bytes, config.store_timeout);
    match &config.store {
        config::Store::Memory => Ok(Store::memory(capacity, Clock::System)),
        config::Store::File(path) => {
            Store::file(path, capacity, limit, Clock::System).map_err(StartError::Store)
        }
        config::Store::Redis(server) => {
            let tls = if server.tls { Some(store_tls(config, &server.host)?) } else { None };
            let (host, login) = (server.host.clone(), server.login.clone());
            Ok(Store::redis(Address { host, port: server.port, tls, login }, limit))
        }
    }
}

fn store_tls(config: &Config, host: &str) -> Result<(TlsConnector, ServerName<'static>), StartError> {
    let name = tls::name(host).map_err(|error| StartError::StoreTls(Box::new(error)))?;
    let client = tls::client(&config.store_ca).map_err(|error| StartError::StoreTls(Box::new(error)))?;
    Ok((TlsConnector::from(Arc::new(client)), name))
}

/// What makes this process's ids unlike another's: no secret, only new.
fn seed() -> String {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{nanos}-{}", std::process::id())
}

async fn listen(variable: &'static str, address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|source| StartError::Bind { variable, address, source })
}
