//! The contract against what real clients declare and real senders write, where
//! captured traffic stands beside the checkout (`../shared`).

use std::path::Path;

use seam::engine::event::Code;
use seam::engine::handoff::contract;
use serde_json::Value;

/// The bodies of all captured requests; none, with a loud word, where there are no captures.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn captured() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/captures");
    let Ok(files) = std::fs::read_dir(&folder) else {
        println!("SKIPPED: no captures at {}", folder.display());
        return Vec::new();
    };
    let files = files.flatten().map(|file| file.path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let texts = files.map(|path| std::fs::read_to_string(path).expect("captures are text"));
    let lines = texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
    lines
        .map(|line| serde_json::from_str::<Value>(&line).expect("a line is JSON"))
        .map(|record| record["request"]["body"].clone())
        .collect()
}

/// Every element of `lists` in a body, whichever of them it has.
fn elements<'b>(body: &'b Value, lists: &[&str]) -> Vec<&'b Value> {
    lists.iter().filter_map(|list| body[list].as_array()).flatten().collect()
}

#[test]
fn only_tools_with_facts_declare_a_contract() {
    for body in captured() {
        for tool in elements(&body, &["tools"]) {
            let tool = if tool["function"].is_null() { tool } else { &tool["function"] };
            let parameters = &tool["parameters"];
            let declares = contract::declares_contract(&parameters.to_string());
            assert_eq!(declares, !parameters["properties"]["established"].is_null(), "{tool}");
        }
    }
}

#[test]
fn whatever_senders_wrote_is_read_without_a_fault() {
    for body in captured() {
        let mut calls: Vec<(&Value, &Value)> = Vec::new();
        for item in elements(&body, &["messages", "input"]) {
            calls.push((&item["name"], &item["arguments"]));
            for call in elements(item, &["tool_calls"]) {
                calls.push((&call["function"]["name"], &call["function"]["arguments"]));
            }
        }
        for (name, arguments) in calls {
            let (Some(name), Some(arguments)) = (name.as_str(), arguments.as_str()) else { continue };
            if !["transfer", "handoff", "delegate"].iter().any(|word| name.contains(word)) {
                continue;
            }
            let read = contract::read(arguments);
            let faults: Vec<_> =
                read.findings.iter().filter(|finding| finding.code != Code::OwnedField).collect();
            assert!(faults.is_empty(), "{name}: {arguments}: {faults:?}");
            let facts = read.handoff.and_then(|handoff| handoff.established).unwrap_or_default();
            assert!(!facts.is_empty() || !arguments.contains("\"established\""), "{name}: {arguments}");
        }
    }
}
