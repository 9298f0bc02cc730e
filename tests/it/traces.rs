//! Traces: what a scripted OTLP receiver gets of a transfer.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use crate::support::client::post;
use crate::support::seam::Seam;
use crate::support::story;
use crate::support::upstream::{Received, Step, Upstream};

const CLIENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Seam between an upstream and a receiver of traces.
struct Stage {
    seam: Seam,
    upstream: Upstream,
    receiver: Upstream,
}

impl Stage {
    async fn with(settings: &[(&str, &str)]) -> Stage {
        let (upstream, receiver) = (Upstream::start().await, Upstream::start().await);
        let endpoint = format!("http://{}", receiver.address);
        let traces = [("SEAM_TRACE_ENDPOINT", endpoint.as_str()), ("SEAM_TRACE_HEADERS", "x-key=a-key")];
        let seam = Seam::with(&upstream.url(), &[&traces, settings].concat()).await;
        Stage { seam, upstream, receiver }
    }

    /// An exchange with this reply; gives what upstream got.
    async fn exchange(&mut self, head: &str, body: &serde_json::Value, reply: Vec<u8>) -> Received {
        self.upstream.replies(reply);
        let head = format!("{}{head}", story::head());
        let got = self.seam.exchange(post("/v1/chat/completions", &head, body.to_string().as_bytes())).await;
        assert_eq!(got.status, 200, "{}", got.text());
        self.upstream.request().await
    }

    async fn sender(&mut self, head: &str) -> Received {
        self.exchange(head, &story::sender_request(), story::transferring_reply()).await
    }

    async fn receiver(&mut self, head: &str) -> Received {
        self.exchange(head, &story::receiver_request(), story::receivers_reply()).await
    }

    /// Ends Seam and gives all spans, in the order in which they began.
    async fn spans(self) -> Vec<Span> {
        let Stage { seam, mut receiver, .. } = self;
        seam.drain.ask();
        seam.ended().await;
        let mut spans = Vec::new();
        while spans.is_empty() {
            let request = receiver.request().await;
            assert_eq!(request.head[0], "POST /v1/traces HTTP/1.1");
            assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
            assert_eq!(request.header("x-key"), Some("a-key"));
            let sent = ExportTraceServiceRequest::decode(request.body.as_slice()).unwrap();
            let resource = sent.resource_spans[0].resource.as_ref().unwrap();
            assert_eq!(resource.attributes[0].key, "service.name");
            spans.extend(sent.resource_spans.into_iter().flat_map(|r| r.scope_spans).flat_map(|s| s.spans));
        }
        spans.sort_by_key(|span| span.start_time_unix_nano);
        spans
    }
}

/// An attribute as text; empty where it is not there.
fn attribute(span: &Span, name: &str) -> String {
    let value = span.attributes.iter().find(|a| a.key == name).and_then(|a| a.value.as_ref()?.value.as_ref());
    match value {
        None => String::new(),
        Some(Value::StringValue(text)) => text.clone(),
        Some(other) => format!("{other:?}"),
    }
}

fn traceparent(span: &Span) -> String {
    let trace = u128::from_be_bytes(span.trace_id.as_slice().try_into().unwrap());
    let id = u64::from_be_bytes(span.span_id.as_slice().try_into().unwrap());
    format!("00-{trace:032x}-{id:016x}-01")
}

#[tokio::test]
async fn without_a_context_of_the_clients_the_trace_reads_sender_transfer_receiver() {
    let mut stage = Stage::with(&[]).await;
    let first = stage.sender("").await;
    let second = stage.receiver("").await;
    let third = stage.receiver("").await;
    let spans = stage.spans().await;
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["chat m-1", "execute_tool transfer_to_workshop", "chat m-1", "chat m-1"]);
    let [sender, transfer, receiver, again] = spans.as_slice() else { panic!("{names:?}") };
    assert!(spans.iter().all(|span| span.trace_id == sender.trace_id));
    assert_eq!(sender.parent_span_id, Vec::<u8>::new());
    assert_eq!(transfer.parent_span_id, sender.span_id);
    assert_eq!((&receiver.parent_span_id, &again.parent_span_id), (&transfer.span_id, &transfer.span_id));
    let shown = [(sender, &first), (receiver, &second), (again, &third)];
    for (span, received) in shown {
        assert_eq!(received.header("traceparent"), Some(traceparent(span).as_str()));
        assert!(span.end_time_unix_nano > span.start_time_unix_nano);
        assert_eq!((span.kind, span.status.as_ref()), (3, None));
    }
    let run = attribute(sender, "gen_ai.conversation.id");
    assert!(!run.is_empty() && spans.iter().all(|span| attribute(span, "gen_ai.conversation.id") == run));
    for (span, name, expected) in [
        (sender, "gen_ai.operation.name", "chat"),
        (sender, "gen_ai.provider.name", "openai"),
        (sender, "gen_ai.response.model", "m-1-2026"),
        (sender, "gen_ai.usage.cache_read.input_tokens", "IntValue(512)"),
        (sender, "seam.outcome", "passed"),
        (sender, "seam.reason", "not_receiver"),
        (sender, "http.response.status_code", "IntValue(200)"),
        (transfer, "gen_ai.operation.name", "execute_tool"),
        (transfer, "gen_ai.tool.call.id", "call_9"),
        (transfer, "seam.handoff.to", "workshop"),
        (transfer, "seam.handoff.seen_in", "reply"),
        (transfer, "gen_ai.tool.call.arguments", ""),
        (receiver, "seam.outcome", "rewritten"),
        (receiver, "seam.handoff.id", &format!("{run}-1")),
        (receiver, "seam.brief", ""),
    ] {
        assert_eq!(attribute(span, name), expected, "{name} of {}", span.name);
    }
}

#[tokio::test]
async fn a_clients_context_is_continued_and_the_receiver_linked_to_the_transfer() {
    let mut stage = Stage::with(&[]).await;
    let head = format!("traceparent: {CLIENT}\r\ntracestate: vendor=1\r\n");
    let received = stage.sender(&head).await;
    assert_eq!(received.header("tracestate"), Some("vendor=1"));
    stage.receiver("traceparent: 00-aaaabbbbccccddddeeeeffff00001111-1111222233334444-01\r\n").await;
    let spans = stage.spans().await;
    let [sender, transfer, receiver] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!(&traceparent(sender)[..36], &CLIENT[..36]);
    assert_eq!(sender.parent_span_id, [0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
    assert_eq!(received.header("traceparent"), Some(traceparent(sender).as_str()));
    assert_eq!(received.head.iter().filter(|line| line.starts_with("traceparent")).count(), 1);
    assert_eq!((&transfer.trace_id, &transfer.parent_span_id), (&sender.trace_id, &sender.span_id));
    assert_eq!(receiver.trace_id[..2], [0xaa, 0xaa]);
    assert_eq!(receiver.parent_span_id[..2], [0x11, 0x11]);
    let link = &receiver.links[0];
    assert_eq!((&link.trace_id, &link.span_id), (&transfer.trace_id, &transfer.span_id));
}

#[tokio::test]
async fn a_transfer_that_only_the_list_shows_lies_in_its_receivers_request() {
    let mut stage = Stage::with(&[]).await;
    stage.receiver("").await;
    let spans = stage.spans().await;
    let [receiver, transfer] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!(receiver.parent_span_id, Vec::<u8>::new());
    assert_eq!((&transfer.trace_id, &transfer.parent_span_id), (&receiver.trace_id, &receiver.span_id));
    assert_eq!(attribute(transfer, "seam.handoff.seen_in"), "list");
}

#[tokio::test]
async fn the_context_is_switchable() {
    for (context, onward, parent) in [("in", CLIENT, true), ("off", CLIENT, false)] {
        let mut stage = Stage::with(&[("SEAM_TRACE_CONTEXT", context)]).await;
        let received = stage.sender(&format!("traceparent: {CLIENT}\r\n")).await;
        assert_eq!(received.header("traceparent"), Some(onward), "{context}");
        let spans = stage.spans().await;
        assert_eq!(!spans[0].parent_span_id.is_empty(), parent, "{context}");
    }
}

#[tokio::test]
async fn what_is_not_sampled_makes_no_span_and_passes_on() {
    let mut stage = Stage::with(&[]).await;
    let unsampled = format!("{}00", &CLIENT[..CLIENT.len() - 2]);
    let received = stage.sender(&format!("traceparent: {unsampled}\r\n")).await;
    assert_eq!(received.header("traceparent"), Some(unsampled.as_str()));
    stage.upstream.replies(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    stage.seam.exchange("GET /v1/models HTTP/1.1\r\nhost: s\r\n\r\n").await;
    let spans = stage.spans().await;
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["GET"]);
}

#[tokio::test]
async fn content_is_in_spans_where_the_setting_allows_it() {
    let mut stage = Stage::with(&[("SEAM_TRACE_CONTENT", "on")]).await;
    stage.sender("").await;
    stage.receiver("").await;
    let spans = stage.spans().await;
    assert!(attribute(&spans[1], "gen_ai.tool.call.arguments").contains("The brakes squeal."));
    assert!(attribute(&spans[2], "seam.brief").contains("318.40"));
}

#[tokio::test]
async fn a_failure_is_an_error_with_its_reason() {
    let stage = Stage::with(&[]).await;
    stage.upstream.then([Step::Close]);
    let body = story::sender_request().to_string();
    stage.seam.exchange(post("/v1/chat/completions", &story::head(), body.as_bytes())).await;
    let spans = stage.spans().await;
    assert_eq!(spans[0].status.as_ref().map(|status| status.code), Some(2));
    assert_eq!(attribute(&spans[0], "error.type"), "seam_upstream_no_reply");
    assert_eq!(attribute(&spans[0], "seam.outcome"), "failed");
}

#[tokio::test]
async fn without_an_endpoint_the_headers_pass_untouched() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    upstream.replies(story::transferring_reply());
    let head = format!("{}traceparent: {CLIENT}\r\n", story::head());
    seam.exchange(post("/v1/chat/completions", &head, story::sender_request().to_string().as_bytes())).await;
    assert_eq!(upstream.request().await.header("traceparent"), Some(CLIENT));
}

#[tokio::test]
async fn a_receiver_that_hangs_or_is_away_delays_nobody() {
    let (mut upstream, hanging) = (Upstream::start().await, Upstream::start().await);
    for endpoint in [format!("http://{}", hanging.address), "http://127.0.0.1:9".to_owned()] {
        hanging.then([Step::Stall]);
        let seam = Seam::with(&upstream.url(), &[("SEAM_TRACE_ENDPOINT", &endpoint)]).await;
        let began = std::time::Instant::now();
        story::play(&seam, &mut upstream).await;
        assert!(began.elapsed().as_secs() < 5);
        seam.drain.ask();
        seam.ended().await;
        assert!(began.elapsed().as_secs() < 10, "the end waits two seconds at most");
    }
}
