//! The demo's two conversations: who speaks, with which tools, what the model
//! answers, and how the client hands over.

/// How replies come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// In one body.
    Plain,
    /// As an event stream.
    Streamed,
}

/// What a client shows the receiver of what came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum History {
    /// Everything, the transfer included.
    Whole,
    /// No tool call and no result: the transfer leaves no trace.
    WithoutTools,
}

/// An agent as its client describes it.
#[derive(Debug)]
pub(super) struct Agent {
    /// The name that a transfer tool of it carries.
    pub(super) name: &'static str,
    pub(super) instructions: &'static str,
    /// The tools on offer, as JSON.
    pub(super) tools: &'static str,
}

/// What the scripted model answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) text: Option<&'static str>,
    /// Id, tool and arguments.
    pub(super) call: Option<[&'static str; 3]>,
}

/// A conversation with one transfer.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) delivery: Delivery,
    pub(super) history: History,
    pub(super) sender: Agent,
    pub(super) receiver: Agent,
    /// What the customer says, one turn after the other.
    pub(super) customer: &'static [&'static str],
    /// What tools return: the tool and its result.
    pub(super) results: &'static [(&'static str, &'static str)],
    /// What the model answers, request by request.
    pub(super) answers: &'static [Answer],
    /// What it answers where it is asked for a contract; none in a conversation in which it is not.
    pub(super) asked: Option<&'static [Answer]>,
}

/// All scenes, in the order in which they are shown.
pub(super) const SCENES: &[&Scene] = &[&BICYCLE, &LIBRARY];
/// The scene in which senders are asked.
pub(super) const ASKED: &[&Scene] = &[&THEATRE];

const BICYCLE: Scene = Scene {
    title: "The sender says nothing",
    about: "The desk of a bicycle workshop finds a repair, is told what the customer does not want, notes it, and \
            transfers with transfer_to_workshop({}). Replies are streamed. The client shows the workshop the whole history.",
    delivery: Delivery::Streamed,
    history: History::Whole,
    sender: Agent {
        name: "desk",
        instructions: "You are the desk of a bicycle workshop. Find the customer's repair. What concerns the work \
                       itself goes to the workshop.",
        tools: r#"[{"type":"function","function":{"name":"find_repair","description":"Find a repair by its ticket.","parameters":{"type":"object","properties":{"ticket":{"type":"string"}},"required":["ticket"]}}},{"type":"function","function":{"name":"update_repair","description":"Put a note on a repair.","parameters":{"type":"object","properties":{"ticket":{"type":"string"},"note":{"type":"string"}},"required":["ticket","note"]}}},{"type":"function","function":{"name":"transfer_to_workshop","description":"Hand the conversation to the workshop.","parameters":{"type":"object","properties":{}}}}]"#,
    },
    receiver: Agent {
        name: "workshop",
        instructions: "You are the workshop. You order parts, plan the work, and tell the customer when a bicycle \
                       will be ready.",
        tools: r#"[{"type":"function","function":{"name":"order_part","description":"Order a part for a repair.","parameters":{"type":"object","properties":{"ticket":{"type":"string"},"part":{"type":"string"}},"required":["ticket","part"]}}}]"#,
    },
    customer: &[
        "Hello, my green touring bike is with you, ticket W-318. Is it done?",
        "All right. Please do not fit a used wheel, and do not spend more than 160 EUR without asking me. Can it be \
         done any sooner?",
    ],
    results: &[
        (
            "find_repair",
            r#"{"ticket":"W-318","bike":"green touring bike","state":"waiting for a rear wheel","quote":142.50,"currency":"EUR","promised":"2026-05-12"}"#,
        ),
        ("update_repair", r#"{"saved":true}"#),
    ],
    answers: &[
        Answer { text: None, call: Some(["call_desk_1", "find_repair", r#"{"ticket":"W-318"}"#]) },
        Answer {
            text: Some(
                "Not yet: it waits for a rear wheel. The quote is 142.50 EUR, and it is promised for 12 May.",
            ),
            call: None,
        },
        Answer {
            text: None,
            call: Some(["call_desk_2", "update_repair", r#"{"ticket":"W-318","note":"new wheel only"}"#]),
        },
        Answer {
            text: Some("I am passing you to the workshop."),
            call: Some(["call_desk_3", "transfer_to_workshop", "{}"]),
        },
        Answer {
            text: Some(
                "I will ask the supplier for a new rear wheel today. If it comes by Friday, W-318 is done on Monday.",
            ),
            call: None,
        },
    ],
    asked: None,
};

const LIBRARY: Scene = Scene {
    title: "The sender says more than it knows",
    about: "The information desk of a library fills in a contract that its own client declares. One fact stands in \
            a tool's result; one contradicts it; one cites a call that never ran. The client hides all tool calls \
            from the lending desk, the transfer too.",
    delivery: Delivery::Plain,
    history: History::WithoutTools,
    sender: Agent {
        name: "information",
        instructions: "You are the information desk of a city library. Look the card up. Loans and fees go to the \
                       lending desk.",
        tools: r#"[{"type":"function","function":{"name":"find_loan","description":"The loans of a card.","parameters":{"type":"object","properties":{"card":{"type":"string"}},"required":["card"]}}},{"type":"function","function":{"name":"transfer_to_lending","description":"Hand the conversation to the lending desk.","parameters":{"type":"object","properties":{"task":{"type":"string"},"established":{"type":"array","items":{"type":"object","properties":{"key":{"type":"string"},"value":{"type":"string"},"of":{"type":"string"},"source":{"type":"string"},"evidence":{"type":"string"}}}},"remaining":{"type":"array","items":{"type":"string"}}},"required":["task","established","remaining"]}}}]"#,
    },
    receiver: Agent {
        name: "lending",
        instructions: "You are the lending desk of a city library. You extend loans and take fees.",
        tools: r#"[{"type":"function","function":{"name":"extend_loan","description":"Extend a loan.","parameters":{"type":"object","properties":{"item":{"type":"string"}},"required":["item"]}}}]"#,
    },
    customer: &["My card is L-2204. I would like to keep the sailing atlas for two more weeks."],
    results: &[(
        "find_loan",
        r#"{"card":"L-2204","item":"B-77","title":"Sailing Atlas","due":"2026-06-03","extensions":2,"fees_eur":"3.20"}"#,
    )],
    answers: &[
        Answer { text: None, call: Some(["call_info_1", "find_loan", r#"{"card":"L-2204"}"#]) },
        Answer {
            text: None,
            call: Some([
                "call_info_2",
                "transfer_to_lending",
                r#"{"task":"Extend the loan of item B-77 by two weeks.","established":[{"key":"due","value":"3 June 2026","of":"item B-77","source":"tool_result","evidence":"call_info_1"},{"key":"extensions","value":"0","of":"item B-77","source":"tool_result","evidence":"call_info_1"},{"key":"fees_paid","value":"yes","of":"card L-2204","source":"tool_result","evidence":"call_info_9"}],"remaining":["extend the loan","tell the customer the new date"]}"#,
            ]),
        },
        Answer {
            text: Some(
                "The atlas was extended twice already, and 3.20 EUR are open. Shall I take the fee first?",
            ),
            call: None,
        },
    ],
    asked: None,
};

const THEATRE: Scene = Scene {
    title: "The sender is asked, makes a fact up, and is corrected before anybody reads it",
    about: "The box office of a theatre finds a booking and transfers with transfer_to_seating({}). Through Seam its \
            tool asks for a contract; one of the facts that it writes cites a call that never ran. Replies are \
            streamed. The client shows the seating desk the whole history, and declares no argument.",
    delivery: Delivery::Streamed,
    history: History::Whole,
    sender: Agent {
        name: "office",
        instructions: "You are the box office of a theatre. Find the booking. What concerns seats goes to the seating \
                       desk.",
        tools: r#"[{"type":"function","function":{"name":"find_booking","description":"Find a booking by its code.","parameters":{"type":"object","properties":{"code":{"type":"string"}},"required":["code"]}}},{"type":"function","function":{"name":"transfer_to_seating","description":"Hand the conversation to the seating desk.","parameters":{"type":"object","properties":{}}}}]"#,
    },
    receiver: Agent {
        name: "seating",
        instructions: "You are the seating desk of a theatre. You find seats and exchange bookings.",
        tools: r#"[{"type":"function","function":{"name":"find_seats","description":"Free seats of a show.","parameters":{"type":"object","properties":{"show":{"type":"string"}},"required":["show"]}}}]"#,
    },
    customer: &[
        "My booking is T-58. We need two seats without steps, and please do not go over 90 EUR in all.",
    ],
    results: &[(
        "find_booking",
        r#"{"booking":"T-58","show":"2026-06-14","seats":"F12, F13","paid_eur":"84.00","exchange_until":"2026-06-12"}"#,
    )],
    answers: &[
        Answer { text: None, call: Some(["call_office_1", "find_booking", r#"{"code":"T-58"}"#]) },
        Answer { text: None, call: Some(["call_office_2", "transfer_to_seating", "{}"]) },
        THEATRE_END,
    ],
    asked: Some(&[
        Answer { text: None, call: Some(["call_office_1", "find_booking", r#"{"code":"T-58"}"#]) },
        Answer {
            text: None,
            call: Some([
                "call_office_2",
                "transfer_to_seating",
                r#"{"handoff":{"task":"Exchange booking T-58 for two seats without steps.","reason":"The seating desk exchanges seats.","established":[{"key":"paid_eur","value":"84.00","of":"booking T-58","source":"tool_result","evidence":"call_office_1"},{"key":"step_free_row","value":"A","of":"show 2026-06-14","source":"tool_result","evidence":"call_office_9"}],"constraints":[{"text":"please do not go over 90 EUR in all","scope":"task","stated_by":"customer"}],"decisions":[],"open_questions":[],"remaining":["Find two seats without steps","Exchange the booking"],"done_when":["T-58 holds two seats without steps"]}}"#,
            ]),
        },
        Answer { text: None, call: Some(["call_office_3", "transfer_to_seating", THEATRE_CONTRACT]) },
        THEATRE_END,
    ]),
};

const THEATRE_END: Answer = Answer {
    text: Some("I look for two seats without steps on 14 June, at most 6 EUR above what you paid."),
    call: None,
};

/// What the box office writes once it was told what is wrong.
const THEATRE_CONTRACT: &str = r#"{"handoff":{"task":"Exchange booking T-58 for two seats without steps.","reason":"The seating desk exchanges seats.","established":[{"key":"paid_eur","value":"84.00","of":"booking T-58","source":"tool_result","evidence":"call_office_1"},{"key":"exchange_until","value":"2026-06-12","of":"booking T-58","source":"tool_result","evidence":"call_office_1"}],"constraints":[{"text":"please do not go over 90 EUR in all","scope":"task","stated_by":"customer"}],"decisions":[],"open_questions":["Which rows have no steps?"],"remaining":["Find two seats without steps","Exchange the booking"],"done_when":["T-58 holds two seats without steps"]}}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filled_contract_costs_few_tokens() {
        let encoding = bpe_openai::o200k_base();
        let tokens = encoding.count(THEATRE_CONTRACT) - encoding.count("{}");
        println!("a filled contract: {tokens} tokens (o200k)");
        assert!(tokens <= 220, "{tokens}");
    }
}
