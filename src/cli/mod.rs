//! The command line: one file a command, one line here for each.

mod ask;
mod check;
mod demo;
mod explain;
mod healthcheck;
mod replay;
mod report;
mod schema;
mod serve;
mod verify;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{ArgMatches, Command};

use crate::config::{Source, docs};

/// Wrong use of the command line or wrong settings (EX_USAGE).
const USAGE: u8 = 64;

/// A command.
struct Subcommand {
    name: &'static str,
    about: &'static str,
    /// Adds its arguments.
    arguments: fn(Command) -> Command,
    run: fn(&ArgMatches, &dyn Source) -> ExitCode,
}

/// All commands, in the order of `--help`. Without one, `serve` runs.
const COMMANDS: &[Subcommand] = &[
    serve::COMMAND,
    demo::COMMAND,
    replay::COMMAND,
    check::COMMAND,
    schema::COMMAND,
    verify::COMMAND,
    report::COMMAND,
    explain::COMMAND,
    healthcheck::COMMAND,
];

const ABOUT: &str = "\
Seam stands between an agent stack and its OpenAI-compatible endpoint. Wherever one agent transfers a conversation to \
another, the receiver gets a verified brief in its system slot and a filtered transcript behind it. Whatever is no \
transfer passes byte for byte.

To adopt it, start it and point the client at it:

    SEAM_UPSTREAM=https://api.openai.com/v1 seam
    export OPENAI_BASE_URL=http://127.0.0.1:8484/v1

With SEAM_MODE=observe it changes nothing and only records what it would have done.";

/// Runs the command that `arguments` (the program's name first) ask for.
pub fn run(arguments: impl IntoIterator<Item = OsString>, source: &dyn Source) -> ExitCode {
    let matches = match command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => {
            // An error here is a closed terminal.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
    };
    let (name, arguments) = matches.subcommand().unwrap_or((serve::COMMAND.name, &matches));
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => (command.run)(arguments, source),
        None => ExitCode::from(USAGE),
    }
}

fn command() -> Command {
    let seam = Command::new("seam")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A transparent sidecar proxy that turns agent transfers into verified handoffs")
        .long_about(ABOUT)
        .after_long_help(docs::help())
        .max_term_width(110);
    COMMANDS.iter().fold(seam, |seam, command| {
        seam.subcommand((command.arguments)(Command::new(command.name).about(command.about)))
    })
}

/// Writes text for people; a reader who went away is no error.
fn print(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Names are what agents and clients call themselves: on a terminal no control character is obeyed.
fn quiet(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Writes what went wrong, with its causes.
fn complain(error: &(dyn std::error::Error + 'static)) {
    let _ = writeln!(std::io::stderr().lock(), "seam: {}", crate::server::chain(error));
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }
}
