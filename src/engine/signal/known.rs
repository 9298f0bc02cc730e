//! What is known of a run when it moves, by what people call it.

use std::borrow::Cow;

use crate::engine::handoff::value::fold::{Words, singular};
use crate::engine::handoff::verify::Fact;

/// A value that is known, and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// What it is called, in folded words without those that only say *number* or *id*.
    pub noun: Vec<String>,
    /// Whether it is an identifier: people ask for its number, code or id.
    pub id: bool,
    /// The value.
    pub value: String,
    /// Whether the customer said it.
    pub said: bool,
    /// The fact's key; none where only the customer said it.
    pub key: Option<String>,
}

/// The values that are known when a run moves.
#[derive(Clone, Debug, Default)]
pub struct Known {
    slots: Vec<Slot>,
}

/// Slots that are kept.
const MOST: usize = 200;
/// Bytes of a customer's turn that are read.
const TURN: usize = 8 << 10;

impl Known {
    /// What the facts of a handoff and the customer's own turns tell. Facts that failed their check are not
    /// known.
    pub fn of<'t>(facts: &[Fact], turns: impl Iterator<Item = &'t str> + Clone) -> Known {
        let mut slots: Vec<Slot> = turns.clone().flat_map(said).take(MOST).collect();
        let spoken: Vec<Words> = turns.map(|turn| Words::of(bounded(turn))).collect();
        let was_said = |value: &str| {
            let value = Words::of(value);
            spoken.iter().any(|turn| stands_in(turn, &value))
        };
        for fact in facts.iter().filter(|fact| fact.outcome.holds()).take(MOST) {
            let value = fact.claim.value.text.trim();
            let by_key = fact.claim.key.as_deref().and_then(called);
            if let Some((noun, id)) = by_key.filter(|(noun, _)| noun != &["name"] || is_somebody(fact)) {
                let key = fact.claim.key.clone();
                slots.push(Slot { noun, id, value: value.to_owned(), said: was_said(value), key });
            }
            if let Some((kind, name)) = fact.claim.of.as_deref().and_then(|of| of.rsplit_once(' '))
                && let Some((noun, _)) = called(kind)
            {
                let key = Some(kind.to_owned());
                slots.push(Slot { noun, id: true, value: name.to_owned(), said: was_said(name), key });
            }
        }
        slots.truncate(MOST);
        Known { slots }
    }

    /// All of them.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The one value that is known under this name: where there are several, the one that the customer said.
    pub(super) fn only(&self, noun: &[String], id: bool) -> Option<&Slot> {
        let fits = |slot: &&Slot| slot.noun == noun && slot.id == id;
        one(self.slots.iter().filter(fits))
            .or_else(|| one(self.slots.iter().filter(fits).filter(|slot| slot.said)))
    }
}

/// Whether what a fact is about is a person, as far as is said.
fn is_somebody(fact: &Fact) -> bool {
    const PEOPLE: [&str; 6] = ["user", "passenger", "guest", "patient", "recipient", "account"];
    let kind = fact
        .claim
        .of
        .as_deref()
        .and_then(|of| of.rsplit_once(' '))
        .map(|(kind, _)| canonical(&Words::of(kind)));
    kind.is_none_or(|kind| kind.iter().any(|word| PEOPLE.contains(&word.as_str())))
}

/// The first of them, if all have one value.
fn one<'s>(mut slots: impl Iterator<Item = &'s Slot>) -> Option<&'s Slot> {
    let first = slots.next()?;
    let value = Words::of(&first.value).text;
    slots.all(|slot| Words::of(&slot.value).text == value).then_some(first)
}

/// Whether words stand in a text one behind the other.
pub(super) fn stands_in(text: &Words, words: &Words) -> bool {
    let (count, all) = (words.len(), words.window(0..words.len()));
    count > 0 && !all.is_empty() && (0..text.len()).any(|at| text.window(at..at + count) == all)
}

/// The words of a text by which people may call different things the same: one word for all.
pub(super) fn canonical(words: &Words) -> Vec<String> {
    let mut out: Vec<String> = Vec::with_capacity(words.len());
    for word in words.iter() {
        let word = singular(word);
        let last = out.last().map(String::as_str);
        let word = match (last, &*word) {
            (Some("e"), "mail") | (Some("postal"), "code") => {
                out.pop();
                if &*word == "mail" { "email" } else { "zip" }
            }
            (Some("zip" | "email"), "code" | "address")
            | (Some("phone"), "phone" | "number")
            | (Some("date"), "of") => continue,
            (_, "mail") => "email",
            (_, "postcode") => "zip",
            (_, "telephone" | "mobile" | "cell") => "phone",
            (_, "reservation") => "booking",
            (_, "purchase") => "order",
            (_, "customer" | "member" | "client") => "user",
            (_, "username") => {
                out.push("user".to_owned());
                ID
            }
            (_, "id" | "number" | "no" | "nr" | "num" | "code" | "reference" | "ref" | "identifier") => ID,
            (Some("first" | "last" | "full" | "sur" | "family" | "given"), "name") => {
                out.pop();
                "name"
            }
            (_, "surname") => "name",
            (_, "dob" | "birthday" | "birthdate") => "birth",
            (Some("date"), "birth") => {
                out.pop();
                "birth"
            }
            (_, other) => other,
        };
        if out.last().is_none_or(|last| last != word) {
            out.push(word.to_owned());
        }
    }
    out
}

/// The word for all words that say that an identifier is meant.
pub(super) const ID: &str = "number";
/// What people are asked for by these names alone.
pub(super) const CONTACTS: [&str; 6] = ["email", "zip", "phone", "name", "birth", "address"];

/// What a key calls its value: its last part, with the one before it where that says nothing.
fn called(key: &str) -> Option<(Vec<String>, bool)> {
    let parts: Vec<&str> = key.rsplit(['.', '/']).take(2).collect();
    let mut words = canonical(&Words::of(parts.first()?));
    if words == [ID] || words == ["name"] {
        let before = parts.get(1).map(|part| canonical(&Words::of(part))).unwrap_or_default();
        if words == [ID] || !matches!(before.last().map(String::as_str), None | Some("user" | "name")) {
            words = before.into_iter().chain(words).collect();
        }
    }
    if words.last().is_some_and(|last| CONTACTS.contains(&last.as_str())) && is_own(&words) {
        words.drain(..words.len() - 1);
    }
    let id = words.len() > 1 && words.last().is_some_and(|last| last == ID);
    if id {
        words.pop();
    }
    let says_something = words.iter().any(|word| word.chars().all(char::is_alphabetic) && word.len() > 1);
    says_something.then_some((words, id))
}

/// Whether a contact is the customer's own: `shipping_address` and `user_email` are, `product_name` is not.
fn is_own(words: &[String]) -> bool {
    const OWN: [&str; 8] =
        ["user", "shipping", "delivery", "billing", "home", "contact", "passenger", "guest"];
    words[..words.len() - 1].iter().all(|word| OWN.contains(&word.as_str()))
}

/// What a customer's turn tells: its mail address, its name, and what looks like an identifier, by the words
/// before it.
fn said(turn: &str) -> Vec<Slot> {
    let turn = bounded(turn);
    let mut slots = Vec::new();
    let mut before: Vec<Cow<'_, str>> = Vec::new();
    let mut rest = turn;
    while let Some((token, behind)) = next_token(rest) {
        rest = behind;
        let bare = token.trim_matches(|c: char| !c.is_alphanumeric());
        let slot = |noun: &str, id: bool, value: &str| Slot {
            noun: vec![noun.to_owned()],
            id,
            value: value.to_owned(),
            said: true,
            key: None,
        };
        if bare.contains('@') && bare.contains('.') {
            slots.push(slot("email", false, bare));
            before.clear();
        } else if is_identifier(bare) || bare.contains(char::is_whitespace) {
            let words = canonical(&Words::of(&before.join(" ")));
            let noun = words.iter().rev().find(|word| !is_filler(word)).map(String::as_str);
            if let Some(noun) = noun {
                let contact = CONTACTS.contains(&noun);
                slots.push(slot(noun, !contact, bare));
            }
            before.clear();
        } else {
            before.push(Cow::Borrowed(token));
            if before.len() > 6 {
                before.remove(0);
            }
            if token.ends_with(['.', '?', '!']) {
                before.clear();
            }
        }
    }
    slots.extend(own_name(turn));
    slots
}

/// The first word of a text, or all the words of an identifier that is written in groups, and what is behind.
fn next_token(text: &str) -> Option<(&str, &str)> {
    /// Groups of an identifier: an IBAN has nine.
    const GROUPS: usize = 10;
    let text = text.trim_start();
    let end_of_word = |from: usize| text[from..].find(char::is_whitespace).map_or(text.len(), |at| from + at);
    let first = end_of_word(0);
    let (mut end, mut last) = (first, first);
    for _ in 1..GROUPS {
        // Punctuation behind a group ends the identifier.
        if end == text.len() || !text[..end].ends_with(|c: char| c.is_ascii_alphanumeric()) {
            break;
        }
        end = end_of_word(end + text[end..].chars().next().map_or(0, char::len_utf8));
        let groups = text[..end].trim_end_matches(|c: char| !c.is_alphanumeric());
        if is_spaced(groups.split(' ')) {
            last = end;
        }
    }
    (first > 0).then(|| text.split_at(last))
}

/// Whether words are the groups of one identifier, like those of a licence plate or a telephone number.
pub(super) fn is_spaced<'w>(groups: impl Iterator<Item = &'w str>) -> bool {
    const WORDS: [&str; 12] = ["I", "A", "ID", "NO", "OK", "UK", "US", "USA", "PIN", "ZIP", "MY", "IS"];
    let (mut count, mut length, mut digits) = (0, 0, false);
    for group in groups {
        let number = group.bytes().all(|b| b.is_ascii_digit());
        let letters = group.len() <= 4 && group.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
        if group.is_empty() || group.len() > 6 || !(number || letters) || WORDS.contains(&group) {
            return false;
        }
        count += 1;
        length += group.len();
        digits |= number;
    }
    count > 1 && length >= 6 && digits
}

/// The name in *my name is Ada Obi*.
fn own_name(turn: &str) -> Option<Slot> {
    let lower = turn.to_ascii_lowercase();
    let at = lower.find("my name is ").map(|at| at + 11)?;
    let name: Vec<&str> = turn
        .get(at..)?
        .split_whitespace()
        .take(3)
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .take_while(|word| word.chars().next().is_some_and(char::is_uppercase))
        .collect();
    let noun = vec!["name".to_owned()];
    (!name.is_empty()).then(|| Slot { noun, id: false, value: name.join(" "), said: true, key: None })
}

/// Whether a word stands between what something is called and its identifier and calls nothing itself.
fn is_filler(word: &str) -> bool {
    const FILLERS: [&str; 22] = [
        ID, "is", "it", "its", "my", "the", "with", "for", "was", "a", "an", "and", "of", "s", "under", "as",
        "to", "on", "here", "in", "that", "this",
    ];
    FILLERS.contains(&word)
}

/// Whether a word looks like an identifier: at least four characters with a digit, neither amount nor date.
pub(super) fn is_identifier(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let plain = word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'#'));
    let dashes = word.bytes().filter(|b| *b == b'-').count();
    let letters = word.bytes().any(|b| b.is_ascii_alphabetic());
    let ordinal = ["st", "nd", "rd", "th", "am", "pm"].iter().any(|end| word.ends_with(end)) && digits < 3;
    plain && digits > 0 && word.len() >= 4 && !ordinal && (letters || dashes == 0 && digits >= 4)
}

fn bounded(turn: &str) -> &str {
    &turn[..turn.floor_char_boundary(TURN)]
}
