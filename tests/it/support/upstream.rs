//! An upstream that does what a script says, to the byte, and records what it got.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};

/// One thing that the upstream does after it has read a request.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Sends these bytes in one write.
    Send(Vec<u8>),
    /// Sends these bytes one at a time.
    Dribble(Vec<u8>),
    /// Waits until the test opens the gate once more.
    Wait(Gate),
    /// Sends nothing more until the client has gone.
    Stall,
    /// Closes the connection.
    Close,
    /// Closes the connection with a reset.
    Reset,
    /// Sends back whatever comes, until the other side ends.
    Echo,
}

/// When the steps begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// After the whole request.
    Whole,
    /// After its head; the body is read meanwhile.
    Head,
}

/// Lets a script go on, one `Wait` an opening.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<Semaphore>);

impl Gate {
    pub(crate) fn new() -> Gate {
        Gate(Arc::new(Semaphore::new(0)))
    }

    pub(crate) fn open(&self) {
        self.0.add_permits(1);
    }

    async fn pass(&self) {
        self.0.acquire().await.unwrap().forget();
    }
}

/// A request as it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    /// Which connection it came on, counted from 0.
    pub(crate) connection: usize,
    /// The request line and the headers, without the line ends.
    pub(crate) head: Vec<String>,
    /// The body without its framing.
    pub(crate) body: Vec<u8>,
    /// The trailers, if it was chunked.
    pub(crate) trailers: Vec<String>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().skip(1).find_map(|line| {
            line.split_once(": ").filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        })
    }
}

/// What happens at the upstream, in order.
#[derive(Debug)]
pub(crate) enum Seen {
    /// A head came; its body may still be coming.
    Head,
    /// Part of a body came (only with [`When::Head`]).
    Part(Vec<u8>),
    /// A whole request came.
    Request(Received),
    /// The other side closed the connection.
    Gone,
}

/// What the next requests get.
type Scripts = Arc<Mutex<VecDeque<(When, Vec<Step>)>>>;

/// The scripted upstream. It listens until it is dropped.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    seen: mpsc::UnboundedReceiver<Seen>,
    scripts: Scripts,
    task: tokio::task::JoinHandle<()>,
}

impl Upstream {
    /// Listens. Each request takes the next script; without one it gets an empty 200.
    pub(crate) async fn start() -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, seen) = mpsc::unbounded_channel();
        let scripts = Arc::new(Mutex::new(VecDeque::new()));
        let task = tokio::spawn({
            let scripts = Arc::clone(&scripts);
            async move {
                for number in 0.. {
                    let (stream, _) = listener.accept().await.unwrap();
                    stream.set_nodelay(true).unwrap();
                    let connection = Connection { number, stream, read: Vec::new(), tell: tell.clone() };
                    tokio::spawn(connection.serve(Arc::clone(&scripts)));
                }
            }
        });
        Upstream { address, seen, scripts, task }
    }

    /// The base URL that a client would have.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The next request gets `steps` after it came whole.
    pub(crate) fn then(&self, steps: impl Into<Vec<Step>>) {
        self.scripts.lock().unwrap().push_back((When::Whole, steps.into()));
    }

    /// The next request gets `steps` as soon as its head came.
    pub(crate) fn then_at_once(&self, steps: impl Into<Vec<Step>>) {
        self.scripts.lock().unwrap().push_back((When::Head, steps.into()));
    }

    /// The next request gets these bytes.
    pub(crate) fn replies(&self, bytes: impl Into<Vec<u8>>) {
        self.then([Step::Send(bytes.into())]);
    }

    /// What happens next.
    pub(crate) async fn next(&mut self) -> Seen {
        super::soon(self.seen.recv()).await.expect("the upstream runs as long as the test")
    }

    /// The next whole request.
    pub(crate) async fn request(&mut self) -> Received {
        loop {
            if let Seen::Request(received) = self.next().await {
                return received;
            }
        }
    }

    /// Returns once the other side has closed a connection.
    pub(crate) async fn gone(&mut self) {
        while !matches!(self.next().await, Seen::Gone) {}
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Connection {
    number: usize,
    stream: TcpStream,
    read: Vec<u8>,
    tell: mpsc::UnboundedSender<Seen>,
}

impl Connection {
    async fn serve(mut self, scripts: Scripts) {
        while let Some(head) = self.head().await {
            self.tell(Seen::Head);
            let next = scripts.lock().unwrap().pop_front();
            let (when, steps) = next.unwrap_or((
                When::Whole,
                vec![Step::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec())],
            ));
            let received = match when {
                When::Whole => self.body(head, false).await,
                When::Head => Some(head),
            };
            let Some(received) = received else { break };
            if when == When::Whole {
                self.tell(Seen::Request(received.clone()));
            }
            for step in steps {
                if !self.step(step).await {
                    self.tell(Seen::Gone);
                    return;
                }
            }
            if when == When::Head {
                let Some(received) = self.body(received, true).await else { break };
                self.tell(Seen::Request(received));
            }
        }
        self.tell(Seen::Gone);
    }

    fn tell(&self, seen: Seen) {
        // A test that has ended does not listen any more.
        let _ = self.tell.send(seen);
    }

    /// Whether the connection is still of use.
    async fn step(&mut self, step: Step) -> bool {
        match step {
            Step::Send(bytes) => self.stream.write_all(&bytes).await.is_ok(),
            Step::Dribble(bytes) => {
                for byte in bytes {
                    if self.stream.write_all(&[byte]).await.is_err() {
                        return false;
                    }
                    tokio::task::yield_now().await;
                }
                true
            }
            Step::Wait(gate) => {
                tokio::select! {
                    () = gate.pass() => true,
                    () = closed(&mut self.stream, &mut self.read) => false,
                }
            }
            Step::Stall => {
                closed(&mut self.stream, &mut self.read).await;
                false
            }
            Step::Close => false,
            Step::Reset => {
                #[expect(deprecated, reason = "zero seconds do not block: they make the close a reset")]
                self.stream.set_linger(Some(std::time::Duration::ZERO)).unwrap();
                false
            }
            Step::Echo => {
                let (mut from, mut to) = self.stream.split();
                let _ = to.write_all(&self.read).await;
                let _ = tokio::io::copy(&mut from, &mut to).await;
                false
            }
        }
    }

    async fn head(&mut self) -> Option<Received> {
        let lines = self.lines().await?;
        Some(Received { connection: self.number, head: lines, ..Received::default() })
    }

    async fn body(&mut self, mut received: Received, parts: bool) -> Option<Received> {
        if received.header("transfer-encoding").is_some() {
            loop {
                let line = self.line().await?;
                let size = usize::from_str_radix(&line, 16).expect("a chunk begins with its size");
                if size == 0 {
                    received.trailers = self.lines_from(String::new()).await?;
                    return Some(received);
                }
                let data = self.exactly(size + 2).await?;
                if parts {
                    self.tell(Seen::Part(data[..size].to_vec()));
                }
                received.body.extend_from_slice(&data[..size]);
            }
        }
        let mut left = received.header("content-length").map_or(0, |length| length.parse().unwrap());
        while left > 0 {
            if self.read.is_empty() {
                self.fill().await?;
            }
            let data: Vec<u8> = self.read.drain(..left.min(self.read.len())).collect();
            left -= data.len();
            received.body.extend_from_slice(&data);
            if parts {
                self.tell(Seen::Part(data));
            }
        }
        Some(received)
    }

    async fn lines(&mut self) -> Option<Vec<String>> {
        let first = self.line().await?;
        self.lines_from(first).await
    }

    async fn lines_from(&mut self, first: String) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        let mut line = if first.is_empty() { self.line().await? } else { first };
        while !line.is_empty() {
            lines.push(line);
            line = self.line().await?;
        }
        Some(lines)
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.read.windows(2).position(|pair| pair == b"\r\n") {
                let line: Vec<u8> = self.read.drain(..end + 2).collect();
                return Some(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            self.fill().await?;
        }
    }

    async fn exactly(&mut self, size: usize) -> Option<Vec<u8>> {
        while self.read.len() < size {
            self.fill().await?;
        }
        Some(self.read.drain(..size).collect())
    }

    async fn fill(&mut self) -> Option<()> {
        let mut buffer = vec![0; 64 * 1024];
        match self.stream.read(&mut buffer).await {
            Ok(0) | Err(_) => None,
            Ok(count) => {
                self.read.extend_from_slice(&buffer[..count]);
                Some(())
            }
        }
    }
}

async fn closed(stream: &mut TcpStream, read: &mut Vec<u8>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        read.extend_from_slice(&buffer[..count]);
    }
}

/// A reply with a length.
pub(crate) fn plain(head: &str, body: &[u8]) -> Vec<u8> {
    let mut reply = format!("HTTP/1.1 200 OK\r\n{head}content-length: {}\r\n\r\n", body.len()).into_bytes();
    reply.extend_from_slice(body);
    reply
}

/// The head of a chunked reply.
pub(crate) fn chunked_head(head: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{head}transfer-encoding: chunked\r\n\r\n").into_bytes()
}

/// One chunk.
pub(crate) fn chunk(data: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", data.len()).into_bytes();
    chunk.extend_from_slice(data);
    chunk.extend_from_slice(b"\r\n");
    chunk
}
