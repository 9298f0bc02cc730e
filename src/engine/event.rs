//! What happened, as data: findings, and why a request passed as it was.

use serde::{Deserialize, Serialize};

/// Something a check found. Findings go to the record, the log and the
/// metrics; they never change a byte by themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What kind of thing.
    pub code: Code,
    /// Where: a field path, a tool name, a call id. Bounded.
    #[serde(rename = "where")]
    pub place: String,
    /// What was found, for a person. Bounded, no conversation content.
    pub what: String,
}

impl Finding {
    /// A finding of `code` at `place`.
    pub fn new(code: Code, place: impl Into<String>, what: impl Into<String>) -> Self {
        Finding { code, place: place.into(), what: what.into() }
    }
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal,)+) => {
        /// Every kind of finding. The list is closed: metrics and docs come from it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Code { $($(#[doc = $doc])+ #[serde(rename = $text)] $name,)+ }

        impl Code {
            /// All of them, in the order of the docs.
            pub const ALL: &'static [Code] = &[$(Code::$name,)+];

            /// The name in records, logs and metrics.
            pub fn name(self) -> &'static str {
                match self { $(Code::$name => $text,)+ }
            }

            /// What it means, one sentence, for `docs/findings.md`.
            pub fn meaning(self) -> &'static str {
                match self { $(Code::$name => concat!($($doc,)+).trim_ascii(),)+ }
            }
        }
    };
}

codes! {
    /// The handoff has no task, or neither a fact nor an open question.
    Empty = "empty_handoff",
    /// A field holds filler: schema words, or one sentence in every field.
    Filler = "filler",
    /// The task is not one sentence.
    TaskNotOneSentence = "task_not_one_sentence",
    /// The context is longer than 200 tokens.
    ContextTooLong = "context_too_long",
    /// An artifact is given by value instead of by reference.
    ArtifactByValue = "artifact_by_value",
    /// A field does not fit the contract's schema; the place is its path.
    SchemaFault = "schema_fault",
    /// A field that Seam owns was written by the sender and is ignored.
    OwnedField = "owned_field",
    /// A key comes twice in the arguments; the handoff is void.
    DuplicateKey = "duplicate_key",
    /// The arguments of the transfer call are not a JSON object.
    ArgumentsUnreadable = "arguments_unreadable",
    /// The body is not JSON of the shape its route promises; it passed unchanged.
    BodyUnreadable = "body_unreadable",
    /// The body is larger than the limit; it passed unchanged.
    BodyTooLarge = "body_too_large",
    /// The body is compressed; it passed unchanged.
    BodyCompressed = "body_compressed",
    /// The reply could not be read; it passed unchanged and nothing was learnt from it.
    ReplyUnreadable = "reply_unreadable",
    /// A fragment of a streamed call did not say which call it belongs to; the last one opened took it.
    FragmentUnplaced = "fragment_unplaced",
    /// A fact failed verification; the place is its key, the text its outcome.
    FactNotConfirmed = "fact_not_confirmed",
    /// A fact is true by another call than the one that it cites, which the brief names; it keeps no transfer back.
    FactCitedWrong = "fact_cited_wrong",
    /// A fact is older than its freshness rule allows.
    FactStale = "fact_stale",
    /// A tool was cited for what only the customer said.
    SourceNotTool = "source_not_tool",
    /// Two runs fit the request; it passed unchanged.
    AmbiguousRun = "ambiguous_run",
    /// The agent could not be told from another one; it passed unchanged.
    AgentUnclear = "agent_unclear",
    /// The transfer's call has no result in the receiver's list.
    TransferResultMissing = "transfer_result_missing",
    /// A result answers no open call.
    ResultUnpaired = "result_unpaired",
    /// A call has no result before the boundary.
    CallUnanswered = "call_unanswered",
    /// An agent transferred to itself.
    SelfTransfer = "self_transfer",
    /// The transfer names an agent that the request does not offer.
    UnknownDestination = "unknown_destination",
    /// More transfers than the run may have, since the customer's last turn or in all.
    HopLimit = "hop_limit",
    /// The agent had the run since the customer's last turn, and nothing new is known since.
    Visited = "visited",
    /// A transfer behind one that ended the run.
    AfterTerminal = "after_terminal",
    /// An agent that had the run goes on after losing it.
    NotHolder = "not_holder",
    /// The client lets another agent answer: custody followed it.
    Rerouted = "rerouted",
    /// The receiver gave the run back before it did anything.
    Declined = "declined",
    /// The run has spent what it may.
    BudgetExceeded = "budget_exceeded",
    /// The customer took back a constraint; it is no longer carried.
    ConstraintLifted = "constraint_lifted",
    /// One reply holds more than one transfer.
    TwoTransfers = "two_transfers",
    /// The reply says that it transfers, and does not.
    AnnouncedNotExecuted = "announced_not_executed",
    /// The reply says nothing and calls nothing.
    EmptyTurn = "empty_turn",
    /// The reply calls a tool that the request does not offer.
    ForeignTool = "foreign_tool",
    /// The client's list holds the conversation twice; both were left as they are.
    DuplicateRun = "duplicate_run",
    /// The list refers to items that the upstream was asked not to keep.
    ReferenceNotKept = "reference_not_kept",
    /// The system text of the request is the sender's, not the receiver's own.
    SystemTextOfSender = "system_text_of_sender",
    /// The boundary of the list could not be found again; nothing was filtered.
    BoundaryLost = "boundary_lost",
    /// The list was broken (pairing or order) before Seam touched it.
    ListBroken = "list_broken",
    /// More than one choice was asked for; the reply was observed only.
    SeveralChoices = "several_choices",
    /// The upstream holds the history; nothing could be filtered.
    ServerStateUnfiltered = "server_state_unfiltered",
    /// The store failed or did not answer in time; the place is the store, the text its reason.
    StoreFailed = "store_failed",
    /// The run was written by a newer release, or is damaged in the store; it was left alone.
    RunUnreadable = "run_unreadable",
    /// A bound of Seam's own was reached (facts, fields, bytes); what is over it was left out.
    LimitReached = "limit_reached",
}
