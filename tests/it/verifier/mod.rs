//! The verifier's bars: true facts accepted, false ones rejected, in domains made up here and, where
//! it stands beside the checkout (`../shared`), on the labelled set.

#![expect(clippy::print_stdout, reason = "a share below the bar is told with the facts that made it")]

mod domains;
mod labelled;
mod labels;
mod world;

use std::collections::BTreeMap;

/// What share of a label has to be judged right, in percent.
fn bar(label: &str) -> f64 {
    match label {
        "true" => 99.0,
        "true_reformatted" | "misattributed" => 97.0,
        "fabricated_call" | "value_absent" => 100.0,
        "stale" => 95.0,
        other => panic!("no bar for {other}"),
    }
}

/// How many facts of each label there were, and which were judged wrong.
#[derive(Default)]
struct Score(BTreeMap<String, (usize, Vec<String>)>);

impl Score {
    fn add(&mut self, label: &str, right: bool, told: impl FnOnce() -> String) {
        let (count, wrong) = self.0.entry(label.to_owned()).or_default();
        *count += 1;
        if !right {
            wrong.push(told());
        }
    }

    /// Prints all, then fails if any label is below its bar.
    fn check(&self) {
        let mut low = Vec::new();
        for (label, (count, wrong)) in &self.0 {
            let share = 100.0 * (count - wrong.len()) as f64 / *count as f64;
            println!("{label:<17} {count:>5} facts, {share:.1} % right");
            for told in wrong.iter().take(25) {
                println!("    {told}");
            }
            if share < bar(label) {
                low.push(format!("{label}: {share:.1} %"));
            }
        }
        assert!(low.is_empty(), "below the bar: {low:?}");
    }
}

#[test]
fn facts_of_other_domains_are_judged_right() {
    let mut score = Score::default();
    for seed in 0..40 {
        for domain in domains::ALL {
            let world = domain(&mut world::Dice::new(seed));
            labels::judge(&world, seed, &mut score);
        }
    }
    score.check();
}
