//! Every conversation in front of every server: plain and streamed, under each
//! filter, no receiver's request is refused.
//!
//! The whole takes minutes and is `tests/matrix.sh`; a cut of it runs with the other tests.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};

use super::captures;
use super::support::client::post;
use super::support::conversations::{self, Conversation, behind};
use super::support::fake::{self, Fake, Judge, Server};
use super::support::seam::Seam;
use super::support::soon;

const FILTERS: &[&str] = &["window", "dialogue", "none"];

/// One server under one filter, and the Seam in front of it.
struct Row {
    fake: Fake,
    seam: Seam,
    filter: &'static str,
    /// Cells played so far; each is a tenant of its own.
    cells: usize,
}

impl Row {
    async fn start(server: &'static Server, filter: &'static str) -> Row {
        let fake = Fake::start(server).await;
        let settings = [("SEAM_PROFILE", server.name), ("SEAM_TRANSCRIPT", filter)];
        let seam = Seam::with(&fake.url(), &settings).await;
        Row { fake, seam, filter, cells: 0 }
    }

    /// Plays a conversation, and says what went wrong with its receivers' requests.
    async fn play(&mut self, conversation: &Conversation, streamed: bool) -> Vec<String> {
        self.cells += 1;
        let server = self.fake.server;
        let form = if streamed { "streamed" } else { "plain" };
        let mut wrong = Vec::new();
        for (at, exchange) in behind(server, conversation).exchanges.into_iter().enumerate() {
            let judge = if exchange.receives { Judge::Refuse } else { Judge::Note };
            self.fake.next(exchange.reply, judge);
            let mut body = exchange.request;
            let object = body.as_object_mut().expect("a body is an object");
            object.remove("stream_options");
            object.remove("stream");
            if streamed {
                body["stream"] = json!(true);
            }
            let head = format!("authorization: Bearer cell-{}\r\n", self.cells);
            let request = post("/v1/chat/completions", &head, body.to_string().as_bytes());
            let got = soon(self.seam.exchange(request)).await;
            let judged = self.fake.last();
            let mut complain = |what: String| {
                let (name, cell) = (&conversation.name, self.filter);
                wrong.push(format!("{}, {cell}, {form}: {name}, request {}: {what}", server.name, at + 1));
            };
            if !exchange.receives {
                if judged.body != body {
                    complain("a sender's request was changed".into());
                }
            } else if got.status != 200 {
                complain(judged.faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
            } else if !is_briefed(&judged.body) {
                complain("no brief in front".into());
            }
        }
        wrong
    }
}

/// Whether a brief ends the leading instructions, or opens the first turn where there are none.
fn is_briefed(body: &Value) -> bool {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let leading =
        messages.iter().take_while(|message| message["role"] != "user" && message["role"] != "assistant");
    let slot = leading.last().or(messages.first());
    slot.is_some_and(|message| message["content"].to_string().contains("[Seam handoff "))
}

/// Plays all, and gives what went wrong, by conversation, and the count of cells.
async fn play_all(
    conversations: &[Conversation],
    filters: &[&'static str],
    forms: &[bool],
) -> (BTreeMap<(String, &'static str), usize>, Vec<String>) {
    let mut cells = BTreeMap::new();
    let mut wrong = Vec::new();
    for server in fake::ALL {
        for filter in filters {
            let mut row = Row::start(server, filter).await;
            for conversation in conversations {
                for &streamed in forms {
                    wrong.extend(row.play(conversation, streamed).await);
                    *cells.entry((conversation.name.clone(), server.name)).or_default() += 1;
                }
            }
        }
    }
    (cells, wrong)
}

/// Our own conversations under the default filter, plain; streamed by turns with the captures of four clients.
#[tokio::test]
async fn no_server_refuses_a_receivers_request() {
    let (cells, wrong) = play_all(&conversations::all(), &["window"], &[false]).await;
    assert!(wrong.is_empty(), "{} of {} cells:\n{}", wrong.len(), cells.len(), wrong.join("\n"));
    let mut some = captures::conversations();
    some.retain(|one| {
        ["langgraph-supervisor", "autogen-swarm-parallel-tool", "openai-agents-nest", "pydantic-ai"]
            .contains(&one.name.as_str())
    });
    let (cells, wrong) = play_all(&some, &["dialogue"], &[true]).await;
    assert!(wrong.is_empty(), "{} of {} cells:\n{}", wrong.len(), cells.len(), wrong.join("\n"));
}

/// The whole: `tests/matrix.sh`. `UPDATE_DOCS=1` writes the result to `docs/compatibility.md`.
#[tokio::test]
#[ignore = "takes minutes: tests/matrix.sh"]
async fn the_whole_matrix() {
    let own = conversations::all();
    let captured = captures::conversations();
    let counts = (own.len(), captured.len());
    let all: Vec<Conversation> = own.into_iter().chain(captured).collect();
    let (cells, wrong) = play_all(&all, FILTERS, &[false, true]).await;
    let page = page(&all, &cells, &wrong, counts);
    println!("{page}");
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/compatibility.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("the checkout can be written to");
    }
    assert!(wrong.is_empty(), "{} complaints", wrong.len());
}

fn page(
    all: &[Conversation],
    cells: &BTreeMap<(String, &'static str), usize>,
    wrong: &[String],
    (own, captured): (usize, usize),
) -> String {
    let total: usize = cells.values().sum();
    let receivers: usize = all.iter().map(|one| one.exchanges.iter().filter(|e| e.receives).count()).sum();
    let mut page = format!(
        "# Every client in front of every server\n\n\
         Each conversation is played request by request through Seam to an upstream that answers as the server of the profile \
         would: it refuses what that server refuses and streams as oddly as that server does (`tests/it/support/fake/`). A cell \
         is one conversation, one profile, plain or streamed, and one transcript filter (window, dialogue, none). It is red if \
         one receiver's request is refused or has no brief, or one sender's request was changed.\n\n\
         {total} cells, {} red. {own} conversations of our own, each with one kind of damage that clients do, and {captured} \
         captures of real clients; {receivers} receivers' requests in each form under each filter. Servers are scripted after \
         what is documented and reported of them (`docs/profiles.md`); no paid endpoint was asked.\n\n\
         This page is made by `tests/matrix.sh`.\n\n| conversation |",
        wrong.len()
    );
    for server in fake::ALL {
        write!(page, " {} |", server.name).expect("a string takes all");
    }
    page.push_str("\n|---|");
    page.push_str(&"---|".repeat(fake::ALL.len()));
    for one in all {
        write!(page, "\n| {} |", one.name).expect("a string takes all");
        for server in fake::ALL {
            let count = cells.get(&(one.name.clone(), server.name)).copied().unwrap_or_default();
            let red = wrong.iter().filter(|line| is_of(line, one, server)).count();
            if red == 0 {
                write!(page, " {count} |").expect("a string takes all");
            } else {
                write!(page, " **{red} red** |").expect("a string takes all");
            }
        }
    }
    page.push('\n');
    for line in wrong {
        write!(page, "\n- {line}").expect("a string takes all");
    }
    page
}

fn is_of(line: &str, one: &Conversation, server: &Server) -> bool {
    line.starts_with(&format!("{},", server.name)) && line.contains(&format!(": {}, request", one.name))
}
