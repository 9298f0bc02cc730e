//! The fields of a handoff as the page shows them: which were filled, by whom and how
//! much; the texts where they may be shown.

use maud::{Markup, html};

use super::list::count;
use super::{size, words};
use crate::engine::handoff::contract::{Artifact, By, Constraint, Line, Lines, ReturnSchema};
use crate::engine::handoff::verify::Outcome;
use crate::engine::record::Record;

/// A field with what stands in it.
struct Field<'r> {
    name: &'static str,
    /// None: nobody was asked.
    entries: Option<Vec<Entry<'r>>>,
}

struct Entry<'r> {
    text: String,
    by: &'static str,
    /// What goes with it.
    notes: Vec<&'r str>,
}

/// The table of fields.
pub(super) fn fields(record: &Record, content: bool) -> Markup {
    let all = of(record);
    let names = |state: fn(&Field<'_>) -> bool| -> String {
        all.iter().filter(|field| state(field)).map(|field| words(field.name)).collect::<Vec<_>>().join(", ")
    };
    let none = names(|field| field.entries.as_ref().is_some_and(Vec::is_empty));
    let not_asked = names(|field| field.entries.is_none());
    html! { dl.fields {
        @for field in &all { @if let Some(entries) = field.entries.as_ref().filter(|entries| !entries.is_empty()) {
            div { dt { (words(field.name)) } dd { (told(entries, content)) } }
        } }
        @if !none.is_empty() { div.none { dt { "None, says the sender" } dd { (none) } } }
        @if !not_asked.is_empty() { div.none { dt { "Not there" } dd { (not_asked) } } }
    } }
}

fn told(entries: &[Entry<'_>], content: bool) -> Markup {
    let bytes = entries.iter().map(|entry| entry.text.len()).sum();
    let mut writers: Vec<&str> = entries.iter().map(|entry| entry.by).collect();
    writers.dedup();
    html! {
        @if content {
            ul { @for entry in entries { li {
                (entry.text)
                @for note in &entry.notes { " " span.badge.off { (note) } }
                " " span.by { (entry.by) }
            } } }
        } @else {
            (count(entries.len(), "line")) ", " (size(bytes)) " " span.by { (writers.join(", ")) }
        }
    }
}

fn of(record: &Record) -> Vec<Field<'_>> {
    let handoff = &record.handoff;
    let field = |name, entries| Field { name, entries };
    let seam = |text: &str| Entry { text: text.to_owned(), by: "seam", notes: Vec::new() };
    let actions = record.actions_taken.iter();
    let actions =
        actions.map(|action| seam(&format!("{} {}: {}", action.name, action.arguments, action.outcome)));
    vec![
        field("objective", record.objective.as_deref().map(|text| vec![seam(text)])),
        field("latest_request", record.latest_request.as_deref().map(|text| vec![seam(text)])),
        field("task", one(handoff.task.as_ref())),
        field("reason", one(handoff.reason.as_ref())),
        field("context", one(handoff.context.as_ref())),
        field("constraints", handoff.constraints.as_ref().map(|all| all.iter().map(constraint).collect())),
        field("decisions", lines(&handoff.decisions)),
        field("commitments", lines(&handoff.commitments)),
        field("tried", lines(&handoff.tried)),
        field("open_questions", lines(&handoff.open_questions)),
        field("remaining", lines(&handoff.remaining)),
        field("done_when", lines(&handoff.done_when)),
        field("stop_conditions", lines(&handoff.stop_conditions)),
        field("artifacts", handoff.artifacts.as_ref().map(|all| all.iter().map(artifact).collect())),
        field("return_to", handoff.return_to.as_deref().map(|name| vec![sender(name)])),
        field(
            "return_schema",
            handoff.return_schema.as_ref().map(|schema| vec![sender(&schema_text(schema))]),
        ),
        field("actions_taken", Some(actions.collect::<Vec<_>>()).filter(|all| !all.is_empty())),
        field(
            "parting_words",
            Some(record.parting_words.iter().map(entry).collect::<Vec<_>>()).filter(|all| !all.is_empty()),
        ),
    ]
}

fn one(line: Option<&Line>) -> Option<Vec<Entry<'_>>> {
    line.map(|line| vec![entry(line)])
}

fn lines(lines: &Lines) -> Option<Vec<Entry<'_>>> {
    lines.as_ref().map(|lines| lines.iter().map(entry).collect())
}

fn entry(line: &Line) -> Entry<'_> {
    Entry { text: line.text.clone(), by: writer(line.by), notes: Vec::new() }
}

fn sender<'r>(text: &str) -> Entry<'r> {
    Entry { text: text.to_owned(), by: "sender", notes: Vec::new() }
}

fn constraint(constraint: &Constraint) -> Entry<'_> {
    let notes = vec![if constraint.binds { "binds" } else { "claimed" }];
    Entry { text: constraint.text.clone(), by: writer(constraint.by), notes }
}

fn artifact(artifact: &Artifact) -> Entry<'_> {
    let name = artifact.name.as_deref().unwrap_or_default();
    let notes = artifact.outcome.map(Outcome::name).into_iter().collect();
    Entry { text: format!("{name} {}", artifact.reference).trim().to_owned(), by: "sender", notes }
}

fn schema_text(schema: &ReturnSchema) -> String {
    match schema {
        ReturnSchema::Name(name) => name.clone(),
        ReturnSchema::Rows(rows) => {
            rows.iter().map(|(name, kind)| format!("{name}: {kind}")).collect::<Vec<_>>().join(", ")
        }
    }
}

fn writer(by: By) -> &'static str {
    match by {
        By::Sender => "sender",
        By::Derived => "derived",
        By::Carried => "carried",
        By::Policy => "policy",
    }
}
