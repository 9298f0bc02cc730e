//! The binary as it is run: a process of its own, its log kept.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, BufReader};

use super::client::Client;
use super::soon;

/// A running process. It ends with the test.
pub(crate) struct Binary {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    log: Arc<Mutex<Vec<String>>>,
    reads: tokio::task::JoinHandle<()>,
}

impl Binary {
    /// In front of `upstream`, a base URL.
    pub(crate) async fn start(upstream: &str, settings: &[(&str, &str)]) -> Binary {
        let mut child = Command::new(env!("CARGO_BIN_EXE_seam"))
            .env_clear()
            .env("SEAM_UPSTREAM", upstream)
            .env("SEAM_LISTEN", "127.0.0.1:0")
            .env("SEAM_ADMIN_LISTEN", "127.0.0.1:0")
            .envs(settings.iter().copied())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = tokio::process::ChildStderr::from_std(child.stderr.take().unwrap()).unwrap();
        let mut lines = BufReader::new(stderr).lines();
        let mut said = Vec::new();
        let (address, admin) = loop {
            let line = soon(lines.next_line()).await.unwrap().expect("it says where it listens");
            let places = places(&line);
            said.push(line);
            if let Some(places) = places {
                break places;
            }
        };
        let log = Arc::new(Mutex::new(said));
        let kept = Arc::clone(&log);
        let reads = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                kept.lock().unwrap().push(line);
            }
        });
        Binary { child, address, admin, log, reads }
    }

    /// Returns once its log holds these words.
    pub(crate) async fn says(&self, words: &str) {
        let has = || self.log.lock().unwrap().iter().any(|line| line.contains(words));
        soon(async {
            while !has() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    pub(crate) fn signal(&self, name: &str) {
        let status =
            Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status().unwrap();
        assert!(status.success());
    }

    /// Waits for its end; its exit code, and all that it logged.
    pub(crate) async fn ended(mut self) -> (Option<i32>, Vec<String>) {
        let code = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status.code(),
                None => soon(tokio::time::sleep(std::time::Duration::from_millis(5))).await,
            }
        };
        soon(&mut self.reads).await.unwrap();
        let log = std::mem::take(&mut *self.log.lock().unwrap());
        (code, log)
    }

    /// Returns once it is not ready any more.
    pub(crate) async fn draining(&self) {
        let ready = "GET /ready HTTP/1.1\r\nhost: a\r\n\r\n";
        while Client::connect(self.admin).await.exchange(ready).await.status == 200 {}
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where it listens, if this line of either format says so.
fn places(line: &str) -> Option<(SocketAddr, SocketAddr)> {
    if !line.contains("serving") {
        return None;
    }
    let place = |name: &str| {
        let plain = line.split_once(&format!(" {name}=")).map(|(_, rest)| rest);
        let json = line.split_once(&format!("\"{name}\":\"")).map(|(_, rest)| rest);
        plain.or(json)?.split([' ', '"']).next()?.parse().ok()
    };
    Some((place("listen")?, place("admin")?))
}
