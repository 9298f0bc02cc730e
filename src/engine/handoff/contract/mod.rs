//! The contract: what a sender may say, read from whatever shape it was said in.

mod claims;
mod fields;
mod judge;
mod names;
mod read;
mod schema;
mod tree;

use serde::{Deserialize, Serialize};

pub use claims::MAX_FACTS;
pub use fields::{MAX_ENTRIES, MAX_TEXT};
pub use judge::{MAX_REFERENCE, judge};
pub use names::declares_contract;
pub use read::{MAX_BYTES, Read, read};
pub use schema::{Fields, schema};

use super::verify::Outcome;

/// Who put a line into the handoff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The sender wrote it.
    #[default]
    Sender,
    /// Rules derived it.
    Derived,
    /// An earlier handoff of the run had it.
    Carried,
    /// The operator's policy has it.
    Policy,
}

/// One line of text in a list of the handoff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// What it says, as written.
    pub text: String,
    /// Who put it there.
    #[serde(default)]
    pub by: By,
}

/// A list of lines. `None`: nobody was asked. `Some` and empty: *none, says the sender*.
pub type Lines = Option<Vec<Line>>;

/// A fact's value, as its writer spelled it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// A string's decoded text, or any other JSON value's own text.
    pub text: String,
    /// Whether it was a JSON string.
    pub quoted: bool,
}

/// Where the sender says that a fact comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A tool's result.
    ToolResult,
    /// The customer's words.
    CustomerUtterance,
    /// The sender's own conclusion.
    AgentInference,
}

/// How sure the sender says it is. Never upgrades an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are the contract's own")]
pub enum Confidence {
    High,
    Medium,
    Low,
}

/// One fact as the sender claims it. Without a key it is a *statement*.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// What it is a value of; none: a statement.
    pub key: Option<String>,
    /// The value, or the statement.
    pub value: Value,
    /// The record it belongs to, e.g. `order 41182`.
    pub of: Option<String>,
    /// Where it is said to come from.
    pub source: Option<Source>,
    /// The call id or quote it cites; several call ids are separated by one space.
    pub evidence: Option<String>,
    /// Where it is said to come from, in the sender's own words, where they are none of [`Source`].
    /// A claim like the others: it changes no outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_text: Option<String>,
    /// How sure the sender says it is.
    pub confidence: Option<Confidence>,
    /// Who put it there.
    #[serde(default)]
    pub by: By,
}

/// How far a constraint reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The whole run.
    Run,
    /// This task only.
    #[default]
    Task,
}

/// Who laid a constraint down, as claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatedBy {
    /// The customer.
    Customer,
    /// The operator's policy.
    Policy,
}

/// A rule for what the receiver does and hands on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraint {
    /// The rule, as written.
    pub text: String,
    /// How far it reaches.
    #[serde(default)]
    pub scope: Scope,
    /// Who is said to have laid it down.
    pub stated_by: Option<StatedBy>,
    /// Whether a customer is quoted with it or policy has it: only then it binds.
    #[serde(default)]
    pub binds: bool,
    /// Who put it there.
    #[serde(default)]
    pub by: By,
}

/// A thing by reference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// What the sender calls it.
    pub name: Option<String>,
    /// What kind of thing it is.
    pub kind: Option<String>,
    /// The reference, one line of at most 512 bytes.
    pub reference: String,
    /// A short summary.
    pub summary: Option<String>,
    /// What the check of the reference found; none: it was not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// The shape in which a result is wanted back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ReturnSchema {
    /// A schema's name.
    Name(String),
    /// Rows of name and type.
    Rows(Vec<(String, String)>),
}

/// One filled contract: the part that the sender may write. What Seam owns
/// (objective, custody, actions, budget) stands in the record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are those of the contract, explained in docs/contract.md")]
pub struct Handoff {
    pub task: Option<Line>,
    pub reason: Option<Line>,
    /// The claims, before they are checked. `None`: nobody was asked.
    pub established: Option<Vec<Claim>>,
    pub constraints: Option<Vec<Constraint>>,
    pub decisions: Lines,
    pub open_questions: Lines,
    pub remaining: Lines,
    pub done_when: Lines,
    pub stop_conditions: Lines,
    pub context: Option<Line>,
    pub commitments: Lines,
    pub tried: Lines,
    pub artifacts: Option<Vec<Artifact>>,
    pub return_to: Option<String>,
    pub return_schema: Option<ReturnSchema>,
}

impl Handoff {
    /// Whether it speaks as a contract: of facts, or of three fields. A plain
    /// `reason` or `message` of a tool's own is read into a handoff as well,
    /// and is none: there is nothing to judge in it.
    pub fn is_contract(&self) -> bool {
        let fields = [
            self.task.is_some(),
            self.reason.is_some(),
            self.constraints.is_some(),
            self.decisions.is_some(),
            self.open_questions.is_some(),
            self.remaining.is_some(),
            self.done_when.is_some(),
            self.stop_conditions.is_some(),
            self.context.is_some(),
            self.commitments.is_some(),
            self.tried.is_some(),
            self.artifacts.is_some(),
            self.return_to.is_some(),
            self.return_schema.is_some(),
        ];
        self.established.is_some() || fields.into_iter().filter(|said| *said).count() >= 3
    }
}

/// Whether two lines say the same: spaces, case and the mark at the end aside.
pub fn same(a: &str, b: &str) -> bool {
    plain(a) == plain(b)
}

/// A line in lower case with single spaces, without the mark at its end.
pub fn plain(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ").trim_end_matches(['.', '!', ';', ',']).to_owned()
}
