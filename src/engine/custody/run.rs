//! The run: its agents, its transfers and who holds it, as kept between requests.

use serde::{Deserialize, Serialize};

use super::agent::{Fingerprint, Recognised, recognise};
use super::budget::Spent;
use super::ledger::Ledger;
use crate::engine::handoff::detect::{Destination, same_agent};
use crate::engine::handoff::speaker::Company;
use crate::engine::hash::{Hash, Hasher};
use crate::engine::record::{Record, State, VERSION};
use crate::engine::signal::Signal;
use crate::engine::time::Timestamp;

/// Agents a run remembers; more than any real team, so that a hostile client cannot make it grow.
const AGENTS: usize = 64;
/// Hidden reasoning items whose model a run remembers.
const THOUGHTS: usize = 512;
/// Customer turns a run is told apart by.
pub const TURNS: usize = 64;
/// Transfers a run remembers in full; older ones are forgotten, their facts were carried.
const TRANSFERS: usize = 32;

/// Corrections a run remembers, by their requests.
const CORRECTED: usize = 32;
/// Signs of what transfers lost that a run keeps.
const SIGNALS: usize = 128;

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// The format's version.
    pub version: u32,
    /// The run's id.
    pub id: String,
    /// Whether Seam saw it from its first request.
    pub whole: bool,
    /// The agents that spoke in it.
    pub agents: Vec<Known>,
    /// Who has it now; none before the first transfer.
    pub holder: Option<Holder>,
    /// The transfers, oldest first.
    pub transfers: Vec<Transfer>,
    /// Transfers that were taken up, over the whole run.
    pub hops: u32,
    /// When its first exchange was.
    #[serde(default)]
    pub begun: Timestamp,
    /// What it has spent.
    #[serde(default)]
    pub spent: Spent,
    /// What it has settled.
    #[serde(default)]
    pub ledger: Ledger,
    /// The `hop` of the transfer that left the run's agents, if one did: nothing moves behind it.
    #[serde(default)]
    pub ended_by: Option<u32>,
    /// The customer's turns, as hashes of their words.
    pub turns: Vec<Hash>,
    /// The first customer turn as bytes first seen, to put back where a client dropped it.
    pub opening: Option<Turn>,
    /// The last customer turn as bytes first seen.
    pub latest: Option<Turn>,
    /// Whether the last reply left the customer's turn unanswered: it made calls.
    #[serde(default)]
    pub turn_open: bool,
    /// The requests in answer to which a sender was corrected, once each time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corrected: Vec<Hash>,
    /// Replies that went back to their sender, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<Replaced>,
    /// Which model thought what, the newest last.
    #[serde(default)]
    pub thoughts: Vec<Thought>,
    /// What showed that a transfer lost something, oldest first, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<Signal>,
}

/// A reply that went back to its sender. Its id is an alias: a client that read the beginning of the stream
/// knows no other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replaced {
    /// The request that it was in answer to.
    pub request: Hash,
    /// Its id.
    pub id: String,
    /// The id of the reply that came for it; empty as long as none has.
    pub by: String,
}

/// A hidden reasoning item that a model gave out: no other model can read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thought {
    /// Over its id.
    pub id: Hash,
    /// The model that was asked.
    pub model: String,
}

/// A customer turn: its words, and the element of the list it stood in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The customer's words.
    pub words: String,
    /// The element's bytes; none where they were too many to keep.
    pub raw: Option<String>,
}

/// An agent of the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Known {
    /// How it is recognised.
    pub print: Fingerprint,
    /// Its name, once a transfer or a client told it.
    pub name: Option<String>,
    /// As what its own instructions introduce it, in lower case.
    #[serde(default)]
    pub introduced: String,
}

/// The agent that has the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Index into [`Run::agents`].
    pub agent: usize,
    /// The `hop` of the record by which it holds; 0 where the client let it answer without a transfer.
    pub hop: u32,
    /// When it was last heard of.
    #[serde(default)]
    pub seen: Timestamp,
    /// How many replies it has had since it took the run up.
    #[serde(default)]
    pub replies: u32,
}

/// One transfer: its record, and what finds its receiver's requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Transfer {
    /// What a reader of records sees.
    pub record: Record,
    /// Where it goes.
    pub to: Destination,
    /// Who sent it (index into [`Run::agents`]); none where Seam did not see it happen.
    pub sender: Option<usize>,
    /// Who took it up.
    pub receiver: Option<usize>,
    /// How sure it was that the taker is the destination.
    pub fit: Fit,
    /// What the call is found by in a list.
    pub call: Hash,
    /// The texts of the call's arguments that may open the receiver's conversation.
    pub delegated: Vec<String>,
    /// Where the filtered part of the receiver's list ends.
    pub boundary: Option<Boundary>,
    /// Customer turns that were put back, as the bytes first seen.
    pub put_back: Vec<String>,
    /// The customer's last words when it was made.
    #[serde(default)]
    pub turn: Option<String>,
    /// How many results the run had when it was taken up.
    #[serde(default)]
    pub results: usize,
    /// After this, a transfer that nobody took up is without effect.
    pub expires: Timestamp,
    /// When its receiver's first request came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_up_at: Option<Timestamp>,
    /// Whether its receiver's requests went up as they came, the brief made in the shadow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shadow: bool,
    /// Its place in a trace, as `traceparent` has it, where the shell told one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// The facts whose values a reply of the receiver has used, as indexes into the record's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used: Vec<usize>,
    /// The arguments as the sender generated them, where the client sees others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<String>,
    /// The request whose reply made it, to know it when it is resent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Hash>,
}

impl Transfer {
    /// On which side of a canary its receiver was: `rewrite` where it read a brief, `observe` where that was made
    /// in the shadow. None as long as nobody took it up.
    pub fn arm(&self) -> Option<&'static str> {
        self.receiver?;
        Some(if self.shadow { "observe" } else { "rewrite" })
    }
}

/// Where the filtered part of a receiver's list ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Boundary {
    /// Behind the visible transfer and its result.
    Visible,
    /// Behind the first items that are not system text: how many, and the hash over them.
    Hidden {
        /// How many.
        count: usize,
        /// Over their neutral view.
        prefix: Hash,
    },
}

/// How well an agent's request fits a transfer's destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// It does not.
    #[default]
    None,
    /// Nothing speaks against it.
    Plausible,
    /// Its own instructions or its client name it.
    Named,
}

fn thought(id: &str) -> Hash {
    Hasher::new("thought").bytes(id.as_bytes()).finish()
}

impl Run {
    /// A run that begins now.
    pub fn new(id: String, whole: bool, begun: Timestamp) -> Self {
        Run {
            version: VERSION,
            id,
            whole,
            agents: Vec::new(),
            holder: None,
            transfers: Vec::new(),
            hops: 0,
            begun,
            spent: Spent::default(),
            ledger: Ledger::default(),
            ended_by: None,
            turns: Vec::new(),
            opening: None,
            latest: None,
            turn_open: false,
            thoughts: Vec::new(),
            signals: Vec::new(),
            corrected: Vec::new(),
            replaced: Vec::new(),
        }
    }

    /// Notes signs of what transfers lost. Gives those that are new.
    pub fn note_signals(&mut self, signals: Vec<Signal>) -> Vec<Signal> {
        let mut new = Vec::new();
        for signal in signals {
            if self.signals.len() < SIGNALS && !self.signals.contains(&signal) {
                self.signals.push(signal.clone());
                new.push(signal);
            }
        }
        new
    }

    /// Remembers whose a hidden reasoning item is.
    pub fn note_thought(&mut self, id: &str, model: &str) {
        if !id.is_empty() && self.thinker(id).is_none() {
            self.thoughts.push(Thought { id: thought(id), model: model.to_owned() });
            let over = self.thoughts.len().saturating_sub(THOUGHTS);
            self.thoughts.drain(..over);
        }
    }

    /// The model that gave out a hidden reasoning item; none where Seam did not see it.
    pub fn thinker(&self, id: &str) -> Option<&str> {
        let id = thought(id);
        self.thoughts.iter().find(|known| known.id == id).map(|known| known.model.as_str())
    }

    /// Whether a list with these customer turns can be this run's: one continues the other.
    pub fn continues(&self, turns: &[Hash]) -> bool {
        self.turns.iter().zip(turns).all(|(known, turn)| known == turn)
    }

    /// Bytes that it takes, about.
    pub fn bytes(&self) -> usize {
        /// What an agent's fingerprint takes, and what a fact or a transfer takes beside its longer texts.
        const AGENT: usize = 1024;
        const FACT: usize = 512;
        const TRANSFER: usize = 2048;
        let turn = |turn: &Turn| turn.words.len() + turn.raw.as_ref().map_or(0, String::len);
        let texts = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
        let transfer = |transfer: &Transfer| {
            let record = &transfer.record;
            let brief = record.brief.as_ref().map_or(0, String::len);
            TRANSFER
                + record.facts.len() * FACT
                + record.call.arguments.len()
                + brief
                + texts(&transfer.delegated)
                + texts(&transfer.put_back)
        };
        size_of::<Run>()
            + self.agents.len() * AGENT
            + self.turns.len() * size_of::<Hash>()
            + [&self.opening, &self.latest].into_iter().flatten().map(turn).sum::<usize>()
            + self.transfers.iter().map(transfer).sum::<usize>()
    }

    /// Which of the run's agents speaks.
    pub fn recognise(&self, print: &Fingerprint) -> Recognised {
        recognise(print, self.agents.iter().map(|agent| &agent.print))
    }

    /// The index of the agent with this fingerprint, which becomes one of the run's if it is new. None
    /// where it cannot be told or there is no room.
    pub fn admit(&mut self, print: &Fingerprint, introduced: &str) -> Option<usize> {
        match self.recognise(print) {
            Recognised::Known(index) => Some(index),
            Recognised::New if self.agents.len() < AGENTS => {
                self.agents.push(Known {
                    print: print.clone(),
                    name: print.named.clone(),
                    introduced: introduced.to_owned(),
                });
                Some(self.agents.len() - 1)
            }
            Recognised::New | Recognised::Unclear => None,
        }
    }

    /// What a transfer's sender is called, if it was named then or has been since.
    pub fn sender_name<'r>(&'r self, transfer: &'r Transfer) -> Option<&'r str> {
        let known = || self.agents.get(transfer.sender?)?.name.as_deref();
        transfer.record.from_agent.as_deref().or_else(known)
    }

    /// The transfer by which the holder holds.
    pub fn held(&self) -> Option<&Transfer> {
        let holder = self.holder?;
        self.transfers.iter().find(|transfer| transfer.record.hop == holder.hop)
    }

    /// The newest transfer that waits for its receiver.
    pub fn pending(&self, now: Timestamp) -> impl Iterator<Item = &Transfer> {
        self.transfers
            .iter()
            .rev()
            .filter(move |transfer| transfer.record.state == State::Pending && transfer.expires > now)
    }

    /// The transfer with this call, the newest if there are several.
    pub fn by_call(&self, call: &Hash) -> Option<&Transfer> {
        self.transfers.iter().rev().find(|transfer| transfer.call == *call)
    }

    /// The transfer of this hop, to change it.
    pub fn transfer_mut(&mut self, hop: u32) -> Option<&mut Transfer> {
        self.transfers.iter_mut().rev().find(|transfer| transfer.record.hop == hop)
    }

    /// Adds a transfer and gives its hop. Pending ones by the same call are the same transfer, seen again.
    pub fn push(&mut self, mut transfer: Transfer) -> u32 {
        let again = |known: &Transfer| {
            known.call == transfer.call
                && known.record.state == State::Pending
                && known.sender == transfer.sender
        };
        if let Some(known) = self.transfers.iter_mut().find(|known| again(known)) {
            let (hop, id) = (known.record.hop, known.record.id.clone());
            *known = transfer;
            known.record.hop = hop;
            known.record.id = id;
            return hop;
        }
        let hop = self.next_hop();
        transfer.record.hop = hop;
        transfer.record.id = format!("{}-{hop}", self.id);
        self.transfers.push(transfer);
        if self.transfers.len() > TRANSFERS {
            let held = self.holder.map(|holder| holder.hop);
            let oldest = self.transfers.iter().position(|t| Some(t.record.hop) != held).unwrap_or(0);
            self.transfers.remove(oldest);
        }
        hop
    }

    /// Forgets what an earlier reply to the same request made, if nobody took it up: the request was resent.
    pub fn supersede(&mut self, request: &Hash) {
        let replaced = |transfer: &Transfer| {
            transfer.request.as_ref() == Some(request)
                && matches!(transfer.record.state, State::Pending | State::Refused)
        };
        self.transfers.retain(|transfer| !replaced(transfer));
    }

    /// How often the sender was corrected in answer to this request.
    pub fn corrected(&self, request: &Hash) -> u32 {
        self.corrected.iter().filter(|known| *known == request).count() as u32
    }

    /// Notes that the sender is corrected in answer to this request.
    pub fn note_correction(&mut self, request: Hash) {
        self.corrected.push(request);
        if self.corrected.len() > CORRECTED {
            self.corrected.remove(0);
        }
    }

    /// Notes that this reply went back to its sender.
    pub fn note_replaced(&mut self, request: &Hash, id: &str) {
        self.replaced.push(Replaced { request: *request, id: id.to_owned(), by: String::new() });
        if self.replaced.len() > CORRECTED {
            self.replaced.remove(0);
        }
    }

    /// Notes that this is the reply that the client was given.
    pub fn note_given(&mut self, request: &Hash, id: &str) {
        let of = |known: &&mut Replaced| known.request == *request && known.id != id;
        for known in self.replaced.iter_mut().filter(of) {
            id.clone_into(&mut known.by);
        }
    }

    /// The id of the reply that came for the one with this id.
    pub fn replaced_by(&self, id: &str) -> Option<&str> {
        let of = |known: &&Replaced| known.id == id && !known.by.is_empty();
        self.replaced.iter().rev().find(of).map(|known| known.by.as_str())
    }

    /// Adds a transfer that was refused, and gives its hop.
    pub fn push_refused(&mut self, mut transfer: Transfer) -> u32 {
        transfer.record.state = State::Refused;
        self.push(transfer)
    }

    /// The number of the next transfer, from 1.
    pub fn next_hop(&self) -> u32 {
        self.transfers.iter().map(|transfer| transfer.record.hop).max().unwrap_or(0) + 1
    }

    /// Agents that have held the run, oldest first, as far as their names are known.
    pub fn visited(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let taken = self.transfers.iter().filter(|t| t.record.state == State::TakenUp);
        for name in taken.flat_map(|t| t.record.from_agent.iter().chain([&t.record.to_agent])) {
            if !names.iter().any(|known| same_agent(known, name)) {
                names.push(name.clone());
            }
        }
        names
    }

    /// Whether the agent of this index is the one that a destination means, by its name or its introduction.
    pub fn is_named(&self, agent: usize, destination: &Destination) -> bool {
        let agent = &self.agents[agent];
        match &agent.name {
            Some(name) => destination.is(name),
            None => introduces(&agent.introduced, destination),
        }
    }
}

impl Company for Run {
    fn is_agent(&self, name: &str) -> bool {
        let known = self.agents.iter().filter_map(|agent| agent.name.as_deref());
        let told = self.transfers.iter().map(|transfer| transfer.record.to_agent.as_str());
        known.chain(told).any(|agent| same_agent(agent, name))
    }

    fn is_delegated(&self, words: &str) -> bool {
        let words = words.trim();
        self.transfers.iter().any(|transfer| transfer.delegated.iter().any(|text| text.trim() == words))
    }
}

/// Whether an introduction (`refunds agent of a shop`) begins with a destination's name.
pub fn introduces(introduced: &str, destination: &Destination) -> bool {
    let begins = |name: &str| {
        let name: Vec<String> = words(name).collect();
        let introduced: Vec<String> = words(introduced).collect();
        !name.is_empty() && introduced.starts_with(&name)
    };
    begins(&destination.name) || destination.uncounted.as_deref().is_some_and(begins)
}

/// The words of a text, in lower case.
pub fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}
