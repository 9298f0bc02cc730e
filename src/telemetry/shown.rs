//! Names as people who run Seam may see them: keys and paths that a model
//! wrote can hold what was said.

/// Bytes of a name or a path, as it is shown.
pub(crate) const NAME: usize = 128;

/// A key or a path that a model wrote, only where it reads like one.
pub(crate) fn name(text: &str) -> &str {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'[' | b']' | b' ');
    let plain = text.len() <= NAME && text.bytes().all(is_plain) && text.split(' ').count() <= 3;
    if plain { text } else { "(not shown)" }
}

/// The head of a name that somebody else chose the length of.
pub(crate) fn head(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_a_sentence_is_not_shown() {
        let check = |text: &str, expected: &str| assert_eq!(name(text), expected);
        check("order.status", "order.status");
        check("established[2].evidence", "established[2].evidence");
        check("item 4", "item 4");
        check("the customer is very angry", "(not shown)");
        check("mail: a@b.example", "(not shown)");
        check(&"a".repeat(NAME + 1), "(not shown)");
    }
}
