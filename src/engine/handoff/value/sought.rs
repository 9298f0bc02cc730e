//! A value that is looked for, prepared once for many comparisons.

use std::borrow::Cow;

use super::fold::{self, Words};
use super::moment::Moment;
use super::number::Number;
use crate::engine::handoff::evidence::{Document, Keys, Kind, Limits, read};

/// How a value was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// Letter by letter.
    Exact,
    /// Written another way.
    Rewritten,
}

/// The value that is looked for.
pub(crate) struct Sought<'v> {
    text: &'v str,
    sketch: Sketch,
    forms: Forms,
    /// The value read as a list or object, where it is JSON of that kind.
    tree: Option<(Document, Keys)>,
}

/// What a text says, read in every way that it allows.
struct Forms {
    /// Folded, separators as single spaces.
    line: String,
    number: Option<Number>,
    moments: Vec<Moment>,
    truth: Option<bool>,
    nothing: bool,
}

impl Forms {
    fn of(text: &str) -> Forms {
        let folded = fold::fold(text);
        let folded = folded.trim();
        let digits = folded.bytes().any(|b| b.is_ascii_digit());
        Forms {
            line: line(folded),
            number: if digits { Number::read(folded) } else { None },
            moments: if digits { Moment::read(folded) } else { Vec::new() },
            truth: truth(folded),
            nothing: nothing(folded),
        }
    }

    fn same(&self, other: &Forms) -> bool {
        self.line == other.line
            || matches!((&self.number, &other.number), (Some(a), Some(b)) if a.same(b))
            || (self.truth.is_some() && self.truth == other.truth)
            || self.moments.iter().any(|a| other.moments.iter().any(|b| a.same(b)))
            || (self.nothing && other.nothing)
    }
}

/// What two spellings of one value have in common, cheap to tell.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sketch {
    /// A hash of letters and digits, case left out.
    pub(crate) letters: u64,
    /// A hash of the digits, without zeros at either end; 0 without any but zeros.
    pub(crate) amount: u64,
    /// How many digits.
    digits: u32,
}

impl Sketch {
    pub(crate) fn of(text: &str) -> Sketch {
        let mut sketch = Sketch::default();
        let mut zeros = 0u32;
        for byte in text.bytes() {
            if !byte.is_ascii_alphanumeric() {
                continue;
            }
            sketch.letters = step(sketch.letters, byte.to_ascii_lowercase());
            if !byte.is_ascii_digit() {
                continue;
            }
            sketch.digits += 1;
            if byte == b'0' {
                zeros += 1;
                continue;
            }
            if sketch.amount != 0 {
                for _ in 0..zeros {
                    sketch.amount = step(sketch.amount, b'0');
                }
            }
            zeros = 0;
            sketch.amount = step(sketch.amount, byte);
        }
        sketch
    }
}

/// Whether a text is spelled like `1.5e3`.
fn is_scientific(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-' | b' ');
    text.bytes().all(plain) && text.bytes().any(|b| matches!(b, b'e' | b'E'))
}

fn step(hash: u64, byte: u8) -> u64 {
    (hash.rotate_left(5) ^ u64::from(byte)).wrapping_mul(0x517c_c1b7_2722_0a95)
}

/// A list or object is compared up to this many elements.
const ELEMENTS: usize = 512;

impl<'v> Sought<'v> {
    /// Prepares a value; `quoted` says that it was a JSON string.
    pub(crate) fn new(text: &'v str, quoted: bool) -> Sought<'v> {
        let tree = (!quoted || text.trim_start().starts_with(['[', '{'])).then_some(text).and_then(tree);
        Sought { text, sketch: Sketch::of(text), forms: Forms::of(text), tree }
    }

    /// Prepares a text.
    pub(crate) fn of_text(text: &'v str) -> Sought<'v> {
        Sought { text, sketch: Sketch::of(text), forms: Forms::of(text), tree: None }
    }

    /// Whether the value is a day or a time, which may be written in several words.
    pub(crate) fn is_moment(&self) -> bool {
        !self.forms.moments.is_empty()
    }

    /// What all spellings of the value have in common.
    pub(crate) fn sketch(&self) -> Sketch {
        self.sketch
    }

    /// The value as it was written.
    pub(crate) fn text(&self) -> &'v str {
        self.text
    }

    /// Whether a text is this value.
    pub(crate) fn matches_text(&self, text: &str) -> Option<Match> {
        if text == self.text {
            return Some(Match::Exact);
        }
        if text.len() > self.text.len() * 4 + 32 || !self.may_be(text) {
            return None;
        }
        self.forms.same(&Forms::of(text)).then_some(Match::Rewritten)
    }

    /// Whether a text can be this value at all, told without reading it as anything.
    fn may_be(&self, text: &str) -> bool {
        if !text.is_ascii() || !self.text.is_ascii() {
            return true;
        }
        let sketch = Sketch::of(text);
        sketch.letters == self.sketch.letters
            // The same amount has the same digits, up to zeros at its ends; noise has many of them.
            || (self.forms.number.is_some()
                && (sketch.amount == self.sketch.amount
                    || sketch.digits.max(self.sketch.digits) >= 15
                    || is_scientific(text)
                    || is_scientific(self.text)))
            || (!self.forms.moments.is_empty() && sketch.digits > 0)
            || (self.forms.truth.is_some() && text.len() <= 7)
            || (self.forms.nothing && text.len() <= 12)
    }

    /// Whether a node of a result holds this value.
    pub(crate) fn matches(&self, document: &Document, node: u32, keys: &Keys) -> Option<Match> {
        match document.node(node).kind {
            Kind::Text | Kind::Number | Kind::Prose => self
                .matches_text(&document.value(node))
                .filter(|_| !self.text.is_empty() || document.node(node).len == 0),
            Kind::Null => self.forms.nothing.then_some(Match::Exact),
            Kind::Bool => self.matches_truth(document, node, keys),
            Kind::Array => self.matches_list(document, node).then_some(self.spelling(document, node)),
            Kind::Object | Kind::Region => {
                self.matches_object(document, node, keys).then_some(self.spelling(document, node))
            }
        }
    }

    fn spelling(&self, document: &Document, node: u32) -> Match {
        if document.raw(node) == self.text { Match::Exact } else { Match::Rewritten }
    }

    /// A truth value: the same, in a word for it, or the key itself (`available`, `not available`).
    fn matches_truth(&self, document: &Document, node: u32, keys: &Keys) -> Option<Match> {
        let raw = document.raw(node);
        if raw == self.text {
            return Some(Match::Exact);
        }
        let truth = raw.eq_ignore_ascii_case("true");
        if let Some(said) = self.forms.truth {
            return (said == truth).then_some(Match::Rewritten);
        }
        let said = Words::of(&self.forms.line);
        let key = keys[document.node(node).key].words();
        if key.is_empty() {
            return None;
        }
        let denied = said.text.strip_prefix("not").or_else(|| said.text.strip_prefix("un"));
        let bare = said.text == key.text || key.text.strip_prefix("is").is_some_and(|rest| rest == said.text);
        let means = if bare { Some(true) } else { denied.filter(|rest| *rest == key.text).map(|_| false) };
        (means == Some(truth)).then_some(Match::Rewritten)
    }

    /// A list: the same elements in any order, as a list or joined by commas or `and`.
    fn matches_list(&self, document: &Document, node: u32) -> bool {
        let elements: Vec<Cow<'_, str>> =
            document.children(node).take(ELEMENTS + 1).map(|child| document.value(child)).collect();
        if elements.is_empty() {
            return self.forms.nothing || self.tree.as_ref().is_some_and(|(tree, _)| tree.nodes.len() <= 2);
        }
        if elements.len() > ELEMENTS || !document.children(node).all(|child| document.is_leaf(child)) {
            return false;
        }
        let said: Vec<Cow<'_, str>> = match &self.tree {
            Some((tree, _)) => match tree.children(0).next() {
                Some(top) if tree.node(top).kind == Kind::Array => {
                    tree.children(top).take(ELEMENTS + 1).map(|child| tree.value(child)).collect()
                }
                _ => return false,
            },
            None => parts(self.text).into_iter().map(Cow::Borrowed).collect(),
        };
        same_set(&said, &elements) || (self.tree.is_none() && same_words(self.text, &elements))
    }

    /// An object: its values joined in any order, or an object with some of its keys.
    fn matches_object(&self, document: &Document, node: u32, keys: &Keys) -> bool {
        if document.children(node).take(65).count() > 64 {
            return false;
        }
        if let Some((tree, tree_keys)) = &self.tree {
            let Some(top) = tree.children(0).next() else { return false };
            let mut said = tree.children(top).peekable();
            return said.peek().is_some()
                && said.all(|child| {
                    let key = &tree_keys[tree.node(child).key].words().text;
                    let own = document
                        .children(node)
                        .find(|own| keys[document.node(*own).key].words().text == *key);
                    let value = tree.value(child);
                    own.is_some_and(|own| {
                        document.is_leaf(own)
                            && Sought::new(&value, tree.node(child).kind == Kind::Text)
                                .matches(document, own, keys)
                                .is_some()
                    })
                });
        }
        let values: Vec<Cow<'_, str>> = document
            .children(node)
            .filter(|child| matches!(document.node(*child).kind, Kind::Text | Kind::Number))
            .map(|child| document.value(child))
            .collect();
        values.len() > 1 && same_words(self.text, &values)
    }
}

fn tree(text: &str) -> Option<(Document, Keys)> {
    if !text.trim_start().starts_with(['[', '{']) {
        return None;
    }
    let mut keys = Keys::default();
    let limits = Limits { bytes: 64 << 10, nodes: 2 * ELEMENTS, depth: 8 };
    let document = read(text, &mut keys, limits);
    let tree = document
        .children(0)
        .next()
        .is_some_and(|top| matches!(document.node(top).kind, Kind::Array | Kind::Object));
    tree.then_some((document, keys))
}

/// A folded text with single spaces for spaces, underscores and dashes, none beside punctuation,
/// without a leading `#` or quotes and without a full stop at the end.
fn line(folded: &str) -> String {
    let trimmed = folded.trim_matches(['"', '\'', '`', ' ']);
    let trimmed = trimmed.trim_start_matches('#').trim_end_matches(['.', '!']);
    let mut out = String::with_capacity(trimmed.len());
    let mut gap = false;
    for c in trimmed.chars() {
        let separator = c == ' ' || c == '_' || c.is_whitespace() || (c == '-' && !out.is_empty());
        if separator {
            gap = !out.is_empty();
            continue;
        }
        let punctuation = matches!(c, ',' | ';' | ':' | '/' | '(' | ')' | '&' | '+');
        if gap && !punctuation && !out.ends_with([',', ';', ':', '/', '(', ')', '&', '+']) {
            out.push(' ');
        }
        gap = false;
        out.push(c);
    }
    out
}

fn truth(folded: &str) -> Option<bool> {
    match folded {
        "true" | "yes" | "y" | "t" | "on" => Some(true),
        "false" | "no" | "n" | "f" | "off" => Some(false),
        _ => None,
    }
}

fn nothing(folded: &str) -> bool {
    matches!(
        folded,
        "" | "null" | "none" | "nil" | "n/a" | "na" | "not set" | "empty" | "[]" | "{}" | "undefined"
    )
}

/// The elements of a list that is written as a line.
pub(crate) fn parts(text: &str) -> Vec<&str> {
    text.split([',', ';', '\n', '|'])
        .flat_map(|part| part.split(" and "))
        .flat_map(|part| part.split(" & "))
        .map(|part| part.trim().trim_start_matches("and ").trim())
        .filter(|part| !part.is_empty())
        .take(ELEMENTS + 1)
        .collect()
}

/// Whether both lists have the same elements, in any order.
fn same_set(said: &[Cow<'_, str>], own: &[Cow<'_, str>]) -> bool {
    if said.len() != own.len() {
        return false;
    }
    let mut said: Vec<String> = said.iter().map(|text| canonical(text)).collect();
    let mut own: Vec<String> = own.iter().map(|text| canonical(text)).collect();
    said.sort_unstable();
    own.sort_unstable();
    said == own
}

/// One spelling of whatever the text says.
fn canonical(text: &str) -> String {
    let forms = Forms::of(text);
    match (forms.number, forms.truth) {
        (Some(number), _) => format!("{} {}", number.decimal, number.unit),
        (None, Some(truth)) => truth.to_string(),
        (None, None) => forms.line,
    }
}

/// Whether a line has exactly the words of these values, in any order; `and` may be added.
fn same_words(text: &str, values: &[Cow<'_, str>]) -> bool {
    let joined: usize = values.iter().map(|value| value.len()).sum();
    if text.len() > joined * 2 + 64 {
        return false;
    }
    let sorted = |words: &Words| {
        let mut words: Vec<String> = words.iter().filter(|word| *word != "and").map(str::to_owned).collect();
        words.sort_unstable();
        words
    };
    let said = Words::of(text);
    let mut own = Words::default();
    for value in values {
        own.add(value);
    }
    !said.is_empty() && sorted(&said) == sorted(&own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::handoff::evidence::{Evidence, Happening};

    /// Whether `said` is the value of `own`, the one field of a result.
    fn check(said: &str, own: &str, expected: bool) {
        let result = format!(r#"{{"in_stock":{own}}}"#);
        let call =
            Happening::Call { id: "c", name: "t", arguments: "{}", result: Some(&result), as_of: None };
        let evidence = Evidence::index([call], true);
        let document = &evidence.seen(0).result;
        let node = document.children(1).next().expect("one field");
        let text: Result<String, _> = serde_json::from_str(said);
        let sought = text.as_ref().map_or_else(|_| Sought::new(said, false), |text| Sought::new(text, true));
        assert_eq!(sought.matches(document, node, &evidence.keys).is_some(), expected, "{said} {own}");
    }

    #[test]
    fn spelling_does_not_matter() {
        for (said, own) in [
            (r#""Open Stack""#, r#""open_stack""#),
            (r#"" open  stack. ""#, r#""open-stack""#),
            (r#""E\u2011Book""#, r#""e-book""#),
            (r#""\uff11\uff12""#, "12"),
            (r#""1.2e3""#, "1200"),
            ("1200", r#""1,200.00 EUR""#),
            (r#""L-7""#, r##""#L-7""##),
            (r#""caf\u00e9""#, r#""cafe\u0301""#),
            (r#""none""#, "null"),
            (r#""in stock""#, "true"),
            (r#""not in stock""#, "false"),
            (r#""Yes""#, "true"),
            ("false", r#""no""#),
            (r#""c, a and b""#, r#"["a","b","c"]"#),
            (r#"["c","a"]"#, r#"["a","c"]"#),
            (r#""Ada Obi""#, r#"{"first":"Ada","last":"Obi"}"#),
            (r#"{"last":"obi"}"#, r#"{"first":"Ada","last":"Obi"}"#),
            ("[]", "[]"),
        ] {
            check(said, own, true);
        }
    }

    #[test]
    fn other_values_stay_others() {
        for (said, own) in [
            (r#""open""#, r#""open_stack""#),
            ("12", "120"),
            ("12", r#""1-2""#),
            (r#""5 points""#, r#""-5 points""#),
            (r#""in stock""#, "false"),
            (r#""a and b""#, r#"["a","b","c"]"#),
            (r#"["a"]"#, r#"["a","c"]"#),
            (r#""Ada""#, r#"{"first":"Ada","last":"Obi"}"#),
            (r#"{"last":"obi","age":4}"#, r#"{"first":"Ada","last":"Obi"}"#),
            (r#""""#, r#""x""#),
            ("null", "0"),
            (r#""""#, "false"),
        ] {
            check(said, own, false);
        }
    }
}
