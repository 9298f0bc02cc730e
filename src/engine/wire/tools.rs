//! Gives tools on offer other parameters, by splicing. A tool keeps its fields
//! under `function` (Chat), or beside its name (Responses, legacy functions).

use super::object::{has_member, member, with_member};
use crate::engine::view::{Plan, Span, Tool, View};

/// Whether a tool is called with arguments that a schema describes: not if its input is free text, nor if it
/// runs at the provider's.
pub fn takes_parameters(body: &[u8], tool: &Tool<'_>) -> bool {
    let text = body.get(tool.span.clone()).and_then(|raw| std::str::from_utf8(raw).ok()).unwrap_or_default();
    let kind = member(text, "type");
    !has_member(text, "custom")
        && matches!(kind, None | Some(r#""function""#))
        && (has_member(text, "function") || has_member(text, "name"))
}

/// What `plan` makes of the tools in `body`, which `view` was read from.
pub(super) fn edits(body: &[u8], view: &View<'_>, plan: &Plan) -> Vec<(Span, Vec<u8>)> {
    let edited = |(tool, parameters): &(usize, String)| {
        let span = view.tools.get(*tool)?.span.clone();
        let text = std::str::from_utf8(body.get(span.clone())?).ok()?;
        Some((span, with_parameters(text, parameters)?.into_bytes()))
    };
    plan.parameters.iter().filter_map(edited).collect()
}

fn with_parameters(tool: &str, parameters: &str) -> Option<String> {
    match member(tool, "function") {
        Some(function) => with_member(tool, "function", &with_member(function, "parameters", parameters)?),
        None => with_member(tool, "parameters", parameters),
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::view::{Dialect, Plan};
    use crate::engine::wire::{self, takes_parameters};

    /// A body with one tool, which gets other parameters where it takes any.
    fn check(dialect: Dialect, tool: &str, expected: Option<&str>) {
        let list = if dialect == Dialect::Chat { "messages" } else { "input" };
        let body = |tool: &str| format!(r#"{{"{list}": [], "tools" : [ {tool} ],"x":1}}"#);
        let sent = body(tool);
        let view = wire::read(sent.as_bytes(), dialect).expect(tool);
        let taken = takes_parameters(sent.as_bytes(), &view.tools[0]);
        assert_eq!(taken, expected.is_some(), "{tool}");
        if let Some(expected) = expected {
            let plan = Plan { parameters: vec![(0, r#"{"p":1}"#.to_owned())], ..Plan::default() };
            let got = wire::apply(sent.as_bytes(), &view, &plan);
            assert_eq!(std::str::from_utf8(&got), Ok(body(expected).as_str()));
        }
    }

    #[test]
    fn tools_of_every_form_get_other_parameters_and_keep_the_rest() {
        check(
            Dialect::Chat,
            r#"{"type":"function", "function": {"parameters" : {}, "name":"f","strict":true}}"#,
            Some(r#"{"type":"function", "function": {"parameters" : {"p":1}, "name":"f","strict":true}}"#),
        );
        check(
            Dialect::Chat,
            r#"{"type":"function","function":{"name":"f"}}"#,
            Some(r#"{"type":"function","function":{"name":"f","parameters":{"p":1}}}"#),
        );
        check(Dialect::Chat, r#"{"name":"f"}"#, Some(r#"{"name":"f","parameters":{"p":1}}"#));
        check(
            Dialect::Responses,
            r#"{"type":"function","name":"f","parameters":null}"#,
            Some(r#"{"type":"function","name":"f","parameters":{"p":1}}"#),
        );
        check(Dialect::Chat, r#"{"type":"custom","custom":{"name":"f"}}"#, None);
        check(Dialect::Responses, r#"{"type":"custom","name":"f"}"#, None);
        check(Dialect::Responses, r#"{"type":"web_search"}"#, None);
    }
}
