//! Seam as the tests run it: the real thing, in this process, on ports of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use seam::app::App;
use seam::config::Config;
use seam::drain::Drain;
use seam::engine::event::Code;
use seam::telemetry::{Event, Telemetry};

use super::client::{Client, Got};
use super::soon;

/// A running Seam. It ends with the test.
pub(crate) struct Seam {
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) drain: Drain,
    telemetry: Arc<Telemetry>,
    run: tokio::task::JoinHandle<()>,
}

impl Seam {
    /// Seam in front of `upstream`, a base URL.
    pub(crate) async fn start(upstream: &str) -> Seam {
        Seam::with(upstream, &[]).await
    }

    /// The same, with more settings.
    pub(crate) async fn with(upstream: &str, settings: &[(&str, &str)]) -> Seam {
        let base = [
            ("SEAM_UPSTREAM", upstream),
            ("SEAM_LISTEN", "127.0.0.1:0"),
            ("SEAM_ADMIN_LISTEN", "127.0.0.1:0"),
        ];
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let source: Vec<(String, String)> = base.iter().chain(settings).map(own).collect();
        let app = App::bind(&Config::read(&source).unwrap()).await.unwrap();
        Seam {
            address: app.address().unwrap(),
            admin: app.admin_address().unwrap(),
            drain: app.drain(),
            telemetry: app.telemetry(),
            run: tokio::spawn(app.run()),
        }
    }

    /// A new connection to it.
    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.address).await
    }

    /// One exchange on a connection of its own.
    pub(crate) async fn exchange(&self, request: impl AsRef<[u8]>) -> Got {
        self.client().await.exchange(request).await
    }

    /// How often a finding of this kind was made.
    pub(crate) fn findings(&self, code: Code) -> u64 {
        self.telemetry.findings(code)
    }

    /// The status of a path of the admin listener.
    pub(crate) async fn admin_status(&self, path: &str) -> u16 {
        Client::connect(self.admin)
            .await
            .exchange(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n"))
            .await
            .status
    }

    /// What the admin listener answers.
    pub(crate) async fn admin(&self, method: &str, path: &str, head: &str) -> Got {
        let request = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n{head}\r\n", self.admin);
        Client::connect(self.admin).await.exchange(request).await
    }

    /// A JSON answer of the admin listener.
    pub(crate) async fn admin_json(&self, path: &str) -> serde_json::Value {
        let got = self.admin("GET", path, "").await;
        assert_eq!(got.status, 200, "{path}: {}", got.text());
        serde_json::from_slice(&got.body).unwrap()
    }

    pub(crate) fn count(&self, event: Event) -> u64 {
        self.telemetry.count(event)
    }

    /// Returns once it has ended by itself.
    pub(crate) async fn ended(mut self) {
        soon(&mut self.run).await.unwrap();
    }
}

impl Drop for Seam {
    fn drop(&mut self) {
        self.run.abort();
    }
}
