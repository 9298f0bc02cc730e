//! The names by which a field of the contract goes in the field, and whether a
//! tool's own parameters ask for one.

use super::tree::{self, Node};

/// A field of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Task,
    Reason,
    Established,
    Constraints,
    Decisions,
    OpenQuestions,
    Remaining,
    DoneWhen,
    StopConditions,
    Context,
    Commitments,
    Tried,
    Artifacts,
    ReturnTo,
    ReturnSchema,
    /// Seam's own, in the customer's words; the sender's version stands in for a missing task.
    Objective,
    /// Prose beside the contract (`message`, `summary`): the context, or the reason where that is taken.
    Prose,
    /// Seam's own, whatever the sender writes.
    Owned,
}

/// How telling a name is: whether a tool with such a parameter may be asking for a contract.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// A list of facts: asks for a contract by itself.
    Facts,
    /// One of at least three.
    Contract,
    /// Also common elsewhere: never counts.
    Common,
}

/// Every name that is read, in the order in which several for one field are preferred.
const NAMES: &[(&str, Field, Mark)] = &[
    ("task", Field::Task, Mark::Contract),
    ("intent", Field::Task, Mark::Contract),
    ("instructions", Field::Task, Mark::Common),
    ("reason", Field::Reason, Mark::Contract),
    ("reason_for_the_move", Field::Reason, Mark::Contract),
    ("reason_for_move", Field::Reason, Mark::Contract),
    ("reason_for_transfer", Field::Reason, Mark::Contract),
    ("transfer_reason", Field::Reason, Mark::Contract),
    ("handoff_reason", Field::Reason, Mark::Contract),
    ("established", Field::Established, Mark::Facts),
    ("facts", Field::Established, Mark::Facts),
    ("findings", Field::Established, Mark::Facts),
    ("established_facts", Field::Established, Mark::Facts),
    ("relevant_facts", Field::Established, Mark::Facts),
    ("constraints", Field::Constraints, Mark::Contract),
    ("limits", Field::Constraints, Mark::Common),
    ("decisions", Field::Decisions, Mark::Contract),
    ("open_questions", Field::OpenQuestions, Mark::Contract),
    ("remaining", Field::Remaining, Mark::Contract),
    ("remaining_steps", Field::Remaining, Mark::Contract),
    ("next_steps", Field::Remaining, Mark::Contract),
    ("done_when", Field::DoneWhen, Mark::Contract),
    ("definition_of_done", Field::DoneWhen, Mark::Contract),
    ("stop_conditions", Field::StopConditions, Mark::Contract),
    ("context", Field::Context, Mark::Contract),
    ("commitments", Field::Commitments, Mark::Contract),
    ("commitments_made", Field::Commitments, Mark::Contract),
    ("tried", Field::Tried, Mark::Contract),
    ("what_was_tried", Field::Tried, Mark::Contract),
    ("tried_and_failed", Field::Tried, Mark::Contract),
    ("artifacts", Field::Artifacts, Mark::Contract),
    ("return_to", Field::ReturnTo, Mark::Contract),
    ("return_schema", Field::ReturnSchema, Mark::Contract),
    ("objective", Field::Objective, Mark::Contract),
    ("goal_verbatim", Field::Objective, Mark::Contract),
    ("goal", Field::Objective, Mark::Common),
    ("message", Field::Prose, Mark::Common),
    ("summary", Field::Prose, Mark::Common),
    ("notes", Field::Prose, Mark::Common),
    ("latest_request", Field::Owned, Mark::Common),
    ("from_agent", Field::Owned, Mark::Common),
    ("to_agent", Field::Owned, Mark::Common),
    ("owner", Field::Owned, Mark::Common),
    ("holder", Field::Owned, Mark::Common),
    ("run", Field::Owned, Mark::Common),
    ("run_id", Field::Owned, Mark::Common),
    ("trace_id", Field::Owned, Mark::Common),
    ("hop", Field::Owned, Mark::Common),
    ("hops", Field::Owned, Mark::Common),
    ("hop_count", Field::Owned, Mark::Common),
    ("visited", Field::Owned, Mark::Common),
    ("actions_taken", Field::Owned, Mark::Common),
    ("actions_already_taken", Field::Owned, Mark::Common),
    ("budget", Field::Owned, Mark::Common),
    ("as_of", Field::Owned, Mark::Common),
    ("as_of_s", Field::Owned, Mark::Common),
];

/// The field that goes by `name` in any style (`openQuestions`, `Open questions`), and how
/// well: lower is preferred.
pub(super) fn field(name: &str) -> Option<(usize, Field)> {
    let name = snake(name);
    let place = NAMES.iter().position(|(known, ..)| *known == name)?;
    Some((place, NAMES[place].1))
}

/// A name in lower snake case, whatever style it came in. Bounded.
pub(super) fn snake(name: &str) -> String {
    let mut snake = String::new();
    let mut before = '_';
    for c in name.trim().chars().take(64) {
        if c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            snake.push('_');
        }
        snake.push(if matches!(c, '-' | ' ' | '.') { '_' } else { c.to_ascii_lowercase() });
        before = c;
    }
    snake
}

/// Whether an object bears a contract: a property of facts, or three fields of it.
pub(super) fn bears_contract<'a>(members: impl IntoIterator<Item = (&'a str, bool)>) -> bool {
    let mut fields = Vec::new();
    for (name, may_be_list) in members {
        let name = snake(name);
        let Some((_, field, mark)) = NAMES.iter().find(|(known, ..)| *known == name) else { continue };
        match mark {
            Mark::Facts if may_be_list => return true,
            Mark::Facts | Mark::Common => {}
            Mark::Contract if fields.contains(field) => {}
            Mark::Contract => fields.push(*field),
        }
    }
    fields.len() >= 3
}

/// Schemas looked at for one tool; what lies behind more is not followed.
const MAX_STEPS: usize = 1_000;

/// Whether a tool's parameters (a JSON schema) ask for a contract by
/// themselves: a property of facts (`established`, `facts`, `findings`), or at
/// least three of the contract's names, at the top or in one property below it.
/// A `reason` alone never does. References into the schema itself are
/// followed, a bounded number of them. A schema that cannot be read asks for nothing.
pub fn declares_contract(parameters_schema: &str) -> bool {
    let Ok(root) = tree::parse(parameters_schema) else { return false };
    let mut walk = Walk { root: &root, steps: MAX_STEPS };
    let top = walk.properties(&root);
    walk.declares(&top)
        || top.iter().any(|(_, below)| {
            let below = walk.properties(below);
            walk.declares(&below)
        })
}

struct Walk<'t> {
    root: &'t Node,
    steps: usize,
}

impl<'t> Walk<'t> {
    fn declares(&mut self, properties: &[(&'t str, &'t Node)]) -> bool {
        let members: Vec<_> =
            properties.iter().map(|(name, schema)| (*name, self.may_be_list(schema))).collect();
        bears_contract(members)
    }

    /// The properties of a schema, through references and alternatives.
    fn properties(&mut self, schema: &'t Node) -> Vec<(&'t str, &'t Node)> {
        let mut found = Vec::new();
        for schema in self.alternatives(schema) {
            if let Some(Node::Object(properties)) = member(schema, "properties") {
                found.extend(properties.iter().map(|(name, schema)| (name.as_str(), schema)));
            }
        }
        found
    }

    /// Whether a schema admits a list or an object: what says nothing of its type may be anything.
    fn may_be_list(&mut self, schema: &'t Node) -> bool {
        self.alternatives(schema).iter().any(|schema| match member(schema, "type") {
            Some(Node::Text(kind)) => matches!(kind.as_str(), "array" | "object"),
            Some(Node::List(kinds)) => kinds.iter().any(|kind| *kind == Node::Text("array".to_owned())),
            _ => member(schema, "anyOf").is_none() && member(schema, "$ref").is_none(),
        })
    }

    /// The schema itself and all that it refers to or is combined of.
    fn alternatives(&mut self, schema: &'t Node) -> Vec<&'t Node> {
        let mut found = vec![schema];
        let mut next = 0;
        while let Some(schema) = found.get(next).copied() {
            next += 1;
            if self.steps == 0 {
                break;
            }
            self.steps -= 1;
            if let Some(Node::Text(reference)) = member(schema, "$ref") {
                found.extend(self.resolve(reference));
            }
            for combined in ["anyOf", "oneOf", "allOf"] {
                if let Some(Node::List(schemas)) = member(schema, combined) {
                    found.extend(schemas);
                }
            }
        }
        found
    }

    /// What a reference within the same document (`#/$defs/Fact`) points at.
    fn resolve(&self, reference: &str) -> Option<&'t Node> {
        let path = reference.strip_prefix('#')?;
        path.split('/')
            .skip(1)
            .take(8)
            .try_fold(self.root, |node, key| member(node, &key.replace("~1", "/").replace("~0", "~")))
    }
}

/// A member of an object, by its key.
pub(super) fn member<'t>(node: &'t Node, key: &str) -> Option<&'t Node> {
    let Node::Object(members) = node else { return None };
    members.iter().find(|(name, _)| name == key).map(|(_, node)| node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_asks_for_a_contract_by_facts_or_by_three_names() {
        let check = |schema: &str, expected: bool| {
            assert_eq!(declares_contract(schema), expected, "{schema}");
        };
        check("", false);
        check("{}", false);
        check(r#"{"type":"object","properties":{}}"#, false);
        check(r#"{"properties":{"reason":{"type":"string"}}}"#, false);
        check(
            r#"{"properties":{"reason":{"type":"string"},"message":{"type":"string"},"summary":{}}}"#,
            false,
        );
        check(r#"{"properties":{"iban":{"type":"string"},"amount":{"type":"number"}}}"#, false);
        check(
            r#"{"properties":{"task":{"type":"string"},"context":{"type":"string"},"coworker":{}}}"#,
            false,
        );
        check(r#"{"properties":{"task":{"type":"string"},"intent":{"type":"string"},"context":{}}}"#, false);
        check(r#"{"properties":{"findings":{"type":"string"}}}"#, false);
        check(r#"{"properties":{"facts":{"type":"array","items":{"type":"string"}}}}"#, true);
        check(r#"{"properties":{"facts":{"anyOf":[{"type":"array"},{"type":"null"}]}}}"#, true);
        check(r#"{"properties":{"intent":{},"context":{},"artifacts":{},"return_to":{}}}"#, true);
        check(r#"{"properties":{"doneWhen":{},"openQuestions":{},"task":{}}}"#, true);
        check(
            r##"{"properties":{"note":{"$ref":"#/$defs/N"}},"$defs":{"N":{"properties":{"established":{"type":"array"}}}}}"##,
            true,
        );
        check(
            r##"{"$ref":"#/definitions/N","definitions":{"N":{"properties":{"facts":{"type":"array"}}}}}"##,
            true,
        );
    }

    #[test]
    fn references_that_run_in_circles_end() {
        let check = |schema: &str| assert!(!declares_contract(schema), "{schema}");
        check(r##"{"$ref":"#"}"##);
        check(r##"{"properties":{"a":{"$ref":"#/properties/a"}}}"##);
        check(r##"{"anyOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"}]}"##);
        check(r##"{"properties":{"a":{"$ref":"#/nowhere"},"b":{"$ref":"elsewhere.json"}}}"##);
    }
}
