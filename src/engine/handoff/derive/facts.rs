//! Which values of the run's results a receiver is told: the newest of each
//! record, what it is likely to need first.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::values::{About, Need, Own, Seen, label, newest_values};
use super::{Room, Wants};
use crate::engine::handoff::contract::{By, Claim, Source, Value};
use crate::engine::handoff::evidence::{CallSeen, Evidence, Kind, Leaf};

/// Bytes that a value costs beside its text: quotes and a comma.
const COST_OF_VALUE: usize = 4;
/// Bytes that a key costs beside its text, once a group.
const COST_OF_KEY: usize = 3;
/// Bytes that naming a call costs beside its id and its tool, once.
const COST_OF_CALL: usize = 8;

/// A value that may be told.
struct Candidate<'e> {
    leaf: Leaf<'e>,
    key: Cow<'e, str>,
    value: String,
    /// The record that it is told of.
    of: Option<String>,
    /// Where it names a record: that record, as others are told to be of it.
    names: Option<String>,
    identifier: bool,
    need: Need,
    /// How many different values like records of its result have under its key.
    crowd: usize,
}

/// Claims for what the run's tools returned, in the order of the run, bounded by `room`. `wants`: what the
/// receiver's tools take; where nothing is known of them, what the run's own calls took.
pub fn facts(evidence: &Evidence, wants: &Wants, room: Room) -> Vec<Claim> {
    let own =
        wants.is_empty().then(|| Wants::of_calls(evidence.calls().iter().map(CallSeen::arguments_text)));
    let candidates = candidates(evidence, own.as_ref().unwrap_or(wants));
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    // Among equals what is single first, then what is newest: the sort is stable and the newest stands first.
    order.sort_by_key(|&at| (candidates[at].need, candidates[at].crowd));
    let mut chosen = choose(&candidates, order, room);
    // Back to the order of the run.
    chosen.sort_unstable_by_key(|&at| std::cmp::Reverse(at));
    let chosen: Vec<&Candidate<'_>> = chosen.into_iter().map(|at| &candidates[at]).collect();
    without_told_names(&chosen).into_iter().map(claim).collect()
}

impl Candidate<'_> {
    /// What kind of record it is told of.
    fn kind(&self) -> &str {
        self.of.as_ref().and_then(|of| of.rsplit_once(' ')).map_or("", |(kind, _)| kind)
    }
}

/// Leaves out the names of records of which something else is told: that names them already.
fn without_told_names<'c, 'e>(chosen: &[&'c Candidate<'e>]) -> Vec<&'c Candidate<'e>> {
    let is_name = |at: &usize| chosen[*at].names.is_some();
    let others = (0..chosen.len()).filter(|at| !is_name(at));
    let mut told: HashSet<&str> = others.filter_map(|at| chosen[at].of.as_deref()).collect();
    // A name tells of the record around it, so inner records come first.
    let (inner, outer): (Vec<usize>, Vec<usize>) =
        (0..chosen.len()).filter(is_name).partition(|at| chosen[*at].of.is_some());
    let mut left_out = vec![false; chosen.len()];
    for at in inner.into_iter().chain(outer) {
        left_out[at] = chosen[at].names.as_deref().is_some_and(|name| told.contains(name));
        if !left_out[at] {
            told.extend(chosen[at].of.as_deref());
        }
    }
    (0..chosen.len()).filter(|at| !left_out[*at]).map(|at| chosen[at]).collect()
}

/// The candidates that the room is enough for, the most needed first.
fn choose(candidates: &[Candidate<'_>], order: Vec<usize>, room: Room) -> Vec<usize> {
    // An identifier stands in several places: it is told once, where that costs least.
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, candidate) in candidates.iter().enumerate().filter(|(_, candidate)| candidate.identifier) {
        places.entry(&candidate.value).or_default().push(at);
    }
    let mut page = Written::default();
    let mut bytes = 0;
    let mut told: HashSet<&str> = HashSet::new();
    let mut chosen: Vec<usize> = Vec::new();
    for mut at in order {
        let Candidate { value, need, identifier, .. } = &candidates[at];
        if chosen.len() == room.facts || (*identifier && told.contains(value.as_str())) {
            continue;
        }
        if *identifier
            && let Some(cheapest) =
                places[value.as_str()].iter().min_by_key(|&&at| page.cost(&candidates[at]))
        {
            at = *cheapest;
        }
        let cost = page.cost(&candidates[at]);
        let most = if *need > Need::Wanted { room.small } else { room.bytes };
        if bytes + cost > most {
            continue;
        }
        bytes += cost;
        page.write(&candidates[at]);
        chosen.push(at);
        told.insert(value);
    }
    chosen
}

/// What is on the page so far: what has a place there costs nothing any more.
#[derive(Default)]
struct Written<'c> {
    calls: HashSet<usize>,
    records: HashSet<(usize, Option<&'c str>)>,
    columns: HashSet<(usize, &'c str, &'c str)>,
}

impl<'c> Written<'c> {
    fn cost(&self, candidate: &'c Candidate<'_>) -> usize {
        let Candidate { leaf, key, value, of, .. } = candidate;
        let mut cost = value.len() + COST_OF_VALUE;
        if !self.calls.contains(&leaf.call()) {
            cost += leaf.id().len() + leaf.tool().len() + COST_OF_CALL;
        }
        if !self.records.contains(&(leaf.call(), of.as_deref())) {
            cost += of.as_ref().map_or(0, String::len) + COST_OF_VALUE;
        }
        if !self.columns.contains(&(leaf.call(), candidate.kind(), &**key)) {
            cost += key.len() + COST_OF_KEY;
        }
        cost
    }

    fn write(&mut self, candidate: &'c Candidate<'_>) {
        self.calls.insert(candidate.leaf.call());
        self.records.insert((candidate.leaf.call(), candidate.of.as_deref()));
        self.columns.insert((candidate.leaf.call(), candidate.kind(), &candidate.key));
    }
}

fn claim(candidate: &Candidate<'_>) -> Claim {
    Claim {
        key: Some(candidate.key.to_string()),
        value: Value { text: candidate.value.clone(), quoted: candidate.leaf.kind() == Kind::Text },
        of: candidate.of.clone(),
        source: Some(Source::ToolResult),
        evidence: Some(candidate.leaf.id().to_owned()),
        by: By::Derived,
        ..Claim::default()
    }
}

/// The values worth telling, newest first, each once.
fn candidates<'e>(evidence: &'e Evidence, wants: &Wants) -> Vec<Candidate<'e>> {
    let values = newest_values(evidence);
    let about = About::of(evidence, &values, wants);
    let mut told = HashSet::new();
    let mut repeated = HashSet::new();
    let mut candidates = Vec::new();
    for seen in values {
        let record = seen.records.last().map(label);
        // What names a record is told of the record around it: `order 7` has the `item_id`s 1 and 2.
        let own = seen.is_own_name();
        let around = seen.records.iter().rev().nth(1).map(label);
        let of = if own == Own::Whole { around } else { record.clone() };
        let own = own != Own::No;
        // An identifier is known by itself, and once more as one of a list; any other value is one of its key
        // and record.
        let listed = seen.is_listed();
        let identity = if seen.identifier { None } else { Some((seen.leaf.path(), of.clone())) };
        if !told.insert((identity, listed, seen.text.clone())) || seen.leaf.superseded() {
            continue;
        }
        let names = if own { record.clone() } else { about.named_by(&seen.text, listed).cloned() };
        let again = !seen.identifier
            && !own
            && !seen.is_called()
            && !repeated.insert((seen.leaf.key(), seen.text.clone()));
        let need = about.need(&seen, record.as_ref(), again, wants);
        let crowd = about.crowds[&seen.column()];
        let key = seen.claimed_key();
        let Seen { leaf, text: value, identifier, .. } = seen;
        candidates.push(Candidate { leaf, key, value, of, names, identifier, need, crowd });
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::super::values::LONGEST_VALUE;
    use super::*;
    use crate::engine::handoff::evidence::Happening;

    fn call<'a>(id: &'a str, name: &'a str, arguments: &'a str, result: &'a str) -> Happening<'a> {
        Happening::Call { id, name, arguments, result: Some(result), as_of: None }
    }

    /// Each claim as `id: record: key=value`.
    fn check(run: &[Happening<'_>], takes: &str, bytes: usize, expected: &[&str]) {
        let evidence = Evidence::index(run.iter().copied(), true);
        let wants = Wants::of_calls(std::iter::once(takes));
        let claims = facts(&evidence, &wants, Room { facts: 100, bytes, small: bytes });
        let shown: Vec<String> = claims
            .iter()
            .map(|claim| {
                let of = claim.of.as_deref().unwrap_or("-");
                let key = claim.key.as_deref().unwrap_or("-");
                format!("{}: {of}: {key}={}", claim.evidence.as_deref().unwrap_or("-"), claim.value.text)
            })
            .collect();
        assert_eq!(shown, expected);
    }

    const LOAN: &str =
        r#"{"loan_id":"ln_7001","state":"out","book":{"isbn":"9780141439518","title":"Emma"},"fee":2}"#;

    #[test]
    fn all_of_a_small_run_is_told_in_its_order() {
        check(
            &[call("a", "get_loan", r#"{"loan_id":"ln_7001"}"#, LOAN)],
            "{}",
            1_000,
            &["a: loan ln_7001: state=out", "a: 9780141439518: title=Emma", "a: loan ln_7001: fee=2"],
        );
    }

    #[test]
    fn what_the_receivers_tools_take_comes_first() {
        let run = [call("a", "get_loan", r#"{"loan_id":"ln_7001"}"#, LOAN)];
        check(&run, r#"{"fee":1}"#, 44, &["a: loan ln_7001: fee=2"]);
        check(&run, r#"{"isbn":""}"#, 57, &["a: loan ln_7001: isbn=9780141439518"]);
        check(&run, r#"{"state":""}"#, 48, &["a: loan ln_7001: state=out"]);
    }

    #[test]
    fn the_newest_value_of_a_record_is_told() {
        let later = r#"{"loan_id":"ln_7001","state":"returned"}"#;
        check(
            &[
                call("a", "get_loan", r#"{"loan_id":"ln_7001"}"#, LOAN),
                call("b", "return_loan", r#"{"loan_id":"ln_7001"}"#, later),
            ],
            r#"{"state":""}"#,
            70,
            &["b: loan ln_7001: state=returned"],
        );
    }

    #[test]
    fn of_many_rows_only_names_are_told_unless_the_talk_is_about_one() {
        let rows: Vec<String> =
            (1..=9).map(|n| format!(r#"{{"copy_id":"cp_{n}00{n}","shelf":"S{n}"}}"#)).collect();
        let list = format!("[{}]", rows.join(","));
        let listing = call("a", "find_copies", "{}", &list);
        let evidence = Evidence::index([Happening::Customer("Is cp_3003 on the shelf?"), listing], true);
        let wants = Wants::of_calls(std::iter::once(r#"{"copy_id":1,"shelf":1}"#));
        let claims = facts(&evidence, &wants, Room { facts: 100, bytes: 170, small: 0 });
        let shelves: Vec<&str> = claims
            .iter()
            .filter(|claim| claim.key.as_deref() == Some("shelf"))
            .map(|claim| claim.value.text.as_str())
            .collect();
        assert_eq!(shelves, ["S3"]);
        assert!(
            claims.iter().filter(|claim| claim.key.as_deref() == Some("copy_id")).count() >= 7,
            "{claims:?}"
        );
    }

    #[test]
    fn where_a_record_stands_is_told_when_the_talk_is_about_it() {
        let run = [
            Happening::Customer("What about ln_7001?"),
            call("a", "get_loan", r#"{"loan_id":"ln_7001"}"#, r#"{"status":"out","shelf":"S4"}"#),
            call("b", "get_loan", r#"{"loan_id":"ln_7002"}"#, r#"{"status":"back","shelf":"S5"}"#),
        ];
        let evidence = Evidence::index(run, true);
        let claims = facts(
            &evidence,
            &Wants::of_calls(std::iter::once(r#"{"fee":1}"#)),
            Room { facts: 9, bytes: 900, small: 0 },
        );
        let told: Vec<_> =
            claims.iter().map(|claim| (claim.of.as_deref(), claim.value.text.as_str())).collect();
        assert_eq!(told, [(Some("loan ln_7001"), "out")]);
    }

    #[test]
    fn a_broad_key_is_told_with_the_object_around_it() {
        let result = r#"{"loan_id":"ln_7001","branch":{"state":"TX","town":"Waco"}}"#;
        check(
            &[call("a", "get_loan", r#"{"loan_id":"ln_7001"}"#, result)],
            "{}",
            1_000,
            &["a: loan ln_7001: branch.state=TX", "a: loan ln_7001: town=Waco"],
        );
    }

    #[test]
    fn errors_texts_and_nothing_are_no_facts() {
        let text = "x".repeat(LONGEST_VALUE + 1);
        let long = format!(r#"{{"note":"{text}","none":null,"empty":""}}"#);
        check(
            &[call("a", "get_note", "{}", &long), call("b", "get", "{}", "Error: no ab1234")],
            "{}",
            1_000,
            &[],
        );
    }

    #[test]
    fn the_room_is_kept() {
        let members: Vec<String> = (0..500).map(|n| format!(r#""key_{n}":"value {n}""#)).collect();
        let result = format!("{{{}}}", members.join(","));
        let evidence = Evidence::index([call("a", "get", "{}", &result)], true);
        for bytes in [0, 10, 100, 1_000] {
            let claims = facts(&evidence, &Wants::default(), Room { facts: 7, bytes, small: bytes });
            let told: usize = claims.iter().map(|claim| claim.value.text.len()).sum();
            assert!(told <= bytes && claims.len() <= 7, "{bytes}: {claims:?}");
        }
    }
}
