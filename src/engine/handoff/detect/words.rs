//! Every word by which a transfer is known, each with who sends it. Rules stand
//! in `detect`; what a framework changes in its next release is changed here.

/// Directions that a tool's name may begin with; what follows them is the destination. Each is a sequence of
/// words: separators and case between them do not matter, so `transferToX` and `hand_off_to_x` are covered.
pub(super) const DIRECTIONS: &[&[&str]] = &[
    // langgraph-supervisor's invented way back. Before `transfer to`: the longer form first.
    &["transfer", "back", "to"],
    // openai-agents (Python and JS), langgraph-swarm, langgraph-supervisor, autogen, ag2 (with `_<n>` behind),
    // semantic-kernel (behind `Handoff-`), pydantic-ai (behind `final_result_`), adk (`transfer_to_agent`).
    &["transfer", "to"],
    // Microsoft agent-framework; strands (`handoff_to_agent`).
    &["hand", "off", "to"],
    // Hand-written tools.
    &["hand", "over", "to"],
    // Hand-written tools; the usual way to a person.
    &["escalate", "to"],
    // langgraph-supervisor's documented `handoff_tool_prefix`.
    &["delegate", "to"],
    // Hand-written tools.
    &["route", "to"],
];

/// Whole names whose destination is an argument.
pub(super) const BY_ARGUMENT: &[&[&str]] = &[
    // llama-index AgentWorkflow: `handoff(to_agent, reason)`.
    &["hand", "off"],
    // crewai: `delegate_work_to_coworker(task, context, coworker)`.
    &["delegate", "work", "to", "coworker"],
    // crewai: `ask_question_to_coworker(question, context, coworker)`.
    &["ask", "question", "to", "coworker"],
    // agno Team: `delegate_task_to_member(member_id, task)`.
    &["delegate", "task", "to", "member"],
    // agno Team before 2.0: `transfer_task_to_member(member_id, task, expected_output)`.
    &["transfer", "task", "to", "member"],
];

/// mastra names a sub-agent's tool `agent-<key>` and gives it one `prompt`.
pub(super) const AGENT_PREFIX: &str = "agent-";
/// The parameter that makes an `agent-<key>` tool a sub-agent's.
pub(super) const AGENT_PARAMETER: &str = "prompt";

/// What may stand before the direction, up to and with this mark: `Handoff-` (semantic-kernel's plugin name),
/// `mcp__desk__` and `functions.` (gateways).
pub(super) const NAMESPACE_MARKS: &[&str] = &["-", "__", ".", "/", ":"];
/// pydantic-ai puts this before the name of an output function.
pub(super) const OUTPUT_FUNCTION: &str = "final_result_";

/// A name's remainder that names no agent: an argument does, in `transfer_to_agent` (adk, strands).
pub(super) const PLACEHOLDERS: &[&str] =
    &["agent", "another_agent", "other_agent", "coworker", "member", "target"];
/// A name's remainder that names a kind of agent, where no argument says which one.
pub(super) const KINDS: &[&str] = &["specialist", "assistant", "department", "team", "worker", "expert"];

/// Parameters that name the destination.
pub(super) const DESTINATION: &[&str] = &[
    "agent_name", // adk, strands
    "to_agent",   // llama-index
    "member_id",  // agno
    "coworker",   // crewai
    // Hand-written tools.
    "agent",
    "agent_id",
    "target_agent",
    "next_agent",
    "destination_agent",
    "assistant",
    "assistant_name",
    "member",
    "member_name",
    "worker",
    "specialist",
    "department",
    "team",
    "recipient",
    "destination",
    "target",
    "to",
];

/// Last words of parameters that hold what one agent tells the next.
pub(super) const MESSAGE: &[&str] = &[
    "reason",          // llama-index, AI SDK examples, pydantic-ai examples
    "message",         // strands
    "task",            // crewai, agno
    "context",         // crewai, strands
    "prompt",          // mastra
    "question",        // crewai
    "expected_output", // agno before 2.0
    // Hand-written tools.
    "summary",
    "note",
    "notes",
    "description",
    "details",
    "comment",
    "comments",
    "instruction",
    "instructions",
    "explanation",
    "request",
    "query",
    "background",
    "intent",
    "issue",
    "problem",
    "objective",
    "goal",
    "text",
];

/// Words that may follow a message word without changing what it is: `reason_for_transfer`.
pub(super) const CONNECTIVES: &[&str] = &["for", "of", "to", "from", "about"];

/// Properties that make a schema a contract by themselves.
pub(super) const FACTS: &[&str] = &["established", "facts", "findings"];
/// Property names of the contract and of the shapes it is read from; three of them make a schema a contract.
pub(super) const CONTRACT: &[&str] = &[
    "task",
    "intent",
    "objective",
    "goal",
    "goal_verbatim",
    "reason",
    "established",
    "facts",
    "findings",
    "constraints",
    "limits",
    "decisions",
    "open_questions",
    "remaining",
    "done_when",
    "stop_conditions",
    "context",
    "commitments",
    "tried",
    "artifacts",
    "return_to",
    "return_schema",
    "actions_taken",
    "budget",
    "latest_request",
];
/// The property in which a whole handoff is asked for.
pub(super) const HANDOFF_PROPERTY: &str = "handoff";

/// Descriptions that frameworks generate for their transfer tools, as globs; they tell a transfer whose
/// parameters are an application's own.
pub(super) const DESCRIPTIONS: &[&str] = &[
    "Handoff to the * agent to handle the request.*", // openai-agents (Python and JS)
    "Ask agent '*' for help*",                        // langgraph-swarm, langgraph-supervisor
    "Handoff to *.",                                  // autogen
];

/// Where a transfer ends in no agent, as globs on the tool's name or the destination.
pub(super) const TERMINAL: &[&str] = &["transfer_to_human*", "escalate_to_*"];

/// How the result of a transfer reads: what stands before the agent's name, and what ends the name.
pub(super) const CONFIRMATIONS: &[(&str, &[&str])] = &[
    ("Successfully transferred back to ", &["."]), // langgraph-supervisor
    ("Successfully transferred to ", &["."]),      // langgraph-swarm and -supervisor
    ("Transferred to ", &[", adopting the role of", "."]), // autogen; hand-written tools of the AI SDK
    ("Handing off to ", &[":", "."]),              // strands
    ("Agent ", &[" is now handling the request"]), // llama-index
];
/// The one key of a result that is an object and names the agent.
pub(super) const CONFIRMATION_KEYS: &[&str] = &[
    "assistant",  // openai-agents (Python and JS)
    "handoff_to", // Microsoft agent-framework
];
/// Results that confirm a transfer and name nobody.
pub(super) const CONFIRMATIONS_BARE: &[&str] = &[
    "Final result processed.", // pydantic-ai
    "Transferred.",            // Microsoft agent-framework, older
];

/// How the result of a transfer that did not take place reads, lower case.
pub(super) const REFUSALS: &[&str] = &[
    "multiple handoffs detected, ignoring this one", // openai-agents: the second of two
    "got an unexpected keyword argument",            // llama-index
    "received unexpected argument(s)",               // semantic-kernel
    "unexpected keyword argument [type=",            // agno
    "\"type\":\"extra_forbidden\"",                  // pydantic-ai
    "tool not executed - a final result was already processed", // pydantic-ai: the second of two
    "output tool not used - a final result was already processed", // pydantic-ai
    "agent not found",                               // hand-written
    "coworker mentioned not found",                  // crewai
    "not found. please select a valid agent",        // llama-index
];

/// adk's marks around what it quotes of another agent.
pub(super) const QUOTE_BEGIN: &str = "<<<BEGIN_QUOTED_AGENT_CONTENT>>>";
/// The end of such a quote.
pub(super) const QUOTE_END: &str = "<<<END_QUOTED_AGENT_CONTENT>>>";
/// adk's line before such quotes.
pub(super) const QUOTE_PREAMBLE: &str = "For context:";
/// adk: `[sender] called tool ...`.
pub(super) const QUOTED_CALL: &str = "called tool `";
/// adk: behind the tool's name of a quoted call.
pub(super) const QUOTED_CALL_END: &str = "` with parameters:";
/// adk: behind the tool's name of a quoted result.
pub(super) const QUOTED_RESULT_END: &str = "` tool returned result:";

/// What a transfer leaves behind as a message of its own, up to the agent's name, and what ends the name.
pub(super) const TRACES: &[(&str, &str)] = &[
    ("Transferred to ", ", adopting the role of "), // autogen: a user message with the sender's name
    ("Transferring back to ", ""),                  // langgraph-supervisor: beside the call it invents
    ("Successfully transferred back to ", ""),      // langgraph-supervisor
];

/// How an agent begins a sentence in which it says what it does now.
pub(super) const COMMITMENTS: &[&str] = &[
    "i'll",
    "i will",
    "i am",
    "i'm",
    "i've",
    "i have",
    "let me",
    "we'll",
    "we will",
    "we are",
    "we're",
    "we've",
    "you will be",
    "you'll be",
    "you are being",
    "you're being",
];
/// What it says that it does.
pub(super) const ANNOUNCEMENTS: &[&str] = &[
    "transfer you",
    "transfer this",
    "transfer your",
    "transferring you",
    "transferring this",
    "transferring your",
    "transferring to",
    "transferred you",
    "transferred to",
    "hand you to",
    "hand you off",
    "hand you over",
    "hand this over",
    "hand this off",
    "hand off to",
    "hand over to",
    "handing you",
    "handing this",
    "handing off to",
    "handing over to",
    "handed you",
    "handed this",
    "handed over to",
    "connect you with",
    "connect you to",
    "connecting you",
    "connected you",
    "connected to",
    "pass you on",
    "pass you to",
    "pass you over",
    "pass this to",
    "pass this on to",
    "pass this over to",
    "passing you",
    "passing this",
    "passed you",
    "passed this",
    "put you through",
    "putting you through",
    "forward you to",
    "forward this to",
    "forwarding you",
    "forwarding this",
    "route you to",
    "routing you",
    "redirect you to",
    "redirecting you",
    "escalate this to",
    "escalate your",
    "escalating this",
    "escalating your",
    "escalated this",
    "escalated your",
];
/// What makes such a sentence an offer, a condition or a denial, where it stands before the act.
pub(super) const RESERVATIONS_BEFORE: &[&str] = &[
    "would you like",
    "do you want",
    "shall i",
    "should i",
    "can ",
    "could ",
    "can't",
    "cannot",
    "not ",
    "n't ",
    "if ",
    "unless",
    "before ",
    "once ",
    "after ",
    "when ",
    "unable",
    "never ",
];
/// The same, where it stands behind it.
pub(super) const RESERVATIONS_AFTER: &[&str] = &["?", " if you", " unless ", " once you", " after you"];
