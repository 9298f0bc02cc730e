//! Folding: the form in which texts are compared, whatever their case, width,
//! composition or look-alike characters, and the words they consist of.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfkc_quick};

/// A text in its comparable form: compatibility-composed, lower case, dashes,
/// quotes and spaces of one kind, look-alike letters as Latin ones, invisible
/// characters gone.
pub fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        if text.bytes().any(|b| b.is_ascii_uppercase()) {
            return Cow::Owned(text.to_ascii_lowercase());
        }
        return Cow::Borrowed(text);
    }
    Cow::Owned(plain_text(text).chars().flat_map(char::to_lowercase).collect())
}

/// The same without changing case.
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { Cow::Borrowed(text) } else { Cow::Owned(plain_text(text)) }
}

fn plain_text(text: &str) -> String {
    // To see that a text is composed costs less than to compose it.
    match is_nfkc_quick(text.chars()) {
        IsNormalized::Yes => text.chars().filter_map(look_alike).collect(),
        IsNormalized::No | IsNormalized::Maybe => text.nfkc().filter_map(look_alike).collect(),
    }
}

/// The plain character that a reader takes `c` for; none for an invisible one.
fn look_alike(c: char) -> Option<char> {
    if c.is_ascii() {
        return Some(if c.is_whitespace() { ' ' } else { c });
    }
    Some(match c {
        '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{2069}'
        | '\u{ad}'
        | '\u{180e}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' => return None,
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{2043}' | '\u{fe58}' | '\u{2500}' | '\u{30fc}' => '-',
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{2b9}' | '\u{2bc}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ab}' | '\u{bb}' => '"',
        '\u{2044}' | '\u{2215}' => '/',
        '\u{2236}' => ':',
        // Cyrillic and Greek letters with a Latin twin.
        'а' => 'a',
        'е' => 'e',
        'і' => 'i',
        'ј' => 'j',
        'о' | 'ο' => 'o',
        'р' | 'ρ' => 'p',
        'с' => 'c',
        'ѕ' => 's',
        'у' => 'y',
        'х' | '\u{d7}' => 'x',
        'А' | 'Α' => 'A',
        'В' | 'Β' => 'B',
        'Е' | 'Ε' => 'E',
        'Ζ' => 'Z',
        'Н' | 'Η' => 'H',
        'І' | 'Ι' => 'I',
        'Ј' => 'J',
        'К' | 'Κ' => 'K',
        'М' | 'Μ' => 'M',
        'Ν' => 'N',
        'О' | 'Ο' => 'O',
        'Р' | 'Ρ' => 'P',
        'С' => 'C',
        'Ѕ' => 'S',
        'Т' | 'Τ' => 'T',
        'Х' | 'Χ' => 'X',
        'У' | 'Υ' => 'Y',
        c if c.is_whitespace() => ' ',
        c => c,
    })
}

/// A text as folded words, kept run together: `order_W12.items` is
/// `orderw12items` with the ranges of its three words. Between two digits of
/// different words a dash stays, so that `1-2` is not `12`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The words' characters.
    pub text: String,
    /// Where each word stands in `text`.
    pub spans: Vec<Range<u32>>,
}

impl Words {
    /// Splits at whatever is neither letter nor digit, and where lower case meets upper case.
    pub fn of(text: &str) -> Words {
        let mut words = Words::default();
        words.add(text);
        words
    }

    /// Adds another text's words behind those that are there.
    pub fn add(&mut self, text: &str) {
        self.text.reserve(text.len());
        if text.is_ascii() {
            self.split_ascii(text.as_bytes());
        } else {
            self.split(plain_text(text).chars());
        }
    }

    /// What [`Words::split`] does, for a text of ASCII.
    fn split_ascii(&mut self, text: &[u8]) {
        let mut start: Option<u32> = None;
        let mut was_lower = false;
        for &byte in text {
            let folded = IN_WORDS[usize::from(byte)];
            if let Some(from) = start
                && (folded == 0 || (was_lower && byte.is_ascii_uppercase()))
            {
                self.spans.push(from..self.text.len() as u32);
                start = None;
            }
            was_lower = byte.is_ascii_lowercase();
            if folded == 0 {
                continue;
            }
            if start.is_none() {
                if folded.is_ascii_digit() && self.text.as_bytes().last().is_some_and(u8::is_ascii_digit) {
                    self.text.push('-');
                }
                start = Some(self.text.len() as u32);
            }
            self.text.push(char::from(folded));
        }
        if let Some(from) = start {
            self.spans.push(from..self.text.len() as u32);
        }
    }

    /// Takes all words away and keeps their room.
    pub fn clear(&mut self) {
        self.text.clear();
        self.spans.clear();
    }

    fn split(&mut self, chars: impl Iterator<Item = char>) {
        let mut start: Option<u32> = None;
        let mut was_lower = false;
        for c in chars {
            let word = c.is_alphanumeric();
            if let Some(from) = start
                && (!word || (was_lower && c.is_uppercase()))
            {
                self.spans.push(from..self.text.len() as u32);
                start = None;
            }
            if word {
                if start.is_none() {
                    let digits =
                        c.is_ascii_digit() && self.text.as_bytes().last().is_some_and(u8::is_ascii_digit);
                    if digits {
                        self.text.push('-');
                    }
                    start = Some(self.text.len() as u32);
                }
                if c.is_ascii() {
                    self.text.push(c.to_ascii_lowercase());
                } else {
                    self.text.extend(c.to_lowercase());
                }
            }
            was_lower = c.is_lowercase();
        }
        if let Some(from) = start {
            self.spans.push(from..self.text.len() as u32);
        }
    }

    /// How many words.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The word at `index`; empty beyond the end.
    pub fn word(&self, index: usize) -> &str {
        self.window(index..index + 1)
    }

    /// The words of a range, run together; empty beyond the end.
    pub fn window(&self, range: Range<usize>) -> &str {
        if range.is_empty() || range.end > self.spans.len() {
            return "";
        }
        let (start, end) = (self.spans[range.start].start, self.spans[range.end - 1].end);
        &self.text[start as usize..end as usize]
    }

    /// The words one by one.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|index| self.word(index))
    }

    /// Whether one of the words is `word`, in singular or plural.
    pub fn has(&self, word: &str) -> bool {
        self.iter().any(|own| same_word(own, word))
    }
}

/// Whether two folded words are one word, in singular or plural.
pub fn same_word(a: &str, b: &str) -> bool {
    a == b || (a.len().abs_diff(b.len()) <= 3 && singular(a) == singular(b))
}

/// An English plural's singular, by its ending.
pub fn singular(word: &str) -> Cow<'_, str> {
    let stem = |n: usize| &word[..word.len() - n];
    if !word.ends_with('s') || !word.is_ascii() || word.len() < 4 {
        return Cow::Borrowed(word);
    }
    if word.ends_with("ies") {
        return Cow::Owned(format!("{}y", stem(3)));
    }
    if ["sses", "xes", "ches", "shes", "zes"].iter().any(|end| word.ends_with(end)) {
        return Cow::Borrowed(stem(2));
    }
    if ["ss", "us", "is"].iter().any(|end| word.ends_with(end)) {
        return Cow::Borrowed(word);
    }
    Cow::Borrowed(stem(1))
}

/// What each byte of an ASCII text is as part of a word: in lower case; 0 where it is part of none.
const IN_WORDS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0u8;
    while byte < 128 {
        if byte.is_ascii_alphanumeric() {
            table[byte as usize] = byte.to_ascii_lowercase();
        }
        byte += 1;
    }
    table
};

/// The hash of a text's words run together: `hash(&Words::of(text).text)`, without writing short ones down.
pub fn hash_of(text: &str) -> u64 {
    /// Names are shorter, as a rule.
    const SHORT: usize = 96;
    if text.len() > SHORT || !text.is_ascii() {
        return hash(&Words::of(text).text);
    }
    let (mut words, mut len) = ([0; SHORT], 0);
    let (mut before, mut apart) = (0u8, false);
    for byte in text.bytes() {
        let folded = IN_WORDS[usize::from(byte)];
        if folded == 0 {
            apart = true;
            continue;
        }
        if apart && folded.is_ascii_digit() && before.is_ascii_digit() {
            words[len] = b'-';
            len += 1;
        }
        words[len] = folded;
        len += 1;
        (before, apart) = (folded, false);
    }
    hash_bytes(SEED, &words[..len])
}

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash of a text without words.
pub const WORDLESS: u64 = mix(mix(SEED));

/// A 64-bit hash of a folded text; equal hashes are always followed by a comparison of the texts.
pub fn hash(text: &str) -> u64 {
    seeded(SEED, text)
}

/// The same from another start.
pub fn seeded(seed: u64, text: &str) -> u64 {
    hash_bytes(seed, text.as_bytes())
}

#[inline]
fn hash_bytes(seed: u64, bytes: &[u8]) -> u64 {
    let mut state = mix(seed ^ bytes.len() as u64);
    let (blocks, rest) = bytes.as_chunks::<8>();
    for block in blocks {
        state = mix(state ^ u64::from_be_bytes(*block));
    }
    // The length, which is mixed in, tells apart what overlaps in different ways.
    let word = |bytes: &[u8; 4]| u64::from(u32::from_be_bytes(*bytes));
    let last = match (rest.first_chunk(), rest.last_chunk()) {
        (Some(first), Some(last)) => word(first) << 32 | word(last),
        _ => rest.iter().fold(0, |last, byte| last << 8 | u64::from(*byte)),
    };
    mix(state ^ last)
}

/// Two hashes as one.
pub fn combine(a: u64, b: u64) -> u64 {
    mix(a.rotate_left(29) ^ b)
}

const fn mix(value: u64) -> u64 {
    let wide = (value ^ 0x2d35_8dcc_aa6c_78a5) as u128 * 0x9e37_79b9_7f4a_7c15_u128;
    (wide as u64) ^ ((wide >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_is_split_like_any_other_text() {
        for text in ["order_W12.items", "dueDateOf7", "1-2 3", "aB C9d  9", "", "__", "HTTPServer2.0"] {
            let mut words = Words::default();
            words.split(text.chars());
            assert_eq!(Words::of(text), words, "{text}");
        }
    }

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(Words::of(text).iter().collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn words_are_split_in_every_style() {
        check("order_W12.items", &["order", "w12", "items"]);
        check("loan.#L-88.dueDate", &["loan", "l", "88", "due", "date"]);
        check("bed of ward 7b", &["bed", "of", "ward", "7b"]);
        check("Ｗａｒｄ　７", &["ward", "7"]);
        check("...", &[]);
    }

    #[test]
    fn a_boundary_between_digits_counts() {
        assert_eq!(Words::of("1-2").text, "1-2");
        assert_eq!(Words::of("A-1").text, "a1");
        assert_ne!(Words::of("2024-05-26").text, Words::of("20240526").text);
    }

    #[test]
    fn words_have_one_hash_in_both_ways() {
        for text in [
            "order_W12.items",
            "2024-05-26",
            "A-1",
            "1-2",
            "--1",
            "Ｗａｒｄ　７",
            "x.1.2y3 4",
            "",
            "zu 1 2",
            "camelCase9 9",
            "just8let",
            "just 8 letters and more",
        ] {
            assert_eq!(hash_of(text), hash(&Words::of(text).text), "{text}");
        }
        assert_ne!(hash("a"), hash("a\0"));
        assert_ne!(hash(""), hash("\0"));
        assert_eq!(hash_of(" -- "), WORDLESS);
    }

    #[test]
    fn folding_makes_look_alikes_equal() {
        for (a, b) in [("Е‑Reader", "e-reader"), ("Zu\u{308}rich", "zürich"), ("a\u{200b}b", "AB")] {
            assert_eq!(fold(a), fold(b), "{a} {b}");
        }
    }

    #[test]
    fn plurals_are_their_singular() {
        for (a, b) in
            [("batches", "batch"), ("policies", "policy"), ("orders", "order"), ("status", "status")]
        {
            assert!(same_word(a, b), "{a} {b}");
        }
        assert!(!same_word("address", "addres"));
    }
}
