//! Numbers as decimals of any length: signs, thousands, currencies, units, and
//! the noise that floating point leaves behind. Nothing is rounded.

/// A decimal with the unit or currency it is given in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// The decimal in its shortest spelling: `-12.5`, `0`, `1377`.
    pub decimal: String,
    /// What is written beside it, folded; empty if nothing is.
    pub unit: String,
}

impl Number {
    /// Reads a folded text that is one number, perhaps with a unit or currency.
    pub fn read(text: &str) -> Option<Number> {
        let text = text.trim();
        if text.len() > 80 || !text.bytes().any(|b| b.is_ascii_digit()) {
            return None;
        }
        if let Some(decimal) = plain(text) {
            return Some(Number { decimal, unit: String::new() });
        }
        let (negative, text) = sign(text);
        let start = text.find(|c: char| c.is_ascii_digit() || c == '.')?;
        let end = text.rfind(|c: char| c.is_ascii_digit())? + 1;
        if start >= end {
            return None;
        }
        let (before, after) = (text[..start].trim(), text[end..].trim());
        let (inner, before) = match before.strip_suffix('-') {
            Some(rest) if is_currency(rest.trim()) => (true, rest.trim()),
            _ => (false, before),
        };
        let (("", unit) | (unit, "")) = (before, after) else { return None };
        if !before.is_empty() && !is_currency(before) {
            return None;
        }
        if unit.len() > 24 || unit.split(' ').count() > 2 || !unit.chars().all(is_unit) {
            return None;
        }
        let decimal = grouped(&text[start..end])?;
        let decimal = if negative != inner && decimal != "0" { format!("-{decimal}") } else { decimal };
        Some(Number { decimal, unit: currency(unit).unwrap_or(unit).trim_end_matches('.').to_owned() })
    }

    /// Whether both are the same amount; a currency may be left out, a unit may not.
    pub fn same(&self, other: &Number) -> bool {
        let units = self.unit == other.unit
            || (self.unit.is_empty() && is_currency(&other.unit))
            || (other.unit.is_empty() && is_currency(&self.unit))
            || same_currency(&self.unit, &other.unit)
            || same_currency(&other.unit, &self.unit);
        units
            && (self.decimal == other.decimal
                || without_noise(&self.decimal) == without_noise(&other.decimal))
    }
}

fn sign(text: &str) -> (bool, &str) {
    if let Some(rest) = text.strip_prefix('-') {
        return (true, rest.trim_start());
    }
    if let Some(inner) = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        return (true, inner);
    }
    (false, text.strip_prefix('+').unwrap_or(text))
}

/// What may stand in a unit: letters, and what is written in `km/h`, `%`, `°c`, `m²`.
fn is_unit(c: char) -> bool {
    c.is_alphabetic()
        || matches!(c, '%' | '°' | '/' | ' ' | '$' | '€' | '£' | '¥' | '₹' | '²' | '³' | '.' | '"')
}

/// A number as JSON spells it, in its shortest spelling.
fn plain(text: &str) -> Option<String> {
    let (negative, digits) = sign(text);
    let (mantissa, exponent) = match digits.find(['e', 'E']) {
        Some(at) => {
            let exponent: isize = digits[at + 1..].parse().ok()?;
            if exponent.abs() > 60 {
                return None;
            }
            (&digits[..at], exponent)
        }
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digit = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    // A leading zero makes it an identifier: 007 is not 7.
    let leading = whole.len() > 1 && whole.starts_with('0');
    if (whole.is_empty() && fraction.is_empty()) || leading || !digit(whole) || !digit(fraction) {
        return None;
    }
    Some(shortest(negative, whole, fraction, exponent))
}

fn shortest(negative: bool, whole: &str, fraction: &str, exponent: isize) -> String {
    let mut digits: String = [whole, fraction].concat();
    let point = whole.len().checked_add_signed(exponent);
    if point.is_none() {
        digits.insert_str(0, &"0".repeat(exponent.unsigned_abs() - whole.len()));
    }
    let point = point.unwrap_or(0);
    if point > digits.len() {
        digits.push_str(&"0".repeat(point - digits.len()));
    }
    let (whole, fraction) = digits.split_at(point);
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    let mut out = String::with_capacity(digits.len() + 3);
    if negative && !(whole.is_empty() && fraction.is_empty()) {
        out.push('-');
    }
    out.push_str(if whole.is_empty() { "0" } else { whole });
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// A number with separators between groups of three: `1,377.00`, `1.377,00`, `1 377`, `1'377`.
fn grouped(text: &str) -> Option<String> {
    if let Some(decimal) = plain(text) {
        return Some(decimal);
    }
    for (group, point) in [(',', '.'), ('.', ','), (' ', '.'), (' ', ','), ('\'', '.'), ('_', '.')] {
        let (whole, fraction) = text.rsplit_once(point).unwrap_or((text, ""));
        let groups: Vec<&str> = whole.split(group).collect();
        let digit = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        let good = (text.contains(group) || text.contains(point))
            && groups.iter().all(|part| digit(part))
            && digit(fraction)
            && (1..=3).contains(&groups[0].len())
            && groups[1..].iter().all(|part| part.len() == 3);
        // `1.234` is a decimal, `68,40` has a decimal comma, `1,234` has thousands.
        let comma = point == ',' && groups.len() == 1 && fraction.len() == 3;
        if good && !comma && (groups.len() > 1 || point == ',') && (groups[0] != "0" || groups.len() == 1) {
            return Some(shortest(false, &groups.concat(), fraction, 0));
        }
    }
    None
}

/// A decimal without what binary floating point adds to it: a run of at least six nines or zeros
/// that ends within four digits of the end of a number of at least fifteen digits.
fn without_noise(decimal: &str) -> std::borrow::Cow<'_, str> {
    let Some(point) = decimal.find('.') else { return decimal.into() };
    let digits = decimal.bytes().filter(u8::is_ascii_digit).count();
    if digits < 15 {
        return decimal.into();
    }
    let fraction = &decimal.as_bytes()[point + 1..];
    let tail = fraction.len() - fraction.len().min(4);
    for digit in *b"09" {
        let Some(end) = (tail..=fraction.len()).rev().find(|end| *end > 0 && fraction[*end - 1] == digit)
        else {
            continue;
        };
        let run = fraction[..end].iter().rev().take_while(|b| **b == digit).count();
        if run < 6 {
            continue;
        }
        let kept = &decimal[..point + 1 + end - run];
        if digit == b'0' {
            return kept.trim_end_matches('0').trim_end_matches('.').to_owned().into();
        }
        return carried(kept).into();
    }
    decimal.into()
}

/// The decimal with one added at its last digit.
fn carried(decimal: &str) -> String {
    let mut bytes = decimal.as_bytes().to_vec();
    let mut at = bytes.len();
    let mut carry = true;
    while carry && at > 0 {
        at -= 1;
        match bytes[at] {
            b'9' => bytes[at] = b'0',
            b'0'..=b'8' => {
                bytes[at] += 1;
                carry = false;
            }
            _ => {}
        }
    }
    let mut text = String::from_utf8(bytes).unwrap_or_default();
    if carry {
        let sign = usize::from(text.starts_with('-'));
        text.insert(sign, '1');
    }
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    text
}

const SYMBOLS: [(&str, &[&str]); 7] = [
    ("$", &["usd", "cad", "aud", "nzd", "sgd", "hkd", "us$", "dollars", "dollar"]),
    ("€", &["eur", "euro", "euros"]),
    ("£", &["gbp", "pounds", "pound"]),
    ("¥", &["jpy", "cny", "yen", "yuan"]),
    ("₹", &["inr", "rs", "rs.", "rupees", "rupee"]),
    ("kr", &["sek", "nok", "dkk"]),
    ("fr", &["chf", "francs"]),
];

/// Further codes; the others stand beside their symbols.
const CODES: [&str; 12] =
    ["brl", "mxn", "pln", "czk", "huf", "try", "zar", "krw", "thb", "ils", "aed", "rub"];

/// Whether a folded word is a currency's symbol, code or name.
pub fn is_currency(unit: &str) -> bool {
    currency(unit).is_some()
}

fn currency(unit: &str) -> Option<&str> {
    let known = SYMBOLS.iter().any(|(symbol, codes)| *symbol == unit || codes.contains(&unit));
    (known || CODES.contains(&unit)).then_some(unit)
}

/// Whether `symbol` is a sign of the currency `code`.
fn same_currency(symbol: &str, code: &str) -> bool {
    SYMBOLS.iter().any(|(own, codes)| {
        (*own == symbol && codes.contains(&code))
            || (codes[0] == symbol && codes.contains(&code) && code.len() > 3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(a: &str, b: &str, expected: bool) {
        let (left, right) = (Number::read(a), Number::read(b));
        let same = matches!((&left, &right), (Some(left), Some(right)) if left.same(right));
        assert_eq!(same, expected, "{a:?} {left:?}, {b:?} {right:?}");
    }

    #[test]
    fn one_amount_in_many_spellings() {
        for text in [
            "1377",
            "1377.0",
            "1,377.00",
            "$1,377.00",
            "$ 1377",
            "usd 1377",
            "1377 usd",
            "1.377,00",
            "1 377",
            "1.377e3",
            "+1377",
        ] {
            check("1377", text, true);
        }
        for text in ["-5.50", "-5.5", "($5.50)", "-$5.50", "$-5.50", "- 5,50"] {
            check("-5.5", text, true);
        }
    }

    #[test]
    fn noise_is_dropped_without_rounding() {
        check("94.54999999999995", "$94.55", true);
        check("113.71000000000004", "113.71", true);
        check("0.30000000000000004", "0.3", true);
        check("99.99999999999999", "100", true);
        check("94.549", "94.55", false);
        check("94.5499999", "94.55", false);
    }

    #[test]
    fn different_amounts_differ() {
        for (a, b) in [
            ("211.4", "211.41"),
            ("1377", "137"),
            ("5", "-5"),
            ("10 lbs", "10"),
            ("10 lbs", "10 kg"),
            ("5%", "5"),
            ("007", "7"),
            ("1.234", "1234"),
            ("$5", "£5"),
            ("eur 5", "usd 5"),
        ] {
            check(a, b, false);
        }
    }

    #[test]
    fn units_are_written_close_or_apart() {
        check("10 lbs", "10lbs", true);
        check("1,000 ml", "1000ml", true);
        check("12.0 %", "12%", true);
        check("$5", "5 cad", true);
    }

    #[test]
    fn texts_are_no_numbers() {
        for text in ["", "abc", "w12", "12-13", "1 2 3", "2024-05-26", "1,23,4", ".", "1e999"] {
            assert_eq!(Number::read(text), None, "{text}");
        }
    }
}
