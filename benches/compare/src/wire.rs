//! As much of HTTP/1.1 as both ends need: heads, and bodies by length or in chunks.

use std::io::{Error, ErrorKind, Result};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Header fields that a head may have.
const FIELDS: usize = 64;
/// Room that is made before each read.
const ROOM: usize = 64 << 10;

/// A connection, and what was read from it beyond what was asked for.
#[derive(Debug)]
pub struct Link {
    stream: TcpStream,
    read: Vec<u8>,
}

/// The head of a message.
#[derive(Debug)]
pub struct Head {
    /// The status, for a response; 0 for a request.
    pub status: u16,
    framing: Framing,
    /// The value of the field that was asked for.
    pub field: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum Framing {
    Length(usize),
    Chunked,
}

/// Which side a link reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// It is the server.
    Requests,
    /// It is the client.
    Responses,
}

impl Link {
    /// Over an open connection.
    pub fn new(stream: TcpStream) -> Result<Link> {
        stream.set_nodelay(true)?;
        Ok(Link { stream, read: Vec::with_capacity(2 * ROOM) })
    }

    /// Writes all of it.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Reads a head, and the value of `field` in it. None where the connection ended before one began.
    pub async fn head(&mut self, reads: Reads, field: &str) -> Result<Option<Head>> {
        loop {
            if let Some((length, head)) = parse(&self.read, reads, field)? {
                self.read.drain(..length);
                return Ok(Some(head));
            }
            if self.fill().await? == 0 {
                let began = !self.read.is_empty();
                return if began { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(None) };
            }
        }
    }

    /// Reads the body behind `head` to its end. `part` is given what each read brought, without framing.
    pub async fn body(&mut self, head: &Head, mut part: impl FnMut(&[u8])) -> Result<usize> {
        let mut total = 0;
        match head.framing {
            Framing::Length(length) => {
                while total < length {
                    if self.read.is_empty() && self.fill().await? == 0 {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                    let take = self.read.len().min(length - total);
                    part(&self.read[..take]);
                    self.read.drain(..take);
                    total += take;
                }
            }
            Framing::Chunked => {
                let mut chunks = Chunks::default();
                let mut data = Vec::new();
                loop {
                    let used = chunks.take(&self.read, &mut data)?;
                    self.read.drain(..used);
                    if !data.is_empty() {
                        total += data.len();
                        part(&data);
                        data.clear();
                    }
                    if chunks.ended {
                        break;
                    }
                    if self.fill().await? == 0 {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
            }
        }
        Ok(total)
    }

    async fn fill(&mut self) -> Result<usize> {
        self.read.reserve(ROOM);
        self.stream.read_buf(&mut self.read).await
    }
}

fn parse(bytes: &[u8], reads: Reads, field: &str) -> Result<Option<(usize, Head)>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let (status, parsed) = if reads == Reads::Requests {
        let mut request = httparse::Request::new(&mut fields);
        (0, request.parse(bytes))
    } else {
        let mut response = httparse::Response::new(&mut fields);
        let parsed = response.parse(bytes);
        (response.code.unwrap_or_default(), parsed)
    };
    let httparse::Status::Complete(length) = parsed.map_err(Error::other)? else { return Ok(None) };
    let value = |name: &str| {
        let found = fields.iter().find(|it| it.name.eq_ignore_ascii_case(name))?;
        Some(String::from_utf8_lossy(found.value).into_owned())
    };
    let framing = match value("content-length") {
        Some(length) => Framing::Length(length.trim().parse().map_err(Error::other)?),
        None if value("transfer-encoding").is_some() => Framing::Chunked,
        None if reads == Reads::Requests => Framing::Length(0),
        None => return Err(Error::other("a response without length or chunks")),
    };
    Ok(Some((length, Head { status, framing, field: value(field) })))
}

/// Takes the framing off a body in chunks.
#[derive(Debug, Default)]
struct Chunks {
    /// Bytes of the open chunk, its line end included, that have not come.
    open: usize,
    ended: bool,
}

impl Chunks {
    /// Appends the data in `bytes` to `data`; gives how many bytes are done with.
    fn take(&mut self, bytes: &[u8], data: &mut Vec<u8>) -> Result<usize> {
        let mut at = 0;
        while !self.ended && at < bytes.len() {
            if self.open > 0 {
                let here = self.open.min(bytes.len() - at);
                // The last two bytes of `open` are the line end.
                let payload = self.open.saturating_sub(2).min(here);
                data.extend_from_slice(&bytes[at..at + payload]);
                self.open -= here;
                at += here;
                continue;
            }
            let Some(end) = memchr::memmem::find(&bytes[at..], b"\r\n") else { break };
            let line = std::str::from_utf8(&bytes[at..at + end]).map_err(Error::other)?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(digits, 16).map_err(Error::other)?;
            if size == 0 {
                // No peer here sends trailers: one empty line follows.
                if bytes.len() < at + end + 4 {
                    break;
                }
                at += end + 4;
                self.ended = true;
                continue;
            }
            at += end + 2;
            self.open = size + 2;
        }
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_give_the_same_data_however_they_are_cut() {
        let body = b"5\r\nhello\r\n1;x=y\r\n \r\n6\r\nwor\r\nd\r\n0\r\n\r\nrest";
        for cut in 1..body.len() {
            let (mut chunks, mut data, mut waiting) = (Chunks::default(), Vec::new(), Vec::new());
            for part in body.chunks(cut) {
                waiting.extend_from_slice(part);
                let used = chunks.take(&waiting, &mut data).expect("chunks");
                waiting.drain(..used);
            }
            assert!(chunks.ended);
            assert_eq!(data, b"hello wor\r\nd");
            assert_eq!(waiting, b"rest");
        }
    }
}
