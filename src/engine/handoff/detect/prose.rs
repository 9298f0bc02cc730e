//! What prose says about transfers: results that confirm or refuse one,
//! messages that are nothing but its trace, and replies that promise one.

use std::sync::LazyLock;

use super::words;

/// The words that an announcement begins with.
static ANNOUNCING: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let mut words: Vec<&str> = words::ANNOUNCEMENTS.iter().filter_map(|act| act.split(' ').next()).collect();
    words.sort_unstable();
    words.dedup();
    words
});

/// The longest name of an agent that is believed.
const LONGEST_NAME: usize = 128;

/// A result that says that control moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirmation {
    /// The agent's real name, where the result has it; the tool's name has only a normalised form.
    pub agent: Option<String>,
}

/// What is left of a transfer in prose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The agent it went to, where that is said.
    pub to: Option<String>,
}

/// Reads the result of a transfer call; none where it is no known confirmation.
pub fn is_confirmation(result: &str) -> Option<Confirmation> {
    let result = result.trim();
    if words::CONFIRMATIONS_BARE.contains(&result) {
        return Some(Confirmation { agent: None });
    }
    confirming_object(result)
        .or_else(|| words::CONFIRMATIONS.iter().find_map(|(head, ends)| name_between(result, head, ends)))
        .map(|agent| Confirmation { agent: Some(agent) })
}

/// Whether the result of a transfer call says that it did not take place.
pub fn is_refusal(result: &str) -> bool {
    // Frameworks say so at once; what lies further behind is some tool's own text.
    let head = head(result, 1024).to_lowercase();
    words::REFUSALS.iter().any(|refusal| head.contains(refusal))
}

/// Whether a reply says that it hands the conversation over now. Offers, conditions and denials do not count.
pub fn announces_transfer(text: &str) -> bool {
    let text = text.to_lowercase();
    // Nearly every reply ends here.
    if !text.split(|c: char| !c.is_alphanumeric()).any(|word| ANNOUNCING.contains(&word)) {
        return false;
    }
    let text = text.replace('\u{2019}', "'");
    text.split_inclusive(['.', '!', '?', '\n', ';']).any(|sentence| {
        let sentence = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
        words::ANNOUNCEMENTS.iter().any(|act| {
            let Some(at) = find_words(&sentence, act) else { return false };
            let (before, after) = sentence.split_at(at);
            words::COMMITMENTS.iter().any(|start| find_words(before, start).is_some())
                && !words::RESERVATIONS_BEFORE.iter().any(|mark| before.contains(mark))
                && !words::RESERVATIONS_AFTER.iter().any(|mark| after.contains(mark))
        })
    })
}

pub(super) fn quoted_transfer(text: &str, is_transfer: &dyn Fn(&str) -> bool) -> Option<Trace> {
    let text = text.trim();
    let text = inline_content(text).unwrap_or(text);
    let by_wording = words::TRACES.iter().find_map(|(head, end)| {
        let rest = text.strip_prefix(head)?;
        let name = if end.is_empty() { rest.trim_end_matches('.') } else { rest.split_once(end)?.0 };
        believable(name).map(|name| Trace { to: Some(name) })
    });
    by_wording.or_else(|| quoted_block(text, is_transfer))
}

/// adk's quotes of another agent, where each of them is of a transfer's call or result.
fn quoted_block(text: &str, is_transfer: &dyn Fn(&str) -> bool) -> Option<Trace> {
    if !text.starts_with(words::QUOTE_PREAMBLE) {
        return None;
    }
    let mut found = None;
    let mut inside = false;
    let mut body = String::new();
    for line in text.lines().skip(1) {
        match line.trim() {
            // What is quoted may hold anything, also lines that look like headings.
            words::QUOTE_BEGIN => inside = true,
            words::QUOTE_END => inside = false,
            "" => {}
            quoted if inside => body.push_str(quoted),
            heading => {
                let (name, rest) = quoted_tool(heading)?;
                if !is_transfer(name) {
                    return None;
                }
                body.push_str(rest);
                found = Some(Trace { to: None });
            }
        }
    }
    found.map(|_| Trace { to: printed_destination(&body) })
}

/// The tool's name in a heading of adk's, and what follows on the line.
fn quoted_tool(heading: &str) -> Option<(&str, &str)> {
    let (_, said) = heading.strip_prefix('[')?.split_once("] ")?;
    match said.strip_prefix(words::QUOTED_CALL) {
        Some(call) => call.split_once(words::QUOTED_CALL_END),
        None => said.strip_prefix('`')?.split_once(words::QUOTED_RESULT_END),
    }
}

/// The destination in arguments that were printed as a Python object: `{'agent_name': 'refunds'}`.
fn printed_destination(printed: &str) -> Option<String> {
    words::DESTINATION.iter().find_map(|word| {
        let (_, rest) = printed.split_once(&format!("'{word}': '"))?;
        believable(rest.split_once('\'')?.0)
    })
}

/// langgraph-supervisor's `inline` names: the content within `<name>X</name><content>...</content>`.
fn inline_content(text: &str) -> Option<&str> {
    let (_, rest) = text.strip_prefix("<name>")?.split_once("</name>")?;
    rest.trim_start().strip_prefix("<content>")?.strip_suffix("</content>")
}

/// `{"assistant": "Refund Agent"}`: an object of one member that names the agent.
fn confirming_object(result: &str) -> Option<String> {
    if !result.starts_with('{') || result.len() > LONGEST_NAME * 4 {
        return None;
    }
    let members: serde_json::Map<String, serde_json::Value> = serde_json::from_str(result).ok()?;
    let [(key, value)] = members.iter().collect::<Vec<_>>()[..] else { return None };
    words::CONFIRMATION_KEYS.contains(&key.as_str()).then(|| value.as_str().and_then(believable))?
}

fn name_between(text: &str, head: &str, ends: &[&str]) -> Option<String> {
    let rest = text.strip_prefix(head)?;
    // The first end that occurs, in the order of the list: `Refunds Inc., adopting ...` keeps its dot.
    let name = ends.iter().find_map(|end| rest.split_once(end)).map(|(name, _)| name);
    match name {
        Some(name) => believable(name),
        None if ends.contains(&".") => believable(rest),
        None => None,
    }
}

/// A name that is one line, not empty and not a text.
fn believable(name: &str) -> Option<String> {
    let name = name.trim();
    let fits = !name.is_empty() && name.len() <= LONGEST_NAME && !name.contains('\n');
    fits.then(|| name.to_owned())
}

/// Where `phrase` stands in `text` at the border of a word.
fn find_words(text: &str, phrase: &str) -> Option<usize> {
    text.match_indices(phrase).map(|(at, _)| at).find(|at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + phrase.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

/// The first `bytes` of the text, at a character's border.
fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
