//! Agents by their fingerprint: system text and the set of tool names, the
//! only stable signs that clients send (no client names its agents).

use serde::{Deserialize, Serialize};

use crate::engine::hash::{Hash, Hasher};

/// Word shingles kept of a system text; enough to tell 0.8 from 0.9.
const SKETCH: usize = 96;
/// Words a shingle.
const SHINGLE: usize = 2;

/// What can be told of an agent from one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The name a client gave in the operator's agent header; it settles everything.
    pub named: Option<String>,
    /// Hash of the system text, digits masked (clocks, counters).
    text: Hash,
    /// The smallest hashes of its word shingles, sorted: how alike two texts are.
    sketch: Vec<u64>,
    /// Hashes of the tool names, sorted; clients change their order.
    tools: Vec<u64>,
}

/// How a request's agent relates to a known one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Likeness {
    /// Equal, digits aside.
    Equal,
    /// The same agent as far as can be told, with this score.
    Near(f64),
    /// Somebody else.
    Other,
}

/// Which of the known agents a fingerprint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognised {
    /// The known agent of this index.
    Known(usize),
    /// None of them.
    New,
    /// Two of them fit about equally; no judgement.
    Unclear,
}

impl Fingerprint {
    /// The fingerprint of an agent with this system text and these tools.
    pub fn new<'a>(system: &str, tools: impl Iterator<Item = &'a str>, named: Option<&str>) -> Self {
        let masked = mask_digits(system);
        let words: Vec<&str> = masked.split_whitespace().collect();
        let mut sketch: Vec<u64> = words.windows(SHINGLE.min(words.len().max(1))).map(shingle).collect();
        sketch.sort_unstable();
        sketch.dedup();
        sketch.truncate(SKETCH);
        let mut tools: Vec<u64> = tools.map(|name| shingle(&[name])).collect();
        tools.sort_unstable();
        tools.dedup();
        Fingerprint { named: named.map(str::to_owned), text: text_hash(&masked), sketch, tools }
    }

    /// Whether this is the agent's system text, digits aside.
    pub fn has_text(&self, system: &str) -> bool {
        !system.is_empty() && text_hash(&mask_digits(system)) == self.text
    }

    fn likeness(&self, known: &Fingerprint) -> Likeness {
        if self.named.is_some() || known.named.is_some() {
            return if self.named == known.named { Likeness::Equal } else { Likeness::Other };
        }
        let same_text = self.text == known.text;
        let same_tools = self.tools == known.tools;
        if same_text && same_tools {
            return Likeness::Equal;
        }
        let (common, smaller, larger) = overlap(&self.tools, &known.tools);
        if same_text {
            // Tools are switched on and off; a client that leaves the sender's system text in place
            // (pydantic-ai) shows by its tools that somebody else speaks.
            let kept = if smaller == 0 { 0.0 } else { common as f64 / smaller as f64 };
            return if kept >= 0.5 {
                Likeness::Near(0.5 + 0.5 * common as f64 / larger as f64)
            } else {
                Likeness::Other
            };
        }
        // Retrieved notes and clocks in words: the text may drift only where the tools are the same.
        let text = resemblance(&self.sketch, &known.sketch);
        if same_tools && !self.tools.is_empty() && text >= 0.8 {
            Likeness::Near(text)
        } else {
            Likeness::Other
        }
    }
}

/// Which of `known` the fingerprint is: an equal one, else the nearest with a clear margin.
pub fn recognise<'a>(print: &Fingerprint, known: impl Iterator<Item = &'a Fingerprint>) -> Recognised {
    const MARGIN: f64 = 0.05;
    let mut near: Option<(usize, f64)> = None;
    let mut rival = 0.0f64;
    for (index, other) in known.enumerate() {
        match print.likeness(other) {
            Likeness::Equal => return Recognised::Known(index),
            Likeness::Near(score) => match near {
                Some((_, best)) if score <= best => rival = rival.max(score),
                best => {
                    rival = best.map_or(rival, |(_, score)| rival.max(score));
                    near = Some((index, score));
                }
            },
            Likeness::Other => {}
        }
    }
    match near {
        None => Recognised::New,
        Some((index, score)) if score - rival >= MARGIN => Recognised::Known(index),
        Some(_) => Recognised::Unclear,
    }
}

fn text_hash(masked: &str) -> Hash {
    Hasher::new("system").text(masked).finish()
}

/// The text with every run of digits as one `0`: clocks and counters are no sign of another agent.
fn mask_digits(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut in_digits = false;
    for c in text.chars() {
        if c.is_numeric() {
            if !in_digits {
                masked.push('0');
            }
            in_digits = true;
        } else {
            masked.push(c);
            in_digits = false;
        }
    }
    masked
}

/// FNV-1a, which is stable across releases and cheap; nothing but likeness rests on it.
fn shingle(words: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for word in words {
        for byte in word.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}

/// Common elements, and the sizes of the smaller and the larger of two sorted sets.
fn overlap(a: &[u64], b: &[u64]) -> (usize, usize, usize) {
    let common = a.iter().filter(|x| b.binary_search(x).is_ok()).count();
    (common, a.len().min(b.len()), a.len().max(b.len()))
}

/// Estimated Jaccard similarity of two bottom-k sketches (Broder 1997).
fn resemblance(a: &[u64], b: &[u64]) -> f64 {
    let mut union: Vec<u64> = a.iter().chain(b).copied().collect();
    union.sort_unstable();
    union.dedup();
    union.truncate(SKETCH);
    if union.is_empty() {
        return 1.0;
    }
    let both = union.iter().filter(|x| a.binary_search(x).is_ok() && b.binary_search(x).is_ok()).count();
    both as f64 / union.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESK: &str = "You are the intake desk of a clinic. Greet the patient, find the booking, and pass the \
        patient on to billing or nursing. Never promise a date. Office hours are posted in the lobby. Be brief.";

    fn print(system: &str, tools: &[&str]) -> Fingerprint {
        Fingerprint::new(system, tools.iter().copied(), None)
    }

    fn check(print: &Fingerprint, known: &[Fingerprint], expected: Recognised) {
        assert_eq!(recognise(print, known.iter()), expected);
    }

    #[test]
    fn a_clock_in_the_instructions_is_no_other_agent() {
        let known = [print(&format!("{DESK} It is 17:43:01."), &["find", "transfer_to_billing"])];
        check(
            &print(&format!("{DESK} It is 9:02:59."), &["transfer_to_billing", "find"]),
            &known,
            Recognised::Known(0),
        );
    }

    #[test]
    fn drifting_notes_with_the_same_tools_are_the_same_agent() {
        let known = [print(&format!("{DESK} Today is Monday."), &["find", "transfer_to_billing"])];
        check(
            &print(&format!("{DESK} Today is Tuesday."), &["find", "transfer_to_billing"]),
            &known,
            Recognised::Known(0),
        );
    }

    #[test]
    fn tools_that_are_switched_off_are_the_same_agent() {
        let known = [print(DESK, &["find", "move", "transfer_to_billing"])];
        check(&print(DESK, &["find"]), &known, Recognised::Known(0));
    }

    #[test]
    fn one_policy_text_for_all_agents_does_not_make_them_one() {
        let known = [print(&format!("You are triage. {DESK}"), &["find", "transfer_to_nurse"])];
        check(&print(&format!("You are the nurse. {DESK}"), &["find"]), &known, Recognised::New);
    }

    #[test]
    fn the_senders_system_text_with_other_tools_is_somebody_else() {
        let known = [print(DESK, &["find", "final_result_transfer_to_billing"])];
        check(&print(DESK, &["issue_refund"]), &known, Recognised::New);
    }

    #[test]
    fn two_that_fit_alike_are_unclear() {
        let known = [
            print(&format!("{DESK} Ward north."), &["find"]),
            print(&format!("{DESK} Ward south."), &["find"]),
        ];
        check(&print(&format!("{DESK} Ward west."), &["find"]), &known, Recognised::Unclear);
    }

    #[test]
    fn a_named_agent_is_its_name() {
        let known = [Fingerprint::new("a", ["x"].into_iter(), Some("billing"))];
        check(&Fingerprint::new("b", ["y"].into_iter(), Some("billing")), &known, Recognised::Known(0));
        check(&Fingerprint::new("a", ["x"].into_iter(), Some("nurse")), &known, Recognised::New);
    }
}
