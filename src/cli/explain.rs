//! `seam explain`: why a transfer, or a request that passed, went the way it went.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{Arg, ArgMatches};
use serde::Deserialize;

use super::ask::{Admin, Untold};
use super::{Subcommand, USAGE, complain, print, quiet};
use crate::config::Source;

pub(super) const COMMAND: Subcommand = Subcommand {
    name: "explain",
    about: "Ask a running Seam why a transfer, or a request that passed, went the way it went",
    arguments: |command| {
        command
            .arg(Arg::new("id").value_name("ID").help("A handoff, a pass, or a client's x-request-id"))
            .after_long_help(HELP)
            .after_help("Without ID it lists what can be explained. --help says where ids stand.")
    },
    run,
};

const HELP: &str = "\
It asks the admin listener of a Seam that runs, at SEAM_ADMIN_LISTEN, and shows SEAM_ADMIN_TOKEN there if it is set: run \
it with the settings of that process (in a pod: kubectl exec POD -c seam -- /seam explain ID).

An ID is one of these:

  0c6e5d2f83a1b947-1   A handoff. It stands in the header seam-handoff of the receiver's replies, in the log line
                       \"transfer taken up\", and in /handoffs. It is the run's id and the number of the transfer.
  pass-17              A request that passed as it came. It stands in /passes and in the log at level debug.
  anything else        What a client sent in its header x-request-id with a request that passed.

Passes are kept by the process that saw them, the last thousand; handoffs stand in the store. The answer is a list of
steps: detection (what was taken for a transfer), match (whose request it was), check (what was found), filter (what \
of the conversation travelled), or the reason of a pass (docs/reasons.md). What was said is shown only with \
SEAM_ADMIN_CONTENT=on.

Without ID the newest handoffs and passes are listed.";

/// How many of each are listed.
const LISTED: usize = 10;
/// An id is short; a longer word is none.
const ID_BYTES: usize = 128;

fn run(arguments: &ArgMatches, source: &dyn Source) -> ExitCode {
    let admin = match Admin::of(source) {
        Ok(admin) => admin,
        Err(problems) => {
            complain(&problems);
            return ExitCode::from(USAGE);
        }
    };
    let told = match arguments.get_one::<String>("id") {
        Some(id) => explanation(&admin, id),
        None => list(&admin),
    };
    match told {
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

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Untold(#[from] Untold),
    #[error("{0} shows no handoffs to who does not show its SEAM_ADMIN_TOKEN")]
    Closed(std::net::SocketAddr),
    #[error("neither a handoff nor a pass is called {0:?}; `seam explain` without an id lists the newest")]
    Unknown(String),
    #[error("{0:?} is no id")]
    NoId(String),
}

/// Why something happened, step by step.
#[derive(Debug, Deserialize)]
struct Explanation {
    id: String,
    kind: String,
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
struct Step {
    step: String,
    what: String,
}

/// A handoff as it is listed.
#[derive(Debug, Deserialize)]
struct Handoff {
    id: String,
    at: String,
    from: Option<String>,
    to: String,
    state: String,
}

/// A pass as it is listed.
#[derive(Debug, Deserialize)]
struct Passage {
    id: String,
    reason: String,
    request: Option<String>,
}

fn explanation(admin: &Admin, id: &str) -> Result<String, Error> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if id.is_empty() || id.len() > ID_BYTES || !id.bytes().all(is_plain) {
        return Err(Error::NoId(id.to_owned()));
    }
    match admin.ask::<Explanation>(&format!("/handoffs/{id}?explain"))? {
        Some(explanation) => Ok(written(&explanation)),
        // Whoever may see handoffs gets at least an empty list.
        None => match admin.ask::<Vec<Handoff>>("/handoffs?limit=1")? {
            Some(_) => Err(Error::Unknown(id.to_owned())),
            None => Err(Error::Closed(admin.address())),
        },
    }
}

fn list(admin: &Admin) -> Result<String, Error> {
    let closed = || Error::Closed(admin.address());
    let handoffs: Vec<Handoff> = admin.ask(&format!("/handoffs?limit={LISTED}"))?.ok_or_else(closed)?;
    let passes: Vec<Passage> = admin.ask(&format!("/passes?limit={LISTED}"))?.ok_or_else(closed)?;
    let mut text = String::new();
    for handoff in &handoffs {
        let from = handoff.from.as_deref().unwrap_or("unknown");
        let (id, at, to, state) = (&handoff.id, &handoff.at, &handoff.to, &handoff.state);
        // A string takes all that is written to it.
        let _ = writeln!(text, "{id}  {at}  {} to {}, {state}", quiet(from), quiet(to));
    }
    for pass in &passes {
        let request = pass.request.as_ref().map_or(String::new(), |request| format!("  request {request}"));
        let _ = writeln!(text, "{}  {}{request}", pass.id, pass.reason);
    }
    if text.is_empty() {
        text.push_str("Nothing was transferred yet, and no request that could hold a transfer has passed.\n");
    }
    Ok(text)
}

fn written(explanation: &Explanation) -> String {
    let mut text = format!("{} {}\n\n", explanation.kind, explanation.id);
    for Step { step, what } in &explanation.steps {
        let _ = writeln!(text, "{step:<10} {}", quiet(what));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_stand_one_a_line_and_hold_no_control_character() {
        let step = |step: &str, what: &str| Step { step: step.into(), what: what.into() };
        let explanation = Explanation {
            id: "a-1".into(),
            kind: "handoff".into(),
            steps: vec![step("detection", "One."), step("match", "to \u{1b}[31mred\nroom")],
        };
        assert_eq!(
            written(&explanation),
            "handoff a-1\n\ndetection  One.\nmatch      to \u{fffd}[31mred\u{fffd}room\n"
        );
    }

    #[test]
    fn what_cannot_be_an_id_is_not_asked_for() {
        let admin = Admin::of(&[("SEAM_ADMIN_LISTEN", "127.0.0.1:1")]).expect("it reads");
        for id in ["", "a b", "../runs/a", "a?b", &"a".repeat(129)] {
            assert!(matches!(explanation(&admin, id), Err(Error::NoId(_))), "{id:?}");
        }
    }
}
