//! A closed-loop load generator for an OpenAI-compatible endpoint, on one thread.
//!
//! `load ADDRESS [--connections N] [--seconds S | --requests N] [--warm N] [--seed N] [--stream GAP,CHUNKS]`
//! and either `--body FILE`, or `--grow KIND,SIZE,TURNS`: then each connection sends conversations of its own,
//! one after the other, whose requests grow. It prints a line when it is warm, waits for a line on its input,
//! and prints what it measured as one line of JSON, times in microseconds.

use std::cell::RefCell;
use std::io::{Error, Result};
use std::rc::Rc;
use std::time::{Duration, Instant};

use seam_compare::clock::now_ns;
use seam_compare::conversation::{Conversation, Kind, Reply};
use seam_compare::wire::{Link, Reads};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::timeout;

/// How long an exchange may take.
const PATIENCE: Duration = Duration::from_mins(1);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let plan = Rc::new(Plan::from_arguments()?);
    LocalSet::new().run_until(run(plan)).await
}

async fn run(plan: Rc<Plan>) -> Result<()> {
    let mut clients: Vec<Client> = (0..plan.connections).map(|n| Client::new(Rc::clone(&plan), n)).collect();
    let warmed = Rc::new(RefCell::new(Tally::default()));
    let warm = plan.warm.div_ceil(plan.connections);
    clients = all(clients, Until::Requests(warm), &warmed).await;
    println!("{}", json!({"warm": warmed.borrow().exchanges.len()}));
    std::io::stdin().read_line(&mut String::new())?;

    let tally = Rc::new(RefCell::new(Tally::default()));
    let began = Instant::now();
    let until = match plan.requests {
        Some(requests) => Until::Requests(requests.div_ceil(plan.connections)),
        None => Until::Time(began + plan.time),
    };
    all(clients, until, &tally).await;
    println!("{}", tally.borrow_mut().summary(began.elapsed()));
    Ok(())
}

/// Every client at once, each on its connection, until they are done.
async fn all(clients: Vec<Client>, until: Until, tally: &Rc<RefCell<Tally>>) -> Vec<Client> {
    let mut running = JoinSet::new();
    for mut client in clients {
        let tally = Rc::clone(tally);
        running.spawn_local(async move {
            client.run(until, &tally).await;
            client
        });
    }
    running.join_all().await
}

/// What to send, where, and for how long.
struct Plan {
    address: String,
    connections: usize,
    /// Tells the conversations of this load from those of another.
    seed: u64,
    time: Duration,
    requests: Option<usize>,
    warm: usize,
    stream: Option<String>,
    source: Source,
}

enum Source {
    Body(Vec<u8>),
    Grow(Conversation),
}

#[derive(Clone, Copy)]
enum Until {
    /// As many by each client.
    Requests(usize),
    Time(Instant),
}

impl Plan {
    fn from_arguments() -> Result<Plan> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let option = |name: &str| {
            let at = arguments.iter().position(|argument| argument == name)?;
            arguments.get(at + 1).map(String::as_str)
        };
        let number = |name: &str, default: usize| {
            option(name).map_or(Ok(default), |text| text.parse().map_err(Error::other))
        };
        let seconds: f64 = option("--seconds").unwrap_or("1").parse().map_err(Error::other)?;
        let stream = option("--stream").map(str::to_owned);
        let source = match (option("--body"), option("--grow")) {
            (Some(file), _) => Source::Body(std::fs::read(file)?),
            (None, Some(shape)) => Source::Grow(growing(shape, stream.is_some())?),
            (None, None) => return Err(Error::other("neither --body nor --grow")),
        };
        Ok(Plan {
            address: arguments.first().cloned().ok_or_else(|| Error::other("no address"))?,
            connections: number("--connections", 1)?.max(1),
            seed: number("--seed", 0)? as u64,
            time: Duration::from_secs_f64(seconds),
            requests: option("--requests").map(|_| number("--requests", 0)).transpose()?,
            warm: number("--warm", 0)?,
            stream,
            source,
        })
    }
}

/// `KIND,SIZE,TURNS`: a conversation whose requests have `SIZE` bytes in the middle.
fn growing(shape: &str, streamed: bool) -> Result<Conversation> {
    let wrong = || Error::other(format!("not KIND,SIZE,TURNS: {shape}"));
    let parts: Vec<&str> = shape.split(',').collect();
    let [kind, size, turns] = parts[..] else { return Err(wrong()) };
    let kind = Kind::ALL.into_iter().find(|known| known.name() == kind).ok_or_else(wrong)?;
    let size: usize = size.parse().map_err(|_| wrong())?;
    let turns: usize = turns.parse().map_err(|_| wrong())?;
    let reply = if streamed { Reply::Streamed } else { Reply::Whole };
    let more = turns.saturating_sub(1);
    Ok(Conversation::new(kind, size.saturating_sub(more / 2 * 1_000), more, reply))
}

struct Client {
    plan: Rc<Plan>,
    /// Which of the clients it is.
    number: usize,
    link: Option<Link>,
    sent: usize,
    request: Vec<u8>,
}

impl Client {
    fn new(plan: Rc<Plan>, number: usize) -> Client {
        // Growing conversations are at every length at once, from the first request on.
        let sent = match &plan.source {
            Source::Body(_) => 0,
            Source::Grow(conversation) => number % conversation.requests(),
        };
        Client { plan, number, link: None, sent, request: Vec::new() }
    }

    async fn run(&mut self, until: Until, tally: &RefCell<Tally>) {
        let mut done = 0;
        loop {
            let over = match until {
                Until::Requests(requests) => done >= requests,
                Until::Time(end) => Instant::now() >= end,
            };
            if over {
                return;
            }
            done += 1;
            self.write_request();
            let exchange = timeout(PATIENCE, self.exchange(tally)).await;
            let failed = match exchange {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer in time".to_owned(),
            };
            self.link = None;
            tally.borrow_mut().failed(failed);
            // So that a peer that refuses every connection is not asked a million times.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn write_request(&mut self) {
        let plan = Rc::clone(&self.plan);
        let mut body = Vec::new();
        let body = match &plan.source {
            Source::Body(body) => body,
            Source::Grow(conversation) => {
                let (turn, nth) = (self.sent % conversation.requests(), self.sent / conversation.requests());
                let number = plan.seed % 100 * 100_000_000 + (self.number * 100_000 + nth) as u64;
                conversation.body(turn, number, &mut body);
                &body
            }
        };
        self.sent += 1;
        let stream =
            plan.stream.as_deref().map(|pace| format!("mock-stream: {pace}\r\n")).unwrap_or_default();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\nauthorization: Bearer sk-compare\r\n{stream}content-length: {}\r\n\r\n",
            plan.address,
            body.len()
        );
        self.request.clear();
        self.request.extend_from_slice(head.as_bytes());
        self.request.extend_from_slice(body);
    }

    async fn exchange(&mut self, tally: &RefCell<Tally>) -> Result<()> {
        let link = match &mut self.link {
            Some(link) => link,
            none => none.insert(Link::new(TcpStream::connect(&self.plan.address).await?)?),
        };
        let began = Instant::now();
        link.write(&self.request).await?;
        let head = link.head(Reads::Responses, "mock-received").await?;
        let head = head.ok_or_else(|| Error::other("closed"))?;
        let mut events = Events::default();
        let streamed = self.plan.stream.is_some();
        let mut first = None;
        link.body(&head, |part| {
            first.get_or_insert_with(|| began.elapsed());
            if streamed {
                events.read(part, &mut tally.borrow_mut());
            }
        })
        .await?;
        if head.status != 200 {
            return Err(Error::other(format!("status {}", head.status)));
        }
        if streamed && !events.ended {
            return Err(Error::other("the stream did not end"));
        }
        let received = head.field.and_then(|size| size.parse().ok()).unwrap_or_default();
        tally.borrow_mut().answered(began.elapsed(), first.unwrap_or_default(), received);
        Ok(())
    }
}

/// The events of one stream.
#[derive(Default)]
struct Events {
    pending: Vec<u8>,
    ended: bool,
}

impl Events {
    fn read(&mut self, part: &[u8], tally: &mut Tally) {
        let now = now_ns();
        self.pending.extend_from_slice(part);
        let mut from = 0;
        while let Some(length) = memchr::memmem::find(&self.pending[from..], b"\n\n") {
            let event = &self.pending[from..from + length];
            self.ended |= event.ends_with(b"[DONE]");
            if let Some(sent) = stamp(event) {
                tally.delays.push(now.saturating_sub(sent));
            }
            from += length + 2;
        }
        self.pending.drain(..from);
        tally.reads += usize::from(from > 0);
    }
}

fn stamp(event: &[u8]) -> Option<u64> {
    let at = memchr::memmem::rfind(event, br#""sent":"#)? + br#""sent":"#.len();
    let digits = event[at..].iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// What was measured, in nanoseconds.
#[derive(Default)]
struct Tally {
    exchanges: Vec<u64>,
    firsts: Vec<u64>,
    delays: Vec<u64>,
    /// Reads that completed an event.
    reads: usize,
    errors: usize,
    error: Option<String>,
    /// Bytes of body that the mock received, over all.
    received: u64,
}

impl Tally {
    fn answered(&mut self, whole: Duration, first: Duration, received: u64) {
        self.exchanges.push(nanos(whole));
        self.firsts.push(nanos(first));
        self.received += received;
    }

    fn failed(&mut self, why: String) {
        self.errors += 1;
        self.error.get_or_insert(why);
    }

    fn summary(&mut self, took: Duration) -> Value {
        let answered = self.exchanges.len();
        json!({
            "requests": answered,
            "seconds": took.as_secs_f64(),
            "errors": self.errors,
            "error": self.error,
            "latency": percentiles(&mut self.exchanges),
            "first": percentiles(&mut self.firsts),
            "delay": percentiles(&mut self.delays),
            "chunks": self.delays.len(),
            "reads": self.reads,
            "received": self.received / answered.max(1) as u64,
        })
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn percentiles(values: &mut [u64]) -> Value {
    values.sort_unstable();
    let at = |share: usize| {
        let value = values.get((values.len() * share / 100).min(values.len().saturating_sub(1)));
        value.copied().unwrap_or_default() as f64 / 1e3
    };
    json!({"p50": at(50), "p99": at(99)})
}
