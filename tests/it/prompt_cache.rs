//! The provider's prompt cache with Seam and without: while one agent holds
//! the run, each turn finds the beginning that the turn before left.

use std::fmt::Write;

use serde_json::{Value, json};

use super::support::client::{Client, post};
use super::support::conversations::{Agent, before, calls, moved, request, result, says, user};
use super::support::fake::{self, Fake, Judge, Turn};
use super::support::prompt_cache::{Read, STEP};
use super::support::seam::Seam;
use super::support::soon;

/// Turns of the holder after the transfer.
const TURNS: usize = 10;
/// Those in which it held the run before.
const HELD: std::ops::RangeInclusive<usize> = 2..=TURNS;

/// A conversation's exchanges, and to which turn of the holder each belongs; 0 is the sender's, and the turn
/// behind the last is the first agent's, which has the run back.
struct Played {
    name: &'static str,
    with: Vec<(usize, Read)>,
    without: Vec<(usize, Read)>,
}

impl Played {
    fn uncached(side: &[(usize, Read)], turn: usize) -> usize {
        side.iter().filter(|(of, _)| *of == turn).map(|(_, read)| read.uncached()).sum()
    }
}

/// Agents whose instructions are as long as real ones.
fn agents() -> (Agent, Agent) {
    fn instructions(opening: &str) -> &'static str {
        let rules: String = (1..=60).fold(opening.to_owned(), |mut text, n| {
            write!(
                text,
                "\nRule {n}: where a crossing is moved by more than {n} hours, offer deck {n} and say so."
            )
            .unwrap();
            text
        });
        Box::leak(rules.into_boxed_str())
    }
    let desk = Agent {
        system: instructions("You are the desk of a ferry line."),
        tools: &["find_crossing", "add_note", "transfer_to_dock"],
    };
    let dock = Agent {
        system: instructions("You are the dock agent of a ferry line."),
        tools: &["rebook", "find_deck", "transfer_to_desk"],
    };
    (desk, dock)
}

/// All requests of a client that sends the whole history, with the replies that it gets. `shown`: what the
/// receiver sees of the sender's part. `looked`: how much the sender has looked up.
fn exchanges(shown: fn(Vec<Value>) -> Vec<Value>, looked: usize) -> Vec<(usize, Value, Turn)> {
    let (desk, dock) = agents();
    let mut all = Vec::new();
    let mut list = before()[..1].to_vec();
    for n in 0..looked {
        let (id, arguments) = (format!("call_l{n}"), json!({"crossing": format!("fx_{n}")}).to_string());
        if n < 3 {
            all.push((0, request(desk, &list), Turn::calls(&id, "find_crossing", &arguments)));
        }
        let log = format!("wind {n}, sea calm; ").repeat(40);
        list.push(calls(&[(&id, "find_crossing", &arguments)]));
        list.push(result(
            &id,
            &json!({"crossing": format!("fx_{n}"), "berth": format!("B-{n}"), "log": log}).to_string(),
        ));
    }
    all.push((0, request(desk, &list), Turn::calls("call_t1", "transfer_to_dock", "{}")));
    list = shown([list, moved()].concat());
    for turn in 1..=TURNS {
        let (id, arguments) = (format!("call_r{turn}"), json!({"deck": turn.to_string()}).to_string());
        all.push((turn, request(dock, &list), Turn::calls(&id, "find_deck", &arguments)));
        list.push(calls(&[(&id, "find_deck", &arguments)]));
        list.push(result(&id, &json!({"deck": turn.to_string(), "free": turn * 3}).to_string()));
        let words = format!("Deck {turn} has {} berths left.", turn * 3);
        all.push((turn, request(dock, &list), Turn::says(&words)));
        list.push(says(&words));
        list.push(user(&format!("And the deck above deck {turn}?")));
    }
    all.push((TURNS + 1, request(dock, &list), Turn::calls("call_b1", "transfer_to_desk", "{}")));
    list.extend([
        calls(&[("call_b1", "transfer_to_desk", "{}")]),
        result("call_b1", r#"{"assistant":"desk"}"#),
    ]);
    all.push((TURNS + 2, request(desk, &list), Turn::says("Let me see.")));
    list.extend([says("Let me see."), user("Thank you.")]);
    all.push((TURNS + 3, request(desk, &list), Turn::says("You are welcome.")));
    all
}

/// Plays them to `at`, in front of `fake`, and reads of each reply what its prompt cost.
async fn play(
    fake: &Fake,
    at: std::net::SocketAddr,
    exchanges: &[(usize, Value, Turn)],
) -> Vec<(usize, Read)> {
    fake.caches();
    let mut reads = Vec::new();
    for (turn, body, reply) in exchanges {
        fake.next(reply.clone(), Judge::Refuse);
        let request =
            post("/v1/chat/completions", "authorization: Bearer test\r\n", body.to_string().as_bytes());
        let got = soon(Client::connect(at).await.exchange(request)).await;
        assert_eq!(got.status, 200, "{}", got.text());
        let usage = &serde_json::from_slice::<Value>(&got.body).unwrap()["usage"];
        let tokens = |value: &Value| value.as_u64().unwrap() as usize;
        let cached = tokens(&usage["prompt_tokens_details"]["cached_tokens"]);
        reads.push((*turn, Read { input: tokens(&usage["prompt_tokens"]), cached }));
    }
    reads
}

async fn both(name: &'static str, shown: fn(Vec<Value>) -> Vec<Value>, looked: usize) -> Played {
    let exchanges = exchanges(shown, looked);
    let server = &fake::ALL[0];
    let (direct, behind) = (Fake::start(server).await, Fake::start(server).await);
    let seam = Seam::start(&behind.url()).await;
    let without = play(&direct, direct.address, &exchanges).await;
    let with = play(&behind, seam.address, &exchanges).await;
    Played { name, with, without }
}

/// `UPDATE_DOCS=1` writes what was measured to `docs/prompt-cache.md`.
#[tokio::test]
async fn a_holders_turns_find_their_beginning_cached() {
    fn whole(list: Vec<Value>) -> Vec<Value> {
        list
    }
    fn without_the_transfer(mut list: Vec<Value>) -> Vec<Value> {
        list.truncate(list.len() - 2);
        list
    }
    let all = [
        both("whole history, the transfer shown", whole, 3).await,
        both("whole history, the transfer hidden", without_the_transfer, 3).await,
        both("longer than the window", whole, 90).await,
    ];
    for played in &all {
        for (with, without) in
            played.with.iter().zip(&played.without).filter(|((turn, _), _)| HELD.contains(turn))
        {
            // One request against one: what is cached is rounded down to a step on both sides.
            let (turn, with, without) = (with.0, with.1.uncached(), without.1.uncached());
            assert!(
                with <= without + STEP,
                "{}, turn {turn}: {with} with Seam, {without} without",
                played.name
            );
        }
        let total = |side: &[(usize, Read)]| HELD.map(|turn| Played::uncached(side, turn)).sum::<usize>();
        let (with, without) = (total(&played.with), total(&played.without));
        assert!(
            with <= without + STEP * HELD.count(),
            "{}: {with} with Seam, {without} without",
            played.name
        );
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/prompt-cache.md");
        std::fs::write(path, page(&all)).expect("the checkout can be written to");
    }
}

fn page(all: &[Played]) -> String {
    let mut page = String::from(
        "# The prompt cache\n\n\
         Providers charge a fraction for the beginning of a prompt that an earlier request had already, to the token: \
         1,024 tokens at least, then in steps of 128. Whoever changes a prompt's beginning from turn to turn pays for all of \
         it again. Seam changes a receiver's list once, when it takes the run up, and to the same bytes on every later turn: \
         the receiver's own instructions first, which all conversations share, then the brief, which is frozen, then a \
         transcript that was cut once.\n\n\
         Measured by `tests/it/prompt_cache.rs` with the exact rendered prompt (o200k tokens) and the default settings, for \
         clients that send the whole history: input tokens that were not cached, each turn two requests (a call, and the \
         answer). The bound that is tested: over turns 2 to 10 at most 128 more a turn with Seam than without, and in each single request \
         at most the one step by which what is cached is rounded down.\n",
    );
    for played in all {
        let total = |side: &[(usize, Read)]| HELD.map(|turn| Played::uncached(side, turn)).sum::<usize>();
        let (with, without) = (total(&played.with), total(&played.without));
        write!(page, "\n## {}\n\nTurns 2 to 10 together: {without} without Seam, {with} with it.\n\n| turn | without Seam | with Seam | prompt without | prompt with |\n|---|---|---|---|---|\n", played.name).unwrap();
        let longest = |side: &[(usize, Read)], turn: usize| {
            side.iter().filter(|(of, _)| *of == turn).map(|(_, read)| read.input).max().unwrap_or(0)
        };
        for turn in 1..=TURNS + 3 {
            if turn == TURNS + 1 {
                continue;
            }
            let name = match turn {
                1 => "1, the hop".to_owned(),
                n if n == TURNS + 2 => "the hop back".to_owned(),
                n if n == TURNS + 3 => "the turn after it".to_owned(),
                n => n.to_string(),
            };
            writeln!(
                page,
                "| {name} | {} | {} | {} | {} |",
                Played::uncached(&played.without, turn),
                Played::uncached(&played.with, turn),
                longest(&played.without, turn),
                longest(&played.with, turn)
            )
            .unwrap();
        }
    }
    page.push_str(
        "\nSingle turns differ both ways by the rounding of two requests; over nine turns it evens out. The hop itself costs what it \
         costs without Seam: another agent's instructions stand in front, so nothing behind them is cached. In a short conversation \
         the brief adds some two hundred tokens there, in a long one the window takes more away than the brief adds. The hop back \
         to an earlier agent is where a brief costs something: without Seam that agent's prompt begins as it did before, up to where \
         it gave the run away, and is cached so far; with Seam a new brief stands behind its instructions, and what follows it is read \
         anew, once. From the next turn on it is cached again. `seam_upstream_tokens_total` shows the same on real traffic: \
         `cache_read` over `input`, with and without a brief.\n\n\
         Where the provider's cache matters more than a fresh brief on every way back, transfer back less often, or let the called \
         agent answer as a tool (`return_to`). Asking senders for a contract (`SEAM_CONTRACT=inject`) adds the same bytes to an agent's \
         tools on every request.\n",
    );
    page
}
