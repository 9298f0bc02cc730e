//! The servers: their rules, the form of their refusals and the shape of their streams.

use serde_json::{Value, json};

use crate::support::rules::{Fault, GoesBack, Ids, Rules, System};

/// One kind of server, named after the profile that is made for it.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) rules: Rules,
    /// Status and body of a refusal.
    pub(crate) refuse: fn(&Fault) -> (u16, Value),
    pub(crate) shape: Shape,
}

impl Server {
    /// The id that this server would have given in place of `id`.
    pub(crate) fn given_id(&self, id: &str) -> String {
        if self.rules.ids == Ids::UpToForty {
            return id.to_owned();
        }
        let sum = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        format!("{sum:016x}")[..9].to_owned()
    }
}

/// How a stream is spelled.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one server's oddity, there or not")]
pub(crate) struct Shape {
    pub(crate) index: Index,
    /// The name comes again with every fragment.
    pub(crate) name_again: bool,
    /// A call comes whole, in one chunk.
    pub(crate) whole_calls: bool,
    /// A chunk without choices opens the stream.
    pub(crate) empty_choices: bool,
    /// Comments stand between the events.
    pub(crate) comments: bool,
    /// A delta behind the calls holds a vendor's field alone.
    pub(crate) trailing_extra: bool,
    /// Hidden reasoning comes ahead of everything.
    pub(crate) reasoning: bool,
    /// Every chunk says what was spent so far.
    pub(crate) usage_always: bool,
    pub(crate) finish: Finish,
}

/// What tells the fragments of one call from another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Index {
    /// As the specification says.
    Right,
    /// No index at all.
    Absent,
    /// 0 for every call.
    Zero,
}

/// How a stream says that it ends in calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// `tool_calls`.
    Calls,
    /// `stop`.
    Stop,
    /// Not at all: the end mark follows.
    Silent,
}

const SOUND: Shape = Shape {
    index: Index::Right,
    name_again: false,
    whole_calls: false,
    empty_choices: false,
    comments: false,
    trailing_extra: false,
    reasoning: false,
    usage_always: false,
    finish: Finish::Calls,
};

const ANY: Rules = Rules { system: System::Anywhere, ..Rules::STRICT };
const ONE_FIRST: Rules = Rules { system: System::OneFirst, developer: false, ..Rules::STRICT };

/// One server a profile, in the order of the profiles.
pub(crate) const ALL: &[Server] = &[
    Server { name: "openai", rules: ANY, refuse: openai, shape: SOUND },
    Server {
        name: "azure",
        rules: ANY,
        refuse: |fault| {
            (
                400,
                json!({"error": {"message": fault.to_string(), "type": "invalid_request_error", "param": fault.place, "code": null, "status": 400}}),
            )
        },
        shape: Shape { empty_choices: true, ..SOUND },
    },
    Server {
        name: "vllm",
        rules: ONE_FIRST,
        refuse: |fault| {
            (
                400,
                json!({"object": "error", "message": fault.to_string(), "type": "BadRequestError", "param": null, "code": 400}),
            )
        },
        shape: Shape { name_again: true, usage_always: true, finish: Finish::Stop, ..SOUND },
    },
    Server {
        name: "llama.cpp",
        rules: Rules { parts: false, no_content: false, ..ONE_FIRST },
        refuse: |fault| {
            (500, json!({"error": {"code": 500, "message": fault.to_string(), "type": "server_error"}}))
        },
        shape: Shape { whole_calls: true, ..SOUND },
    },
    Server {
        name: "ollama",
        rules: Rules { parts: false, ..ONE_FIRST },
        refuse: |fault| {
            (
                400,
                json!({"error": {"message": fault.to_string(), "type": "invalid_request_error", "param": null, "code": null}}),
            )
        },
        shape: Shape { index: Index::Zero, whole_calls: true, finish: Finish::Stop, ..SOUND },
    },
    Server {
        name: "mistral",
        rules: Rules {
            system: System::Leading,
            developer: false,
            ids: Ids::NineAlphanumeric,
            user_after_tool: false,
            ..Rules::STRICT
        },
        refuse: |fault| {
            (
                400,
                json!({"object": "error", "message": fault.to_string(), "type": "invalid_request_message_order", "param": null, "code": "3230"}),
            )
        },
        shape: Shape { whole_calls: true, ..SOUND },
    },
    Server {
        name: "gemini-compat",
        rules: Rules {
            calls_in_turn: true,
            user_first: true,
            goes_back: GoesBack::OnCall("extra_content"),
            // The real one obeys the last and says nothing: what is lost so counts as refused here.
            ..ONE_FIRST
        },
        refuse: |fault| {
            (
                400,
                json!([{"error": {"code": 400, "message": fault.to_string(), "status": "INVALID_ARGUMENT"}}]),
            )
        },
        shape: Shape {
            index: Index::Absent,
            whole_calls: true,
            trailing_extra: true,
            finish: Finish::Stop,
            ..SOUND
        },
    },
    Server { name: "anthropic-compat", rules: ANY, refuse: openai, shape: SOUND },
    Server {
        name: "strict-alternation",
        rules: Rules { alternate: true, ..ONE_FIRST },
        refuse: |fault| {
            (
                400,
                json!({"error": {"message": fault.to_string(), "type": null, "param": null, "code": "400"}}),
            )
        },
        shape: Shape { finish: Finish::Silent, ..SOUND },
    },
    Server {
        name: "no-system-role",
        rules: Rules {
            system: System::Nowhere,
            parts: false,
            no_content: false,
            alternate: true,
            ..Rules::STRICT
        },
        refuse: |fault| {
            (
                400,
                json!({"error": {"message": fault.to_string(), "type": "BadRequestError", "param": null, "code": 400}}),
            )
        },
        shape: Shape { usage_always: true, ..SOUND },
    },
    Server {
        name: "deepseek",
        rules: Rules { goes_back: GoesBack::OnMessage("reasoning_content"), ..ONE_FIRST },
        refuse: |fault| {
            (
                400,
                json!({"error": {"message": fault.to_string(), "type": "invalid_request_error", "param": null, "code": "invalid_request_error"}}),
            )
        },
        shape: Shape { comments: true, reasoning: true, ..SOUND },
    },
    Server {
        name: "openrouter",
        rules: Rules { goes_back: GoesBack::OnMessage("reasoning_details"), ..ONE_FIRST },
        refuse: |fault| {
            (
                400,
                json!({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": fault.to_string(), "provider_name": "P"}}, "user_id": "u"}),
            )
        },
        shape: Shape { comments: true, reasoning: true, finish: Finish::Stop, ..SOUND },
    },
];

fn openai(fault: &Fault) -> (u16, Value) {
    (
        400,
        json!({"error": {"message": fault.to_string(), "type": "invalid_request_error", "param": fault.place, "code": null}}),
    )
}
