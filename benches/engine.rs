//! What the engine's steps cost, each by itself, on conversations of a known size.
//!
//! `cargo bench --bench engine` prints times. For instructions, `benches/gate.sh` runs one step at a time:
//! `engine once NAME`, and `engine once NAME unrun` for what only its preparation costs.

#![expect(clippy::print_stdout, reason = "the table is what it is for")]

#[allow(dead_code, missing_docs, unreachable_pub)]
#[path = "compare/src/conversation.rs"]
mod conversation;

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use conversation::{Conversation, Kind, Reply as Asked};
use seam::engine::custody::log::Log;
use seam::engine::custody::run::Run;
use seam::engine::decide::{Action, Circumstances, Decision, Found, decide};
use seam::engine::hash;
use seam::engine::learn::{Terms, learn};
use seam::engine::policy::Policy;
use seam::engine::read::{Reading, Way, reading};
use seam::engine::reply::{Finish, Reply};
use seam::engine::time::Timestamp;
use seam::engine::view::Dialect;
use seam::engine::watch::Watcher;
use seam::engine::wire;

/// Chunks that a watched stream is made of.
const CHUNKS: usize = 1_000;
/// How often a step is timed; the fastest counts.
const TIMES: usize = 30;

/// A step, prepared.
type Step = Box<dyn FnOnce()>;
/// Prepares a step for a body of so many bytes.
type Prepare = fn(usize) -> Step;

/// Every step: its name, a size, and how it is prepared for that.
const STEPS: &[(&str, usize, Prepare)] = &[
    ("scan-50k", 50_000, scan),
    ("read-50k", 50_000, read),
    ("read-500k", 500_000, read),
    ("lookups-50k", 50_000, lookups),
    ("lookups-500k", 500_000, lookups),
    ("hold-50k-10-times", 50_000, hold),
    ("hold-500k-10-times", 500_000, hold),
    ("apply-50k-200-times", 50_000, apply),
    ("apply-500k-200-times", 500_000, apply),
    ("first-50k", 50_000, first),
    ("first-500k", 500_000, first),
    ("learn-50k", 50_000, learnt),
    ("learn-500k", 500_000, learnt),
    ("watch-1000-chunks", CHUNKS, watch),
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == "names") {
        for (name, ..) in STEPS {
            println!("{name}");
        }
        return;
    }
    if let Some(at) = arguments.iter().position(|argument| argument == "once") {
        let wanted = arguments.get(at + 1).map_or("", String::as_str);
        let Some((_, size, prepare)) = STEPS.iter().find(|(name, ..)| *name == wanted) else {
            println!("no step is called {wanted:?}; `engine names` lists them");
            std::process::exit(2);
        };
        let step = prepare(*size);
        if arguments.get(at + 2).is_none() {
            step();
        }
        // Neither run tears down what only one of them has left over.
        std::process::exit(0);
    }
    println!("{:<20} {:>12}", "step", "us, fastest");
    for (name, size, prepare) in STEPS {
        let fastest = (0..TIMES).map(|_| timed(prepare(*size))).min().unwrap_or_default();
        println!("{name:<20} {:>12.1}", fastest.as_secs_f64() * 1e6);
    }
}

fn timed(step: Step) -> Duration {
    let began = Instant::now();
    step();
    began.elapsed()
}

/// The look at the bytes alone, at a body without transfers.
fn scan(size: usize) -> Step {
    let (body, policy) = (body(Kind::Plain, size), policy());
    Box::new(move || {
        black_box(policy.naming.may_be_named_in(body));
    })
}

/// A body into a view, and what it says about transfers.
fn read(size: usize) -> Step {
    let (body, policy) = (body(Kind::Held, size), policy());
    Box::new(move || std::mem::forget(black_box(read_in(body, policy))))
}

/// Where to look the run up.
fn lookups(size: usize) -> Step {
    let reading = read_in(body(Kind::Held, size), policy());
    Box::new(move || {
        black_box(reading.lookups());
        std::mem::forget(reading);
    })
}

/// The holder's request, whose run is known: often, because its preparation costs more than that.
fn hold(size: usize) -> Step {
    let (body, policy) = (body(Kind::Held, size), policy());
    let reading = read_in(body, policy);
    let run = taken_up(&reading, body, policy);
    let found: Vec<Found> = (0..10).map(|_| found(run.clone())).collect();
    Box::new(move || {
        for found in found {
            let decision = decide_on(&reading, found, body, policy);
            assert!(matches!(decision.action, Action::Rewrite(_)) && !decision.changed);
            black_box(decision);
        }
        std::mem::forget(reading);
    })
}

/// The plan of a holder's request, carried out: often, because its preparation costs more than that.
fn apply(size: usize) -> Step {
    let (body, policy) = (body(Kind::Held, size), policy());
    let reading = read_in(body, policy);
    let Action::Rewrite(plan) = decide_on(&reading, Found::default(), body, policy).action else {
        panic!("a receiver's request is rebuilt")
    };
    Box::new(move || {
        for _ in 0..200 {
            black_box(wire::apply(body, &reading.view, &plan));
        }
        std::mem::forget((reading, plan));
    })
}

/// The first rewrite of a boundary with ten facts, bytes to bytes, of a transfer that nobody saw before.
fn first(size: usize) -> Step {
    let (body, policy) = (body(Kind::Arrived, size), policy());
    Box::new(move || {
        let reading = read_in(body, policy);
        black_box(reading.lookups());
        let decision = decide_on(&reading, Found::default(), body, policy);
        let Action::Rewrite(plan) = &decision.action else { panic!("a receiver's request is rebuilt") };
        std::mem::forget(black_box(wire::apply(body, &reading.view, plan)));
        std::mem::forget((decision, reading));
    })
}

/// What a sender's reply without a transfer teaches a run of which nothing is known.
fn learnt(size: usize) -> Step {
    let (body, policy) = (body(Kind::Offered, size), policy());
    let reading = read_in(body, policy);
    let request = hash::request(body);
    let reply = Reply {
        id: "chatcmpl-1".to_owned(),
        text: conversation::REPLY.to_owned(),
        finish: Some(Finish::Stop),
        choices: 1,
        ended: true,
        ..Reply::default()
    };
    Box::new(move || {
        let run = Run::new("run".to_owned(), reading.is_opening(), Timestamp(0));
        let terms = Terms {
            header: None,
            request: &request,
            asked: None,
            held: false,
            may_correct: false,
            corrections: &[],
            later: false,
        };
        let learned = learn(
            &reading,
            &reply,
            run,
            Arc::default(),
            terms,
            circumstances(body, policy, &|_| Log::default()),
        );
        std::mem::forget(black_box(learned));
        std::mem::forget(reading);
    })
}

/// A stream of this many chunks, watched to its end.
fn watch(chunks: usize) -> Step {
    let chunks: Vec<Bytes> = (0..chunks).map(chunk).collect();
    let mut watcher = Watcher::new(Dialect::Chat, true, 1 << 20);
    Box::new(move || {
        for chunk in chunks {
            black_box(watcher.push(chunk));
        }
        std::mem::forget(black_box(watcher.finish(true)));
    })
}

fn chunk(n: usize) -> Bytes {
    let mut event = String::new();
    let _ = write!(
        event,
        "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1922222222,\"model\":\"mock-1\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" word {n}\"}},\"finish_reason\":null}}]}}\n\n"
    );
    Bytes::from(event)
}

/// A body that lives as long as the process, as a step and its preparation share it.
fn body(kind: Kind, size: usize) -> &'static [u8] {
    let mut body = Vec::new();
    Conversation::new(kind, size, 0, Asked::Whole).body(0, 4471, &mut body);
    body.leak()
}

fn policy() -> &'static Policy {
    Box::leak(Box::default())
}

fn read_in(body: &'static [u8], policy: &'static Policy) -> Reading<'static> {
    let view = wire::read(body, Dialect::Chat).expect("the generator writes JSON");
    reading(view, &policy.naming, None)
}

fn circumstances<'a>(body: &'a [u8], policy: &'a Policy, log: &'a dyn Fn(&str) -> Log) -> Circumstances<'a> {
    Circumstances { policy, now: Timestamp(1_922_222_222_000), fresh_id: &String::new, log, body }
}

fn decide_on(reading: &Reading<'_>, found: Found, body: &[u8], policy: &Policy) -> Decision {
    decide(reading, found, circumstances(body, policy, &|_| Log::default()))
}

/// The run as it is stored once its receiver has asked for the first time.
fn taken_up(reading: &Reading<'_>, body: &[u8], policy: &Policy) -> Arc<Run> {
    let decision = decide_on(reading, Found::default(), body, policy);
    decision.run.expect("a transfer in the list begins a run")
}

/// What looking up a transfer's call gives.
fn found(run: Arc<Run>) -> Found {
    Found { sets: vec![(Way::Call, vec![run.id.clone()])], runs: [(run.id.clone(), run)].into() }
}
