//! Conversations of a ferry line's agents, as request bodies: the same bytes on every run, of any size, and
//! each unlike every other by a number that stands in its customer's words, call ids and results.

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::{Value, json};

/// What the mock upstream always answers, so that a conversation can hold it as its assistant's words.
pub const REPLY: &str = "Your booking is on the evening crossing, and the cabin you asked for is still free. \
I have put it on hold for twenty minutes; the difference in price is 12,40 € for both passengers. \
Shall I confirm it, or would you rather keep the reclining seats you have now?";

/// Stands wherever a conversation's own number comes.
const NUMBER: &str = "7070707070";
/// Bytes that each pair of messages of a growing conversation adds, about.
const PAIR: usize = 1_000;

/// What a conversation has to do with transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Plain,
    /// Its agent is offered transfer tools, and has made no transfer.
    Offered,
    /// It was transferred half-way; the receiver goes on, and is offered transfer tools of its own.
    Held,
    /// It ends in a transfer whose sender states ten facts, and its receiver asks for the first time.
    Arrived,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Plain, Kind::Offered, Kind::Held, Kind::Arrived];

    /// The name on command lines and of files.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Plain => "plain",
            Kind::Offered => "offered",
            Kind::Held => "held",
            Kind::Arrived => "arrived",
        }
    }
}

/// How the reply is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// In one piece.
    Whole,
    /// As an event stream.
    Streamed,
}

/// A conversation and all its requests: each is the one before it and two messages more.
#[derive(Clone, Debug)]
pub struct Conversation {
    bytes: Vec<u8>,
    /// Where the list ends in each request.
    ends: Vec<usize>,
    numbers: Vec<usize>,
}

impl Conversation {
    /// One whose first request has about `size` bytes, and which has `more` requests behind it.
    pub fn new(kind: Kind, size: usize, more: usize, reply: Reply) -> Conversation {
        // A handoff of ten facts takes its room from the conversation.
        let size = if kind == Kind::Arrived { size.saturating_sub(1_700) } else { size };
        let mut writer = Writer::new(kind, reply, size);
        let half = writer.text.len() + size.saturating_sub(writer.text.len()) / 2;
        writer.opening();
        if kind == Kind::Held {
            writer.exchanges_until(half);
            writer.transfer("{}");
        }
        writer.exchanges_until(size);
        writer.ask(size.saturating_sub(writer.text.len() + 60).clamp(60, 4_000));
        if kind == Kind::Arrived {
            writer.transfer(&writer.handoff());
        }
        let mut ends = vec![writer.text.len()];
        for turn in 0..more {
            if turn % 2 == 0 {
                writer.call(PAIR - 300);
            } else {
                writer.answer();
                writer.ask(PAIR - 450);
            }
            ends.push(writer.text.len());
        }
        let bytes = writer.text.into_bytes();
        let numbers = memchr::memmem::find_iter(&bytes, NUMBER).collect();
        Conversation { bytes, ends, numbers }
    }

    /// How many requests it has.
    pub fn requests(&self) -> usize {
        self.ends.len()
    }

    /// Appends a request's body to `into`, for the conversation of this number.
    pub fn body(&self, request: usize, number: u64, into: &mut Vec<u8>) {
        let end = self.ends[request];
        let start = into.len();
        into.extend_from_slice(&self.bytes[..end]);
        into.extend_from_slice(b"]}");
        let digits = format!("{:010}", number % 10_000_000_000);
        for at in self.numbers.iter().take_while(|at| **at < end) {
            let place: Range<usize> = start + at..start + at + digits.len();
            into[place].copy_from_slice(digits.as_bytes());
        }
    }
}

struct Writer {
    text: String,
    dice: Dice,
    calls: usize,
    listed: bool,
    /// The first price of each result in rows, and the call that gave it.
    prices: Vec<(String, String)>,
}

impl Writer {
    /// Everything before the list, and the agent's instructions.
    fn new(kind: Kind, reply: Reply, size: usize) -> Writer {
        let streamed = match reply {
            Reply::Whole => "",
            Reply::Streamed => r#""stream":true,"stream_options":{"include_usage":true},"#,
        };
        let mut tools =
            LOOKUPS.iter().take(if size < 10_000 { 1 } else { LOOKUPS.len() }).map(lookup).collect();
        let (name, others): (&str, &[&str]) = match kind {
            Kind::Plain => ("front desk", &[]),
            Kind::Offered => ("front desk", &["ticketing", "harbour"]),
            Kind::Held | Kind::Arrived => ("ticketing", &["harbour", "front_desk"]),
        };
        offer(&mut tools, others);
        let text = format!(
            r#"{{"model":"mock-1",{streamed}"temperature":0.2,"tools":{},"messages":["#,
            Value::from(tools)
        );
        let mut writer = Writer { text, dice: Dice(0x5eed), calls: 0, listed: false, prices: Vec::new() };
        let instructions = format!(
            "You are the {name} of Kelda Ferries. Answer in the customer's language, and look up before you \
             promise. Never take payment details in the chat."
        );
        writer.say("system", &instructions);
        writer
    }

    fn opening(&mut self) {
        let text = format!(
            "Hello, this is about booking KF-{NUMBER}. We would like a cabin for the night crossing."
        );
        self.say("user", &text);
    }

    /// Exchanges of every kind, as long as one more leaves room for the last words.
    fn exchanges_until(&mut self, size: usize) {
        let mut n = 0;
        while self.text.len() + 400 < size {
            let room = size - self.text.len();
            match n % 3 {
                0 => self.call((room / 2).clamp(100, 1_200 + n * 37 % 1_900)),
                1 => {
                    self.answer();
                    self.ask((room / 4).clamp(60, 420));
                }
                _ => {
                    let words = self.dice.prose(room.clamp(60, 700) / 2);
                    self.say("assistant", &words);
                    self.ask((room / 4).clamp(60, 260));
                }
            }
            n += 1;
        }
    }

    fn ask(&mut self, size: usize) {
        let text = format!("{} It is KF-{NUMBER}.", self.dice.prose(size));
        self.say("user", &text);
    }

    fn answer(&mut self) {
        self.say("assistant", REPLY);
    }

    /// A call and its result, of about `size` bytes.
    fn call(&mut self, size: usize) {
        let (name, parameter, _) = LOOKUPS[(self.calls + 1) % LOOKUPS.len()];
        let arguments = json!({ parameter: format!("KF-{NUMBER}"), "part": self.calls + 1 }).to_string();
        let result = if self.calls % 4 == 3 {
            format!("Booking: KF-{NUMBER}\n{}\n", self.dice.prose(size))
        } else {
            self.records(size)
        };
        self.make("null", name, &arguments, &result);
    }

    /// What a sender writes: ten facts, each with the call that it rests on.
    fn handoff(&self) -> String {
        let newest = self.prices.iter().rev().take(10);
        let established: Vec<Value> = newest
            .map(|(id, price)| {
                json!({"key": "price", "value": price, "of": "row 0", "source": "tool_result", "evidence": id})
            })
            .collect();
        json!({"task": "Move the booking to the cabin on hold.", "reason": "a change of ticket",
            "established": established, "remaining": ["Confirm the cabin"], "open_questions": []})
        .to_string()
    }

    fn transfer(&mut self, arguments: &str) {
        let words = r#""I am passing you on.""#;
        self.make(words, "transfer_to_ticketing", arguments, r#"{"assistant": "ticketing"}"#);
    }

    /// A tool's result as Python writes JSON: one record, and rows of it.
    fn records(&mut self, size: usize) -> String {
        let mut text = format!(r#"{{"booking": "KF-{NUMBER}", "status": "confirmed", "rows": ["#);
        for row in 0.. {
            let dice = &mut self.dice;
            let (deck, cents) = (dice.below(9), dice.below(100));
            let price = dice.below(240);
            if row == 0 {
                self.prices.push((call_id(self.calls + 1), format!("{price}.{cents:02}")));
            }
            let name = dice.pick(NAMES);
            let note = dice.prose(40);
            // Every other tool escapes what is not ASCII.
            let (name, note) =
                if row % 2 == 0 { (ascii(name), ascii(&note)) } else { (name.to_owned(), note) };
            let comma = if row == 0 { "" } else { ", " };
            let _ = write!(
                text,
                r#"{comma}{{"row": {row}, "passenger": "{name}", "deck": {deck}, "price": {price}.{cents:02}, "note": "{note}", "seen_at": "2031-03-{:02}T0{deck}:15:00+01:00"}}"#,
                1 + dice.below(28)
            );
            if text.len() + 160 > size {
                break;
            }
        }
        text.push_str("]}");
        text
    }

    fn say(&mut self, role: &str, text: &str) {
        self.push(&format!(r#"{{"role":"{role}","content":{}}}"#, Value::from(text)));
    }

    /// A message that makes one call beside these words, and the call's result.
    fn make(&mut self, words: &str, name: &str, arguments: &str, result: &str) {
        self.calls += 1;
        let id = call_id(self.calls);
        let (arguments, result) = (Value::from(arguments), Value::from(result));
        self.push(&format!(
            r#"{{"role":"assistant","content":{words},"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"{name}","arguments":{arguments}}}}}]}}"#
        ));
        self.push(&format!(r#"{{"role":"tool","tool_call_id":"{id}","content":{result}}}"#));
    }

    fn push(&mut self, message: &str) {
        if std::mem::replace(&mut self.listed, true) {
            self.text.push(',');
        }
        self.text.push_str(message);
    }
}

fn call_id(n: usize) -> String {
    format!("call_{NUMBER}{n:06}")
}

type Lookup = (&'static str, &'static str, &'static str);

const LOOKUPS: &[Lookup] = &[
    (
        "find_booking",
        "booking",
        "Finds a booking by its number and gives its passengers, cabins and vehicles.",
    ),
    (
        "list_cabins",
        "booking",
        "Lists the cabins that are free on a booking's crossing, with deck and price.",
    ),
    (
        "check_vehicle",
        "booking",
        "Says whether a vehicle of the booking fits the car deck, by height and length.",
    ),
    ("crossing_status", "booking", "Gives the state of a booking's crossing: on time, late, or cancelled."),
    ("price_change", "booking", "Says what a change of a booking would cost, without making it."),
    (
        "list_meals",
        "booking",
        "Lists the meals that can be ordered for a booking until two hours before it sails.",
    ),
];

fn lookup((name, parameter, what): &Lookup) -> Value {
    json!({"type": "function", "function": {"name": name, "description": what, "parameters": {
        "type": "object",
        "properties": {
            (*parameter): {"type": "string", "description": "KF- and the number"},
            "part": {"type": "integer"},
        },
        "required": [parameter], "additionalProperties": false}}})
}

fn offer(tools: &mut Vec<Value>, others: &[&str]) {
    for other in others {
        tools.push(json!({"type": "function", "function": {
            "name": format!("transfer_to_{other}"),
            "description": format!("Hands the customer over to {other}."),
            "parameters": {"type": "object", "properties": {}, "required": []}}}));
    }
}

fn ascii(text: &str) -> String {
    let mut escaped = String::new();
    for unit in text.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => escaped.push(char::from(byte)),
            _ => drop(write!(escaped, "\\u{unit:04x}")),
        }
    }
    escaped
}

const NAMES: &[&str] = &["Ada Obi", "Zoë Łukasik", "Jürgen Thiel", "Nadia Haddad", "Søren Bak", "李 娜"];

const WORDS: &[&str] = &[
    "the",
    "a",
    "and",
    "of",
    "to",
    "we",
    "you",
    "is",
    "was",
    "for",
    "with",
    "cabin",
    "deck",
    "crossing",
    "seat",
    "car",
    "luggage",
    "harbour",
    "ticket",
    "boarding",
    "terminal",
    "passenger",
    "evening",
    "morning",
    "return",
    "change",
    "price",
    "meal",
    "café",
    "dog",
    "bicycle",
    "gate",
    "queue",
    "weather",
    "late",
    "early",
    "window",
    "quay",
    "captain",
    "crew",
    "voucher",
    "naïve",
    "€18.50",
    "Gdańsk",
    "08:45",
    "“quiet”",
    "–",
    "🚢",
];

/// Numbers that look random and are the same on every run (splitmix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len() as u64) as usize]
    }

    /// Sentences of about this many bytes.
    fn prose(&mut self, size: usize) -> String {
        let mut text = String::new();
        while text.len() < size {
            for n in 0..4 + self.below(9) {
                if n > 0 {
                    text.push(' ');
                }
                text.push_str(self.pick(WORDS));
            }
            text.push_str(if self.below(6) == 0 { ".\n" } else { ". " });
        }
        text.trim_end().replace('\n', " ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(conversation: &Conversation, request: usize, number: u64) -> Value {
        let mut body = Vec::new();
        conversation.body(request, number, &mut body);
        serde_json::from_slice(&body).expect("JSON")
    }

    #[test]
    fn bodies_have_the_size_that_was_asked_for() {
        for kind in Kind::ALL {
            for size in [2_000, 50_000, 500_000] {
                let mut body = Vec::new();
                Conversation::new(kind, size, 0, Reply::Whole).body(0, 1, &mut body);
                let least = if size == 2_000 { 1_300 } else { size * 97 / 100 };
                assert!(
                    (least..=size * 103 / 100 + 400).contains(&body.len()),
                    "{kind:?} {size}: {}",
                    body.len()
                );
            }
        }
    }

    #[test]
    fn a_request_is_the_one_before_it_and_two_messages_more() {
        let conversation = Conversation::new(Kind::Held, 20_000, 8, Reply::Whole);
        let list = |request| body(&conversation, request, 12)["messages"].as_array().expect("a list").clone();
        for request in 1..conversation.requests() {
            let (before, now) = (list(request - 1), list(request));
            assert_eq!(now.len(), before.len() + 2);
            assert_eq!(now[..before.len()], before[..]);
        }
    }

    #[test]
    fn conversations_differ_from_their_customers_first_words_on() {
        let conversation = Conversation::new(Kind::Plain, 20_000, 0, Reply::Whole);
        let (one, two) = (body(&conversation, 0, 1), body(&conversation, 0, 2));
        assert_eq!(one["messages"][0], two["messages"][0]);
        assert_ne!(one["messages"][1], two["messages"][1]);
        assert!(!one.to_string().contains(NUMBER));
    }

    #[test]
    fn only_what_is_not_plain_names_a_transfer() {
        for kind in Kind::ALL {
            let text = body(&Conversation::new(kind, 20_000, 4, Reply::Whole), 4, 1).to_string();
            assert_eq!(text.contains("transfer_to_"), kind != Kind::Plain, "{kind:?}");
        }
    }
}
