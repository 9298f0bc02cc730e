//! Who speaks in an item: role `user` is not the customer. Some clients send
//! other agents' words as `user`, or wrap the customer's words in their own.

use std::borrow::Cow;

use crate::engine::view::{Item, Role};

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

/// Tells who speaks in each item.
pub fn voices<'a>(items: &'a [Item<'_>], company: &impl Company) -> Vec<Voice<'a>> {
    items.iter().map(|item| voice(item, company)).collect()
}

fn voice<'a>(item: &'a Item<'_>, company: &impl Company) -> Voice<'a> {
    let text: &str = &item.text;
    let (speaker, words) = match item.role {
        Role::System => (Speaker::System, text),
        Role::Tool => (Speaker::Tool, text),
        Role::Other => (Speaker::Other, text),
        Role::Assistant if is_nested_history(text) => (Speaker::Wrapper, text),
        Role::Assistant => (Speaker::Agent, text),
        Role::User => user(text, item.name.as_deref(), company),
    };
    Voice { speaker, words: Cow::Borrowed(words) }
}

fn user<'a>(text: &'a str, name: Option<&str>, company: &impl Company) -> (Speaker, &'a str) {
    if name.is_some_and(|name| company.is_agent(name)) {
        return (Speaker::Agent, text);
    }
    if is_quoted_agent(text) {
        return (Speaker::Wrapper, text);
    }
    let words = unwrapped(text);
    if !words.is_empty() && company.is_delegated(words) {
        return (Speaker::Wrapper, words);
    }
    (Speaker::Customer, words)
}

/// google-adk quotes what other agents did as parts of a `user` message.
pub fn is_quoted_agent(text: &str) -> bool {
    text.contains("BEGIN_QUOTED_AGENT_CONTENT") || text.starts_with("For context:[")
}

/// The OpenAI Agents SDK's nested history: one assistant text that holds the whole list.
pub fn is_nested_history(text: &str) -> bool {
    text.contains("<CONVERSATION HISTORY>")
}

/// The customer's words inside a client's wrapping; the whole text where there is none.
pub fn unwrapped(text: &str) -> &str {
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
    for (open, closes) in WRAPPINGS {
        // A wrapping opens the text, or the line after the client's own heading.
        let Some(at) = start.find(open).filter(|&at| at == 0 || start[..at].ends_with('\n')) else {
            continue;
        };
        let inner = &start[at + open.len()..];
        if let Some(end) = closes.iter().filter_map(|close| inner.find(close)).min() {
            return inner[..end].trim();
        }
    }
    text
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
        let voices = voices(std::slice::from_ref(&item), &Ward);
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
