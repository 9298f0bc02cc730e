//! The one table of metrics: `/metrics` and `docs/metrics.md` come from it.
//! Every label is a closed list, so that no traffic can add a series.

use std::fmt::Write as _;

use super::closed::{Closed, closed};
use super::family::{BYTES, Counter, Gauge, HOPS, Histogram, LONG_SECONDS, SECONDS, Series, TOKENS};
use super::{Event, Failed, Passed};
use crate::engine::event::Code;
use crate::engine::handoff::verify::{Age, Outcome};
use crate::engine::record::{Origin, State};
use crate::engine::ruling::Check;
use crate::engine::signal::Sign;
use crate::store::StoreError;

closed! {
    /// What of a conversation is read by a receiver.
    pub enum Arm {
        /// The rebuilt request.
        Rewrite = "rewrite",
        /// The request as the client sent it; the brief was made in the shadow.
        Observe = "observe",
    }
}

closed! {
    /// The two sides of a rebuilt request.
    pub enum Side {
        /// As the client sent it.
        Before = "before",
        /// As it goes up, or would.
        After = "after",
    }
}

closed! {
    /// Tokens that an upstream reports.
    pub enum Spent {
        /// Read, cached ones included where the upstream includes them.
        Input = "input",
        /// Read from the prompt cache.
        CacheRead = "cache_read",
        /// Written to the prompt cache.
        CacheWrite = "cache_write",
        /// Written by the model.
        Output = "output",
    }
}

closed! {
    /// Whether a request went up with a brief.
    pub enum Brief {
        /// It did.
        With = "with",
        /// It did not.
        Without = "without",
    }
}

closed! {
    /// What became of a value of a brief.
    pub enum Value {
        /// It stands in a brief.
        Told = "told",
        /// A reply of the receiver holds it; counted once.
        Used = "used",
    }
}

closed! {
    /// A field of the contract.
    pub enum Field {
        /// What the receiver must do.
        Task = "task",
        /// Why the run moves.
        Reason = "reason",
        /// Facts.
        Established = "established",
        /// What must be kept to.
        Constraints = "constraints",
        /// What was decided.
        Decisions = "decisions",
        /// What could not be settled.
        OpenQuestions = "open_questions",
        /// What is left to do.
        Remaining = "remaining",
        /// What ends the task.
        DoneWhen = "done_when",
        /// What ends the run.
        StopConditions = "stop_conditions",
        /// What is understood.
        Context = "context",
        /// What was promised.
        Commitments = "commitments",
        /// Dead ends.
        Tried = "tried",
        /// References.
        Artifacts = "artifacts",
        /// Anything else.
        Other = "other",
    }
}

closed! {
    /// What can be enforced, and so what a refusal rests on.
    pub enum Rule {
        /// The handoff's shape: empty, filler, not as asked.
        Contract = "contract",
        /// A fact that the run does not bear out.
        Facts = "facts",
        /// Limits, cycles, self, unknown destinations.
        Hops = "hops",
        /// A former holder that goes on.
        Custody = "custody",
        /// What the run may spend.
        Budget = "budget",
    }
}

closed! {
    /// A part of Seam's own work on an exchange.
    pub enum Part {
        /// From the whole request to what goes up, the store included.
        Request = "request",
        /// What the end of a watched reply waits for, the store included.
        ReplyEnd = "reply_end",
    }
}

closed! {
    /// What a store is asked.
    pub enum Call {
        /// To look up which runs fit.
        Find = "find",
        /// To read values.
        Read = "read",
        /// To write.
        Write = "write",
        /// To list.
        List = "list",
    }
}

closed! {
    /// Why a store call came to nothing.
    pub enum Why {
        /// Somebody else wrote in between; it is tried again.
        Conflict = "conflict",
        /// A value is larger than any store takes.
        TooLarge = "too_large",
        /// No answer in time.
        TimedOut = "timed_out",
        /// It cannot be reached.
        Unreachable = "unreachable",
        /// It failed lately and is left alone for a moment.
        Resting = "resting",
        /// It answered, and cannot do it.
        Failed = "failed",
    }
}

closed! {
    /// How far an exchange was when it failed.
    pub enum Stage {
        /// The client got the failure as a reply.
        BeforeHead = "before_head",
        /// The reply's head was out.
        InReply = "in_reply",
    }
}

closed! {
    /// The class of an upstream's status.
    pub enum Status {
        /// Switched protocols, or other news.
        Informational = "1xx",
        /// Success.
        Success = "2xx",
        /// Elsewhere.
        Redirection = "3xx",
        /// The caller's fault.
        ClientError = "4xx",
        /// The upstream's fault.
        ServerError = "5xx",
    }
}

closed! {
    /// What became of a span.
    pub enum Exported {
        /// The receiver took it.
        Sent = "sent",
        /// The receiver did not take it.
        Failed = "failed",
        /// Too many waited.
        Dropped = "dropped",
    }
}

impl From<&StoreError> for Why {
    fn from(error: &StoreError) -> Why {
        match error {
            StoreError::Conflict => Why::Conflict,
            StoreError::TooLarge { .. } => Why::TooLarge,
            StoreError::TimedOut(_) => Why::TimedOut,
            StoreError::Unreachable(_) => Why::Unreachable,
            StoreError::Resting => Why::Resting,
            StoreError::Failed(_) => Why::Failed,
        }
    }
}

impl Field {
    /// The field that a finding's place names; its head alone, as in `constraints[2].text`.
    pub(super) fn of(place: &str) -> Field {
        let head = place.split(['[', '.']).next().unwrap_or_default();
        Field::ALL.iter().copied().find(|field| field.name() == head).unwrap_or(Field::Other)
    }
}

impl Rule {
    /// The rule that a finding of this kind breaks, if it could be refused for.
    pub(super) fn broken_by(code: Code) -> Option<Rule> {
        match code {
            Code::NotHolder => Some(Rule::Custody),
            Code::BudgetExceeded => Some(Rule::Budget),
            code => Check::of(code).map(|check| match check {
                Check::Contract => Rule::Contract,
                Check::Facts => Rule::Facts,
                Check::Hops => Rule::Hops,
            }),
        }
    }
}

macro_rules! metrics {
    ($($field:ident: $kind:ty = $made:expr,)+) => {
        /// All metrics of one running Seam.
        #[derive(Debug)]
        #[expect(missing_docs, reason = "each says in the table what it counts")]
        pub struct Metrics { $(pub $field: $kind,)+ }

        impl Default for Metrics {
            fn default() -> Self {
                Metrics { $($field: $made,)+ }
            }
        }

        impl Metrics {
            fn all(&self) -> Vec<&dyn Series> {
                vec![$(&self.$field,)+]
            }
        }
    };
}

metrics! {
    events: Counter<(Event,)> = Counter::new(
        "seam_events_total",
        ["event"],
        "What happened at the shell: requests, inspections, connections, panics.",
    ),
    exchanges_in_flight: Gauge = Gauge::new(
        "seam_exchanges_in_flight",
        "Exchanges between a client's request and the end of its reply.",
    ),
    streams_in_flight: Gauge = Gauge::new(
        "seam_streams_in_flight",
        "Event streams that have begun and not ended.",
    ),
    passed: Counter<(Passed,)> = Counter::new(
        "seam_passed_total",
        ["reason"],
        "Requests to inspected routes that went up as they came, by reason (docs/reasons.md).",
    ),
    boundaries_unmatched: Counter<(Passed,)> = Counter::new(
        "seam_boundaries_unmatched_total",
        ["reason"],
        "Requests that show an answered transfer in their list and went up as they came, by reason.",
    ),
    rewrites: Counter<(Arm,)> = Counter::new(
        "seam_rewrites_total",
        ["arm"],
        "Requests of receivers: rebuilt, or, in the observe arm, what would have been.",
    ),
    transfers: Counter<(State, Origin, Arm)> = Counter::new(
        "seam_transfers_total",
        ["outcome", "source", "arm"],
        "Transfers that came to a state: pending when seen, then taken up, declined, refused or expired; by where the handoff came from.",
    ),
    facts: Counter<(Outcome, Age)> = Counter::new(
        "seam_facts_total",
        ["outcome", "age"],
        "Facts of the handoffs that were taken up, by what the check found and what age says.",
    ),
    findings: Counter<(Code,)> = Counter::new(
        "seam_findings_total",
        ["finding"],
        "Findings (docs/findings.md).",
    ),
    filler: Counter<(Field,)> = Counter::new(
        "seam_filler_total",
        ["field"],
        "Filler that senders wrote, by field of the contract.",
    ),
    asked: Counter<()> = Counter::new(
        "seam_asked_total",
        [],
        "Requests whose agents were asked for the contract, or got their own arguments back.",
    ),
    corrections: Counter<(Rule,)> = Counter::new(
        "seam_corrections_total",
        ["rule"],
        "Senders that were asked once more, by the rule that the handoff broke.",
    ),
    correction_tokens: Counter<(Spent,)> = Counter::new(
        "seam_correction_tokens_total",
        ["kind"],
        "Tokens that the upstream reports for asking senders once more.",
    ),
    redirects: Counter<(Rule,)> = Counter::new(
        "seam_redirects_total",
        ["rule"],
        "Transfers that went to a terminal destination instead, by the rule that was broken.",
    ),
    refusals: Counter<(Rule,)> = Counter::new(
        "seam_refusals_total",
        ["rule"],
        "Transfers that were refused, by the rule that was broken.",
    ),
    would_refuse: Counter<(Rule,)> = Counter::new(
        "seam_would_refuse_total",
        ["rule"],
        "Transfers with findings that SEAM_ENFORCE could refuse for, by rule, whether or not it is enforced.",
    ),
    hops: Histogram<()> = Histogram::new(
        "seam_hops",
        [],
        HOPS,
        "Which transfer of its run a transfer was when it was taken up.",
    ),
    list_tokens: Counter<(Side, Arm)> = Counter::new(
        "seam_list_tokens_total",
        ["side", "arm"],
        "Estimated tokens (4 bytes of text) of the lists that were taken up, before and after rebuilding, brief included.",
    ),
    contract_tokens: Histogram<(Origin,)> = Histogram::new(
        "seam_contract_tokens",
        ["source"],
        TOKENS,
        "Estimated tokens (4 bytes of text) that a sender spent on the arguments of a transfer call.",
    ),
    contract_seconds: Histogram<(Origin,)> = Histogram::new(
        "seam_contract_seconds",
        ["source"],
        LONG_SECONDS,
        "Seconds from the reply's head to the transfer's record: how long the sender took to say it.",
    ),
    upstream_tokens: Counter<(Spent, Brief)> = Counter::new(
        "seam_upstream_tokens_total",
        ["kind", "brief"],
        "Tokens that the upstream reports in watched replies, with and without a brief in the request; cache_read over input is the hit rate.",
    ),
    brief_values: Counter<(Value,)> = Counter::new(
        "seam_brief_values_total",
        ["value"],
        "Values of facts in briefs that receivers read, and how many of them a receiver's reply then used.",
    ),
    signals: Counter<(Sign, Arm)> = Counter::new(
        "seam_signals_total",
        ["sign", "arm"],
        "What showed that a transfer lost something, by kind and by whether its receiver read a brief.",
    ),
    held_seconds: Histogram<()> = Histogram::new(
        "seam_held_seconds",
        [],
        SECONDS,
        "How long the first held byte of a watched reply waited.",
    ),
    held_bytes: Histogram<()> = Histogram::new(
        "seam_held_bytes",
        [],
        BYTES,
        "The most bytes of a watched reply that were held at once.",
    ),
    overhead: Histogram<(Part,)> = Histogram::new(
        "seam_overhead_seconds",
        ["part"],
        SECONDS,
        "Seam's own work on inspected exchanges.",
    ),
    store_seconds: Histogram<(Call,)> = Histogram::new(
        "seam_store_seconds",
        ["call"],
        SECONDS,
        "Calls of the store.",
    ),
    store_errors: Counter<(Call, Why)> = Counter::new(
        "seam_store_errors_total",
        ["call", "reason"],
        "Calls of the store that came to nothing.",
    ),
    store_degraded: Gauge = Gauge::new(
        "seam_store_degraded",
        "1 while the last call of the store failed.",
    ),
    upstream_replies: Counter<(Status,)> = Counter::new(
        "seam_upstream_replies_total",
        ["status"],
        "Replies of the upstream, by the class of their status.",
    ),
    upstream_head: Histogram<()> = Histogram::new(
        "seam_upstream_head_seconds",
        [],
        LONG_SECONDS,
        "From a request that goes up to the head of its reply.",
    ),
    failures: Counter<(Failed, Stage)> = Counter::new(
        "seam_failures_total",
        ["reason", "stage"],
        "Exchanges that failed, by reason; those that begin with upstream_ are the upstream's errors.",
    ),
    spans: Counter<(Exported,)> = Counter::new(
        "seam_spans_total",
        ["outcome"],
        "Spans for the receiver of traces (SEAM_TRACE_ENDPOINT).",
    ),
    rewrite_percent: Gauge = Gauge::new(
        "seam_rewrite_percent",
        "Runs of a hundred whose receivers' requests are rebuilt now; 0 in observe mode.",
    ),
    ready: Gauge = Gauge::new("seam_ready", "1 while requests should be sent here."),
}

impl Metrics {
    /// All of them as Prometheus' text.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(64 << 10);
        for series in self.all() {
            let family = series.family();
            // A string takes all that is written to it.
            let _ = writeln!(text, "# HELP {} {}", family.name, family.about);
            let _ = writeln!(text, "# TYPE {} {}", family.name, series.kind());
            series.write(&mut text);
        }
        let version = env!("CARGO_PKG_VERSION");
        let _ = writeln!(text, "# HELP seam_build_info The version that runs; always 1.");
        let _ = writeln!(text, "# TYPE seam_build_info gauge\nseam_build_info{{version=\"{version}\"}} 1");
        text
    }
}

/// `docs/metrics.md`.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Metrics\n\n\
         What `/metrics` on the admin listener shows, in Prometheus' text format. Every label value comes from a closed \
         list: how many series there are is known when Seam is built, and nothing that agents, tools or clients are \
         called can add one. Counters count from the start of the process. Nothing in them is content of a \
         conversation.\n\n\
         This page is made from the table in `src/telemetry/metrics.rs`.\n\n\
         | metric | kind | what it says |\n|---|---|---|\n",
    );
    let metrics = Metrics::default();
    for series in metrics.all() {
        let family = series.family();
        let _ = writeln!(page, "| `{}` | {} | {} |", family.name, series.kind(), family.about);
    }
    page.push_str("| `seam_build_info` | gauge | The version that runs; always 1. |\n");
    page.push_str("\n## Labels\n\n| metric | label | values |\n|---|---|---|\n");
    for series in metrics.all() {
        let family = series.family();
        for (label, values) in family.labels.iter().zip(series.values()) {
            let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
            let _ = writeln!(page, "| `{}` | `{label}` | {} |", family.name, values.join(" "));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::super::family::Family;
    use super::*;

    #[test]
    fn names_and_words_are_as_prometheus_wants_them() {
        let metrics = Metrics::default();
        let mut seen = Vec::new();
        for series in metrics.all() {
            let Family { name, about, .. } = series.family();
            assert!(!seen.contains(name), "{name} comes twice");
            seen.push(name);
            assert_eq!(series.kind() == "counter", name.ends_with("_total"), "{name}");
            assert!(about.ends_with('.') && !about.contains(['\\', '\n']), "{name}: {about}");
            assert_eq!(series.family().labels.len(), series.values().len(), "{name}");
        }
    }
}
