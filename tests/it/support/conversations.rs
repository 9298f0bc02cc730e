//! Conversations that transfer, as clients of many kinds send them: our own
//! cases, each with one kind of damage that such a client does to its list.

use serde_json::{Value, json};

use super::fake::{Server, Turn};

/// A conversation, request by request.
pub(crate) struct Conversation {
    pub(crate) name: String,
    pub(crate) exchanges: Vec<Exchange>,
}

/// One request, and what the model answers.
pub(crate) struct Exchange {
    pub(crate) request: Value,
    pub(crate) reply: Turn,
    /// Whether the run has been moved to the agent that asks.
    pub(crate) receives: bool,
}

/// An agent: its instructions and its tools.
#[derive(Clone, Copy)]
pub(crate) struct Agent {
    pub(crate) system: &'static str,
    pub(crate) tools: &'static [&'static str],
}

pub(crate) const DESK: Agent = Agent {
    system: "You are the desk of a ferry line. Find the crossing, then pass the traveller on.",
    tools: &["find_crossing", "add_note", "transfer_to_dock", "transfer_to_billing"],
};
pub(crate) const DOCK: Agent = Agent {
    system: "You are the dock agent of a ferry line. Rebook crossings. POLICY: no deck change after boarding.",
    tools: &["rebook", "transfer_to_desk"],
};

pub(crate) const FOUND: &str = r#"{"crossing":"fx_7731","deck":"C","fare":"84.50","status":"delayed"}"#;
pub(crate) const OPENING: &str = "My ferry fx_7731 is late. Never call my office about it.";

pub(crate) fn system(text: &str) -> Value {
    json!({"role": "system", "content": text})
}

pub(crate) fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

pub(crate) fn says(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

pub(crate) fn result(id: &str, text: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": text})
}

/// A message with these calls: id, name, arguments.
pub(crate) fn calls(calls: &[(&str, &str, &str)]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .map(|(id, name, arguments)| {
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
        })
        .collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

pub(crate) fn tool(name: &str) -> Value {
    let own: &[&str] = match name {
        "find_crossing" | "rebook" | "refund" => &["crossing"],
        "add_note" => &["text"],
        _ => &[],
    };
    let properties: serde_json::Map<String, Value> =
        own.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({"type": "function", "function": {"name": name,
        "parameters": {"type": "object", "properties": properties}}})
}

/// A request of this agent, its instructions in front of `list`.
pub(crate) fn request(agent: Agent, list: &[Value]) -> Value {
    bare(agent, &[&[system(agent.system)][..], list].concat())
}

/// A request with the agent's tools and this list as it is.
pub(crate) fn bare(agent: Agent, list: &[Value]) -> Value {
    let tools: Vec<Value> = agent.tools.iter().map(|name| tool(name)).collect();
    json!({"model": "m", "messages": list, "tools": tools})
}

/// The list up to the transfer.
pub(crate) fn before() -> Vec<Value> {
    vec![
        user(OPENING),
        calls(&[("call_a1", "find_crossing", r#"{"crossing":"fx_7731"}"#)]),
        result("call_a1", FOUND),
    ]
}

/// The transfer and its result, as a client with the whole history keeps them.
pub(crate) fn moved() -> Vec<Value> {
    vec![calls(&[("call_t1", "transfer_to_dock", "{}")]), result("call_t1", r#"{"assistant":"dock"}"#)]
}

pub(crate) fn find() -> Turn {
    Turn::calls("call_a1", "find_crossing", r#"{"crossing":"fx_7731"}"#)
}

pub(crate) fn transfer() -> Turn {
    Turn::calls("call_t1", "transfer_to_dock", "{}")
}

fn asks(request: Value, reply: Turn) -> Exchange {
    Exchange { request, reply, receives: false }
}

fn receives(request: Value, reply: Turn) -> Exchange {
    Exchange { request, reply, receives: true }
}

/// The sender's part: it looks up, and transfers.
fn sender(reply: Turn) -> Vec<Exchange> {
    vec![asks(request(DESK, &before()[..1]), find()), asks(request(DESK, &before()), reply)]
}

fn conversation(name: &str, rest: Vec<Exchange>) -> Conversation {
    let exchanges = sender(transfer()).into_iter().chain(rest).collect();
    Conversation { name: name.to_owned(), exchanges }
}

/// The receiver's requests over two turns, for a client that shows it `head` in front.
fn two_turns(agent: Agent, head: &[Value], list: &[Value]) -> Vec<Exchange> {
    let whole = [head, list].concat();
    let later = [
        &whole[..],
        &[
            calls(&[("call_r1", "rebook", r#"{"crossing":"fx_7731"}"#)]),
            result("call_r1", r#"{"ticket":"tk_12"}"#),
        ],
        &[says("Ticket tk_12 is yours."), user("And the deck?")],
    ]
    .concat();
    vec![
        receives(bare(agent, &whole), Turn::calls("call_r1", "rebook", r#"{"crossing":"fx_7731"}"#)),
        receives(bare(agent, &later), Turn::says("Deck C.")),
    ]
}

/// All of them.
pub(crate) fn all() -> Vec<Conversation> {
    let full = [before(), moved()].concat();
    let head = [system(DOCK.system)];
    let dock = |list: &[Value]| two_turns(DOCK, &head, list);
    let mut all = vec![
        conversation("whole history", dock(&full)),
        conversation("hidden transfer", dock(&before()[..1])),
        conversation("transfer call left out", dock(&before())),
        named_users(&head),
        merged_messages(),
        invented_way_back(),
        quoted_agents(&head),
        nested_beside_items(&head),
        conversation(
            "sender's system text beside the receiver's",
            two_turns(DOCK, &[system(DESK.system), system(DOCK.system)], &full),
        ),
        conversation("sender's system text alone", two_turns(DOCK, &[system(DESK.system)], &before())),
        reserialised(&head),
        dangling(&head),
        developer_and_parts(),
        later_system(&full),
        agent_opens(&head),
        customer_behind_result(&head),
    ];
    let neighbours = [&[user("Hello?"), user("Anybody there?")], &full[..]].concat();
    all.push(Conversation {
        name: "neighbours in one role".into(),
        exchanges: dock(
            &[&neighbours[..], &[says("One moment."), says("I am here."), user("Good.")]].concat(),
        ),
    });
    all.push(long(&head));
    all.push(repeated_ids(&head));
    all.push(pictures(&head));
    all
}

/// autogen: other agents' words as `user` with a name.
fn named_users(head: &[Value]) -> Conversation {
    let list = [
        json!({"role": "user", "name": "user", "content": OPENING}),
        json!({"role": "user", "name": "desk", "content": "Transferred to dock, adopting the role of dock immediately."}),
    ];
    conversation("other agents as named users", two_turns(DOCK, head, &list))
}

/// mastra: calls of two replies become one message; the receiver is a tool.
fn merged_messages() -> Conversation {
    const MANAGER: Agent = Agent {
        system: "You manage a ferry line's agents.",
        tools: &["find_crossing", "delegate_task_to_member"],
    };
    const TASK: &str = "Rebook crossing fx_7731 for the traveller and report the ticket";
    let delegated = json!({"member_id": "dock", "task": TASK}).to_string();
    let manager = |list: &[Value]| {
        let mut request = request(MANAGER, list);
        request["tools"][1]["function"]["parameters"]["properties"] =
            json!({"member_id": {"type": "string"}, "task": {"type": "string"}});
        request
    };
    let merged = calls(&[
        ("call_a1", "find_crossing", r#"{"crossing":"fx_7731"}"#),
        ("call_t1", "delegate_task_to_member", &delegated),
    ]);
    Conversation {
        name: "calls of two replies merged".into(),
        exchanges: vec![
            asks(manager(&before()[..1]), find()),
            asks(manager(&before()), Turn::calls("call_t1", "delegate_task_to_member", &delegated)),
            receives(
                request(Agent { tools: &["rebook"], ..DOCK }, &[user(TASK)]),
                Turn::says("Ticket tk_12."),
            ),
            asks(
                manager(&[
                    user(OPENING),
                    merged,
                    result("call_a1", FOUND),
                    result("call_t1", "Ticket tk_12."),
                ]),
                Turn::says("You sail on tk_12."),
            ),
        ],
    }
}

/// langgraph-supervisor: a way back that no model called, under an id that no server gave.
fn invented_way_back() -> Conversation {
    let back = [
        says("Ticket tk_12 is booked."),
        json!({"role": "assistant", "name": "dock", "content": "Transferring back to desk", "tool_calls": [{
            "id": "5f0c2a34-9a0b-4b8e-8a55-0d1f5a1f7d10", "type": "function",
            "function": {"name": "transfer_back_to_desk", "arguments": "{}"}}]}),
        result("5f0c2a34-9a0b-4b8e-8a55-0d1f5a1f7d10", "Successfully transferred back to desk"),
    ];
    let list = [before(), moved()].concat();
    let worker = Agent { tools: &["rebook"], ..DOCK };
    conversation(
        "invented way back",
        vec![
            receives(request(worker, &list), Turn::says("Ticket tk_12 is booked.")),
            receives(request(DESK, &[&list[..], &back].concat()), Turn::says("You are booked.")),
        ],
    )
}

/// adk: what other agents did, as quotes in user messages.
fn quoted_agents(head: &[Value]) -> Conversation {
    let quote = |inner: &str| {
        json!({"role": "user", "content": [
            {"type": "text", "text": "For context:"},
            {"type": "text", "text": inner}]})
    };
    let list = [
        user(OPENING),
        quote(
            "[desk] called tool `find_crossing` with parameters: <<<BEGIN_QUOTED_AGENT_CONTENT>>>\n{'crossing': 'fx_7731'}\n<<<END_QUOTED_AGENT_CONTENT>>>",
        ),
        quote(
            "[desk] `find_crossing` tool returned result: <<<BEGIN_QUOTED_AGENT_CONTENT>>>\n{'deck': 'C'}\n<<<END_QUOTED_AGENT_CONTENT>>>",
        ),
    ];
    conversation("agents quoted in user messages", two_turns(DOCK, head, &list))
}

/// The OpenAI Agents SDK's nested history beside the items that it repeats.
fn nested_beside_items(head: &[Value]) -> Conversation {
    let nested = format!(
        "For context, here is the conversation so far between the user and the previous agent:\n<CONVERSATION HISTORY>\n1. user: {OPENING}\n2. {}\n</CONVERSATION HISTORY>",
        json!({"id": "__fake_id__", "call_id": "call_a1", "name": "find_crossing", "type": "function_call",
            "arguments": r#"{"crossing":"fx_7731"}"#}),
    );
    let first = [head, &[says(&nested)]].concat();
    let again = [head, &[says(&nested)], &before(), &[says("Ticket tk_12 is yours."), user("And the deck?")]]
        .concat();
    conversation(
        "nested history beside the same items",
        vec![
            receives(bare(DOCK, &first), Turn::says("Ticket tk_12 is yours.")),
            receives(bare(DOCK, &again), Turn::says("Deck C.")),
        ],
    )
}

/// AI SDK and pydantic-ai: arguments re-serialised before they are sent again.
fn reserialised(head: &[Value]) -> Conversation {
    let reason = r#"{"reason": "Delayed, the traveller is calm", "priority": 2}"#;
    let mut list = before();
    list[1]["tool_calls"][0]["function"]["arguments"] = json!(r#"{ "crossing" : "fx_7731" }"#);
    list.extend([
        calls(&[(
            "call_t1",
            "transfer_to_dock",
            r#"{"priority":2,"reason":"Delayed, the traveller is calm"}"#,
        )]),
        result("call_t1", "Transferred."),
    ]);
    let mut exchanges = sender(Turn::calls("call_t1", "transfer_to_dock", reason));
    exchanges.extend(two_turns(DOCK, head, &list));
    Conversation { name: "arguments re-serialised".into(), exchanges }
}

/// langgraph-swarm: a transfer beside another call, and only the transfer is answered.
fn dangling(head: &[Value]) -> Conversation {
    let both = calls(&[("call_t1", "transfer_to_dock", "{}"), ("call_n1", "add_note", r#"{"text":"calm"}"#)]);
    let list = [before(), vec![both, result("call_t1", "Successfully transferred to dock")]].concat();
    let mut exchanges = sender(transfer().and("call_n1", "add_note", r#"{"text":"calm"}"#));
    exchanges.extend(two_turns(DOCK, head, &list));
    Conversation { name: "a call beside the transfer left unanswered".into(), exchanges }
}

/// agno: role `developer`, and everything in parts with marks of its own.
fn developer_and_parts() -> Conversation {
    let parts = |text: &str| json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
    let head = [json!({"role": "developer", "content": parts(DOCK.system)})];
    let mut list = [before(), moved()].concat();
    list[0]["content"] = parts(OPENING);
    list[2]["content"] = json!([{"type": "text", "text": FOUND}]);
    conversation("developer, and parts everywhere", two_turns(DOCK, &head, &list))
}

/// A client that reminds its agents between the turns.
fn later_system(full: &[Value]) -> Conversation {
    let mut list = full.to_vec();
    list.insert(1, system("Today is a holiday."));
    list.push(system("Answer in one sentence."));
    list.push(user("Please hurry."));
    conversation(
        "system messages between the turns",
        two_turns(DOCK, &[system(DOCK.system), system("House style: plain words.")], &list),
    )
}

/// A client whose agent speaks first.
fn agent_opens(head: &[Value]) -> Conversation {
    let list = [vec![says("Welcome aboard. What can I do?")], before(), moved()].concat();
    conversation("an agent opens", two_turns(DOCK, head, &list))
}

/// The customer speaks again while the transfer runs, directly behind its result.
fn customer_behind_result(head: &[Value]) -> Conversation {
    let list = [before(), moved(), vec![user("Any news?")]].concat();
    conversation("the customer speaks behind a result", two_turns(DOCK, head, &list))
}

/// More than the window holds, every turn with a pair of its own.
fn long(head: &[Value]) -> Conversation {
    let mut list = Vec::new();
    for turn in 0..30 {
        let (id, arguments) = (format!("call_l{turn}"), format!(r#"{{"crossing":"fx_{turn}"}}"#));
        list.extend([
            user(&format!("What of crossing fx_{turn}?")),
            calls(&[(&id, "find_crossing", &arguments)]),
            result(&id, &format!(r#"{{"crossing":"fx_{turn}","log":"{}"}}"#, "calm sea ".repeat(300))),
            says(&format!("Crossing fx_{turn} is on time.")),
        ]);
    }
    list.extend([before(), moved()].concat());
    Conversation { name: "longer than the window".into(), exchanges: two_turns(DOCK, head, &list) }
}

/// A server that counts its ids from 0 in every reply.
fn repeated_ids(head: &[Value]) -> Conversation {
    let mut list = vec![user(OPENING)];
    for deck in ["A", "B", "C"] {
        list.push(calls(&[("call_0", "find_crossing", &format!(r#"{{"crossing":"fx_{deck}"}}"#))]));
        list.push(result("call_0", &format!(r#"{{"deck":"{deck}"}}"#)));
    }
    list.extend([
        calls(&[("call_0", "transfer_to_dock", "{}")]),
        result("call_0", r#"{"assistant":"dock"}"#),
    ]);
    Conversation { name: "one id for every call".into(), exchanges: two_turns(DOCK, head, &list) }
}

/// Pictures among the turns.
fn pictures(head: &[Value]) -> Conversation {
    let mut list = [before(), moved()].concat();
    list[0]["content"] = json!([
        {"type": "text", "text": OPENING},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}]);
    conversation("a picture among the turns", two_turns(DOCK, head, &list))
}

/// The conversation as a client of this server has it: with ids that this server gives, and with what it
/// wants back on every call that it made.
pub(crate) fn behind(server: &Server, conversation: &Conversation) -> Conversation {
    let issued: Vec<&str> = conversation
        .exchanges
        .iter()
        .flat_map(|exchange| &exchange.reply.calls)
        .map(|call| call.id.as_str())
        .collect();
    let given = |id: &str| server.given_id(id);
    let exchanges = conversation
        .exchanges
        .iter()
        .map(|exchange| {
            let mut request = exchange.request.clone();
            for message in request["messages"].as_array_mut().into_iter().flatten() {
                let made =
                    message["tool_calls"].as_array().and_then(|calls| calls.first()).is_some_and(|call| {
                        let id = call["id"].as_str().unwrap_or_default();
                        // What no reply of this conversation made was made before it began, or by the client.
                        issued.contains(&id) || id.starts_with("call_")
                    });
                if made {
                    super::fake::sign(message, server);
                }
            }
            let mut text = request.to_string();
            for id in &issued {
                // As a value, and inside a history that the client nested in a text.
                for quote in ["\"", "\\\""] {
                    let spelled = |id: &str| format!("{quote}{id}{quote}");
                    text = text.replace(&spelled(id), &spelled(&given(id)));
                }
            }
            let mut reply = exchange.reply.clone();
            reply.calls.iter_mut().for_each(|call| call.id = given(&call.id));
            Exchange { request: serde_json::from_str(&text).unwrap(), reply, receives: exchange.receives }
        })
        .collect();
    Conversation { name: conversation.name.clone(), exchanges }
}
