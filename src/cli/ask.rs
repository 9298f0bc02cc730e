//! Asking the admin listener of a running Seam, for commands that run beside it.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::config::{self, Problems, Secret, Source, vars};

/// The most that is read of an answer; the longest lists stay far below it.
const ANSWER_BYTES: u64 = 64 << 20;

/// Where a running Seam is asked, by the settings that it was started with.
#[derive(Debug)]
pub(super) struct Admin {
    address: SocketAddr,
    token: Option<Secret>,
}

/// Why nothing was told.
#[derive(Debug, thiserror::Error)]
pub(super) enum Untold {
    #[error("nobody answers at SEAM_ADMIN_LISTEN={address}")]
    Unreachable { address: SocketAddr, source: Error },
    #[error("its answer has status {0}: {1}")]
    Trouble(u16, String),
    #[error("its answer cannot be read: is it another release?")]
    Unreadable(#[source] serde_json::Error),
}

/// What it answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Admin {
    /// The listener that the settings name; the other settings need not be there.
    pub(super) fn of(source: &dyn Source) -> Result<Admin, Problems> {
        let address = config::read_one(source, &vars::ADMIN_LISTEN)?;
        // The table has a default for it.
        let address = address.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 8485)));
        Ok(Admin { address: reachable(address), token: config::read_one(source, &vars::ADMIN_TOKEN)? })
    }

    /// Where it is asked.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Asks for `path`; each wait takes `patience` at most.
    pub(super) fn get(&self, path: &str, patience: Duration) -> std::io::Result<Answer> {
        let mut stream = TcpStream::connect_timeout(&self.address, patience)?;
        stream.set_read_timeout(Some(patience))?;
        let token = self
            .token
            .as_ref()
            .map_or(String::new(), |token| format!("authorization: Bearer {}\r\n", token.reveal()));
        let head =
            format!("GET {path} HTTP/1.1\r\nhost: {}\r\n{token}connection: close\r\n\r\n", self.address);
        stream.write_all(head.as_bytes())?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES).read_to_end(&mut answer)?;
        read(&answer).ok_or_else(|| Error::new(ErrorKind::InvalidData, "this is not Seam's admin listener"))
    }
}

/// How long each wait of a command may take.
const PATIENCE: Duration = Duration::from_secs(5);

impl Admin {
    /// What is found at `path`, if anything is.
    pub(super) fn ask<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, Untold> {
        let unreachable = |source| Untold::Unreachable { address: self.address, source };
        let answer = self.get(path, PATIENCE).map_err(unreachable)?;
        match answer.status {
            200 => serde_json::from_slice(&answer.body).map(Some).map_err(Untold::Unreadable),
            404 => Ok(None),
            status => {
                Err(Untold::Trouble(status, super::quiet(String::from_utf8_lossy(&answer.body).trim())))
            }
        }
    }
}

/// A listener on every address is reached on loopback.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

/// An answer that ends with its connection.
fn read(answer: &[u8]) -> Option<Answer> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let status = std::str::from_utf8(answer.get(9..12)?).ok()?.parse().ok()?;
    answer.starts_with(b"HTTP/1.1 ").then(|| Answer { status, body: answer[end + 4..].to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_status_and_a_body() {
        let check = |answer: &[u8], expected: Option<(u16, &[u8])>| {
            let expected = expected.map(|(status, body)| Answer { status, body: body.to_vec() });
            assert_eq!(read(answer), expected, "{}", String::from_utf8_lossy(answer));
        };
        check(b"HTTP/1.1 200 OK\r\na: b\r\n\r\n{}", Some((200, b"{}")));
        check(b"HTTP/1.1 404 Not Found\r\n\r\n", Some((404, b"")));
        check(b"HTTP/1.1 200 OK\r\na: b\r\n", None);
        check(b"SSH-2.0-x\r\n\r\n", None);
        check(b"", None);
    }

    #[test]
    fn a_listener_on_every_address_is_asked_on_loopback() {
        let address = |given: &str| Admin::of(&[("SEAM_ADMIN_LISTEN", given)]).expect("it reads").address();
        assert_eq!(address("0.0.0.0:1").to_string(), "127.0.0.1:1");
        assert_eq!(address("[::]:1").to_string(), "[::1]:1");
        assert_eq!(address("10.0.0.7:1").to_string(), "10.0.0.7:1");
    }
}
