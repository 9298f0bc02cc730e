//! Which tools and calls are transfers, and where they go: by name, and by the
//! shape of their parameters where nobody listed the name.

mod prose;
mod words;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use wildmatch::WildMatch;

pub use prose::{Confirmation, Trace, announces_transfer, is_confirmation, is_refusal};

use crate::engine::view::Tool;
use crate::engine::wire::{Name, names};

/// How this deployment names its transfers.
#[derive(Clone, Debug)]
pub struct Naming {
    /// Patterns that the operator named; their parameters do not matter.
    listed: Vec<WildMatch>,
    /// Patterns that are no transfer whatever else matches.
    excluded: Vec<WildMatch>,
    /// Patterns of transfers that leave the run's agents, for instance to a person.
    terminal: Vec<WildMatch>,
}

impl Default for Naming {
    fn default() -> Self {
        Naming::new(&[], &[], None)
    }
}

/// So many names that are no transfer's are remembered while a body is looked through.
const UNKNOWN_NAMES: usize = 16;

/// Where a transfer goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    /// The agent's name as the tool or the argument spells it.
    pub name: String,
    /// The same without a number at its end, where it has one: ag2 counts a sender's conditions
    /// (`refunds_1`), but an agent may also be called so. Whoever knows the agents decides.
    pub uncounted: Option<String>,
    /// Where the name stood.
    pub from: Spelled,
}

/// Where a destination's name stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spelled {
    /// In the tool's name.
    InName,
    /// In an argument.
    InArgument,
}

/// A transfer tool on offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its place in the list of tools.
    pub tool: usize,
    /// Where it can go.
    pub to: Offered,
}

/// Where a transfer tool on offer can go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offered {
    /// To the agent in its name.
    Named(Destination),
    /// To one of those that its schema lists.
    OneOf(Vec<String>),
    /// To whatever an argument says; the schema lists nobody.
    Open,
}

/// Why a name is taken for a transfer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Listed,
    ByDefault,
}

impl Naming {
    /// Operator's patterns (globs, case does not matter) beside the built-in ones. `terminal`: none for the
    /// built-in list.
    pub fn new(listed: &[String], excluded: &[String], terminal: Option<&[String]>) -> Naming {
        let terminal = match terminal {
            Some(patterns) => globs(patterns),
            None => globs(words::TERMINAL),
        };
        Naming { listed: globs(listed), excluded: globs(excluded), terminal }
    }

    /// Whether a tool on offer moves control to another agent.
    pub fn is_transfer_tool(&self, tool: &Tool<'_>) -> bool {
        match self.known(&tool.name) {
            None => false,
            Some(Known::Listed) => true,
            Some(Known::ByDefault) => {
                tool.description.as_deref().is_some_and(is_generated)
                    || match tool.parameters.as_deref() {
                        None => fits_shape(&tool.name, std::iter::empty()),
                        Some(schema) => match properties(schema) {
                            Some(names) => {
                                fits_shape(&tool.name, names.iter().map(|(name, _)| name.as_str()))
                            }
                            None => false,
                        },
                    }
            }
        }
    }

    /// Whether more may be asked in a transfer tool's parameters: the operator listed it, or they say nothing
    /// but why and where to.
    pub fn may_be_asked(&self, tool: &Tool<'_>) -> bool {
        match self.known(&tool.name) {
            None => false,
            Some(Known::Listed) => true,
            Some(Known::ByDefault) => {
                let names = tool.parameters.as_deref().map_or_else(|| Some(Vec::new()), properties);
                names.is_some_and(|names| fits_shape(&tool.name, names.iter().map(|(name, _)| name.as_str())))
            }
        }
    }

    /// Whether a call in the history moved control, or tried to. The tool may no longer be on offer, so the
    /// arguments stand for its parameters; a result that confirms the very transfer outweighs them.
    pub fn is_transfer_call(&self, name: &str, arguments: &str, result: Option<&str>) -> bool {
        match self.known(name) {
            None => false,
            Some(Known::Listed) => true,
            Some(Known::ByDefault) => {
                let confirmed = || {
                    let agent = result.and_then(is_confirmation)?.agent?;
                    Some(self.destination(name, arguments)?.is(&agent))
                };
                let written = members(arguments);
                fits_shape(name, written.keys().map(String::as_str)) || confirmed() == Some(true)
            }
        }
    }

    /// Where a call to this tool goes; none where it does not say.
    pub fn destination(&self, name: &str, arguments: &str) -> Option<Destination> {
        let written = members(arguments);
        let argued = || {
            words::DESTINATION.iter().find_map(|word| {
                let (_, value) = written.iter().find(|(key, _)| snake(key) == *word)?;
                let agent: String = serde_json::from_str(value.get()).ok()?;
                let agent = agent.trim();
                (!agent.is_empty()).then(|| Destination {
                    name: agent.to_owned(),
                    uncounted: None,
                    from: Spelled::InArgument,
                })
            })
        };
        let Some(rest) = self.named(name) else { return argued() };
        let spelled = snake(&rest);
        let named = || Some(Destination::in_name(rest.clone()));
        if words::PLACEHOLDERS.contains(&spelled.as_str()) {
            argued()
        } else if words::KINDS.contains(&spelled.as_str()) || written.keys().any(|key| snake(key) == spelled)
        {
            argued().or_else(named)
        } else {
            named()
        }
    }

    /// The transfer tools among `tools`, and where each can go.
    pub fn offers(&self, tools: &[Tool<'_>]) -> Vec<Offer> {
        tools
            .iter()
            .enumerate()
            .filter(|(_, tool)| self.is_transfer_tool(tool))
            .map(|(index, tool)| Offer { tool: index, to: self.offered(tool) })
            .collect()
    }

    /// Whether the transfer leaves the run's agents: it is final when it is released.
    pub fn is_terminal(&self, name: &str, destination: Option<&Destination>) -> bool {
        matches_any(&self.terminal, name)
            || destination.is_some_and(|destination| matches_any(&self.terminal, &destination.name))
    }

    /// What a message of prose tells of a transfer, if that is all it tells.
    pub fn quoted_transfer(&self, text: &str) -> Option<Trace> {
        prose::quoted_transfer(text, &|name| self.known(name).is_some())
    }

    /// Whether a body can call or offer a transfer at all, told by its bytes alone: false only where it
    /// certainly does not.
    pub fn may_be_named_in(&self, body: &[u8]) -> bool {
        // A list calls the same few tools again and again.
        let mut unknown: Vec<&[u8]> = Vec::new();
        names(body).any(|name| match name {
            Name::Unclear => true,
            Name::Plain(name) if unknown.contains(&name) => false,
            Name::Plain(name) => {
                let is_known = std::str::from_utf8(name).is_ok_and(|name| self.known(name).is_some());
                if unknown.len() < UNKNOWN_NAMES {
                    unknown.push(name);
                }
                is_known
            }
        })
    }

    fn known(&self, name: &str) -> Option<Known> {
        if matches_any(&self.excluded, name) {
            None
        } else if matches_any(&self.listed, name) {
            Some(Known::Listed)
        } else {
            let known = without_namespace(name, |tail| direction(tail).or_else(|| by_argument(tail)));
            (known.is_some() || name.starts_with(words::AGENT_PREFIX)).then_some(Known::ByDefault)
        }
    }

    /// The destination in the name; none where an argument has it.
    fn named(&self, name: &str) -> Option<String> {
        if names_argument(name) {
            return None;
        }
        if let Some(rest) = default_direction(name).or_else(|| name.strip_prefix(words::AGENT_PREFIX)) {
            return (!rest.is_empty()).then(|| rest.to_owned());
        }
        // A name of the operator's own: what the pattern's last star stands for, else the whole name.
        let pattern = self.listed.iter().find(|glob| glob.matches(name))?.pattern();
        let rest = match pattern.strip_suffix('*') {
            Some(head) if !head.contains(['*', '?']) => name.get(head.len()..).unwrap_or(name),
            _ => name,
        };
        Some(if rest.is_empty() { name } else { rest }.to_owned())
    }

    fn offered(&self, tool: &Tool<'_>) -> Offered {
        let properties = tool.parameters.as_deref().and_then(properties).unwrap_or_default();
        let argument = words::DESTINATION
            .iter()
            .find_map(|word| properties.iter().find(|(name, _)| snake(name) == *word))
            .map(|(_, schema)| schema);
        let named = self.named(&tool.name).filter(|rest| {
            let rest = snake(rest);
            let is_kind = words::KINDS.contains(&rest.as_str());
            let overruled =
                argument.is_some() && (is_kind || properties.iter().any(|(name, _)| snake(name) == rest));
            !overruled && !words::PLACEHOLDERS.contains(&rest.as_str())
        });
        match named {
            Some(rest) => Offered::Named(Destination::in_name(rest)),
            None => argument.and_then(listed_values).map_or(Offered::Open, Offered::OneOf),
        }
    }
}

impl Destination {
    /// Whether this is the agent of that name, however it is spelled.
    pub fn is(&self, agent: &str) -> bool {
        same_agent(&self.name, agent)
            || self.uncounted.as_deref().is_some_and(|uncounted| same_agent(uncounted, agent))
    }

    /// The destination that a tool has by its name alone.
    pub fn of_tool(name: &str) -> Destination {
        Destination::in_name(
            default_direction(name).filter(|rest| !rest.is_empty()).unwrap_or(name).to_owned(),
        )
    }

    fn in_name(rest: String) -> Destination {
        let uncounted = rest
            .rsplit_once('_')
            .filter(|(head, count)| {
                !head.is_empty() && !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit())
            })
            .map(|(head, _)| head.to_owned());
        Destination { name: rest, uncounted, from: Spelled::InName }
    }
}

/// Names of agents longer than this may have been cut by the client to fit a tool's name.
const CUT_LENGTH: usize = 40;

/// Whether two spellings mean one agent: case, everything but letters and digits, and a final `agent` do not
/// count. Clients write letters outside ASCII as `_` and cut long names.
pub fn same_agent(a: &str, b: &str) -> bool {
    let (a, b) = (bare_name(a), bare_name(b));
    if a.is_empty() || b.is_empty() {
        return false;
    }
    a == b || (a.is_ascii() != b.is_ascii() && ascii(&a) == ascii(&b)) || is_cut(&a, &b) || is_cut(&b, &a)
}

fn is_cut(short: &str, long: &str) -> bool {
    short.len() >= CUT_LENGTH && long.starts_with(short)
}

fn ascii(name: &str) -> String {
    name.chars().filter(char::is_ascii).collect()
}

fn bare_name(name: &str) -> String {
    let bare: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    match bare.strip_suffix("agent") {
        Some(head) if !head.is_empty() => head.to_owned(),
        _ => bare,
    }
}

fn globs<S: AsRef<str>>(patterns: &[S]) -> Vec<WildMatch> {
    patterns.iter().map(|pattern| WildMatch::new_case_insensitive(pattern.as_ref())).collect()
}

fn matches_any(globs: &[WildMatch], name: &str) -> bool {
    globs.iter().any(|glob| glob.matches(name))
}

/// The destination behind a direction in the name, with or without a namespace before it.
fn default_direction(name: &str) -> Option<&str> {
    without_namespace(name, direction)
}

/// Whether the whole name is one that says its destination in an argument.
fn names_argument(name: &str) -> bool {
    without_namespace(name, by_argument).is_some()
}

/// What follows a direction.
fn direction(tail: &str) -> Option<&str> {
    words::DIRECTIONS.iter().find_map(|direction| after_words(tail, direction))
}

/// The nothing that follows a name whose destination is an argument.
fn by_argument(tail: &str) -> Option<&str> {
    words::BY_ARGUMENT.iter().find_map(|form| after_words(tail, form)).filter(|rest| rest.is_empty())
}

/// Tries the name, then what stands behind each mark that may end a namespace.
fn without_namespace<'n>(name: &'n str, test: impl Fn(&'n str) -> Option<&'n str>) -> Option<&'n str> {
    let name = name.strip_prefix(words::OUTPUT_FUNCTION).unwrap_or(name);
    test(name).or_else(|| {
        words::NAMESPACE_MARKS.iter().find_map(|mark| {
            let mut tails = tails(name, mark);
            let first = tails.next()?;
            test(first).or_else(|| test(tails.last()?))
        })
    })
}

/// What stands behind each of these marks.
fn tails<'n>(name: &'n str, mark: &'n str) -> impl Iterator<Item = &'n str> {
    let begins = mark.as_bytes().first();
    let mut free = 0;
    name.bytes().enumerate().filter(move |(_, byte)| Some(byte) == begins).filter_map(move |(at, _)| {
        let tail = name.get(at..)?.strip_prefix(mark).filter(|_| at >= free)?;
        free = name.len() - tail.len();
        Some(tail)
    })
}

/// What follows these words at the start of `name`; case and separators between words do not count.
fn after_words<'n>(name: &'n str, direction: &[&str]) -> Option<&'n str> {
    let mut rest = name;
    for word in direction {
        let (head, tail) = without_separators(rest).split_at_checked(word.len())?;
        if !head.eq_ignore_ascii_case(word) {
            return None;
        }
        rest = tail;
    }
    let bare = without_separators(rest);
    (rest.is_empty() || bare.len() < rest.len() || rest.starts_with(char::is_uppercase)).then_some(bare)
}

fn without_separators(name: &str) -> &str {
    name.trim_start_matches(is_separator)
}

fn is_separator(c: char) -> bool {
    matches!(c, '_' | '-' | ' ')
}

/// Whether parameters of these names are a transfer's: nothing but what one agent tells another, where to go,
/// or a contract.
fn fits_shape<'p>(tool: &str, parameters: impl Iterator<Item = &'p str>) -> bool {
    let names: Vec<String> = parameters.map(snake).collect();
    if declares_contract(&names) {
        return true;
    }
    if default_direction(tool).is_none() && !names_argument(tool) {
        // `agent-<key>`: nothing but its one prompt tells it from a tool about agents.
        return names.iter().any(|name| name == words::AGENT_PARAMETER)
            && names.iter().all(|name| is_message(name));
    }
    if names_argument(tool) && !names.iter().any(|name| words::DESTINATION.contains(&name.as_str())) {
        return false;
    }
    names.iter().all(|name| {
        is_message(name)
            || words::DESTINATION.contains(&name.as_str())
            || words::CONTRACT.contains(&name.as_str())
    })
}

fn declares_contract(names: &[String]) -> bool {
    let has = |list: &[&str]| names.iter().filter(|name| list.contains(&name.as_str())).count();
    has(words::FACTS) > 0 || has(&[words::HANDOFF_PROPERTY]) > 0 || has(words::CONTRACT) >= 3
}

/// Whether a parameter of this name takes what one agent tells another: `reason`, `task_summary`,
/// `reason_for_transfer`; not `message_id`.
pub fn is_message(name: &str) -> bool {
    let ends =
        |word: &&str| name == *word || name.strip_suffix(*word).is_some_and(|head| head.ends_with('_'));
    let begins = |word: &&str| {
        name.strip_prefix(*word).and_then(|rest| rest.strip_prefix('_')).is_some_and(|rest| {
            rest.split_once('_').is_some_and(|(next, _)| words::CONNECTIVES.contains(&next))
        })
    };
    words::MESSAGE.iter().any(|word| ends(word) || begins(word))
}

/// `customerId`, `Customer ID` and `customer-id` as `customer_id`.
fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut before = None;
    for c in name.chars() {
        if is_separator(c) || c == '.' {
            snake.push('_');
        } else if c.is_uppercase() {
            if before.is_some_and(|b: char| b.is_lowercase() || b.is_ascii_digit()) {
                snake.push('_');
            }
            snake.extend(c.to_lowercase());
        } else {
            snake.push(c);
        }
        before = Some(c);
    }
    snake
}

fn is_generated(description: &str) -> bool {
    globs(words::DESCRIPTIONS).iter().any(|glob| glob.matches(description.trim()))
}

/// The properties of an object schema; none where it is not readable as one.
fn properties(schema: &str) -> Option<Vec<(String, Value)>> {
    if matches!(schema.trim(), "null" | "") {
        return Some(Vec::new());
    }
    let Ok(Value::Object(mut schema)) = serde_json::from_str(schema) else { return None };
    match schema.remove("properties") {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Object(properties)) => Some(properties.into_iter().collect()),
        Some(_) => None,
    }
}

/// The strings that a property's schema allows, where it lists them.
fn listed_values(schema: &Value) -> Option<Vec<String>> {
    let strings = |list: &Value| -> Option<Vec<String>> {
        let list: Vec<String> =
            list.as_array()?.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect();
        (!list.is_empty()).then_some(list)
    };
    schema
        .get("enum")
        .and_then(strings)
        .or_else(|| schema.get("const").and_then(Value::as_str).map(|only| vec![only.to_owned()]))
        .or_else(|| schema.get("anyOf").and_then(Value::as_array)?.iter().find_map(listed_values))
}

/// The members of a call's arguments; empty where they are no object.
fn members(arguments: &str) -> BTreeMap<String, &RawValue> {
    serde_json::from_str(arguments).unwrap_or_default()
}

#[cfg(test)]
mod tests;
