//! How often the signs of a poor handoff are told right, on labelled examples: half of them near misses.

use std::fmt::Write as _;

use seam::engine::handoff::contract::{Claim, Value};
use seam::engine::handoff::evidence::Happening;
use seam::engine::handoff::verify::{Age, Fact, Outcome};
use seam::engine::signal::{Known, Slot, asked_again, contradicted, greets, looked_up_again, repeats};

/// How labels and rules agree.
#[derive(Default)]
struct Score {
    right: usize,
    false_alarms: usize,
    missed: usize,
    quiet: usize,
    wrong: String,
}

impl Score {
    fn note(&mut self, scene: &str, line: &str, expected: bool, told: bool, what: &str) {
        *match (expected, told) {
            (true, true) => &mut self.right,
            (false, true) => &mut self.false_alarms,
            (true, false) => &mut self.missed,
            (false, false) => &mut self.quiet,
        } += 1;
        if expected != told {
            let _ = writeln!(self.wrong, "{scene}: {line} [{what}]");
        }
    }

    fn precision(&self) -> f64 {
        self.right as f64 / (self.right + self.false_alarms).max(1) as f64
    }

    fn recall(&self) -> f64 {
        self.right as f64 / (self.right + self.missed).max(1) as f64
    }

    /// Fails where the bars are missed; half of the examples have to be near misses.
    #[expect(clippy::print_stdout, reason = "the figures are what docs/signals.md quotes")]
    fn check(&self, name: &str, at_least: usize) {
        let all = self.right + self.false_alarms + self.missed + self.quiet;
        println!(
            "{name}: {all} examples, precision {:.3}, recall {:.3}\n{}",
            self.precision(),
            self.recall(),
            self.wrong
        );
        assert!(all >= at_least, "{name}: {all} examples");
        assert!((self.quiet + self.false_alarms) * 5 >= all * 2, "{name}: too few near misses");
        assert!(self.precision() >= 0.9 && self.recall() >= 0.8, "{name}:\n{}", self.wrong);
    }
}

/// A scene: its name, what is set up, and the examples.
struct Scene<'t> {
    name: &'t str,
    set: Vec<(&'t str, &'t str)>,
    /// Whether it is one, and the rest of the line.
    examples: Vec<(bool, &'t str)>,
}

fn scenes(text: &str) -> Vec<Scene<'_>> {
    let mut scenes: Vec<Scene<'_>> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        if let Some(name) = line.strip_prefix("== ") {
            scenes.push(Scene { name, set: Vec::new(), examples: Vec::new() });
            continue;
        }
        let scene = scenes.last_mut().unwrap();
        match line.split_once(' ').unwrap() {
            (sign @ ("+" | "-"), rest) => scene.examples.push((sign == "+", rest)),
            set => scene.set.push(set),
        }
    }
    scenes
}

impl<'t> Scene<'t> {
    fn all(&self, name: &str) -> impl Iterator<Item = &'t str> + Clone {
        self.set
            .iter()
            .filter(move |(own, _)| *own == name)
            .map(|(_, rest)| *rest)
            .collect::<Vec<_>>()
            .into_iter()
    }

    fn known(&self) -> Known {
        let facts: Vec<Fact> = self
            .all("know")
            .map(|line| {
                let (key, rest) = line.split_once(" = ").unwrap();
                let (value, of) =
                    rest.split_once(" of ").map_or((rest, None), |(value, of)| (value, Some(of)));
                fact(key, value, of)
            })
            .collect();
        Known::of(&facts, self.all("said"))
    }

    fn calls(&self, name: &str) -> Vec<(&'t str, &'t str, &'t str)> {
        self.all(name)
            .map(|line| {
                let (call, result) = line.split_once(" => ").unwrap_or((line.trim_end_matches(" =>"), ""));
                let (name, arguments) = call.split_once(' ').unwrap();
                (name, arguments, result)
            })
            .collect()
    }
}

fn fact(key: &str, value: &str, of: Option<&str>) -> Fact {
    let claim = Claim {
        key: Some(key.to_owned()),
        value: Value { text: value.to_owned(), quoted: true },
        of: of.map(str::to_owned),
        ..Claim::default()
    };
    Fact {
        claim,
        outcome: Outcome::Verified,
        why: String::new(),
        call: None,
        tool: None,
        as_of: None,
        age: Age::Ageless,
        contested_by: Vec::new(),
        customer_only: false,
    }
}

#[test]
fn questions_for_what_was_known_are_told() {
    let mut score = Score::default();
    questions(&mut score, include_str!("signals/asks.txt"), |slot| slot.noun.join(" "));
    repetitions(&mut score, include_str!("signals/repeats.txt"));
    score.check("re_asked", 140);
}

#[test]
fn questions_of_a_set_that_was_written_apart_are_told() {
    let mut score = Score::default();
    questions(&mut score, include_str!("signals/asks_apart.txt"), |slot| slot.value.clone());
    repetitions(&mut score, include_str!("signals/repeats_apart.txt"));
    score.check("re_asked, apart", 60);
}

/// Labelled questions of a receiver; `name` is what a label calls a slot by.
fn questions(score: &mut Score, text: &str, name: impl Fn(&Slot) -> String) {
    for scene in scenes(text) {
        let known = scene.known();
        for (expected, line) in &scene.examples {
            let (label, text) = line.split_once("| ").unwrap();
            let asked: Vec<String> =
                asked_again(|| &known, &text.replace("\\n", "\n")).into_iter().map(&name).collect();
            let named = |asked: &String| asked.eq_ignore_ascii_case(label.trim());
            let told = if *expected { asked.iter().any(named) } else { !asked.is_empty() };
            score.note(scene.name, line, *expected, told, &asked.join(", "));
        }
    }
}

/// Labelled turns of a customer behind what a receiver said.
fn repetitions(score: &mut Score, text: &str) {
    for scene in scenes(text) {
        let (known, asked) = (scene.known(), scene.all("asked").next().unwrap());
        for (expected, line) in &scene.examples {
            let (_, turn) = line.split_once("| ").unwrap();
            let again: Vec<&str> =
                repeats(|| &known, asked, turn).iter().map(|slot| slot.value.as_str()).collect();
            score.note(scene.name, line, *expected, !again.is_empty(), &again.join(", "));
        }
    }
}

#[test]
fn lookups_that_were_made_before_are_told() {
    let mut score = Score::default();
    lookups(&mut score, include_str!("signals/calls.txt"));
    score.check("repeated_lookup", 60);
}

#[test]
fn lookups_of_a_set_that_was_written_apart_are_told() {
    let mut score = Score::default();
    lookups(&mut score, include_str!("signals/calls_apart.txt"));
    score.check("repeated_lookup, apart", 40);
}

/// Labelled calls of a receiver.
fn lookups(score: &mut Score, text: &'static str) {
    for scene in scenes(text) {
        let (run, since) = (scene.calls("call"), scene.calls("since"));
        let facts: Vec<Fact> = scene
            .all("old")
            .map(|call| Fact { call: Some(call.to_owned()), age: Age::Stale, ..fact("k", "v", None) })
            .collect();
        let happened = |calls: &[(&'static str, &'static str, &'static str)]| -> Vec<Happening<'static>> {
            // A call is called after its tool here.
            let call = |(name, arguments, result): &(&'static str, &'static str, &'static str)| {
                Happening::Call { id: name, name, arguments, result: Some(result), as_of: None }
            };
            calls.iter().map(call).collect()
        };
        for (expected, line) in &scene.examples {
            let (name, arguments) = line.split_once(' ').unwrap();
            let (run, since) = (happened(&run), happened(&since));
            let told = looked_up_again(name, arguments, run.into_iter(), since.into_iter(), &facts);
            score.note(scene.name, line, *expected, told, "");
        }
    }
}

#[test]
fn a_greeting_is_told_from_an_answer() {
    let check = |text: &str, expected: bool| assert_eq!(greets(text), expected, "{text}");
    check("Hello! I am the booking desk. How can I help you today?", true);
    check("Hi Mei, what can I do for you?", true);
    check("Good morning, thanks for waiting.", true);
    check("Thank you for contacting the garage.", true);
    check("I am from billing. How may I assist you?", true);
    check("I have cancelled the booking. Anything else?", false);
    check("Hippos are not allowed on board.", false);
    check("Your refund is on its way. If you need help, write to us.", false);
}

#[test]
fn a_value_that_nobody_named_is_a_wrong_one() {
    let facts =
        [fact("total", "68.40", Some("order W-11")), fact("address.zip", "40217", Some("order W-11"))];
    let check = |arguments: &str, said: &str, expected: Option<&str>| {
        let named = |value: &str| !said.is_empty() && said.contains(value);
        assert_eq!(contradicted(arguments, &facts, named), expected, "{arguments}");
    };
    check(r#"{"order_id":"W-11","total":96.40}"#, "", Some("total"));
    check(r#"{"order_id":"W-11","total":"68.4"}"#, "", None);
    check(r#"{"order_id":"W-12","total":96.40}"#, "", None);
    check(r#"{"order_id":"W-11","zip":"40218"}"#, "", Some("address.zip"));
    check(r#"{"order_id":"W-11","zip":"40218"}"#, "I moved to 40218.", None);
    check(r#"{"order_id":"W-11","note":"96.40"}"#, "", None);
    check("no object", "", None);
}
