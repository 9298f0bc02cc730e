//! What Seam has nothing to do with leaves as it came, both ways.

use seam::telemetry::Event;

use crate::support::client::{Got, post};
use crate::support::seam::Seam;
use crate::support::upstream::{Gate, Received, Seen, Step, Upstream, chunk, chunked_head, plain};

/// One exchange through a Seam of its own.
async fn exchange(request: impl AsRef<[u8]>, reply: impl Into<Vec<u8>>) -> (Received, Got) {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    upstream.replies(reply);
    let got = seam.exchange(request).await;
    (upstream.request().await, got)
}

#[tokio::test]
async fn heads_pass_in_their_order_less_what_belongs_to_the_connection() {
    let request = post(
        "/v1/models?limit=2&x=%2F",
        "Authorization: Bearer k\r\nX-Twice: 1\r\nX-Twice: 2\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\n\
         Proxy-Connection: keep-alive\r\nx-stainless-lang: python\r\nX-Empty:\r\n",
        b"{}",
    );
    let reply = b"HTTP/1.1 201 Fine\r\nx-request-id: r1\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\
                  Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nopenai-processing-ms: 7\r\n\
                  content-length: 2\r\n\r\nok";
    let (received, got) = exchange(request, *reply).await;
    let host = received.header("host").unwrap().to_owned();
    assert!(host.starts_with("127.0.0.1:"), "{host} is the upstream's");
    let head: Vec<&str> =
        received.head.iter().map(String::as_str).filter(|line| !line.starts_with("host: ")).collect();
    let expected = [
        "POST /v1/models?limit=2&x=%2F HTTP/1.1",
        "authorization: Bearer k",
        "x-twice: 1",
        "x-twice: 2",
        "x-stainless-lang: python",
        "x-empty: ",
        "content-length: 2",
    ];
    assert_eq!(head, expected);
    assert_eq!(got.status, 201);
    let expected = [
        "x-request-id: r1",
        "set-cookie: a=1",
        "set-cookie: b=2",
        "openai-processing-ms: 7",
        "content-length: 2",
    ];
    assert_eq!(got.head, expected);
    assert_eq!(got.text(), "ok");
}

#[tokio::test]
async fn the_path_of_the_base_url_is_put_in_front_unless_it_is_there() {
    for (asked, expected) in [
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/chat/completions?x=1", "/v1/chat/completions?x=1"),
        ("/v1", "/v1"),
        ("/v1?x", "/v1?x"),
        ("/v1beta/models", "/v1/v1beta/models"),
        ("/", "/v1/"),
        ("http://elsewhere.example/v1/models", "/v1/models"),
    ] {
        let (received, _) = exchange(post(asked, "", b"{}"), plain("", b"")).await;
        assert_eq!(received.head[0], format!("POST {expected} HTTP/1.1"), "{asked}");
    }
}

#[tokio::test]
async fn bodies_are_the_same_whatever_they_hold() {
    let lone_surrogate = br#"{"messages":[{"role":"user","content":"\ud800"}]}"#;
    let odd: [&[u8]; 8] = [
        b"",
        b"not json",
        br#"{"a":1,"a":2, "n": 1.0e+02 }"#,
        lone_surrogate,
        b"\xff\xfe\x00\x01",
        br#"{"messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":""}}]}]}"#,
        br#"{"messages":[{"role":"#,
        &vec![b'['; 100_000],
    ];
    for body in odd {
        for path in ["/v1/chat/completions", "/v1/responses", "/v1/unknown/route"] {
            let (received, got) = exchange(post(path, "", body), plain("", body)).await;
            assert!(received.body == body && got.body == body, "{path} {}", body.escape_ascii());
            assert_eq!(got.status, 200);
        }
    }
}

#[tokio::test]
async fn chunked_bodies_pass_with_their_trailers() {
    let mut request = b"POST /v1/files HTTP/1.1\r\nhost: s\r\nte: trailers\r\ntrailer: x-sum\r\n\
                        transfer-encoding: chunked\r\n\r\n"
        .to_vec();
    request.extend(chunk(b"one"));
    request.extend(chunk(b"two"));
    request.extend(b"0\r\nx-sum: 6\r\n\r\n");
    let mut reply = chunked_head("trailer: x-check\r\n");
    reply.extend(chunk(b"three"));
    reply.extend(b"0\r\nx-check: 5\r\n\r\n");
    let (received, got) = exchange(request, reply).await;
    assert_eq!(
        (received.body.as_slice(), received.trailers.as_slice()),
        (&b"onetwo"[..], &["x-sum: 6".to_owned()][..])
    );
    assert_eq!(received.header("te"), Some("trailers"));
    assert_eq!((got.text().as_str(), got.trailers.as_slice()), ("three", &["x-check: 5".to_owned()][..]));
}

#[tokio::test]
async fn a_collected_body_keeps_its_trailers() {
    let mut request = b"POST /v1/chat/completions HTTP/1.1\r\nhost: s\r\ntrailer: x-sum\r\n\
                        transfer-encoding: chunked\r\n\r\n"
        .to_vec();
    request.extend(chunk(b"{}"));
    request.extend(b"0\r\nx-sum: 2\r\n\r\n");
    let (received, _) = exchange(request, plain("", b"{}")).await;
    assert_eq!(
        (received.body.as_slice(), received.trailers.as_slice()),
        (&b"{}"[..], &["x-sum: 2".to_owned()][..])
    );
}

/// Events as no tidy server would write them.
const ODD_STREAM: &[u8] =
    b": ping\r\n\r\ndata: {\"a\":\n\nevent:x\ndata:1\ndata: 2\r\r\n\ndata: \xf0\x9f\x98\x80\xff\nid\n\
                            \ndata: [DONE]\n\n\n\ndata: no end";

#[tokio::test]
async fn an_event_stream_is_the_same_wherever_it_is_cut() {
    let upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let mut client = seam.client().await;
    let request = post("/v1/chat/completions", "", br#"{"stream":true}"#);
    for cut in 0..=ODD_STREAM.len() {
        let mut steps = vec![Step::Send(chunked_head("content-type: text/event-stream\r\n"))];
        let parts = [&ODD_STREAM[..cut], &ODD_STREAM[cut..]];
        steps.extend(parts.iter().filter(|part| !part.is_empty()).map(|part| Step::Send(chunk(part))));
        steps.push(Step::Send(b"0\r\n\r\n".to_vec()));
        upstream.then(steps);
        let got = client.exchange(&request).await;
        assert!(got.whole && got.body == ODD_STREAM, "cut at {cut}: {}", got.body.escape_ascii());
    }
}

#[tokio::test]
async fn a_reply_that_is_dribbled_byte_by_byte_is_whole() {
    let upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let mut reply = chunked_head("content-type: text/event-stream\r\n");
    reply.extend(chunk(ODD_STREAM));
    reply.extend(b"0\r\n\r\n");
    upstream.then([Step::Dribble(reply)]);
    let got = seam.exchange(post("/v1/chat/completions", "", b"{}")).await;
    assert!(got.whole && got.body == ODD_STREAM);
}

#[tokio::test]
async fn every_event_leaves_as_soon_as_it_came() {
    let upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let gate = Gate::new();
    let events: [&[u8]; 3] = [b"data: 1\n\n", b"data: 2\n\n", b"data: [DONE]\n\n"];
    let mut steps = vec![Step::Send(chunked_head("content-type: text/event-stream\r\n"))];
    for event in events {
        steps.extend([Step::Wait(gate.clone()), Step::Send(chunk(event))]);
    }
    steps.extend([Step::Wait(gate.clone()), Step::Send(b"0\r\n\r\n".to_vec())]);
    upstream.then(steps);
    let mut client = seam.client().await;
    client.send(post("/v1/chat/completions", "", b"{}")).await;
    // The head is out before the first event; each event is here before the next one is sent.
    assert_eq!(client.head().await.status, 200);
    for event in events {
        gate.open();
        assert_eq!(client.chunk().await.unwrap(), event);
    }
    gate.open();
    assert!(client.is_at_end().await);
}

#[tokio::test]
async fn a_request_of_an_unknown_route_is_streamed_while_it_is_written() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    upstream.then_at_once([]);
    let mut client = seam.client().await;
    let kind = "content-type: multipart/form-data; boundary=b\r\n";
    client
        .send(format!("POST /v1/audio/transcriptions HTTP/1.1\r\nhost: s\r\n{kind}content-length: 8\r\n\r\n"))
        .await;
    assert!(matches!(upstream.next().await, Seen::Head), "the head is upstream before any of the body");
    client.send(b"--b\r").await;
    assert!(matches!(upstream.next().await, Seen::Part(part) if part == b"--b\r"));
    client.send(b"\n...").await;
    assert_eq!(upstream.request().await.body, b"--b\r\n...");
}

#[tokio::test]
async fn replies_without_a_body_have_none() {
    let (_, got) = exchange(
        "HEAD /v1/models HTTP/1.1\r\nhost: s\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 77\r\n\r\n",
    )
    .await;
    assert_eq!((got.header("content-length"), got.body.len()), (Some("77"), 0));
    let (_, got) = exchange(post("/v1/x", "", b""), "HTTP/1.1 204 No Content\r\nx-a: 1\r\n\r\n").await;
    assert_eq!((got.status, got.head), (204, vec!["x-a: 1".to_owned()]));
    let (_, got) =
        exchange("GET /v1/x HTTP/1.1\r\nhost: s\r\n\r\n", "HTTP/1.1 304 Not Modified\r\netag: \"e\"\r\n\r\n")
            .await;
    assert_eq!((got.status, got.head), (304, vec!["etag: \"e\"".to_owned()]));
}

#[tokio::test]
async fn a_reply_to_head_may_promise_a_body_of_any_framing() {
    let request = "HEAD /v1/models HTTP/1.1\r\nhost: s\r\n\r\n";
    let (_, got) = exchange(request, "HTTP/1.1 200 OK\r\nx-a: 1\r\ntransfer-encoding: chunked\r\n\r\n").await;
    assert_eq!(got.header("content-length"), None, "no length is made up");
    let (_, got) = exchange(request, "HTTP/1.1 200 OK\r\nx-a: 1\r\n\r\n").await;
    assert_eq!(got.head, ["x-a: 1"]);
}

#[tokio::test]
async fn any_method_may_have_a_body() {
    for method in ["GET", "DELETE", "PATCH", "OPTIONS", "BREW"] {
        let told = format!("{method} /v1/x HTTP/1.1\r\nhost: s\r\ncontent-length: 2\r\n\r\nok");
        let chunked = format!(
            "{method} /v1/x HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
        );
        for request in [told, chunked] {
            let (received, got) = exchange(request, plain("", b"done")).await;
            assert_eq!((received.body.as_slice(), got.text().as_str()), (&b"ok"[..], "done"), "{method}");
        }
    }
    let (received, _) = exchange(post("/v1/x", "", b""), plain("", b"")).await;
    assert_eq!(received.header("content-length"), Some("0"));
}

#[tokio::test]
async fn an_http10_client_is_served() {
    let upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    upstream.replies([chunked_head(""), chunk(b"old"), b"0\r\n\r\n".to_vec()].concat());
    let mut client = seam.client().await;
    let got = client.exchange("GET /v1/models HTTP/1.0\r\n\r\n").await;
    assert_eq!((got.status, got.text().as_str(), got.header("transfer-encoding")), (200, "old", None));
}

#[tokio::test]
async fn a_connection_serves_one_exchange_after_another() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let mut client = seam.client().await;
    for reply in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 500 Broken\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ] {
        upstream.replies(reply);
        client.exchange(post("/v1/chat/completions", "", b"{}")).await;
        assert_eq!(upstream.request().await.connection, 0, "one connection upstream serves them all");
    }
    assert_eq!(seam.count(Event::Connected), 1);
}

#[tokio::test]
async fn a_connection_that_upstream_has_closed_is_not_used_again() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let mut client = seam.client().await;
    upstream.then([Step::Send(plain("", b"1")), Step::Close]);
    assert_eq!(client.exchange(post("/v1/x", "", b"{}")).await.text(), "1");
    assert_eq!(upstream.request().await.connection, 0);
    upstream.gone().await;
    upstream.replies(plain("connection: close\r\n", b"2"));
    assert_eq!(client.exchange(post("/v1/x", "", b"{}")).await.text(), "2");
    assert_eq!(upstream.request().await.connection, 1);
    upstream.replies(plain("", b"3"));
    assert_eq!(client.exchange(post("/v1/x", "", b"{}")).await.text(), "3");
    assert_eq!(upstream.request().await.connection, 2, "upstream asked to close the second");
    assert_eq!(seam.count(Event::FailedUpstream), 0);
}

#[tokio::test]
async fn a_reply_that_ends_with_its_connection_is_whole() {
    let upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    upstream.then([Step::Send(b"HTTP/1.0 200 OK\r\n\r\nall of it".to_vec()), Step::Close]);
    let got = seam.exchange(post("/v1/chat/completions", "", b"{}")).await;
    assert!(got.whole);
    assert_eq!(got.text(), "all of it");
}

#[tokio::test]
async fn large_bodies_pass_both_ways() {
    let large: Vec<u8> = (0..9_000_000_u32).map(|n| (n % 251) as u8).collect();
    let (received, got) = exchange(post("/v1/chat/completions", "", &large), plain("", &large)).await;
    assert!(received.body == large && got.body == large);
}

#[tokio::test]
async fn a_body_over_the_limit_is_streamed_on_unread() {
    for framing in ["told", "chunked"] {
        let mut upstream = Upstream::start().await;
        let seam = Seam::with(&upstream.url(), &[("SEAM_INSPECT_LIMIT", "1KiB")]).await;
        let body = vec![b'x'; 300_000];
        let mut request = post("/v1/chat/completions", "", &body);
        if framing == "chunked" {
            request =
                b"POST /v1/responses HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
            body.chunks(700).for_each(|part| request.extend(chunk(part)));
            request.extend(b"0\r\n\r\n");
        }
        let got = seam.exchange(request).await;
        assert_eq!(got.status, 200);
        assert!(upstream.request().await.body == body, "{framing}");
        assert_eq!((seam.count(Event::BodyTooLarge), seam.count(Event::Inspected)), (1, 0));
    }
}

#[tokio::test]
async fn a_compressed_body_is_not_touched() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let squeezed =
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\xae\x05\x00\x43\xbf\xa6\xa3\x02\x00\x00\x00";
    seam.exchange(post("/v1/chat/completions", "content-encoding: gzip\r\n", squeezed)).await;
    let received = upstream.request().await;
    assert_eq!(
        (received.body.as_slice(), received.header("content-encoding")),
        (&squeezed[..], Some("gzip"))
    );
    assert_eq!((seam.count(Event::BodyCompressed), seam.count(Event::Inspected)), (1, 0));
}

#[tokio::test]
async fn a_client_that_waits_for_permission_gets_it() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    upstream.replies(plain("", b"ok"));
    let mut client = seam.client().await;
    client.send("POST /v1/chat/completions HTTP/1.1\r\nhost: s\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n").await;
    assert_eq!(client.head().await.status, 100);
    client.send("{}").await;
    assert_eq!(client.reply(false).await.text(), "ok");
    let received = upstream.request().await;
    assert_eq!((received.body.as_slice(), received.header("expect")), (&b"{}"[..], None));
}

#[tokio::test]
async fn informational_replies_of_upstream_do_not_end_the_exchange() {
    let reply = [
        &b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\n"[..],
        &plain("", b"ok"),
    ]
    .concat();
    let (_, got) = exchange(post("/v1/chat/completions", "", b"{}"), reply).await;
    assert_eq!((got.status, got.text().as_str()), (200, "ok"));
}

#[tokio::test]
async fn two_ways_to_tell_a_length_are_not_passed_on() {
    let request = "POST /v1/files HTTP/1.1\r\nhost: s\r\ncontent-length: 40\r\ntransfer-encoding: chunked\r\n\r\n\
                   2\r\nok\r\n0\r\n\r\n";
    let (received, _) = exchange(request, plain("", b"")).await;
    assert_eq!((received.body.as_slice(), received.header("content-length")), (&b"ok"[..], None));
}

#[tokio::test]
async fn a_reply_that_comes_before_the_request_is_whole_does_not_wait_for_it() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    upstream.then_at_once([Step::Send(chunked_head("")), Step::Send(chunk(b"early"))]);
    let mut client = seam.client().await;
    client.send("POST /v1/files HTTP/1.1\r\nhost: s\r\ncontent-length: 4\r\n\r\nab").await;
    assert_eq!(client.head().await.status, 200);
    assert_eq!(client.chunk().await.unwrap(), b"early");
    // The rest of the request still goes on.
    client.send("cd").await;
    assert_eq!(upstream.request().await.body, b"abcd");
}

#[tokio::test]
async fn a_websocket_is_a_tunnel_once_both_agree() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let agreed = b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: x\r\n\r\nhi";
    upstream.then([Step::Send(agreed.to_vec()), Step::Echo]);
    let mut client = seam.client().await;
    client
        .send("GET /v1/realtime?model=m HTTP/1.1\r\nhost: s\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-key: k\r\n\r\n")
        .await;
    let got = client.head().await;
    assert_eq!(
        (got.status, got.header("upgrade"), got.header("sec-websocket-accept")),
        (101, Some("websocket"), Some("x"))
    );
    let received = upstream.request().await;
    assert_eq!(
        (received.header("upgrade"), received.header("connection")),
        (Some("websocket"), Some("upgrade"))
    );
    assert_eq!(client.bytes(2).await, b"hi");
    client.send(b"\x81\x03abc").await;
    assert_eq!(client.bytes(5).await, b"\x81\x03abc");
    drop(client);
    upstream.gone().await;
    assert_eq!(seam.count(Event::Upgraded), 1);
}

#[tokio::test]
async fn an_upgrade_that_upstream_declines_is_an_ordinary_exchange() {
    let request = "GET /v1/realtime HTTP/1.1\r\nhost: s\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    let (_, got) = exchange(request, "HTTP/1.1 400 Bad Request\r\ncontent-length: 4\r\n\r\nno!!").await;
    assert_eq!((got.status, got.text().as_str(), got.whole), (400, "no!!", true));
}

#[tokio::test]
async fn a_tunnel_through_seam_is_not_to_be_had() {
    let upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let got = seam.exchange("CONNECT example.org:443 HTTP/1.1\r\nhost: example.org\r\n\r\n").await;
    assert_eq!((got.status, got.error_code().as_str()), (405, "seam_no_forward_proxy"));
}

/// Bytes cut into pieces at random.
fn pieces(data: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (data.len() + 1)).collect();
    cuts.extend([0, data.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| data[pair[0]..pair[1]].to_vec()).filter(|piece| !piece.is_empty()).collect()
}

#[test]
fn any_bytes_in_any_chunks_are_the_same_both_ways() {
    use proptest::prelude::*;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (upstream, seam) = runtime.block_on(async {
        let upstream = Upstream::start().await;
        let seam = Seam::start(&upstream.url()).await;
        (std::cell::RefCell::new(upstream), seam)
    });
    let body = || proptest::collection::vec(any::<u8>(), 0..30_000);
    let cuts = || proptest::collection::vec(any::<usize>(), 0..40);
    let path = proptest::sample::select(vec!["/v1/chat/completions", "/v1/responses", "/v1/files"]);
    let kind = proptest::sample::select(vec!["text/event-stream", "application/json", "audio/mpeg"]);
    let strategy = (body(), cuts(), body(), cuts(), path, kind);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(100));
    let result = runner.run(&strategy, |(sent, sent_cuts, answer, answer_cuts, path, kind)| {
        let mut request =
            format!("POST {path} HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\n").into_bytes();
        request.extend(pieces(&sent, &sent_cuts).iter().flat_map(|piece| chunk(piece)));
        request.extend(b"0\r\n\r\n");
        let mut steps = vec![Step::Send(chunked_head(&format!("content-type: {kind}\r\n")))];
        steps.extend(pieces(&answer, &answer_cuts).iter().map(|piece| Step::Send(chunk(piece))));
        steps.push(Step::Send(b"0\r\n\r\n".to_vec()));
        let mut upstream = upstream.borrow_mut();
        upstream.then(steps);
        let (got, received) =
            runtime.block_on(async { (seam.exchange(request).await, upstream.request().await) });
        prop_assert!(received.body == sent, "the request");
        prop_assert!(got.whole && got.body == answer, "the reply");
        Ok(())
    });
    result.unwrap();
}
