//! HTTP/2 on either side.

use seam::telemetry::Event;

use crate::support::h2::{Client, TlsUpstream};
use crate::support::seam::Seam;
use crate::support::upstream::{Upstream, chunk, chunked_head, plain};

#[tokio::test]
async fn a_client_with_prior_knowledge_is_served() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let client = Client::connect(seam.address).await;
    upstream.replies(plain("x-request-id: r\r\nconnection: keep-alive\r\n", b"{\"ok\":1}"));
    let got = client.post("/v1/chat/completions?x=1", b"{}").await;
    assert_eq!((got.status, got.body.as_slice()), (200, &b"{\"ok\":1}"[..]));
    assert_eq!(got.headers["x-request-id"], "r");
    assert!(!got.headers.contains_key("connection"));
    let received = upstream.request().await;
    let expected = ["POST /v1/chat/completions?x=1 HTTP/1.1", "x-a: 1", "content-length: 2"];
    let head: Vec<&str> =
        received.head.iter().map(String::as_str).filter(|line| !line.starts_with("host: ")).collect();
    assert_eq!(head, expected);
    assert_eq!(received.body, b"{}");
}

#[tokio::test]
async fn a_stream_and_its_trailers_reach_an_http2_client() {
    let upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let mut reply = chunked_head("content-type: text/event-stream\r\ntrailer: x-sum\r\n");
    reply.extend(chunk(b"data: 1\n\n"));
    reply.extend(b"0\r\nx-sum: 9\r\n\r\n");
    upstream.replies(reply);
    let got = Client::connect(seam.address).await.post("/v1/chat/completions", b"{}").await;
    assert_eq!(got.body, b"data: 1\n\n");
    assert_eq!(got.trailers.unwrap()["x-sum"], "9");
}

#[tokio::test]
async fn an_upstream_that_chooses_http2_shares_one_connection() {
    let upstream = TlsUpstream::start(&["h2", "http/1.1"]).await;
    let seam = Seam::with(&upstream.url(), &[("SEAM_UPSTREAM_CA", upstream.ca())]).await;
    let client = Client::connect(seam.address).await;
    let exchanges: Vec<_> = (0..20)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move { client.post("/v1/chat/completions", format!("{n}").as_bytes()).await })
        })
        .collect();
    for (n, exchange) in exchanges.into_iter().enumerate() {
        let got = exchange.await.unwrap();
        let expected = format!("HTTP/2.0 POST https://{}/v1/chat/completions {n}", upstream.authority());
        assert_eq!(String::from_utf8_lossy(&got.body), expected);
    }
    assert_eq!(seam.count(Event::Connected), 1);
}

#[tokio::test]
async fn an_upstream_without_http2_is_spoken_to_in_http1() {
    for (protocols, settings) in
        [(&["http/1.1"][..], &[][..]), (&["h2", "http/1.1"], &[("SEAM_HTTP2", "off")])]
    {
        let upstream = TlsUpstream::start(protocols).await;
        let settings = [settings, &[("SEAM_UPSTREAM_CA", upstream.ca())]].concat();
        let seam = Seam::with(&upstream.url(), &settings).await;
        for _ in 0..2 {
            let got = seam.exchange(crate::support::client::post("/v1/models", "", b"hi")).await;
            assert_eq!(got.text(), "HTTP/1.1 POST /v1/models hi");
        }
        assert_eq!(seam.count(Event::Connected), 1);
    }
}

#[tokio::test]
async fn an_upstream_that_nobody_vouches_for_is_not_spoken_to() {
    let upstream = TlsUpstream::start(&["h2"]).await;
    let seam = Seam::start(&upstream.url()).await;
    let got = seam.exchange(crate::support::client::post("/v1/models", "", b"hi")).await;
    assert_eq!((got.status, got.error_code().as_str()), (502, "seam_upstream_tls"));
    assert!(got.text().contains("certificate"), "{}", got.text());
}
