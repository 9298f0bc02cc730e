//! `seam verify`: checks facts against recorded conversations, one line of JSON
//! a fact.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Subcommand, USAGE, complain, print};
use crate::config::Source;
use crate::engine::custody::log::Log;
use crate::engine::handoff::contract::{self, Claim, Value};
use crate::engine::handoff::evidence::Evidence;
use crate::engine::handoff::freshness::Freshness;
use crate::engine::handoff::speaker::{self, Company};
use crate::engine::handoff::verify::{Fact, verify};
use crate::engine::time::Timestamp;
use crate::engine::view::Dialect;
use crate::engine::wire;

pub(super) const COMMAND: Subcommand = Subcommand {
    name: "verify",
    about: "Check facts against recorded conversations",
    arguments: |command| {
        command
            .arg(
                Arg::new("facts")
                    .required(true)
                    .value_name("FACTS.jsonl")
                    .value_parser(value_parser!(PathBuf))
                    .help("A fact a line: id, transcript_id, cut, fact {key, value, of, source, evidence}"),
            )
            .arg(
                Arg::new("transcripts")
                    .long("transcripts")
                    .required(true)
                    .value_name("DIR")
                    .value_parser(value_parser!(PathBuf))
                    .help("A folder of .jsonl files, a conversation a line: id, messages"),
            )
            .arg(
                Arg::new("summary")
                    .long("summary")
                    .action(ArgAction::SetTrue)
                    .help("Print a table by label instead of a line a fact"),
            )
    },
    run,
};

/// A fact of the file. `label` and `subkind` are read for the summary alone.
#[derive(Deserialize)]
struct Row {
    id: String,
    transcript_id: String,
    cut: usize,
    fact: Written,
    label: Option<String>,
    expect: Option<String>,
}

#[derive(Deserialize)]
struct Written {
    key: Option<String>,
    value: Option<Box<RawValue>>,
    of: Option<String>,
    source: Option<contract::Source>,
    evidence: Option<String>,
}

impl Written {
    fn claim(&self) -> Claim {
        let raw = self.value.as_ref().map_or("null", |value| value.get());
        let value = match serde_json::from_str::<String>(raw) {
            Ok(text) => Value { text, quoted: true },
            Err(_) => Value { text: raw.to_owned(), quoted: false },
        };
        Claim {
            key: self.key.clone(),
            value,
            of: self.of.clone(),
            source: self.source,
            evidence: self.evidence.clone(),
            ..Claim::default()
        }
    }
}

#[derive(Deserialize)]
struct Transcript {
    id: String,
    messages: Vec<Box<RawValue>>,
}

/// What is printed of a fact.
#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    outcome: &'a str,
    accepted: bool,
    evidence: Option<&'a str>,
    why: &'a str,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}:{line} is not what it should be")]
    Line { path: PathBuf, line: usize, source: serde_json::Error },
    #[error("no conversation has the id {0}")]
    NoTranscript(String),
    #[error("conversation {0} cannot be read as a list of chat messages")]
    Unreadable(String),
    #[error("cannot write")]
    Write(#[source] std::io::Error),
}

fn run(arguments: &ArgMatches, _: &dyn Source) -> ExitCode {
    let path = |name: &str| arguments.get_one::<PathBuf>(name).cloned().unwrap_or_default();
    match check(&path("facts"), &path("transcripts"), arguments.get_flag("summary")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(&failure);
            ExitCode::from(USAGE)
        }
    }
}

fn check(facts: &Path, transcripts: &Path, summary: bool) -> Result<(), Failure> {
    let rows: Vec<Row> = lines(facts)?;
    let transcripts = conversations(transcripts)?;
    let mut indexes: HashMap<(&str, usize), Evidence> = HashMap::new();
    let mut table = Table::default();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for row in &rows {
        let key = (row.transcript_id.as_str(), row.cut);
        let evidence = match indexes.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let transcript = transcripts
                    .get(&row.transcript_id)
                    .ok_or_else(|| Failure::NoTranscript(row.transcript_id.clone()))?;
                new.insert(index(transcript, row.cut)?)
            }
        };
        let claims = vec![row.fact.claim()];
        for fact in verify(claims, evidence, &Freshness::default(), Timestamp::default()) {
            if summary {
                table.add(row, &fact);
            } else {
                write_line(&mut out, row, &fact).map_err(Failure::Write)?;
            }
        }
    }
    out.flush().map_err(Failure::Write)?;
    drop(out);
    if summary {
        print(&table.text());
    }
    Ok(())
}

fn write_line(out: &mut impl std::io::Write, row: &Row, fact: &Fact) -> std::io::Result<()> {
    let line = Line {
        id: &row.id,
        outcome: fact.outcome.name(),
        accepted: fact.outcome.holds(),
        evidence: fact.call.as_deref(),
        why: &fact.why,
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")
}

/// The evidence that a conversation gives before `cut`.
fn index(transcript: &Transcript, cut: usize) -> Result<Evidence, Failure> {
    let messages: Vec<&str> = transcript.messages.iter().take(cut).map(|message| message.get()).collect();
    let body = format!(r#"{{"model":"","messages":[{}]}}"#, messages.join(","));
    let view =
        wire::read(body.as_bytes(), Dialect::Chat).map_err(|_| Failure::Unreadable(transcript.id.clone()))?;
    let voices = speaker::voices(&view.items, &speaker::said(&view.items), &Nobody);
    let mut log = Log::default();
    log.learn(&view.items, &voices, |_, _| false, Timestamp::default());
    Ok(Evidence::index(log.happenings(), !log.cut))
}

/// A recorded conversation knows no other agents.
struct Nobody;

impl Company for Nobody {
    fn is_agent(&self, _: &str) -> bool {
        false
    }

    fn is_delegated(&self, _: &str) -> bool {
        false
    }
}

fn conversations(folder: &Path) -> Result<HashMap<String, Transcript>, Failure> {
    let failed = |source| Failure::Read { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        files.push(entry.map_err(failed)?.path());
    }
    files.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    files.sort();
    let mut found = HashMap::new();
    for file in files {
        // Other lists may stand in the folder: what has no messages is none of ours.
        for raw in lines::<Box<RawValue>>(&file)? {
            if let Ok(transcript) = serde_json::from_str::<Transcript>(raw.get()) {
                found.insert(transcript.id.clone(), transcript);
            }
        }
    }
    Ok(found)
}

fn lines<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Vec<T>, Failure> {
    let failed = |source| Failure::Read { path: path.to_owned(), source };
    let file = std::io::BufReader::new(std::fs::File::open(path).map_err(failed)?);
    let mut found = Vec::new();
    for (index, line) in file.lines().enumerate() {
        let line = line.map_err(failed)?;
        if line.trim().is_empty() {
            continue;
        }
        let row = serde_json::from_str(&line).map_err(|source| Failure::Line {
            path: path.to_owned(),
            line: index + 1,
            source,
        })?;
        found.push(row);
    }
    Ok(found)
}

/// Counts by label.
#[derive(Default)]
struct Table {
    labels: BTreeMap<String, Tally>,
}

#[derive(Default)]
struct Tally {
    facts: usize,
    accepted: usize,
    right: usize,
    judged: bool,
    outcomes: BTreeMap<&'static str, usize>,
}

impl Table {
    fn add(&mut self, row: &Row, fact: &Fact) {
        let tally = self.labels.entry(row.label.clone().unwrap_or_else(|| "(none)".to_owned())).or_default();
        let accepted = fact.outcome.holds();
        tally.facts += 1;
        tally.accepted += usize::from(accepted);
        tally.judged |= row.expect.is_some();
        tally.right += usize::from(row.expect.as_deref() == Some(if accepted { "accept" } else { "reject" }));
        *tally.outcomes.entry(fact.outcome.name()).or_default() += 1;
    }

    fn text(&self) -> String {
        let mut text =
            format!("{:<18} {:>6} {:>9} {:>8}  outcomes\n", "label", "facts", "accepted", "as told");
        for (label, tally) in &self.labels {
            let right = if tally.judged {
                format!("{:.1} %", 100.0 * tally.right as f64 / tally.facts as f64)
            } else {
                "-".to_owned()
            };
            let outcomes: Vec<String> =
                tally.outcomes.iter().map(|(outcome, count)| format!("{outcome} {count}")).collect();
            let _ = writeln!(
                text,
                "{label:<18} {:>6} {:>9} {right:>8}  {}",
                tally.facts,
                tally.accepted,
                outcomes.join(", ")
            );
        }
        text
    }
}
