//! Finds the values of one result that a claim's key can mean, by the words
//! that the key, the record, the call and its arguments bear.

use std::collections::HashMap;
use std::ops::Range;

use super::question::{Marks, Question, range_marks};
use crate::engine::handoff::evidence::{CallSeen, Class, Document, Evidence, How, KeyId, Kind};
use crate::engine::handoff::value::fold::{self, Words};

/// A value that the key can mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    pub(crate) node: u32,
    /// The key is named in part only.
    pub(crate) partly: bool,
}

/// What a result has for a key.
pub(crate) enum Resolved {
    /// Values that fit the key and its record, all equally well.
    Fits(Vec<Fit>),
    /// The key is there, but not for this record.
    OtherRecord,
    /// The key is not there.
    NoKey,
}

/// At most this many values with the key are looked at in one result.
const CANDIDATES: usize = 4_096;
/// Elements of a list are known by their place up to this one.
const PLACES: usize = 1_000;
/// At most this many values, and different keys, are compared with a key that is said in part.
const PARTLY: (usize, usize) = (20_000, 512);
/// At most this many fields of an object are looked at for a record's name.
const FIELDS: usize = 48;

/// Finds what the key means in one call's result.
pub(crate) fn resolve(question: &Question, evidence: &Evidence, call: u32) -> Resolved {
    let resolver = Resolver { question, evidence, seen: evidence.seen(call) };
    let call_marks = resolver.call_marks();
    let scopes = resolver.scopes();
    // Inside the records that are named, the innermost first. Where their names do not bear all of it,
    // it may be another record of that name, and the whole result is looked at.
    for scope in &scopes {
        if let Some((rank, fits)) = resolver.best(&resolver.exact(scope), call_marks)
            && rank.loose == 0
        {
            return Resolved::Fits(fits);
        }
    }
    let whole = 0..resolver.seen.result.nodes.len() as u32;
    let candidates = resolver.exact(&whole);
    let key_there = !candidates.is_empty();
    if let Some((_, fits)) = resolver.best(&candidates, call_marks) {
        return Resolved::Fits(fits);
    }
    for scope in scopes.iter().chain([&whole]) {
        if let Some((_, fits)) = resolver.best(&resolver.partial(scope, call_marks), call_marks) {
            return Resolved::Fits(fits);
        }
    }
    if key_there { Resolved::OtherRecord } else { Resolved::NoKey }
}

/// The words that a call itself bears: arguments and tool; and those of the tool alone.
pub(crate) fn call_words(question: &Question, evidence: &Evidence, call: u32) -> (Marks, Marks) {
    Resolver { question, evidence, seen: evidence.seen(call) }.call_marks()
}

/// How much a value leaves unsaid; the lowest is meant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Its key is said in part.
    partly: bool,
    /// Its key is not the one that the writing points to.
    unnamed: bool,
    /// Words that nothing bears.
    unsaid: u32,
    /// Words of the record that only fields beside it bear.
    loose: u32,
    /// Records between it and the one that is named.
    crossed: u32,
    /// A longer key is the better one.
    unkeyed: u32,
    /// Words that only the call bears.
    weak: u32,
}

/// A value with the key, and the words of the question that are the key.
struct Candidate {
    node: u32,
    key: Marks,
    partly: bool,
}

/// A record around a value, and the words of the question that say what kind of record it is.
struct Member {
    record: u32,
    kinds: Marks,
}

struct Resolver<'r> {
    question: &'r Question,
    evidence: &'r Evidence,
    seen: &'r CallSeen,
}

impl Resolver<'_> {
    /// The words that arguments and tool bear, and those that the tool alone bears.
    fn call_marks(&self) -> (Marks, Marks) {
        let mut found = 0;
        let arguments = &self.seen.arguments;
        for node in 1..arguments.nodes.len().min(256) as u32 {
            let at = arguments.node(node);
            if at.key != KeyId::NONE {
                for word in self.evidence.keys[at.key].words().iter() {
                    found |= self.question.mark_word(word);
                }
            }
            if arguments.is_leaf(node) {
                found |= self.value_marks(arguments, node);
            }
        }
        let mut tool = 0;
        for word in self.seen.tool.words.iter() {
            tool |= self.question.mark_word(word);
        }
        (found | tool, tool)
    }

    /// The node ranges of the records that the key names, the innermost first.
    fn scopes(&self) -> Vec<Range<u32>> {
        let mut nodes: Vec<u32> = Vec::new();
        for (_, hash) in &self.question.names {
            for record in self.seen.records.named(*hash).take(64) {
                let known = self.seen.records.known(record);
                nodes.push(self.seen.records.all[known as usize].node);
            }
        }
        nodes.sort_unstable_by(|a, b| b.cmp(a));
        nodes.dedup();
        nodes.into_iter().map(|node| node..self.seen.result.node(node).end).collect()
    }

    /// The values in a range whose key is spelled as some window of the question.
    fn exact(&self, scope: &Range<u32>) -> Vec<Candidate> {
        let result = &self.seen.result;
        let mut found = Vec::new();
        let mut wanted: Vec<(KeyId, Marks)> = Vec::new();
        for window in &self.question.keys {
            let spelled = self.evidence.keys.spelled(self.question.words.window(window.clone()));
            wanted.extend(spelled.iter().map(|key| (*key, range_marks(window))));
        }
        if let Some(lookup) = result.lookup() {
            for (key, marks) in wanted {
                let inside = lookup.with_key(key).filter(|node| scope.contains(node));
                found.extend(inside.take(CANDIDATES).map(|node| Candidate {
                    node,
                    key: marks,
                    partly: false,
                }));
            }
            return found;
        }
        for node in scope.clone() {
            let key = result.node(node).key;
            let windows = wanted.iter().filter(|(own, _)| *own == key && key != KeyId::NONE);
            found.extend(windows.map(|(_, marks)| Candidate { node, key: *marks, partly: false }));
        }
        found
    }

    /// The values in a range whose key is named in part, or with words that others bear.
    fn partial(&self, scope: &Range<u32>, call: (Marks, Marks)) -> Vec<Candidate> {
        let question = self.question;
        let said = range_marks(&question.named) & !question.fillers & !question.required;
        let said = if said & !call.0 == 0 { said } else { said & !(call.0 & !call.1) };
        let mut found: Vec<Candidate> = Vec::new();
        if said == 0 {
            return found;
        }
        let mut looked: HashMap<KeyId, (Marks, bool)> = HashMap::new();
        for node in scope.clone().take(PARTLY.0) {
            let key = self.seen.result.node(node).key;
            if key == KeyId::NONE || found.len() >= CANDIDATES || looked.len() >= PARTLY.1 {
                continue;
            }
            let (marks, whole) = *looked.entry(key).or_insert_with(|| self.overlap(key));
            // All of the key's words are said, or all that is said are words of the key.
            if marks & said != 0 && (whole || said & !marks == 0) {
                found.push(Candidate { node, key: marks, partly: true });
            }
        }
        found
    }

    /// The question's words that a key bears, and whether it bears no others.
    fn overlap(&self, key: KeyId) -> (Marks, bool) {
        let mut found = 0;
        let mut whole = true;
        for word in self.evidence.keys[key].words().iter() {
            let marks = same_meaning(word)
                .iter()
                .fold(self.question.mark_word(word), |marks, other| marks | self.question.mark_word(other));
            whole &= marks != 0;
            found |= marks;
        }
        (found, whole)
    }

    /// The candidates that leave the least unsaid, if any bears all that has to be borne.
    fn best(&self, candidates: &[Candidate], call: (Marks, Marks)) -> Option<(Rank, Vec<Fit>)> {
        let named = self.named_records();
        let mut best: Vec<Fit> = Vec::new();
        let mut lowest: Option<Rank> = None;
        for candidate in candidates {
            let Some(rank) = self.rank(candidate, &named, call) else { continue };
            if lowest.is_none_or(|lowest| rank < lowest) {
                best.clear();
                lowest = Some(rank);
            }
            if lowest == Some(rank) {
                best.push(Fit { node: candidate.node, partly: candidate.partly });
            }
        }
        best.sort_by_key(|fit| fit.node);
        best.dedup_by_key(|fit| fit.node);
        lowest.map(|rank| (rank, best))
    }

    /// How much a candidate leaves unsaid; none if it does not bear what it has to.
    fn rank(&self, candidate: &Candidate, named: &[u32], (call, _): (Marks, Marks)) -> Option<Rank> {
        let question = self.question;
        let result = &self.seen.result;
        let chain = self.chain(candidate.node);
        let (mut strong, mut loose) = (0, 0);
        for member in &chain {
            strong |= member.kinds | self.name_marks(member, &chain);
        }
        let mut crossed = 0;
        let mut inside = false;
        let mut node = candidate.node;
        while node != 0 {
            let at = result.node(node);
            if node != candidate.node && at.key != KeyId::NONE {
                for word in self.evidence.keys[at.key].words().iter() {
                    strong |= question.mark_word(word);
                }
            }
            if at.kind == Kind::Object {
                if question.all() & !(candidate.key | question.fillers | strong | loose | call) != 0
                    || question.required & !strong != 0
                {
                    loose |= self.field_marks(node);
                }
                inside |= named.contains(&node);
                let own = &self.seen.records.all[self.seen.records.of(node) as usize];
                crossed += u32::from(own.node == node && own.how != How::Nowhere && !inside);
            }
            let element = at.key == KeyId::NONE && result.node(at.parent).kind == Kind::Array;
            if element && question.required & !strong != 0 {
                loose |= self.place_marks(node);
            }
            node = at.parent;
        }
        let said = candidate.key | question.fillers | strong | loose | call;
        if question.required & !said != 0 {
            return None;
        }
        let unsaid = question.all() & !said;
        // A word beside the key that nothing bears makes it another key: `refund_status` is not `status`.
        let beside = unsaid & !question.free & !question.kinds;
        if beside != 0 && !self.excused(candidate, beside) {
            return None;
        }
        let weak = call & question.all() & !(candidate.key | question.fillers | strong | loose);
        Some(Rank {
            partly: candidate.partly,
            unnamed: range_marks(&question.named) & !(candidate.key | question.fillers) != 0,
            unsaid: unsaid.count_ones(),
            loose: (question.required & !strong).count_ones(),
            crossed,
            unkeyed: 64 - candidate.key.count_ones(),
            weak: weak.count_ones(),
        })
    }

    /// The records around a node, the innermost first, each with the words that say its kind.
    fn chain(&self, node: u32) -> Vec<Member> {
        self.seen
            .records
            .chain(self.seen.records.of(node))
            .map(|record| {
                let mut kinds = 0;
                for name in self.seen.records.names_of(record) {
                    let key = &self.evidence.keys[name.key];
                    let words = if key.stem() > 0 && key.class != Class::Plain {
                        key.stem()
                    } else {
                        key.words().len()
                    };
                    for word in key.words().iter().take(words) {
                        kinds |= self.question.mark_word(word);
                    }
                }
                let mut at = self.seen.records.all[record as usize].node;
                for _ in 0..3 {
                    let node = self.seen.result.node(at);
                    if node.key != KeyId::NONE {
                        for word in self.evidence.keys[node.key].words().iter() {
                            kinds |= self.question.mark_word(word);
                        }
                        break;
                    }
                    if at == 0 {
                        break;
                    }
                    at = node.parent;
                }
                Member { record, kinds: kinds & !self.question.required }
            })
            .collect()
    }

    /// The words that name a record: not those behind the kind of another record of the chain.
    fn name_marks(&self, member: &Member, chain: &[Member]) -> Marks {
        let question = self.question;
        let mut found = 0;
        for name in self.seen.records.names_of(member.record) {
            let text = self.seen.folded(name, &self.evidence.keys);
            for window in question.windows_of(&text) {
                let before = question.before(window.start);
                let others =
                    chain.iter().any(|other| other.record != member.record && other.kinds & before != 0);
                if before == 0 || member.kinds & before != 0 || !others {
                    found |= range_marks(&window);
                }
            }
        }
        found
    }

    /// The nodes of the records that the question names.
    fn named_records(&self) -> Vec<u32> {
        let mut found: Vec<u32> = Vec::new();
        for (_, hash) in &self.question.names {
            found.extend(
                self.seen
                    .records
                    .named(*hash)
                    .take(64)
                    .map(|record| self.seen.records.all[record as usize].node),
            );
        }
        found
    }

    /// Whether a word beside the key may stand there: a person's role, or what the value itself says
    /// (`delivery_status`: delivered).
    fn excused(&self, candidate: &Candidate, beside: Marks) -> bool {
        let value = Words::of(&self.seen.result.value(candidate.node));
        (0..self.question.words.len()).filter(|index| beside & (1 << (*index).min(63)) != 0).all(|index| {
            let word = self.question.words.word(index);
            PERSONS.contains(&word) || value.iter().any(|own| same_stem(own, word))
        })
    }

    /// The words that are an element's place in its list, counted from 0.
    fn place_marks(&self, node: u32) -> Marks {
        let list = self.seen.result.node(node).parent;
        let question = self.question;
        (0..question.words.len())
            .filter(|index| question.required >> (*index).min(63) & 1 == 1)
            .filter(|index| {
                let place = question.words.word(*index).parse::<usize>().ok().filter(|place| *place < PLACES);
                place.is_some_and(|place| self.seen.result.children(list).nth(place) == Some(node))
            })
            .fold(0, |found, index| found | 1 << index.min(63))
    }

    /// The words that an object's fields bear.
    fn field_marks(&self, node: u32) -> Marks {
        let result = &self.seen.result;
        let fields = result.children(node).take(FIELDS).filter(|child| result.is_leaf(*child));
        fields.fold(0, |found, child| found | self.value_marks(result, child))
    }

    /// The words that a value names, with those of its key.
    fn value_marks(&self, document: &Document, node: u32) -> Marks {
        let at = document.node(node);
        if !matches!(at.kind, Kind::Text | Kind::Number) || at.len == 0 || at.len > 256 {
            return 0;
        }
        let raw = document.raw(node);
        if raw.is_ascii() {
            let initial = raw.bytes().find(u8::is_ascii_alphanumeric);
            if !initial.is_some_and(|byte| self.question.has_initial(byte.to_ascii_lowercase())) {
                return 0;
            }
        }
        let marks = self.question.mark_text(&Words::of(&document.value(node)).text);
        if marks == 0 {
            return 0;
        }
        let key = &self.evidence.keys[at.key];
        let mut kinds = 0;
        if key.class != Class::Plain {
            for word in key.words().iter() {
                kinds |= self.question.mark_word(word);
            }
        }
        marks | kinds
    }
}

/// The persons a value may be of without the result saying so.
const PERSONS: [&str; 7] = ["customer", "user", "client", "caller", "member", "account", "person"];

/// Words of keys that mean the same.
fn same_meaning(word: &str) -> &'static [&'static str] {
    const GROUPS: [&[&str]; 9] = [
        &["number", "no", "num", "nr"],
        &["quantity", "qty"],
        &["phone", "telephone", "tel"],
        &["zip", "postcode", "postal"],
        &["email", "mail"],
        &["dob", "birth", "birthday", "birthdate"],
        &["address", "addr"],
        &["amount", "amt"],
        &["description", "desc"],
    ];
    GROUPS.iter().find(|group| group.contains(&word)).copied().unwrap_or(&[])
}

/// Whether two words begin alike, as `delivery` and `delivered` do.
fn same_stem(a: &str, b: &str) -> bool {
    let common = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    common >= 5 || fold::same_word(a, b)
}
