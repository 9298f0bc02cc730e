#![expect(clippy::needless_pass_by_value, reason = "cases read better without the ampersands")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// What `arguments` say, without what is said of every value: `by: sender`, `binds: false`, nulls.
fn said(arguments: &str) -> (Value, Vec<String>) {
    let read = read(arguments);
    let findings = read.findings.iter().map(|f| format!("{} {}: {}", f.code.name(), f.place, f.what));
    let mut handoff = serde_json::to_value(&read.handoff).unwrap();
    bare(&mut handoff);
    (handoff, findings.collect())
}

fn bare(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, v| !v.is_null() && *v != json!("sender") && *v != json!(false));
            members.values_mut().for_each(bare);
            // A line that says only its text, and a value that is a string.
            if let Some(text) = members.remove("text") {
                if members.is_empty() || members.keys().eq(["quoted"]) {
                    *value = text;
                } else {
                    members.insert("text".to_owned(), text);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(bare),
        _ => {}
    }
}

#[track_caller]
fn check(arguments: &str, expected: Value) {
    let (handoff, findings) = said(arguments);
    assert_eq!(handoff, expected, "{arguments}");
    assert_eq!(findings, [""; 0], "{arguments}");
}

#[track_caller]
fn check_findings(arguments: &str, expected: Value, findings: &[&str]) {
    let (handoff, found) = said(arguments);
    assert_eq!(handoff, expected, "{arguments}");
    assert_eq!(found, findings, "{arguments}");
}

#[test]
fn nothing_said_is_no_handoff_and_no_fault() {
    for nothing in ["", "  \n", "{}", "null", "\"\"", "\"{}\"", r#"{"agent_name":"returns"}"#] {
        check(nothing, Value::Null);
    }
}

#[test]
fn explicitly_empty_is_not_the_same_as_not_asked() {
    check(
        r#"{"task":"","established":[],"remaining":null,"tried":"none","decisions":["N/A"],"done_when":[""]}"#,
        json!({"established": [], "remaining": [], "tried": [], "decisions": [], "done_when": []}),
    );
}

#[test]
fn the_canonical_form() {
    check(
        r#"{"task":"Book the later train.","reason":"Fares are not mine.",
            "established":[{"key":"fare","value":"31.50","of":"trip 88","source":"tool_result","evidence":"call_19ab","confidence":"high"},
                           {"key":"seats","value":2,"of":null,"source":"customer_utterance","evidence":"two of us","confidence":null}],
            "constraints":[{"text":"No night trains.","scope":"run","stated_by":"customer"}],
            "decisions":["Second class."],"open_questions":[],"remaining":["Book it.","Send the ticket."],
            "done_when":["The ticket is out."],"stop_conditions":["The customer has a seat."],
            "context":"The earlier train is full.","commitments":["A call back today."],"tried":["Train 4 is full."],
            "artifacts":[{"name":"timetable","kind":"pdf","ref":"store://t/1","summary":"July"}],
            "return_to":"desk","return_schema":[{"name":"ticket","type":"string"}]}"#,
        json!({
            "task": "Book the later train.", "reason": "Fares are not mine.",
            "established": [
                {"key": "fare", "value": "31.50", "of": "trip 88", "source": "tool_result",
                 "evidence": "call_19ab", "confidence": "high"},
                {"key": "seats", "value": "2", "source": "customer_utterance", "evidence": "two of us"}],
            "constraints": [{"text": "No night trains.", "scope": "run", "stated_by": "customer"}],
            "decisions": ["Second class."], "open_questions": [], "remaining": ["Book it.", "Send the ticket."],
            "done_when": ["The ticket is out."], "stop_conditions": ["The customer has a seat."],
            "context": "The earlier train is full.", "commitments": ["A call back today."],
            "tried": ["Train 4 is full."],
            "artifacts": [{"name": "timetable", "kind": "pdf", "reference": "store://t/1", "summary": "July"}],
            "return_to": "desk", "return_schema": [["ticket", "string"]],
        }),
    );
}

#[test]
fn findings_with_claim_source_and_confidence() {
    check_findings(
        r#"{"task":"Write the report.","findings":[
              {"claim":"Plant B stops in May.","source":"permit register","confidence":"medium"},
              {"claim":"Output fell 4 %.","source":"query_output, call_5521aa","confidence":"certain"}],
            "open_questions":["Who signs?"],"constraints":["At most one page."],
            "artifacts":{"permit":"doc://permits/12","pages":3,"scan":{"kind":"pdf","ref":"doc://scan"}},
            "from_agent":"analyst","to_agent":"author"}"#,
        json!({
            "task": "Write the report.",
            "established": [
                {"value": "Plant B stops in May.", "source_text": "permit register", "confidence": "medium"},
                {"value": "Output fell 4 %.", "evidence": "call_5521aa", "source_text": "query_output, call_5521aa"}],
            "open_questions": ["Who signs?"],
            "constraints": [{"text": "At most one page.", "scope": "run"}],
            "artifacts": [{"name": "permit", "reference": "doc://permits/12"}, {"name": "pages", "reference": "3"},
                          {"name": "scan", "kind": "pdf", "reference": "doc://scan"}],
        }),
        &[
            "schema_fault findings[1].confidence: expected high, medium or low, got another word",
            "owned_field from_agent: Seam owns this value; what the sender wrote is ignored",
        ],
    );
}

#[test]
fn facts_with_text_and_a_verified_that_changes_nothing() {
    check_findings(
        r#"{"trace_id":"t-1","goal_verbatim":"List the open invoices","task":"Sort them by age.",
            "done_when":"All are listed","facts":[{"text":"Nine are open","verified":true},
            {"text":"One is disputed","verified":false,"source":"mail"}],"tried":["Search by name"],
            "artifacts":[{"kind":"csv","ref":"store://inv.csv"}],"return_schema":"AgeList"}"#,
        json!({
            "task": "Sort them by age.", "done_when": ["All are listed"],
            "established": [{"value": "Nine are open"}, {"value": "One is disputed", "source_text": "mail"}],
            "tried": ["Search by name"], "artifacts": [{"kind": "csv", "reference": "store://inv.csv"}],
            "return_schema": "AgeList",
        }),
        &[
            "owned_field goal_verbatim: Seam owns this value; what the sender wrote is ignored",
            "owned_field trace_id: Seam owns this value; what the sender wrote is ignored",
        ],
    );
}

#[test]
fn intent_context_and_named_artifacts() {
    check(
        r#"{"to_agent":"ops","intent":"Roll build 77 back.","context":"It fails on start.",
            "artifacts":{"build":"77"},"return_to":null}"#,
        json!({"task": "Roll build 77 back.", "context": "It fails on start.",
               "artifacts": [{"name": "build", "reference": "77"}]}),
    );
}

#[test]
fn an_objective_without_a_task_is_what_the_sender_wants_done() {
    check_findings(
        r#"{"objective":"Refund trip 88","established":["Trip 88 costs 31.50 [call_19ab]","The train was late (call_20cd)."],
            "remaining":["Pay it back"],"owner":"returns","budget":{"hops_left":3}}"#,
        json!({
            "task": "Refund trip 88", "remaining": ["Pay it back"],
            "established": [{"value": "Trip 88 costs 31.50", "evidence": "call_19ab"},
                            {"value": "The train was late", "evidence": "call_20cd"}],
        }),
        &[
            "owned_field objective: Seam owns this value; what the sender wrote is ignored",
            "owned_field owner: Seam owns this value; what the sender wrote is ignored",
            "owned_field budget: Seam owns this value; what the sender wrote is ignored",
        ],
    );
}

#[test]
fn facts_in_the_forms_of_real_clients() {
    let fact = |fact: Value| json!({"established": [fact]});
    let check = |facts: &str, expected: Value| check(&format!(r#"{{"established":{facts}}}"#), expected);
    check(
        r#"[{"fact":"Late by 2 h","evidence":["call_1a","call_2b"]}]"#,
        fact(json!({"value": "Late by 2 h", "evidence": "call_1a call_2b"})),
    );
    check(r#"[{"fact":"fare","value":31.50}]"#, fact(json!({"key": "fare", "value": "31.50"})));
    check(
        r#"{"fare":31.50,"late":true}"#,
        json!({"established": [{"key": "fare", "value": "31.50"}, {"key": "late", "value": "true"}]}),
    );
    check(r#"[{"fare":"31.50"}]"#, fact(json!({"key": "fare", "value": "31.50"})));
    check(r#""[{\"key\":\"fare\",\"value\":\"31.50\"}]""#, fact(json!({"key": "fare", "value": "31.50"})));
    check(r#""Fare is 31.50""#, fact(json!({"value": "Fare is 31.50"})));
    check(
        r#"[{"key":null,"value":"Fare is 31.50 [call_19ab]"}]"#,
        fact(json!({"value": "Fare is 31.50", "evidence": "call_19ab"})),
    );
    check(
        r#"["See [1]","Over (see below)"]"#,
        json!({"established": [{"value": "See [1]"}, {"value": "Over (see below)"}]}),
    );
    check(r#"[{"key":"stops","value":["A","B"]}]"#, fact(json!({"key": "stops", "value": "[\"A\",\"B\"]"})));
}

#[test]
fn a_contract_in_a_property_of_its_own() {
    let expected = json!({"task": "Book it.", "remaining": []});
    check(r#"{"handoff":{"task":"Book it.","remaining":[]}}"#, expected.clone());
    check(r#"{"handoff":"{\"task\":\"Book it.\",\"remaining\":[]}"}"#, expected.clone());
    check(r#""{\"handoff\":{\"task\":\"Book it.\",\"remaining\":[]}}""#, expected.clone());
    check(
        r#"{"input":{"task":"Book it.","remaining":[],"done_when":[]}}"#,
        json!({"task": "Book it.", "remaining": [], "done_when": []}),
    );
    // What the tool's own parameters say comes first.
    check(
        r#"{"reason":"too hard","to_agent":"x","handoff":{"task":"Book it.","reason":"other","remaining":[]}}"#,
        json!({"task": "Book it.", "reason": "too hard", "remaining": []}),
    );
    check_findings(
        r#"{"handoff":"please book it"}"#,
        json!({"context": "please book it"}),
        &["schema_fault handoff: expected object, got string"],
    );
}

#[test]
fn a_reason_is_read_and_is_no_contract() {
    let check = |arguments: &str, contract: bool| {
        let handoff = read(arguments).handoff.unwrap_or_default();
        assert_eq!(handoff.is_contract(), contract, "{arguments}");
    };
    check("", false);
    check(r#"{"reason":"refund","message":"hello"}"#, false);
    check(r#"{"task":"Book it.","context":"late"}"#, false);
    check(r#"{"established":[]}"#, true);
    check(r#"{"intent":"Roll back.","context":"late","artifacts":{}}"#, true);
}

#[test]
fn prose_beside_a_contract_is_not_lost() {
    check(r#"{"agent_name":"x","message":"Book it."}"#, json!({"context": "Book it."}));
    check(
        r#"{"message":"Book it.","context":{"trip":"88"}}"#,
        json!({"context": "Book it.", "established": [{"key": "trip", "value": "88"}]}),
    );
    check(r#"{"message":"Book it.","context":"late"}"#, json!({"context": "late", "reason": "Book it."}));
}

#[test]
fn an_echoed_schema_is_reported_with_every_path_and_nothing_of_it_is_kept() {
    check_findings(
        r#"{"task":{"type":"string","description":"what to do"},"established":{"type":"array","items":{}},
            "remaining":[{"type":"string","description":"a step"},"Pay."],"decisions":7,"reason":["a"],
            "constraints":[{"text":"x","scope":"world"}],"artifacts":[{"name":"n"}],
            "facts":[{"key":"k"},{"key":"k","value":{"type":"string"}}]}"#,
        json!({"established": [], "remaining": ["Pay."], "constraints": [{"text": "x", "scope": "run"}], "artifacts": []}),
        &[
            "schema_fault task: expected string, got object",
            "schema_fault reason: expected string, got list",
            "schema_fault established: expected a list of facts, got object",
            "schema_fault facts[0].value: expected a value, got none",
            "schema_fault facts[1].value: expected a value, got object",
            "schema_fault constraints[0].scope: expected run or task, got another value",
            "schema_fault decisions: expected list, got number",
            "schema_fault remaining[0]: expected string, got object",
            "schema_fault artifacts[0].ref: expected a reference, got none",
        ],
    );
}

#[test]
fn a_key_that_comes_twice_voids_the_handoff() {
    let check = |arguments: &str, place: &str| {
        let read = read(arguments);
        assert!(read.handoff.is_none(), "{arguments}");
        assert_eq!(read.findings.len(), 1, "{arguments}");
        assert_eq!((read.findings[0].code, read.findings[0].place.as_str()), (Code::DuplicateKey, place));
    };
    check(r#"{"task":"a","task":"b"}"#, "task");
    check(r#"{"task":"a","established":[{"key":"a","value":"1","value":"2"}]}"#, "established[0].value");
    check(r#"{"handoff":"{\"task\":\"a\",\"task\":\"b\"}"}"#, "handoff.task");
}

#[test]
fn what_is_no_object_is_unreadable() {
    let check = |arguments: &str, what: &str| {
        let (handoff, findings) = said(arguments);
        assert_eq!(
            (handoff, findings),
            (Value::Null, vec![format!("arguments_unreadable arguments: {what}")])
        );
    };
    check("{\"task\":\"a", "not JSON");
    check("Transfer now", "not JSON");
    check("[1]", "expected an object, got list");
    check("7", "expected an object, got number");
}

#[test]
fn limits_are_said_never_silent() {
    let long = "x".repeat(5_000);
    let many: Vec<_> = (0..600).map(|i| format!("fact {i}")).collect();
    let arguments = json!({"task": long, "established": many, "remaining": many}).to_string();
    let read = read(&arguments);
    let handoff = read.handoff.unwrap();
    assert_eq!(handoff.task.unwrap().text.len(), MAX_TEXT_KEPT);
    assert_eq!(handoff.established.unwrap().len(), 500);
    assert_eq!(handoff.remaining.unwrap().len(), 100);
    let places: Vec<_> = read.findings.iter().map(|f| (f.code, f.place.as_str())).collect();
    let limit = Code::LimitReached;
    assert_eq!(places, [(limit, "task"), (limit, "established"), (limit, "remaining")]);
    let huge = json!({"task": "x".repeat(300_000)}).to_string();
    assert_eq!(super::read(&huge).findings[0].code, limit);
}

const MAX_TEXT_KEPT: usize = crate::engine::handoff::contract::MAX_TEXT;

#[test]
fn a_lone_surrogate_costs_only_its_field() {
    check_findings(
        r#"{"task":"\ud800","remaining":["Pay."]}"#,
        json!({"remaining": ["Pay."]}),
        &["schema_fault task: expected string, got a string that is not Unicode"],
    );
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let name = prop_oneof![
        prop::sample::select(vec![
            "task",
            "established",
            "facts",
            "key",
            "value",
            "handoff",
            "type",
            "ref",
            "text"
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(name.clone(), inner, 0..6).prop_map(|members| json!(members)),
        ]
    })
}

proptest! {
    #[test]
    fn any_arguments_are_read_without_a_panic(value in json_value(), cut in any::<usize>()) {
        let text = value.to_string();
        read(&text);
        let mut cut = cut % (text.len() + 1);
        while !text.is_char_boundary(cut) { cut -= 1; }
        read(&text[..cut]);
    }
}
