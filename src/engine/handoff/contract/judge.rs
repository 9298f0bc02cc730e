//! Judges what a sender wrote, before anything is derived: whether it says
//! enough, and whether it says it in the form that was asked for.

use super::schema::description;
use super::{Artifact, By, Handoff, Line, Lines};
use crate::engine::event::{Code, Finding};

/// Tokens that a context may have, at 4 bytes each.
const MAX_CONTEXT_TOKENS: usize = 200;
/// Bytes of a reference.
pub const MAX_REFERENCE: usize = 512;

/// What is wrong with what the sender wrote. What others put in is not looked at.
pub fn judge(handoff: &Handoff) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(empty(handoff));
    findings.extend(filler(handoff));
    if let Some(task) = own(handoff.task.as_ref())
        && sentences(task) > 1
    {
        let what = format!("{} sentences, expected one", sentences(task));
        findings.push(Finding::new(Code::TaskNotOneSentence, "task", what));
    }
    if let Some(context) = own(handoff.context.as_ref())
        && context.len().div_ceil(4) > MAX_CONTEXT_TOKENS
    {
        let what = format!("about {} tokens, at most {MAX_CONTEXT_TOKENS}", context.len().div_ceil(4));
        findings.push(Finding::new(Code::ContextTooLong, "context", what));
    }
    for (i, artifact) in handoff.artifacts.iter().flatten().enumerate() {
        if let Some(what) = by_value(artifact) {
            findings.push(Finding::new(Code::ArtifactByValue, format!("artifacts[{i}].ref"), what));
        }
    }
    findings
}

fn own(line: Option<&Line>) -> Option<&str> {
    line.filter(|line| line.by == By::Sender).map(|line| line.text.as_str())
}

fn own_lines(lines: &Lines) -> impl Iterator<Item = &str> {
    lines.iter().flatten().filter_map(|line| own(Some(line)))
}

/// No task, or nothing known and nothing asked. An artifact counts as known: it is checked like a fact.
fn empty(handoff: &Handoff) -> Option<Finding> {
    let facts = handoff.established.iter().flatten().any(|claim| claim.by == By::Sender);
    let artifacts = handoff.artifacts.iter().flatten().next().is_some();
    let questions = own_lines(&handoff.open_questions).next().is_some();
    let what = match (own(handoff.task.as_ref()), facts || artifacts || questions) {
        (None, false) => "no task, and neither a fact nor an open question",
        (None, true) => "no task",
        (Some(_), false) => "neither a fact nor an open question",
        (Some(_), true) => return None,
    };
    Some(Finding::new(Code::Empty, "handoff", what))
}

/// Words that stand where something should be said, and one sentence used for every field.
fn filler(handoff: &Handoff) -> Vec<Finding> {
    let texts = texts(handoff);
    let mut findings: Vec<_> = texts
        .iter()
        .filter(|(field, text)| is_filler(field, text))
        .map(|(field, _)| Finding::new(Code::Filler, *field, "a word of the schema instead of a value"))
        .collect();
    findings.dedup();
    for (i, (field, text)) in texts.iter().enumerate() {
        let same = |(_, other): &&(&str, &str)| plain(other) == plain(text);
        let mut fields: Vec<_> = texts.iter().filter(same).map(|(field, _)| *field).collect();
        fields.dedup();
        let first = !texts[..i].iter().any(|(_, other)| plain(other) == plain(text));
        if first && fields.len() >= 3 {
            let what = format!("the same sentence stands in {}", fields.join(", "));
            findings.push(Finding::new(Code::Filler, *field, what));
        }
    }
    findings
}

/// Every text of the sender's own, with its field; a field's texts stand together.
fn texts(handoff: &Handoff) -> Vec<(&'static str, &str)> {
    let mut texts = Vec::new();
    let lines: [(&'static str, &Option<Line>); 3] =
        [("task", &handoff.task), ("reason", &handoff.reason), ("context", &handoff.context)];
    for (field, line) in lines {
        texts.extend(own(line.as_ref()).map(|text| (field, text)));
    }
    let facts = handoff.established.iter().flatten().filter(|claim| claim.by == By::Sender);
    texts.extend(
        facts.map(|claim| ("established", claim.value.text.as_str())).filter(|(_, text)| worded(text)),
    );
    let constraints = handoff.constraints.iter().flatten().filter(|constraint| constraint.by == By::Sender);
    texts.extend(constraints.map(|constraint| ("constraints", constraint.text.as_str())));
    let lists: [(&'static str, &Lines); 7] = [
        ("decisions", &handoff.decisions),
        ("open_questions", &handoff.open_questions),
        ("remaining", &handoff.remaining),
        ("done_when", &handoff.done_when),
        ("stop_conditions", &handoff.stop_conditions),
        ("commitments", &handoff.commitments),
        ("tried", &handoff.tried),
    ];
    for (field, lines) in lists {
        texts.extend(own_lines(lines).map(|text| (field, text)));
    }
    texts
}

/// A fact's value may well be the word `test`; only what looks like a placeholder is judged there.
fn worded(text: &str) -> bool {
    text.contains(' ') || matches!(plain(text).as_str(), "string" | "value" | "placeholder" | "todo")
}

/// Letters and digits in lower case, single spaces between.
fn plain(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

fn is_filler(field: &str, text: &str) -> bool {
    const WORDS: &[&str] = &[
        "",
        "string",
        "str",
        "text",
        "array",
        "list",
        "object",
        "value",
        "null",
        "none",
        "n a",
        "na",
        "todo",
        "tbd",
        "tba",
        "test",
        "example",
        "placeholder",
        "unknown",
        "not applicable",
        "not specified",
        "lorem ipsum",
        "string here",
        "your text here",
        "text here",
        "fill in",
        "to be determined",
        "see above",
        "as above",
    ];
    let said = plain(text);
    WORDS.contains(&said.as_str())
        || said == plain(field)
        || description(field).is_some_and(|description| said == plain(description))
}

/// Why an artifact is no reference.
fn by_value(artifact: &Artifact) -> Option<String> {
    let reference = artifact.reference.as_str();
    if reference.contains(['\n', '\r']) {
        return Some("several lines, expected one".to_owned());
    }
    if reference.len() > MAX_REFERENCE {
        return Some(format!("{} bytes, at most {MAX_REFERENCE}", reference.len()));
    }
    let content = reference.starts_with("data:") || reference.starts_with(['{', '[']);
    content.then(|| "the content itself, expected a reference".to_owned())
}

/// How many sentences a text has: ends followed by a new start, and lines.
/// Decimals, abbreviations, initials and numbered steps end nothing.
fn sentences(text: &str) -> usize {
    text.lines().filter(|line| line.chars().any(char::is_alphanumeric)).map(sentences_of_line).sum()
}

fn sentences_of_line(line: &str) -> usize {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ends =
        words.iter().zip(words.iter().skip(1)).filter(|(word, next)| ends_sentence(word) && starts(next));
    // Scripts without spaces between sentences mark their end with a character of its own.
    let wide = line.trim_end_matches(['。', '！', '？']).matches(['。', '！', '？']).count();
    1 + ends.count() + wide
}

/// Whether a word closes a sentence, if another follows.
fn ends_sentence(word: &str) -> bool {
    const ABBREVIATIONS: &[&str] = &[
        "e.g", "i.e", "etc", "vs", "cf", "no", "nr", "approx", "ca", "incl", "excl", "max", "min", "mr",
        "mrs", "ms", "dr", "prof", "st", "inc", "ltd", "co", "corp", "dept", "est", "fig", "tel", "ext",
        "ref", "art", "sec", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov",
        "dec", "a.m", "p.m", "u.s", "u.k", "z.b",
    ];
    let word = word.trim_end_matches(['"', '\'', ')', ']', '”', '’']);
    if word.ends_with(['!', '?', '…']) {
        return true;
    }
    let Some(word) = word.strip_suffix('.') else { return false };
    let word = word.trim_start_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let initial = word.chars().count() == 1 && !word.starts_with(char::is_numeric);
    // `1. Check` is a numbered step; `order 41182. Then` ends a sentence.
    let numbered = word.len() <= 2 && word.bytes().all(|b| b.is_ascii_digit());
    !(word.is_empty() || initial || numbered || ABBREVIATIONS.contains(&word.as_str()))
}

/// Whether a word opens a sentence: one that goes on in lower case is the same sentence.
fn starts(word: &str) -> bool {
    let first = word.chars().find(|c| c.is_alphanumeric());
    first.is_some_and(|c| !c.is_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::handoff::contract::read;

    #[track_caller]
    fn check(arguments: &str, expected: &[&str]) {
        let handoff = read(arguments).handoff.unwrap_or_default();
        let found: Vec<_> =
            judge(&handoff).iter().map(|f| format!("{} {}: {}", f.code.name(), f.place, f.what)).collect();
        assert_eq!(found, expected, "{arguments}");
    }

    #[test]
    fn empty_is_no_task_or_nothing_known_and_nothing_asked() {
        check("{}", &["empty_handoff handoff: no task, and neither a fact nor an open question"]);
        check(r#"{"task":"Pay it."}"#, &["empty_handoff handoff: neither a fact nor an open question"]);
        check(r#"{"facts":["Trip 88 is late"]}"#, &["empty_handoff handoff: no task"]);
        check(r#"{"task":"Pay it.","facts":["Trip 88 is late"]}"#, &[]);
        check(r#"{"task":"Pay it.","open_questions":["Which card?"]}"#, &[]);
        check(r#"{"intent":"Roll back.","artifacts":{"build":"77"}}"#, &[]);
    }

    #[test]
    fn filler_is_told_from_words() {
        let schema_word = |field: &str| format!("filler {field}: a word of the schema instead of a value");
        let check = |task: &str, filler: bool| {
            let expected = if filler { vec![schema_word("task")] } else { vec![] };
            let expected: Vec<_> = expected.iter().map(String::as_str).collect();
            check(&format!(r#"{{"task":"{task}","open_questions":["Which card?"]}}"#), &expected);
        };
        check("string", true);
        check("<task>", true);
        check("N/A", true);
        check("...", true);
        check("For the receiver: one imperative sentence.", true);
        check("Test the value of the string", false);
        check("Refund", false);
    }

    #[test]
    fn one_sentence_in_every_field_is_filler() {
        check(
            r#"{"task":"Help the customer","reason":"help the customer.","facts":["Help the customer"],"remaining":["Help the customer"]}"#,
            &["filler task: the same sentence stands in task, reason, established, remaining"],
        );
        check(r#"{"task":"Pay it","facts":["a b"],"remaining":["Pay it"],"done_when":["It is paid"]}"#, &[]);
    }

    #[test]
    fn a_task_is_one_sentence() {
        let check = |task: &str, expected: usize| assert_eq!(sentences(task), expected, "{task}");
        check("Refund order 41182.", 1);
        check("Refund 68.40 for order 41182, e.g. by card", 1);
        check("Refund it, e.g. By card, i.e. Visa no. 4 at 5 p.m. Pacific time", 1);
        check("Ask Dr. Meyer or J. Ortiz Inc. for v2.1.3 of refunds.pdf", 1);
        check("Check it. Then pay it.", 2);
        check("Is it late? Pay it!", 2);
        check("Pay order 41182. Tell the customer.", 2);
        check("Pay it.\nTell her.", 2);
        check("- Pay it", 1);
        check("払い戻す。知らせる。", 2);
        check("払い戻す。", 1);
        check("He asked \"why?\" and left", 1);
        check("", 0);
    }

    #[test]
    fn context_has_a_limit_of_200_tokens() {
        let check = |bytes: usize, expected: &[&str]| {
            let arguments =
                format!(r#"{{"task":"Pay.","facts":["It is late"],"context":"{}"}}"#, "x".repeat(bytes));
            check(&arguments, expected);
        };
        check(800, &[]);
        check(801, &["context_too_long context: about 201 tokens, at most 200"]);
    }

    #[test]
    fn an_artifact_is_a_reference_of_one_line() {
        let check = |reference: &str, expected: &[&str]| {
            let arguments =
                serde_json::json!({"task": "Pay.", "artifacts": [{"ref": reference}]}).to_string();
            check(&arguments, expected);
        };
        let at = |what: &str| format!("artifact_by_value artifacts[0].ref: {what}");
        check("store://runs/1/a.csv", &[]);
        check(&"x".repeat(512), &[]);
        check(&"x".repeat(513), &[&at("513 bytes, at most 512")]);
        check("id,total\n1,2", &[&at("several lines, expected one")]);
        check("data:text/csv;base64,aWQ=", &[&at("the content itself, expected a reference")]);
        check("{\"id\":1}", &[&at("the content itself, expected a reference")]);
    }

    #[test]
    fn what_others_put_in_is_not_judged() {
        let line = |text: &str| Some(Line { text: text.to_owned(), by: By::Derived });
        let handoff =
            Handoff { task: line("One. Two."), context: line(&"x".repeat(900)), ..Handoff::default() };
        let codes: Vec<_> = judge(&handoff).iter().map(|finding| finding.code).collect();
        assert_eq!(codes, [Code::Empty]);
    }
}
