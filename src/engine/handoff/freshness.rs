//! How long a kind of fact stays good: a table from globs on keys to seconds.
//! It is a heuristic about the ordinary case, never a proof that a fact is
//! still true.

use wildmatch::WildMatch;

use super::contract::Claim;
use super::value::fold::Words;
use super::verify::Age;
use crate::engine::time::Timestamp;

/// The table that comes with Seam.
const BUILTIN: &str = include_str!("../../../config/freshness.conf");
/// A table has at most this many rules.
const RULES: usize = 1_000;
/// A glob has at most this many characters.
const GLOB: usize = 200;

/// How long facts under a key stay good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Fresh while the age in seconds is at most this; 0 is never fresh.
    Seconds(u64),
    /// For ever.
    Immutable,
}

/// The table. Empty by default: nothing ages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Freshness {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq)]
struct Rule {
    glob: WildMatch,
    lifetime: Lifetime,
    /// Whether there is no wildcard in it; how many characters are none.
    weight: (bool, usize),
}

/// A rule that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {rule:?}: expected {expected}")]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// The rule as written.
    pub rule: String,
    /// What should stand there.
    pub expected: &'static str,
}

impl Freshness {
    /// The table that comes with Seam, `config/freshness.conf`.
    pub fn builtin() -> Freshness {
        Freshness::parse(BUILTIN).unwrap_or_default()
    }

    /// Reads rules `glob=seconds` or `glob=immutable`, a rule a line or several separated by commas.
    /// Behind `#` stands a comment. All problems are reported, not the first.
    pub fn parse(text: &str) -> Result<Freshness, Vec<Problem>> {
        let mut rules = Vec::new();
        let mut problems = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("");
            for rule in line.split(',').map(str::trim).filter(|rule| !rule.is_empty()) {
                match read_rule(rule) {
                    Ok(_) if rules.len() >= RULES => {
                        problems.push(problem(index, rule, "no more than 1000 rules"));
                        return Err(problems);
                    }
                    Ok(rule) => rules.push(rule),
                    Err(expected) => problems.push(problem(index, rule, expected)),
                }
            }
        }
        if problems.is_empty() { Ok(Freshness { rules }) } else { Err(problems) }
    }

    /// How long facts under this key of this record stay good; none if no rule says.
    pub fn lifetime(&self, key: &str, of: Option<&str>) -> Option<Lifetime> {
        if self.rules.is_empty() {
            return None;
        }
        let names = names(key, of);
        let matching = self.rules.iter().filter(|rule| names.iter().any(|name| rule.glob.matches(name)));
        // The most specific rule holds; of two alike, the stricter one.
        let best = matching.max_by(|a, b| {
            a.weight.cmp(&b.weight).then_with(|| strictness(b.lifetime).cmp(&strictness(a.lifetime)))
        });
        best.map(|rule| rule.lifetime)
    }

    /// What age says about a claim whose result was first seen at `as_of`, if that is known.
    pub fn judge(&self, claim: &Claim, as_of: Option<Timestamp>, now: Timestamp) -> Age {
        let Some(key) = &claim.key else { return Age::Ageless };
        match (self.lifetime(key, claim.of.as_deref()), as_of) {
            (None | Some(Lifetime::Immutable), _) => Age::Ageless,
            (Some(Lifetime::Seconds(0)), _) | (Some(_), None) => Age::Stale,
            (Some(Lifetime::Seconds(limit)), Some(as_of)) => {
                if now.seconds_since(as_of) <= limit {
                    Age::Fresh
                } else {
                    Age::Stale
                }
            }
        }
    }
}

fn problem(index: usize, rule: &str, expected: &'static str) -> Problem {
    Problem { line: index + 1, rule: rule.chars().take(80).collect(), expected }
}

fn read_rule(rule: &str) -> Result<Rule, &'static str> {
    const SHAPE: &str = "key=seconds or key=immutable";
    let (glob, lifetime) = rule.split_once('=').ok_or(SHAPE)?;
    let glob = pattern(glob.trim());
    if glob.is_empty() {
        return Err("a key, with * for any text, before the =");
    }
    if glob.len() > GLOB {
        return Err("a key of at most 200 characters");
    }
    let lifetime = match lifetime.trim() {
        "immutable" => Lifetime::Immutable,
        seconds if !seconds.is_empty() && seconds.bytes().all(|b| b.is_ascii_digit()) => {
            Lifetime::Seconds(seconds.parse().map_err(|_| "a number of seconds below 2^64")?)
        }
        _ => return Err("whole seconds, or immutable, behind the ="),
    };
    let wild = |c: &char| matches!(c, '*' | '?');
    let weight = (!glob.chars().any(|c| wild(&c)), glob.chars().filter(|c| !wild(c)).count());
    Ok(Rule { glob: WildMatch::new(&glob), lifetime, weight })
}

/// A glob in the spelling of keys: words in lower case with underscores, wildcards as they are.
fn pattern(glob: &str) -> String {
    let mut out = String::new();
    let mut literal = String::new();
    let flush = |literal: &mut String, out: &mut String, more: bool| {
        let joined = snake(&Words::of(literal), |_| true);
        let edge = |c: Option<char>| c.is_some_and(|c| !c.is_alphanumeric());
        if edge(literal.chars().next()) && !out.is_empty() {
            out.push('_');
        }
        out.push_str(&joined);
        if more && !joined.is_empty() && edge(literal.chars().last()) {
            out.push('_');
        }
        literal.clear();
    };
    for c in glob.chars() {
        if matches!(c, '*' | '?') {
            flush(&mut literal, &mut out, true);
            out.push(c);
        } else {
            literal.push(c);
        }
    }
    flush(&mut literal, &mut out, false);
    out
}

/// The names by which rules know a key: all of it, without what names the record, and its last part.
fn names(key: &str, of: Option<&str>) -> Vec<String> {
    let (attribute, record) = match (key.find(" of "), of) {
        (_, Some(of)) => (key.to_owned(), of.to_owned()),
        (Some(at), None) => (key[..at].to_owned(), key[at + 4..].to_owned()),
        (None, None) => match key.rfind(['.', '/', ':']) {
            Some(at) => (key[at + 1..].to_owned(), key[..at].to_owned()),
            None => (key.to_owned(), String::new()),
        },
    };
    let (attribute, record) = (Words::of(&attribute), Words::of(&record));
    let plain = |word: &str| !word.bytes().any(|b| b.is_ascii_digit()) && word != "of";
    let last = snake(&attribute, plain);
    let kind = record.iter().find(|word| plain(word)).unwrap_or("");
    let join = |a: &str, b: &str| if a.is_empty() { b.to_owned() } else { format!("{a}_{b}") };
    let mut names = vec![
        snake(&Words::of(key), |_| true),
        join(&snake(&record, |_| true), &snake(&attribute, |_| true)),
        join(&snake(&record, plain), &last),
        join(kind, &last),
        last,
    ];
    names.dedup();
    names
}

fn snake(words: &Words, keep: impl Fn(&str) -> bool) -> String {
    words.iter().filter(|word| keep(word)).collect::<Vec<_>>().join("_")
}

fn strictness(lifetime: Lifetime) -> u64 {
    match lifetime {
        Lifetime::Seconds(seconds) => seconds,
        Lifetime::Immutable => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rules: &str, key: &str, expected: Option<Lifetime>) {
        let freshness = Freshness::parse(rules).expect(rules);
        assert_eq!(freshness.lifetime(key, None), expected, "{rules}: {key}");
    }

    #[test]
    fn a_rule_is_found_by_key_in_any_style() {
        let rule = "bed_status=120";
        for key in [
            "bed_status",
            "bedStatus",
            "bed.B7.status",
            "status of bed B7",
            "Bed Status",
            "ward.3.bed_status",
        ] {
            check(rule, key, Some(Lifetime::Seconds(120)));
        }
        let freshness = Freshness::parse(rule).expect(rule);
        assert_eq!(freshness.lifetime("status", Some("bed B7")), Some(Lifetime::Seconds(120)));
        check(rule, "bed_colour", None);
        check(rule, "loan.status", None);
        check("loan_*=immutable", "loan_id", Some(Lifetime::Immutable));
        check("*Status=5", "loan.L7.status", Some(Lifetime::Seconds(5)));
    }

    #[test]
    fn the_most_specific_rule_holds() {
        let rules = "*=9, *_status=60, loan_*=immutable, loan_status=0";
        check(rules, "loan_status", Some(Lifetime::Seconds(0)));
        check(rules, "loan_id", Some(Lifetime::Immutable));
        check(rules, "bed_status", Some(Lifetime::Seconds(60)));
        check(rules, "colour", Some(Lifetime::Seconds(9)));
        check("bed_*=9, *_size=5", "bed_size", Some(Lifetime::Seconds(5)));
    }

    #[test]
    fn a_fact_ages_by_the_second() {
        let freshness = Freshness::parse("due=120,now=0,name=immutable").expect("rules");
        let age = |key: &str, age: Option<u64>| {
            let claim = Claim { key: Some(key.to_owned()), ..Claim::default() };
            let now = Timestamp(10_000_000);
            freshness.judge(&claim, age.map(|age| Timestamp(now.0 - age)), now)
        };
        for (seen_ms_ago, expected) in [
            (0, Age::Fresh),
            (119_000, Age::Fresh),
            (120_000, Age::Fresh),
            (120_999, Age::Fresh),
            (121_000, Age::Stale),
        ] {
            assert_eq!(age("due", Some(seen_ms_ago)), expected, "{seen_ms_ago}");
        }
        assert_eq!(age("due", None), Age::Stale);
        assert_eq!(age("now", Some(0)), Age::Stale);
        assert_eq!(age("now", None), Age::Stale);
        assert_eq!(age("name", Some(9_000_000)), Age::Ageless);
        assert_eq!(age("name", None), Age::Ageless);
        assert_eq!(age("colour", None), Age::Ageless);
    }

    #[test]
    fn all_problems_are_told_with_their_line() {
        let text = "# table\na=1\nb\nc=soon, =5\nd=-1 # no\ne=99999999999999999999";
        let problems = Freshness::parse(text).unwrap_err();
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                r#"line 3: "b": expected key=seconds or key=immutable"#,
                r#"line 4: "c=soon": expected whole seconds, or immutable, behind the ="#,
                r#"line 4: "=5": expected a key, with * for any text, before the ="#,
                r#"line 5: "d=-1": expected whole seconds, or immutable, behind the ="#,
                r#"line 6: "e=99999999999999999999": expected a number of seconds below 2^64"#,
            ]
        );
    }

    #[test]
    fn the_table_that_comes_with_seam_is_read_whole() {
        let builtin = Freshness::builtin();
        assert_eq!(builtin.lifetime("delivery_status", None), Some(Lifetime::Seconds(120)));
        assert_eq!(builtin.lifetime("refund.R1.refund_status", None), Some(Lifetime::Seconds(0)));
        assert_eq!(builtin.lifetime("order_id", None), Some(Lifetime::Immutable));
        assert_eq!(builtin.lifetime("name", None), None);
        assert!(
            BUILTIN.lines().filter(|line| line.contains('=') && !line.starts_with('#')).count()
                <= builtin.rules.len()
        );
    }
}
