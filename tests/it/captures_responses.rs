//! What the clients of the Responses API really sent, replayed through the
//! real proxy in order, against an upstream that keeps what it should and takes
//! nothing that is broken.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::captures::{ENFORCED, breaks_the_rules};
use super::support::client::post;
use super::support::fake;
use super::support::responses_rules::Kept;
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
    /// What a strict upstream says to it.
    faults: Vec<String>,
}

#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn captures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/captures");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("SKIPPED: the captures of real clients (../shared/captures) are not beside this checkout");
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".jsonl") && name.contains("-responses")
    });
    files.sort();
    assert!(!files.is_empty(), "the captures hold the Responses API");
    files
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn agent(body: &Value) -> &'static str {
    let tools = body["tools"].as_array().into_iter().flatten();
    let names: Vec<&str> = tools.filter_map(|tool| tool["name"].as_str()).collect();
    OWN_TOOL.iter().find(|(tool, _)| names.contains(tool)).map_or("?", |(_, agent)| agent)
}

/// The reply as one object: of a stream, what its last event holds.
fn reply(body: &Value) -> Value {
    let Value::String(stream) = body else { return body.clone() };
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut events = data.map(|data| serde_json::from_str::<Value>(data).unwrap());
    events.rfind(|event| event["type"] == "response.completed").unwrap()["response"].clone()
}

fn input(body: &Value) -> &[Value] {
    body["input"].as_array().map_or(&[], Vec::as_slice)
}

fn moves(body: &Value, agent: &str) -> bool {
    let output = reply(body)["output"].clone();
    let calls = output.as_array().into_iter().flatten().filter_map(|item| item["name"].as_str());
    calls.filter(|name| is_transfer(name)).any(|name| name.ends_with(agent))
}

fn is_transfer(name: &str) -> bool {
    name.contains("transfer_to_") || name.contains("handoff_to_")
}

async fn replay(path: &Path, settings: &[(&str, &str)]) -> Vec<Exchange> {
    let name = name(path);
    let mut upstream = Upstream::start().await;
    let seam = Seam::with(&upstream.url(), settings).await;
    let mut kept = Kept::default();
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut before: Option<Value> = None;
    let mut moved = false;
    let file = std::fs::read_to_string(path).unwrap();
    let rows = file.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    for row in rows.filter(|row| row["request"]["path"].as_str().is_some_and(|p| p.ends_with("/responses"))) {
        let sent = row["request"]["body"].clone();
        let agent = agent(&sent);
        let kind = row["response"]["content_type"].as_str().unwrap_or("application/json");
        let answer = match &row["response"]["body"] {
            Value::String(stream) => stream.clone().into_bytes(),
            whole => whole.to_string().into_bytes(),
        };
        upstream.replies(plain(&format!("content-type: {kind}\r\n"), &answer));
        let body = sent.to_string();
        let request = post("/v1/responses", "authorization: Bearer test\r\n", body.as_bytes());
        let got = soon(seam.exchange(request)).await;
        assert_eq!(got.status, 200, "{name}");
        assert!(got.body == answer, "{name}: the reply passes byte for byte");
        let received = soon(upstream.request()).await;
        let got: Value = serde_json::from_slice(&received.body).unwrap();
        if let Some(before) = &before
            && self::agent(&before["request"]["body"]) != agent
        {
            // Somebody else speaks: the run was moved, or a new turn begins with the first agent.
            moved = moves(&before["response"]["body"], agent);
        }
        exchanges.push(Exchange {
            agent,
            received: moved,
            faults: kept.faults(&got).iter().map(ToString::to_string).collect(),
            sent,
            got: got.clone(),
        });
        kept.note(&got, &reply(&row["response"]["body"]));
        before = Some(row);
    }
    exchanges
}

/// The text of the system slot: `instructions`, and what stands at the head of the input.
fn slot(body: &Value) -> Vec<String> {
    let text = |content: &Value| match content {
        Value::Array(parts) => {
            parts.iter().map(|part| part["text"].as_str().unwrap_or_default()).collect::<Vec<_>>().join("\n")
        }
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    let instructions = body["instructions"].as_str().map(str::to_owned);
    let leading =
        input(body).iter().take_while(|item| item["role"] == "system" || item["role"] == "developer");
    instructions.into_iter().chain(leading.map(|item| text(&item["content"]))).collect()
}

/// What is wrong with what upstream got in place of what a client sent.
fn complaints(name: &str, exchanges: &[Exchange]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut last: HashMap<String, (&[Value], &[Value])> = HashMap::new();
    for (at, exchange) in exchanges.iter().enumerate() {
        let mut complain =
            |what: String| wrong.push(format!("{name}, request {} ({}): {what}", at + 1, exchange.agent));
        exchange.faults.iter().cloned().for_each(&mut complain);
        let (sent, got) = (&exchange.sent, &exchange.got);
        if !exchange.received {
            if sent != got {
                complain(format!("a sender's request was changed to {got}"));
            }
            continue;
        }
        let (before, slots) = (slot(sent), slot(got));
        let carriers: Vec<&String> = slots.iter().filter(|slot| slot.contains("[Seam handoff ")).collect();
        let &[slot] = &carriers[..] else {
            complain(format!("{} briefs", carriers.len()));
            continue;
        };
        let own = before.iter().find(|own| slot.starts_with(own.as_str()));
        if own.is_none()
            || (before.iter().any(|own| own.contains(exchange.agent))
                && !own.is_some_and(|own| own.contains(exchange.agent)))
        {
            complain(format!("the brief does not stand behind its own instructions: {slot}"));
        }
        let brief = &slot[own.map_or(0, String::len)..];
        if !(brief.contains("ord_1001") && brief.contains("call_")) {
            complain(format!("ord_1001 is not established with its provenance: {brief}"));
        }
        let delta = !sent["previous_response_id"].is_null();
        let left = input(got).iter().filter_map(|item| item["name"].as_str()).find(|name| is_transfer(name));
        if !delta && left.is_some() {
            complain(format!("{left:?} is left in the list"));
        }
        if delta && input(sent) != input(got) {
            complain("what goes on from kept state was filtered".into());
        }
        for (key, value) in sent.as_object().unwrap() {
            if key != "input" && key != "instructions" && value != &got[key] {
                complain(format!("{key} changed"));
            }
        }
        let (sent, got) = (input(sent), input(got));
        let beginning = last.get(slot).filter(|(before, _)| sent.starts_with(before)).map(|(_, kept)| *kept);
        if beginning.is_some_and(|beginning| !got.starts_with(beginning)) {
            complain("the list does not begin as on the holder's turn before".into());
        }
        last.insert(slot.clone(), (sent, got));
    }
    wrong
}

/// Plays every capture behind every profile under each of these filters; gives the count of plays, and what is wrong.
pub(crate) async fn behind_every_profile(filters: &'static [&'static str]) -> (usize, Vec<String>) {
    let mut rows = Vec::new();
    for server in fake::ALL {
        for &filter in filters {
            rows.push(tokio::spawn(async move {
                let mut wrong = Vec::new();
                for path in captures() {
                    let settings = [("SEAM_PROFILE", server.name), ("SEAM_TRANSCRIPT", filter)];
                    let found = complaints(&name(&path), &replay(&path, &settings).await);
                    wrong.extend(found.into_iter().map(|what| format!("{}, {filter}: {what}", server.name)));
                }
                wrong
            }));
        }
    }
    let mut wrong = Vec::new();
    for row in rows {
        wrong.extend(row.await.unwrap());
    }
    (captures().len() * fake::ALL.len() * filters.len(), wrong)
}

#[tokio::test]
async fn every_receiver_of_the_responses_captures_gets_its_brief_in_a_request_that_upstream_takes() {
    let mut wrong = Vec::new();
    let mut briefs = 0;
    for path in captures() {
        let name = name(&path);
        let exchanges = replay(&path, &[]).await;
        let received = exchanges.iter().filter(|exchange| exchange.received).count();
        assert!(received > 0, "{name}: nobody received");
        briefs += received;
        wrong.extend(complaints(&name, &exchanges));
    }
    assert!(briefs > 0 || captures().is_empty());
    assert!(wrong.is_empty(), "{} complaints:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn observe_passes_every_responses_capture_as_it_is() {
    for path in captures() {
        for exchange in replay(&path, &[("SEAM_MODE", "observe")]).await {
            assert_eq!(exchange.sent, exchange.got, "{}", name(&path));
        }
    }
}

#[tokio::test]
async fn with_everything_enforced_no_responses_capture_is_refused() {
    for path in captures().iter().filter(|path| !breaks_the_rules(path)) {
        let wrong = complaints(&name(path), &replay(path, &[ENFORCED]).await);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
