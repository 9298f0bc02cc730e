//! What a server wants of a list beyond what every server wants, as choices.
//! What is right everywhere is no choice and stands in the rebuild itself.

use serde::Deserialize;
use wildmatch::WildMatch;

/// One server's choices. The default asks for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Where standing instructions stand.
    pub system: Standing,
    /// How the role `developer` is written.
    pub developer: Developer,
    /// How content is written.
    pub content: Content,
    /// How call ids are written.
    pub ids: Ids,
    /// What becomes of neighbours in one role.
    pub neighbours: Neighbours,
    /// Who may speak behind a result.
    pub after_result: AfterResult,
    /// Who opens the conversation.
    pub opening: Opening,
}

impl Profile {
    /// Whether it asks for nothing.
    pub fn is_plain(&self) -> bool {
        *self == Profile::default()
    }
}

/// Models of one kind, by patterns on their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Models(Vec<WildMatch>);

impl Models {
    /// The models that one of these patterns matches, behind any maker's name.
    pub fn new<S: AsRef<str>>(patterns: &[S]) -> Models {
        Models(patterns.iter().map(|pattern| WildMatch::new(&pattern.as_ref().to_lowercase())).collect())
    }

    /// Whether a model of this name is one of them.
    pub fn have(&self, model: &str) -> bool {
        let model = model.to_lowercase();
        let name = model.rsplit('/').next().unwrap_or_default();
        self.0.iter().any(|pattern| pattern.matches(&model) || pattern.matches(name))
    }
}

/// Where standing instructions stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Where the client put them; the brief ends the last of the leading ones.
    #[default]
    AsSent,
    /// In one message, the first; later ones are folded into it in order, the brief ends it.
    OneFirst,
    /// In the first user turn, ahead of its words: there is no role for them.
    InUserTurn,
}

/// How the role `developer` is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Developer {
    /// As the client wrote it.
    #[default]
    AsSent,
    /// As `system`.
    AsSystem,
}

/// How content is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// In the client's form.
    #[default]
    AsSent,
    /// As one string wherever it is text alone; an empty one where there is none.
    String,
}

/// How call ids are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ids {
    /// As the client wrote them.
    #[default]
    AsSent,
    /// As nine letters or digits, the same on both sides of a pair.
    Nine,
}

/// What becomes of neighbours in one role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Neighbours {
    /// They stay two messages.
    #[default]
    AsSent,
    /// An agent's text ahead of a message with calls becomes that message's text.
    JoinCalls,
    /// They become one message, their texts apart by a line.
    Join,
}

/// Who may speak behind a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterResult {
    /// Anybody.
    #[default]
    Anybody,
    /// Only the model's side: one neutral message of it stands ahead of a user's.
    Assistant,
}

/// Who opens the conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Opening {
    /// Anybody.
    #[default]
    Anybody,
    /// Only the user's side: one neutral message of it stands ahead of an agent's.
    User,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_known_by_patterns_behind_any_makers_name() {
        let models = Models::new(&["gpt-4*", "*-chat-latest"]);
        let check = |model: &str, expected: bool| assert_eq!(models.have(model), expected, "{model}");
        check("gpt-4.1-mini", true);
        check("openai/GPT-4o-2024-08-06", true);
        check("gpt-5-chat-latest", true);
        check("gpt-5-mini", false);
        check("my-gpt-4", false);
        check("", false);
        assert!(!Models::default().have("gpt-4"));
    }
}
