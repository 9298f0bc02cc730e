//! What reads well and cannot work, or does nothing, or is likely not meant.

use std::net::IpAddr;
use std::time::Duration;

use crate::config::{BaseUrl, Config, Mode, OnFailure, Roots, Shown, Store, Transcript};

/// What settings cannot say about the place where Seam runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Deployment {
    /// How many processes serve the same clients.
    pub(super) replicas: usize,
    /// Whether a client's credential changes during a conversation.
    pub(super) tokens_rotate: bool,
}

/// Kubernetes' own `terminationGracePeriodSeconds`, with a second to spare for the farewell.
const GRACE: Duration = Duration::from_secs(29);

/// All of them: the variable, and what is wrong with it.
pub(super) fn warnings(config: &Config, shown: &[Shown], place: Deployment) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut warn = |name: &'static str, what: String| found.push((name, what));
    exposure(config, &mut warn);
    memory(config, place, &mut warn);
    failure(config, &mut warn);
    without_effect(config, shown, &mut warn);
    found
}

type Warn<'w> = dyn FnMut(&'static str, String) + 'w;

fn exposure(config: &Config, warn: &mut Warn<'_>) {
    if !config.listen.ip().is_loopback() {
        let what =
            format!("whoever reaches {} can use the upstream; it is meant for loopback", config.listen);
        warn("SEAM_LISTEN", what);
    }
    if !config.admin_listen.ip().is_loopback() && config.admin_token.is_none() {
        let what = format!(
            "on {} without SEAM_ADMIN_TOKEN /handoffs, /passes and deletion answer 404 to all but loopback; /live, \
             /ready and /metrics are open to whoever reaches it",
            config.admin_listen
        );
        warn("SEAM_ADMIN_LISTEN", what);
    }
    if config.admin_content {
        let what = "whoever may see /handoffs reads what customers said".to_owned();
        warn("SEAM_ADMIN_CONTENT", what);
    }
    if !config.upstream.tls && !is_near(&config.upstream.host) {
        let what = format!(
            "{} is not TLS: credentials and conversations cross the network as they are",
            config.upstream
        );
        warn("SEAM_UPSTREAM", what);
    }
    if leads_back(&config.upstream, config) {
        let what =
            format!("{} is where Seam itself listens: requests would go round in a circle", config.upstream);
        warn("SEAM_UPSTREAM", what);
    }
    if let Some(receiver) = &config.trace_endpoint
        && !receiver.tls
        && !is_near(&receiver.host)
        && (config.trace_content || !config.trace_headers.is_empty())
    {
        let what =
            format!("{receiver} is not TLS: its key, and what spans hold, cross the network as they are");
        warn("SEAM_TRACE_ENDPOINT", what);
    }
    if let Store::Redis(server) = &config.store
        && !server.tls
        && !is_near(&server.host)
    {
        warn("SEAM_STORE", format!("{server} is not TLS: conversations cross the network as they are"));
    }
}

fn memory(config: &Config, place: Deployment, warn: &mut Warn<'_>) {
    if place.replicas > 1 {
        let what = match &config.store {
            Store::Memory => Some("each replica remembers for itself"),
            Store::File(_) => Some("a file serves one process"),
            Store::Redis(_) => None,
        };
        if let Some(why) = what {
            let count = place.replicas;
            let what = format!(
                "{why}: with {count} replicas a receiver whose request reaches another one than its sender's gets a \
                 brief without what was remembered, or none; use redis:// or rediss://"
            );
            warn("SEAM_STORE", what);
        }
    }
    if place.tokens_rotate && config.tenant_header.is_none() {
        let what = "records are kept apart by a hash of the credential: once a token has changed, its run is not found \
                    again; name a header that stays the same"
            .to_owned();
        warn("SEAM_TENANT_HEADER", what);
    }
    if config.pending_ttl > config.retention {
        let what = "a run is forgotten before its pending transfers expire".to_owned();
        warn("SEAM_RETENTION", what);
    }
}

fn failure(config: &Config, warn: &mut Warn<'_>) {
    if config.on_failure == OnFailure::Closed && config.mode == Mode::Observe {
        let what = "observe changes no byte, and closed still fails requests when Seam cannot do its part"
            .to_owned();
        warn("SEAM_ON_FAILURE", what);
    }
    if config.drain_timeout > GRACE {
        let what =
            "Kubernetes kills after 30 seconds unless terminationGracePeriodSeconds is longer than this"
                .to_owned();
        warn("SEAM_DRAIN_TIMEOUT", what);
    }
}

/// Settings that were given and change nothing beside the others.
fn without_effect(config: &Config, shown: &[Shown], warn: &mut Warn<'_>) {
    let given = |name: &str| shown.iter().any(|shown| shown.name == name && !shown.is_default);
    let enforces = config.enforce != crate::engine::policy::Enforce::default();
    let has_budget =
        config.budget_tokens.is_some() || config.budget_spend.is_some() || config.budget_time.is_some();
    let tls_store = matches!(&config.store, Store::Redis(server) if server.tls);
    let windowed = config.transcript == Transcript::Window;
    let untraced = config.trace_endpoint.is_none();
    let no_traces = "no effect: SEAM_TRACE_ENDPOINT is not set";
    let cases: [(&'static str, bool, &str); 16] = [
        (
            "SEAM_REWRITE_PERCENT",
            config.mode == Mode::Observe,
            "no effect with SEAM_MODE=observe: nothing is rebuilt",
        ),
        ("SEAM_REWRITE_PERCENT", config.rewrite_percent == 0, "0 rebuilds nothing, as SEAM_MODE=observe"),
        (
            "SEAM_ENFORCE",
            enforces && config.mode == Mode::Observe,
            "no effect with SEAM_MODE=observe: it is counted only",
        ),
        ("SEAM_ENFORCE", config.enforce.budget && !has_budget, "no budget is set that could be enforced"),
        ("SEAM_BUDGET_SPEND", !given("SEAM_PRICES_FILE"), "no effect without prices: set SEAM_PRICES_FILE"),
        (
            "SEAM_OBSERVERS",
            config.agent_header.is_none(),
            "no effect without the names: set SEAM_AGENT_HEADER",
        ),
        ("SEAM_TRANSCRIPT_TOKENS", !windowed, "no effect: SEAM_TRANSCRIPT is not window"),
        ("SEAM_TRANSCRIPT_TURNS", !windowed, "no effect: SEAM_TRANSCRIPT is not window"),
        ("SEAM_UPSTREAM_CA", !config.upstream.tls, "no effect: the upstream is not https"),
        ("SEAM_HTTP2", !config.upstream.tls, "no effect: HTTP/2 is only spoken to an https upstream"),
        ("SEAM_TRACE_HEADERS", untraced, no_traces),
        ("SEAM_TRACE_CA", untraced, no_traces),
        ("SEAM_TRACE_CONTEXT", untraced, no_traces),
        ("SEAM_TRACE_CONTENT", untraced, no_traces),
        ("SEAM_STORE_CA", !tls_store, "no effect: the store is not rediss"),
        (
            "SEAM_STORE_BYTES",
            matches!(config.store, Store::Redis(_)),
            "no effect: a Redis server is bounded by its own maxmemory",
        ),
    ];
    for (name, applies, what) in cases {
        if applies && given(name) {
            warn(name, what.to_owned());
        }
    }
    if let Roots::File(path) = &config.upstream_ca
        && !path.exists()
    {
        warn("SEAM_UPSTREAM_CA", format!("{} is not there", path.display()));
    }
}

/// Whether what is sent to a host stays on this machine.
fn is_near(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn leads_back(upstream: &BaseUrl, config: &Config) -> bool {
    let own = |address: &std::net::SocketAddr| {
        let same_host = upstream.host.parse::<IpAddr>().is_ok_and(|host| host == address.ip())
            || (is_near(&upstream.host) && (address.ip().is_loopback() || address.ip().is_unspecified()));
        same_host && address.port() == upstream.port
    };
    own(&config.listen) || own(&config.admin_listen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    const ONE: Deployment = Deployment { replicas: 1, tokens_rotate: false };

    fn check(settings: &[(&str, &str)], place: Deployment, expected: &[&str]) {
        let mut source: Vec<(String, String)> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        if !settings.iter().any(|(name, _)| *name == "SEAM_UPSTREAM") {
            source.push(("SEAM_UPSTREAM".into(), "https://api.example/v1".into()));
        }
        let config = Config::read(&source).expect("they read");
        let found = warnings(&config, &config::shown(&source), place);
        let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, expected, "{settings:?}: {found:?}");
    }

    #[test]
    fn what_is_usual_is_no_warning() {
        check(&[], ONE, &[]);
        check(&[("SEAM_UPSTREAM", "http://127.0.0.1:8000/v1")], ONE, &[]);
        check(
            &[("SEAM_STORE", "redis://127.0.0.1/0")],
            Deployment { replicas: 3, tokens_rotate: false },
            &[],
        );
        check(&[("SEAM_TENANT_HEADER", "x-tenant")], Deployment { replicas: 1, tokens_rotate: true }, &[]);
    }

    #[test]
    fn replicas_need_a_store_that_they_share() {
        let three = Deployment { replicas: 3, tokens_rotate: false };
        check(&[], three, &["SEAM_STORE"]);
        check(&[("SEAM_STORE", "file:/var/lib/seam/records")], three, &["SEAM_STORE"]);
    }

    #[test]
    fn rotating_tokens_need_a_name_for_the_tenant() {
        check(&[], Deployment { replicas: 1, tokens_rotate: true }, &["SEAM_TENANT_HEADER"]);
    }

    #[test]
    fn what_is_open_to_others_is_told() {
        check(&[("SEAM_LISTEN", "0.0.0.0:8484")], ONE, &["SEAM_LISTEN"]);
        check(&[("SEAM_ADMIN_LISTEN", "0.0.0.0:8485")], ONE, &["SEAM_ADMIN_LISTEN"]);
        let token = ("SEAM_ADMIN_TOKEN", "a-token-of-some-length");
        check(&[("SEAM_ADMIN_LISTEN", "0.0.0.0:8485"), token], ONE, &[]);
        check(&[("SEAM_UPSTREAM", "http://llm.internal/v1")], ONE, &["SEAM_UPSTREAM"]);
        check(&[("SEAM_STORE", "redis://cache")], ONE, &["SEAM_STORE"]);
        check(&[("SEAM_ADMIN_CONTENT", "on")], ONE, &["SEAM_ADMIN_CONTENT"]);
        let traces = ("SEAM_TRACE_ENDPOINT", "http://collector:4318");
        check(&[traces], ONE, &[]);
        check(&[traces, ("SEAM_TRACE_HEADERS", "x-key=a")], ONE, &["SEAM_TRACE_ENDPOINT"]);
    }

    #[test]
    fn an_upstream_that_is_seam_itself_is_a_circle() {
        check(&[("SEAM_UPSTREAM", "http://127.0.0.1:8484/v1")], ONE, &["SEAM_UPSTREAM"]);
        check(&[("SEAM_UPSTREAM", "http://localhost:8485/v1")], ONE, &["SEAM_UPSTREAM"]);
    }

    #[test]
    fn what_changes_nothing_is_told() {
        check(&[("SEAM_MODE", "observe"), ("SEAM_REWRITE_PERCENT", "5")], ONE, &["SEAM_REWRITE_PERCENT"]);
        check(&[("SEAM_ENFORCE", "budget")], ONE, &["SEAM_ENFORCE"]);
        check(&[("SEAM_BUDGET_SPEND", "1.50")], ONE, &["SEAM_BUDGET_SPEND"]);
        check(&[("SEAM_OBSERVERS", "guard*")], ONE, &["SEAM_OBSERVERS"]);
        check(
            &[("SEAM_TRANSCRIPT", "none"), ("SEAM_TRANSCRIPT_TURNS", "2")],
            ONE,
            &["SEAM_TRANSCRIPT_TURNS"],
        );
        check(&[("SEAM_MODE", "observe"), ("SEAM_ON_FAILURE", "closed")], ONE, &["SEAM_ON_FAILURE"]);
        check(&[("SEAM_DRAIN_TIMEOUT", "60s")], ONE, &["SEAM_DRAIN_TIMEOUT"]);
        check(&[("SEAM_RETENTION", "1m")], ONE, &["SEAM_RETENTION"]);
        check(&[("SEAM_TRACE_CONTENT", "on")], ONE, &["SEAM_TRACE_CONTENT"]);
    }
}
