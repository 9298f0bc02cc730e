//! The values of a run's results, and what each is to the receiver: how likely
//! it is to be needed, by what its tools take and by what the talk is about.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::wants::Place;
use super::{Wants, is_identifier};
use crate::engine::handoff::evidence::{Ended, Evidence, Kind, Leaf, RecordName};
use crate::engine::handoff::value::fold;

/// Values looked at, the newest ones; a run with more is one of bulk data.
const MOST_VALUES: usize = 10_000;
/// Bytes of a value; longer ones are texts and not facts.
pub(super) const LONGEST_VALUE: usize = 120;
/// Customer's turns, and agents' turns, whose words say what the talk is about now.
const LAST_TURNS: usize = 2;
/// Values that like records have under one key, beyond which they are rows of a listing.
const CROWD: usize = 3;
/// Keys that say little without the object around them.
const BROAD_KEYS: &[&str] = &["state", "type", "value", "code", "number", "date", "time", "count", "total"];

/// How likely a receiver needs a value; the first of these that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    /// A tool of the receiver's takes it, and the last turns speak of it or of its record; or it is what
    /// they call a record, or where such a record stands.
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

/// A value with what it is asked for several times.
pub(super) struct Seen<'e> {
    pub(super) leaf: Leaf<'e>,
    pub(super) text: String,
    pub(super) records: Vec<RecordName<'e>>,
    place: Place,
    pub(super) identifier: bool,
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
    pub(super) fn column(&self) -> (usize, String, &'e str) {
        let kind = self.records.last().map_or("", |name| name.kind.as_str());
        (self.leaf.call(), kind.to_owned(), self.leaf.key())
    }

    /// Whether it is the name of its record.
    pub(super) fn is_own_name(&self) -> Own {
        match self.records.last() {
            Some(record) if *record.name == *self.text => Own::Whole,
            Some(record) if self.is_called() && record.name.split(' ').any(|part| part == self.text) => {
                Own::Part
            }
            _ => Own::No,
        }
    }

    /// The key that a claim names: the value's own, with that of the object around it where the word alone means
    /// many things (`address.state` is no state of an order).
    pub(super) fn claimed_key(&self) -> Cow<'e, str> {
        let key = self.leaf.key();
        if key.is_empty() {
            return Cow::Borrowed(self.leaf.tool());
        }
        let path = self.leaf.path();
        let around = path
            .strip_suffix(key)
            .and_then(|rest| rest.strip_suffix('.'))
            .and_then(|rest| rest.rsplit('.').next());
        match around {
            Some(around) if BROAD_KEYS.contains(&key) && around.parse::<usize>().is_err() => {
                Cow::Owned(format!("{around}.{key}"))
            }
            _ => Cow::Borrowed(key),
        }
    }

    /// Whether it is an element of a list.
    pub(super) fn is_listed(&self) -> bool {
        self.leaf.path().ends_with(|c: char| c.is_ascii_digit()) && self.is_own_name() == Own::No
    }

    /// Whether its key says that it is what people call a person or a thing.
    pub(super) fn is_called(&self) -> bool {
        let key = self.leaf.key().to_lowercase();
        key.ends_with("name") || key.ends_with("title")
    }

    /// Whether its key says that it is where its record stands.
    fn is_state(&self) -> bool {
        let key = self.leaf.key().to_lowercase();
        ["status", "stage", "phase"].iter().any(|end| key.ends_with(end))
    }

    /// Whether it says which person or thing is meant: a name, an identifier, a date.
    fn tells_apart(&self) -> bool {
        self.identifier || self.is_called() || is_date(&self.text)
    }
}

/// Whether a value is the name of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    No,
    /// A part of it: `Ida` of `Ida Holm`.
    Part,
    Whole,
}

/// The values that can be facts, newest call first, bounded.
pub(super) fn newest_values(evidence: &Evidence) -> Vec<Seen<'_>> {
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
pub(super) struct About<'e> {
    focus: Focus,
    /// The call that returned something last.
    last: Option<usize>,
    /// How many different values like records of one result have under one key.
    pub(super) crowds: HashMap<(usize, String, &'e str), usize>,
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
    pub(super) fn of(evidence: &Evidence, values: &[Seen<'e>], wants: &Wants) -> About<'e> {
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
    pub(super) fn named_by(&self, value: &str, listed: bool) -> Option<&String> {
        let record = self.records.get(value)?;
        let kind = record.rsplit_once(' ').map_or("", |(kind, _)| kind);
        (listed || self.kinds.get(kind) == Some(&1)).then_some(record)
    }

    /// `again`: its key and value were told before, of another record.
    pub(super) fn need(&self, seen: &Seen<'e>, record: Option<&String>, again: bool, wants: &Wants) -> Need {
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
            () if spoken_of && seen.is_state() => Need::WantedNow,
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
pub(super) fn label(name: &RecordName<'_>) -> String {
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
