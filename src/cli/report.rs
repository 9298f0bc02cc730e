//! `seam report`: what is wrong with the transfers of a running Seam, or of
//! recorded conversations, and whether briefs help.

mod written;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::ask::{Admin, Untold};
use super::replay::{self, NoUpstream};
use super::{Subcommand, USAGE, complain, print};
use crate::config::{Config, Source, parse};
use crate::engine::report::{Report, Wanted};
use crate::engine::time::Timestamp;
use written::Format;

pub(super) const COMMAND: Subcommand = Subcommand {
    name: "report",
    about: "Sum up what transfers lost: who hands to whom, what was asked again, looked up again, made up",
    arguments: |command| {
        command
            .arg(
                Arg::new("files")
                    .num_args(0..)
                    .value_name("FILES")
                    .value_parser(value_parser!(PathBuf))
                    .help("Recorded conversations, one a line of JSON, in place of a running Seam"),
            )
            .arg(
                Arg::new("cuts")
                    .long("cuts")
                    .value_name("FILE")
                    .requires("files")
                    .value_parser(value_parser!(PathBuf))
                    .help("Where a transfer is assumed in them, one a line: transcript_id, cut"),
            )
            .arg(
                Arg::new("format")
                    .long("format")
                    .value_name("FORMAT")
                    .value_parser(["text", "markdown", "json"])
                    .default_value("text")
                    .help("How it is written"),
            )
            .arg(
                Arg::new("since")
                    .long("since")
                    .value_name("SPAN")
                    .value_parser(|text: &str| {
                        (parse::DURATION.parse)(text)
                            .map_err(|_| format!("expected {}", parse::DURATION.expected))
                    })
                    .conflicts_with("files")
                    .help("Only transfers of the last 30m, 24h, 7d, ..."),
            )
            .arg(
                Arg::new("pair").long("pair").value_name("FROM>TO").value_parser(pair).help(
                    "Only transfers of this sender to this receiver, by the names that the report uses",
                ),
            )
            .arg(
                Arg::new("worst")
                    .long("worst")
                    .value_name("N")
                    .value_parser(value_parser!(u16))
                    .default_value("5")
                    .help("How many of the worst transfers are named"),
            )
            .arg(
                Arg::new("compare").long("compare").action(ArgAction::SetTrue).help(
                    "Also compare receivers that read a brief with those that did not (a canary's arms)",
                ),
            )
            .after_long_help(HELP)
    },
    run,
};

const HELP: &str = "\
Without FILES it asks the admin listener of a Seam that runs, at SEAM_ADMIN_LISTEN, and shows SEAM_ADMIN_TOKEN there if \
it is set. It works in every mode: with SEAM_MODE=observe no byte is changed, and the report says what the briefs would \
have carried. It covers the newest 1,000 runs that the store keeps (SEAM_RETENTION).

Signs of loss are told by rules, without a model (docs/signals.md). The report holds names, counts and ids, nothing that \
was said; `seam explain ID` says more of one transfer.";

/// So many runs are asked for.
const RUNS: usize = 1_000;

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Untold(#[from] Untold),
    #[error("{0} shows no report to who does not show its SEAM_ADMIN_TOKEN, or is an older release")]
    Closed(std::net::SocketAddr),
    #[error(transparent)]
    Recorded(#[from] replay::Failure),
    #[error("it cannot be written as JSON")]
    Json(#[source] serde_json::Error),
}

fn run(arguments: &ArgMatches, source: &dyn Source) -> ExitCode {
    let files: Vec<PathBuf> = arguments.get_many("files").into_iter().flatten().cloned().collect();
    let wanted = Wanted {
        since: arguments.get_one::<Duration>("since").map(|span| ago(*span)),
        pair: arguments.get_one::<(String, String)>("pair").cloned(),
        worst: arguments.get_one::<u16>("worst").copied().map_or(0, usize::from),
    };
    let report = if files.is_empty() {
        match Admin::of(source) {
            Ok(admin) => asked(&admin, &wanted),
            Err(problems) => {
                complain(&problems);
                return ExitCode::from(USAGE);
            }
        }
    } else {
        match Config::read(&NoUpstream(source)) {
            Ok(config) => {
                let cuts = arguments.get_one::<PathBuf>("cuts");
                let runs = replay::runs(&files, cuts.map(PathBuf::as_path), &crate::app::policy(&config));
                runs.map(|runs| Report::of(&runs, &wanted)).map_err(Error::from)
            }
            Err(problems) => {
                complain(&problems);
                return ExitCode::from(USAGE);
            }
        }
    };
    let format = arguments.get_one::<String>("format").map_or("text", String::as_str);
    let text = report.and_then(|report| match format {
        "json" => serde_json::to_string_pretty(&report).map(|json| json + "\n").map_err(Error::Json),
        "markdown" => Ok(written::report(&report, arguments.get_flag("compare"), Format::Markdown)),
        _ => Ok(written::report(&report, arguments.get_flag("compare"), Format::Text)),
    });
    match text {
        Ok(text) => {
            print(&text);
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

/// A report for a terminal.
pub(super) fn as_text(report: &Report) -> String {
    written::report(report, false, Format::Text)
}

/// What a running Seam reports.
fn asked(admin: &Admin, wanted: &Wanted) -> Result<Report, Error> {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let mut path = format!("/report?limit={RUNS}&worst={}", wanted.worst);
    if let Some(since) = wanted.since {
        // A string takes all that is written to it.
        let _ = write!(path, "&since={}", since.0);
    }
    if let Some((from, to)) = &wanted.pair {
        let _ = write!(path, "&from={}&to={}", encoded(from), encoded(to));
    }
    admin.ask(&path)?.ok_or_else(|| Error::Closed(admin.address()))
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('>').map(|(from, to)| (from.trim().to_owned(), to.trim().to_owned()));
    pair.filter(|(_, to)| !to.is_empty())
        .ok_or_else(|| "expected FROM>TO, for example 'triage>refunds'".to_owned())
}

fn ago(span: Duration) -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(now.saturating_sub(span).as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_names_sender_and_receiver() {
        let check = |text: &str, expected: Option<(&str, &str)>| {
            let expected = expected.map(|(from, to)| (from.to_owned(), to.to_owned()));
            assert_eq!(pair(text).ok(), expected, "{text}");
        };
        check("triage>refunds", Some(("triage", "refunds")));
        check(" >refunds", Some(("", "refunds")));
        check("triage>", None);
        check("triage", None);
    }
}
