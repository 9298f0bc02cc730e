//! A reply as an event stream, in the shape of its server.

use std::fmt::Write;

use serde_json::{Value, json};

use super::servers::{Finish, Index, Shape};
use super::{Called, Turn};

/// Characters of one fragment of text or arguments.
const FRAGMENT: usize = 5;

/// The stream of a reply.
pub(super) fn stream(shape: Shape, turn: &Turn, model: &str) -> String {
    let head =
        json!({"id": super::reply_id(), "object": "chat.completion.chunk", "created": 1, "model": model});
    let mut out = Out { shape, head, text: String::new() };
    if shape.empty_choices {
        out.event(&json!({"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}));
    }
    out.delta(&json!({"role": "assistant", "content": ""}), &Value::Null);
    if shape.reasoning {
        out.delta(&json!({"content": null, "reasoning_content": "The order first."}), &Value::Null);
    }
    for part in fragments(turn.text.as_deref().unwrap_or_default()) {
        out.delta(&json!({"content": part}), &Value::Null);
    }
    for (place, call) in turn.calls.iter().enumerate() {
        for fragment in call_fragments(shape, place, call) {
            out.delta(&json!({"tool_calls": [fragment]}), &Value::Null);
        }
    }
    if shape.trailing_extra && !turn.calls.is_empty() {
        out.delta(
            &json!({"content": "", "extra_content": {"google": {"thought_signature": "c2VhbA=="}}}),
            &Value::Null,
        );
    }
    let finish = match shape.finish {
        _ if turn.calls.is_empty() => "stop",
        Finish::Calls => "tool_calls",
        Finish::Stop => "stop",
        Finish::Silent => "",
    };
    if !finish.is_empty() {
        out.delta(&json!({}), &json!(finish));
    }
    out.text.push_str("data: [DONE]\n\n");
    out.text
}

struct Out {
    shape: Shape,
    /// What every chunk begins with.
    head: Value,
    text: String,
}

impl Out {
    fn delta(&mut self, delta: &Value, finish: &Value) {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        self.event(&json!({"choices": [choice]}));
    }

    fn event(&mut self, parts: &Value) {
        let mut chunk = self.head.clone();
        chunk["choices"] = parts["choices"].clone();
        if self.shape.usage_always {
            chunk["usage"] = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
        }
        if self.shape.comments {
            self.text.push_str(": PROCESSING\n\n");
        }
        write!(self.text, "data: {chunk}\n\n").unwrap();
    }
}

fn call_fragments(shape: Shape, place: usize, call: &Called) -> Vec<Value> {
    let placed = |mut fragment: Value| {
        match shape.index {
            Index::Right => fragment["index"] = json!(place),
            Index::Zero => fragment["index"] = json!(0),
            Index::Absent => {}
        }
        fragment
    };
    let opening = |arguments: &str| {
        placed(
            json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}),
        )
    };
    if shape.whole_calls {
        return vec![opening(&call.arguments)];
    }
    let rest = fragments(&call.arguments).into_iter().map(|part| {
        let mut fragment = placed(json!({"function": {"arguments": part}}));
        if shape.name_again {
            fragment["function"]["name"] = json!(call.name);
        }
        fragment
    });
    std::iter::once(opening("")).chain(rest).collect()
}

fn fragments(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(FRAGMENT).map(|part| part.iter().collect()).collect()
}
