//! `seam healthcheck`: asks the admin listener, for images without a shell.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use clap::ArgMatches;

use super::{Subcommand, USAGE, complain};
use crate::config::{self, Source, vars};

pub(super) const COMMAND: Subcommand = Subcommand {
    name: "healthcheck",
    about: "Ask a running Seam whether it is ready (exit code 0) or not (1)",
    arguments: |command| command,
    run,
};

/// Probes commonly give up after a second or more.
const TIMEOUT: Duration = Duration::from_secs(1);

fn run(_: &ArgMatches, source: &dyn Source) -> ExitCode {
    let address = match config::read_one(source, &vars::ADMIN_LISTEN) {
        Ok(Some(address)) => reachable(address),
        Ok(None) => return ExitCode::FAILURE,
        Err(problems) => {
            complain(&problems);
            return ExitCode::from(USAGE);
        }
    };
    match is_ready(address) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
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

fn is_ready(address: SocketAddr) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(
        format!("GET /ready HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").as_bytes(),
    )?;
    let mut status = [0; 12];
    stream.read_exact(&mut status)?;
    Ok(&status == b"HTTP/1.1 200")
}
