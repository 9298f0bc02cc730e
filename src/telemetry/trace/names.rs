//! The one table of attributes: `docs/traces.md` comes from it. Names are those
//! of the GenAI conventions where these have one (they are still in
//! development), and begin with `seam.` where they have none.

use std::fmt::Write as _;

use super::super::closed::{Closed, closed};

closed! {
    /// An attribute of a span.
    pub enum Name {
        /// `chat` for a request of either API, `execute_tool` for a transfer.
        Operation = "gen_ai.operation.name",
        /// Who is behind the upstream, told by its host; `openai` for any other that speaks its API.
        Provider = "gen_ai.provider.name",
        /// The run: one conversation over all its agents.
        Conversation = "gen_ai.conversation.id",
        /// The agent, where the header of `SEAM_AGENT_HEADER` names it.
        Agent = "gen_ai.agent.name",
        /// The model that was asked.
        RequestModel = "gen_ai.request.model",
        /// Whether an event stream was asked for.
        RequestStream = "gen_ai.request.stream",
        /// The model that answered.
        ResponseModel = "gen_ai.response.model",
        /// The reply's id.
        ResponseId = "gen_ai.response.id",
        /// Why the model stopped.
        FinishReasons = "gen_ai.response.finish_reasons",
        /// Seconds from the request to the first bytes of the reply's body, of an event stream.
        FirstChunk = "gen_ai.response.time_to_first_chunk",
        /// Tokens that the upstream read, as it reports them.
        InputTokens = "gen_ai.usage.input_tokens",
        /// Tokens that it wrote.
        OutputTokens = "gen_ai.usage.output_tokens",
        /// Tokens that came from its prompt cache.
        CacheRead = "gen_ai.usage.cache_read.input_tokens",
        /// Tokens that it wrote to its prompt cache.
        CacheCreation = "gen_ai.usage.cache_creation.input_tokens",
        /// The transfer tool.
        Tool = "gen_ai.tool.name",
        /// `function`.
        ToolType = "gen_ai.tool.type",
        /// The id of the transfer call.
        ToolCall = "gen_ai.tool.call.id",
        /// Content: what the sender wrote in the transfer call.
        ToolArguments = "gen_ai.tool.call.arguments",
        /// The code of a failure as the client reads it (`seam_` and its reason, docs/reasons.md), or the status that the upstream answered with.
        Error = "error.type",
        /// The upstream's host.
        ServerAddress = "server.address",
        /// The upstream's port.
        ServerPort = "server.port",
        /// The request's method.
        Method = "http.request.method",
        /// The status that the client got from the upstream.
        Status = "http.response.status_code",
        /// `passed`, `rewritten`, `asked` (for a handoff), `refused` or `failed`; of a request that is not inspected, nothing.
        Outcome = "seam.outcome",
        /// Why it passed as it came (docs/reasons.md).
        Reason = "seam.reason",
        /// Bytes of the request's body.
        RequestBytes = "seam.request.bytes",
        /// What was found, by name (docs/findings.md).
        Findings = "seam.findings",
        /// The handoff: the one that this transfer made, or the one whose brief this request's agent reads.
        Handoff = "seam.handoff.id",
        /// The sender.
        From = "seam.handoff.from",
        /// The receiver.
        To = "seam.handoff.to",
        /// Which transfer of its run it is.
        Hop = "seam.handoff.hop",
        /// Where the handoff came from: `declared`, `injected` or `derived`.
        Source = "seam.handoff.source",
        /// Where it stands: `pending`, `taken_up` and so on.
        State = "seam.handoff.state",
        /// Where the transfer was seen: in the sender's `reply`, or only in its receiver's `list`.
        SeenIn = "seam.handoff.seen_in",
        /// Facts that the run bears out.
        Established = "seam.facts.established",
        /// Facts that it does not.
        NotConfirmed = "seam.facts.not_confirmed",
        /// Estimated tokens of the receiver's list as it came.
        TokensBefore = "seam.tokens.before",
        /// Estimated tokens of it as it went up, brief included.
        TokensAfter = "seam.tokens.after",
        /// Bytes of the brief.
        BriefBytes = "seam.brief.bytes",
        /// Content: the brief.
        Brief = "seam.brief",
    }
}

/// `docs/traces.md`.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Traces\n\n\
         With `SEAM_TRACE_ENDPOINT` Seam sends spans to an OTLP receiver (`http/protobuf`, `POST .../v1/traces`): one a request, \
         one a transfer. They are sent in the background, at most a second after they ended; where the receiver does not keep \
         up, or is away, up to 2,048 wait, and what is more is dropped and counted (`seam_spans_total`). No request ever waits \
         for it. At the end of the process what is left gets two seconds.\n\n\
         ## How they hang together\n\n\
         | span | kind | name | its parent |\n|---|---|---|---|\n\
         | a request | client | `chat MODEL`; the method alone where the route is not inspected | the client's `traceparent`; without one, for an \
         agent that holds the run by a transfer, that transfer's span; else it begins a trace |\n\
         | a transfer | internal | `execute_tool TOOL` | the request whose reply made it; where no reply was watched, the \
         request of the receiver whose list shows it |\n\n\
         So without any context of the client's the trace of a transfer reads: the sender's request, in it the transfer, in it the \
         receiver's requests. Where the client gives its requests a context of its own, the receiver's request links to the \
         transfer's span instead. The run is `gen_ai.conversation.id`, on every span that has one.\n\n\
         `SEAM_TRACE_CONTEXT` says what is done with `traceparent`: with `on` a client's is continued and the upstream gets that of \
         Seam's span; with `in` it is continued and goes up as it came (some providers refuse requests that bear an unknown one); \
         with `off` it is not read. `tracestate` always goes up as it came. A request whose context says that it is not sampled \
         makes no spans. Without `SEAM_TRACE_ENDPOINT` both headers pass untouched.\n\n\
         ## What is in them\n\n\
         Ids, names, sizes and outcomes. What is marked *content* is only there with `SEAM_TRACE_CONTENT=on`; the whole of what \
         was said stays in the store, under the handoff's id (`seam explain`, `/handoffs`). The resource has `service.name` \
         `seam` and `service.version`. A span whose exchange failed has the status *error*.\n\n\
         This list is made from the table in `src/telemetry/trace/names.rs`.\n\n\
         | attribute | what it says |\n|---|---|\n",
    );
    for name in Name::ALL {
        // A string takes all that is written to it.
        let _ = writeln!(page, "| `{}` | {} |", name.name(), name.meaning());
    }
    page
}
