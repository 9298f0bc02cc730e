//! Every conversation in front of every server: plain and streamed, under each
//! filter, no receiver's request is refused.
//!
//! The whole takes minutes and is `tests/matrix.sh`; a cut of it runs with the other tests.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use seam::engine::event::Code;
use serde_json::{Value, json};

use super::support::client::post;
use super::support::conversations::{self, Conversation, Exchange, behind};
use super::support::fake::{self, Fake, Judge, Server};
use super::support::seam::Seam;
use super::support::soon;
use super::{captures, captures_responses};

const FILTERS: &[&str] = &["window", "dialogue", "none"];

/// One server under one filter, and the Seam in front of it.
struct Row {
    fake: Fake,
    seam: Seam,
    filter: &'static str,
    /// Conversations played so far; each is a tenant of its own.
    tenants: usize,
    /// What every brief has to say.
    tells: Option<&'static str>,
    played: Played,
}

impl Row {
    async fn start(server: &'static Server, filter: &'static str) -> Row {
        let fake = Fake::start(server).await;
        let settings = [("SEAM_PROFILE", server.name), ("SEAM_TRANSCRIPT", filter)];
        let seam = Seam::with(&fake.url(), &settings).await;
        Row { fake, seam, filter, tenants: 0, tells: None, played: Played::default() }
    }

    /// Plays a conversation as a client of this server has it.
    async fn play(&mut self, conversation: &Conversation, streamed: bool) {
        self.tenants += 1;
        let server = self.fake.server.name;
        *self.played.cells.entry((conversation.name.clone(), server)).or_default() += 1;
        for (at, exchange) in conversation.exchanges.iter().enumerate() {
            if let Err(what) = self.exchange(exchange, streamed).await {
                let form = if streamed { "streamed" } else { "plain" };
                let place = format!("{server}, {}, {form}: {}", self.filter, conversation.name);
                self.played.wrong.push(format!("{place}, request {}: {what}", at + 1));
            }
        }
    }

    async fn exchange(&mut self, exchange: &Exchange, streamed: bool) -> Result<(), String> {
        let judge = if exchange.receives { Judge::Refuse } else { Judge::Note };
        self.fake.next(exchange.reply.clone(), judge);
        let mut body = exchange.request.clone();
        let object = body.as_object_mut().expect("a body is an object");
        object.remove("stream_options");
        object.remove("stream");
        if streamed {
            body["stream"] = json!(true);
        }
        let head = format!("authorization: Bearer cell-{}\r\n", self.tenants);
        let got =
            soon(self.seam.exchange(post("/v1/chat/completions", &head, body.to_string().as_bytes()))).await;
        let judged = self.fake.last();
        if !exchange.receives {
            if !judged.faults.is_empty() {
                *self.played.refusable.entry(self.fake.server.name).or_default() += 1;
            }
            let untouched = judged.body == body;
            return if untouched { Ok(()) } else { Err("a sender's request was changed".into()) };
        }
        if got.status != 200 {
            return Err(judged.faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
        }
        match brief(&judged.body) {
            None => Err("no brief in front".into()),
            Some(brief) if self.tells.is_some_and(|told| !brief.contains(told)) => {
                Err(format!("not told in {brief}"))
            }
            Some(_) => Ok(()),
        }
    }
}

/// The brief that ends the leading instructions, or opens the first turn where there are none; as JSON.
fn brief(body: &Value) -> Option<String> {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let leading =
        messages.iter().take_while(|message| message["role"] != "user" && message["role"] != "assistant");
    let slot = leading.last().or(messages.first())?["content"].to_string();
    slot.find("[Seam handoff ").map(|at| slot[at..].to_owned())
}

/// What came of playing conversations.
#[derive(Default)]
struct Played {
    /// Cells, by conversation and server.
    cells: BTreeMap<(String, &'static str), usize>,
    /// What is wrong, a line each.
    wrong: Vec<String>,
    /// Senders' requests that the server would have refused as the client wrote them; they pass as they are.
    refusable: BTreeMap<&'static str, usize>,
}

impl Played {
    fn add(&mut self, other: Played) {
        for (cell, count) in other.cells {
            *self.cells.entry(cell).or_default() += count;
        }
        for (server, count) in other.refusable {
            *self.refusable.entry(server).or_default() += count;
        }
        self.wrong.extend(other.wrong);
    }

    #[track_caller]
    fn is_green(&self) {
        let cells: usize = self.cells.values().sum();
        assert!(
            self.wrong.is_empty(),
            "{} complaints, {cells} cells:\n{}",
            self.wrong.len(),
            self.wrong.join("\n")
        );
    }
}

/// Plays all in front of every server, each server and filter beside the others.
async fn play_all(
    conversations: Vec<Conversation>,
    filters: &[&'static str],
    forms: &'static [bool],
) -> Played {
    let conversations = Arc::new(conversations);
    let mut rows = Vec::new();
    for server in fake::ALL {
        for &filter in filters {
            rows.push(tokio::spawn(play_row(server, filter, forms, Arc::clone(&conversations))));
        }
    }
    let mut played = Played::default();
    for row in rows {
        played.add(row.await.unwrap());
    }
    played
}

async fn play_row(
    server: &'static Server,
    filter: &'static str,
    forms: &'static [bool],
    conversations: Arc<Vec<Conversation>>,
) -> Played {
    let mut row = Row::start(server, filter).await;
    for conversation in conversations.iter() {
        let conversation = behind(server, conversation);
        for &streamed in forms {
            row.play(&conversation, streamed).await;
        }
    }
    row.played
}

/// Our own conversations under the default filter, plain; streamed by turns with the captures of four clients.
#[tokio::test]
async fn no_server_refuses_a_receivers_request() {
    play_all(conversations::all(), &["window"], &[false]).await.is_green();
    let mut some = captures::conversations();
    some.retain(|one| {
        ["langgraph-supervisor", "autogen-swarm-parallel-tool", "openai-agents-nest", "pydantic-ai"]
            .contains(&one.name.as_str())
    });
    play_all(some, &["dialogue"], &[true]).await.is_green();
}

/// What clients do to a list before Seam sees it, and what is found of it.
const DAMAGE: &[(&str, Option<Code>)] = &[
    ("a call beside the transfer left unanswered", Some(Code::CallUnanswered)),
    ("calls of two replies merged", None),
    ("invented way back", None),
    ("agents quoted in user messages", None),
    ("nested history beside the same items", None),
    ("sender's system text beside the receiver's", None),
    ("sender's system text alone", Some(Code::SystemTextOfSender)),
    ("arguments re-serialised", None),
];

/// That each list is one that the server takes is seen in the matrix and here; here, that every brief tells
/// what the sender had found out.
#[tokio::test]
async fn what_clients_damage_is_recognised_and_briefed() {
    let all = conversations::all();
    for (name, code) in DAMAGE {
        let mut row = Row::start(&fake::ALL[0], "window").await;
        row.tells = Some("84.50");
        row.play(all.iter().find(|one| one.name == *name).expect(name), false).await;
        row.played.is_green();
        if let Some(code) = code {
            assert_eq!(row.seam.findings(*code), 1, "{name}");
        }
    }
}

/// The whole: `tests/matrix.sh`. `UPDATE_DOCS=1` writes the result to `docs/compatibility.md`, if the
/// captures are there.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: tests/matrix.sh"]
async fn the_whole_matrix() {
    let (own, captured) = (conversations::all(), captures::conversations());
    let (responses, wrong) = captures_responses::behind_every_profile(FILTERS).await;
    let page = Page {
        counts: (own.len(), captured.len(), responses),
        names: own.iter().chain(&captured).map(|one| one.name.clone()).collect(),
        receivers: own.iter().chain(&captured).flat_map(|one| &one.exchanges).filter(|e| e.receives).count(),
    };
    let mut played = play_all(own.into_iter().chain(captured).collect(), FILTERS, &[false, true]).await;
    played.wrong.extend(wrong);
    let page = page.text(&played);
    println!("{page}");
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/compatibility.md");
    if std::env::var_os("UPDATE_DOCS").is_some() && responses > 0 {
        std::fs::write(&path, &page).expect("the checkout can be written to");
    }
    played.is_green();
}

/// What the page says beside the results.
struct Page {
    /// Conversations of our own, captures of Chat Completions, cells of the Responses API.
    counts: (usize, usize, usize),
    names: Vec<String>,
    receivers: usize,
}

impl Page {
    fn text(&self, played: &Played) -> String {
        let (own, captured, responses) = self.counts;
        let total: usize = played.cells.values().sum();
        let mut page = format!(
            "# Every client in front of every server\n\n\
             Each conversation is played request by request through Seam to an upstream that answers as the server of the profile \
             would: it refuses what that server refuses and streams as oddly as that server does (`tests/it/support/fake/`). A cell \
             is one conversation, one profile, plain or streamed, and one transcript filter (window, dialogue, none). It is red if \
             one receiver's request is refused or has no brief, or one sender's request was changed.\n\n\
             **{total} cells of Chat Completions and {responses} of the Responses API: {} red.** {own} conversations of our own, each \
             with one kind of damage that clients do, and {captured} captures of real clients; {} receivers' requests in each \
             form under each filter. The Responses API's captures are played in the form that they were recorded in, against one set \
             of rules: what profiles choose is about the list of Chat Completions, and must do no harm here. Servers are scripted \
             after what is documented and reported of them (`docs/profiles.md`); no paid endpoint was asked.\n\n\
             This page is made by `tests/matrix.sh`.\n\n| conversation |",
            played.wrong.len(),
            self.receivers,
        );
        for server in fake::ALL {
            write!(page, " {} |", server.name).unwrap();
        }
        page.push_str("\n|---|");
        page.push_str(&"---|".repeat(fake::ALL.len()));
        for name in &self.names {
            write!(page, "\n| {name} |").unwrap();
            for server in fake::ALL {
                let count = played.cells.get(&(name.clone(), server.name)).copied().unwrap_or_default();
                let red = played.wrong.iter().filter(|line| is_of(line, name, server)).count();
                let cell = if red == 0 { count.to_string() } else { format!("**{red} red**") };
                write!(page, " {cell} |").unwrap();
            }
        }
        page.push_str(OWN_FAULTS);
        for (server, count) in &played.refusable {
            writeln!(page, "| {server} | {count} |").unwrap();
        }
        for line in &played.wrong {
            write!(page, "\n- {line}").unwrap();
        }
        page
    }
}

const OWN_FAULTS: &str = "\n\n## What stays the client's own\n\n\
    A request that Seam does not rewrite goes up byte for byte, so what a server refuses in it, it refuses with Seam as it \
    would without: a `developer` message to a server that knows no such role, a call that the client left unanswered in the \
    sender's own list. A request that Seam rewrites is made valid, the client's own damage included. Senders' requests in the \
    cells above that the server would have refused as their clients wrote them:\n\n| profile | requests |\n|---|---|\n";

fn is_of(line: &str, name: &str, server: &Server) -> bool {
    line.starts_with(&format!("{},", server.name)) && line.contains(&format!(": {name}, request"))
}
