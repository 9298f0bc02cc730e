//! What seventeen agent frameworks really sent, replayed through the real
//! proxy in order: every receiver gets its brief, every list is one that a
//! strict upstream takes, and a sender's request is untouched.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::support::client::post;
use super::support::conversations::{self, Conversation};
use super::support::fake::Turn;
use super::support::rules::{Rules, faults};
use super::support::seam::Seam;
use super::support::soon;
use super::support::upstream::{Upstream, plain};

/// The tool by which each scripted agent is known: some clients leave another agent's system text in place.
const OWN_TOOL: &[(&str, &str)] =
    &[("lookup_order", "triage"), ("issue_refund", "refunds"), ("send_notification", "notifications")];

/// One exchange of a capture, through Seam.
struct Exchange {
    agent: &'static str,
    sent: Value,
    got: Value,
    /// Whether the exchange before moved the run to this agent.
    received: bool,
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn captures() -> Option<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/captures");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("SKIPPED: the captures of real clients (../shared/captures) are not beside this checkout");
        return None;
    };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".jsonl") && !name.contains("responses")
    });
    files.sort();
    Some(files)
}

fn agent(body: &Value) -> &'static str {
    let tools = body["tools"].as_array().into_iter().flatten();
    let names: Vec<&str> = tools.filter_map(|tool| tool["function"]["name"].as_str()).collect();
    let own = OWN_TOOL.iter().find(|(tool, _)| names.iter().any(|name| name.ends_with(tool)));
    own.map_or("?", |(_, agent)| agent)
}

fn is_transfer(name: &str) -> bool {
    ["transfer", "handoff", "delegate", "agent-"].iter().any(|part| name.contains(part))
}

/// Whether an exchange's reply moves the run to `agent`.
fn moves_to(row: &Value, agent: &str) -> bool {
    let said = row["response"]["body"].to_string();
    let calls = row["mock_decision"]["calls"].as_array().into_iter().flatten().filter_map(Value::as_str);
    calls.filter(|name| is_transfer(name)).any(|name| name.contains(agent) || said.contains(agent))
}

/// Whether a client wrote a way back that upstream never called (langgraph-supervisor).
fn is_invented_return(messages: &[Value]) -> bool {
    let last = messages.iter().rev().take(2);
    last.flat_map(|message| message["tool_calls"].as_array().into_iter().flatten())
        .any(|call| call["function"]["name"].as_str().is_some_and(|name| name.starts_with("transfer_back")))
}

fn messages(body: &Value) -> &[Value] {
    body["messages"].as_array().map_or(&[], Vec::as_slice)
}

fn text(content: &Value) -> String {
    match content {
        Value::Array(parts) => {
            parts.iter().map(|part| part["text"].as_str().unwrap_or_default()).collect::<Vec<_>>().join("\n")
        }
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

async fn replay(path: &Path, settings: &[(&str, &str)]) -> Vec<Exchange> {
    let mut upstream = Upstream::start().await;
    let seam = Seam::with(&upstream.url(), settings).await;
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut custody = Custody::default();
    for row in rows(path) {
        let sent = row["request"]["body"].clone();
        let agent = agent(&sent);
        let kind = row["response"]["content_type"].as_str().unwrap_or("application/json");
        let reply = match &row["response"]["body"] {
            Value::String(stream) => stream.clone().into_bytes(),
            whole => whole.to_string().into_bytes(),
        };
        upstream.replies(plain(&format!("content-type: {kind}\r\n"), &reply));
        let body = sent.to_string();
        let request = post("/v1/chat/completions", "authorization: Bearer test\r\n", body.as_bytes());
        let got = soon(seam.exchange(request)).await;
        assert_eq!(got.status, 200, "{}", path.display());
        assert!(got.body == reply, "{}: the reply passes byte for byte", path.display());
        let received = soon(upstream.request()).await;
        exchanges.push(Exchange {
            agent,
            got: serde_json::from_slice(&received.body).unwrap(),
            sent,
            received: custody.receives(row),
        });
    }
    exchanges
}

fn rows(path: &Path) -> Vec<Value> {
    let file = std::fs::read_to_string(path).unwrap();
    let rows = file.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.filter(|row| row["request"]["path"].as_str().is_some_and(|p| p.ends_with("/chat/completions")))
        .collect()
}

/// Who has the run, told from one exchange to the next.
#[derive(Default)]
struct Custody {
    first: Option<&'static str>,
    before: Option<Value>,
    moved: bool,
}

impl Custody {
    /// Whether the next exchange is of an agent that a transfer has brought here.
    fn receives(&mut self, row: Value) -> bool {
        let body = &row["request"]["body"];
        let agent = agent(body);
        if *self.first.get_or_insert(agent) != agent {
            self.moved = true;
        } else if let Some(before) = &self.before
            && self::agent(&before["request"]["body"]) != agent
        {
            self.moved = moves_to(before, agent) || is_invented_return(messages(body));
        }
        self.before = Some(row);
        self.moved
    }
}

/// The captures, for any server to answer; none where they are not there.
pub(crate) fn conversations() -> Vec<Conversation> {
    let conversation = |path: PathBuf| {
        let mut custody = Custody::default();
        let exchanges = rows(&path).into_iter().map(|row| conversations::Exchange {
            request: row["request"]["body"].clone(),
            reply: said(&row["response"]["body"]),
            receives: custody.receives(row),
        });
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Conversation { exchanges: exchanges.collect(), name }
    };
    captures().unwrap_or_default().into_iter().map(conversation).collect()
}

/// What the model said in a recorded reply, plain or streamed.
fn said(body: &Value) -> Turn {
    let Some(stream) = body.as_str() else {
        let message = &body["choices"][0]["message"];
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        let calls =
            calls.map(|call| (&call["id"], &call["function"]["name"], &call["function"]["arguments"]));
        let turn = Turn { text: message["content"].as_str().map(str::to_owned), calls: Vec::new() };
        return calls.fold(turn, |turn, (id, name, arguments)| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            turn.and(&text(id), &text(name), &text(arguments))
        });
    };
    let mut turn = Turn::default();
    for line in stream.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let Ok(chunk) = serde_json::from_str::<Value>(line) else { continue };
        let delta = &chunk["choices"][0]["delta"];
        if let Some(text) = delta["content"].as_str().filter(|text| !text.is_empty()) {
            turn.text.get_or_insert_default().push_str(text);
        }
        for fragment in delta["tool_calls"].as_array().into_iter().flatten() {
            let at = fragment["index"].as_u64().unwrap_or_default() as usize;
            if turn.calls.len() <= at {
                turn = turn.and("", "", "");
            }
            let call = &mut turn.calls[at];
            let function = &fragment["function"];
            for (part, value) in [
                (&mut call.id, &fragment["id"]),
                (&mut call.name, &function["name"]),
                (&mut call.arguments, &function["arguments"]),
            ] {
                part.push_str(value.as_str().unwrap_or_default());
            }
        }
    }
    turn
}

/// What is wrong with what upstream got in place of what a client sent.
fn complaints(name: &str, exchanges: &[Exchange]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut last: HashMap<String, (&[Value], &[Value])> = HashMap::new();
    for (at, exchange) in exchanges.iter().enumerate() {
        let mut complain =
            |what: String| wrong.push(format!("{name}, request {} ({}): {what}", at + 1, exchange.agent));
        let (sent, got) = (messages(&exchange.sent), messages(&exchange.got));
        for fault in faults(&exchange.got, Rules::STRICT) {
            complain(fault.to_string());
        }
        if !exchange.received {
            if exchange.sent != exchange.got {
                complain("a sender's request was changed".into());
            }
            continue;
        }
        let slot = text(&got[0]["content"]);
        let own = sent.iter().take_while(|m| m["role"] == "system" || m["role"] == "developer").last();
        let own = own.map(|message| text(&message["content"])).unwrap_or_default();
        let Some(brief) = slot.strip_prefix(&own).filter(|rest| rest.contains("[Seam handoff ")) else {
            complain("no brief behind its own instructions".into());
            continue;
        };
        if name.contains("-chain") && exchange.agent == "notifications" && !brief.contains("rf_5001") {
            complain("the brief does not name the refund that the agent before issued".into());
        }
        if !name.starts_with("strands") && !brief.contains("ord_1001") {
            complain("the brief does not name the order".into());
        }
        let beginning = last.get(&slot).filter(|(before, _)| sent.starts_with(before)).map(|(_, kept)| *kept);
        if beginning.is_some_and(|beginning| !got.starts_with(beginning)) {
            complain("the list does not begin as on the holder's turn before".into());
        }
        last.insert(slot, (sent, got));
    }
    wrong
}

#[tokio::test]
async fn every_receiver_of_the_captures_gets_its_brief_in_a_list_that_upstream_takes() {
    let mut wrong = Vec::new();
    let mut briefs = 0;
    for path in captures().unwrap_or_default() {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let exchanges = replay(&path, &[]).await;
        briefs += exchanges.iter().filter(|exchange| exchange.received).count();
        wrong.extend(complaints(&name, &exchanges));
    }
    assert!(briefs > 0 || captures().is_none(), "no capture has a receiver");
    assert!(wrong.is_empty(), "{} complaints:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn observe_passes_every_capture_as_it_is() {
    for path in captures().unwrap_or_default() {
        for exchange in replay(&path, &[("SEAM_MODE", "observe")]).await {
            assert_eq!(exchange.sent, exchange.got, "{}", path.display());
        }
    }
}

/// Everything that can be refused.
pub(crate) const ENFORCED: (&str, &str) = ("SEAM_ENFORCE", "contract,facts,hops,custody,budget");

/// Whether a capture is of a reply with two transfers, which enforcing is there to refuse.
pub(crate) fn breaks_the_rules(path: &Path) -> bool {
    path.to_string_lossy().contains("parallel-transfers")
}

/// Turns that begin with the first agent again, calls of the sender behind its transfer, ways back, facts of
/// which the wrong call is cited.
#[tokio::test]
async fn with_everything_enforced_no_capture_is_refused() {
    for path in captures().unwrap_or_default().iter().filter(|path| !breaks_the_rules(path)) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let wrong = complaints(&name, &replay(path, &[ENFORCED]).await);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
