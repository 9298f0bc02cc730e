//! `seam schema`: prints the contract that senders are asked for.

use std::io::{self, Write};

use crate::engine::handoff::contract::{self, Fields};

/// Writes the schema of `fields` to `out`, indented, for people and for tools that generate code from it.
pub fn run(fields: Fields, out: &mut impl Write) -> io::Result<()> {
    out.write_all(indented(&contract::schema(fields)).as_bytes())
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

    fn printed(fields: Fields) -> String {
        let mut out = Vec::new();
        run(fields, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_printed_is_the_contract() {
        for fields in [Fields::Core, Fields::Full] {
            let printed: serde_json::Value = serde_json::from_str(&printed(fields)).unwrap();
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
        assert_eq!(include_str!("../../config/contract.schema.json"), printed(Fields::Core));
    }
}
