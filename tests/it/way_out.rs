//! The way out through a proxy.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::support::client::post;
use crate::support::h2::TlsUpstream;
use crate::support::seam::Seam;
use crate::support::soon;

/// A proxy that answers every CONNECT with `answer`, and opens the tunnel if that is a 200.
struct ForwardProxy {
    address: SocketAddr,
    heads: mpsc::UnboundedReceiver<String>,
}

impl ForwardProxy {
    async fn start(answer: &'static str) -> ForwardProxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, heads) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let tell = tell.clone();
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        head.push(client.read_u8().await.unwrap());
                    }
                    let head = String::from_utf8(head).unwrap();
                    let place = head.split(' ').nth(1).unwrap().to_owned();
                    tell.send(head).unwrap();
                    client.write_all(answer.as_bytes()).await.unwrap();
                    if answer.starts_with("HTTP/1.1 200") {
                        let mut upstream = TcpStream::connect(place).await.unwrap();
                        let _ = copy_bidirectional(&mut client, &mut upstream).await;
                    }
                });
            }
        });
        ForwardProxy { address, heads }
    }

    async fn head(&mut self) -> String {
        soon(self.heads.recv()).await.unwrap()
    }
}

const OPEN: &str = "HTTP/1.1 200 Connection established\r\n\r\n";

#[tokio::test]
async fn an_https_upstream_is_reached_through_a_tunnel() {
    let upstream = TlsUpstream::start(&["h2", "http/1.1"]).await;
    let mut proxy = ForwardProxy::start(OPEN).await;
    let through = format!("http://user:pass@{}", proxy.address);
    let settings = [("SEAM_UPSTREAM_CA", upstream.ca()), ("HTTPS_PROXY", through.as_str())];
    let seam = Seam::with(&upstream.url(), &settings).await;
    let head = "authorization: Bearer sk-not-for-the-proxy\r\nproxy-authorization: mine\r\n";
    let got = seam.exchange(post("/v1/chat/completions", head, b"{}")).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let place = upstream.authority();
    let expected = format!(
        "CONNECT {place} HTTP/1.1\r\nhost: {place}\r\nproxy-authorization: Basic dXNlcjpwYXNz\r\n\r\n"
    );
    assert_eq!(proxy.head().await, expected);
}

#[tokio::test]
async fn an_excepted_upstream_is_reached_directly() {
    let upstream = TlsUpstream::start(&["http/1.1"]).await;
    let mut proxy = ForwardProxy::start(OPEN).await;
    let through = proxy.address.to_string();
    let settings = [
        ("SEAM_UPSTREAM_CA", upstream.ca()),
        ("https_proxy", through.as_str()),
        ("NO_PROXY", "10.0.0.0/8, localhost"),
    ];
    let seam = Seam::with(&upstream.url(), &settings).await;
    assert_eq!(seam.exchange(post("/v1/chat/completions", "", b"{}")).await.status, 200);
    assert!(proxy.heads.try_recv().is_err());
}

#[tokio::test]
async fn a_proxy_that_opens_no_tunnel_is_named_without_its_password() {
    let upstream = TlsUpstream::start(&["http/1.1"]).await;
    let proxy = ForwardProxy::start("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await;
    let through = format!("http://user:hunter2@{}", proxy.address);
    let seam = Seam::with(&upstream.url(), &[("HTTPS_PROXY", through.as_str())]).await;
    let got = seam.exchange(post("/v1/chat/completions", "", b"{}")).await;
    assert_eq!((got.status, got.error_code().as_str()), (502, "seam_upstream_proxy"));
    let told = got.text();
    assert!(told.contains(&proxy.address.to_string()) && told.contains("status 407"), "{told}");
    assert!(!told.contains("hunter2"), "{told}");
}
