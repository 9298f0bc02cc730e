//! The profiles of servers, as written in `config/profiles/`: what each wants
//! of a list, and why. Their docs come from the same files.

use serde::Deserialize;

use crate::engine::profile::{
    AfterResult, Content, Developer, Ids, Models, Neighbours, Opening, Profile, Standing,
};

/// The built-in profiles, by name; the default first.
pub const ALL: &[(&str, &str)] = &[
    ("openai", include_str!("../../config/profiles/openai.toml")),
    ("azure", include_str!("../../config/profiles/azure.toml")),
    ("vllm", include_str!("../../config/profiles/vllm.toml")),
    ("llama.cpp", include_str!("../../config/profiles/llama.cpp.toml")),
    ("ollama", include_str!("../../config/profiles/ollama.toml")),
    ("mistral", include_str!("../../config/profiles/mistral.toml")),
    ("gemini-compat", include_str!("../../config/profiles/gemini-compat.toml")),
    ("anthropic-compat", include_str!("../../config/profiles/anthropic-compat.toml")),
    ("strict-alternation", include_str!("../../config/profiles/strict-alternation.toml")),
    ("no-system-role", include_str!("../../config/profiles/no-system-role.toml")),
    ("deepseek", include_str!("../../config/profiles/deepseek.toml")),
    ("openrouter", include_str!("../../config/profiles/openrouter.toml")),
];

/// What the server behind Seam wants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Server {
    /// Of a list.
    pub profile: Profile,
    /// Of its models: these refuse to be given hidden reasoning.
    pub unthinking: Models,
}

/// A profile as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Which servers it is for, one sentence.
    pub about: String,
    /// What is odd about their streams. Seam reads all of these from everybody; this is for people.
    pub streams: String,
    system: Option<Line<Standing>>,
    developer: Option<Line<Developer>>,
    content: Option<Line<Content>>,
    ids: Option<Line<Ids>>,
    neighbours: Option<Line<Neighbours>>,
    after_result: Option<Line<AfterResult>>,
    opening: Option<Line<Opening>>,
    unthinking: Option<Line<Vec<String>>>,
    /// What these servers want that is the default already.
    #[serde(default, rename = "note")]
    pub notes: Vec<Note>,
}

/// One choice, with its reason and where that is known from.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<T> {
    is: T,
    reason: String,
    source: String,
}

/// Something that needs no choice.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// What it is.
    pub what: String,
    /// Where it is known from.
    pub source: String,
}

/// A choice as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told<'d> {
    /// What is chosen about.
    pub about: &'static str,
    /// Why.
    pub reason: &'d str,
    /// Where the reason is known from.
    pub source: &'d str,
}

impl Document {
    /// Reads a profile's file; an error says what is wrong with it.
    pub fn read(text: &str) -> Result<Document, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    /// The choices alone.
    pub fn profile(&self) -> Profile {
        fn is<T: Copy + Default>(line: Option<&Line<T>>) -> T {
            line.map(|line| line.is).unwrap_or_default()
        }
        Profile {
            system: is(self.system.as_ref()),
            developer: is(self.developer.as_ref()),
            content: is(self.content.as_ref()),
            ids: is(self.ids.as_ref()),
            neighbours: is(self.neighbours.as_ref()),
            after_result: is(self.after_result.as_ref()),
            opening: is(self.opening.as_ref()),
        }
    }

    /// Patterns of the models that refuse hidden reasoning.
    pub fn unthinking(&self) -> &[String] {
        self.unthinking.as_ref().map_or(&[], |line| &line.is)
    }

    /// The choices with their reasons.
    pub fn told(&self) -> Vec<Told<'_>> {
        fn tell<'d, T>(about: &'static str, line: Option<&'d Line<T>>) -> Option<Told<'d>> {
            line.map(|line| Told { about, reason: &line.reason, source: &line.source })
        }
        let told = [
            tell(
                match self.profile().system {
                    Standing::InUserTurn => "instructions and brief open the first user turn",
                    _ => "one system message, the first; later ones are folded into it, the brief ends it",
                },
                self.system.as_ref(),
            ),
            tell("`developer` is written `system`", self.developer.as_ref()),
            tell("parts of text alone become one string, no content an empty one", self.content.as_ref()),
            tell("call ids that do not fit become nine letters or digits, on both sides", self.ids.as_ref()),
            tell(
                match self.profile().neighbours {
                    Neighbours::JoinCalls => "an agent's text joins the message with calls behind it",
                    _ => "neighbours in one role become one message, a line between their texts",
                },
                self.neighbours.as_ref(),
            ),
            tell(
                "one neutral assistant message between a result and a user's turn",
                self.after_result.as_ref(),
            ),
            tell("one neutral user message ahead of an agent's first words", self.opening.as_ref()),
            tell("hidden reasoning stays out of what these models get", self.unthinking.as_ref()),
        ];
        told.into_iter().flatten().collect()
    }
}

/// What the server of this name wants, or one as the file at this path says.
pub fn named(text: &str) -> Result<Server, String> {
    let written = match ALL.iter().find(|(name, _)| *name == text) {
        Some((_, written)) => (*written).to_owned(),
        None if std::path::Path::new(text).extension().is_some_and(|end| end == "toml") => {
            super::source::read_text(text.as_ref())?
        }
        None => return Err(String::new()),
    };
    let document = Document::read(&written)?;
    Ok(Server { profile: document.profile(), unthinking: Models::new(document.unthinking()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_reads_and_every_choice_has_its_reason_and_source() {
        for (name, text) in ALL {
            let document = Document::read(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!document.about.is_empty() && !document.streams.is_empty(), "{name}");
            for told in document.told() {
                assert!(!told.reason.is_empty() && told.source.starts_with("https://"), "{name}: {told:?}");
            }
            assert!(document.notes.iter().all(|note| note.source.starts_with("https://")), "{name}");
        }
        let names: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
        assert_eq!(super::super::parse::PROFILE.expected.matches(", ").count() + 2, names.len() + 1);
        assert!(names.iter().all(|name| super::super::parse::PROFILE.expected.contains(name)));
    }

    #[test]
    fn the_default_asks_for_nothing() {
        assert!(named("openai").expect("built in").profile.is_plain());
        assert!(!named("mistral").expect("built in").profile.is_plain());
    }

    #[test]
    fn models_that_refuse_hidden_reasoning_are_known_where_they_are_served() {
        let check = |profile: &str, model: &str, expected: bool| {
            assert_eq!(
                named(profile).expect("built in").unthinking.have(model),
                expected,
                "{profile} {model}"
            );
        };
        for profile in ["openai", "azure", "openrouter"] {
            for model in
                ["gpt-4.1", "openai/gpt-4o-mini", "gpt-3.5-turbo", "gpt-5-chat-latest", "chatgpt-4o-latest"]
            {
                check(profile, model, true);
            }
            for model in ["gpt-5", "gpt-5-mini", "o3", "o4-mini", "gpt-oss-120b"] {
                check(profile, model, false);
            }
        }
        check("vllm", "gpt-4.1", false);
    }

    #[test]
    fn a_line_that_does_not_exist_is_an_error() {
        assert!(Document::read("about='a'\nstreams='b'\n[colour]\nis='red'\nreason=''\nsource=''").is_err());
        assert!(Document::read("about='a'\nstreams='b'\n[ids]\nis='nine'").is_err(), "no reason");
        assert_eq!(named("opanai"), Err(String::new()));
    }
}
