//! Log lines: on standard error, plain or JSON, filtered by `SEAM_LOG`.

use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};

/// Logs where a panic happened, and not what it said: that may quote the conversation.
pub fn panics() {
    std::panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(at, "a panic: please report it with this place");
    }));
}

/// Starts logging for the process. A second call changes nothing.
pub fn start(config: &Config) {
    // The table has already parsed the filter; what cannot be read twice falls back to its default.
    let filter = EnvFilter::try_new(&config.log).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // An error here means that logging was started before, by a test or by whoever embeds Seam.
    let _ = match config.log_format {
        LogFormat::Plain => lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
}
