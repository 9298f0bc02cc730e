//! What must be told to nobody: after a full run no log line of any level, no
//! metric, no span and no answer of the admin listener holds a credential or a
//! word of the conversation.

use serde_json::{Value, json};

use crate::support::binary::Binary;
use crate::support::client::{Client, post};
use crate::support::h2;
use crate::support::upstream::{Step, Upstream, chunk, chunked_head, plain};

/// Stands in every credential and in every piece of the conversation, and nowhere else.
const CANARY: &str = "zq7";

/// What a client sends in its head, each with a canary.
const HEAD: &str = "content-type: application/json\r\nauthorization: Bearer zq7authorization\r\napi-key: zq7key\r\n\
                    cookie: session=zq7cookie\r\nx-tenant: zq7tenant\r\nx-custom-secret: zq7custom\r\n";

/// A handoff whose every value is content: some of it true, some of it not, some of it against the rules.
fn declared() -> Value {
    json!({
        "task": "Refund zq7task now. And zq7more.",
        "reason": "zq7reason",
        "established": [
            {"key": "amount", "value": "zq7amount", "source": "tool_result", "evidence": "call_1"},
            {"key": "iban", "value": "zq7invented", "source": "tool_result", "evidence": "call_1"},
            {"key": "zq7 is a whole sentence of a key", "value": "zq7", "source": "customer_utterance", "evidence": "zq7quote"},
            {"value": "zq7statement 4711", "source": "agent_inference", "evidence": "zq7evidence"}
        ],
        "constraints": [{"text": "Never call before zq7noon.", "scope": "run", "stated_by": "customer"}],
        "decisions": ["zq7decision"],
        "open_questions": ["zq7question"],
        "remaining": ["zq7remaining"],
        "done_when": ["zq7done"],
        "artifacts": [{"name": "zq7artifact", "kind": "zq7kind", "ref": "zq7ref\nzq7line", "summary": "zq7summary"}],
        "hop": "zq7owned"
    })
}

/// The tools of every request: a transfer that declares a contract, and one that does not.
fn tools() -> Value {
    let tool = |name: &str, properties: Value| {
        json!({"type": "function", "function": {"name": name, "description": "zq7description",
               "parameters": {"type": "object", "properties": properties}}})
    };
    let fields = ["task", "reason", "established", "constraints", "decisions", "open_questions", "remaining"];
    let fields: serde_json::Map<String, Value> =
        fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
    json!([
        tool("find_order", json!({"id": {"type": "string"}})),
        tool("transfer_to_refunds", fields.into()),
        tool("transfer_to_billing", json!({}))
    ])
}

fn call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"role": "assistant", "content": "zq7beside", "tool_calls": [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}}]})
}

fn before() -> Vec<Value> {
    vec![
        json!({"role": "user", "content": "zq7customer wants zq7money. Never call before zq7noon."}),
        call("call_1", "find_order", &json!({"id": "zq7id"})),
        json!({"role": "tool", "tool_call_id": "call_1",
               "content": "{\"amount\":\"zq7amount\",\"zq7 key of a result\":\"zq7value\",\"note\":\"zq7note\"}"}),
    ]
}

fn request(system: &str, messages: &[Value], stream: bool) -> Value {
    let system = json!({"role": "system", "content": format!("You are the {system} agent. zq7system")});
    let messages: Vec<Value> = std::iter::once(system).chain(messages.iter().cloned()).collect();
    json!({"model": "m-1", "messages": messages, "tools": tools(), "stream": stream, "user": "zq7user"})
}

fn answer(message: &Value) -> Vec<u8> {
    let body = json!({"id": "chatcmpl-1", "model": "m-1", "choices": [
        {"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}});
    plain("content-type: application/json\r\nset-cookie: zq7setcookie\r\n", body.to_string().as_bytes())
}

fn streamed(message: &Value) -> Vec<u8> {
    let mut calls = message["tool_calls"].clone();
    for call in calls.as_array_mut().into_iter().flatten() {
        call["index"] = json!(0);
    }
    let delta =
        json!({"choices": [{"index": 0, "delta": {"content": message["content"], "tool_calls": calls}}]});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    let events = format!("data: {delta}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    let head = chunked_head("content-type: text/event-stream\r\n");
    [head, chunk(events.as_bytes()), b"0\r\n\r\n".to_vec()].concat()
}

/// A sender hands over, its receiver takes it up and goes on; the old holder goes on too.
async fn transfer(seam: &Binary, upstream: &Upstream, stream: bool, to: &str, arguments: &Value) {
    let moved = call("call_9", to, arguments);
    let confirmed = json!({"role": "tool", "tool_call_id": "call_9", "content": "zq7confirmed"});
    let after = [before(), vec![moved.clone(), confirmed]].concat();
    let said = json!({"role": "assistant", "content": "zq7reply about zq7amount"});
    let write = if stream { streamed } else { answer };
    for (system, messages, reply) in [
        ("desk", before(), &moved),
        ("refunds", after.clone(), &said),
        (
            "refunds",
            [after.clone(), vec![said.clone(), json!({"role": "user", "content": "zq7thanks"})]].concat(),
            &said,
        ),
        ("desk", before(), &said),
    ] {
        upstream.then([Step::Send(write(reply))]);
        let body = request(system, &messages, stream).to_string();
        let mut client = Client::connect(seam.address).await;
        client.exchange(post("/v1/chat/completions?key=zq7query", HEAD, body.as_bytes())).await;
    }
}

/// The same by the other API.
async fn responses(seam: &Binary, upstream: &Upstream) {
    let moved = json!({"type": "function_call", "id": "fc_1", "call_id": "call_9", "name": "transfer_to_refunds",
                       "arguments": declared().to_string()});
    let user = json!({"role": "user", "content": "zq7customer"});
    let tools: Vec<Value> = tools()
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            let mut flat = tool["function"].clone();
            flat["type"] = json!("function");
            flat
        })
        .collect();
    let output = json!({"type": "function_call_output", "call_id": "call_9", "output": "zq7confirmed"});
    for (system, input) in
        [("desk", vec![user.clone()]), ("refunds", vec![user.clone(), moved.clone(), output])]
    {
        let body = json!({"id": "resp_1", "object": "response", "model": "m-1", "status": "completed", "output": [moved]});
        upstream.replies(plain("content-type: application/json\r\n", body.to_string().as_bytes()));
        let body = json!({"model": "m-1", "instructions": format!("You are the {system} agent. zq7system"),
                          "input": input, "tools": tools, "store": false});
        let mut client = Client::connect(seam.address).await;
        client.exchange(post("/v1/responses", HEAD, body.to_string().as_bytes())).await;
    }
}

/// Whatever can go wrong.
async fn trouble(seam: &Binary, upstream: &Upstream) {
    let sender = request("desk", &before(), false).to_string();
    let stream = chunked_head("content-type: text/event-stream\r\n");
    let error = b"{\"error\":{\"message\":\"zq7error\",\"code\":\"zq7code\",\"type\":\"zq7type\"}}";
    let refused = format!(
        "HTTP/1.1 400 zq7phrase\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        error.len()
    );
    let steps: Vec<Vec<Step>> = vec![
        vec![Step::Close],
        vec![Step::Send(b"zq7 is no head\r\n\r\n".to_vec()), Step::Close],
        vec![Step::Send([refused.as_bytes(), error].concat())],
        vec![Step::Send(plain("content-type: application/json\r\n", b"{\"choices\":[{\"zq7broken"))],
        vec![Step::Send(plain("content-type: application/json\r\ncontent-encoding: zq7coding\r\n", b"zq7"))],
        vec![Step::Send(plain(
            "content-type: application/json\r\ncontent-encoding: gzip\r\n",
            b"zq7notgzip",
        ))],
        vec![
            Step::Send(
                [stream.clone(), chunk(b"data: {\"choices\":[{\"delta\":{\"content\":\"zq7half\n\n")]
                    .concat(),
            ),
            Step::Close,
        ],
        vec![Step::Send([stream, chunk(b"data: zq7 is no JSON\n\n"), b"0\r\n\r\n".to_vec()].concat())],
    ];
    for steps in steps {
        upstream.then(steps);
        let mut client = Client::connect(seam.address).await;
        client.send(post("/v1/chat/completions", HEAD, sender.as_bytes())).await;
        if client.head_if_any().await.is_some() {
            client.is_closed().await;
        }
    }
    for (path, body) in [
        ("/v1/chat/completions", "{\"messages\": zq7nojson"),
        (
            "/v1/chat/completions",
            "{\"model\":\"m\",\"messages\":[{\"role\":\"zq7role\",\"content\":7}],\"tools\":\"transfer_to_zq7\"}",
        ),
        ("/v1/zq7path?zq7=1", "zq7body"),
    ] {
        Client::connect(seam.address).await.exchange(post(path, HEAD, body.as_bytes())).await;
    }
    Client::connect(seam.address)
        .await
        .exchange("CONNECT zq7host:443 HTTP/1.1\r\nhost: zq7host\r\n\r\n")
        .await;
    let mut cut = Client::connect(seam.address).await;
    cut.send(&post("/v1/chat/completions", HEAD, sender.as_bytes())[..400]).await;
    drop(cut);
    let request = http::Request::post("http://seam/v1/chat/completions?key=zq7query")
        .header("authorization", "Bearer zq7authorization")
        .header("content-type", "application/json");
    let body = http_body_util::Full::new(bytes::Bytes::from(sender));
    h2::Client::connect(seam.address).await.exchange(request.body(body).unwrap()).await;
}

/// Everything that the admin listener says.
async fn answers(seam: &Binary) -> String {
    let host = format!("host: {}\r\nauthorization: Bearer zq7-admin-token-zq7\r\n", seam.admin);
    let get = async |path: &str| {
        Client::connect(seam.admin).await.exchange(format!("GET {path} HTTP/1.1\r\n{host}\r\n")).await.text()
    };
    let mut said = String::new();
    for path in ["/live", "/ready", "/metrics", "/handoffs", "/passes"] {
        said += &get(path).await;
    }
    let ids = |list: &str| -> Vec<String> {
        let list: Value = serde_json::from_str(list).unwrap_or_default();
        let ids = list.as_array().into_iter().flatten().filter_map(|one| one["id"].as_str());
        ids.map(str::to_owned).collect()
    };
    for id in [ids(&get("/handoffs").await), ids(&get("/passes").await)].concat() {
        said += &get(&format!("/handoffs/{id}")).await;
        said += &get(&format!("/handoffs/{id}?explain")).await;
    }
    said
}

/// Runs all of it under these settings, and looks for the canary.
async fn check(settings: &[(&str, &str)], transfers: bool) {
    let (upstream, mut receiver) = (Upstream::start().await, Upstream::start().await);
    let endpoint = format!("http://{}", receiver.address);
    let base = [
        ("SEAM_LOG", "trace"),
        ("SEAM_TRACE_ENDPOINT", endpoint.as_str()),
        ("SEAM_TRACE_HEADERS", "x-key=zq7tracekey"),
        ("SEAM_ADMIN_TOKEN", "zq7-admin-token-zq7"),
    ];
    let seam = Binary::start(&upstream.url(), &[&base, settings].concat()).await;
    transfer(&seam, &upstream, false, "transfer_to_refunds", &declared()).await;
    transfer(&seam, &upstream, true, "transfer_to_refunds", &declared()).await;
    transfer(&seam, &upstream, true, "transfer_to_billing", &json!({"note": "zq7undeclared"})).await;
    transfer(&seam, &upstream, false, "transfer_to_billing", &json!("zq7 is no object")).await;
    responses(&seam, &upstream).await;
    trouble(&seam, &upstream).await;
    let answers = answers(&seam).await;
    seam.signal("TERM");
    let (code, log) = seam.ended().await;
    assert_eq!(code, Some(0));
    let mut spans = Vec::new();
    while spans.is_empty() {
        spans = receiver.request().await.body;
    }
    while let Ok(more) = tokio::time::timeout(std::time::Duration::from_millis(200), receiver.request()).await
    {
        spans.extend(more.body);
    }
    // That there is something to look through.
    assert!(log.len() > 100, "{}", log.len());
    assert!(spans.windows(4).any(|four| four == b"chat"));
    assert!(answers.contains("seam_events_total"));
    if transfers {
        assert!(answers.contains("\"detection\"") && answers.contains("\"key\":\"amount\""), "{answers}");
        assert!(log.iter().any(|line| line.contains("transfer taken up")));
    }
    // Nobody's text begins a line of its own.
    assert!(log.iter().all(|line| line.starts_with("20") || line.starts_with("{\"timestamp\"")), "{log:#?}");
    let told = |what: &str, text: &str| {
        let at = text.find(CANARY);
        let near = |at: usize| {
            text[text.floor_char_boundary(at.saturating_sub(200))..].chars().take(400).collect::<String>()
        };
        assert!(at.is_none(), "{what} of {settings:?} tells: {}", at.map(near).unwrap_or_default());
    };
    for line in &log {
        told("a log line", line);
    }
    told("an answer", &answers);
    told("a span", &String::from_utf8_lossy(&spans));
}

#[tokio::test]
async fn nothing_is_told_by_default() {
    check(&[("SEAM_LOG_FORMAT", "plain")], true).await;
}

#[tokio::test]
async fn nothing_is_told_where_senders_are_asked_and_transfers_refused() {
    let settings = [
        ("SEAM_LOG_FORMAT", "json"),
        ("SEAM_CONTRACT", "inject"),
        ("SEAM_ENFORCE", "contract,facts,hops,custody,budget"),
        ("SEAM_BUDGET_TOKENS", "10"),
        ("SEAM_TENANT_HEADER", "x-tenant"),
    ];
    check(&settings, false).await;
}

#[tokio::test]
async fn nothing_is_told_where_the_store_is_away() {
    let settings = [
        ("SEAM_STORE", "redis://user:zq7password@127.0.0.1:9/0"),
        ("SEAM_MODE", "observe"),
        ("HTTPS_PROXY", "http://user:zq7proxy@127.0.0.1:9"),
        ("SEAM_ON_FAILURE", "closed"),
    ];
    check(&settings, false).await;
}
