//! From the text of a setting to its typed value: one [`Kind`] per way to write one.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::uri::{Authority, Uri};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::engine::custody::budget::{self, Prices};
use crate::engine::handoff::freshness::Freshness;
use crate::engine::policy::Enforce;

/// One way to write a value: how it is read, and how to tell a person.
#[derive(Debug)]
pub struct Kind<T> {
    /// Reads the value. An error is a remark on top of [`Kind::expected`], or empty.
    pub parse: fn(&str) -> Result<T, String>,
    /// What is expected, as a noun phrase.
    pub expected: &'static str,
    /// A value that reads.
    pub example: &'static str,
}

/// What the client's base URL was: where requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    /// Whether the connection is TLS.
    pub tls: bool,
    /// Host as written, without brackets.
    pub host: String,
    /// Port, the scheme's own if none was written.
    pub port: u16,
    /// Host and port as they stand in the `Host` header.
    pub authority: Authority,
    /// Path without a trailing slash; empty for the root.
    pub path: String,
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

/// Which certificate authorities vouch for the upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// Mozilla's list, built in.
    Bundled,
    /// The machine's own list.
    Native,
    /// The PEM file at this path, and nothing else.
    File(PathBuf),
}

/// Whether HTTP/2 is offered to an https upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http2 {
    /// Offered, the upstream chooses.
    Auto,
    /// HTTP/1.1 alone.
    Off,
}

/// What Seam may do to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Never change a byte; build the brief in the shadow and record it.
    Observe,
    /// Rebuild the receivers' requests.
    Rewrite,
}

/// Where a handoff may come from; each includes the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contract {
    /// What clients declare and Seam owns.
    Read,
    /// Topped up, or made whole, by rules.
    Derive,
    /// The sender is asked.
    Inject,
}

/// What a sender is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContractFields {
    /// What every transfer needs.
    Core,
    /// All that a sender may write.
    Full,
}

/// How much of the transcript stays behind a brief.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transcript {
    /// Everything up to a bound, then the opening turn and the last ones.
    Window,
    /// Everything.
    Full,
    /// Everything but tool calls and their results.
    Dialogue,
    /// The opening and the last customer turn.
    None,
}

/// Where records are kept.
#[derive(Clone, Debug)]
pub enum Store {
    /// In this process, bounded.
    Memory,
    /// In the file at this path, bounded.
    File(PathBuf),
    /// In a Redis server.
    Redis(RedisServer),
}

/// Where a Redis server is, and how to log in there.
#[derive(Clone)]
pub struct RedisServer {
    /// Whether the connection is TLS.
    pub tls: bool,
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// User, password and number of the database.
    pub login: redis::RedisConnectionInfo,
}

/// Without user and password, which people and logs have no need of.
impl fmt::Display for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "rediss" } else { "redis" };
        write!(f, "{scheme}://{}:{}/{}", self.host, self.port, self.login.db())
    }
}

impl fmt::Debug for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisServer({self})")
    }
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A text that is never shown from now on.
    pub(super) fn new(text: String) -> Secret {
        Secret(text)
    }

    /// The text itself, for whoever has to use it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// What happens when Seam cannot do its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// The original bytes pass.
    Open,
    /// The exchange fails.
    Closed,
}

/// What is done with the W3C trace context, where spans are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceContext {
    /// A client's is continued, the upstream gets that of Seam's span.
    On,
    /// A client's is continued, the upstream gets it as it came.
    In,
    /// It is not read.
    Off,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Plain,
    /// One JSON object a line.
    Json,
}

/// An address and a port.
pub const ADDRESS: Kind<SocketAddr> = Kind {
    parse: |text| text.parse().map_err(|_| String::new()),
    expected: "an IP address and a port",
    example: "127.0.0.1:8484",
};

/// A base URL.
pub const BASE_URL: Kind<BaseUrl> = Kind {
    parse: base_url,
    expected: "what the client's base URL was: http or https, a host, no user, no query",
    example: "https://api.openai.com/v1",
};

/// A receiver of traces.
pub const OTLP: Kind<BaseUrl> = Kind {
    parse: base_url,
    expected: "http or https, a host, a port, no user, no query",
    example: "http://127.0.0.1:4318",
};

/// Headers that a receiver wants to see.
pub const HEADERS: Kind<HeaderMap> = Kind {
    parse: headers,
    expected: "names and values like name=value, separated by commas",
    example: "x-api-key=a-key",
};

/// What is done with the W3C context.
pub const TRACE_CONTEXT: Kind<TraceContext> = Kind {
    parse: |text| {
        choose(text, &[("on", TraceContext::On), ("in", TraceContext::In), ("off", TraceContext::Off)])
    },
    expected: "on, in or off",
    example: "in",
};

/// A file.
pub const PATH: Kind<PathBuf> = Kind {
    parse: |text| Ok(text.into()),
    expected: "the path of a file, which need not be there yet",
    example: "/etc/seam/live",
};

/// A span of time.
pub const DURATION: Kind<Duration> = Kind {
    parse: duration,
    expected: "a span of time above zero: a whole number with ms, s, m, h or d",
    example: "250ms",
};

/// A number of bytes.
pub const BYTES: Kind<usize> = Kind {
    parse: bytes,
    expected: "a size above zero: a whole number with B, KiB, MiB or GiB",
    example: "32MiB",
};

/// A count above zero.
pub const COUNT: Kind<usize> = Kind {
    parse: |text| match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(String::new()),
    },
    expected: "a whole number above zero",
    example: "4",
};

/// A number of threads.
pub const THREADS: Kind<usize> = Kind {
    parse: |text| match text {
        "auto" => Ok(std::thread::available_parallelism().map_or(1, |cores| cores.get().min(4))),
        _ => (COUNT.parse)(text).and_then(|n| if n <= 256 { Ok(n) } else { Err("at most 256".into()) }),
    },
    expected: "auto or a whole number above zero",
    example: "2",
};

/// Name patterns.
pub const PATTERNS: Kind<Vec<String>> = Kind {
    parse: patterns,
    expected: "names separated by commas, in which * stands for any text and ? for one character; or none",
    example: "transfer_to_*,handoff",
};

/// The name of a header.
pub const HEADER: Kind<HeaderName> = Kind {
    parse: |text| HeaderName::from_str(text).map_err(|_| String::new()),
    expected: "the name of a header",
    example: "x-tenant",
};

/// The upstream's roots of trust.
pub const ROOTS: Kind<Roots> = Kind {
    parse: |text| match text {
        "bundled" => Ok(Roots::Bundled),
        "native" => Ok(Roots::Native),
        path if path.contains('/') => Ok(Roots::File(path.into())),
        _ => Err(String::new()),
    },
    expected: "bundled, native, or the path of a PEM file (with a / in it)",
    example: "/etc/ssl/company-ca.pem",
};

/// HTTP/2 towards the upstream.
pub const HTTP2: Kind<Http2> = Kind {
    parse: |text| choose(text, &[("auto", Http2::Auto), ("off", Http2::Off)]),
    expected: "auto or off",
    example: "auto",
};

/// The mode.
pub const MODE: Kind<Mode> = Kind {
    parse: |text| choose(text, &[("observe", Mode::Observe), ("rewrite", Mode::Rewrite)]),
    expected: "observe or rewrite",
    example: "observe",
};

/// The source of the handoff.
pub const CONTRACT: Kind<Contract> = Kind {
    parse: |text| {
        choose(text, &[("read", Contract::Read), ("derive", Contract::Derive), ("inject", Contract::Inject)])
    },
    expected: "read, derive or inject",
    example: "inject",
};

/// What a sender is asked for.
pub const CONTRACT_FIELDS: Kind<ContractFields> = Kind {
    parse: |text| choose(text, &[("core", ContractFields::Core), ("full", ContractFields::Full)]),
    expected: "core or full",
    example: "full",
};

/// How often.
pub const TIMES: Kind<u32> = Kind {
    parse: |text| text.parse().ok().filter(|times| *times <= 10).ok_or_else(String::new),
    expected: "a whole number from 0 to 10",
    example: "2",
};

/// The name of one tool.
pub const TOOL: Kind<Option<String>> = Kind {
    parse: |text| match text {
        "none" => Ok(None),
        name if !name.contains([',', '*', '?', ' ']) => Ok(Some(name.to_owned())),
        _ => Err(String::new()),
    },
    expected: "the name of a tool, or none",
    example: "hand_in_contract",
};

/// What the server behind Seam wants of a list.
pub const PROFILE: Kind<super::profiles::Server> = Kind {
    parse: super::profiles::named,
    expected: "openai, azure, vllm, llama.cpp, ollama, mistral, gemini-compat, anthropic-compat, \
               strict-alternation, no-system-role, deepseek, openrouter or the path of a .toml file like those of config/profiles",
    example: "vllm",
};

/// The transcript filter.
pub const TRANSCRIPT: Kind<Transcript> = Kind {
    parse: |text| {
        choose(
            text,
            &[
                ("window", Transcript::Window),
                ("full", Transcript::Full),
                ("dialogue", Transcript::Dialogue),
                ("none", Transcript::None),
            ],
        )
    },
    expected: "window, full, dialogue or none",
    example: "window",
};

/// Freshness rules, from the value itself or from the file it names.
pub const FRESHNESS: Kind<Freshness> = Kind {
    parse: |text| {
        let rules = match text {
            inline if inline.contains('=') => inline.to_owned(),
            path => super::source::read_text(path.as_ref())?,
        };
        Freshness::parse(&rules)
            .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    },
    expected: "rules like key=seconds or key=immutable separated by commas, or the path of a file of them",
    example: "delivery_status=120,refund_status=0,order_*=immutable",
};

/// What refuses.
pub const ENFORCE: Kind<Enforce> = Kind {
    parse: |text| {
        let mut enforce = Enforce::default();
        for word in text.split(',').map(str::trim) {
            match word {
                "custody" => enforce.custody = true,
                "budget" => enforce.budget = true,
                "contract" => enforce.contract = true,
                "facts" => enforce.facts = true,
                "hops" => enforce.hops = true,
                _ => return Err(String::new()),
            }
        }
        Ok(enforce)
    },
    expected: "any of contract, facts, hops, custody, budget, separated by commas",
    example: "contract,facts",
};

/// A sum of money, in millionths.
pub const MONEY: Kind<u64> = Kind {
    parse: |text| budget::micros(text).filter(|sum| *sum > 0).ok_or_else(String::new),
    expected: "a sum of money above zero",
    example: "1.50",
};

/// The price table in a file.
pub const PRICES: Kind<Prices> = Kind {
    parse: |path| {
        let text = super::source::read_text(path.as_ref())?;
        Prices::parse(&text).map_err(|problems| problems.join("; "))
    },
    expected: "the path of a file with a line `model-pattern input cached output` a model, prices of a million tokens",
    example: "config/prices.example.conf",
};

/// The operator's own rules in a file, one a line.
pub const RULES: Kind<Vec<String>> = Kind {
    parse: |path| {
        let text = super::source::read_text(path.as_ref())?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let rules: Vec<String> = lines.map(str::to_owned).collect();
        if rules.len() > 20 { Err("more than 20 rules".into()) } else { Ok(rules) }
    },
    expected: "the path of a file with one rule a line, at most 20",
    example: "config/policy.example.txt",
};

/// The store.
pub const STORE: Kind<Store> = Kind {
    parse: store,
    expected: "memory, file:PATH, or redis://HOST:PORT/DATABASE, or rediss:// for TLS, with USER:PASSWORD@ in front of the host where needed",
    example: "redis://cache.internal:6379/0",
};

/// A filter of log lines.
pub const LOG_FILTER: Kind<String> = Kind {
    parse: |text| {
        tracing_subscriber::EnvFilter::builder()
            .parse(text)
            .map(|_| text.to_owned())
            .map_err(|e| e.to_string())
    },
    expected: "a level (error, warn, info, debug, trace), or module=level separated by commas",
    example: "info,seam::upstream=debug",
};

/// The format of log lines.
pub const LOG_FORMAT: Kind<LogFormat> = Kind {
    parse: |text| choose(text, &[("plain", LogFormat::Plain), ("json", LogFormat::Json)]),
    expected: "plain or json",
    example: "json",
};

/// What happens when Seam cannot do its part.
pub const ON_FAILURE: Kind<OnFailure> = Kind {
    parse: |text| choose(text, &[("open", OnFailure::Open), ("closed", OnFailure::Closed)]),
    expected: "open or closed",
    example: "closed",
};

/// A share of a hundred.
pub const PERCENT: Kind<u8> = Kind {
    parse: |text| text.parse().ok().filter(|percent| *percent <= 100).ok_or_else(String::new),
    expected: "a whole number from 0 to 100",
    example: "5",
};

/// A switch.
pub const SWITCH: Kind<bool> = Kind {
    parse: |text| choose(text, &[("on", true), ("off", false)]),
    expected: "on or off",
    example: "on",
};

/// A secret that others have to show.
pub const TOKEN: Kind<Secret> = Kind {
    parse: token,
    expected: "at least 16 characters that can stand in a header, without spaces",
    example: "a-long-random-string",
};

fn token(text: &str) -> Result<Secret, String> {
    let fits = text.len() >= 16 && text.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { Ok(Secret(text.to_owned())) } else { Err(String::new()) }
}

fn headers(text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (name, value) = pair.split_once('=').ok_or_else(String::new)?;
        let name =
            HeaderName::from_str(name.trim()).map_err(|_| "a name is no name of a header".to_owned())?;
        let mut value =
            HeaderValue::from_str(value.trim()).map_err(|_| "a value cannot stand in a head".to_owned())?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

fn choose<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, String> {
    choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(String::new)
}

fn base_url(text: &str) -> Result<BaseUrl, String> {
    let uri = Uri::from_str(text).map_err(|error| error.to_string())?;
    let tls = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err("it has to begin with http:// or https://".into()),
    };
    let authority = uri.authority().ok_or("the host is missing")?.clone();
    if authority.as_str().contains('@') {
        return Err("a user or password in it is refused: clients send their own credentials".into());
    }
    if uri.query().is_some() || text.contains('#') {
        return Err("a query or fragment cannot be part of it".into());
    }
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    if host.is_empty() {
        return Err("the host is missing".into());
    }
    let port = match authority.port() {
        Some(port) => Some(port.as_u16()).filter(|port| *port > 0).ok_or("port 0 cannot be reached")?,
        None if authority.as_str().ends_with(':') => return Err("the port is missing".into()),
        None => {
            if tls {
                443
            } else {
                80
            }
        }
    };
    let path = uri.path().trim_end_matches('/').to_owned();
    Ok(BaseUrl { tls, host, port, authority, path })
}

fn store(text: &str) -> Result<Store, String> {
    if text == "memory" {
        return Ok(Store::Memory);
    }
    match text.split_once(':') {
        // As a URL writes it, file:///var/lib/seam/records, or without the slashes of a host.
        Some(("file", path)) => match path.strip_prefix("//").unwrap_or(path) {
            "" => Err("the path is missing".into()),
            path if path.ends_with('/') => Err("it is the path of a folder".into()),
            _ if path.starts_with("//") && !path.starts_with("///") => Err("a file has no host".into()),
            path => Ok(Store::File(path.into())),
        },
        Some((scheme @ ("redis" | "rediss"), place)) => {
            redis_server(scheme == "rediss", place).map(Store::Redis)
        }
        _ => Err(String::new()),
    }
}

fn redis_server(tls: bool, place: &str) -> Result<RedisServer, String> {
    use redis::{ConnectionAddr, IntoConnectionInfo};
    if !place.starts_with("//") {
        return Err("it has to begin with redis:// or rediss://".into());
    }
    if place.contains(['?', '#']) {
        return Err("nothing can follow the number of the database".into());
    }
    // The words of the parser's error do not repeat the address; what follows them is its own name for it.
    let remark = |error: redis::RedisError| {
        error.to_string().split(" - ").next().unwrap_or_default().to_ascii_lowercase()
    };
    let server = format!("redis:{place}").into_connection_info().map_err(remark)?;
    match server.addr() {
        ConnectionAddr::Tcp(host, port) => {
            Ok(RedisServer { tls, host: host.clone(), port: *port, login: server.redis_settings().clone() })
        }
        _ => Err(String::new()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = number_and_unit(text)?;
    let milliseconds = match unit {
        "ms" => Some(number),
        "s" => number.checked_mul(1_000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        "d" => number.checked_mul(86_400_000),
        "" => return Err("the unit is missing".into()),
        _ => return Err(String::new()),
    };
    match milliseconds {
        Some(0) => Err(String::new()),
        Some(ms) if ms <= 365 * 86_400_000 => Ok(Duration::from_millis(ms)),
        _ => Err("at most 365d".into()),
    }
}

fn bytes(text: &str) -> Result<usize, String> {
    let (number, unit) = number_and_unit(text)?;
    let factor = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "" => return Err("the unit is missing".into()),
        _ => return Err(String::new()),
    };
    match number.checked_mul(factor) {
        Some(0) => Err(String::new()),
        // Lengths are kept as u32 in places: a body over 2 GiB has no business in memory anyway.
        Some(size) if size <= 2 << 30 => usize::try_from(size).map_err(|_| String::new()),
        _ => Err("at most 2GiB".into()),
    }
}

fn number_and_unit(text: &str) -> Result<(u64, &str), String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    Ok((number.parse().map_err(|_| String::new())?, unit.trim_start()))
}

fn patterns(text: &str) -> Result<Vec<String>, String> {
    if text == "none" {
        return Ok(Vec::new());
    }
    let allowed = |c: char| c.is_alphanumeric() || "_-.:/ *?".contains(c);
    let mut list = Vec::new();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if let Some(odd) = name.chars().find(|c| !allowed(*c)) {
            return Err(format!("{odd:?} cannot be part of a name"));
        }
        list.push(name.to_owned());
    }
    if list.is_empty() { Err(String::new()) } else { Ok(list) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: fmt::Debug>(kind: &Kind<T>, input: &str, expected: &str) {
        let got = match (kind.parse)(input) {
            Ok(value) => format!("{value:?}"),
            Err(remark) => format!("refused: {remark}"),
        };
        assert_eq!(got, expected, "{input}");
    }

    #[test]
    fn spans_and_sizes_carry_their_unit() {
        check(&DURATION, "250ms", "250ms");
        check(&DURATION, "10m", "600s");
        check(&DURATION, "10", "refused: the unit is missing");
        check(&DURATION, "0s", "refused: ");
        check(&DURATION, "-1s", "refused: ");
        check(&DURATION, "99999999999999999999s", "refused: ");
        check(&DURATION, "9999999999999999999h", "refused: at most 365d");
        check(&BYTES, "64KiB", "65536");
        check(&BYTES, "32MB", "refused: ");
        check(&BYTES, "3GiB", "refused: at most 2GiB");
    }

    #[test]
    fn a_base_url_is_a_place_and_nothing_else() {
        let show = |text: &str| base_url(text).map(|url| format!("{url} {} {}", url.host, url.port));
        assert_eq!(
            show("https://api.openai.com/v1/").as_deref(),
            Ok("https://api.openai.com/v1 api.openai.com 443")
        );
        assert_eq!(show("http://[::1]:8000").as_deref(), Ok("http://[::1]:8000 ::1 8000"));
        for wrong in [
            "api.openai.com/v1",
            "ftp://x/v1",
            "https://user:secret@x/v1",
            "https://x/v1?key=1",
            "https://x/#a",
            "https:///v1",
            "http://x:/v1",
            "http://x:0/v1",
        ] {
            assert!(base_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_store_is_memory_or_a_file() {
        check(&STORE, "memory", "Memory");
        check(&STORE, "file:records", r#"File("records")"#);
        check(&STORE, "file:/var/seam/records", r#"File("/var/seam/records")"#);
        check(&STORE, "file:///var/seam/records", r#"File("/var/seam/records")"#);
        check(&STORE, "file://host/records", "refused: a file has no host");
        check(&STORE, "file:", "refused: the path is missing");
        check(&STORE, "file:/var/seam/", "refused: it is the path of a folder");
        check(&STORE, "/var/seam/records", "refused: ");
    }

    #[test]
    fn a_redis_server_is_an_address_that_shows_no_password() {
        check(&STORE, "redis://cache", "Redis(RedisServer(redis://cache:6379/0))");
        check(&STORE, "rediss://u:hunt%402@cache:7/3", "Redis(RedisServer(rediss://cache:7/3))");
        check(&STORE, "redis://:hunter2@[::1]:7", "Redis(RedisServer(redis://::1:7/0))");
        let Ok(Store::Redis(server)) = (STORE.parse)("redis://u:hunt%402@cache:7/3") else {
            panic!("it reads")
        };
        assert_eq!((server.login.username(), server.login.password()), (Some("u"), Some("hunt@2")));
        for wrong in [
            "redis:cache",
            "redis://",
            "redis://cache/x",
            "redis://:hunter2@cache:port/0",
            "rediss://:hunter2@cache#insecure",
            "redis://:hunter2@cache?protocol=resp3",
        ] {
            let remark = (STORE.parse)(wrong).expect_err(wrong);
            assert!(!remark.contains("hunter2"), "{remark}");
        }
    }

    #[test]
    fn headers_are_pairs_whose_values_are_not_shown() {
        check(&HEADERS, "x-key=hunter2, x-a = b=c,", r#"{"x-key": Sensitive, "x-a": Sensitive}"#);
        check(&HEADERS, "x-key", "refused: ");
        check(&HEADERS, "x key=1", "refused: a name is no name of a header");
        check(&HEADERS, "x-key=\u{7f}", "refused: a value cannot stand in a head");
    }

    #[test]
    fn patterns_are_a_list_and_none_is_an_empty_one() {
        check(&PATTERNS, "transfer_to_*, handoff,", r#"["transfer_to_*", "handoff"]"#);
        check(&PATTERNS, "none", "[]");
        check(&PATTERNS, ",", "refused: ");
        check(&PATTERNS, "a;b", "refused: ';' cannot be part of a name");
    }
}
