//! Asks a sender for the contract: one property more in the parameters of its
//! transfer tools, and that property out of what it generated again.

use super::contract::{self, Fields, declares_contract};
use super::detect::{Naming, Offer};
use crate::engine::view::Tool;
use crate::engine::wire::object::{has_member, member, with_element, with_member, without_member};

/// Names for the property, the preferred one first. A client may have taken one.
const NAMES: [&str; 4] = ["handoff", "seam_handoff", "handoff_contract", "seam_handoff_contract"];
/// Words of JSON Schema at the top of the parameters that say more than a list of properties: what one
/// property more would mean beside them is not clear.
const COMBINED: [&str; 9] =
    ["$ref", "anyOf", "oneOf", "allOf", "not", "if", "maxProperties", "propertyNames", "dependentRequired"];

/// What the senders of one request are asked, and how to take it out of their calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The property's name, the same in every tool.
    pub property: &'static str,
    /// The tools that have it, in the request's order.
    pub tools: Vec<AskedTool>,
}

/// A transfer tool with the property in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedTool {
    /// Its place in the list of tools.
    pub tool: usize,
    /// Its name.
    pub name: String,
    /// The JSON schema of its parameters, with the property.
    pub parameters: String,
    /// Whether the client declared no parameter of its own.
    pub bare: bool,
}

/// What a sender generated, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The arguments that the client's own schema declares, as the bytes they were.
    pub declared: String,
    /// All that was said, the contract under a name that a reader of contracts knows; none where the
    /// property was left out.
    pub said: Option<String>,
}

/// Asks for the contract in those of the offered transfer tools that do not declare one. `takes` tells
/// tools with parameters from others. None where there is nothing to ask.
pub fn ask(
    tools: &[Tool<'_>],
    offers: &[Offer],
    naming: &Naming,
    fields: Fields,
    takes: impl for<'t> Fn(&Tool<'t>) -> bool,
) -> Option<Asked> {
    let silent: Vec<(usize, &Tool<'_>)> = offers
        .iter()
        .filter_map(|offer| Some((offer.tool, tools.get(offer.tool)?)))
        .filter(|(_, tool)| {
            takes(tool)
                && naming.may_be_asked(tool)
                && !tool.parameters.as_deref().is_some_and(declares_contract)
                && with_property(tool.parameters.as_deref(), NAMES[0], "{}").is_some()
        })
        .collect();
    let free = |name: &&str| {
        silent.iter().all(|(_, tool)| !tool.parameters.as_deref().is_some_and(|own| declares(own, name)))
    };
    let property = NAMES.into_iter().find(|name| free(name))?;
    let mut asked: Vec<AskedTool> = Vec::new();
    for (at, tool) in silent {
        let schema =
            asked.first().map_or_else(|| contract::schema(fields), |first| reference(property, &first.name));
        let parameters = with_property(tool.parameters.as_deref(), property, &schema)?;
        let bare = !tool
            .parameters
            .as_deref()
            .and_then(|own| member(own, "properties"))
            .is_some_and(|own| own.contains(':'));
        asked.push(AskedTool { tool: at, name: tool.name.clone().into_owned(), parameters, bare });
    }
    (!asked.is_empty()).then_some(Asked { property, tools: asked })
}

impl Asked {
    /// Whether a tool of this name was given the property.
    pub fn asks(&self, tool: &str) -> bool {
        self.tools.iter().any(|asked| asked.name == tool)
    }

    /// Whether the client's own schema of this tool declares no parameter.
    pub fn is_bare(&self, tool: &str) -> bool {
        self.tools.iter().any(|asked| asked.name == tool && asked.bare)
    }

    /// Takes a call's arguments apart. None where its tool was not given the property, or where the
    /// arguments are no object.
    pub fn take(&self, tool: &str, arguments: &str) -> Option<Taken> {
        if !self.asks(tool) {
            return None;
        }
        if arguments.trim().is_empty() {
            return Some(Taken { declared: arguments.to_owned(), said: None });
        }
        if let Some((declared, contract)) = without_member(arguments, self.property) {
            let said = contract.last().and_then(|_| self.readable(arguments));
            return Some(Taken { declared, said });
        }
        // Some models encode their arguments twice.
        let inner: String = serde_json::from_str(arguments).ok()?;
        let (declared, contract) = without_member(&inner, self.property)?;
        let said = contract.last().and_then(|_| self.readable(&inner));
        Some(Taken { declared: serde_json::to_string(&declared).ok()?, said })
    }

    /// The arguments with the contract under the name by which contracts are known.
    fn readable(&self, arguments: &str) -> Option<String> {
        if self.property == NAMES[0] {
            return Some(arguments.to_owned());
        }
        // The client's own parameter of that name is not a contract: it was looked at before another was taken.
        let value = member(arguments, self.property)?;
        let (rest, _) = without_member(arguments, self.property)?;
        let (rest, _) = without_member(&rest, NAMES[0])?;
        with_member(&rest, NAMES[0], value)
    }
}

/// The property of a further tool: the same, as text, by the name of the tool that shows the form.
fn reference(property: &str, first: &str) -> String {
    serde_json::json!({"type": "string", "description": format!("JSON, as {property} of {first}")})
        .to_string()
}

fn declares(schema: &str, property: &str) -> bool {
    member(schema, "properties").is_some_and(|own| has_member(own, property))
}

/// The parameters with one required property more. None where they cannot take it.
fn with_property(parameters: Option<&str>, name: &str, schema: &str) -> Option<String> {
    let own = parameters.map(str::trim).filter(|own| !matches!(*own, "" | "null"));
    let is_bare = own.is_none_or(|own| own.trim_start_matches('{').trim() == "}");
    let Some(own) = own.filter(|_| !is_bare) else {
        let name = serde_json::Value::from(name);
        return Some(format!(
            r#"{{"type":"object","properties":{{{name}:{schema}}},"required":[{name}],"additionalProperties":false}}"#
        ));
    };
    if COMBINED.iter().any(|word| has_member(own, word))
        || !matches!(member(own, "type"), None | Some(r#""object""#))
    {
        return None;
    }
    let properties = match member(own, "properties") {
        None | Some("null") => with_member("{}", name, schema)?,
        Some(properties) => with_member(properties, name, schema)?,
    };
    let quoted = serde_json::Value::from(name).to_string();
    let required = match member(own, "required") {
        None | Some("null") => format!("[{quoted}]"),
        Some(required) => with_element(required, &quoted)?,
    };
    with_member(&with_member(own, "properties", &properties)?, "required", &required)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::Value;

    use super::*;

    fn tool<'t>(name: &'t str, parameters: Option<&'t str>) -> Tool<'t> {
        Tool {
            name: Cow::Borrowed(name),
            description: None,
            parameters: parameters.map(Cow::Borrowed),
            span: 0..0,
        }
    }

    fn asked(tools: &[Tool<'_>]) -> Option<Asked> {
        let naming = Naming::new(&["hand_to_bank".into()], &[], None);
        ask(tools, &naming.offers(tools), &naming, Fields::Core, |_| true)
    }

    /// The parameters of one transfer tool with the property in them, written as `CORE`.
    #[track_caller]
    fn check(name: &str, parameters: Option<&str>, expected: Option<&str>) {
        let asked = asked(&[tool("look_up", None), tool(name, parameters)]);
        let got =
            asked.map(|asked| asked.tools[0].parameters.replace(&contract::schema(Fields::Core), "CORE"));
        assert_eq!(got.as_deref(), expected, "{name} {parameters:?}");
    }

    #[test]
    fn parameters_of_every_form_take_one_required_property() {
        let fresh = r#"{"type":"object","properties":{"handoff":CORE},"required":["handoff"],"additionalProperties":false}"#;
        check("transfer_to_till", None, Some(fresh));
        check("transfer_to_till", Some("null"), Some(fresh));
        check("transfer_to_till", Some(" { } "), Some(fresh));
        check(
            "transfer_to_till",
            Some(r#"{"properties": {}, "type": "object"}"#),
            Some(r#"{"properties": {"handoff":CORE}, "type": "object","required":["handoff"]}"#),
        );
        check(
            "transfer_to_till",
            Some(r#"{"additionalProperties":false,"type":"object","properties":{},"required":[]}"#),
            Some(
                r#"{"additionalProperties":false,"type":"object","properties":{"handoff":CORE},"required":["handoff"]}"#,
            ),
        );
        check(
            "handoff",
            Some(
                r#"{"properties":{"to_agent":{"type":"string"},"reason":{"type":"string"}},"required":["to_agent","reason"],"type":"object"}"#,
            ),
            Some(
                r#"{"properties":{"to_agent":{"type":"string"},"reason":{"type":"string"},"handoff":CORE},"required":["to_agent","reason","handoff"],"type":"object"}"#,
            ),
        );
    }

    #[test]
    fn only_listed_tools_and_those_that_say_why_or_where_are_asked() {
        check("transfer_to_account", Some(r#"{"properties":{"iban":{},"amount":{}}}"#), None);
        check("look_at", None, None);
        check(
            "hand_to_bank",
            Some(r#"{"properties":{"iban":{}}}"#),
            Some(r#"{"properties":{"iban":{},"handoff":CORE},"required":["handoff"]}"#),
        );
        check("transfer_to_till", Some(r#"{"properties":{"facts":{"type":"array"}}}"#), None);
        check("transfer_to_till", Some(r##"{"$ref":"#/$defs/A","$defs":{}}"##), None);
        check("transfer_to_till", Some(r#"{"type":"object","maxProperties":0}"#), None);
        check("transfer_to_till", Some("not a schema"), None);
    }

    #[test]
    fn further_tools_refer_to_the_first() {
        let asked = asked(&[tool("transfer_to_till", None), tool("transfer_to_bay", None)]).expect("asked");
        let second: Value = serde_json::from_str(&asked.tools[1].parameters).expect("JSON");
        assert_eq!(second["properties"]["handoff"]["type"], "string");
        let text = second["properties"]["handoff"]["description"].as_str().expect("a description");
        assert!(text.contains("transfer_to_till"), "{text}");
    }

    #[test]
    fn a_name_that_is_taken_is_left_to_the_client() {
        let own = r#"{"properties":{"handoff":{"type":"string"}}}"#;
        let asked =
            asked(&[tool("transfer_to_till", Some(own)), tool("transfer_to_bay", None)]).expect("asked");
        assert_eq!(asked.property, "seam_handoff");
        let call = r#"{"handoff":"north","seam_handoff":{"task":"Pay."}}"#;
        let taken = asked.take("transfer_to_till", call).expect("an object");
        assert_eq!(taken.declared, r#"{"handoff":"north"}"#);
        assert_eq!(taken.said.as_deref(), Some(r#"{"handoff":{"task":"Pay."}}"#));
    }

    #[test]
    fn what_was_asked_is_taken_out_of_the_arguments() {
        let asked = asked(&[tool("transfer_to_till", None)]).expect("asked");
        let check = |arguments: &str, declared: Option<&str>, said: bool| {
            let taken = asked.take("transfer_to_till", arguments);
            assert_eq!(taken.as_ref().map(|taken| taken.declared.as_str()), declared, "{arguments}");
            assert_eq!(taken.is_some_and(|taken| taken.said.is_some()), said, "{arguments}");
        };
        check(r#"{"handoff": {"task": "x"}}"#, Some("{}"), true);
        check(r#"{"reason": "r", "handoff": {}}"#, Some(r#"{"reason": "r"}"#), true);
        check(r#"{"reason": 1.50}"#, Some(r#"{"reason": 1.50}"#), false);
        check("", Some(""), false);
        check("{}", Some("{}"), false);
        check(r#""{\"handoff\":{},\"a\":1}""#, Some(r#""{\"a\":1}""#), true);
        check("[1]", None, false);
        check(r#"{"handoff":"#, None, false);
        assert_eq!(asked.take("look_up", "{}"), None);
    }

    /// Tokens that a text takes, by the o200k encoding.
    fn tokens(text: &str) -> usize {
        bpe_openai::o200k_base().count(text)
    }

    #[test]
    fn the_question_costs_few_tokens() {
        let cost = |fields: Fields, further: usize| {
            let bare = r#"{"properties": {}, "type": "object"}"#;
            let names: Vec<String> = (0..=further).map(|n| format!("transfer_to_department_{n}")).collect();
            let tools: Vec<Tool<'_>> = names.iter().map(|name| tool(name, Some(bare))).collect();
            let naming = Naming::default();
            let asked = ask(&tools, &naming.offers(&tools), &naming, fields, |_| true).expect("asked");
            tokens(&asked.tools[further].parameters) - tokens(bare)
        };
        let (core, next, full) = (cost(Fields::Core, 0), cost(Fields::Core, 1), cost(Fields::Full, 0));
        println!("core {core}, further tool {next}, full {full} tokens (o200k)");
        assert!(core <= 300, "core: {core}");
        assert!(next <= 60, "further tool: {next}");
        assert!(full <= 500, "full: {full}");
    }
}
