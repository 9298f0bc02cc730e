//! Every way an exchange can fail: its status, its body in OpenAI's shape, its
//! one reason, and who is to blame.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use serde::Serialize;

use crate::dial;
use crate::server::chain;
use crate::telemetry::{Blame, Closed, Failed, Passed};
use crate::upstream::Fault;

/// Tells OpenAI's SDKs that sending the same again will not help.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// A refusal on the engine's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// What the caller is told: one sentence, no conversation content.
    pub(crate) message: String,
    /// The part of the request it is about, if it is about one.
    pub(crate) param: Option<String>,
    /// `seam_` and why; a closed list.
    pub(crate) code: &'static str,
}

/// A way to fail.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Upstream did not do its part; the text is its host and port.
    Upstream(String, Fault),
    /// The caller's body could not be read to its end.
    RequestBroke(hyper::Error),
    /// The caller sent nothing for too long in the middle of a body.
    RequestSilent,
    /// A tunnel through Seam was asked for: it is no forward proxy.
    Tunnel,
    /// The request cannot stand as a request to upstream.
    Unforwardable,
    /// The engine refused the request.
    Refused(Refusal),
    /// Seam could not do its part, for this reason, and was told to fail rather than to let it pass.
    Closed(Passed),
    /// The process ends.
    Ending,
}

impl Failure {
    /// The status. SDKs retry 408, 409, 429 and 5xx.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Failure::Upstream(_, fault) => match fault {
                // Nothing came in time, from a peer that may yet be alive.
                Fault::Dial(dial::Fault::Timeout(_)) | Fault::Silent(_) => StatusCode::GATEWAY_TIMEOUT,
                Fault::RequestBroke(_) => StatusCode::BAD_REQUEST,
                Fault::Dial(_) | Fault::NoReply(_) | Fault::ReplyBroke(_) => StatusCode::BAD_GATEWAY,
            },
            Failure::RequestBroke(_) | Failure::Unforwardable => StatusCode::BAD_REQUEST,
            Failure::RequestSilent => StatusCode::REQUEST_TIMEOUT,
            Failure::Tunnel => StatusCode::METHOD_NOT_ALLOWED,
            // A status that no SDK retries: the same request would be refused again.
            Failure::Refused(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Failure::Closed(reason) => match reason {
                Passed::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
                Passed::BodyCompressed => StatusCode::UNSUPPORTED_MEDIA_TYPE,
                Passed::BodyUnreadable => StatusCode::BAD_REQUEST,
                Passed::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
                // The store may be back at the next try.
                _ => StatusCode::SERVICE_UNAVAILABLE,
            },
            // Another replica, or the next process here, can serve it.
            Failure::Ending => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The one reason, as it stands in logs and metrics.
    pub(crate) fn reason(&self) -> Failed {
        match self {
            Failure::Upstream(_, fault) => match fault {
                Fault::Dial(fault) => match fault {
                    dial::Fault::Resolve(_) => Failed::UpstreamUnknownHost,
                    dial::Fault::Connect(_) => Failed::UpstreamUnreachable,
                    dial::Fault::Proxy(..) => Failed::UpstreamProxy,
                    dial::Fault::Timeout(_) => Failed::UpstreamConnectTimeout,
                    dial::Fault::Tls(_) => Failed::UpstreamTls,
                },
                Fault::NoReply(_) => Failed::UpstreamNoReply,
                Fault::Silent(_) => Failed::UpstreamTimeout,
                Fault::RequestBroke(_) => Failed::RequestBroken,
                Fault::ReplyBroke(_) => Failed::UpstreamReplyBroken,
            },
            Failure::RequestBroke(_) => Failed::RequestBroken,
            Failure::RequestSilent => Failed::RequestTimeout,
            Failure::Tunnel => Failed::NoForwardProxy,
            Failure::Unforwardable => Failed::RequestUnforwardable,
            Failure::Refused(_) => Failed::Refused,
            Failure::Closed(_) => Failed::FailedClosed,
            Failure::Ending => Failed::Ending,
        }
    }

    /// The code in the error's body.
    pub(crate) fn code(&self) -> String {
        match self {
            Failure::Refused(refusal) => refusal.code.to_owned(),
            Failure::Closed(reason) => format!("seam_{}", reason.name()),
            _ => format!("seam_{}", self.reason().name()),
        }
    }

    /// Who is to blame.
    pub(crate) fn blame(&self) -> Blame {
        match self {
            Failure::Upstream(_, Fault::RequestBroke(_))
            | Failure::RequestBroke(_)
            | Failure::RequestSilent
            | Failure::Tunnel
            | Failure::Unforwardable
            | Failure::Refused(_) => Blame::Caller,
            Failure::Upstream(..) => Blame::Upstream,
            Failure::Closed(_) | Failure::Ending => Blame::Us,
        }
    }

    /// What the caller is told. Host and port of upstream are in it, no path and no credential.
    pub(crate) fn message(&self) -> String {
        match self {
            Failure::Upstream(_, fault @ Fault::RequestBroke(_)) => fault.to_string(),
            Failure::Upstream(authority, fault) => {
                format!("the upstream {authority} failed: {}", chain(fault))
            }
            Failure::RequestBroke(error) => format!("the request's body broke off: {}", chain(error)),
            Failure::RequestSilent => "the request's body stopped coming".to_owned(),
            Failure::Tunnel => {
                "CONNECT is not served: this is a sidecar for one endpoint, not a forward proxy".to_owned()
            }
            Failure::Unforwardable => "the request's target is not a path".to_owned(),
            Failure::Refused(refusal) => refusal.message.clone(),
            Failure::Closed(reason) => {
                format!(
                    "the proxy could not do its part and was set to fail rather than to pass: {}",
                    reason.name()
                )
            }
            Failure::Ending => "the proxy is shutting down".to_owned(),
        }
    }

    /// The error as JSON, in OpenAI's shape.
    pub(crate) fn body(&self) -> Bytes {
        let param = match self {
            Failure::Refused(refusal) => refusal.param.as_deref(),
            _ => None,
        };
        let kind = match self.blame() {
            Blame::Upstream => "upstream_error",
            Blame::Caller => "invalid_request_error",
            Blame::Us => "server_error",
        };
        let error = Told { message: &self.message(), kind, param, code: &self.code() };
        // Strings alone: this cannot fail, and an empty body would still carry its status.
        Bytes::from(serde_json::to_vec(&Envelope { error }).unwrap_or_default())
    }

    /// The error as a reply.
    pub(crate) fn response(&self) -> Response<Bytes> {
        let mut response = Response::new(self.body());
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if matches!(self, Failure::Refused(_)) {
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        response
    }
}

/// OpenAI's shape of an error.
#[derive(Serialize)]
struct Envelope<'a> {
    error: Told<'a>,
}

#[derive(Serialize)]
struct Told<'a> {
    message: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    param: Option<&'a str>,
    code: &'a str,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message())
    }
}

/// The message holds the causes already.
impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_openais_error_that_no_sdk_retries() {
        let refusal = Refusal {
            message: "the transfer was refused".to_owned(),
            param: Some("messages".to_owned()),
            code: "seam_hops",
        };
        let failure = Failure::Refused(refusal);
        let response = failure.response();
        assert_eq!(response.status(), 422);
        assert_eq!(response.headers()["x-should-retry"], "false");
        let expected = r#"{"error":{"message":"the transfer was refused","type":"invalid_request_error","param":"messages","code":"seam_hops"}}"#;
        assert_eq!(response.body(), expected);
    }

    #[test]
    fn a_dead_upstream_is_named_with_its_cause() {
        let cause = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let failure =
            Failure::Upstream("api.example:443".to_owned(), Fault::Dial(dial::Fault::Connect(cause)));
        assert_eq!(failure.status(), 502);
        assert_eq!(
            failure.message(),
            "the upstream api.example:443 failed: it cannot be connected to: connection refused"
        );
    }
}
