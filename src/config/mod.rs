//! The settings in force, read from a [`Source`] by the table of [`vars`].

pub mod docs;
pub mod live;
pub mod parse;
pub mod problems;
pub mod profiles;
pub mod proxies;
pub mod source;
pub mod vars;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderMap, HeaderName};

pub use parse::{
    BaseUrl, Contract, ContractFields, Http2, LogFormat, Mode, OnFailure, Roots, Secret, Store, TraceContext,
    Transcript,
};
pub use problems::{Problem, Problems};
pub use proxies::{Proxies, Proxy};
pub use source::{Environment, Source};

use crate::engine::custody::budget::Prices;
use crate::engine::handoff::freshness::Freshness;
use crate::engine::policy::Enforce;
use vars::{Entry, Fallback, Var};

/// What the name of every variable begins with.
pub const PREFIX: &str = "SEAM_";

/// What stands in place of a secret wherever settings are shown.
const MASK: &str = "***";

/// The settings in force. Fields are named after their variables and explained in [`vars`].
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each field is the variable of its name, which the table explains")]
pub struct Config {
    pub upstream: BaseUrl,
    pub listen: SocketAddr,
    pub admin_listen: SocketAddr,
    pub upstream_ca: Roots,
    pub http2: Http2,
    /// The proxy on the way out, from variables that other programs know too.
    pub proxies: Proxies,
    pub server: profiles::Server,
    pub mode: Mode,
    pub rewrite_percent: u8,
    pub live_file: Option<PathBuf>,
    pub contract: Contract,
    pub contract_fields: ContractFields,
    pub corrections: u32,
    pub correction_timeout: Duration,
    pub submit_tool: Option<String>,
    pub on_failure: OnFailure,
    pub freshness: Freshness,
    pub transfer_tools: Vec<String>,
    pub not_transfer: Vec<String>,
    pub terminal: Vec<String>,
    pub observers: Vec<String>,
    pub enforce: Enforce,
    pub hops: Option<usize>,
    pub run_hops: usize,
    pub budget_tokens: Option<usize>,
    pub budget_spend: Option<u64>,
    pub prices_file: Prices,
    pub budget_time: Option<Duration>,
    pub policy_file: Vec<String>,
    pub tenant_header: Option<HeaderName>,
    pub run_header: Option<HeaderName>,
    pub agent_header: Option<HeaderName>,
    pub transcript: Transcript,
    pub transcript_tokens: usize,
    pub transcript_turns: usize,
    pub result_bytes: usize,
    pub store: Store,
    pub store_ca: Roots,
    pub store_timeout: Duration,
    pub store_bytes: usize,
    pub retention: Duration,
    pub pending_ttl: Duration,
    pub admin_token: Option<Secret>,
    pub admin_content: bool,
    pub trace_endpoint: Option<BaseUrl>,
    pub trace_headers: HeaderMap,
    pub trace_ca: Roots,
    pub trace_context: TraceContext,
    pub trace_content: bool,
    pub inspect_limit: usize,
    pub reply_limit: usize,
    pub hold_bytes: usize,
    pub hold_timeout: Duration,
    pub connect_timeout: Duration,
    pub idle_timeout: Duration,
    pub pool_idle_timeout: Duration,
    pub drain_timeout: Duration,
    pub max_connections: usize,
    pub log: String,
    pub log_format: LogFormat,
    pub threads: usize,
}

/// One setting as it is in force, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The variable.
    pub name: &'static str,
    /// Its value, masked if it is a secret.
    pub value: String,
    /// Whether the value is the default.
    pub is_default: bool,
}

impl Config {
    /// Reads all settings, or says everything that is wrong with them.
    pub fn read(source: &dyn Source) -> Result<Config, Problems> {
        let given = Given::collect(source);
        let problems = given.problems();
        if !problems.is_empty() {
            return Err(Problems(problems));
        }
        let config = given.config().map_err(|problem| Problems(vec![problem]))?;
        let problems = config.contradictions();
        if problems.is_empty() { Ok(config) } else { Err(Problems(problems)) }
    }

    /// What reads well by itself and cannot hold together.
    fn contradictions(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.listen == self.admin_listen && self.listen.port() != 0 {
            let what = format!(
                "{} is also {}: the two listeners need an address of their own, for example {}",
                self.admin_listen,
                vars::LISTEN.entry.name,
                vars::ADMIN_LISTEN.entry.example_or_default(),
            );
            problems.push(Problem::new(vars::ADMIN_LISTEN.entry.name, what));
        }
        problems
    }
}

/// Reads one setting, whatever the others are.
pub fn read_one<T>(source: &dyn Source, var: &Var<T>) -> Result<Option<T>, Problems> {
    Given::collect(source).optional(var).map_err(|problem| Problems(vec![problem]))
}

/// All settings as they are in force, in the order of the table.
pub fn shown(source: &dyn Source) -> Vec<Shown> {
    let given = Given::collect(source);
    vars::ALL.iter().map(|var| given.show(var.entry())).collect()
}

impl Entry {
    fn example_or_default(&self) -> &'static str {
        match self.default {
            Fallback::Is(value) => value,
            _ => self.example,
        }
    }
}

/// The variables that were given, by name; an empty value counts as not given.
struct Given(Vec<(String, String)>);

impl Given {
    fn collect(source: &dyn Source) -> Given {
        let mut variables = source.variables();
        variables.retain(|(name, value)| !value.trim().is_empty() && !is_kubernetes_service(name, value));
        variables.sort();
        Given(variables)
    }

    fn raw(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, value)| value.trim())
    }

    /// The text of a setting: given, from the file that `NAME_FILE` names, or the default.
    fn text(&self, entry: &Entry) -> Result<Option<String>, Problem> {
        let direct = self.raw(entry.name);
        let file_name = format!("{}_FILE", entry.name);
        let file = self.raw(&file_name).filter(|_| entry.secret);
        match (direct, file) {
            (Some(_), Some(_)) => Err(Problem::new(
                &file_name,
                format!("{} is set as well: give the value or the file, not both", entry.name),
            )),
            (Some(value), None) => Ok(Some(value.to_owned())),
            (None, Some(path)) => {
                let text = source::read_text(path.as_ref()).map_err(|what| Problem::new(&file_name, what))?;
                Ok(Some(text.trim().to_owned()))
            }
            (None, None) => match entry.default {
                Fallback::Is(value) => Ok(Some(value.to_owned())),
                Fallback::Unset => Ok(None),
                Fallback::Required => {
                    Err(Problem::new(entry.name, format!("not set; {}", expectation(entry))))
                }
            },
        }
    }

    fn problems(&self) -> Vec<Problem> {
        let own = self.0.iter().filter(|(name, _)| name.starts_with(PREFIX));
        let unknown = own.filter_map(|(name, _)| unknown(name));
        let proxies = self.proxies().err();
        let wrong = vars::ALL.iter().filter_map(|var| match self.text(var.entry()) {
            Ok(Some(text)) => var.check(&text).err().map(|remark| wrong(var.entry(), &text, &remark)),
            Ok(None) => None,
            Err(problem) => Some(problem),
        });
        wrong.chain(unknown).chain(proxies).collect()
    }

    /// The way out, by the variables that other programs know too.
    fn proxies(&self) -> Result<Proxies, Problem> {
        let first = |names: &[&'static str]| names.iter().find_map(|name| Some((*name, self.raw(name)?)));
        let (name, proxy) = first(&proxies::PROXY).unzip();
        Proxies::read(proxy, first(&proxies::EXCEPT).map(|(_, list)| list)).map_err(|remark| {
            // It may hold a password.
            let remark = if remark.is_empty() { remark } else { format!(" ({remark})") };
            let what = format!("it does not read{remark}; expected a proxy like http://proxy.internal:3128");
            Problem::new(name.unwrap_or(proxies::PROXY[0]), what)
        })
    }

    fn optional<T>(&self, var: &Var<T>) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(&var.entry)? else { return Ok(None) };
        (var.kind.parse)(&text).map(Some).map_err(|remark| wrong(&var.entry, &text, &remark))
    }

    fn value<T>(&self, var: &Var<T>) -> Result<T, Problem> {
        self.optional(var)?.ok_or_else(|| Problem::new(var.entry.name, expectation(&var.entry)))
    }

    fn config(&self) -> Result<Config, Problem> {
        Ok(Config {
            upstream: self.value(&vars::UPSTREAM)?,
            listen: self.value(&vars::LISTEN)?,
            admin_listen: self.value(&vars::ADMIN_LISTEN)?,
            upstream_ca: self.value(&vars::UPSTREAM_CA)?,
            http2: self.value(&vars::HTTP2)?,
            proxies: self.proxies()?,
            server: self.value(&vars::PROFILE)?,
            mode: self.value(&vars::MODE)?,
            rewrite_percent: self.value(&vars::REWRITE_PERCENT)?,
            live_file: self.optional(&vars::LIVE_FILE)?,
            contract: self.value(&vars::CONTRACT)?,
            contract_fields: self.value(&vars::CONTRACT_FIELDS)?,
            corrections: self.value(&vars::CORRECTIONS)?,
            correction_timeout: self.value(&vars::CORRECTION_TIMEOUT)?,
            submit_tool: self.value(&vars::SUBMIT_TOOL)?,
            on_failure: self.value(&vars::ON_FAILURE)?,
            freshness: self.optional(&vars::FRESHNESS)?.unwrap_or_else(Freshness::builtin),
            transfer_tools: self.optional(&vars::TRANSFER_TOOLS)?.unwrap_or_default(),
            not_transfer: self.optional(&vars::NOT_TRANSFER)?.unwrap_or_default(),
            terminal: self.value(&vars::TERMINAL)?,
            observers: self.optional(&vars::OBSERVERS)?.unwrap_or_default(),
            enforce: self.optional(&vars::ENFORCE)?.unwrap_or_default(),
            hops: self.optional(&vars::HOPS)?,
            run_hops: self.value(&vars::RUN_HOPS)?,
            budget_tokens: self.optional(&vars::BUDGET_TOKENS)?,
            budget_spend: self.optional(&vars::BUDGET_SPEND)?,
            prices_file: self.optional(&vars::PRICES_FILE)?.unwrap_or_default(),
            budget_time: self.optional(&vars::BUDGET_TIME)?,
            policy_file: self.optional(&vars::POLICY_FILE)?.unwrap_or_default(),
            tenant_header: self.optional(&vars::TENANT_HEADER)?,
            run_header: self.optional(&vars::RUN_HEADER)?,
            agent_header: self.optional(&vars::AGENT_HEADER)?,
            transcript: self.value(&vars::TRANSCRIPT)?,
            transcript_tokens: self.value(&vars::TRANSCRIPT_TOKENS)?,
            transcript_turns: self.value(&vars::TRANSCRIPT_TURNS)?,
            result_bytes: self.value(&vars::RESULT_BYTES)?,
            store: self.value(&vars::STORE)?,
            store_ca: self.value(&vars::STORE_CA)?,
            store_timeout: self.value(&vars::STORE_TIMEOUT)?,
            store_bytes: self.value(&vars::STORE_BYTES)?,
            retention: self.value(&vars::RETENTION)?,
            pending_ttl: self.value(&vars::PENDING_TTL)?,
            admin_token: self.optional(&vars::ADMIN_TOKEN)?,
            admin_content: self.value(&vars::ADMIN_CONTENT)?,
            trace_endpoint: self.optional(&vars::TRACE_ENDPOINT)?,
            trace_headers: self.optional(&vars::TRACE_HEADERS)?.unwrap_or_default(),
            trace_ca: self.value(&vars::TRACE_CA)?,
            trace_context: self.value(&vars::TRACE_CONTEXT)?,
            trace_content: self.value(&vars::TRACE_CONTENT)?,
            inspect_limit: self.value(&vars::INSPECT_LIMIT)?,
            reply_limit: self.value(&vars::REPLY_LIMIT)?,
            hold_bytes: self.value(&vars::HOLD_BYTES)?,
            hold_timeout: self.value(&vars::HOLD_TIMEOUT)?,
            connect_timeout: self.value(&vars::CONNECT_TIMEOUT)?,
            idle_timeout: self.value(&vars::IDLE_TIMEOUT)?,
            pool_idle_timeout: self.value(&vars::POOL_IDLE_TIMEOUT)?,
            drain_timeout: self.value(&vars::DRAIN_TIMEOUT)?,
            max_connections: self.value(&vars::MAX_CONNECTIONS)?,
            log: self.value(&vars::LOG)?,
            log_format: self.value(&vars::LOG_FORMAT)?,
            threads: self.value(&vars::THREADS)?,
        })
    }

    fn show(&self, entry: &Entry) -> Shown {
        let given = self.raw(entry.name).is_some()
            || (entry.secret && self.raw(&format!("{}_FILE", entry.name)).is_some());
        let value = match entry.default {
            _ if given && entry.secret => MASK.to_owned(),
            Fallback::Is(value) => self.raw(entry.name).unwrap_or(value).to_owned(),
            _ => self.raw(entry.name).unwrap_or("(not set)").to_owned(),
        };
        Shown { name: entry.name, value, is_default: !given }
    }
}

fn expectation(entry: &Entry) -> String {
    format!("expected {}, for example {}", entry.expected, entry.example)
}

fn wrong(entry: &Entry, value: &str, remark: &str) -> Problem {
    let value = if entry.secret { MASK.to_owned() } else { format!("{:?}", without_user_info(value)) };
    let remark = if remark.is_empty() { String::new() } else { format!(" ({remark})") };
    Problem::new(entry.name, format!("{value} does not read{remark}; {}", expectation(entry)))
}

/// A value that does not read may still hold a password.
fn without_user_info(value: &str) -> String {
    match (value.find("://"), value.rfind('@')) {
        (Some(scheme), Some(at)) if scheme + 3 <= at => {
            format!("{}{MASK}{}", &value[..scheme + 3], &value[at..])
        }
        _ => value.to_owned(),
    }
}

fn unknown(name: &str) -> Option<Problem> {
    let known = |entry: &Entry| {
        name == entry.name
            || (entry.secret && name.strip_suffix("_FILE").is_some_and(|base| base == entry.name))
    };
    if vars::ALL.iter().any(|var| known(var.entry())) {
        return None;
    }
    let nearest = vars::ALL
        .iter()
        .map(|var| (strsim::damerau_levenshtein(name, var.entry().name), var.entry().name))
        .min()
        .filter(|(distance, known)| distance * 3 <= known.len() - PREFIX.len() + 2);
    let hint = nearest.map_or(String::new(), |(_, known)| format!("; did you mean {known}?"));
    Some(Problem::new(name, format!("unknown variable{hint}")))
}

/// Kubernetes puts variables for every Service into every pod of its
/// namespace: a Service called `seam` or `seam-something` must not be taken
/// for a misspelt setting.
fn is_kubernetes_service(name: &str, value: &str) -> bool {
    let last = |tail: &str| name.ends_with(tail);
    last("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || (last("_PORT") && value.contains("://"))
        || (name.contains("_PORT_")
            && ["_TCP", "_UDP", "_PROTO", "_PORT", "_ADDR"].iter().any(|tail| last(tail)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::handoff::freshness::Lifetime;

    const UPSTREAM: (&str, &str) = ("SEAM_UPSTREAM", "http://127.0.0.1:9/v1");

    fn check(source: &dyn Source, expected: &[&str]) {
        let told = match Config::read(source) {
            Ok(_) => Vec::new(),
            Err(Problems(list)) => list.iter().map(|p| format!("{}: {}", p.name, p.what)).collect(),
        };
        assert_eq!(told, expected);
    }

    #[test]
    fn only_the_upstream_has_to_be_given() {
        check(&[UPSTREAM], &[]);
        check(
            &[("SEAM_UPSTREAM", " ")],
            &[
                "SEAM_UPSTREAM: not set; expected what the client's base URL was: http or https, a host, no user, \
               no query, for example https://api.openai.com/v1",
            ],
        );
    }

    #[test]
    fn every_problem_is_told_at_once() {
        check(
            &[
                UPSTREAM,
                ("SEAM_MODE", "rewrit"),
                ("SEAM_CONTRACT", "ask"),
                ("SEAM_STORE", "redis://:hunter2@cache/nought"),
                ("SEAM_IDLE_TIMOUT", "5s"),
                ("SEAM_COLOUR", "red"),
            ],
            &[
                r#"SEAM_MODE: "rewrit" does not read; expected observe or rewrite, for example observe"#,
                "SEAM_CONTRACT: \"ask\" does not read; expected read, derive or inject, for example inject",
                "SEAM_STORE: *** does not read (invalid database number); expected memory, file:PATH, \
                 or redis://HOST:PORT/DATABASE, or rediss:// for TLS, with USER:PASSWORD@ in front of the host \
                 where needed, for example redis://cache.internal:6379/0",
                "SEAM_COLOUR: unknown variable",
                "SEAM_IDLE_TIMOUT: unknown variable; did you mean SEAM_IDLE_TIMEOUT?",
            ],
        );
    }

    #[test]
    fn a_password_in_the_upstream_is_refused_and_not_repeated() {
        check(
            &[("SEAM_UPSTREAM", "https://user:hunter2@host/v1")],
            &[
                "SEAM_UPSTREAM: \"https://***@host/v1\" does not read (a user or password in it is refused: clients \
               send their own credentials); expected what the client's base URL was: http or https, a host, no \
               user, no query, for example https://api.openai.com/v1",
            ],
        );
    }

    #[test]
    fn the_two_listeners_cannot_share_an_address() {
        check(
            &[UPSTREAM, ("SEAM_LISTEN", "127.0.0.1:1"), ("SEAM_ADMIN_LISTEN", "127.0.0.1:1")],
            &[
                "SEAM_ADMIN_LISTEN: 127.0.0.1:1 is also SEAM_LISTEN: the two listeners need an address of their own, \
               for example 127.0.0.1:8485",
            ],
        );
    }

    #[test]
    fn variables_of_kubernetes_services_are_not_taken_for_settings() {
        check(
            &[
                UPSTREAM,
                ("SEAM_SERVICE_HOST", "10.0.0.1"),
                ("SEAM_SERVICE_PORT_ADMIN", "8485"),
                ("SEAM_PORT", "tcp://10.0.0.1:8484"),
                ("SEAM_REDIS_PORT_6379_TCP_ADDR", "10.0.0.2"),
            ],
            &[],
        );
    }

    #[test]
    fn a_secret_may_come_from_a_file_and_is_never_shown() {
        let path = std::env::temp_dir().join(format!("seam-secret-{}", std::process::id()));
        std::fs::write(&path, "memory\n").unwrap();
        let file = path.to_string_lossy().into_owned();
        let source = [UPSTREAM, ("SEAM_STORE_FILE", file.as_str())];
        check(&source, &[]);
        let store = shown(&source).into_iter().find(|shown| shown.name == "SEAM_STORE").unwrap();
        assert_eq!((store.value.as_str(), store.is_default), ("***", false));
        check(
            &[UPSTREAM, ("SEAM_STORE_FILE", file.as_str()), ("SEAM_STORE", "memory")],
            &["SEAM_STORE_FILE: SEAM_STORE is set as well: give the value or the file, not both"],
        );
        std::fs::remove_file(&path).unwrap();
        check(&[UPSTREAM, ("SEAM_RETENTION_FILE", "/x")], &["SEAM_RETENTION_FILE: unknown variable"]);
    }

    #[test]
    fn freshness_is_inline_or_a_file_or_the_built_in_table() {
        let path = std::env::temp_dir().join(format!("seam-freshness-{}", std::process::id()));
        std::fs::write(&path, "parcel_state=60\n").unwrap();
        let file = path.to_string_lossy().into_owned();
        let lifetime = |value: &str, key: &str| {
            Config::read(&[UPSTREAM, ("SEAM_FRESHNESS", value)]).map(|c| c.freshness.lifetime(key, None))
        };
        assert_eq!(lifetime("a=1", "a"), Ok(Some(Lifetime::Seconds(1))));
        assert_eq!(lifetime(&file, "parcel_state"), Ok(Some(Lifetime::Seconds(60))));
        assert_eq!(lifetime("", "refund_status"), Ok(Some(Lifetime::Seconds(0))));
        std::fs::remove_file(&path).unwrap();
        assert!(lifetime(&file, "parcel_state").is_err());
        assert!(lifetime("a=soon", "a").is_err());
    }
}
