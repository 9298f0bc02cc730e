//! Tests on the captured traffic of real clients, where the optional folder beside the checkout is there.

use std::path::Path;

use bytes::Bytes;
use serde_json::Value;

use super::sse::{Piece, Splitter};
use crate::engine::reply::Reply;
use crate::engine::view::{Dialect, Plan};
use crate::engine::wire;

/// Every exchange of the captures, with the file and the dialect it is from; none where the folder is missing.
fn exchanges() -> Option<Vec<(String, Dialect, Value)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/captures");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("SKIPPED: no captures at ../shared/captures");
        return None;
    };
    let mut exchanges = Vec::new();
    for entry in entries {
        let path = entry.expect("a folder that can be read").path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        for line in std::fs::read_to_string(&path).expect("a file that can be read").lines() {
            let exchange: Value = serde_json::from_str(line).expect("one exchange a line");
            let dialect = match exchange["request"]["path"].as_str().unwrap_or_default() {
                path if path.ends_with("/chat/completions") => Dialect::Chat,
                path if path.ends_with("/responses") => Dialect::Responses,
                _ => continue,
            };
            exchanges.push((path.display().to_string(), dialect, exchange));
        }
    }
    assert!(!exchanges.is_empty(), "the captures hold exchanges");
    Some(exchanges)
}

#[test]
fn every_captured_request_is_read_and_left_alone() {
    for (file, dialect, exchange) in exchanges().unwrap_or_default() {
        let request = &exchange["request"]["body"];
        for body in [request.to_string(), format!("{request:#}")] {
            let view = wire::read(body.as_bytes(), dialect).unwrap_or_else(|why| panic!("{file}: {why}"));
            let mut counted: Vec<usize> = match dialect {
                Dialect::Chat => {
                    let calls = |message: &Value| message["tool_calls"].as_array().map_or(0, Vec::len);
                    request["messages"].as_array().expect("messages").iter().map(calls).collect()
                }
                Dialect::Responses => {
                    let calls = |item: &Value| usize::from(item["type"] == "function_call");
                    request["input"].as_array().expect("a list").iter().map(calls).collect()
                }
            };
            counted.splice(..0, vec![0; view.head.items]);
            assert_eq!(view.head.items, usize::from(request["instructions"].is_string()), "{file}");
            assert_eq!(view.items.iter().map(|item| item.calls.len()).collect::<Vec<_>>(), counted, "{file}");
            let same = wire::apply(body.as_bytes(), &view, &Plan::default());
            assert_eq!(same, body.as_bytes(), "{file}");
        }
    }
}

#[test]
fn every_captured_reply_is_read() {
    for (file, dialect, exchange) in exchanges().unwrap_or_default() {
        let reply = match &exchange["response"]["body"] {
            Value::String(stream) => streamed(stream, dialect),
            body => wire::read_reply(body.to_string().as_bytes(), dialect).expect("a reply"),
        };
        let decision = &exchange["mock_decision"];
        let names: Vec<&str> = reply.calls.iter().map(|call| call.name.as_str()).collect();
        let wanted: Vec<&str> =
            decision["calls"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        assert_eq!(names, wanted, "{file}");
        assert_eq!(reply.text, decision["text"].as_str().unwrap_or_default(), "{file}");
        assert!(reply.ended && reply.calls.iter().all(|call| call.complete), "{file}: {reply:?}");
        assert!(reply.findings.is_empty(), "{file}: {reply:?}");
    }
}

fn streamed(stream: &str, dialect: Dialect) -> Reply {
    let (mut splitter, mut assembler) = (Splitter::new(1 << 20), wire::Assembler::new(dialect, 1 << 20));
    let mut pieces = splitter.push(Bytes::copy_from_slice(stream.as_bytes()));
    pieces.extend(splitter.finish());
    for piece in pieces {
        let Piece::Event(event) = piece else { panic!("an event over the limit") };
        assembler.event(&event);
    }
    assembler.finish()
}
