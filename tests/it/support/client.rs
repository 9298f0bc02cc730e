//! A client that writes bytes and reads replies, so that tests see what is on the wire.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::soon;

/// A connection to Seam.
pub(crate) struct Client {
    stream: TcpStream,
    read: Vec<u8>,
}

/// A reply as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) status: u16,
    /// The headers, without the status line and the line ends.
    pub(crate) head: Vec<String>,
    /// The body without its framing.
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<String>,
    /// Whether its end was told; otherwise the connection broke off.
    pub(crate) whole: bool,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .iter()
            .find_map(|line| line.split_once(": ").filter(|(n, _)| *n == name).map(|(_, value)| value))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The `code` of an error in OpenAI's shape.
    pub(crate) fn error_code(&self) -> String {
        let body: serde_json::Value = serde_json::from_slice(&self.body).expect("an error is JSON");
        let error = &body["error"];
        assert!(error["message"].is_string() && error["type"].is_string() && error.get("param").is_some());
        error["code"].as_str().expect("an error has a code").to_owned()
    }
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, read: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Sends as much as the other side takes before it hangs up.
    pub(crate) async fn send_what_fits(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// A whole exchange.
    pub(crate) async fn exchange(&mut self, request: impl AsRef<[u8]>) -> Got {
        self.send(request.as_ref()).await;
        self.reply(request.as_ref().starts_with(b"HEAD ")).await
    }

    /// A reply; one to HEAD has no body whatever its head says.
    pub(crate) async fn reply(&mut self, to_head: bool) -> Got {
        let mut got = self.head().await;
        let bodiless = to_head || matches!(got.status, 101 | 204 | 304);
        if bodiless {
            got.whole = true;
        } else if got.header("transfer-encoding") == Some("chunked") {
            while let Some(data) = self.chunk().await {
                if data.is_empty() {
                    got.whole = true;
                    break;
                }
                got.body.extend_from_slice(&data);
            }
            if got.whole {
                got.trailers = self.lines().await.unwrap_or_default();
            }
        } else if let Some(length) = got.header("content-length") {
            let length = length.parse().unwrap();
            while self.read.len() < length && self.fill().await {}
            got.whole = self.read.len() >= length;
            let length = length.min(self.read.len());
            got.body = self.read.drain(..length).collect();
        } else {
            while self.fill().await {}
            got.body = std::mem::take(&mut self.read);
            got.whole = true;
        }
        got
    }

    /// The head of a reply alone.
    pub(crate) async fn head(&mut self) -> Got {
        self.head_if_any().await.expect("a reply has a head")
    }

    /// The head of a reply, if the other side does not hang up instead.
    pub(crate) async fn head_if_any(&mut self) -> Option<Got> {
        let mut lines = self.lines().await?;
        let status = lines.remove(0).split(' ').nth(1).unwrap().parse().unwrap();
        Some(Got { status, head: lines, body: Vec::new(), trailers: Vec::new(), whole: false })
    }

    /// The next chunk of a chunked body: empty at the end, nothing if the connection broke off.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        let line = self.line().await?;
        let size = usize::from_str_radix(&line, 16).expect("a chunk begins with its size");
        if size == 0 {
            return Some(Vec::new());
        }
        while self.read.len() < size + 2 {
            if !self.fill().await {
                return None;
            }
        }
        let data = self.read.drain(..size).collect();
        self.read.drain(..2);
        Some(data)
    }

    /// Whether a chunked body ends here, cleanly and without trailers.
    pub(crate) async fn is_at_end(&mut self) -> bool {
        self.chunk().await.is_some_and(|chunk| chunk.is_empty())
            && self.lines().await.is_some_and(|t| t.is_empty())
    }

    /// Exactly so many bytes.
    pub(crate) async fn bytes(&mut self, count: usize) -> Vec<u8> {
        while self.read.len() < count {
            assert!(self.fill().await, "the connection ended before {count} bytes came");
        }
        self.read.drain(..count).collect()
    }

    /// Whether the other side closes the connection without another byte.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.read.is_empty() && !self.fill().await
    }

    /// Lines up to an empty one.
    async fn lines(&mut self) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Some(lines);
            }
            lines.push(line);
        }
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.read.windows(2).position(|pair| pair == b"\r\n") {
                let line: Vec<u8> = self.read.drain(..end + 2).collect();
                return Some(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    async fn fill(&mut self) -> bool {
        let mut buffer = vec![0; 256 * 1024];
        match soon(self.stream.read(&mut buffer)).await {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.read.extend_from_slice(&buffer[..count]);
                true
            }
        }
    }
}

/// A POST with a length.
pub(crate) fn post(path: &str, head: &str, body: &[u8]) -> Vec<u8> {
    let mut request =
        format!("POST {path} HTTP/1.1\r\nhost: seam\r\n{head}content-length: {}\r\n\r\n", body.len())
            .into_bytes();
    request.extend_from_slice(body);
    request
}
