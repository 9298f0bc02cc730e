//! A fake that real clients can be pointed at: it judges what comes as its
//! server would, and lets another process say the words
//! (`tests/clients/run.py --strict`).

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{ALL, Called, Fake, Judge, Judged, Server, Turn};
use crate::support::client::{Client, post};

/// Who says the words of a fake that has no script.
pub(super) struct Author {
    upstream: SocketAddr,
    judge: Judge,
    record: Mutex<File>,
}

impl Author {
    /// What it says to a request, in the ids that this server gives; nothing where the request is refused.
    pub(super) async fn turn(&self, server: &Server, judged: &Judged) -> (Turn, Judge) {
        let refused = self.judge == Judge::Refuse && !judged.faults.is_empty();
        let turn = if refused { Turn::default() } else { self.ask(server, &judged.body).await };
        let calls: Vec<&str> = turn.calls.iter().map(|call| call.name.as_str()).collect();
        let row = json!({
            "request": {"path": "/v1/chat/completions", "body": judged.body},
            "response": {"status": if refused { 400 } else { 200 }, "body": turn.message(server).to_string()},
            "mock_decision": {"calls": calls},
            "faults": judged.faults.iter().map(ToString::to_string).collect::<Vec<_>>(),
        });
        writeln!(self.record.lock().unwrap(), "{row}").unwrap();
        (turn, self.judge)
    }

    async fn ask(&self, server: &Server, body: &Value) -> Turn {
        let mut body = body.clone();
        for key in ["stream", "stream_options"] {
            body.as_object_mut().and_then(|body| body.remove(key));
        }
        let request =
            post("/v1/chat/completions", "content-type: application/json\r\n", body.to_string().as_bytes());
        let got = Client::connect(self.upstream).await.exchange(request).await;
        let reply: Value = serde_json::from_slice(&got.body).expect("the author answers in JSON");
        let message = &reply["choices"][0]["message"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let called = |call: &Value| Called {
            id: server.given_id(&text(&call["id"])),
            name: text(&call["function"]["name"]),
            arguments: text(&call["function"]["arguments"]),
        };
        Turn {
            text: message["content"].as_str().map(str::to_owned),
            calls: message["tool_calls"].as_array().into_iter().flatten().map(called).collect(),
        }
    }
}

/// Serves until it is ended. `FAKE_SERVER`: the profile; `FAKE_AUTHOR`: the address of who says the words;
/// `FAKE_RECORD`: a file for what came; `FAKE_NOTES`: set where nothing is to be refused.
#[tokio::test]
#[ignore = "serves real clients: tests/clients/run.py --strict"]
async fn serve_real_clients() {
    let setting = |name| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let name = setting("FAKE_SERVER");
    let fake = Fake::start(ALL.iter().find(|server| server.name == name).unwrap()).await;
    fake.speaks_for(Author {
        upstream: setting("FAKE_AUTHOR").parse().unwrap(),
        judge: if std::env::var_os("FAKE_NOTES").is_some() { Judge::Note } else { Judge::Refuse },
        record: Mutex::new(File::create(Path::new(&setting("FAKE_RECORD"))).unwrap()),
    });
    println!("listening on {}", fake.address);
    std::future::pending::<()>().await;
}

impl Fake {
    fn speaks_for(&self, author: Author) {
        self.desk.lock().unwrap().author = Some(Arc::new(author));
    }
}
