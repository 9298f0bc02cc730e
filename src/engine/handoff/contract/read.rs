//! Reads what a sender wrote, in whatever shape it was said, into a [`Handoff`].
//!
//! The top decides which member feeds which field; `fields` reads the single
//! fields. Nothing is judged here and nothing believed: a fault is reported
//! with its path, the field that has it is dropped, the rest is kept.

use super::fields::Fields;
use super::names::{self, Field};
use super::tree::{self, Fault, Node};
use super::{Handoff, Line};
use crate::engine::event::{Code, Finding};

/// Arguments larger than this are not read.
pub const MAX_BYTES: usize = 256 * 1024;

const TWICE: &str = "the key comes twice, so the handoff is void";

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct Read {
    /// What the sender said; none where it said nothing, or nothing that can be told apart.
    pub handoff: Option<Handoff>,
    /// What was wrong with it.
    pub findings: Vec<Finding>,
}

/// Reads the arguments of a transfer call: the canonical form and the shapes
/// in the field, at the top, in one property (`handoff`), or as JSON inside a
/// string. Nothing said (`""`, `{}`, only the tool's own parameters) is no
/// handoff and no fault.
pub fn read(arguments: &str) -> Read {
    let mut read = Read::default();
    if arguments.len() > MAX_BYTES {
        let what = format!("{} bytes of arguments, at most {MAX_BYTES} are read", arguments.len());
        read.findings.push(Finding::new(Code::LimitReached, "arguments", what));
        return read;
    }
    if arguments.trim().is_empty() {
        return read;
    }
    let members = match open(arguments) {
        Ok(Node::Object(members)) => members,
        Ok(Node::Null) => return read,
        Ok(node) => {
            read.findings.push(unreadable(&format!("expected an object, got {}", node.kind())));
            return read;
        }
        Err(fault) => {
            read.findings.push(finding(&fault));
            return read;
        }
    };
    let mut reader = Reader { fields: Fields::default(), void: false };
    let handoff = reader.top(members);
    read.findings = reader.fields.into_findings();
    read.handoff = handoff.filter(|_| !reader.void);
    read
}

/// Text as a tree; a string that holds a tree (arguments encoded twice) is opened, up to twice.
fn open(text: &str) -> Result<Node, Fault> {
    let mut node = tree::parse(text)?;
    for _ in 0..2 {
        let Node::Text(inner) = &node else { break };
        if inner.trim().is_empty() {
            return Ok(Node::Null);
        }
        node = tree::parse(inner)?;
    }
    Ok(node)
}

fn finding(fault: &Fault) -> Finding {
    match fault {
        Fault::NotJson => unreadable("not JSON"),
        Fault::Duplicate(path) => Finding::new(Code::DuplicateKey, path, TWICE),
    }
}

fn unreadable(what: &str) -> Finding {
    Finding::new(Code::ArgumentsUnreadable, "arguments", what)
}

struct Reader {
    fields: Fields,
    /// Whether a nested text had a key twice.
    void: bool,
}

impl Reader {
    /// The arguments themselves. What the tool's own parameters say comes
    /// first; a nested contract fills the fields that they leave open.
    fn top(&mut self, members: Vec<(String, Node)>) -> Option<Handoff> {
        let mut own = Vec::new();
        let mut nested = None;
        for (name, node) in members {
            match self.nested(&name, node) {
                Nested::Contract(members) => nested = nested.or(Some((name, members))),
                Nested::Not(node) => own.push((name, node)),
            }
        }
        let mut handoff = self.contract("", own);
        if let Some((name, members)) = nested {
            let below = self.contract(&format!("{}.", tree::join("", &name)), members).unwrap_or_default();
            handoff = Some(filled(handoff.unwrap_or_default(), below));
        }
        handoff
    }

    /// Whether a member is a contract in itself: an object (or JSON text of
    /// one) under a name that says so, or under another with a contract in it.
    fn nested(&mut self, name: &str, node: Node) -> Nested {
        let said = matches!(names::snake(name).as_str(), "handoff" | "handoff_contract" | "contract");
        if !said
            && names::field(name).is_some_and(|(_, field)| !matches!(field, Field::Context | Field::Prose))
        {
            return Nested::Not(node);
        }
        let opened = match &node {
            Node::Text(text) if text.trim_start().starts_with('{') => match tree::parse(text) {
                Ok(tree) => Some(tree),
                Err(Fault::Duplicate(path)) if said => {
                    self.void = true;
                    self.fields.report(Code::DuplicateKey, &format!("{name}.{path}"), TWICE);
                    return Nested::Not(Node::Null);
                }
                Err(_) => None,
            },
            _ => None,
        };
        match opened.unwrap_or(node) {
            Node::Object(members) if said || names::bears_contract(marks(&members)) => {
                Nested::Contract(members)
            }
            node if said => self.not_an_object(name, node),
            node => Nested::Not(node),
        }
    }

    /// A contract was asked for and prose came: its words are kept as the context.
    fn not_an_object(&mut self, name: &str, node: Node) -> Nested {
        match node {
            Node::Null => {}
            Node::Text(text) if text.trim().is_empty() => {}
            Node::Text(text) => {
                self.fields.report(Code::SchemaFault, name, "expected object, got string");
                return Nested::Contract(vec![("message".to_owned(), Node::Text(text))]);
            }
            node => {
                self.fields.report(Code::SchemaFault, name, &format!("expected object, got {}", node.kind()));
            }
        }
        Nested::Not(Node::Null)
    }

    /// One object of contract fields; none where it has not one of them.
    fn contract(&mut self, prefix: &str, members: Vec<(String, Node)>) -> Option<Handoff> {
        let mut known: Vec<_> = members
            .into_iter()
            .filter_map(|(name, node)| names::field(&name).map(|(rank, field)| (rank, field, name, node)))
            .collect();
        // A stable sort: the preferred name of a field first, else the sender's order.
        known.sort_by_key(|(rank, ..)| *rank);
        let mut handoff = Handoff::default();
        let mut said = false;
        let mut objective = None;
        for (_, field, name, node) in known {
            let path = format!("{prefix}{name}");
            match field {
                // At the top this is the tool's own way to name the receiver.
                Field::Owned if prefix.is_empty() && names::snake(&name) == "to_agent" => {}
                Field::Owned => self.fields.owned(&path),
                Field::Objective => {
                    self.fields.owned(&path);
                    objective = objective.or(self.fields.text(&path, &node));
                    said = true;
                }
                field => {
                    self.field(&mut handoff, field, &path, &node);
                    said = true;
                }
            }
        }
        // Tools in the field ask for an objective and for no task: what the sender wrote there is
        // what it wants done. It never becomes the objective, which is the customer's.
        if handoff.task.is_none() {
            handoff.task = objective;
        }
        said.then_some(handoff)
    }

    fn field(&mut self, handoff: &mut Handoff, field: Field, path: &str, node: &Node) {
        let fields = &mut self.fields;
        match field {
            Field::Task => fill(&mut handoff.task, fields.text(path, node)),
            Field::Reason => fill(&mut handoff.reason, fields.text(path, node)),
            Field::Context => match node {
                // Some tools take named values as context: they are facts, and checked like them.
                Node::Object(_) => add(&mut handoff.established, fields.facts(path, node)),
                node => fill(&mut handoff.context, fields.text(path, node)),
            },
            Field::Prose => {
                let free = [&mut handoff.context, &mut handoff.reason, &mut handoff.task];
                if let Some(slot) = free.into_iter().find(|slot| slot.is_none()) {
                    *slot = fields.text(path, node);
                }
            }
            Field::Established => add(&mut handoff.established, fields.facts(path, node)),
            Field::Constraints => add(&mut handoff.constraints, fields.constraints(path, node)),
            Field::Decisions => add(&mut handoff.decisions, fields.lines(path, node)),
            Field::OpenQuestions => add(&mut handoff.open_questions, fields.lines(path, node)),
            Field::Remaining => add(&mut handoff.remaining, fields.lines(path, node)),
            Field::DoneWhen => add(&mut handoff.done_when, fields.lines(path, node)),
            Field::StopConditions => add(&mut handoff.stop_conditions, fields.lines(path, node)),
            Field::Commitments => add(&mut handoff.commitments, fields.lines(path, node)),
            Field::Tried => add(&mut handoff.tried, fields.lines(path, node)),
            Field::Artifacts => add(&mut handoff.artifacts, fields.artifacts(path, node)),
            Field::ReturnTo => {
                let name = fields.text(path, node).map(|line: Line| line.text);
                fill(&mut handoff.return_to, name);
            }
            Field::ReturnSchema => fill(&mut handoff.return_schema, fields.return_schema(path, node)),
            Field::Objective | Field::Owned => {}
        }
    }
}

/// The names of an object's members, and whether each is a list or a map.
fn marks(members: &[(String, Node)]) -> impl Iterator<Item = (&str, bool)> {
    members.iter().map(|(name, node)| (name.as_str(), matches!(node, Node::List(_) | Node::Object(_))))
}

fn fill<T>(slot: &mut Option<T>, value: Option<T>) {
    if slot.is_none() {
        *slot = value;
    }
}

/// Several names may feed one list, in turn.
fn add<T>(slot: &mut Option<Vec<T>>, values: Option<Vec<T>>) {
    if let Some(values) = values {
        slot.get_or_insert_default().extend(values);
    }
}

/// `first`, and `second` where that is silent.
fn filled(first: Handoff, second: Handoff) -> Handoff {
    Handoff {
        task: first.task.or(second.task),
        reason: first.reason.or(second.reason),
        established: first.established.or(second.established),
        constraints: first.constraints.or(second.constraints),
        decisions: first.decisions.or(second.decisions),
        open_questions: first.open_questions.or(second.open_questions),
        remaining: first.remaining.or(second.remaining),
        done_when: first.done_when.or(second.done_when),
        stop_conditions: first.stop_conditions.or(second.stop_conditions),
        context: first.context.or(second.context),
        commitments: first.commitments.or(second.commitments),
        tried: first.tried.or(second.tried),
        artifacts: first.artifacts.or(second.artifacts),
        return_to: first.return_to.or(second.return_to),
        return_schema: first.return_schema.or(second.return_schema),
    }
}

enum Nested {
    Contract(Vec<(String, Node)>),
    Not(Node),
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "cases read better without the ampersands")]
mod tests {
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
        check(
            r#""[{\"key\":\"fare\",\"value\":\"31.50\"}]""#,
            fact(json!({"key": "fare", "value": "31.50"})),
        );
        check(r#""Fare is 31.50""#, fact(json!({"value": "Fare is 31.50"})));
        check(
            r#"[{"key":null,"value":"Fare is 31.50 [call_19ab]"}]"#,
            fact(json!({"value": "Fare is 31.50", "evidence": "call_19ab"})),
        );
        check(
            r#"["See [1]","Over (see below)"]"#,
            json!({"established": [{"value": "See [1]"}, {"value": "Over (see below)"}]}),
        );
        check(
            r#"[{"key":"stops","value":["A","B"]}]"#,
            fact(json!({"key": "stops", "value": "[\"A\",\"B\"]"})),
        );
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
}
