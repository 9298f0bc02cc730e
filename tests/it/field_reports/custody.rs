//! Who has the run: transfers to nobody, to oneself, to two, and round in circles.

use serde_json::{Value, json};

use seam::engine::event::Code;

use super::{Stage, brief, list};
use crate::support::conversations::{
    Agent, DESK, DOCK, OPENING, before, calls, find, moved, request, result, says, transfer, user,
};
use crate::support::fake::{Judge, Turn};

fn full() -> Vec<Value> {
    [before(), moved()].concat()
}

/// Row 5.
#[tokio::test]
async fn of_two_transfers_in_one_reply_the_last_won_silently() {
    let ignored = result("call_t2", "Multiple handoffs detected, ignoring this one.");
    let taken = result("call_t1", r#"{"assistant":"dock"}"#);
    // As clients answer two: with a refusal ahead or behind, or one of them not at all.
    for answers in [vec![taken.clone(), ignored.clone()], vec![ignored, taken.clone()], vec![taken]] {
        let stage = Stage::start().await;
        stage.desk_says(transfer().and("call_t2", "transfer_to_billing", "{}")).await;
        assert_eq!(stage.found(Code::TwoTransfers), 1);
        let two = calls(&[("call_t1", "transfer_to_dock", "{}"), ("call_t2", "transfer_to_billing", "{}")]);
        let all = [&before()[..], &[two], &answers].concat();
        let got = stage.receives(&request(DOCK, &all), Turn::says("On it.")).await;
        assert_eq!(list(&got), before());
        assert!(brief(&got).contains(r#"You hold this run now, as "dock""#), "{}", brief(&got));
        let tools = &["refund", "transfer_to_desk"];
        let billing = Agent { system: "You are the billing agent of a ferry line.", tools };
        let (_, got) = stage.exchange(&request(billing, &all), Turn::says("Me too."), Judge::Note).await;
        assert!(!got.to_string().contains("[Seam handoff "), "there is one receiver, never two: {got:#}");
        let records = stage.seam.admin_json("/handoffs").await;
        let taken_up = |one: &&Value| one["state"] == "taken_up";
        assert_eq!(records.as_array().unwrap().iter().filter(taken_up).count(), 1);
    }
}

/// Row 7.
#[tokio::test]
async fn the_old_agent_answered_as_well_as_the_new_one() {
    for (enforce, status) in [("", 200), ("custody", 422)] {
        let settings = [("SEAM_ENFORCE", enforce)];
        let stage = Stage::with("openai", if enforce.is_empty() { &[] } else { &settings }).await;
        stage.desk_says(transfer().and("call_n1", "add_note", r#"{"text":"calm"}"#)).await;
        let both =
            calls(&[("call_n1", "add_note", r#"{"text":"calm"}"#), ("call_t1", "transfer_to_dock", "{}")]);
        let all =
            [before(), vec![both, result("call_n1", "noted"), result("call_t1", r#"{"assistant":"dock"}"#)]]
                .concat();
        stage.receives(&request(DOCK, &all), Turn::says("On it.")).await;
        let (got, _) = stage.exchange(&request(DESK, &all), Turn::says("I am on it too."), Judge::Note).await;
        assert_eq!(got.status, status, "{enforce}");
        assert_eq!(stage.found(Code::NotHolder), 1, "{enforce}");
    }
}

/// A dock that can, by mistake, transfer to itself.
const LOOPING: Agent = Agent { system: DOCK.system, tools: &["rebook", "transfer_to_dock"] };

/// Rows 9 and 10.
#[tokio::test]
async fn an_agent_transferred_to_itself_and_began_again() {
    let stage = Stage::start().await;
    stage.desk_transfers().await;
    let first =
        stage.receives(&request(DOCK, &full()), Turn::calls("call_s1", "transfer_to_dock", "{}")).await;
    let first_brief = brief(&first);
    // The tool that goes to itself is on offer from now on: the same agent all the same.
    let again = [
        full(),
        vec![
            calls(&[("call_s1", "transfer_to_dock", "{}")]),
            result("call_s1", "Successfully transferred to dock"),
        ],
    ]
    .concat();
    stage
        .exchange(&request(LOOPING, &full()), Turn::calls("call_s1", "transfer_to_dock", "{}"), Judge::Refuse)
        .await;
    assert!(stage.found(Code::SelfTransfer) >= 1);
    let got = stage.receives(&request(LOOPING, &again), Turn::says("On it.")).await;
    assert_eq!(brief(&got), first_brief, "the same brief, and no second one");
    assert_eq!(got.to_string().matches("[Seam handoff ").count(), 1);
    let taken_up = |one: &&Value| one["state"] == "taken_up";
    let all = stage.seam.admin_json("/handoffs").await;
    assert_eq!(all.as_array().unwrap().iter().filter(taken_up).count(), 1, "no hop was spent");
}

/// Row 11.
#[tokio::test]
async fn a_transfer_named_an_agent_that_does_not_exist() {
    let stage = Stage::start().await;
    let mut asked = request(Agent { tools: &["find_crossing", "transfer_to_agent"], ..DESK }, &before());
    asked["tools"][1]["function"]["parameters"]["properties"] =
        json!({"agent_name": {"type": "string", "enum": ["dock", "billing"]}});
    let wrong = Turn::calls("call_t1", "transfer_to_agent", r#"{"agent_name":"dock_dept_9"}"#);
    let (got, _) = stage.exchange(&asked, wrong, Judge::Note).await;
    assert_eq!(got.status, 200, "never a 5xx");
    assert_eq!(stage.found(Code::UnknownDestination), 1);
    // The client says so, and the desk asks once more: still the desk's.
    let all = [
        before(),
        vec![
            calls(&[("call_t1", "transfer_to_agent", r#"{"agent_name":"dock_dept_9"}"#)]),
            result("call_t1", "Error: agent dock_dept_9 not found"),
        ],
    ]
    .concat();
    asked["messages"] = request(DESK, &all)["messages"].clone();
    stage.sends(asked, Turn::says("Which one?")).await;
}

/// Row 11, where hops are enforced: the sender is told whom it can transfer to, before its client sees anything.
#[tokio::test]
async fn a_wrong_name_is_put_right_at_the_seam() {
    let stage = Stage::with("openai", &[("SEAM_ENFORCE", "hops")]).await;
    let mut asked = request(Agent { tools: &["find_crossing", "transfer_to_agent"], ..DESK }, &before());
    asked["tools"][1]["function"]["parameters"]["properties"] =
        json!({"agent_name": {"type": "string", "enum": ["dock", "billing"]}});
    stage
        .fake
        .next(Turn::calls("call_t1", "transfer_to_agent", r#"{"agent_name":"dock_dept_9"}"#), Judge::Refuse);
    let right = Turn::calls("call_t2", "transfer_to_agent", r#"{"agent_name":"dock"}"#);
    let (got, again) = stage.exchange(&asked, right, Judge::Refuse).await;
    let told = list(&again).last().unwrap();
    assert_eq!((&told["role"], &told["tool_call_id"]), (&json!("tool"), &json!("call_t1")));
    assert!(told["content"].as_str().unwrap().contains("only: dock, billing"), "{told}");
    assert!(got.text().contains("call_t2") && !got.text().contains("dock_dept_9"), "{}", got.text());
}

/// Row 9, where hops are enforced and the sender is not asked again.
#[tokio::test]
async fn a_transfer_to_oneself_is_refused_and_nothing_moves() {
    let stage = Stage::with("openai", &[("SEAM_ENFORCE", "hops"), ("SEAM_CORRECTIONS", "0")]).await;
    stage.desk_transfers().await;
    stage.receives(&request(DOCK, &full()), Turn::says("One moment.")).await;
    let (got, _) = stage
        .exchange(&request(LOOPING, &full()), Turn::calls("call_s1", "transfer_to_dock", "{}"), Judge::Note)
        .await;
    assert_eq!((got.status, got.header("x-should-retry")), (422, Some("false")), "{}", got.text());
    assert!(got.text().contains("self_transfer"), "{}", got.text());
    let records = stage.seam.admin_json("/handoffs").await;
    let states: Vec<&Value> = records.as_array().unwrap().iter().map(|one| &one["state"]).collect();
    assert_eq!(states, ["refused", "taken_up"]);
}

/// Rows 13 and 14.
#[tokio::test]
async fn agents_passed_the_user_round_without_a_reason() {
    let names = ["desk", "dock", "billing", "deck"];
    let systems = [
        "You are the desk agent.",
        "You are the dock agent.",
        "You are the billing agent.",
        "You are the deck agent.",
    ];
    let tools: [&[&str]; 4] = [
        &["desk_looks", "transfer_to_dock"],
        &["dock_looks", "transfer_to_billing"],
        &["billing_looks", "transfer_to_deck"],
        &["deck_looks", "transfer_to_desk"],
    ];
    let stage = Stage::start().await;
    let mut all = vec![user(OPENING)];
    for n in 0..14 {
        let (from, to) = (n % 4, (n + 1) % 4);
        let (id, name) = (format!("call_m{n}"), format!("transfer_to_{}", names[to]));
        let agent = Agent { system: systems[from], tools: tools[from] };
        let reply = Turn::calls(&id, &name, "{}");
        stage.exchange(&request(agent, &all), reply, Judge::Refuse).await;
        all.extend([
            calls(&[(&id, &name, "{}")]),
            result(&id, &format!(r#"{{"assistant":"{}"}}"#, names[to])),
        ]);
    }
    assert!(stage.found(Code::Visited) >= 9, "{}", stage.found(Code::Visited));
    assert!(stage.found(Code::HopLimit) >= 1, "the cap counts transfers, and is small");
    let hops = stage.seam.admin_json("/handoffs").await;
    assert!(hops.as_array().unwrap().len() >= 13, "every hop is recorded");
    let agent = Agent { system: systems[2], tools: tools[2] };
    let got = stage.receives(&request(agent, &all), Turn::says("I do it.")).await;
    assert!(brief(&got).contains("not asked of the sender"), "that no reason came is said");
}

/// Row 16.
#[tokio::test]
async fn empty_messages_went_round_for_ever() {
    let stage = Stage::start().await;
    stage.desk_transfers().await;
    for n in 1..=5 {
        let (got, _) = stage.exchange(&request(DOCK, &full()), Turn::says(""), Judge::Refuse).await;
        let reply: Value = serde_json::from_slice(&got.body).unwrap();
        assert_eq!(reply["choices"][0]["message"]["content"], "", "no word is added");
        assert_eq!(
            stage.found(Code::EmptyTurn),
            n,
            "each is found, and none is answered by a call of Seam's own"
        );
    }
}

/// Row 17.
#[tokio::test]
async fn the_answer_to_the_new_agents_question_went_to_the_old_one() {
    let stage = Stage::start().await;
    stage.desk_transfers().await;
    let first = stage.receives(&request(DOCK, &full()), Turn::says("Which deck would you like?")).await;
    let asked = [full(), vec![says("Which deck would you like?"), user("Deck C.")]].concat();
    let (got, _) = stage.exchange(&request(DESK, &asked), Turn::says("How can I help?"), Judge::Note).await;
    assert_eq!(got.status, 200);
    assert_eq!(
        stage.found(Code::Rerouted),
        1,
        "a customer's turn may go to whom the client lets answer; it is told"
    );
    // The client lets the dock answer the next turn: its brief is still there.
    let next = [asked, vec![says("How can I help?"), user("I said deck C to your colleague.")]].concat();
    let got = stage.receives(&request(DOCK, &next), Turn::says("Deck C it is.")).await;
    assert_eq!(brief(&got), brief(&first));
}

/// Row 18.
#[tokio::test]
async fn a_transfer_was_announced_and_not_made() {
    let stage = Stage::start().await;
    let words = "I'll hand you over to our dock team now.";
    stage.sends(request(DESK, &before()[..1]), find()).await;
    let (got, _) = stage.exchange(&request(DESK, &before()), Turn::says(words), Judge::Refuse).await;
    assert!(got.text().contains(words), "it passes as it is");
    assert_eq!(stage.found(Code::AnnouncedNotExecuted), 1);
    assert_eq!(stage.seam.admin_json("/handoffs").await, json!([]), "and no transfer is made of it");
}

/// Row 21.
#[tokio::test]
async fn on_the_way_back_the_customers_last_words_were_dropped() {
    let stage = Stage::start().await;
    stage.desk_transfers().await;
    stage.receives(&request(DOCK, &full()), Turn::says("Anything else?")).await;
    let asked =
        [full(), vec![says("Anything else?"), user("Yes: refund the fare, the desk promised.")]].concat();
    stage.receives(&request(DOCK, &asked), Turn::calls("call_b1", "transfer_to_desk", "{}")).await;
    let back = [
        asked,
        vec![calls(&[("call_b1", "transfer_to_desk", "{}")]), result("call_b1", r#"{"assistant":"desk"}"#)],
    ]
    .concat();
    let got = stage.receives(&request(DESK, &back), Turn::says("Let me see.")).await;
    let words = json!(list(&got)).to_string();
    assert_eq!(words.matches("the desk promised").count(), 1, "present, and once");
    assert_eq!(stage.found(Code::Visited), 0, "something is new: the return is allowed");
    assert_eq!(stage.record().await["hop"], 2, "and counts as a hop");
}
