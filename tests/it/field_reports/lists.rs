//! Lists that servers refuse, or that repeat what they hold.

use serde_json::{Value, json};

use seam::engine::event::Code;

use super::{Stage, brief, list};
use crate::support::conversations::{
    Agent, DESK, DOCK, FOUND, OPENING, bare, before, calls, find, moved, request, result, says, system,
    transfer, user,
};
use crate::support::fake::Turn;

/// The transfer beside a note that was never, or wrongly, answered.
fn both() -> Value {
    calls(&[("call_t1", "transfer_to_dock", "{}"), ("call_n1", "add_note", r#"{"text":"calm"}"#)])
}

fn both_said() -> Turn {
    transfer().and("call_n1", "add_note", r#"{"text":"calm"}"#)
}

/// Row 1.
#[tokio::test]
async fn a_transfer_reaches_the_next_agent_without_its_result() {
    let stage = Stage::start().await;
    stage.desk_transfers().await;
    let open = [&before()[..], &moved()[..1]].concat();
    let got = stage.receives(&request(DOCK, &open), Turn::says("On it.")).await;
    assert_eq!(list(&got), before());
    assert_eq!(stage.found(Code::TransferResultMissing), 1);
}

/// Row 2.
#[tokio::test]
async fn the_transfers_result_came_under_another_calls_id() {
    let stage = Stage::start().await;
    stage.desk_says(both_said()).await;
    let wrong = [before(), vec![both(), result("call_n1", "Transferred to dock")]].concat();
    let got = stage.receives(&request(DOCK, &wrong), Turn::says("On it.")).await;
    let kept = list(&got).iter().rev().take(2).rev();
    let ids: Vec<&Value> = kept
        .map(|m| if m["role"] == "tool" { &m["tool_call_id"] } else { &m["tool_calls"][0]["id"] })
        .collect();
    assert_eq!(ids, ["call_n1", "call_n1"], "the note keeps exactly one result");
    let record = stage.record().await;
    let findings = record["findings"].as_array().unwrap();
    let missing = findings.iter().find(|f| f["code"] == "transfer_result_missing").expect("it is found");
    assert_eq!(missing["where"], "call_t1", "the transfer is told by its name, not by its place");
}

/// Row 3; every budget: `a_filtered_list_is_valid_at_every_budget`.
#[tokio::test]
async fn trimming_cut_between_a_call_and_its_result() {
    for tokens in ["1", "60", "120", "400", "1500", "100000"] {
        let stage =
            Stage::with("openai", &[("SEAM_TRANSCRIPT_TOKENS", tokens), ("SEAM_TRANSCRIPT_TURNS", "1")])
                .await;
        stage.desk_transfers().await;
        let mut all = Vec::new();
        for n in 0..12 {
            let id = format!("call_k{n}");
            all.extend([
                user(&format!("And crossing fx_{n}?")),
                calls(&[(&id, "find_crossing", "{}")]),
                result(&id, &FOUND.repeat(3)),
            ]);
        }
        all.extend([before(), moved()].concat());
        // The server refuses a result without its call, and a call without its result.
        stage.receives(&request(DOCK, &all), Turn::says("On it.")).await;
    }
}

/// Row 4.
#[tokio::test]
async fn only_the_transfer_of_several_calls_was_answered() {
    let stage = Stage::start().await;
    stage.desk_says(both_said()).await;
    let dangling = [before(), vec![both(), result("call_t1", "Successfully transferred to dock")]].concat();
    let got = stage.receives(&request(DOCK, &dangling), Turn::says("On it.")).await;
    assert_eq!(list(&got), before(), "what was not answered leaves; what was stays as it is");
    assert_eq!(stage.found(Code::CallUnanswered), 1);
}

/// Row 22.
#[tokio::test]
async fn a_filter_left_the_next_agent_no_message_at_all() {
    for filter in ["dialogue", "none"] {
        let stage = Stage::with("mistral", &[("SEAM_TRANSCRIPT", filter)]).await;
        stage.desk_transfers().await;
        let got = stage.receives(&request(DOCK, &[before(), moved()].concat()), Turn::says("On it.")).await;
        assert_eq!(list(&got), &before()[..1], "{filter}: the customer's turn is there, and nothing ends it");
    }
}

/// Row 24.
#[tokio::test]
async fn the_next_agent_said_again_that_it_transfers() {
    let stage = Stage::start().await;
    stage.desk_transfers().await;
    let got = stage.receives(&request(DOCK, &[before(), moved()].concat()), Turn::says("On it.")).await;
    assert!(!json!(list(&got)).to_string().contains("transfer"), "neither the call nor its result");
    assert!(brief(&got).contains(r#"You hold this run now, as "dock""#));
}

/// Row 26.
#[tokio::test]
async fn the_next_agent_called_a_tool_that_it_saw_and_does_not_have() {
    let stage = Stage::start().await;
    stage.desk_transfers().await;
    let sent = request(DOCK, &[before(), moved()].concat());
    let got = stage.receives(&sent, Turn::calls("call_f1", "find_crossing", "{}")).await;
    assert_eq!(got["tools"], sent["tools"], "its tools are never extended");
    assert_eq!(list(&got), before(), "the pair is kept as a pair");
    assert_eq!(stage.found(Code::ForeignTool), 1);
}

/// Row 27.
#[tokio::test]
async fn a_summary_and_the_items_it_sums_up_both_came() {
    let stage = Stage::start().await;
    stage.desk_transfers().await;
    let item = json!({"type": "function_call", "call_id": "call_a1", "name": "find_crossing", "arguments": r#"{"crossing":"fx_7731"}"#});
    let nested = format!(
        "For context, here is the conversation so far:\n<CONVERSATION HISTORY>\n1. user: {OPENING}\n2. {item}\n</CONVERSATION HISTORY>"
    );
    let twice = [vec![says(&nested)], before(), moved()].concat();
    let got = stage.receives(&request(DOCK, &twice), Turn::says("On it.")).await;
    assert_eq!(list(&got)[0], says(&nested), "what the client tells twice is left alone");
    assert_eq!(brief(&got).matches("84.50").count(), 1, "the brief tells it once");
    assert_eq!(stage.found(Code::DuplicateRun), 1);
}

/// Row 28.
#[tokio::test]
async fn every_hop_told_all_earlier_ones_again() {
    let names = ["purser", "bosun", "cook", "pilot"];
    let systems = [
        "You are the purser agent.",
        "You are the bosun agent.",
        "You are the cook agent.",
        "You are the pilot agent.",
    ];
    let tools: [&[&str]; 4] = [
        &["find_purser", "transfer_to_bosun"],
        &["find_bosun", "transfer_to_cook"],
        &["find_cook", "transfer_to_pilot"],
        &["find_pilot", "transfer_to_purser"],
    ];
    let agent = |n: usize| Agent { system: systems[n], tools: tools[n] };
    let stage = Stage::start().await;
    let mut all = vec![user("Get me and my bicycle aboard, cabin 7 please.")];
    let mut lengths = Vec::new();
    for n in 0..3 {
        let (look, move_) = (format!("call_l{n}"), format!("call_m{n}"));
        let (own, next) = (tools[n][0], tools[n][1]);
        let before = request(agent(n), &all);
        stage.exchange(&before, Turn::calls(&look, own, "{}"), crate::support::fake::Judge::Refuse).await;
        all.extend([
            calls(&[(&look, own, "{}")]),
            result(&look, &format!(r#"{{"{}_ref":"ref_{n}{n}{n}"}}"#, names[n])),
        ]);
        stage
            .exchange(
                &request(agent(n), &all),
                Turn::calls(&move_, next, "{}"),
                crate::support::fake::Judge::Refuse,
            )
            .await;
        all.extend([
            calls(&[(&move_, next, "{}")]),
            result(&move_, &format!(r#"{{"assistant":"{}"}}"#, names[n + 1])),
        ]);
        let got = stage.receives(&request(agent(n + 1), &all), Turn::says("On it.")).await;
        let brief = brief(&got);
        for k in 0..=n {
            assert_eq!(
                brief.matches(&format!("ref_{k}{k}{k}")).count(),
                1,
                "hop {n}: each fact once in {brief}"
            );
        }
        lengths.push(brief.len());
    }
    assert!(
        lengths[2] < lengths[0] + 2 * 250,
        "it grows with facts, not with what was told before: {lengths:?}"
    );
}

/// Row 29.
#[tokio::test]
async fn the_whole_conversation_came_twice() {
    let stage = Stage::start().await;
    let once = [
        user("Is the ferry late?"),
        says("Which one?"),
        user("Is the ferry late?"),
        says("fx_7731?"),
        user("Yes."),
    ];
    let list_of = |rest: &[Value]| [&once[..], &once[..], rest].concat();
    let rest = [before(), moved()].concat();
    stage.sends(request(DESK, &list_of(&rest[..1])), find()).await;
    stage.sends(request(DESK, &list_of(&before())), transfer()).await;
    let got = stage.receives(&request(DOCK, &list_of(&rest)), Turn::says("On it.")).await;
    assert_eq!(
        list(&got),
        list_of(&before()),
        "nothing is taken from the customer's words, and nothing added"
    );
    assert_eq!(stage.found(Code::DuplicateRun), 1);
}

/// Row 33.
#[tokio::test]
async fn a_system_message_stood_between_the_turns() {
    let stage = Stage::with("vllm", &[]).await;
    stage.desk_transfers().await;
    let marked = json!({"role": "user", "content": [{"type": "text", "text": "And the deck?", "cache_control": {"type": "ephemeral"}}]});
    let all =
        [before(), vec![says("One moment."), system("House style: plain words."), marked.clone()], moved()]
            .concat();
    let got = stage.receives(&request(DOCK, &all), Turn::says("On it.")).await;
    let slot = super::slot(&got);
    let order =
        [DOCK.system, "House style: plain words.", "[Seam handoff "].map(|part| slot.find(part).expect(part));
    assert!(order.is_sorted(), "folded in order, the brief last: {slot}");
    assert!(list(&got).contains(&marked), "marks stay");
}

/// Row 35.
#[tokio::test]
async fn the_role_developer_was_refused() {
    for (profile, sent, expected) in [
        ("openai", "developer", "developer"),
        ("openai", "system", "system"),
        ("vllm", "system", "system"),
        ("vllm", "developer", "system"),
        ("ollama", "developer", "system"),
    ] {
        let stage = Stage::with(profile, &[]).await;
        stage.desk_transfers().await;
        let own = json!({"role": sent, "content": DOCK.system});
        let got =
            stage.receives(&bare(DOCK, &[vec![own], before(), moved()].concat()), Turn::says("On it.")).await;
        assert_eq!(got["messages"][0]["role"], expected, "{profile}");
    }
}

/// Row 36.
#[tokio::test]
async fn two_of_one_role_stood_side_by_side() {
    for (profile, joined) in [("strict-alternation", true), ("openai", false)] {
        let stage = Stage::with(profile, &[]).await;
        stage.desk_transfers().await;
        let talk = [user("Hello?"), user("Anybody?"), says("Yes."), says("I am here."), user(OPENING)];
        let all = [&talk[..], &before()[1..], &moved()].concat();
        let got = stage.receives(&request(DOCK, &all), Turn::says("On it.")).await;
        if joined {
            assert_eq!(list(&got)[0], user("Hello?\n\n---\n\nAnybody?"), "joined, and visibly so");
        } else {
            assert_eq!(&list(&got)[..5], &talk, "left as they are");
        }
    }
}

/// Row 37.
#[tokio::test]
async fn the_customer_spoke_directly_behind_a_result() {
    let stage = Stage::with("mistral", &[]).await;
    stage.desk_transfers().await;
    let all = [before(), moved(), vec![user("Any news?")]].concat();
    let got = stage.receives(&request(DOCK, &all), Turn::says("On it.")).await;
    let roles: Vec<&str> = list(&got).iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "user"], "somebody neutral stands between");
}

/// Row 38.
#[tokio::test]
async fn a_call_id_was_not_nine_letters_or_digits() {
    let stage = Stage::with("mistral", &[]).await;
    stage.desk_transfers().await;
    let got = stage.receives(&request(DOCK, &[before(), moved()].concat()), Turn::says("On it.")).await;
    let (call, answer) = (&list(&got)[1]["tool_calls"][0]["id"], &list(&got)[2]["tool_call_id"]);
    assert_eq!(call, answer, "the same on both sides");
    assert!(call.as_str().unwrap().len() == 9, "{call}");
    let fits = Stage::with("openai", &[]).await;
    fits.desk_transfers().await;
    let got = fits.receives(&request(DOCK, &[before(), moved()].concat()), Turn::says("On it.")).await;
    assert_eq!(list(&got), before(), "elsewhere the client's ids stay");
}

/// Rows 48 and 49.
#[tokio::test]
async fn a_field_that_nobody_knew_was_lost_on_the_way() {
    let stage = Stage::with("gemini-compat", &[]).await;
    stage.desk_transfers().await;
    let mut all = [before(), moved()].concat();
    all[1]["tool_calls"][0]["extra_content"] = json!({"google": {"thought_signature": "Zm9vYmFy=="}});
    all[1]["x_vendor"] = json!({"b": 1.50, "a": [null]});
    all[0]["metadata"] = json!("kept");
    let got = stage.receives(&request(DOCK, &all), Turn::says("On it.")).await;
    assert_eq!(list(&got), &all[..3], "every field of what is kept");
}

/// Row 49.
#[tokio::test]
async fn hidden_reasoning_was_dropped_or_shown() {
    let stage = Stage::with("deepseek", &[]).await;
    stage.desk_says(Turn { text: Some("The traveller is calm.".into()), ..transfer() }).await;
    let mut all = [before(), moved()].concat();
    all[1]["reasoning_content"] = json!("Look the crossing up first.");
    all[3]["reasoning_content"] = json!("They seem rich; sell the cabin.");
    all[3]["content"] = json!("The traveller is calm.");
    let got = stage.receives(&request(DOCK, &all), Turn::says("On it.")).await;
    assert_eq!(list(&got), &all[..3], "what is kept keeps its reasoning");
    assert!(!got.to_string().contains("sell the cabin"), "what becomes a quote does not show it");
    assert!(brief(&got).contains("The traveller is calm."));
}
