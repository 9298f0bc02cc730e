//! Settings that change while Seam runs: the file that holds them is read again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{info, warn};

use crate::config::live::{Live, Told};
use crate::config::{Config, Mode};
use crate::telemetry::Telemetry;

/// How long a change may go unnoticed: a look at a small file costs nothing beside it.
const EVERY: Duration = Duration::from_secs(2);

/// A file of live settings, and what holds where it says nothing.
#[derive(Debug)]
pub(crate) struct Reload {
    file: Option<PathBuf>,
    mode: Mode,
    percent: u8,
    live: Arc<Live>,
    telemetry: Arc<Telemetry>,
    /// SIGHUP, taken over before anything is served: it would end the process. Without it the clock has to do.
    asked: Option<Signal>,
}

impl Reload {
    /// Puts `live` where `config` and its file say; an error says what is wrong with the file. Needs a
    /// runtime.
    pub(crate) fn new(config: &Config, live: Arc<Live>, telemetry: Arc<Telemetry>) -> Result<Reload, String> {
        let file = config.live_file.clone();
        let asked = file.as_ref().and_then(|_| signal(SignalKind::hangup()).ok());
        let (mode, percent) = (config.mode, config.rewrite_percent);
        let reload = Reload { file, mode, percent, live, telemetry, asked };
        reload.apply(reload.read()?);
        Ok(reload)
    }

    /// Looks at the file every two seconds, and at once when told to (SIGHUP), for as long as it is polled. A
    /// file that does not read changes nothing.
    pub(crate) async fn run(mut self) {
        if self.file.is_none() {
            return std::future::pending().await;
        }
        let mut last = Ok(self.in_force());
        loop {
            let told_to = async {
                match &mut self.asked {
                    Some(asked) => asked.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = tokio::time::sleep(EVERY) => (),
                _ = told_to => (),
            }
            let told = self.read().map(|told| self.with_defaults(told));
            if told == last {
                continue;
            }
            match &told {
                Ok((mode, percent)) => {
                    self.apply(Told { mode: Some(*mode), percent: Some(*percent) });
                    info!(?mode, percent, "settings changed");
                }
                Err(wrong) => {
                    warn!(wrong, "the file of live settings does not read; what was in force stays");
                }
            }
            last = told;
        }
    }

    fn read(&self) -> Result<Told, String> {
        self.file.as_deref().map_or(Ok(Told::default()), Told::read)
    }

    fn with_defaults(&self, told: Told) -> (Mode, u8) {
        (told.mode.unwrap_or(self.mode), told.percent.unwrap_or(self.percent))
    }

    fn in_force(&self) -> (Mode, u8) {
        (self.live.mode(), self.live.percent())
    }

    fn apply(&self, told: Told) {
        let (mode, percent) = self.with_defaults(told);
        self.live.set(mode, percent);
        let share = if mode == Mode::Observe { 0 } else { percent };
        self.telemetry.metrics.rewrite_percent.set(share.into());
    }
}
