//! A real Redis server, that a test starts, stops, pauses and starts again.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A server with a folder of its own. It ends with the test.
pub(crate) struct Redis {
    pub(crate) port: u16,
    arguments: Vec<String>,
    folder: PathBuf,
    /// None while it is stopped.
    server: Option<Child>,
}

impl Redis {
    /// A server on a port of its own, if there is one on this machine; the test is skipped otherwise, loudly.
    pub(crate) fn start() -> Option<Redis> {
        Redis::with(&[])
    }

    /// The same, with more arguments.
    pub(crate) fn with(arguments: &[&str]) -> Option<Redis> {
        // The port is free when it is asked for, and may be taken when it is used.
        for _ in 0..5 {
            let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("a port");
            let mut redis = Redis::new(free.port(), arguments)?;
            if redis.launch() {
                return Some(redis);
            }
        }
        panic!("redis-server does not start");
    }

    /// A server on this port, or on the one that its arguments name.
    #[allow(dead_code, reason = "this file serves two test binaries, of which one needs it")]
    pub(crate) fn at(port: u16, arguments: &[&str]) -> Option<Redis> {
        let mut redis = Redis::new(port, arguments)?;
        assert!(redis.launch(), "redis-server does not start");
        Some(redis)
    }

    fn new(port: u16, arguments: &[&str]) -> Option<Redis> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_err() {
            // Past the capture of the test's output: who reads the run has to know.
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: no redis-server here, a test of the shared store did not run"
            );
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("seam-redis-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Some(Redis { port, arguments, folder, server: None })
    }

    /// The address as a setting, without a password.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Ends it, with all that it holds unless it was told to keep it.
    pub(crate) fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    /// Starts it again where it was.
    pub(crate) fn restart(&mut self) {
        self.stop();
        assert!(self.launch(), "redis-server does not start again");
    }

    /// From now on it accepts connections and answers nothing.
    pub(crate) fn pause(&self) {
        self.signal("-STOP");
    }

    /// It goes on.
    pub(crate) fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let server = self.server.as_ref().expect("it runs").id().to_string();
        assert!(Command::new("kill").args([signal, &server]).status().expect("kill").success());
    }

    /// Starts the process and waits until it answers, or until it has ended.
    fn launch(&mut self) -> bool {
        let server = Command::new("redis-server")
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(["--daemonize", "no", "--logfile", "server.log"])
            .args(&self.arguments)
            .current_dir(&self.folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.server = Some(server.expect("redis-server starts"));
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if self.server.as_mut().is_some_and(|server| matches!(server.try_wait(), Ok(Some(_)))) {
                return false;
            }
            if self.answers().is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// Whatever it says, a demand for a password included, it is there; one that wants TLS hangs up.
    fn answers(&self) -> Option<()> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
        stream.write_all(b"PING\r\n").ok()?;
        let mut answer = [0; 64];
        match stream.read(&mut answer) {
            // While it still loads what it kept, it says so.
            Ok(read) => (read > 0 && !answer[..read].starts_with(b"-LOADING")).then_some(()),
            Err(error) => (error.kind() == std::io::ErrorKind::ConnectionReset).then_some(()),
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.stop();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
