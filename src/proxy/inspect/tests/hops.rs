//! Where transfers may go, enforced: loops and limits end at a person, and what only looks like a loop goes on.

use super::*;
use crate::engine::record::{Record, State};
use crate::proxy::watched::Broken;

/// What became of a transfer.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// The client runs it.
    Passed,
    /// The client runs this call instead.
    As(String, String),
    /// It was refused.
    Refused(String),
}
use Ended::{As, Passed, Refused};

/// A team that can ask for a person.
struct Ring {
    team: Team,
    person: bool,
}

impl Ring {
    fn new(settings: &[(&str, &str)], person: bool) -> Ring {
        let settings = [&[("SEAM_ENFORCE", "hops"), ("SEAM_CORRECTIONS", "0")][..], settings].concat();
        Ring { team: Team::new(&settings), person }
    }

    fn request(&self, agent: &str) -> Value {
        let mut body = self.team.request(agent);
        let tools = body["tools"].as_array_mut().expect("tools");
        for tool in tools.iter_mut() {
            tool["function"]["parameters"] =
                json!({"type": "object", "properties": {"reason": {"type": "string"}}});
        }
        if self.person {
            tools.push(json!({"type": "function", "function": {"name": "transfer_to_human", "parameters": {
                "type": "object", "properties": {"summary": {"type": "string"}, "reason": {"type": "string"}}, "required": ["reason"]}}}));
        }
        body
    }

    /// An agent answers with these calls of one message; the client runs the first that it gets.
    async fn says(&mut self, agent: &str, said: &[(&str, Value)]) -> Ended {
        let mut message = says("");
        message["content"] = Value::Null;
        self.team.calls += 1;
        let number = self.team.calls;
        message["tool_calls"] = said
            .iter()
            .enumerate()
            .map(|(n, (name, arguments))| {
                calls(&format!("t{number}-{n}"), name, arguments)["tool_calls"][0].clone()
            })
            .collect();
        let answer = Answer { parts: cut(&reply_body(&message), 32), ..Answer::default() };
        let got = self.team.desk.play(&head("Bearer one"), &self.request(agent), vec![answer]).await;
        if let Some(Broken::Refused(refusal)) = got.broken {
            return Refused(refusal.message);
        }
        let reply: Value = serde_json::from_slice(&got.reply).expect("JSON");
        let called = &reply["choices"][0]["message"]["tool_calls"][0];
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let (name, arguments) = (text(&called["function"]["name"]), text(&called["function"]["arguments"]));
        let (wanted, own) = &said[0];
        let passed =
            name == *wanted && serde_json::from_str::<Value>(&arguments).is_ok_and(|got| got == *own);
        self.team.list.push(reply["choices"][0]["message"].clone());
        self.team.list.push(result(
            called["id"].as_str().expect("an id"),
            &format!("Successfully transferred by {name}"),
        ));
        if passed { Passed } else { As(name, arguments) }
    }

    async fn pass(&mut self, from: &str, to: &str, reason: &str) -> Ended {
        self.says(from, &[(&format!("transfer_to_{to}"), json!({"reason": reason}))]).await
    }

    async fn records(&self) -> Vec<Record> {
        let ids: Vec<String> = (0..80).map(|n| fresh("seed", n)).collect();
        self.team.desk.records(&ids.iter().map(String::as_str).collect::<Vec<_>>()).await
    }
}

/// Four agents pass the run round, after a look-up each where there is something to look up, until one is stopped.
async fn go_round(ring: &mut Ring, finds: bool) -> (usize, Ended) {
    let round = Team::AGENTS;
    ring.team.look_up("intake", r#"{"booking":"bk_1"}"#).await;
    for n in 0..40 {
        let from = round[n % 4];
        if finds && n > 0 {
            ring.team.look_up(from, &format!(r#"{{"number":"n_{n}"}}"#)).await;
        }
        let ended = ring.pass(from, round[(n + 1) % 4], &format!("Reason {n}.")).await;
        if ended != Passed {
            return (n, ended);
        }
    }
    panic!("nobody stops them")
}

#[tokio::test]
async fn four_agents_that_pass_the_run_round_are_stopped_and_a_person_gets_it() {
    // Who finds nothing new is stopped at the first that had it, who does at the limit.
    for (finds, limit, expected) in [(false, "12", 3), (true, "6", 6), (true, "12", 12)] {
        let mut ring = Ring::new(&[("SEAM_HOPS", limit)], true);
        let (passed, ended) = go_round(&mut ring, finds).await;
        let reason = format!(r#"{{"reason":"Reason {passed}."}}"#);
        assert_eq!((passed, ended), (expected, As("transfer_to_human".into(), reason)), "{finds} {limit}");
        let records = ring.records().await;
        let hops: Vec<(State, String, Option<&str>)> = records
            .iter()
            .map(|record| {
                (
                    record.state,
                    record.to_agent.clone(),
                    record.handoff.reason.as_ref().map(|line| line.text.as_str()),
                )
            })
            .collect();
        for (n, (state, to, reason)) in hops.iter().take(passed).enumerate() {
            assert_eq!((state, to.as_str()), (&State::TakenUp, Team::AGENTS[(n + 1) % 4]), "{hops:?}");
            assert_eq!(*reason, Some(format!("Reason {n}.").as_str()), "{hops:?}");
        }
        let last: Vec<(State, &str)> =
            hops[passed..].iter().map(|(state, to, _)| (*state, to.as_str())).collect();
        assert_eq!(last, [(State::TakenUp, "human"), (State::Refused, Team::AGENTS[(passed + 1) % 4])]);
    }
}

#[tokio::test]
async fn where_no_person_is_on_offer_it_is_refused() {
    let (passed, ended) = go_round(&mut Ring::new(&[], false), false).await;
    assert_eq!((passed, ended), (3, Refused("the transfer to intake was refused: visited".into())));
}

#[tokio::test]
async fn behind_a_transfer_to_a_person_nothing_moves() {
    let mut ring = Ring::new(&[], true);
    assert_eq!(
        ring.says("intake", &[("transfer_to_human", json!({"reason": "She asks for one."}))]).await,
        Passed
    );
    assert_eq!(
        ring.pass("intake", "workshop", "Brakes.").await,
        As("transfer_to_human".into(), r#"{"reason":"Brakes."}"#.into())
    );
}

#[tokio::test]
async fn two_transfers_in_one_reply_do_not_both_go_on() {
    let both =
        [("transfer_to_workshop", json!({"reason": "a"})), ("transfer_to_billing", json!({"reason": "b"}))];
    let mut ring = Ring::new(&[], false);
    let refused = ring.says("intake", &both).await;
    assert_eq!(refused, Refused("the transfer to workshop was refused: two_transfers".into()));
    let mut ring = Ring::new(&[], true);
    assert_eq!(ring.says("intake", &both).await, As("transfer_to_human".into(), r#"{"reason":"a"}"#.into()));
}

/// What becomes of a call of a tool that names its destination.
async fn to(destination: &str) -> Ended {
    let desk = Desk::with(&[("SEAM_ENFORCE", "hops"), ("SEAM_CORRECTIONS", "0")]);
    let parameters = json!({"type": "object", "properties": {"agent_name": {"type": "string", "enum": ["workshop", "intake"]}}});
    let tools =
        [json!({"type": "function", "function": {"name": "transfer_to_agent", "parameters": parameters}})];
    let sent = request(&[system("You are the intake agent of a garage."), opening()], &tools);
    let message = calls("t1", "transfer_to_agent", &json!({"agent_name": destination}));
    let answer = Answer { parts: cut(&reply_body(&message), 32), ..Answer::default() };
    match desk.play(&head("Bearer one"), &sent, vec![answer]).await.broken {
        Some(Broken::Refused(refusal)) => Refused(refusal.message),
        _ => Passed,
    }
}

#[tokio::test]
async fn only_another_agent_on_offer_can_be_transferred_to() {
    assert_eq!(to("workshop").await, Passed);
    assert_eq!(to("intake").await, Refused("the transfer to intake was refused: self_transfer".into()));
    assert_eq!(to("bakery").await, Refused("the transfer to bakery was refused: unknown_destination".into()));
}

#[tokio::test]
async fn a_return_that_answers_a_question_goes_on() {
    let mut ring = Ring::new(&[], false);
    ring.team.look_up("intake", r#"{"booking":"bk_1"}"#).await;
    assert_eq!(ring.pass("intake", "workshop", "Is there a free bay?").await, Passed);
    ring.team.look_up("workshop", r#"{"bay":"4"}"#).await;
    assert_eq!(ring.pass("workshop", "intake", "Bay 4 is free.").await, Passed);
}

#[tokio::test]
async fn who_cannot_help_gives_the_run_back_and_is_not_asked_again() {
    let mut ring = Ring::new(&[], false);
    ring.team.look_up("intake", r#"{"booking":"bk_1"}"#).await;
    assert_eq!(ring.pass("intake", "workshop", "Brakes.").await, Passed);
    assert_eq!(ring.pass("workshop", "intake", "That is billing's.").await, Passed);
    assert_eq!(
        ring.pass("intake", "workshop", "Please.").await,
        Refused("the transfer to workshop was refused: visited".into())
    );
}

#[tokio::test]
async fn an_orchestrator_dispatches_the_same_agent_twice() {
    let settings = [("SEAM_CONTRACT", "inject"), ("SEAM_CONTRACT_FIELDS", "full")];
    let mut ring = Ring::new(&settings, false);
    ring.team.look_up("intake", r#"{"booking":"bk_1"}"#).await;
    for n in 0..3 {
        let task = json!({"task": format!("Do part {n}."), "return_to": "intake"});
        let dispatched = ring
            .says("intake", &[("transfer_to_workshop", json!({"reason": "A part.", "handoff": task}))])
            .await;
        let declared = r#"{"reason":"A part."}"#.to_owned();
        assert_eq!(dispatched, As("transfer_to_workshop".into(), declared), "dispatch {n}");
        let back = ring
            .says(
                "workshop",
                &[("transfer_to_intake", json!({"reason": "Done.", "handoff": {"task": "Go on."}}))],
            )
            .await;
        assert_eq!(back, As("transfer_to_intake".into(), r#"{"reason":"Done."}"#.into()), "return {n}");
    }
}

#[tokio::test]
async fn a_chat_of_forty_customer_turns_goes_on() {
    let mut ring = Ring::new(&[], false);
    for n in 0..40 {
        let (from, to) = if n % 2 == 0 { ("intake", "workshop") } else { ("workshop", "intake") };
        ring.team.list.push(user(&format!("And number {n}?")));
        assert_eq!(ring.pass(from, to, "Yours.").await, Passed, "turn {n}");
    }
}
