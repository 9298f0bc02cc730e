//! The one table of settings: parsing, `--help`, `config/seam.env.example` and
//! `docs/configuration.md` come from it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderMap, HeaderName};

use super::parse::{self, Kind};
use crate::engine::custody::budget::Prices;
use crate::engine::handoff::freshness::Freshness;
use crate::engine::policy::Enforce;

/// A variable and how its value is read.
#[derive(Debug)]
pub struct Var<T: 'static> {
    /// What people are told about it.
    pub entry: Entry,
    /// How its value is read.
    pub kind: Kind<T>,
}

/// What people are told about a variable.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name.
    pub name: &'static str,
    /// Where it stands in lists.
    pub group: Group,
    /// What holds when it is not set.
    pub default: Fallback,
    /// Whether its value may be shown; a secret may also be given by a file (`NAME_FILE`).
    pub secret: bool,
    /// What it does, one sentence.
    pub about: &'static str,
    /// Why the default is what it is.
    pub reason: &'static str,
    /// What a value looks like.
    pub expected: &'static str,
    /// A value that reads.
    pub example: &'static str,
}

/// What holds when a variable is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// Nothing: it has to be set.
    Required,
    /// The setting is absent.
    Unset,
    /// This value.
    Is(&'static str),
}

/// The groups, in the order in which they are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Addresses and the endpoint.
    Network,
    /// What is done with a transfer.
    Handoff,
    /// How a transfer is told from anything else.
    Detection,
    /// Who holds a run, and what it may spend.
    Custody,
    /// What stays behind the brief.
    Transcript,
    /// What is remembered.
    Memory,
    /// What operators are shown.
    Watching,
    /// Bounds.
    Limits,
    /// Logs and threads.
    Process,
}

impl Group {
    /// The heading of the group.
    pub fn title(self) -> &'static str {
        match self {
            Group::Network => "Where it listens and sends",
            Group::Handoff => "What it does with a transfer",
            Group::Detection => "How it recognises a transfer and who is who",
            Group::Custody => "Who holds a run, and what it may spend",
            Group::Transcript => "What stays behind the brief",
            Group::Memory => "What it remembers",
            Group::Watching => "What it shows to those who run it",
            Group::Limits => "Limits and timeouts",
            Group::Process => "Logs and threads",
        }
    }
}

/// A variable without its type, for lists and checks.
pub trait Setting: Sync {
    /// What people are told.
    fn entry(&self) -> &Entry;
    /// Whether the value reads; an error is a remark, or empty.
    fn check(&self, value: &str) -> Result<(), String>;
}

impl<T> Setting for Var<T> {
    fn entry(&self) -> &Entry {
        &self.entry
    }

    fn check(&self, value: &str) -> Result<(), String> {
        (self.kind.parse)(value).map(drop)
    }
}

impl<T> Var<T> {
    const fn new(
        name: &'static str,
        group: Group,
        kind: Kind<T>,
        default: Fallback,
        about: &'static str,
    ) -> Self {
        let (expected, example) = (kind.expected, kind.example);
        let entry = Entry { name, group, default, secret: false, about, reason: "", expected, example };
        Var { entry, kind }
    }

    const fn because(mut self, reason: &'static str) -> Self {
        self.entry.reason = reason;
        self
    }

    const fn secret(mut self) -> Self {
        self.entry.secret = true;
        self
    }
}

use Fallback::{Is, Required, Unset};
use Group::{Custody, Detection, Handoff, Limits, Memory, Network, Process, Transcript, Watching};

/// Where requests go.
pub static UPSTREAM: Var<parse::BaseUrl> = Var::new(
    "SEAM_UPSTREAM",
    Network,
    parse::BASE_URL,
    Required,
    "The endpoint behind Seam: what the client's base URL was before. Its path is put in front of a request's path unless that begins with it.",
)
.because("There is no sane guess for where your requests and credentials should go.");

/// Where clients connect.
pub static LISTEN: Var<SocketAddr> = Var::new(
    "SEAM_LISTEN",
    Network,
    parse::ADDRESS,
    Is("127.0.0.1:8484"),
    "Where clients connect: set their base URL to http://127.0.0.1:8484/v1.",
)
.because("A sidecar serves the process beside it; whoever reaches this port can use the upstream.");

/// Where health is asked.
pub static ADMIN_LISTEN: Var<SocketAddr> = Var::new(
    "SEAM_ADMIN_LISTEN",
    Network,
    parse::ADDRESS,
    Is("127.0.0.1:8485"),
    "Where /live, /ready, /metrics, /handoffs and the page for people answer.",
)
.because("Apart from the clients' port, so that it can be opened to probes alone.");

/// Roots of trust for the upstream.
pub static UPSTREAM_CA: Var<parse::Roots> = Var::new(
    "SEAM_UPSTREAM_CA",
    Network,
    parse::ROOTS,
    Is("bundled"),
    "Who vouches for an https upstream: the built-in list of Mozilla, the machine's own list, or only the certificates of a PEM file.",
)
.because("The built-in list works in an empty container.");

/// HTTP/2 towards the upstream.
pub static HTTP2: Var<parse::Http2> = Var::new(
    "SEAM_HTTP2",
    Network,
    parse::HTTP2,
    Is("auto"),
    "Whether HTTP/2 is offered to an https upstream.",
)
.because("The upstream chooses; off is for endpoints whose HTTP/2 is at fault.");

/// What the server behind Seam wants of a list.
pub static PROFILE: Var<super::profiles::Server> = Var::new(
    "SEAM_PROFILE",
    Network,
    parse::PROFILE,
    Is("openai"),
    "Which server is behind Seam, where it wants more of a rebuilt list than others: see docs/profiles.md. What every server wants is done for all.",
)
.because("The reference wants nothing that is not done anyway.");

/// What Seam may do to bytes.
pub static MODE: Var<parse::Mode> = Var::new(
    "SEAM_MODE",
    Handoff,
    parse::MODE,
    Is("rewrite"),
    "observe never changes a byte and records what rewrite would have done; rewrite rebuilds the receiver's request.",
)
.because("It is what Seam is for; begin with observe where a change needs proof first.");

/// For how many runs.
pub static REWRITE_PERCENT: Var<u8> = Var::new(
    "SEAM_REWRITE_PERCENT",
    Handoff,
    parse::PERCENT,
    Is("100"),
    "In rewrite mode, for how many runs of a hundred requests are rebuilt; the others are observed. A run stays on its side, and raising the share keeps the runs that are on it.",
)
.because("Begin with 5 and compare the two arms in /metrics where a change needs proof first.");

/// What can change while Seam runs.
pub static LIVE_FILE: Var<PathBuf> = Var::new(
    "SEAM_LIVE_FILE",
    Handoff,
    parse::PATH,
    Unset,
    "A file with lines SEAM_MODE=... and SEAM_REWRITE_PERCENT=... that is read again while Seam runs, every two seconds and at SIGHUP; what it says goes before the variables.",
)
.because("Unset: a change needs a restart.");

/// Where a handoff may come from.
pub static CONTRACT: Var<parse::Contract> = Var::new(
    "SEAM_CONTRACT",
    Handoff,
    parse::CONTRACT,
    Is("derive"),
    "Where a handoff may come from: read takes what the sender declares, derive also fills it by rules, inject also asks the sender for it in the transfer tool.",
)
.because("Most senders declare nothing; a derived brief is better than none.");

/// What a sender is asked for.
pub static CONTRACT_FIELDS: Var<parse::ContractFields> = Var::new(
    "SEAM_CONTRACT_FIELDS",
    Handoff,
    parse::CONTRACT_FIELDS,
    Is("core"),
    "With SEAM_CONTRACT=inject, which fields of the contract a sender is asked for.",
)
.because("Every field costs tokens in each of the sender's requests, and silence before each transfer.");

/// How often a sender is corrected.
pub static CORRECTIONS: Var<u32> = Var::new(
    "SEAM_CORRECTIONS",
    Handoff,
    parse::TIMES,
    Is("1"),
    "How often a sender is told what is wrong with its transfer and asked again, within one of its requests.",
)
.because("Who does not learn from a full list of faults does not learn from reading it twice.");

/// How long corrections may take.
pub static CORRECTION_TIMEOUT: Var<Duration> = Var::new(
    "SEAM_CORRECTION_TIMEOUT",
    Handoff,
    parse::DURATION,
    Is("20s"),
    "How long all corrections of one request may take together.",
)
.because("The customer waits meanwhile.");

/// The client's own way to hand in a contract.
pub static SUBMIT_TOOL: Var<Option<String>> = Var::new(
    "SEAM_SUBMIT_TOOL",
    Handoff,
    parse::TOOL,
    Is("submit_handoff"),
    "A tool of the client's own whose call is read as the contract of the transfer that follows it.",
)
.because("It is what such tools are called.");

/// What happens when Seam cannot do its part.
pub static ON_FAILURE: Var<parse::OnFailure> = Var::new(
    "SEAM_ON_FAILURE",
    Handoff,
    parse::ON_FAILURE,
    Is("open"),
    "What happens to a request when Seam cannot do its part (store down, body over the limit or unreadable, a bug): open forwards the original bytes, closed answers with an error.",
)
.because("A handoff without a brief is what you had before; a conversation that stops is worse.");

/// When facts age.
pub static FRESHNESS: Var<Freshness> = Var::new(
    "SEAM_FRESHNESS",
    Handoff,
    parse::FRESHNESS,
    Unset,
    "For how many seconds a fact is fresh, by patterns over its key; the rules, or the path of a file of them, in place of the built-in ones.",
)
.because("Unset: the rules of config/freshness.conf, each with its reason. A key without a rule does not age.");

/// What refuses.
pub static ENFORCE: Var<Enforce> = Var::new(
    "SEAM_ENFORCE",
    Custody,
    parse::ENFORCE,
    Unset,
    "What is refused instead of only found: contract (a handoff that was asked for and is empty, filler or of another form), facts (what it claims is not borne out), hops (a transfer to oneself, to nobody on offer, beside another one, over a limit or in a circle); these go back to the sender first, then to a terminal destination. And custody (a former holder's requests), budget (requests of a run that has spent what it may).",
)
.because("Unset: nothing. Look at the findings first, then enforce one after the other.");

/// Transfers since the customer spoke.
pub static HOPS: Var<usize> = Var::new(
    "SEAM_HOPS",
    Custody,
    parse::COUNT,
    Unset,
    "How many transfers a run may have between two turns of the customer; more are a finding. If it is set, receivers read what is left.",
)
.because("Unset: 12. Teams that work pass a conversation two or three times; a dozen without a word of the customer is a cycle.");

/// Transfers in all.
pub static RUN_HOPS: Var<usize> = Var::new(
    "SEAM_RUN_HOPS",
    Custody,
    parse::COUNT,
    Is("100"),
    "How many transfers a run may have in all; more are a finding.",
)
.because("A chat of forty turns with a transfer or two each stays below it.");

/// Tokens of a run.
pub static BUDGET_TOKENS: Var<usize> = Var::new(
    "SEAM_BUDGET_TOKENS",
    Custody,
    parse::COUNT,
    Unset,
    "How many tokens a run may spend, in and out, as upstream's usage says; receivers read what is left.",
)
.because("What a run may spend is yours to say.");

/// Money of a run.
pub static BUDGET_SPEND: Var<u64> = Var::new(
    "SEAM_BUDGET_SPEND",
    Custody,
    parse::MONEY,
    Unset,
    "How much money a run may spend by SEAM_PRICES_FILE, in its currency; receivers read what is left.",
)
.because("What a run may spend is yours to say.");

/// Prices of models.
pub static PRICES_FILE: Var<Prices> = Var::new(
    "SEAM_PRICES_FILE",
    Custody,
    parse::PRICES,
    Unset,
    "A table of what models cost: a line `currency USD`, then `model-pattern input cached output` a million tokens.",
)
.because("Prices change too often to be built in.");

/// Time of a run.
pub static BUDGET_TIME: Var<Duration> = Var::new(
    "SEAM_BUDGET_TIME",
    Custody,
    parse::DURATION,
    Unset,
    "How long a run may take from its first exchange; receivers read the deadline.",
)
.because("Most conversations have none.");

/// The operator's own rules.
pub static POLICY_FILE: Var<Vec<String>> = Var::new(
    "SEAM_POLICY_FILE",
    Custody,
    parse::RULES,
    Unset,
    "Rules that bind every receiver, one a line; they stand in every brief, word for word.",
)
.because("Only what a customer said or what stands here binds; what a model states is carried as claimed.");

/// Names of transfer tools.
pub static TRANSFER_TOOLS: Var<Vec<String>> = Var::new(
    "SEAM_TRANSFER_TOOLS",
    Detection,
    parse::PATTERNS,
    Unset,
    "Tools that are transfers whatever their parameters are, by name, beside those that Seam knows by itself.",
)
.because("The frameworks' own names are known, and taken for transfers where the parameters are a transfer's too.");

/// Names that are no transfer tools.
pub static NOT_TRANSFER: Var<Vec<String>> = Var::new(
    "SEAM_NOT_TRANSFER",
    Detection,
    parse::PATTERNS,
    Unset,
    "Tools that are never transfers, whatever they are called.",
)
.because("Nothing to exclude is known beforehand.");

/// Destinations without a receiver here.
pub static TERMINAL: Var<Vec<String>> = Var::new(
    "SEAM_TERMINAL",
    Detection,
    parse::PATTERNS,
    Is("transfer_to_human*,escalate_to_*"),
    "Transfers that end the run here, because no agent behind Seam receives them.",
)
.because("People and queues do not ask an LLM endpoint next.");

/// Agents that are never judged.
pub static OBSERVERS: Var<Vec<String>> = Var::new(
    "SEAM_OBSERVERS",
    Detection,
    parse::PATTERNS,
    Unset,
    "Agents beside the run (guardrails, title makers, judges), by the name in SEAM_AGENT_HEADER; they never hold it.",
)
.because("They are told by their requests; this is for those that are not.");

/// Whose records these are.
pub static TENANT_HEADER: Var<HeaderName> = Var::new(
    "SEAM_TENANT_HEADER",
    Detection,
    parse::HEADER,
    Unset,
    "A request header that names the tenant; records of different tenants never meet.",
)
.because("A hash of the credential serves, unless tokens rotate during a conversation.");

/// Which run this is.
pub static RUN_HEADER: Var<HeaderName> = Var::new(
    "SEAM_RUN_HEADER",
    Detection,
    parse::HEADER,
    Unset,
    "A request header that names the run (one conversation over all its agents).",
)
.because("The run is recognised from the conversation itself; a name settles it.");

/// Which agent this is.
pub static AGENT_HEADER: Var<HeaderName> =
    Var::new("SEAM_AGENT_HEADER", Detection, parse::HEADER, Unset, "A request header that names the agent.")
        .because("Agents are told by their instructions and tools; a name settles it.");

/// The transcript filter.
pub static TRANSCRIPT: Var<parse::Transcript> = Var::new(
    "SEAM_TRANSCRIPT",
    Transcript,
    parse::TRANSCRIPT,
    Is("window"),
    "What stays of the conversation before a transfer: window (all of it up to a bound, then the opening turn and the last ones), full, dialogue (no tool calls), none (the opening and the last customer turn).",
)
.because("Short conversations lose nothing, long ones do not fill the receiver's context.");

/// The window's bound.
pub static TRANSCRIPT_TOKENS: Var<usize> = Var::new(
    "SEAM_TRANSCRIPT_TOKENS",
    Transcript,
    parse::COUNT,
    Is("15000"),
    "The bound of the window, in tokens estimated at 4 bytes of text each.",
)
.because("Real conversations seldom pass it; it costs an eighth of a 128k context.");

/// The window's turns.
pub static TRANSCRIPT_TURNS: Var<usize> = Var::new(
    "SEAM_TRANSCRIPT_TURNS",
    Transcript,
    parse::COUNT,
    Is("4"),
    "How many of the last turns stay when the window is passed.",
)
.because("What was just said is what the customer refers to.");

/// One result's bound.
pub static RESULT_BYTES: Var<usize> = Var::new(
    "SEAM_RESULT_BYTES",
    Transcript,
    parse::BYTES,
    Is("64KiB"),
    "A tool result over this size keeps its head and tail only; facts are still checked against all of it.",
)
.because("One page dump must not push everything else out of the window.");

/// Where records are kept.
pub static STORE: Var<parse::Store> = Var::new(
    "SEAM_STORE",
    Memory,
    parse::STORE,
    Is("memory"),
    "Where records of transfers are kept: in memory, lost with the process; in a file, which survives it and serves one process; or in a Redis server, which replicas share.",
)
.because("One replica needs nothing else.")
.secret();

/// Roots of trust for the store.
pub static STORE_CA: Var<parse::Roots> = Var::new(
    "SEAM_STORE_CA",
    Memory,
    parse::ROOTS,
    Is("bundled"),
    "Who vouches for a rediss store: the built-in list of Mozilla, the machine's own list, or only the certificates of a PEM file.",
)
.because("The built-in list works in an empty container; a server of your own usually needs a file.");

/// How long the store is waited for.
pub static STORE_TIMEOUT: Var<Duration> = Var::new(
    "SEAM_STORE_TIMEOUT",
    Memory,
    parse::DURATION,
    Is("250ms"),
    "How long an exchange waits for a store in a file or a server, before its request goes on and again before its reply ends; beyond that it does without the store.",
)
.because("A store nearby answers in a few milliseconds; an agent does not notice a quarter of a second beside a model's answer.");

/// The store's bound.
pub static STORE_BYTES: Var<usize> = Var::new(
    "SEAM_STORE_BYTES",
    Memory,
    parse::BYTES,
    Is("64MiB"),
    "How much the store in memory or in a file may hold; over that the least used goes, of a file what was written longest ago.",
)
.because("Thousands of conversations, and a sidecar stays small.");

/// How long records live.
pub static RETENTION: Var<Duration> = Var::new(
    "SEAM_RETENTION",
    Memory,
    parse::DURATION,
    Is("24h"),
    "How long a record is kept after it was last used.",
)
.because("A conversation that rests for a day is over.");

/// How long a transfer waits for its receiver.
pub static PENDING_TTL: Var<Duration> = Var::new(
    "SEAM_PENDING_TTL",
    Memory,
    parse::DURATION,
    Is("5m"),
    "How long a transfer waits for its receiver's first request before it is forgotten.",
)
.because("Frameworks go on within seconds; a later request is another story.");

/// Who may see handoffs.
pub static ADMIN_TOKEN: Var<parse::Secret> = Var::new(
    "SEAM_ADMIN_TOKEN",
    Watching,
    parse::TOKEN,
    Unset,
    "What has to be shown (authorization: Bearer ..., in a browser as password) to see handoffs on the admin listener, and to delete them.",
)
.because("Unset, they are there for loopback alone, and for everybody else they do not exist (404).")
.secret();

/// Whether operators see content.
pub static ADMIN_CONTENT: Var<bool> = Var::new(
    "SEAM_ADMIN_CONTENT",
    Watching,
    parse::SWITCH,
    Is("off"),
    "Whether the admin listener shows what was said: values of facts, quotes, texts, briefs.",
)
.because("Ids, names, sizes and outcomes are enough to run it; conversations are the customers'.");

/// Where spans go.
pub static TRACE_ENDPOINT: Var<parse::BaseUrl> = Var::new(
    "SEAM_TRACE_ENDPOINT",
    Watching,
    parse::OTLP,
    Unset,
    "An OTLP receiver (http/protobuf) that gets one span a request and one a transfer; /v1/traces is put behind its path. See docs/traces.md.",
)
.because("Unset: no traces.");

/// What a receiver of spans wants to see.
pub static TRACE_HEADERS: Var<HeaderMap> = Var::new(
    "SEAM_TRACE_HEADERS",
    Watching,
    parse::HEADERS,
    Unset,
    "Headers that are sent to the receiver of traces, such as its key.",
)
.because("A collector beside Seam wants none.")
.secret();

/// Roots of trust for the receiver of spans.
pub static TRACE_CA: Var<parse::Roots> = Var::new(
    "SEAM_TRACE_CA",
    Watching,
    parse::ROOTS,
    Is("bundled"),
    "Who vouches for an https receiver of traces: the built-in list of Mozilla, the machine's own list, or only the certificates of a PEM file.",
)
.because("The built-in list works in an empty container.");

/// What is done with the W3C context.
pub static TRACE_CONTEXT: Var<parse::TraceContext> = Var::new(
    "SEAM_TRACE_CONTEXT",
    Watching,
    parse::TRACE_CONTEXT,
    Is("on"),
    "With SEAM_TRACE_ENDPOINT, what is done with traceparent: on continues a client's and gives the upstream that of Seam's span, in continues it and sends it up as it came, off does not read it.",
)
.because("A trace that is whole says most; choose in where the upstream refuses headers that it does not know.");

/// Whether spans hold what was said.
pub static TRACE_CONTENT: Var<bool> = Var::new(
    "SEAM_TRACE_CONTENT",
    Watching,
    parse::SWITCH,
    Is("off"),
    "Whether spans hold what was said: arguments of transfer calls, briefs.",
)
.because("Traces are kept elsewhere, and read by many; conversations are the customers'.");

/// The largest inspected request.
pub static INSPECT_LIMIT: Var<usize> = Var::new(
    "SEAM_INSPECT_LIMIT",
    Limits,
    parse::BYTES,
    Is("32MiB"),
    "The largest request body that is read; a larger one is streamed on unread.",
)
.because("Larger than any conversation of text; what is larger is images.");

/// The largest watched reply.
pub static REPLY_LIMIT: Var<usize> = Var::new(
    "SEAM_REPLY_LIMIT",
    Limits,
    parse::BYTES,
    Is("8MiB"),
    "How much of a watched reply is kept for reading; beyond it the reply passes unread.",
)
.because("Many times the longest answer of a model.");

/// How much of a held reply may wait.
pub static HOLD_BYTES: Var<usize> = Var::new(
    "SEAM_HOLD_BYTES",
    Limits,
    parse::BYTES,
    Is("1MiB"),
    "How many bytes of a stream may wait for the end of its transfer call; beyond it SEAM_ON_FAILURE decides.",
)
.because("A contract of 500 tokens takes about 100 KiB of a stream, one event a token.");

/// How long a held call may wait.
pub static HOLD_TIMEOUT: Var<Duration> = Var::new(
    "SEAM_HOLD_TIMEOUT",
    Limits,
    parse::DURATION,
    Is("2m"),
    "How long a transfer call may wait for its end; beyond it SEAM_ON_FAILURE decides.",
)
.because("A slow local model writes 5 tokens a second: a long contract takes it 100 seconds.");

/// How long a connection may take.
pub static CONNECT_TIMEOUT: Var<Duration> = Var::new(
    "SEAM_CONNECT_TIMEOUT",
    Limits,
    parse::DURATION,
    Is("5s"),
    "How long connecting to the upstream may take, TLS included.",
)
.because("A healthy endpoint answers in well under a second.");

/// How long nothing may come.
pub static IDLE_TIMEOUT: Var<Duration> = Var::new(
    "SEAM_IDLE_TIMEOUT",
    Limits,
    parse::DURATION,
    Is("10m"),
    "How long either side may send nothing while the other waits; there is no limit on the whole of an exchange.",
)
.because("The OpenAI SDKs wait 10 minutes; Seam must not be the one to give up first.");

/// How long an idle connection is kept.
pub static POOL_IDLE_TIMEOUT: Var<Duration> = Var::new(
    "SEAM_POOL_IDLE_TIMEOUT",
    Limits,
    parse::DURATION,
    Is("30s"),
    "How long an unused connection to the upstream is kept for the next request.",
)
.because("Long enough for the turns of an agent, shorter than most servers and balancers wait.");

/// How long streams may finish.
pub static DRAIN_TIMEOUT: Var<Duration> = Var::new(
    "SEAM_DRAIN_TIMEOUT",
    Limits,
    parse::DURATION,
    Is("25s"),
    "How long running exchanges may take to finish after SIGTERM.",
)
.because("Kubernetes kills after 30 seconds.");

/// How many clients.
pub static MAX_CONNECTIONS: Var<usize> = Var::new(
    "SEAM_MAX_CONNECTIONS",
    Limits,
    parse::COUNT,
    Is("4096"),
    "How many client connections are served at once; more wait to be accepted.",
)
.because("Far above what one agent process opens, below what exhausts memory.");

/// What is logged.
pub static LOG: Var<String> = Var::new(
    "SEAM_LOG",
    Process,
    parse::LOG_FILTER,
    Is("info"),
    "What is logged, by level and module; never content, never credentials.",
)
.because("One line at the start, one for what goes wrong.");

/// How logs look.
pub static LOG_FORMAT: Var<parse::LogFormat> = Var::new(
    "SEAM_LOG_FORMAT",
    Process,
    parse::LOG_FORMAT,
    Is("plain"),
    "plain for people, json for machines.",
)
.because("The first to read it is a person.");

/// How many threads.
pub static THREADS: Var<usize> = Var::new(
    "SEAM_THREADS",
    Process,
    parse::THREADS,
    Is("1"),
    "How many threads serve; auto is one a core, at most 4.",
)
.because(
    "One thread costs the least for each request and carries thousands a second; more are for many long conversations \
     that are rewritten at once.",
);

/// Every variable, group by group, in the order of the lists.
pub static ALL: &[&dyn Setting] = &[
    &UPSTREAM,
    &LISTEN,
    &ADMIN_LISTEN,
    &UPSTREAM_CA,
    &HTTP2,
    &PROFILE,
    &MODE,
    &REWRITE_PERCENT,
    &LIVE_FILE,
    &CONTRACT,
    &CONTRACT_FIELDS,
    &CORRECTIONS,
    &CORRECTION_TIMEOUT,
    &SUBMIT_TOOL,
    &ON_FAILURE,
    &FRESHNESS,
    &TRANSFER_TOOLS,
    &NOT_TRANSFER,
    &TERMINAL,
    &OBSERVERS,
    &TENANT_HEADER,
    &RUN_HEADER,
    &AGENT_HEADER,
    &ENFORCE,
    &HOPS,
    &RUN_HOPS,
    &BUDGET_TOKENS,
    &BUDGET_SPEND,
    &PRICES_FILE,
    &BUDGET_TIME,
    &POLICY_FILE,
    &TRANSCRIPT,
    &TRANSCRIPT_TOKENS,
    &TRANSCRIPT_TURNS,
    &RESULT_BYTES,
    &STORE,
    &STORE_CA,
    &STORE_TIMEOUT,
    &STORE_BYTES,
    &RETENTION,
    &PENDING_TTL,
    &ADMIN_TOKEN,
    &ADMIN_CONTENT,
    &TRACE_ENDPOINT,
    &TRACE_HEADERS,
    &TRACE_CA,
    &TRACE_CONTEXT,
    &TRACE_CONTENT,
    &INSPECT_LIMIT,
    &REPLY_LIMIT,
    &HOLD_BYTES,
    &HOLD_TIMEOUT,
    &CONNECT_TIMEOUT,
    &IDLE_TIMEOUT,
    &POOL_IDLE_TIMEOUT,
    &DRAIN_TIMEOUT,
    &MAX_CONNECTIONS,
    &LOG,
    &LOG_FORMAT,
    &THREADS,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_is_listed_once_in_the_order_of_the_groups() {
        let declared = include_str!("vars.rs").lines().filter(|line| line.starts_with("pub static ")).count();
        assert_eq!(ALL.len() + 1, declared, "a variable is declared and not listed in ALL");
        assert!(ALL.is_sorted_by_key(|var| var.entry().group));
        let names: std::collections::BTreeSet<_> = ALL.iter().map(|var| var.entry().name).collect();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn every_default_and_every_example_reads() {
        for var in ALL {
            let entry = var.entry();
            assert!(entry.name.starts_with("SEAM_"), "{}", entry.name);
            if let Is(default) = entry.default {
                assert_eq!(var.check(default), Ok(()), "the default of {}", entry.name);
            }
            assert_eq!(var.check(entry.example), Ok(()), "the example of {}", entry.name);
            assert!(entry.about.ends_with('.') && entry.reason.ends_with('.'), "{}", entry.name);
        }
    }
}
