//! What the customer forbade or limited, in the customer's own sentences.

/// Sentences that are kept.
const MOST: usize = 5;
/// Bytes of a sentence; longer ones are no rule but a story.
const LONGEST: usize = 300;

/// The sentences of these turns that carry a prohibition or a limit, word for word, in the order they were
/// said; at most five, the plainest ones first to be kept, later ones before earlier.
pub fn limits<'a>(turns: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<(u8, usize, &str)> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for (order, sentence) in turns.flat_map(sentences).enumerate() {
        let plain = Plain::of(sentence);
        let strength = plain.strength();
        if strength == 0 || sentence.len() > LONGEST {
            continue;
        }
        // Said twice is said once; the later place counts.
        if let Some(at) = seen.iter().position(|text| *text == plain.text) {
            found.remove(at);
            seen.remove(at);
        }
        found.push((strength, order, sentence));
        seen.push(plain.text);
    }
    found.sort_by_key(|&(strength, order, _)| std::cmp::Reverse((strength, order)));
    found.truncate(MOST);
    found.sort_by_key(|&(_, order, _)| order);
    found.into_iter().map(|(_, _, sentence)| sentence).collect()
}

/// The customer's own will, wherever it stands in a sentence.
const REFUSALS: &[&str] = &[
    "i do not want",
    "i don't want",
    "i dont want",
    "we do not want",
    "we don't want",
    "i do not wish",
    "i don't wish",
    "i do not agree",
    "i don't agree",
    "i do not accept",
    "i don't accept",
    "i will not accept",
    "i won't accept",
    "i do not consent",
    "i don't consent",
    "i refuse",
    "not willing to",
    "prefer not to",
    "rather not",
    "must not",
    "mustn't",
    "should not",
    "shouldn't",
    "may not",
    "under no circumstances",
    "by no means",
    "not under any",
    "not okay with",
    "not ok with",
    "no longer want",
    "i do not need",
    "i don't need",
];
/// A command not to do something, where nobody is its subject: `please do not call me`.
const COMMANDS: &[&str] = &["do not", "don't", "dont", "never"];
/// Words that make such a mark a statement: `I don't know`.
const SUBJECTS: &[&str] = &[
    "i", "we", "you", "they", "he", "she", "it", "this", "that", "these", "those", "who", "which", "and",
    "why", "also", "just", "really", "still", "to",
];
/// What may stand between the start of a clause and such a mark.
const OPENERS: &[&str] = &["please", "and", "but", "so", "also", "then", "just", "kindly", "again", "again,"];
/// Conditions of a consent.
const CONDITIONS: &[&str] = &[
    "unless",
    "only if",
    "only when",
    "as long as",
    "provided that",
    "on the condition",
    "on condition",
    "except for",
    "nothing else",
    "no one else",
    "nobody else",
    "before you do",
    "before proceeding",
    "before you proceed",
    "before finalizing",
    "without asking",
    "without checking",
    "without telling",
    "without my",
];
/// A restriction to one thing.
const ONLY: &[&str] = &["only", "nothing but", "no other"];
/// Bounds that need a number near behind them.
const BOUNDS: &[&str] = &[
    "at most",
    "at least",
    "no more than",
    "not more than",
    "no less than",
    "no fewer than",
    "no later than",
    "no earlier than",
    "less than",
    "fewer than",
    "cheaper than",
    "under",
    "below",
    "above",
    "up to",
    "within",
    "within the",
    "within my",
    "before",
    "after",
    "until",
    "by",
    "maximum of",
    "max of",
    "minimum of",
    "max",
    "maximum",
    "limit of",
    "limit is",
    "budget of",
    "budget is",
    "not exceed",
    "exceed",
    "exceeding",
    "only have",
    "only afford",
    "afford",
    "spend",
    "not over",
    "not above",
];
/// What such a number may be besides digits.
const TIMES: &[&str] = &[
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "today",
    "tomorrow",
    "tonight",
    "noon",
    "midnight",
    "january",
    "february",
    "march",
    "april",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "weekend",
    "christmas",
];
/// Bounds that are one wherever the sentence has a number.
const MEASURES: &[&str] =
    &["budget", "limit", "maximum", "at most", "not exceed", "\u{2264}", "or less", "or fewer", "or more"];
/// Words between a bound and its number.
const BETWEEN: usize = 3;

/// A sentence as it is compared: lower case, plain apostrophes, single spaces.
struct Plain {
    text: String,
    /// Where a phrase can begin: not inside a word. Found out once, since many phrases are looked for.
    begins: Vec<usize>,
    /// The bytes that stand there: a set of bits, for ASCII; all that is left of most phrases.
    firsts: u128,
    question: bool,
}

impl Plain {
    fn of(sentence: &str) -> Plain {
        let text = sentence.to_lowercase().replace(['\u{2019}', '\u{2bc}'], "'");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut before = ' ';
        let begins = text.char_indices().filter(|&(_, c)| !is_inside(std::mem::replace(&mut before, c)));
        let begins: Vec<usize> = begins.map(|(at, _)| at).collect();
        let firsts = begins.iter().fold(0, |firsts, at| firsts | bit(text.as_bytes()[*at]));
        Plain { question: text.ends_with('?'), begins, firsts, text }
    }

    /// How plainly it forbids or limits; 0 where it does not.
    fn strength(&self) -> u8 {
        if self.is_bound() {
            return 3;
        }
        if self.question {
            return 0;
        }
        if self.has(REFUSALS) || self.commands() {
            3
        } else if self.has(CONDITIONS) || self.keeps_doing_without() {
            2
        } else {
            u8::from(self.restricts())
        }
    }

    fn has(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.places(phrase).next().is_some())
    }

    /// Where a phrase stands at the border of words.
    fn places<'s>(&'s self, phrase: &'s str) -> impl Iterator<Item = usize> + 's {
        let ends = |behind: &str| !behind.starts_with(is_inside);
        let may_begin = phrase.bytes().next().is_some_and(|first| self.firsts & bit(first) != 0);
        let begins = if may_begin { self.begins.as_slice() } else { &[] };
        begins.iter().copied().filter(move |&at| self.text[at..].strip_prefix(phrase).is_some_and(ends))
    }

    fn commands(&self) -> bool {
        COMMANDS.iter().any(|mark| self.places(mark).any(|at| is_command(&self.text[..at])))
    }

    /// `change the seat without touching the dates`.
    fn keeps_doing_without(&self) -> bool {
        self.places("without").any(|at| {
            let next = self.text[at + "without".len()..].split_whitespace().next().unwrap_or_default();
            next.trim_matches(|c: char| !c.is_alphanumeric()).ends_with("ing")
        })
    }

    fn restricts(&self) -> bool {
        let says_will = self.has(&["want", "wish", "like", "need", "change", "cancel", "please", "keep"]);
        self.has(ONLY) && (says_will || self.text.split(' ').count() <= 12)
    }

    fn is_bound(&self) -> bool {
        let number = |word: &str| {
            let word =
                word.trim_matches(|c: char| matches!(c, ',' | '.' | '!' | '?' | ';' | ':' | '(' | ')' | '"'));
            word.chars().any(|c| c.is_ascii_digit()) || TIMES.contains(&word)
        };
        let near = |phrase: &str| {
            self.places(phrase).any(|at| {
                let behind = self.text[at + phrase.len()..].split(' ').filter(|word| !word.is_empty());
                behind.take(BETWEEN).any(number)
            })
        };
        if self.has(MEASURES) && self.text.split(' ').any(number) {
            return true;
        }
        // In a question a bound is most often what is asked about, unless it is one of money.
        BOUNDS.iter().any(|bound| near(bound))
            && (!self.question || self.text.contains(['$', '\u{20ac}', '\u{a3}']))
    }
}

/// The bit of a byte; all that are not ASCII share one.
fn bit(byte: u8) -> u128 {
    1 << byte.min(127)
}

/// Whether it stands inside a word, not between two.
fn is_inside(c: char) -> bool {
    c.is_alphanumeric() || c == '\''
}

/// Whether what stands before the mark leaves it a command: nothing of its clause, or only an opener.
fn is_command(before: &str) -> bool {
    let clause = before
        .rsplit([',', ';', ':', '(', '-', '\u{2013}', '\u{2014}', '\u{2022}'])
        .next()
        .unwrap_or_default();
    let mut words = clause.split_whitespace().peekable();
    if words.peek().is_some_and(|first| SUBJECTS.contains(first) && !OPENERS.contains(first)) {
        return false;
    }
    words.all(|word| OPENERS.contains(&word))
        || before.trim_end().ends_with(" and please")
        || before.ends_with("please ")
}

/// The sentences of a text, trimmed, without list marks.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = sentence_end(rest);
        let (sentence, tail) = rest.split_at(end);
        rest = tail;
        Some(sentence)
    })
    .map(|sentence| {
        sentence
            .trim_start_matches(|c: char| {
                c.is_whitespace() || matches!(c, '-' | '*' | '\u{2022}' | '\u{2013}')
            })
            .trim_end()
    })
    .filter(|sentence| !sentence.is_empty())
}

/// Where the first sentence ends: behind a closing mark that white space follows, or at a line's end.
fn sentence_end(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|&(_, next)| next);
        let closes = matches!(c, '.' | '!' | '?') && next.is_none_or(char::is_whitespace);
        if c == '\n' || closes {
            return at + c.len_utf8();
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(turn: &str, expected: &[&str]) {
        assert_eq!(limits([turn].into_iter()), expected, "{turn}");
    }

    /// Each sentence is a limit by itself.
    fn check_each(all: &[&str], is_limit: bool) {
        for sentence in all {
            assert_eq!(!limits([*sentence].into_iter()).is_empty(), is_limit, "{sentence}");
        }
    }

    #[test]
    fn prohibitions_and_limits_are_found() {
        check_each(
            &[
                "Please don't call my office.",
                "Do not charge the old card again.",
                "And please never send it by post!",
                "I don\u{2019}t want a voucher.",
                "I'd rather not share my birthday.",
                "Repair it, but don't open the case.",
                "The whole repair must stay under $80.",
                "Could you find one for less than \u{20ac}40?",
                "I need it no later than Friday.",
                "It has to arrive by 3 March.",
                "My budget is 250 for all of it.",
                "Book it only if the window seat is free.",
                "Unless it is covered, leave it.",
                "Move the appointment without changing the doctor.",
                "I only want the blue one cancelled.",
                "Check with me before you proceed.",
                "The total should not exceed 90 euros.",
                "I can spend 60 at most.",
            ],
            true,
        );
    }

    #[test]
    fn excuses_and_questions_are_no_limits() {
        check_each(
            &[
                "I don't know the number.",
                "I don't have it with me right now.",
                "I'm not sure which one it was.",
                "It doesn't work any more.",
                "You don't seem to understand me.",
                "Why do not you have it?",
                "What is the limit for bags?",
                "Is there anything else before you go?",
                "I have never been there.",
                "The parcel came after all.",
                "The total is more than $90.",
                "Thank you!",
                "",
            ],
            false,
        );
    }

    #[test]
    fn sentences_are_quoted_word_for_word() {
        check(
            "Hi there.  My lamp (no. 4.5) broke!\n- Do NOT send a new one.\n\u{2022} Thanks",
            &["Do NOT send a new one."],
        );
        check("Keep it under 4.50 please. Bye", &["Keep it under 4.50 please."]);
    }

    #[test]
    fn five_are_kept_the_plainest_and_latest() {
        let turns = [
            "Only the red ones, please.",
            "Don't paint it. Don't wax it. Don't wash it. Don't move it.",
            "Don't paint it. Never sell it. Don't lend it.",
        ];
        let expected =
            ["Don't wash it.", "Don't move it.", "Don't paint it.", "Never sell it.", "Don't lend it."];
        assert_eq!(limits(turns.into_iter()), expected);
        check(&format!("Don't {}.", "go on ".repeat(60)), &[]);
    }
}
