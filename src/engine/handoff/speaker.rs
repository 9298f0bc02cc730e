//! Who speaks in an item: role `user` is not the customer. Some clients send
//! other agents' words as `user`, or wrap the customer's words in their own.

use std::borrow::Cow;
use std::sync::OnceLock;

use memchr::memmem;

use crate::engine::hash::Hash;
use crate::engine::view::{Item, Role, Span};

/// Who an item's words are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The customer; only they are quoted.
    Customer,
    /// The model's side: this agent or another one.
    Agent,
    /// A client's own wording around what others said; never evidence.
    Wrapper,
    /// Standing instructions.
    System,
    /// A tool's result.
    Tool,
    /// Anything else.
    Other,
}

/// An item's speaker, and the words that are theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voice<'a> {
    /// Who speaks.
    pub speaker: Speaker,
    /// Their own words, without a client's wrapping.
    pub words: Cow<'a, str>,
}

/// What is known of the run besides the list, to tell its speakers apart.
pub trait Company {
    /// Whether an agent of the run bears this name.
    fn is_agent(&self, name: &str) -> bool;
    /// Whether a sender wrote these words into its transfer call.
    fn is_delegated(&self, words: &str) -> bool;
}

/// What an item's text tells by itself; the rest is [`voices`]' to tell.
#[derive(Clone, Debug)]
pub struct Said {
    /// It is a client's own wording around what others said.
    wraps: bool,
    /// Its words without a client's wrapping.
    words: Span,
    /// The hash of the words, once somebody asked for it.
    pub hash: OnceLock<Hash>,
}

/// What each item's text tells by itself.
pub fn said(items: &[Item<'_>]) -> Vec<Said> {
    items.iter().map(Said::of).collect()
}

/// Tells who speaks in each item; `said` is what [`said`] gives for them.
pub fn voices<'a>(items: &'a [Item<'_>], said: &[Said], company: &impl Company) -> Vec<Voice<'a>> {
    items.iter().zip(said).map(|(item, said)| voice(item, said, company)).collect()
}

impl Said {
    fn of(item: &Item<'_>) -> Said {
        let text: &str = &item.text;
        let wraps = match item.role {
            Role::Assistant => is_nested_history(text),
            Role::User => is_quoted_agent(text),
            Role::System | Role::Tool | Role::Other => false,
        };
        let words = if item.role == Role::User { unwrapped(text) } else { 0..text.len() };
        Said { wraps, words, hash: OnceLock::new() }
    }
}

fn voice<'a>(item: &'a Item<'_>, said: &Said, company: &impl Company) -> Voice<'a> {
    let text: &str = &item.text;
    let (speaker, words) = match item.role {
        Role::System => (Speaker::System, text),
        Role::Tool => (Speaker::Tool, text),
        Role::Other => (Speaker::Other, text),
        Role::Assistant if said.wraps => (Speaker::Wrapper, text),
        Role::Assistant => (Speaker::Agent, text),
        Role::User => user(text, said, item.name.as_deref(), company),
    };
    Voice { speaker, words: Cow::Borrowed(words) }
}

fn user<'a>(text: &'a str, said: &Said, name: Option<&str>, company: &impl Company) -> (Speaker, &'a str) {
    if name.is_some_and(|name| company.is_agent(name)) {
        return (Speaker::Agent, text);
    }
    if said.wraps {
        return (Speaker::Wrapper, text);
    }
    let words = text.get(said.words.clone()).unwrap_or(text);
    if !words.is_empty() && company.is_delegated(words) {
        return (Speaker::Wrapper, words);
    }
    (Speaker::Customer, words)
}

/// google-adk quotes what other agents did as parts of a `user` message.
pub fn is_quoted_agent(text: &str) -> bool {
    text.starts_with("For context:[") || contains(text, "BEGIN_QUOTED_AGENT_CONTENT")
}

/// The OpenAI Agents SDK's nested history: one assistant text that holds the whole list.
pub fn is_nested_history(text: &str) -> bool {
    contains(text, "<CONVERSATION HISTORY>")
}

fn contains(text: &str, what: &str) -> bool {
    memmem::find(text.as_bytes(), what.as_bytes()).is_some()
}

/// Where the customer's words stand inside a client's wrapping; the whole text where there is none.
fn unwrapped(text: &str) -> Span {
    /// What opens the words, and what closes them.
    const WRAPPINGS: &[(&str, &[&str])] = &[
        // strands: a context block in which the request is one entry.
        (
            "User Request: ",
            &[
                "\n\nPrevious agents who worked on this:",
                "\n\nShared knowledge from previous agents:",
                "\n\nOther agents available for collaboration:",
                "\n\nYou have access to swarm coordination tools",
            ],
        ),
        // crewai: a task with the criteria of its answer.
        ("Current Task: ", &["\n\nThis is the expected criteria for your final answer:"]),
    ];
    let start = text.trim_start();
    let before = text.len() - start.len();
    for (open, closes) in WRAPPINGS {
        // A wrapping opens the text, or the line after the client's own heading.
        let Some(at) = memmem::find(start.as_bytes(), open.as_bytes())
            .filter(|&at| at == 0 || start[..at].ends_with('\n'))
        else {
            continue;
        };
        let inner = &start[at + open.len()..];
        if let Some(end) = closes.iter().filter_map(|close| inner.find(close)).min() {
            let words = inner[..end].trim_start();
            let from = before + at + open.len() + end - words.len();
            return from..from + words.trim_end().len();
        }
    }
    0..text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::view::{Form, Seal};

    struct Ward;
    impl Company for Ward {
        fn is_agent(&self, name: &str) -> bool {
            name == "nurse"
        }
        fn is_delegated(&self, words: &str) -> bool {
            words == "Book a bed for Ida"
        }
    }

    fn check(role: Role, name: Option<&'static str>, text: &'static str, speaker: Speaker, words: &str) {
        let item = Item {
            span: 0..0,
            role,
            name: name.map(Cow::Borrowed),
            text: Cow::Borrowed(text),
            form: Form::Text,
            content: None,
            calls: Vec::new(),
            answers: None,
            seal: Seal::Open,
            media: 0,
        };
        let items = std::slice::from_ref(&item);
        let voices = voices(items, &said(items), &Ward);
        assert_eq!((voices[0].speaker, voices[0].words.as_ref()), (speaker, words), "{text}");
    }

    #[test]
    fn role_user_is_not_the_customer() {
        check(Role::User, None, "I need a bed", Speaker::Customer, "I need a bed");
        check(Role::User, Some("ida"), "I need a bed", Speaker::Customer, "I need a bed");
        check(Role::User, Some("nurse"), "Transferred to nurse", Speaker::Agent, "Transferred to nurse");
        check(Role::User, None, "Book a bed for Ida", Speaker::Wrapper, "Book a bed for Ida");
        let quoted = "For context: <<<BEGIN_QUOTED_AGENT_CONTENT>>> [nurse] said: hi";
        check(Role::User, None, quoted, Speaker::Wrapper, quoted);
    }

    #[test]
    fn a_wrapped_request_keeps_the_customers_words() {
        let wrapped = "Context:\nUser Request: I need a bed.\n\nToday.\n\nOther agents available for collaboration:\nAgent name: x";
        check(Role::User, None, wrapped, Speaker::Customer, "I need a bed.\n\nToday.");
        let task = "\nCurrent Task: Book a bed for Ida\n\nThis is the expected criteria for your final answer: a bed";
        check(Role::User, None, task, Speaker::Wrapper, "Book a bed for Ida");
    }

    #[test]
    fn a_customer_who_writes_the_markers_is_still_quoted_whole() {
        check(Role::User, None, "User Request: hello", Speaker::Customer, "User Request: hello");
    }
}
