//! What a request says about transfers: its agent, the transfer tools it
//! offers, the transfers in its history, and where to look its run up.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::custody::agent::Fingerprint;
use super::custody::log::pair;
use super::custody::run::{introduces, words};
use super::handoff::brief;
use super::handoff::detect::{Destination, Naming, Offer, Offered, is_refusal, same_agent};
use super::handoff::speaker::{Company, Said, Speaker, Voice, said, voices};
use super::handoff::transcript::Groups;
use super::hash::{self, Hash, Hasher};
use super::view::{Dialect, Role, Seal, View};
use super::wire::{NestedCall, nested_calls};

/// Ways to look up that a single request may use at most; a list offers many.
const LOOKUPS: usize = 24;
/// Texts of other speakers shorter than this are common to many runs ("Hello!") and find nothing.
const TELLING: usize = 24;
/// The most one argument may hold and still be looked for in a receiver's first message.
const DELEGATED_MAX: usize = 64 << 10;

/// A request as read.
#[derive(Debug)]
pub struct Reading<'b> {
    /// How transfers are named here.
    naming: Arc<Naming>,
    /// The request.
    pub view: View<'b>,
    /// Whose system text and tools these are.
    pub print: Fingerprint,
    /// The leading system text, without a brief at its end.
    pub system: String,
    /// Whether the system slot ends in a brief already.
    pub briefed: bool,
    /// The transfer tools on offer.
    pub offers: Vec<Offer>,
    /// The transfers in the history, oldest first.
    pub transfers: Vec<Visible>,
    /// Which result answers which call.
    pub results: HashMap<(usize, usize), usize>,
    /// What each item's text tells by itself.
    said: Vec<Said>,
    /// Where to look the run up, beside the operator's header; found out once.
    lookups: OnceLock<Vec<Lookup>>,
    /// The hash of the request, once somebody asked for it.
    request: OnceLock<Hash>,
    /// The words of the system text, once somebody asked for them.
    system_words: OnceLock<Vec<String>>,
    /// What of the list belongs together, once somebody asked for it.
    groups: OnceLock<Groups>,
}

/// A transfer call in the history.
#[derive(Clone, Debug)]
pub struct Visible {
    /// The item it stands in.
    pub item: usize,
    /// Its place among the item's calls.
    pub call: usize,
    /// Where it goes, where it says so.
    pub to: Option<Destination>,
    /// The item that answers it.
    pub result: Option<usize>,
    /// What it is found by.
    pub mark: Hash,
}

/// How a run may be found, the surest way first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// The operator's header names it.
    Header,
    /// The reply that the request goes on from, or the stored conversation.
    Response,
    /// A transfer call that stands in the list.
    Call,
    /// A call that Seam forwarded stands in the list.
    Lineage,
    /// A text that Seam forwarded stands in the list, behind the same customer turns.
    Text,
    /// The same customer turns, for a transfer that waits.
    Turns,
    /// A sender's words open the conversation.
    Words,
    /// The client says that it sends the same request again.
    Resent,
}

impl Way {
    /// The name in keys and explanations.
    pub fn name(self) -> &'static str {
        match self {
            Way::Header => "header",
            Way::Response => "response",
            Way::Call => "call",
            Way::Lineage => "line",
            Way::Text => "text",
            Way::Turns => "turns",
            Way::Words => "words",
            Way::Resent => "resent",
        }
    }

    /// Whether it serves only as long as a transfer waits for its receiver, or a client for its reply.
    pub fn waits(self) -> bool {
        self >= Way::Turns
    }
}

/// A place to look a run up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// By which way.
    pub way: Way,
    /// The key, without the tenant.
    pub key: String,
}

impl Lookup {
    fn new(way: Way, hash: &Hash) -> Self {
        Lookup { way, key: format!("{}/{hash}", way.name()) }
    }
}

/// Reads what a request says about transfers. `agent` is the operator's agent header.
pub fn reading<'b>(view: View<'b>, naming: &Arc<Naming>, agent: Option<&str>) -> Reading<'b> {
    reading_on(view, naming, agent, None)
}

/// The same, where so many first bytes are those of an earlier reading's body.
pub fn reading_on<'b>(
    view: View<'b>,
    naming: &Arc<Naming>,
    agent: Option<&str>,
    earlier: Option<(&Reading<'_>, usize)>,
) -> Reading<'b> {
    let leading = view.leading_system();
    let system = view.items[..leading].iter().map(|item| item.text.as_ref()).collect::<Vec<_>>().join("\n");
    // Without a role for instructions they open the first turn; with one, a customer cannot speak for Seam.
    let opening = view.items.first().filter(|item| item.role == Role::User);
    let briefed = brief::hash_in(&system).is_some()
        || opening.is_some_and(|item| {
            brief::hash_in(&item.text).is_some() || brief::ahead_in(&item.text).is_some()
        });
    let print = Fingerprint::new(&system, view.tools.iter().map(|tool| tool.name.as_ref()), agent);
    let offers = naming.offers(&view.tools);
    let results = pair(&view.items);
    let mut transfers = Vec::new();
    for (at, item) in view.items.iter().enumerate() {
        for (n, call) in item.calls.iter().enumerate() {
            let result = results.get(&(at, n)).copied();
            let text = result.map(|result| view.items[result].text.as_ref());
            if naming.is_transfer_call(&call.name, &call.arguments, text) {
                let to = naming.destination(&call.name, &call.arguments);
                let mark = transfer_mark(&call.id, &call.name, &call.arguments);
                transfers.push(Visible { item: at, call: n, to, result, mark });
            }
        }
    }
    let mut told: Vec<Said> =
        earlier.map(|(earlier, same)| earlier.said_in(same).to_vec()).unwrap_or_default();
    told.extend(said(&view.items[told.len()..]));
    let (naming, said) = (Arc::clone(naming), told);
    Reading {
        naming,
        view,
        print,
        system,
        briefed,
        offers,
        transfers,
        results,
        said,
        lookups: OnceLock::new(),
        request: OnceLock::new(),
        system_words: OnceLock::new(),
        groups: OnceLock::new(),
    }
}

impl Reading<'_> {
    /// The same reading, which outlives the body.
    pub fn into_owned(self) -> Reading<'static> {
        Reading {
            naming: self.naming,
            view: self.view.into_owned(),
            print: self.print,
            system: self.system,
            briefed: self.briefed,
            offers: self.offers,
            transfers: self.transfers,
            results: self.results,
            said: self.said,
            lookups: self.lookups,
            request: self.request,
            system_words: self.system_words,
            groups: self.groups,
        }
    }

    /// What was said in the items before any that reaches beyond the first `same` bytes.
    fn said_in(&self, same: usize) -> &[Said] {
        let count = self.view.items.iter().take_while(|item| item.span.end <= same).count();
        &self.said[..count]
    }

    /// The hash of the request; `body` is what it was read from.
    pub fn request(&self, body: &[u8]) -> &Hash {
        self.request.get_or_init(|| hash::request(body))
    }

    /// What of the list belongs together.
    pub fn groups(&self) -> &Groups {
        self.groups.get_or_init(|| Groups::of(&self.view.items, self.view.dialect == Dialect::Chat))
    }

    /// Whether a tool of this name is a transfer tool on offer.
    pub fn offers_tool(&self, name: &str) -> bool {
        self.offers.iter().any(|offer| self.view.tools[offer.tool].name == name)
    }

    /// Whether a call of the list is one of the transfers.
    pub fn is_transfer(&self, item: usize, call: usize) -> bool {
        self.transfers.iter().any(|visible| visible.item == item && visible.call == call)
    }

    /// The last transfer that was answered, and not refused by the client.
    pub fn last_answered(&self) -> Option<&Visible> {
        let answered = |visible: &&Visible| {
            visible.result.is_some_and(|result| !is_refusal(&self.view.items[result].text))
        };
        self.transfers.iter().rev().find(answered)
    }

    /// Whether the request still offers a transfer to this destination: then its agent is not it.
    pub fn offers_transfer_to(&self, to: &Destination) -> bool {
        self.offers.iter().any(|offer| match &offer.to {
            Offered::Named(other) => {
                to.is(&other.name) || other.uncounted.as_deref().is_some_and(|name| to.is(name))
            }
            Offered::OneOf(names) => names.iter().any(|name| to.is(name)),
            Offered::Open => false,
        })
    }

    /// Whether the conversation begins here: nothing was called, and nobody has answered the customer yet.
    pub fn is_opening(&self) -> bool {
        let items = &self.view.items;
        let spoken = items.iter().position(|item| item.role == Role::User).unwrap_or(items.len());
        !self.view.is_delta()
            && items.iter().all(|item| item.calls.is_empty() && item.role != Role::Tool)
            && items[spoken..].iter().all(|item| item.role != Role::Assistant)
    }

    /// Whether it is a guardrail's or a title's: no tools, and a reply in a fixed shape.
    pub fn is_bystander(&self) -> bool {
        self.view.shaped_reply && self.view.tools.is_empty()
    }

    /// Whether the agent's own instructions call it by this name.
    pub fn calls_itself(&self, to: &Destination) -> bool {
        let named = |name: &str| {
            let name: Vec<String> = words(name).collect();
            let system = self.system_words();
            !name.is_empty() && system.windows(name.len()).any(|window| window == name)
        };
        named(&to.name) || to.uncounted.as_deref().is_some_and(named)
    }

    fn system_words(&self) -> &[String] {
        self.system_words.get_or_init(|| words(&self.system).collect())
    }

    /// As what the agent's own instructions introduce it: the words behind `You are the`.
    pub fn introduction(&self) -> String {
        let system = self.system_words();
        let Some(at) = system.windows(2).position(|pair| pair == ["you", "are"]) else {
            return String::new();
        };
        let article = |word: &&String| matches!(word.as_str(), "the" | "a" | "an");
        system[at + 2..].iter().skip_while(article).take(8).cloned().collect::<Vec<_>>().join(" ")
    }

    /// Whether the agent's own instructions say that it *is* the one of this name.
    pub fn introduces_itself(&self, to: &Destination) -> bool {
        introduces(&self.introduction(), to)
    }

    /// The voices of the list, as far as the list and `run` tell.
    pub fn voices(&self, run: &impl Company) -> Vec<Voice<'_>> {
        voices(&self.view.items, &self.said, &ListAnd { reading: self, run })
    }

    /// Where the request itself says to look the run up, the surest way first.
    pub fn lookups(&self) -> &[Lookup] {
        self.lookups.get_or_init(|| self.find_lookups())
    }

    fn find_lookups(&self) -> Vec<Lookup> {
        if self.view.is_delta() {
            // What the list shows is no more than its end: it tells no run from another.
            return self.held_lookups();
        }
        let mut lookups = Vec::new();
        let voices = self.voices(&Nobody);
        for visible in self.transfers.iter().rev().take(4) {
            lookups.push(Lookup::new(Way::Call, &visible.mark));
        }
        for (at, voice) in voices.iter().enumerate().rev() {
            if voice.speaker == Speaker::Wrapper {
                lookups.extend(self.nested_lookups(&voice.words));
            }
            lookups.extend(self.lineage_of(at, &voices));
            if lookups.len() > LOOKUPS {
                break;
            }
        }
        lookups.push(turns_lookup(&voices));
        lookups.extend(self.word_lookups(&voices));
        lookups
    }

    /// The ways that name what the upstream holds.
    pub fn held_lookups(&self) -> Vec<Lookup> {
        let state = &self.view.server_state;
        let previous = state.previous.as_deref().map(response_lookup);
        previous.into_iter().chain(state.conversation.as_deref().map(conversation_lookup)).collect()
    }

    /// The customer's turns, as hashes of their words, in order.
    pub fn turns(&self, voices: &[Voice<'_>]) -> Vec<Hash> {
        let customers = self.said.iter().zip(voices).filter(|(_, voice)| voice.speaker == Speaker::Customer);
        customers.map(|(said, voice)| *said.hash.get_or_init(|| turn_hash(&voice.words))).collect()
    }

    /// The keys under which what this list's item says can be found again.
    fn lineage_of(&self, at: usize, voices: &[Voice<'_>]) -> Vec<Lookup> {
        let item = &self.view.items[at];
        let mut lookups: Vec<Lookup> = (item.calls.iter().enumerate())
            .filter(|&(n, _)| !self.is_transfer(at, n))
            .map(|(_, call)| call_lineage(&call.id, &call.name, &call.arguments))
            .collect();
        if voices[at].speaker == Speaker::Agent {
            let before = voices[..at].iter().rev().find(|voice| voice.speaker == Speaker::Customer);
            lookups.extend(text_lineage(&voices[at].words, before.map_or("", |voice| &voice.words)));
        }
        lookups
    }

    /// The keys of the newest calls in a conversation that a client nested in one text.
    fn nested_lookups(&self, text: &str) -> Vec<Lookup> {
        let calls = nested_calls(text).into_iter().rev().take(4);
        calls
            .map(|NestedCall { id, name, arguments }| {
                if self.naming.is_transfer_call(&name, &arguments, None) {
                    transfer_lookup(&transfer_mark(&id, &name, &arguments))
                } else {
                    call_lineage(&id, &name, &arguments)
                }
            })
            .collect()
    }

    /// The pieces of a conversation's only opening that may be a sender's words.
    fn word_lookups(&self, voices: &[Voice<'_>]) -> Vec<Lookup> {
        let spoken = || self.view.items.iter().filter(|item| item.seal != Seal::Reasoning);
        let said = |role| spoken().filter(|item| item.role == role).count();
        if said(Role::User) != 1 || said(Role::Assistant) > said(Role::Tool) + 1 {
            return Vec::new();
        }
        let Some(at) = self.view.items.iter().position(|item| item.role == Role::User) else {
            return Vec::new();
        };
        let text: &str = &self.view.items[at].text;
        let paragraphs = text.split("\n\n");
        let lines = text.lines().filter_map(|line| Some(line.split_once(": ")?.1));
        let mut pieces: Vec<&str> =
            [text, voices[at].words.as_ref()].into_iter().chain(paragraphs).chain(lines).collect();
        pieces.truncate(LOOKUPS);
        let mut lookups: Vec<Lookup> = pieces.into_iter().filter_map(words_lookup).collect();
        lookups.dedup();
        lookups
    }
}

/// A customer turn as the run keeps it.
pub fn turn_hash(words: &str) -> Hash {
    Hasher::new("turn").text(words).finish()
}

/// The key of a call that is no transfer.
pub fn call_lineage(id: &str, name: &str, arguments: &str) -> Lookup {
    let mut hasher = Hasher::new("line");
    hasher.bytes(id.as_bytes()).bytes(name.as_bytes()).arguments(arguments);
    Lookup::new(Way::Lineage, &hasher.finish())
}

/// The key of a text that an agent said after `before`, the customer's last words. None where it says too little.
pub fn text_lineage(text: &str, before: &str) -> Option<Lookup> {
    let telling = text.len() + before.len() >= TELLING && !text.trim().is_empty();
    telling.then(|| Lookup::new(Way::Text, &Hasher::new("text").text(text).text(before).finish()))
}

/// What a transfer call is found by: id, name and arguments as parsed JSON.
pub fn transfer_mark(id: &str, name: &str, arguments: &str) -> Hash {
    Hasher::new("transfer").bytes(id.as_bytes()).bytes(name.as_bytes()).arguments(arguments).finish()
}

/// The key of a transfer call.
pub fn transfer_lookup(mark: &Hash) -> Lookup {
    Lookup::new(Way::Call, mark)
}

/// The key of a run that waits for a receiver with the same customer turns.
pub fn turns_lookup(voices: &[Voice<'_>]) -> Lookup {
    let customer = voices.iter().filter(|voice| voice.speaker == Speaker::Customer);
    words_of_turns_lookup(customer.map(|voice| voice.words.as_ref()))
}

/// The same, from the words of the turns.
pub fn words_of_turns_lookup<'w>(turns: impl Iterator<Item = &'w str>) -> Lookup {
    let mut hasher = Hasher::new("turns");
    for words in turns {
        hasher.text(words);
    }
    Lookup::new(Way::Turns, &hasher.finish())
}

/// The key of a reply that a later request may go on from.
pub fn response_lookup(id: &str) -> Lookup {
    Lookup::new(Way::Response, &Hasher::new("response").bytes(id.as_bytes()).finish())
}

/// The key of a conversation that the upstream keeps.
pub fn conversation_lookup(id: &str) -> Lookup {
    Lookup::new(Way::Response, &Hasher::new("conversation").bytes(id.as_bytes()).finish())
}

/// The key of words that a sender wrote for its receiver. None where they are too few or too many.
pub fn words_lookup(words: &str) -> Option<Lookup> {
    let words = words.trim();
    (TELLING..=DELEGATED_MAX)
        .contains(&words.len())
        .then(|| Lookup::new(Way::Words, &Hasher::new("words").text(words).finish()))
}

/// The key of a request that a client may send again.
pub fn resent_lookup(request: &Hash) -> Lookup {
    Lookup::new(Way::Resent, request)
}

/// The key of the operator's run header.
pub fn header_lookup(id: &str) -> Lookup {
    Lookup::new(Way::Header, &Hasher::new("header").bytes(id.as_bytes()).finish())
}

/// The texts of a call's arguments that a client may put at the head of the receiver's conversation.
pub fn delegated(arguments: &str) -> Vec<String> {
    let Ok(serde_json::Value::Object(members)) = serde_json::from_str(arguments) else { return Vec::new() };
    members
        .into_iter()
        .filter_map(|(_, value)| match value {
            serde_json::Value::String(text) if words_lookup(&text).is_some() => Some(text),
            _ => None,
        })
        .take(8)
        .collect()
}

/// A run of which nothing is known.
pub struct Nobody;

impl Company for Nobody {
    fn is_agent(&self, _: &str) -> bool {
        false
    }
    fn is_delegated(&self, _: &str) -> bool {
        false
    }
}

/// What the list itself tells of its speakers, and what the run adds.
struct ListAnd<'a, 'b, C> {
    reading: &'a Reading<'b>,
    run: &'a C,
}

impl<C: Company> Company for ListAnd<'_, '_, C> {
    fn is_agent(&self, name: &str) -> bool {
        let items = &self.reading.view.items;
        // The one who opens the conversation is the customer; who has another name is not.
        let opener = items.iter().find(|item| item.role == Role::User).and_then(|item| item.name.as_deref());
        if opener.is_some_and(|opener| opener != name) || self.run.is_agent(name) {
            return true;
        }
        let speaks = |item: &super::view::Item<'_>| {
            item.role == Role::Assistant && item.name.as_deref().is_some_and(|other| same_agent(other, name))
        };
        items.iter().any(speaks)
    }

    fn is_delegated(&self, words: &str) -> bool {
        self.run.is_delegated(words)
    }
}
