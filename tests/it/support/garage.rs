//! A conversation in a garage: the desk hands it to the workshop.

use serde_json::{Value, json};

use super::client::post;
use super::upstream::plain;

/// What an agent asks upstream, and what it answers.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) request: Value,
    pub(crate) reply: Value,
}

impl Turn {
    /// The request on the wire.
    pub(crate) fn on_the_wire(&self) -> Vec<u8> {
        let head = "content-type: application/json\r\nauthorization: Bearer garage\r\n";
        post("/v1/chat/completions", head, self.request.to_string().as_bytes())
    }

    /// The reply on the wire.
    pub(crate) fn answer(&self) -> Vec<u8> {
        let finish = if self.reply.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
        let body = json!({
            "id": "chatcmpl-1", "object": "chat.completion", "model": "m",
            "choices": [{"index": 0, "message": self.reply, "finish_reason": finish}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        });
        plain("content-type: application/json\r\n", body.to_string().as_bytes())
    }
}

/// One conversation, told apart from others by the plate of its car.
#[derive(Clone, Debug)]
pub(crate) struct Garage {
    plate: String,
    desk: &'static str,
    workshop: &'static str,
}

impl Garage {
    pub(crate) fn new(plate: &str) -> Garage {
        Garage {
            plate: plate.to_owned(),
            desk: "You are the intake desk of a garage.",
            workshop: "You are the workshop agent of a garage.",
        }
    }

    /// What the brief has to say, from the desk's own tool result.
    pub(crate) fn booking(&self) -> String {
        format!("bk-{}", self.plate)
    }

    /// The desk looks the booking up.
    pub(crate) fn desk_looks_up(&self) -> Turn {
        self.desk_turn(vec![self.opening()], self.lookup())
    }

    /// The desk transfers, by the call of this number.
    pub(crate) fn desk_transfers(&self, number: usize) -> Turn {
        self.desk_turn(self.before_transfer(), Garage::transfer(number))
    }

    /// The workshop's first request, as a client sends it that hides the transfer.
    pub(crate) fn workshop_begins(&self) -> Turn {
        self.workshop_turn(vec![self.opening()], says("I have opened job jb_9 for you."))
    }

    /// The workshop's second request.
    pub(crate) fn workshop_goes_on(&self) -> Turn {
        let said = [says("I have opened job jb_9 for you."), user("Thanks. When is it done?")];
        self.workshop_turn([&[self.opening()][..], &said].concat(), says("Tomorrow at noon."))
    }

    /// The workshop's first request, with the transfer in sight.
    pub(crate) fn workshop_sees_transfer(&self) -> Turn {
        let moved = [Garage::transfer(0), result("t0", r#"{"assistant": "workshop"}"#)];
        self.workshop_turn([&self.before_transfer()[..], &moved].concat(), says("Bring it in."))
    }

    fn desk_turn(&self, list: Vec<Value>, reply: Value) -> Turn {
        let tools = [tool("find_booking", &["plate"]), tool("transfer_to_workshop", &[])];
        Turn { request: request(self.desk, list, &tools), reply }
    }

    fn workshop_turn(&self, list: Vec<Value>, reply: Value) -> Turn {
        let tools = [tool("open_job", &["booking"]), tool("transfer_to_intake_desk", &[])];
        Turn { request: request(self.workshop, list, &tools), reply }
    }

    fn opening(&self) -> Value {
        user(&format!("My brakes squeal, plate {}. Never call me before noon.", self.plate))
    }

    fn lookup(&self) -> Value {
        call(&format!("find-{}", self.plate), "find_booking", &json!({"plate": self.plate}))
    }

    fn before_transfer(&self) -> Vec<Value> {
        let found = json!({"booking": self.booking(), "plate": self.plate, "quote": "318.40"});
        vec![self.opening(), self.lookup(), result(&format!("find-{}", self.plate), &found.to_string())]
    }

    fn transfer(number: usize) -> Value {
        call(&format!("t{number}"), "transfer_to_workshop", &json!({}))
    }
}

/// The brief in a request as upstream got it.
pub(crate) fn brief(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let slot = body["messages"][0]["content"].as_str()?;
    slot.find("[Seam handoff ").map(|at| slot[at..].to_owned())
}

fn request(instructions: &str, list: Vec<Value>, tools: &[Value]) -> Value {
    let system = json!({"role": "system", "content": instructions});
    let messages: Vec<Value> = std::iter::once(system).chain(list).collect();
    json!({"model": "m", "messages": messages, "tools": tools})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn says(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn call(id: &str, name: &str, arguments: &Value) -> Value {
    let function = json!({"name": name, "arguments": arguments.to_string()});
    json!({"role": "assistant", "content": null,
           "tool_calls": [{"id": id, "type": "function", "function": function}]})
}

fn result(id: &str, text: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": text})
}

fn tool(name: &str, properties: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        properties.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    let parameters = json!({"type": "object", "properties": properties});
    json!({"type": "function", "function": {"name": name, "parameters": parameters}})
}
