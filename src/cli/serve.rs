//! `seam serve`: the proxy itself.

use std::process::ExitCode;

use clap::ArgMatches;
use tokio::runtime::{Builder, Runtime};
use tracing::info;

use super::{Subcommand, USAGE, complain};
use crate::app::{App, StartError};
use crate::config::{Config, Source};
use crate::drain::Signals;
use crate::store::OpenError;
use crate::telemetry;

pub(super) const COMMAND: Subcommand = Subcommand {
    name: "serve",
    about: "Serve until told to end (the default)",
    arguments: |command| command,
    run,
};

fn run(_: &ArgMatches, source: &dyn Source) -> ExitCode {
    let config = match Config::read(source) {
        Ok(config) => config,
        Err(problems) => {
            complain(&problems);
            return ExitCode::from(USAGE);
        }
    };
    telemetry::log::start(&config);
    telemetry::log::panics();
    let served =
        runtime(config.threads).map_err(Error::Runtime).and_then(|runtime| runtime.block_on(serve(&config)));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            error.code()
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the threads cannot be started")]
    Runtime(#[source] std::io::Error),
    #[error("it cannot start")]
    Start(#[from] StartError),
    #[error("signals cannot be received")]
    Signals(#[source] std::io::Error),
}

impl Error {
    /// Told apart by whoever starts Seam again: as `sysexits.h` numbers them.
    fn code(&self) -> ExitCode {
        match self {
            // Another process may let go of it: try again.
            Error::Start(StartError::Store(OpenError::Held { .. })) => ExitCode::from(75),
            // Somebody has to look at the file.
            Error::Start(StartError::Store(OpenError::Damaged { .. } | OpenError::Newer { .. })) => {
                ExitCode::from(65)
            }
            _ => ExitCode::FAILURE,
        }
    }
}

async fn serve(config: &Config) -> Result<(), Error> {
    let signals = Signals::take().map_err(Error::Signals)?;
    let app = App::bind(config).await?;
    info!(
        version = env!("CARGO_PKG_VERSION"),
        listen = %shown(app.address()),
        admin = %shown(app.admin_address()),
        upstream = %config.upstream,
        mode = ?config.mode,
        contract = ?config.contract,
        threads = config.threads,
        "serving"
    );
    let drain = app.drain();
    tokio::select! {
        () = app.run() => (),
        () = signals.obey(drain) => (),
    }
    Ok(())
}

/// The address that was bound: port 0 is another one by now.
fn shown(address: std::io::Result<std::net::SocketAddr>) -> String {
    address.map_or_else(|error| error.to_string(), |address| address.to_string())
}

fn runtime(threads: usize) -> std::io::Result<Runtime> {
    match threads {
        // One thread needs no stealing, and no locks for it.
        1 => Builder::new_current_thread().enable_all().build(),
        _ => Builder::new_multi_thread().worker_threads(threads).enable_all().build(),
    }
}
