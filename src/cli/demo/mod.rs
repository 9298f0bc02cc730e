//! `seam demo`: two conversations through the real proxy, in this process and
//! over real sockets, against a scripted model; no key, no network.

mod chat;
mod client;
mod heard;
mod page;
mod story;
mod upstream;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches};
use serde_json::json;
use tokio::runtime::Builder;

use super::{Subcommand, complain, print};
use crate::app::{App, StartError};
use crate::config::{Config, Problems, Source};
use crate::engine::event::Finding;
use crate::engine::handoff::{brief, transcript};
use crate::engine::report::{Report, Wanted};
use crate::engine::ruling;
use crate::engine::view::Dialect;
use crate::engine::wire;
use chat::{Message, Received};
use heard::Heard;
use page::Look;
use story::{ASKED, Answer, SCENES, Scene};
use upstream::Upstream;

pub(super) const COMMAND: Subcommand = Subcommand {
    name: "demo",
    about: "Show what a receiver is sent without and with Seam, on two scripted conversations",
    arguments: |command| {
        let json = Arg::new("json").long("json").action(ArgAction::SetTrue).help("Write JSON, for machines");
        let report = Arg::new("report").long("report").action(ArgAction::SetTrue).conflicts_with("json");
        let inject = Arg::new("inject").long("inject").action(ArgAction::SetTrue);
        command
            .arg(json)
            .arg(inject.help("Ask the sender for a contract, and correct it where it makes a fact up"))
            .arg(report.help("Write what seam report says of the conversations instead"))
    },
    run,
};

/// Far more than the demo takes: over it, something waits for ever.
const DEADLINE: Duration = Duration::from_secs(10);
/// Columns of a page that goes to a file.
const FILE_WIDTH: usize = 80;
/// Columns over which lines are hard to read.
const WIDEST: usize = 170;

/// The demo is the same everywhere, so the settings of the environment are not asked.
fn run(arguments: &ArgMatches, _: &dyn Source) -> ExitCode {
    let show = if arguments.get_flag("inject") { Show::Asked } else { Show::Derived };
    match played(show) {
        Ok((played, _)) if arguments.get_flag("json") => {
            print(&format!("{}\n", as_json(&played)));
            ExitCode::SUCCESS
        }
        Ok((_, report)) if arguments.get_flag("report") => {
            print(&super::report::as_text(&report));
            ExitCode::SUCCESS
        }
        Ok((played, _)) => {
            print(&page::page(&played, look()));
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

/// What the demo is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    /// What Seam makes of what a sender says by itself.
    Derived,
    /// What it says where it is asked.
    Asked,
}

impl Show {
    fn scenes(self) -> &'static [&'static Scene] {
        match self {
            Show::Derived => SCENES,
            Show::Asked => ASKED,
        }
    }
}

/// Why the demo could not be shown.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the demo's thread cannot be started")]
    Runtime(#[source] std::io::Error),
    #[error("the demo's upstream cannot listen on loopback")]
    Upstream(#[source] std::io::Error),
    #[error("the demo's settings are wrong")]
    Settings(#[from] Problems),
    #[error("Seam cannot start")]
    Start(#[from] StartError),
    #[error("Seam's port is not known")]
    Address(#[source] std::io::Error),
    #[error("\"{0}\" failed {1}")]
    Conversation(&'static str, &'static str, #[source] client::Failure),
    #[error("\"{0}\": the receiver's request did not reach upstream {1}")]
    NotReceived(&'static str, &'static str),
    #[error("\"{0}\": upstream got a request that cannot be read")]
    Unreadable(&'static str, #[source] wire::Unreadable),
    #[error("\"{0}\": upstream got a message of an unknown shape")]
    OddMessage(&'static str, #[source] serde_json::Error),
    #[error("\"{0}\": the receiver's request went up without a brief")]
    NoBrief(&'static str),
    #[error("\"{0}\": the customer was told something else through Seam")]
    OtherEnd(&'static str),
    #[error("the runs of the demo cannot be read")]
    NoReport,
    #[error("it did not end within {} seconds", DEADLINE.as_secs())]
    Endless,
}

/// One conversation, held without and with Seam.
struct Played {
    scene: &'static Scene,
    without: Sent,
    with: Sent,
    /// What went back to the sender, if something did.
    correction: Option<Correction>,
    findings: Vec<Finding>,
}

/// What a sender wrote, and what it was told instead of a result.
struct Correction {
    wrote: String,
    told: String,
}

/// The receiver's first request as upstream got it.
struct Sent {
    messages: Vec<Message>,
    /// Of the list, estimated as everywhere in Seam.
    tokens: u64,
}

impl Sent {
    fn brief(&self) -> Option<&str> {
        let system = self.messages.first()?.content.as_deref()?;
        brief::find(system).map(|found| found.brief)
    }
}

fn played(show: Show) -> Result<(Vec<Played>, Report), Error> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
    // One thread runs everything, so this one hears all that Seam says.
    let heard = Heard::default();
    let _listening = heard.listen();
    runtime.block_on(async {
        tokio::time::timeout(DEADLINE, play_all(show, &heard)).await.unwrap_or(Err(Error::Endless))
    })
}

async fn play_all(show: Show, heard: &Heard) -> Result<(Vec<Played>, Report), Error> {
    let upstream = Upstream::start().await.map_err(Error::Upstream)?;
    let app = App::bind(&settings(show, upstream.address())?).await?;
    let seam = app.address().map_err(Error::Address)?;
    let (drain, runs) = (app.drain(), app.runs());
    let serving = tokio::spawn(app.run());
    let mut all = Vec::new();
    for scene in show.scenes() {
        let (without, with) = play(scene, &upstream, seam).await?;
        let correction = correction(scene, &upstream)?;
        all.push(Played { scene, without, with, correction, findings: heard.take() });
    }
    let runs = runs.recent(all.len()).await.map_err(|_| Error::NoReport)?;
    let report = Report::of(&runs, &Wanted { worst: all.len(), ..Wanted::default() });
    drain.ask();
    // It ends by its own deadline at the latest; how is no part of the demo.
    let _ = serving.await;
    Ok((all, report))
}

fn settings(show: Show, upstream: SocketAddr) -> Result<Config, Problems> {
    let upstream = format!("http://{upstream}/v1");
    let free = "127.0.0.1:0";
    let mut settings =
        vec![("SEAM_UPSTREAM", upstream.as_str()), ("SEAM_LISTEN", free), ("SEAM_ADMIN_LISTEN", free)];
    if show == Show::Asked {
        settings.extend([("SEAM_CONTRACT", "inject"), ("SEAM_ENFORCE", "contract,facts")]);
    }
    let settings: Vec<(String, String)> =
        settings.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Config::read(&settings)
}

/// Gives what upstream got for the receiver, without and with Seam.
async fn play(scene: &'static Scene, upstream: &Upstream, seam: SocketAddr) -> Result<(Sent, Sent), Error> {
    let (without, told) = hold(scene, scene.answers, upstream, upstream.address(), "without Seam").await?;
    let (with, told_through_seam) =
        hold(scene, scene.asked.unwrap_or(scene.answers), upstream, seam, "through Seam").await?;
    if with.brief().is_none() {
        return Err(Error::NoBrief(scene.title));
    }
    if told != told_through_seam {
        return Err(Error::OtherEnd(scene.title));
    }
    Ok((without, with))
}

/// Holds the conversation at `address`; gives what upstream got for the receiver, and what the customer was told.
async fn hold(
    scene: &'static Scene,
    answers: &[Answer],
    upstream: &Upstream,
    address: SocketAddr,
    way: &'static str,
) -> Result<(Sent, String), Error> {
    upstream.rehearse(answers);
    let told = client::converse(scene, address)
        .await
        .map_err(|failure| Error::Conversation(scene.title, way, failure))?;
    for body in upstream.received() {
        let sent = sent(scene, &body)?;
        let system = sent.messages.first().and_then(|message| message.content.as_deref());
        if system.is_some_and(|text| text.starts_with(scene.receiver.instructions)) {
            return Ok((sent, told));
        }
    }
    Err(Error::NotReceived(scene.title, way))
}

/// What Seam told the sender in the conversation that was held last.
fn correction(scene: &'static Scene, upstream: &Upstream) -> Result<Option<Correction>, Error> {
    for body in upstream.received() {
        let list = sent(scene, &body)?.messages;
        let [.., wrote, told] = &list[..] else { continue };
        let refused = told.content.as_deref().filter(|text| text.starts_with(ruling::REFUSES));
        let (Some(text), [call]) = (refused, &wrote.tool_calls[..]) else { continue };
        return Ok(Some(Correction { wrote: call.function.arguments.clone(), told: text.to_owned() }));
    }
    Ok(None)
}

fn sent(scene: &'static Scene, body: &[u8]) -> Result<Sent, Error> {
    let view = wire::read(body, Dialect::Chat).map_err(|error| Error::Unreadable(scene.title, error))?;
    let tokens = transcript::tokens(&view.items);
    let received: Received =
        serde_json::from_slice(body).map_err(|error| Error::OddMessage(scene.title, error))?;
    Ok(Sent { messages: received.messages, tokens })
}

fn as_json(played: &[Played]) -> serde_json::Value {
    let scenes = played.iter().map(|played| {
        json!({
            "scene": played.scene.title,
            "without_seam": {"messages": played.without.messages},
            "with_seam": {"messages": played.with.messages},
            "brief": played.with.brief(),
            "correction": played.correction.as_ref().map(|it| json!({"wrote": it.wrote, "told": it.told})),
            "findings": played.findings,
            "tokens": {"before": played.without.tokens, "after": played.with.tokens},
        })
    });
    scenes.collect()
}

fn look() -> Look {
    if !std::io::stdout().is_terminal() {
        return Look { width: FILE_WIDTH, colour: false };
    }
    let width = terminal_size::terminal_size().map_or(FILE_WIDTH, |(width, _)| usize::from(width.0));
    Look { width: width.min(WIDEST), colour: !crate::config::source::no_colour() }
}
