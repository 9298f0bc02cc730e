//! `seam healthcheck`: asks the admin listener, for images without a shell.

use std::process::ExitCode;
use std::time::Duration;

use clap::ArgMatches;

use super::ask::Admin;
use super::{Subcommand, USAGE, complain};
use crate::config::Source;

pub(super) const COMMAND: Subcommand = Subcommand {
    name: "healthcheck",
    about: "Ask a running Seam whether it is ready (exit code 0) or not (1)",
    arguments: |command| command,
    run,
};

/// Probes commonly give up after a second or more.
const PATIENCE: Duration = Duration::from_secs(1);

fn run(_: &ArgMatches, source: &dyn Source) -> ExitCode {
    let admin = match Admin::of(source) {
        Ok(admin) => admin,
        Err(problems) => {
            complain(&problems);
            return ExitCode::from(USAGE);
        }
    };
    match admin.get("/ready", PATIENCE) {
        Ok(answer) if answer.status == 200 => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}
