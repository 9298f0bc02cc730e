//! A span while it is made, and as OTLP writes it.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Link, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{self as otlp, ResourceSpans, ScopeSpans, Status};

use super::super::closed::Closed;
use super::context::Context;
use super::names::Name;

/// Bytes of a name or an id: clients choose how long these are.
const TEXT: usize = 128;
/// Bytes of content, where that is shown.
const CONTENT: usize = 64 << 10;

/// A span. Begun when it is made; ended when it is sent.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) context: Context,
    pub(super) parent: Option<u64>,
    pub(super) link: Option<Context>,
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Nanoseconds since the Unix epoch.
    pub(super) start: u64,
    /// The same.
    pub(super) end: u64,
    pub(super) failed: bool,
    attributes: Vec<(Name, Value)>,
}

/// Whose work a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Somebody else's, asked for here.
    Client,
    /// Nobody's beyond this process.
    Internal,
}

/// What an attribute says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Texts(Vec<String>),
    Number(i64),
    Real(f64),
    Is(bool),
}

impl Span {
    pub(super) fn new(context: Context, parent: Option<u64>, kind: Kind, name: String, start: u64) -> Span {
        let attributes = Vec::with_capacity(16);
        Span { context, parent, link: None, name, kind, start, end: start, failed: false, attributes }
    }

    /// Sets an attribute; the last word counts.
    pub(super) fn set(&mut self, name: Name, value: Value) {
        self.attributes.retain(|(known, _)| *known != name);
        self.attributes.push((name, value));
    }

    /// A name or an id.
    pub(super) fn text(&mut self, name: Name, text: &str) {
        if !text.is_empty() {
            self.set(name, Value::Text(head(text, TEXT)));
        }
    }

    /// What was said.
    pub(super) fn content(&mut self, name: Name, text: &str) {
        self.set(name, Value::Text(head(text, CONTENT)));
    }

    pub(super) fn number(&mut self, name: Name, number: impl TryInto<i64>) {
        self.set(name, Value::Number(number.try_into().unwrap_or(i64::MAX)));
    }
}

fn head(text: &str, limit: usize) -> String {
    text[..text.floor_char_boundary(limit)].to_owned()
}

/// Spans as one request to a receiver.
pub(super) fn request(spans: &[Span]) -> ExportTraceServiceRequest {
    let text = |text: &str| Value::Text(text.to_owned());
    let resource = [("service.name", "seam"), ("service.version", env!("CARGO_PKG_VERSION"))];
    let resource = resource.map(|(name, value)| key_value(name, &text(value)));
    let scope = InstrumentationScope {
        name: env!("CARGO_PKG_NAME").to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let spans = ScopeSpans {
        scope: Some(scope),
        spans: spans.iter().map(written).collect(),
        ..ScopeSpans::default()
    };
    let resource = Resource { attributes: resource.to_vec(), ..Resource::default() };
    let spans =
        ResourceSpans { resource: Some(resource), scope_spans: vec![spans], ..ResourceSpans::default() };
    ExportTraceServiceRequest { resource_spans: vec![spans] }
}

fn written(span: &Span) -> otlp::Span {
    let kind = match span.kind {
        Kind::Client => SpanKind::Client,
        Kind::Internal => SpanKind::Internal,
    };
    otlp::Span {
        trace_id: span.context.trace.to_be_bytes().to_vec(),
        span_id: span.context.span.to_be_bytes().to_vec(),
        parent_span_id: span.parent.map_or_else(Vec::new, |parent| parent.to_be_bytes().to_vec()),
        flags: flags(&span.context),
        name: span.name.clone(),
        kind: kind.into(),
        start_time_unix_nano: span.start,
        end_time_unix_nano: span.end,
        attributes: span.attributes.iter().map(|(name, value)| key_value(name.name(), value)).collect(),
        links: span.link.iter().map(link).collect(),
        status: span.failed.then(|| Status { code: StatusCode::Error.into(), ..Status::default() }),
        ..otlp::Span::default()
    }
}

fn flags(context: &Context) -> u32 {
    u32::from(context.sampled)
}

fn link(context: &Context) -> Link {
    Link {
        trace_id: context.trace.to_be_bytes().to_vec(),
        span_id: context.span.to_be_bytes().to_vec(),
        flags: flags(context),
        ..Link::default()
    }
}

fn key_value(key: &str, value: &Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(any(value)), ..KeyValue::default() }
}

fn any(value: &Value) -> AnyValue {
    let text = |text: &String| AnyValue { value: Some(Any::StringValue(text.clone())) };
    match value {
        Value::Text(one) => text(one),
        Value::Texts(many) => {
            let values = many.iter().map(text).collect();
            AnyValue { value: Some(Any::ArrayValue(ArrayValue { values })) }
        }
        Value::Number(number) => AnyValue { value: Some(Any::IntValue(*number)) },
        Value::Real(number) => AnyValue { value: Some(Any::DoubleValue(*number)) },
        Value::Is(is) => AnyValue { value: Some(Any::BoolValue(*is)) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_written_with_its_place_in_the_trace() {
        let context = Context { trace: 1, span: 2, sampled: true };
        let mut span = Span::new(context, Some(3), Kind::Internal, "execute_tool x".into(), 10);
        span.end = 12;
        span.failed = true;
        span.text(Name::Tool, "first");
        span.text(Name::Tool, &"é".repeat(TEXT));
        span.number(Name::Hop, 7u64);
        let request = request(&[span]);
        let written = &request.resource_spans[0].scope_spans[0].spans[0];
        assert_eq!(written.trace_id, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!((written.span_id[7], written.parent_span_id[7]), (2, 3));
        assert_eq!((written.start_time_unix_nano, written.end_time_unix_nano), (10, 12));
        assert_eq!(written.status.as_ref().map(|status| status.code), Some(2));
        let attributes: Vec<_> =
            written.attributes.iter().map(|a| (a.key.as_str(), a.value.clone())).collect();
        let bounded = AnyValue { value: Some(Any::StringValue("é".repeat(TEXT / 2))) };
        let hop = AnyValue { value: Some(Any::IntValue(7)) };
        assert_eq!(attributes, [("gen_ai.tool.name", Some(bounded)), ("seam.handoff.hop", Some(hop))]);
    }
}
