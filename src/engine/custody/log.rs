//! The run's log: every call with its result, and what was said, in the order
//! of first sight, over all agents' requests. It is what a receiver's client
//! may have thrown away.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::handoff::evidence::Happening;
use crate::engine::handoff::speaker::{Speaker, Voice};
use crate::engine::hash::{Hash, Hasher};
use crate::engine::reply::ReplyCall;
use crate::engine::time::Timestamp;
use crate::engine::view::{Call, Item, Role};

/// Bytes of text a log keeps; the oldest entries go first, and `cut` says so.
const CAP: usize = 1 << 20;
/// Bytes kept of one result.
const RESULT_CAP: usize = 256 << 10;

/// What the run's tools returned and its people said.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Log {
    entries: Vec<Arc<Entry>>,
    /// Whether entries had to go, so that the log is not the whole run.
    pub cut: bool,
    /// The request that it learned from last: the same one again tells nothing new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read: Option<Hash>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    /// What it is recognised by when a client resends it.
    mark: Hash,
    what: What,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum What {
    Call { id: String, name: String, arguments: String, result: Option<String>, as_of: Option<Timestamp> },
    Customer(String),
    Agent(String),
}

impl What {
    fn bytes(&self) -> usize {
        match self {
            What::Call { id, name, arguments, result, .. } => {
                id.len() + name.len() + arguments.len() + result.as_ref().map_or(0, String::len)
            }
            What::Customer(text) | What::Agent(text) => text.len(),
        }
    }
}

impl Log {
    /// Adds what a request shows and the log does not have yet. `is_transfer` names the calls that move
    /// control; they are no evidence. `now` is when the request came: it is the time of those results
    /// that stand at the list's tail, since only they are sure to be new.
    pub fn learn(
        &mut self,
        items: &[Item<'_>],
        voices: &[Voice<'_>],
        is_transfer: impl Fn(usize, usize) -> bool,
        now: Timestamp,
    ) {
        let results = Results::of(items, now);
        let mut known: HashMap<Hash, Vec<usize>> = HashMap::new();
        for (at, entry) in self.entries.iter().enumerate() {
            known.entry(entry.mark).or_default().push(at);
        }
        let mut met: HashMap<Hash, usize> = HashMap::new();
        // Where the log has it; none where it is new.
        let mut place = |mark: Hash| {
            let nth = met.entry(mark).or_default();
            *nth += 1;
            known.get(&mark).and_then(|places| places.get(*nth - 1)).copied()
        };
        for (at, (item, voice)) in items.iter().zip(voices).enumerate() {
            if let Some(mark) = Entry::said_mark(voice)
                && place(mark).is_none()
            {
                self.entries.push(Entry::said(mark, voice));
            }
            for (n, call) in item.calls.iter().enumerate().filter(|(n, _)| !is_transfer(at, *n)) {
                let (result, as_of) = results.of_call(items, at, n);
                // Of a call without a name, only the upstream knows more.
                if !call.name.is_empty() {
                    let mark = Entry::call_mark(call);
                    match place(mark) {
                        Some(known) => self.fill(known, result, as_of),
                        None => self.entries.push(Entry::call(mark, call, result, as_of)),
                    }
                } else if let Some(result) = result {
                    self.answer(&call.id, result, as_of);
                }
            }
        }
        self.trim();
    }

    /// Adds what a request shows that holds only the end of the conversation; calls and texts before it are in
    /// the log from the replies, and some clients show again what other agents said meanwhile. `turn_open`: the
    /// customer's last turn has no answer yet, so that the same words at the end are the same turn.
    pub fn learn_delta(
        &mut self,
        items: &[Item<'_>],
        voices: &[Voice<'_>],
        is_transfer: impl Fn(usize, usize) -> bool,
        now: Timestamp,
        turn_open: bool,
    ) {
        let results = Results::of(items, now);
        for (at, (item, voice)) in items.iter().zip(voices).enumerate() {
            if let Some(mark) = Entry::said_mark(voice) {
                let is_new = if at >= results.tail && voice.speaker == Speaker::Customer {
                    !turn_open || self.last_customer() != Some(&mark)
                } else {
                    !self.entries.iter().any(|known| known.mark == mark)
                };
                self.entries.extend(is_new.then(|| Entry::said(mark, voice)));
            }
            for (n, call) in item.calls.iter().enumerate().filter(|(n, _)| !is_transfer(at, *n)) {
                let (result, as_of) = results.of_call(items, at, n);
                let mark = Entry::call_mark(call);
                match self.entries.iter().rposition(|known| known.mark == mark) {
                    Some(known) => self.fill(known, result, as_of),
                    None => self.entries.push(Entry::call(mark, call, result, as_of)),
                }
            }
            if let Some(id) = item.answers.as_deref().filter(|_| !results.answering.contains(&at)) {
                self.answer(id, &item.text, results.as_of(at));
            }
        }
        self.trim();
    }

    /// Adds what a reply says that the next request may not show.
    pub fn learn_reply<'r>(&mut self, calls: impl Iterator<Item = &'r ReplyCall>, text: &str) {
        let voice = Voice { speaker: Speaker::Agent, words: Cow::Borrowed(text) };
        self.entries.extend(Entry::said_mark(&voice).map(|mark| Entry::said(mark, &voice)));
        for ReplyCall { id, name, arguments, .. } in calls {
            let call = Call { id: id.into(), name: name.into(), arguments: arguments.into(), span: 0..0 };
            self.entries.push(Entry::call(Entry::call_mark(&call), &call, None, None));
        }
        self.trim();
    }

    /// Whether this request is the one that it learned from last.
    pub fn has_read(&self, request: &Hash) -> bool {
        self.read.as_ref() == Some(request)
    }

    /// It has learned from this request.
    pub fn note_read(&mut self, request: &Hash) {
        self.read = Some(*request);
    }

    /// The result of the newest call with this id that has none.
    fn answer(&mut self, id: &str, text: &str, at: Option<Timestamp>) {
        let is_open = |entry: &Arc<Entry>| matches!(&entry.what, What::Call { id: known, result: None, .. } if known == id);
        if let Some(open) = self.entries.iter().rposition(is_open) {
            self.fill(open, Some(text), at);
        }
    }

    /// The call's result, if it has none yet.
    fn fill(&mut self, entry: usize, found: Option<&str>, at: Option<Timestamp>) {
        let (What::Call { result: None, .. }, Some(found)) = (&self.entries[entry].what, found) else {
            return;
        };
        if let What::Call { result, as_of, .. } = &mut Arc::make_mut(&mut self.entries[entry]).what {
            *result = Some(head(found, RESULT_CAP).to_owned());
            *as_of = at;
        }
    }

    fn last_customer(&self) -> Option<&Hash> {
        let customer = |entry: &&Arc<Entry>| matches!(entry.what, What::Customer(_));
        self.entries.iter().rev().find(customer).map(|entry| &entry.mark)
    }

    /// The log as evidence, in order.
    pub fn happenings(&self) -> impl Iterator<Item = Happening<'_>> {
        self.entries.iter().map(|entry| match &entry.what {
            What::Call { id, name, arguments, result, as_of } => {
                Happening::Call { id, name, arguments, result: result.as_deref(), as_of: *as_of }
            }
            What::Customer(text) => Happening::Customer(text),
            What::Agent(text) => Happening::Agent(text),
        })
    }

    /// The customer's turns, in order.
    pub fn customer_turns(&self) -> impl DoubleEndedIterator<Item = &str> + Clone {
        self.entries.iter().filter_map(|entry| match &entry.what {
            What::Customer(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Whether an agent has said something to the customer.
    pub fn agent_spoke(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.what, What::Agent(_)))
    }

    /// How many results it has.
    pub fn results(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(&entry.what, What::Call { result: Some(_), .. })).count()
    }

    /// Bytes of text in it.
    pub fn bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.what.bytes()).sum()
    }

    fn trim(&mut self) {
        let mut bytes = self.bytes();
        let mut gone = 0;
        while bytes > CAP && gone < self.entries.len() {
            bytes -= self.entries[gone].what.bytes();
            gone += 1;
        }
        if gone > 0 {
            self.entries.drain(..gone);
            self.cut = true;
        }
    }
}

impl Entry {
    /// What somebody of the run said is found by; none where nobody said anything.
    fn said_mark(voice: &Voice<'_>) -> Option<Hash> {
        let purpose = match voice.speaker {
            _ if voice.words.trim().is_empty() => return None,
            Speaker::Customer => "customer",
            Speaker::Agent => "agent",
            _ => return None,
        };
        Some(Hasher::new(purpose).text(&voice.words).finish())
    }

    /// What the customer or an agent said.
    fn said(mark: Hash, voice: &Voice<'_>) -> Arc<Entry> {
        let words = voice.words.clone().into_owned();
        let is_customer = voice.speaker == Speaker::Customer;
        Arc::new(Entry { mark, what: if is_customer { What::Customer(words) } else { What::Agent(words) } })
    }

    fn call_mark(call: &Call<'_>) -> Hash {
        Hasher::new("call").call(call).finish()
    }

    fn call(mark: Hash, call: &Call<'_>, result: Option<&str>, as_of: Option<Timestamp>) -> Arc<Entry> {
        let what = What::Call {
            id: call.id.clone().into_owned(),
            name: call.name.clone().into_owned(),
            arguments: call.arguments.clone().into_owned(),
            result: result.map(|text| head(text, RESULT_CAP).to_owned()),
            as_of,
        };
        Arc::new(Entry { mark, what })
    }
}

/// The results in a list.
struct Results {
    pairs: HashMap<(usize, usize), usize>,
    /// The items that answer a call of the list.
    answering: HashSet<usize>,
    /// Behind the last item of the model's side: what stands there is new.
    tail: usize,
    now: Timestamp,
}

impl Results {
    fn of(items: &[Item<'_>], now: Timestamp) -> Results {
        let tail = items.iter().rposition(|item| item.role == Role::Assistant).map_or(0, |at| at + 1);
        let pairs = pair(items);
        let answering = pairs.values().copied().collect();
        Results { pairs, answering, tail, now }
    }

    /// What the call gave, and when it was seen.
    fn of_call<'a>(
        &self,
        items: &'a [Item<'_>],
        item: usize,
        call: usize,
    ) -> (Option<&'a str>, Option<Timestamp>) {
        match self.pairs.get(&(item, call)) {
            Some(&at) => (Some(&items[at].text), self.as_of(at)),
            None => (None, None),
        }
    }

    fn as_of(&self, at: usize) -> Option<Timestamp> {
        (at >= self.tail).then_some(self.now)
    }
}

/// Which item answers which call, as `(item, call) → item`: each result belongs to the nearest earlier
/// call with its id that is still unanswered, since ids repeat.
pub fn pair(items: &[Item<'_>]) -> HashMap<(usize, usize), usize> {
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut pairs = HashMap::new();
    for (at, item) in items.iter().enumerate() {
        if let Some(id) = &item.answers
            && let Some(place) = open.iter().rposition(|&(i, n)| items[i].calls[n].id == *id)
        {
            pairs.insert(open.remove(place), at);
        }
        open.extend((0..item.calls.len()).map(|n| (at, n)));
        // Only so many calls can be open in a list that a provider takes; an endless tail would cost time.
        if open.len() > 4096 {
            open.drain(..2048);
        }
    }
    pairs
}

/// The first `max` bytes of `text`, cut at a character.
fn head(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::view::{Form, Seal};

    fn item(role: Role, text: &'static str) -> Item<'static> {
        Item {
            span: 0..0,
            role,
            name: None,
            text: Cow::Borrowed(text),
            form: Form::Text,
            content: None,
            calls: Vec::new(),
            answers: None,
            seal: Seal::Open,
            media: 0,
        }
    }

    fn call(id: &'static str, name: &'static str) -> Item<'static> {
        let arguments = Cow::Borrowed("{}");
        let call = Call { id: id.into(), name: name.into(), arguments, span: 0..0 };
        Item { calls: vec![call], ..item(Role::Assistant, "") }
    }

    fn result(id: &'static str, text: &'static str) -> Item<'static> {
        Item { answers: Some(id.into()), ..item(Role::Tool, text) }
    }

    fn learn(log: &mut Log, items: &[Item<'_>], now: u64) {
        let voices: Vec<_> = items
            .iter()
            .map(|item| Voice {
                speaker: match item.role {
                    Role::User => Speaker::Customer,
                    Role::Tool => Speaker::Tool,
                    _ => Speaker::Agent,
                },
                words: Cow::Borrowed(item.text.as_ref()),
            })
            .collect();
        log.learn(items, &voices, |_, _| false, Timestamp(now));
    }

    fn shown(log: &Log) -> Vec<String> {
        log.happenings()
            .map(|happening| match happening {
                Happening::Call { id, result, as_of, .. } => {
                    format!(
                        "{id}={} @{}",
                        result.unwrap_or("-"),
                        as_of.map_or("?".into(), |at| at.0.to_string())
                    )
                }
                Happening::Customer(text) => format!("customer: {text}"),
                Happening::Agent(text) => format!("agent: {text}"),
            })
            .collect()
    }

    #[test]
    fn a_growing_list_adds_only_what_is_new() {
        let mut log = Log::default();
        let list = [
            item(Role::User, "hi"),
            call("a", "find"),
            result("a", "1"),
            call("a", "find"),
            result("a", "2"),
        ];
        learn(&mut log, &list[..2], 10);
        learn(&mut log, &list[..3], 20);
        learn(&mut log, &list, 30);
        learn(&mut log, &list, 40);
        assert_eq!(shown(&log), ["customer: hi", "a=1 @20", "a=2 @30"]);
    }

    #[test]
    fn a_result_that_was_first_seen_deep_in_a_list_has_no_time() {
        let mut log = Log::default();
        learn(&mut log, &[call("a", "find"), result("a", "1"), item(Role::Assistant, "done")], 10);
        assert_eq!(shown(&log), ["a=1 @?", "agent: done"]);
    }

    #[test]
    fn a_client_that_forgets_the_senders_calls_loses_nothing() {
        let mut log = Log::default();
        learn(&mut log, &[item(Role::User, "hi"), call("a", "find"), result("a", "1")], 10);
        learn(&mut log, &[item(Role::User, "hi"), call("b", "refund"), result("b", "2")], 20);
        assert_eq!(shown(&log), ["customer: hi", "a=1 @10", "b=2 @20"]);
    }

    #[test]
    fn a_log_over_its_bound_drops_the_oldest_and_says_so() {
        let mut log = Log::default();
        let big: &'static str = "x".repeat(RESULT_CAP + 5).leak();
        for id in ["a", "b", "c", "d", "e"] {
            learn(&mut log, &[call(id, "find"), result(id, big)], 10);
        }
        assert!(log.cut);
        assert!(log.happenings().count() < 5);
    }
}
