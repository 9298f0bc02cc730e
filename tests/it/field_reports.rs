//! What users of agent frameworks and of proxies reported as broken, each kind
//! as a case of its own, through the real proxy to servers that refuse what
//! real ones refuse. The table is in `docs/field-reports.md`.

mod custody;
mod lists;
mod wire;
mod words;

use serde_json::Value;

use seam::engine::event::Code;

use super::support::client::{Got, post};
use super::support::conversations::{DESK, before, find, request, transfer};
use super::support::fake::{self, Fake, Judge, Turn};
use super::support::seam::Seam;
use super::support::soon;

/// A server, and Seam in front of it.
struct Stage {
    fake: Fake,
    seam: Seam,
}

impl Stage {
    async fn start() -> Stage {
        Stage::with("openai", &[]).await
    }

    /// In front of the server of this profile.
    async fn with(profile: &'static str, settings: &[(&str, &str)]) -> Stage {
        let server = fake::ALL.iter().find(|server| server.name == profile).unwrap();
        let fake = Fake::start(server).await;
        let settings = [&[("SEAM_PROFILE", profile)], settings].concat();
        let seam = Seam::with(&fake.url(), &settings).await;
        Stage { fake, seam }
    }

    /// Sends a request; what the client gets, and what the server got.
    async fn exchange(&self, body: &Value, reply: Turn, judge: Judge) -> (Got, Value) {
        self.fake.next(reply, judge);
        let request =
            post("/v1/chat/completions", "authorization: Bearer test\r\n", body.to_string().as_bytes());
        let got = soon(self.seam.exchange(request)).await;
        let judged = self.fake.last();
        assert!(judge == Judge::Note || got.status == 200, "{:?}\n{:#}", judged.faults, judged.body);
        (got, judged.body)
    }

    /// A request that is nobody's receiver's: it passes as it is.
    #[track_caller]
    fn sends(&self, body: Value, reply: Turn) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            let (_, got) = self.exchange(&body, reply, Judge::Note).await;
            assert_eq!(got, body, "{place}: a sender's request passes as it is");
        }
    }

    /// A receiver's request: the server takes it, with a brief. Gives what it got.
    #[track_caller]
    fn receives(&self, body: &Value, reply: Turn) -> impl Future<Output = Value> {
        let place = std::panic::Location::caller();
        async move {
            let (_, got) = self.exchange(body, reply, Judge::Refuse).await;
            assert!(got.to_string().contains("[Seam handoff "), "{place}: no brief in {got:#}");
            got
        }
    }

    /// The desk looks the crossing up and then says this.
    async fn desk_says(&self, reply: Turn) {
        self.sends(request(DESK, &before()[..1]), find()).await;
        self.sends(request(DESK, &before()), reply).await;
    }

    /// The desk looks the crossing up and transfers to the dock.
    async fn desk_transfers(&self) {
        self.desk_says(transfer()).await;
    }

    fn found(&self, code: Code) -> u64 {
        self.seam.findings(code)
    }

    /// The newest record, as the admin listener shows it.
    async fn record(&self) -> Value {
        self.seam.admin_json("/handoffs").await[0].clone()
    }

    /// The outcome of the newest record's fact of this key.
    async fn outcome(&self, key: &str) -> String {
        let record = self.record().await;
        let mut facts = record["facts"].as_array().into_iter().flatten();
        let fact = facts.find(|fact| fact["key"] == key).unwrap_or_else(|| panic!("no {key} in {record:#}"));
        fact["outcome"].as_str().unwrap_or_default().to_owned()
    }
}

/// The list behind the standing instructions.
fn list(body: &Value) -> &[Value] {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let leading = messages.iter().take_while(|message| message["role"] == "system").count();
    &messages[leading..]
}

/// The text of the first message.
fn slot(body: &Value) -> String {
    body["messages"][0]["content"].as_str().unwrap_or_default().to_owned()
}

/// The brief in the first message.
fn brief(body: &Value) -> String {
    let slot = slot(body);
    let at = slot.find("[Seam handoff ").unwrap_or_else(|| panic!("no brief in {slot}"));
    slot[at..].to_owned()
}
