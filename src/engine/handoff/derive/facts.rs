//! Which values of the run's results a receiver is told: the newest of each
//! record, what it is likely to need first.

use std::collections::{HashMap, HashSet};

use super::wants::Place;
use super::{Room, Wants, is_identifier};
use crate::engine::handoff::contract::{By, Claim, Source, Value};
use crate::engine::handoff::evidence::{CallSeen, Ended, Evidence, Kind, Leaf, RecordName};
use crate::engine::handoff::value::fold;

/// Values looked at, the newest ones; a run with more is one of bulk data.
const MOST_VALUES: usize = 10_000;
/// Bytes of a value; longer ones are texts and not facts.
const LONGEST_VALUE: usize = 120;
/// Customer's turns, and agents' turns, whose words say what the talk is about now.
const LAST_TURNS: usize = 2;
/// Bytes that a value costs beside its text: quotes and a comma.
const COST_OF_VALUE: usize = 4;
/// Bytes that a key costs beside its text, once a group.
const COST_OF_KEY: usize = 3;
/// Bytes that naming a call costs beside its id and its tool, once.
const COST_OF_CALL: usize = 8;

/// Values that like records have under one key, beyond which they are rows of a listing.
const CROWD: usize = 3;

/// The part of the room that values of no evident need may fill.
const FILLED_SHARE: usize = 6;

/// How likely a receiver needs a value; the first of these that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// A tool of the receiver's takes it, and the last turns speak of it or of its record; or it is by what
    /// they call a record.
    WantedNow,
    /// A tool of the receiver's takes it, and it names something.
    WantedName,
    /// A tool of the receiver's takes it.
    Wanted,
    /// It names something.
    Name,
    /// The last turns speak of it.
    Spoken,
    /// The last turns speak of its record, or the last call returned it.
    Near,
    /// Anything else.
    Other,
}

/// A value that may be told.
struct Candidate<'e> {
    leaf: Leaf<'e>,
    key: &'e str,
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
    without_told_names(chosen.into_iter().map(|at| &candidates[at]).collect())
        .into_iter()
        .map(claim)
        .collect()
}

impl Candidate<'_> {
    /// What kind of record it is told of.
    fn kind(&self) -> &str {
        self.of.as_ref().and_then(|of| of.rsplit_once(' ')).map_or("", |(kind, _)| kind)
    }
}

/// Leaves out the names of records of which something else is told: that names them already.
fn without_told_names<'c, 'e>(mut chosen: Vec<&'c Candidate<'e>>) -> Vec<&'c Candidate<'e>> {
    let is_name = |candidate: &&Candidate<'_>| candidate.names.is_some();
    let others = chosen.iter().filter(|candidate| !is_name(candidate));
    let mut told: HashSet<&str> = others.filter_map(|candidate| candidate.of.as_deref()).collect();
    // A name tells of the record around it, so inner records come first.
    let (inner, outer): (Vec<&Candidate<'_>>, Vec<_>) =
        chosen.iter().copied().filter(is_name).partition(|candidate| candidate.of.is_some());
    let mut left_out: HashSet<*const Candidate<'_>> = HashSet::new();
    for candidate in inner.into_iter().chain(outer) {
        if candidate.names.as_deref().is_some_and(|name| told.contains(name)) {
            left_out.insert(candidate);
        } else {
            told.extend(candidate.of.as_deref());
        }
    }
    chosen.retain(|candidate| !left_out.contains(&std::ptr::from_ref(*candidate)));
    chosen
}

/// The candidates that the room is enough for, the most needed first.
fn choose(candidates: &[Candidate<'_>], order: Vec<usize>, room: Room) -> Vec<usize> {
    // An identifier stands in several places: it is told once, where that costs least.
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, candidate) in candidates.iter().enumerate().filter(|(_, candidate)| candidate.identifier) {
        places.entry(&candidate.value).or_default().push(at);
    }
    let mut page = Written::default();
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
        // What is not needed by any sign fills a small room only.
        let bytes = if *need > Need::Wanted { room.bytes / FILLED_SHARE } else { room.bytes };
        if page.bytes + page.cost(&candidates[at]) > bytes {
            continue;
        }
        page.write(&candidates[at]);
        chosen.push(at);
        told.insert(value);
    }
    chosen
}

/// What is on the page so far: what has a place there costs nothing any more.
#[derive(Default)]
struct Written<'c> {
    bytes: usize,
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
        if !self.columns.contains(&(leaf.call(), candidate.kind(), key)) {
            cost += key.len() + COST_OF_KEY;
        }
        cost
    }

    fn write(&mut self, candidate: &'c Candidate<'_>) {
        self.bytes += self.cost(candidate);
        self.calls.insert(candidate.leaf.call());
        self.records.insert((candidate.leaf.call(), candidate.of.as_deref()));
        self.columns.insert((candidate.leaf.call(), candidate.kind(), candidate.key));
    }
}

fn claim(candidate: &Candidate<'_>) -> Claim {
    Claim {
        key: Some(candidate.key.to_owned()),
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
        let Seen { leaf, text: value, identifier, .. } = seen;
        let key = if leaf.key().is_empty() { leaf.tool() } else { leaf.key() };
        candidates.push(Candidate { leaf, key, value, of, names, identifier, need, crowd });
    }
    candidates
}

/// A value with what it is asked for several times.
struct Seen<'e> {
    leaf: Leaf<'e>,
    text: String,
    records: Vec<RecordName<'e>>,
    place: Place,
    identifier: bool,
}

impl<'e> Seen<'e> {
    /// The value, where it can be a fact: one line, and not a text.
    fn of(leaf: Leaf<'e>) -> Option<Seen<'e>> {
        let value = leaf.value();
        let text = value.trim();
        if leaf.kind() == Kind::Null || text.is_empty() || text.len() > LONGEST_VALUE || text.contains('\n') {
            return None;
        }
        let records = leaf.records();
        let mut around = records.last().map_or("", |name| name.kind.as_str()).to_owned();
        for key in leaf.keys().skip(1) {
            around.push(' ');
            around.push_str(key);
        }
        let place = Place::new(leaf.key(), &around);
        Some(Seen { identifier: is_identifier(text), text: text.to_owned(), records, place, leaf })
    }

    /// The values that it is one of: those of like records of one result under one key.
    fn column(&self) -> (usize, String, &'e str) {
        let kind = self.records.last().map_or("", |name| name.kind.as_str());
        (self.leaf.call(), kind.to_owned(), self.leaf.key())
    }

    /// Whether it is the name of its record.
    fn is_own_name(&self) -> Own {
        match self.records.last() {
            Some(record) if *record.name == *self.text => Own::Whole,
            Some(record) if self.is_called() && record.name.split(' ').any(|part| part == self.text) => {
                Own::Part
            }
            _ => Own::No,
        }
    }

    /// Whether it is an element of a list.
    fn is_listed(&self) -> bool {
        self.leaf.path().ends_with(|c: char| c.is_ascii_digit()) && self.is_own_name() == Own::No
    }

    /// Whether its key says that it is what people call a person or a thing.
    fn is_called(&self) -> bool {
        let key = self.leaf.key().to_lowercase();
        key.ends_with("name") || key.ends_with("title")
    }

    /// Whether it says which person or thing is meant: a name, an identifier, a date.
    fn tells_apart(&self) -> bool {
        self.identifier || self.is_called() || is_date(&self.text)
    }
}

/// Whether a value is the name of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Own {
    No,
    /// A part of it: `Ida` of `Ida Holm`.
    Part,
    Whole,
}

/// The values that can be facts, newest call first, bounded.
fn newest_values(evidence: &Evidence) -> Vec<Seen<'_>> {
    let mut values = Vec::new();
    for (call, seen) in evidence.calls().iter().enumerate().rev() {
        if seen.ended != Ended::Ok {
            continue;
        }
        let from = values.len();
        values.extend(evidence.leaves_of(call).filter_map(Seen::of).take(MOST_VALUES - from));
        values[from..].reverse();
        if values.len() == MOST_VALUES {
            break;
        }
    }
    values
}

/// What all values together say about each.
struct About<'e> {
    focus: Focus,
    /// The call that returned something last.
    last: Option<usize>,
    /// How many different values like records of one result have under one key.
    crowds: HashMap<(usize, String, &'e str), usize>,
    /// Keys of what stands in a container that a tool takes: wherever else they stand, they are taken as well.
    held: HashSet<&'e str>,
    /// The records by their names.
    records: HashMap<String, String>,
    /// How many records there are of each kind.
    kinds: HashMap<String, usize>,
    /// The records that the last turns name, by what identifies them or by what people call them.
    spoken: HashSet<(usize, String)>,
}

impl<'e> About<'e> {
    fn of(evidence: &Evidence, values: &[Seen<'e>], wants: &Wants) -> About<'e> {
        let mut about = About {
            focus: Focus::of(evidence),
            last: values.first().map(|seen| seen.leaf.call()),
            crowds: HashMap::new(),
            held: HashSet::new(),
            records: HashMap::new(),
            kinds: HashMap::new(),
            spoken: HashSet::new(),
        };
        let mut distinct = HashSet::new();
        for seen in values {
            if distinct.insert((seen.column(), seen.text.as_str())) {
                *about.crowds.entry(seen.column()).or_default() += 1;
            }
            if !seen.leaf.key().is_empty() && seen.tells_apart() && wants.hold(&seen.place) {
                about.held.insert(seen.leaf.key());
            }
            if let Some(record) = seen.records.last()
                && about.records.insert(record.name.to_string(), label(record)).is_none()
            {
                *about.kinds.entry(record.kind.clone()).or_default() += 1;
            }
            if let Some(record) = seen.records.last()
                && (about.focus.names(&record.name) || (seen.is_called() && about.focus.names(&seen.text)))
            {
                about.spoken.insert((seen.leaf.call(), label(record)));
            }
        }
        about
    }

    /// The record that a value names beside its own place, if nothing is lost where it is told there: as one of
    /// a list, or because no other record of its kind can be meant.
    fn named_by(&self, value: &str, listed: bool) -> Option<&String> {
        let record = self.records.get(value)?;
        let kind = record.rsplit_once(' ').map_or("", |(kind, _)| kind);
        (listed || self.kinds.get(kind) == Some(&1)).then_some(record)
    }

    /// `again`: its key and value were told before, of another record.
    fn need(&self, seen: &Seen<'e>, record: Option<&String>, again: bool, wants: &Wants) -> Need {
        let wanted = wants.take(&seen.place)
            || (seen.identifier && wants.name(&seen.place))
            || (seen.tells_apart() && self.held.contains(seen.leaf.key()));
        let named = self.focus.names(&seen.text);
        let spoken_of =
            record.is_some_and(|record| self.spoken.contains(&(seen.leaf.call(), record.clone())));
        let around =
            seen.records.iter().any(|name| is_identifier(&name.name) && self.focus.names(&name.name));
        let crowd = self.crowds[&seen.column()];
        let row = !seen.tells_apart() && !named && !spoken_of && crowd > CROWD;
        match () {
            () if row || again => Need::Other,
            () if named && seen.is_called() => Need::WantedNow,
            () if wanted && (named || spoken_of || around) => Need::WantedNow,
            () if wanted && seen.identifier => Need::WantedName,
            () if wanted => Need::Wanted,
            () if seen.identifier => Need::Name,
            () if named => Need::Spoken,
            () if spoken_of || around || Some(seen.leaf.call()) == self.last => Need::Near,
            () => Need::Other,
        }
    }
}

/// A record as it is called in a claim.
fn label(name: &RecordName<'_>) -> String {
    format!("{} {}", name.kind, name.name).trim().to_owned()
}

/// Whether a value is a date, year first.
fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().filter(u8::is_ascii_digit).count() == 8
        && text.as_bytes()[4] == text.as_bytes()[7]
}

/// What the talk is about now.
struct Focus {
    words: HashSet<String>,
    text: String,
}

impl Focus {
    fn of(evidence: &Evidence) -> Focus {
        let mut text = String::new();
        for customer in [true, false] {
            let turns = evidence.turns().iter().rev().filter(|turn| turn.customer == customer);
            for turn in turns.take(LAST_TURNS) {
                text.push_str(&fold::fold(&turn.text));
                text.push('\n');
            }
        }
        let words =
            text.split(char::is_whitespace).map(bare).filter(|word| !word.is_empty()).map(str::to_owned);
        Focus { words: words.collect(), text }
    }

    /// Whether the last turns name this value. Short numbers and common words are named by chance.
    fn names(&self, value: &str) -> bool {
        let value = fold::fold(value);
        let value = bare(&value);
        let shortest = if value.bytes().any(|byte| byte.is_ascii_digit()) { 4 } else { 6 };
        if value.len() < shortest {
            return false;
        }
        match value.split_once(char::is_whitespace) {
            None => self.words.contains(value),
            Some((first, _)) => self.words.contains(bare(first)) && self.text.contains(value),
        }
    }
}

/// A word without the marks around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::handoff::evidence::Happening;

    fn call<'a>(id: &'a str, name: &'a str, arguments: &'a str, result: &'a str) -> Happening<'a> {
        Happening::Call { id, name, arguments, result: Some(result), as_of: None }
    }

    /// Each claim as `id: record: key=value`.
    fn check(run: &[Happening<'_>], takes: &str, bytes: usize, expected: &[&str]) {
        let evidence = Evidence::index(run.iter().copied(), true);
        let wants = Wants::of_calls(std::iter::once(takes));
        let claims = facts(&evidence, &wants, Room { facts: 100, bytes });
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
        let claims = facts(&evidence, &wants, Room { facts: 100, bytes: 170 });
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
            let claims = facts(&evidence, &Wants::default(), Room { facts: 7, bytes });
            let told: usize = claims.iter().map(|claim| claim.value.text.len()).sum();
            assert!(told <= bytes && claims.len() <= 7, "{bytes}: {claims:?}");
        }
    }
}
