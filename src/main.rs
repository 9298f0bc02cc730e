//! The `seam` binary: the command line and the environment, nothing else.

use std::process::ExitCode;

use seam::config::Environment;

fn main() -> ExitCode {
    seam::cli::run(std::env::args_os(), &Environment)
}
