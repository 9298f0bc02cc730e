//! Judges the transfers of a reply before the client sees them: what is wrong
//! with each, and whether they go on, go back to the sender, go to the
//! terminal tool, or are refused.

use std::fmt::Write as _;

use serde_json::Value;

use super::event::{Code, Finding};
use super::handoff::contract::{Handoff, Line};
use super::handoff::detect::is_message;
use super::policy::{Enforce, Policy};
use super::read::Reading;
use super::view::Tool;

/// Bytes of a correction that goes back to a sender.
const ANSWER_CAP: usize = 6_000;

/// What an answer to a sender begins with whose transfer did not go on.
pub const REFUSES: &str = "Not transferred: ";

/// What can be enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// The handoff's shape: empty, filler, not the contract's.
    Contract,
    /// What it claims.
    Facts,
    /// Where it goes.
    Hops,
}

impl Check {
    /// The name in settings, codes and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Check::Contract => "contract",
            Check::Facts => "facts",
            Check::Hops => "hops",
        }
    }

    /// What a kind of finding counts for; none where it never keeps a transfer back.
    pub fn of(code: Code) -> Option<Check> {
        match code {
            Code::Empty
            | Code::Filler
            | Code::TaskNotOneSentence
            | Code::ContextTooLong
            | Code::ArtifactByValue
            | Code::SchemaFault
            | Code::DuplicateKey
            | Code::ArgumentsUnreadable => Some(Check::Contract),
            Code::FactNotConfirmed => Some(Check::Facts),
            Code::SelfTransfer
            | Code::UnknownDestination
            | Code::TwoTransfers
            | Code::HopLimit
            | Code::Visited
            | Code::AfterTerminal => Some(Check::Hops),
            _ => None,
        }
    }
}

impl Enforce {
    /// Whether a check keeps transfers back.
    pub fn has(self, check: Check) -> bool {
        match check {
            Check::Contract => self.contract,
            Check::Facts => self.facts,
            Check::Hops => self.hops,
        }
    }

    /// The findings that keep a transfer back. `asked`: somebody asked its sender for a contract, so that
    /// there is something to hold it to.
    pub fn faults(self, findings: &[Finding], asked: bool) -> Vec<&Finding> {
        let keeps = |finding: &&Finding| {
            Check::of(finding.code)
                .is_some_and(|check| self.has(check) && (asked || check != Check::Contract))
        };
        findings.iter().filter(keeps).collect()
    }
}

/// What becomes of a reply's transfers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// They go on.
    Release,
    /// They go back to the sender: an answer for each of the reply's calls.
    Correct(Vec<String>),
    /// One of the reply's calls goes on as a call of the terminal tool, no other transfer does.
    Redirect {
        /// Its place among the reply's calls.
        call: usize,
        /// The terminal tool.
        name: String,
        /// Its arguments.
        arguments: String,
    },
    /// The reply is refused.
    Refuse(Refused),
}

impl Ruling {
    /// The name in logs.
    pub fn name(&self) -> &'static str {
        match self {
            Ruling::Release => "release",
            Ruling::Correct(_) => "correct",
            Ruling::Redirect { .. } => "redirect",
            Ruling::Refuse(_) => "refuse",
        }
    }
}

/// Why a transfer was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The first check that failed, in the order in which they are listed.
    pub check: Check,
    /// What the client is told: one sentence, no conversation content.
    pub message: String,
}

impl Refused {
    /// The refusal of a transfer to `to` with these faults; none without any.
    pub fn of(to: &str, faults: &[Finding]) -> Option<Refused> {
        let check = faults.iter().filter_map(|fault| Check::of(fault.code)).min()?;
        let mut codes: Vec<&str> = faults.iter().map(|fault| fault.code.name()).collect();
        codes.dedup();
        let to: String = to.chars().filter(|c| !c.is_control()).take(80).collect();
        let message = format!("the transfer to {to} was refused: {}", codes.join(", "));
        Some(Refused { check, message })
    }
}

/// The answer that a sender gets instead of a transfer: all faults at once, and what to do.
pub fn answer(tool: &str, faults: &[&Finding]) -> String {
    let mut out = format!(
        "{REFUSES}{} {} in this call.",
        faults.len(),
        if faults.len() == 1 { "fault" } else { "faults" }
    );
    for (n, fault) in faults.iter().enumerate() {
        let line = format!("\n{}. {}: {}", n + 1, fault.place, fault.what);
        if out.len() + line.len() > ANSWER_CAP {
            out.push_str("\n(more of the same)");
            break;
        }
        out.push_str(&line);
    }
    out.push_str("\nThe other agent and the customer have seen nothing of it. ");
    if faults.iter().any(|fault| fault.code == Code::TwoTransfers) {
        out.push_str("Call one transfer tool only. ");
    } else {
        let _ = write!(out, "Call {tool} again with every fault put right, the rest as it was. ");
    }
    if faults.iter().any(|fault| Check::of(fault.code) == Some(Check::Facts)) {
        out.push_str(
            "A fact is what a tool returned (evidence: that call's id) or the customer said (evidence: the \
             words). What you conclude is agent_inference; what you do not know is an open question.",
        );
    }
    out.trim_end().to_owned()
}

/// The terminal tool that a transfer can be sent to instead, and its arguments, filled from the handoff.
pub fn terminal(reading: &Reading<'_>, handoff: &Handoff, policy: &Policy) -> Option<(String, String)> {
    let offered = reading.offers.iter().map(|offer| &reading.view.tools[offer.tool]);
    let mut terminal = offered.filter(|tool| policy.naming.is_terminal(&tool.name, None));
    terminal.find_map(|tool| Some((tool.name.clone().into_owned(), filled(tool, handoff)?)))
}

/// The required arguments of a tool, filled; none where one of them is not for words.
fn filled(tool: &Tool<'_>, handoff: &Handoff) -> Option<String> {
    let schema: Value = match tool.parameters.as_deref() {
        None => Value::Null,
        Some(parameters) => serde_json::from_str(parameters).ok()?,
    };
    let mut arguments = serde_json::Map::new();
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str()?;
        let own = &schema["properties"][name];
        if own["type"] != "string" || !own["enum"].is_null() || !is_message(&name.to_lowercase()) {
            return None;
        }
        arguments.insert(name.to_owned(), words_for(name, handoff)?.into());
    }
    Some(Value::Object(arguments).to_string())
}

fn words_for(name: &str, handoff: &Handoff) -> Option<String> {
    let text = |line: &Option<Line>| line.as_ref().map(|line| line.text.clone());
    let (reason, task) = (text(&handoff.reason), text(&handoff.task));
    if name.to_lowercase().contains("reason") { reason.or(task) } else { task.or(reason) }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::engine::handoff::contract::By;

    fn finding(code: Code, place: &str, what: &str) -> Finding {
        Finding::new(code, place, what)
    }

    #[test]
    fn what_is_enforced_keeps_a_transfer_back_and_nothing_else() {
        let findings = [
            finding(Code::Empty, "handoff", "no task"),
            finding(Code::FactNotConfirmed, "total", "not_found"),
            finding(Code::FactStale, "state", "old"),
            finding(Code::TwoTransfers, "tool_calls", "2"),
            finding(Code::OwnedField, "hop", "ignored"),
        ];
        let check = |enforce: Enforce, asked: bool, expected: &[Code]| {
            let kept: Vec<Code> = enforce.faults(&findings, asked).iter().map(|fault| fault.code).collect();
            assert_eq!(kept, expected, "{enforce:?}");
        };
        let all = Enforce { contract: true, facts: true, hops: true, ..Enforce::default() };
        check(Enforce::default(), true, &[]);
        check(all, true, &[Code::Empty, Code::FactNotConfirmed, Code::TwoTransfers]);
        check(all, false, &[Code::FactNotConfirmed, Code::TwoTransfers]);
        check(Enforce { hops: true, ..Enforce::default() }, true, &[Code::TwoTransfers]);
    }

    #[test]
    fn a_correction_lists_every_fault_and_says_what_to_do() {
        let faults = [
            finding(Code::TaskNotOneSentence, "task", "2 sentences, expected one"),
            finding(Code::FactNotConfirmed, "total", "no_such_call: no call has this id"),
        ];
        let text = answer("transfer_to_till", &faults.iter().collect::<Vec<_>>());
        for part in [
            "2 faults",
            "1. task: 2 sentences",
            "2. total: no_such_call",
            "transfer_to_till",
            "agent_inference",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let many = vec![finding(Code::SchemaFault, &"x".repeat(90), &"y".repeat(300)); 64];
        assert!(answer("t", &many.iter().collect::<Vec<_>>()).len() < ANSWER_CAP + 600);
    }

    #[test]
    fn a_refusal_names_codes_and_no_content() {
        let faults = [finding(Code::FactNotConfirmed, "secret", "x"), finding(Code::Empty, "handoff", "y")];
        let refused = Refused::of("till\n", &faults).expect("faults");
        assert_eq!(refused.check, Check::Contract);
        assert_eq!(refused.message, "the transfer to till was refused: fact_not_confirmed, empty_handoff");
        assert_eq!(Refused::of("till", &[]), None);
    }

    #[test]
    fn a_terminal_tool_is_filled_where_it_wants_words_only() {
        let line = |text: &str| Some(Line { text: text.to_owned(), by: By::Sender });
        let handoff =
            Handoff { task: line("Refund it."), reason: line("A refund is due."), ..Handoff::default() };
        let check = |parameters: Option<&str>, handoff: &Handoff, expected: Option<&str>| {
            let tool = Tool {
                name: Cow::Borrowed("transfer_to_human"),
                description: None,
                parameters: parameters.map(Cow::Borrowed),
                span: 0..0,
            };
            assert_eq!(filled(&tool, handoff).as_deref(), expected, "{parameters:?}");
        };
        check(None, &handoff, Some("{}"));
        check(Some(r#"{"properties":{"reason":{"type":"string"}}}"#), &handoff, Some("{}"));
        check(
            Some(
                r#"{"properties":{"reason":{"type":"string"},"summary":{"type":"string"}},"required":["reason","summary"]}"#,
            ),
            &handoff,
            Some(r#"{"reason":"A refund is due.","summary":"Refund it."}"#),
        );
        check(Some(r#"{"properties":{"queue":{"type":"string"}},"required":["queue"]}"#), &handoff, None);
        check(
            Some(r#"{"properties":{"reason":{"type":"string","enum":["a"]}},"required":["reason"]}"#),
            &handoff,
            None,
        );
        let silent = Handoff::default();
        check(Some(r#"{"properties":{"reason":{"type":"string"}},"required":["reason"]}"#), &silent, None);
    }
}
