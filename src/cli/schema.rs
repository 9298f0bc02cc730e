//! `seam schema`: prints the contract that senders are asked for.

use std::process::ExitCode;

use clap::{Arg, ArgMatches};

use super::{Subcommand, print};
use crate::config::Source;
use crate::engine::handoff::contract::{self, Fields};

pub(super) const COMMAND: Subcommand = Subcommand {
    name: "schema",
    about: "Print the JSON schema of the contract that senders are asked for",
    arguments: |command| {
        let fields =
            Arg::new("fields").long("fields").value_name("WHICH").help("Which fields of the contract");
        command.arg(fields.value_parser(["core", "full"]).default_value("core"))
    },
    run,
};

fn run(arguments: &ArgMatches, _: &dyn Source) -> ExitCode {
    let is_full = arguments.get_one::<String>("fields").is_some_and(|fields| fields == "full");
    print(&text(if is_full { Fields::Full } else { Fields::Core }));
    ExitCode::SUCCESS
}

/// The schema of `fields`, indented, for people and for tools that generate code from it.
fn text(fields: Fields) -> String {
    indented(&contract::schema(fields))
}

/// Compact JSON, indented. The order of the keys is kept: a model fills them in that order.
fn indented(json: &str) -> String {
    let mut text = String::with_capacity(json.len() * 2);
    let mut depth = 0;
    let mut in_string = false;
    let mut escaped = false;
    for c in json.chars() {
        let was_escaped = escaped;
        escaped = in_string && c == '\\' && !was_escaped;
        in_string ^= c == '"' && !was_escaped;
        match c {
            '{' | '[' if !in_string => {
                depth += 1;
                text.push(c);
                line(&mut text, depth);
            }
            '}' | ']' if !in_string => {
                depth -= 1;
                line(&mut text, depth);
                text.push(c);
            }
            ',' if !in_string => {
                text.push(c);
                line(&mut text, depth);
            }
            ':' if !in_string => text.push_str(": "),
            c => text.push(c),
        }
    }
    text.push('\n');
    text
}

fn line(text: &mut String, depth: usize) {
    text.push('\n');
    text.push_str(&"  ".repeat(depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_the_contract() {
        for fields in [Fields::Core, Fields::Full] {
            let printed: serde_json::Value = serde_json::from_str(&text(fields)).unwrap();
            let asked: serde_json::Value = serde_json::from_str(&contract::schema(fields)).unwrap();
            assert_eq!(printed, asked);
        }
        assert_eq!(
            indented(r#"{"a":["x, \"y\": {",1],"b":{}}"#).lines().nth(2),
            Some(r#"    "x, \"y\": {","#)
        );
    }

    /// The file is for reading without a build; write it anew with `cargo run -- schema > config/contract.schema.json`.
    #[test]
    fn the_file_in_config_is_the_contract() {
        assert_eq!(include_str!("../../config/contract.schema.json"), text(Fields::Core));
    }
}
