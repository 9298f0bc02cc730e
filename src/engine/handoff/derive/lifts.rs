//! Whether a customer has taken back what they forbade, in their own words.

use super::limits::sentences;
use crate::engine::handoff::contract::plain;

/// Words that give leave, or take something back.
const LEAVE: &[&str] = &[
    "after all",
    "you can",
    "you may",
    "you could",
    "feel free to",
    "go ahead",
    "it is fine",
    "it's fine",
    "it is ok",
    "it's ok",
    "it is okay",
    "it's okay",
    "no problem if you",
    "i don't mind",
    "i do not mind",
    "please do",
    "no longer matters",
    "never mind",
    "nevermind",
    "forget what i said",
    "ignore what i said",
    "i changed my mind",
    "i've changed my mind",
    "i have changed my mind",
];
/// Words that keep a prohibition up, whatever else the sentence says.
const DENIALS: &[&str] = &["not", "don't", "dont", "never", "no", "cannot", "can't", "without"];
/// Words that begin like a denial and are none.
const NO_DENIALS: &[&str] = &["no problem", "never mind", "don't mind", "do not mind", "no longer matters"];

/// Whether one of these turns, behind the one that has `rule` in it, takes the rule back: a sentence that
/// gives leave, denies nothing, and names what the rule is about.
pub fn is_lifted<'a>(rule: &str, turns: impl Iterator<Item = &'a str> + Clone) -> bool {
    let wanted = plain(rule);
    let stated = turns.clone().position(|turn| plain(turn).contains(&wanted));
    let subjects = subjects(&wanted);
    turns.skip(stated.map_or(0, |at| at + 1)).flat_map(sentences).any(|sentence| {
        let sentence = plain(sentence);
        LEAVE.iter().any(|leave| sentence.contains(leave))
            && !denies(&sentence)
            && words(&sentence).any(|word| subjects.iter().any(|subject| is_alike(subject, word)))
    })
}

fn denies(sentence: &str) -> bool {
    let mut rest = sentence.to_owned();
    for harmless in NO_DENIALS {
        rest = rest.replace(harmless, "");
    }
    words(&rest).any(|word| DENIALS.contains(&word))
}

/// The words of a rule that say what it is about.
fn subjects(rule: &str) -> Vec<&str> {
    const COMMON: &[&str] = &[
        "please", "never", "about", "this", "that", "with", "want", "would", "could", "should", "there",
        "their", "them", "before", "after", "until", "under", "over", "more", "than", "only", "your", "mine",
        "have", "will", "from",
    ];
    words(rule).filter(|word| word.len() >= 4 && !COMMON.contains(word)).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty())
}

/// One word in another form: `email`, `emails`, `emailed`.
fn is_alike(a: &str, b: &str) -> bool {
    let stem = a.len().min(b.len());
    stem >= 4 && a.len().abs_diff(b.len()) <= 3 && a.as_bytes()[..stem] == b.as_bytes()[..stem]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(turns: &[&str], lifted: bool) {
        let rule = "Please don't phone my office.";
        assert_eq!(is_lifted(rule, turns.iter().copied()), lifted, "{turns:?}");
    }

    #[test]
    fn leave_for_the_same_thing_lifts() {
        check(&["Please don't phone my office. Thanks.", "You can phone me after all."], true);
        check(&["Please don't phone my office.", "I changed my mind about the office, it's fine."], true);
        check(&["Please don't phone my office.", "I don't mind if you phone."], true);
    }

    #[test]
    fn anything_else_does_not() {
        check(&["Please don't phone my office."], false);
        check(&["Please don't phone my office.", "You can write to me."], false);
        check(&["Please don't phone my office.", "You can write, but do not phone."], false);
        check(&["You can phone me.", "Please don't phone my office."], false);
    }
}
