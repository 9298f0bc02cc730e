//! `seam replay`: what Seam would have made of the transfers of recorded
//! conversations, one line of JSON a transfer or a text for people.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Subcommand, USAGE, complain};
use crate::config::{Config, Source, vars};
use crate::engine::custody::log::Log;
use crate::engine::custody::run::Run;
use crate::engine::decide::{Action, Circumstances, Decision, Found, decide};
use crate::engine::event::Finding;
use crate::engine::policy::Policy;
use crate::engine::read::{Nobody, Reading, Way, reading};
use crate::engine::record::{Record, Tokens};
use crate::engine::reply::{Reply, ReplyCall};
use crate::engine::signal::behind;
use crate::engine::time::Timestamp;
use crate::engine::view::{Call, Dialect, Role};
use crate::engine::wire;

pub(super) const COMMAND: Subcommand = Subcommand {
    name: "replay",
    about: "Show what becomes of the transfers in recorded conversations",
    arguments: |command| {
        command
            .arg(
                Arg::new("files")
                    .required(true)
                    .num_args(1..)
                    .value_name("FILES")
                    .value_parser(value_parser!(PathBuf))
                    .help("Conversations, one a line of JSON: id, messages (Chat form), tools"),
            )
            .arg(
                Arg::new("cuts")
                    .long("cuts")
                    .value_name("FILE")
                    .value_parser(value_parser!(PathBuf))
                    .help("Where a transfer is assumed, one a line: transcript_id, cut (messages before it)"),
            )
            .arg(
                Arg::new("json")
                    .long("json")
                    .action(ArgAction::SetTrue)
                    .help("Print one JSON object a transfer: id, cut, handoff, brief, messages, tokens, findings"),
            )
            .after_help(
                "The settings are those of the environment (SEAM_TRANSCRIPT, SEAM_CONTRACT, SEAM_TRANSFER_TOOLS, \
                 ...). Without --cuts, the transfers are those that the conversations hold.",
            )
    },
    run,
};

/// The tool by which a transfer is assumed.
const ASSUMED_TOOL: &str = "transfer_to_specialist";
/// A recording has no clock: each of its messages takes a second.
const STEP_MS: u64 = 1000;

#[derive(Deserialize)]
struct Conversation {
    id: String,
    messages: Vec<Box<RawValue>>,
    #[serde(default)]
    tools: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Cut {
    transcript_id: String,
    cut: usize,
}

/// What is printed of a transfer.
#[derive(Serialize)]
struct Replayed<'a> {
    id: &'a str,
    cut: usize,
    /// The record without its brief.
    handoff: Option<Record>,
    brief: String,
    /// Why there is no brief.
    #[serde(skip_serializing_if = "Option::is_none")]
    passed: Option<&'static str>,
    /// The list as the receiver's model would read it.
    messages: Box<RawValue>,
    tokens: Tokens,
    findings: Vec<Finding>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}:{line} is not what it should be")]
    Line { path: PathBuf, line: usize, source: serde_json::Error },
    #[error("conversation {id} cannot be read as a list of chat messages")]
    Unreadable { id: String, source: wire::Unreadable },
    #[error("conversation {id}: the rebuilt request is not JSON")]
    Rebuilt { id: String, source: serde_json::Error },
    #[error("cannot write")]
    Write(#[source] std::io::Error),
}

fn run(arguments: &ArgMatches, source: &dyn Source) -> ExitCode {
    let config = match Config::read(&NoUpstream(source)) {
        Ok(config) => config,
        Err(problems) => {
            complain(&problems);
            return ExitCode::from(USAGE);
        }
    };
    let files: Vec<PathBuf> = arguments.get_many("files").into_iter().flatten().cloned().collect();
    let cuts = arguments.get_one::<PathBuf>("cuts");
    match replay(&files, cuts.map(PathBuf::as_path), arguments.get_flag("json"), &crate::app::policy(&config))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(&failure);
            ExitCode::from(USAGE)
        }
    }
}

/// Settings for a command that sends nothing: an upstream is not asked for.
pub(super) struct NoUpstream<'a>(pub(super) &'a dyn Source);

impl Source for NoUpstream<'_> {
    fn variables(&self) -> Vec<(String, String)> {
        let mut variables = self.0.variables();
        let name = vars::UPSTREAM.entry.name;
        if !variables.iter().any(|(given, value)| given == name && !value.trim().is_empty()) {
            variables.push((name.to_owned(), "http://127.0.0.1".to_owned()));
        }
        variables
    }
}

fn replay(files: &[PathBuf], cuts: Option<&Path>, json: bool, policy: &Policy) -> Result<(), Failure> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    each(files, cuts, policy, |conversation, transfers| {
        let mut run = Found::default();
        for transfer in transfers {
            let replayed = one(conversation, transfer, &mut run, policy)?;
            write(&mut out, &replayed, json).map_err(Failure::Write)?;
        }
        Ok(())
    })?;
    out.flush().map_err(Failure::Write)
}

/// The runs of recorded conversations, with what their receivers' replies showed.
pub(super) fn runs(files: &[PathBuf], cuts: Option<&Path>, policy: &Policy) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    each(files, cuts, policy, |conversation, transfers| {
        let mut run = Found::default();
        for (at, transfer) in transfers.iter().enumerate() {
            one(conversation, *transfer, &mut run, policy)?;
            let until = transfers.get(at + 1).map_or(conversation.messages.len(), |next| next.begins());
            for run in run.runs.values_mut() {
                listen(conversation, transfer.end(), until, Arc::make_mut(run), policy)?;
            }
        }
        runs.extend(run.runs.into_values().map(Arc::unwrap_or_clone));
        Ok(())
    })?;
    Ok(runs)
}

/// Gives each conversation with its transfers.
fn each(
    files: &[PathBuf],
    cuts: Option<&Path>,
    policy: &Policy,
    mut each: impl FnMut(&Conversation, Vec<Transfer>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for cut in cuts.map(lines::<Cut>).transpose()?.into_iter().flatten() {
        places.entry(cut.transcript_id).or_default().push(cut.cut);
    }
    for file in files {
        for raw in lines::<Box<RawValue>>(file)? {
            // Other lists may be named as well: what has no messages is no conversation.
            let Ok(conversation) = serde_json::from_str::<Conversation>(raw.get()) else { continue };
            let transfers = match cuts {
                Some(_) => places
                    .remove(&conversation.id)
                    .unwrap_or_default()
                    .into_iter()
                    .map(Transfer::Assumed)
                    .collect(),
                None => recorded(&conversation, policy)?,
            };
            each(&conversation, transfers)?;
        }
    }
    Ok(())
}

/// Notes what the replies from message `from` to `until` show of the transfer before them.
fn listen(
    conversation: &Conversation,
    from: usize,
    until: usize,
    run: &mut Run,
    policy: &Policy,
) -> Result<(), Failure> {
    let body = body(conversation, conversation.messages.len(), "", &[]);
    let reading = reading(view(&body, conversation)?, &policy.naming, None);
    let voices = reading.voices(&Nobody);
    let items = &reading.view.items;
    let mut log = Log::default();
    for at in (0..items.len().min(until)).filter(|at| items[*at].role == Role::Assistant) {
        let now = Timestamp(at as u64 * STEP_MS);
        log.learn(&items[..at], &voices[..at], |item, call| reading.is_transfer(item, call), now);
        let Some(holder) = run.holder.as_mut().filter(|_| at >= from) else { continue };
        holder.replies += 1;
        let agent = holder.agent;
        let said = |call: &Call<'_>| ReplyCall {
            id: call.id.to_string(),
            name: call.name.to_string(),
            arguments: call.arguments.to_string(),
            complete: true,
        };
        let reply = Reply {
            text: items[at].text.to_string(),
            calls: items[at].calls.iter().map(said).collect(),
            ..Reply::default()
        };
        let signals = behind(run, &log, &reply, Some(agent));
        run.note_signals(signals);
    }
    Ok(())
}

/// A transfer to be replayed, by the messages before its receiver's part.
#[derive(Clone, Copy)]
enum Transfer {
    /// Assumed behind so many messages.
    Assumed(usize),
    /// Recorded in the message of this index; the receiver's part begins at `end`.
    Recorded { at: usize, end: usize },
}

impl Transfer {
    /// The message in which it is made.
    fn begins(self) -> usize {
        match self {
            Transfer::Assumed(at) | Transfer::Recorded { at, .. } => at,
        }
    }

    /// The message with which the receiver's part begins.
    fn end(self) -> usize {
        match self {
            Transfer::Assumed(end) | Transfer::Recorded { end, .. } => end,
        }
    }
}

/// The transfers that a conversation holds and that were answered.
fn recorded(conversation: &Conversation, policy: &Policy) -> Result<Vec<Transfer>, Failure> {
    let body = body(conversation, conversation.messages.len(), "", &[]);
    let view = view(&body, conversation)?;
    let reading = reading(view, &policy.naming, None);
    let mut transfers: Vec<(usize, usize)> = Vec::new();
    for visible in &reading.transfers {
        let Some(result) = visible.result else { continue };
        let answers = reading.view.items[result..].iter().take_while(|item| item.answers.is_some()).count();
        transfers.push((visible.item, result + answers));
    }
    // Of two transfers in one message there is one receiver.
    transfers.dedup_by_key(|(item, _)| *item);
    Ok(transfers.into_iter().map(|(at, end)| Transfer::Recorded { at, end }).collect())
}

/// Replays one transfer as its receiver's first request; `run` is what is known of the run so far.
fn one<'c>(
    conversation: &'c Conversation,
    transfer: Transfer,
    run: &mut Found,
    policy: &Policy,
) -> Result<Replayed<'c>, Failure> {
    let (cut, end, tail) = match transfer {
        Transfer::Assumed(cut) => (cut, cut, assumed()),
        Transfer::Recorded { at, end } => (at, end, String::new()),
    };
    let tools = receivers_tools(conversation, policy)?;
    let body = body(conversation, end, &tail, &tools);
    let reading = reading(view(&body, conversation)?, &policy.naming, None);
    let log = learned(&reading);
    let now = Timestamp(reading.view.items.len() as u64 * STEP_MS);
    let stored = |_: &str| log.clone();
    let at = Circumstances {
        policy,
        now,
        fresh_id: &|| conversation.id.clone(),
        log: &stored,
        body: body.as_bytes(),
    };
    let decision = decide(&reading, std::mem::take(run), at);
    let plan = match &decision.action {
        Action::Rewrite(plan) => Some(&**plan),
        Action::Forward(_) | Action::Refuse(_) => None,
    };
    let sent = match plan {
        Some(plan) => wire::apply(body.as_bytes(), &reading.view, plan),
        None => body.clone().into(),
    };
    let messages =
        messages(&sent).map_err(|source| Failure::Rebuilt { id: conversation.id.clone(), source })?;
    Ok(replayed(conversation, cut, decision, messages, run))
}

fn replayed<'c>(
    conversation: &'c Conversation,
    cut: usize,
    decision: Decision,
    messages: Box<RawValue>,
    known: &mut Found,
) -> Replayed<'c> {
    let hop = decision.hop;
    let mut findings = decision.findings;
    let passed = match decision.action {
        Action::Rewrite(_) => None,
        Action::Forward(pass) => Some(pass.name()),
        Action::Refuse(finding) => Some(finding.code.name()),
    };
    let transfer = decision.run.as_ref().and_then(|run| {
        run.transfers
            .iter()
            .find(|transfer| Some(transfer.record.hop) == hop)
            .map(|found| found.record.clone())
    });
    if let Some(run) = decision.run {
        known.sets = vec![(Way::Header, vec![run.id.clone()])];
        known.runs = std::iter::once((run.id.clone(), run)).collect();
    }
    let mut handoff = transfer;
    let brief = handoff.as_mut().and_then(|record| record.brief.take()).unwrap_or_default();
    let tokens = handoff.as_ref().map(|record| record.tokens).unwrap_or_default();
    if let Some(record) = &mut handoff {
        findings = std::mem::take(&mut record.findings);
    }
    Replayed { id: &conversation.id, cut, handoff, brief, passed, messages, tokens, findings }
}

/// The call and the result of a transfer that says nothing.
fn assumed() -> String {
    format!(
        r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_assumed","type":"function","function":{{"name":"{ASSUMED_TOOL}","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"call_assumed","content":""}}"#
    )
}

/// The tools of the conversation that are no transfers: an agent that offers a transfer to X is not X.
fn receivers_tools<'c>(conversation: &'c Conversation, policy: &Policy) -> Result<Vec<&'c str>, Failure> {
    let all: Vec<&str> = conversation.tools.iter().map(|tool| tool.get()).collect();
    let body = body(conversation, 0, "", &all);
    let view = view(&body, conversation)?;
    let offers = policy.naming.offers(&view.tools);
    let is_transfer = |at: &usize| offers.iter().any(|offer| offer.tool == *at);
    Ok((0..all.len()).filter(|at| !is_transfer(at)).map(|at| all[at]).collect())
}

/// A request with the first `end` messages of a conversation and `tail` behind them.
fn body(conversation: &Conversation, end: usize, tail: &str, tools: &[&str]) -> String {
    let messages: Vec<&str> = conversation.messages.iter().take(end).map(|message| message.get()).collect();
    let tail = if end == 0 { tail.trim_start_matches(',') } else { tail };
    format!(r#"{{"model":"","messages":[{}{tail}],"tools":[{}]}}"#, messages.join(","), tools.join(","))
}

fn view<'b>(body: &'b str, conversation: &Conversation) -> Result<crate::engine::view::View<'b>, Failure> {
    wire::read(body.as_bytes(), Dialect::Chat)
        .map_err(|source| Failure::Unreadable { id: conversation.id.clone(), source })
}

/// The log of a run whose requests were seen one by one: each reply was asked for with what stands before it.
fn learned(reading: &Reading<'_>) -> Log {
    let voices = reading.voices(&Nobody);
    let items = &reading.view.items;
    let mut log = Log::default();
    for at in (0..items.len()).filter(|at| items[*at].role == Role::Assistant) {
        let now = Timestamp(at as u64 * STEP_MS);
        log.learn(&items[..at], &voices[..at], |item, call| reading.is_transfer(item, call), now);
    }
    log
}

/// The list of a request.
fn messages(body: &[u8]) -> Result<Box<RawValue>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Sent {
        messages: Box<RawValue>,
    }
    Ok(serde_json::from_slice::<Sent>(body)?.messages)
}

fn write(out: &mut impl std::io::Write, replayed: &Replayed<'_>, json: bool) -> std::io::Result<()> {
    if json {
        serde_json::to_writer(&mut *out, replayed)?;
        return out.write_all(b"\n");
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{} at message {}", replayed.id, replayed.cut);
    let _ = writeln!(text, "tokens: {} before, {} after", replayed.tokens.before, replayed.tokens.after);
    for finding in &replayed.findings {
        let _ = writeln!(text, "finding: {} at {}: {}", finding.code.name(), finding.place, finding.what);
    }
    let _ = match replayed.passed {
        Some(reason) => writeln!(text, "no brief: {reason}\n"),
        None => writeln!(text, "{}\n", replayed.brief),
    };
    out.write_all(text.as_bytes())
}

fn lines<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Vec<T>, Failure> {
    let failed = |source| Failure::Read { path: path.to_owned(), source };
    let file = std::io::BufReader::new(std::fs::File::open(path).map_err(failed)?);
    let mut found = Vec::new();
    for (index, line) in file.lines().enumerate() {
        let line = line.map_err(failed)?;
        if !line.trim().is_empty() {
            let read = serde_json::from_str(&line);
            found.push(read.map_err(|source| Failure::Line {
                path: path.to_owned(),
                line: index + 1,
                source,
            })?);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TALK: &str = r#"{"id":"talk","tools":[
        {"type":"function","function":{"name":"get_loan","parameters":{"properties":{"loan_id":{"type":"string"}}}}},
        {"type":"function","function":{"name":"transfer_to_returns","parameters":{}}}],"messages":[
        {"role":"system","content":"You help readers."},
        {"role":"user","content":"Is loan ln_7001 late?"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"get_loan","arguments":"{\"loan_id\":\"ln_7001\"}"}}]},
        {"role":"tool","tool_call_id":"c1","content":"{\"loan_id\":\"ln_7001\",\"shelf\":\"S4\"}"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c2","type":"function","function":{"name":"transfer_to_returns","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"c2","content":"{\"assistant\":\"Returns\"}"},
        {"role":"assistant","content":"Here is returns."}]}"#;

    fn talk() -> Conversation {
        serde_json::from_str(TALK).expect("the test's own text")
    }

    /// The brief's lines that hold `text`, and how many messages go up.
    fn check(transfer: Transfer, text: &str, messages: usize) {
        let talk = talk();
        let replayed =
            one(&talk, transfer, &mut Found::default(), &Policy::default()).expect("it can be replayed");
        assert_eq!(replayed.passed, None);
        assert!(replayed.brief.contains(text), "{}", replayed.brief);
        let sent: Vec<Box<RawValue>> = serde_json::from_str(replayed.messages.get()).expect("a list");
        assert_eq!(sent.len(), messages, "{}", replayed.messages);
        assert!(sent[0].get().contains("[Seam handoff "), "{}", sent[0]);
    }

    #[test]
    fn an_assumed_transfer_gets_a_brief() {
        check(Transfer::Assumed(4), "shelf=\"S4\"", 4);
        check(Transfer::Assumed(2), "\"specialist\"", 2);
    }

    #[test]
    fn the_transfers_that_a_conversation_holds_are_found() {
        let policy = Policy::default();
        let found = recorded(&talk(), &policy).expect("it can be read");
        assert!(matches!(found[..], [Transfer::Recorded { at: 4, end: 6 }]), "{}", found.len());
        check(found[0], "\"Returns\"", 4);
    }

    #[test]
    fn a_command_that_sends_nothing_asks_for_no_upstream() {
        assert!(Config::read(&NoUpstream(&[] as &[(&str, &str); 0])).is_ok());
        assert!(Config::read(&NoUpstream(&[("SEAM_TRANSCRIPT", "some")])).is_err());
    }
}
