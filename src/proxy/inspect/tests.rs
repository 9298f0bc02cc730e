//! Conversations through the inspector: whose request gets a brief, and whose does not.

mod desk;
mod dialects;
mod held;
mod hops;

use serde_json::{Value, json};

use super::*;
use desk::*;

#[tokio::test]
async fn a_visible_transfer_gives_its_receiver_a_brief_and_the_same_bytes_on_every_turn() {
    let desk = Desk::new();
    play_sender(&desk, DESK).await;
    let mut list = [&[system(WORKSHOP)][..], &before_transfer(), &transfer_pair()].concat();
    let got = desk
        .send(&request(&list, &workshop_tools()), &calls("c3", "open_job", &json!({"booking": "bk_4471"})))
        .await;
    let brief = has_brief(&got, WORKSHOP);
    assert!(brief.contains("bk_4471") && brief.contains("c1"), "{brief}");
    assert!(brief.contains("Never call me before noon"), "{brief}");
    let messages = got["messages"].as_array().expect("a list").clone();
    assert_eq!(messages[1..], before_transfer()[..], "the transfer has left, the rest is as it was");

    list.extend([calls("c3", "open_job", &json!({"booking": "bk_4471"})), result("c3", r#"{"job":"jb_9"}"#)]);
    desk.clock.advance_ms(3_600_000);
    let later = desk.send(&request(&list, &workshop_tools()), &says("The job jb_9 is open.")).await;
    assert_eq!(later["messages"].as_array().expect("a list")[..messages.len()], messages[..]);
    assert_eq!(later["messages"].as_array().expect("a list")[messages.len()..], list[list.len() - 2..]);
}

#[tokio::test]
async fn a_client_that_hides_the_transfer_gets_its_brief_from_memory() {
    let desk = Desk::new();
    play_sender(&desk, DESK).await;
    let mut list = vec![system(WORKSHOP), opening()];
    let got = desk.send(&request(&list, &workshop_tools()), &says("I have opened job jb_9 for you.")).await;
    let brief = has_brief(&got, WORKSHOP);
    assert!(brief.contains("bk_4471") && brief.contains("c1"), "{brief}");
    list.extend([says("I have opened job jb_9 for you."), user("Thanks. When is it done?")]);
    let later = desk.send(&request(&list, &workshop_tools()), &says("Tomorrow.")).await;
    assert_eq!(has_brief(&later, WORKSHOP), brief);
}

#[tokio::test]
async fn a_clock_in_the_instructions_changes_nobody() {
    let desk = Desk::new();
    let at = |time: &str| format!("{DESK} It is {time}.");
    play_sender(&desk, &at("9:14")).await;
    // The sender goes on with its own view, the transfer in it, a minute later.
    let own = [&[system(&at("9:15"))][..], &before_transfer(), &transfer_pair()].concat();
    let sent = request(&own, &desk_tools());
    assert_eq!(desk.send(&sent, &says("Handing over.")).await, sent);
    let workshop = |time: &str| format!("{WORKSHOP} It is {time}.");
    let mut list = [&[system(&workshop("9:16"))][..], &before_transfer(), &transfer_pair()].concat();
    let got = desk.send(&request(&list, &workshop_tools()), &says("Bring it in.")).await;
    let brief = has_brief(&got, &workshop("9:16"));
    assert!(brief.contains("Handing over."), "the sender's parting words: {brief}");
    list[0] = system(&workshop("10:48"));
    list.extend([says("Bring it in."), user("Now?")]);
    let later = desk.send(&request(&list, &workshop_tools()), &says("Yes.")).await;
    assert_eq!(has_brief(&later, &workshop("10:48")), brief);
}

#[tokio::test]
async fn guardrails_and_titles_beside_the_run_get_nothing() {
    let desk = Desk::new();
    play_sender(&desk, DESK).await;
    let mut guardrail =
        request(&[system("Does the customer of the workshop ask for something forbidden?"), opening()], &[]);
    guardrail["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "v", "schema": {}}});
    assert_eq!(desk.send(&guardrail, &says("{}")).await, guardrail);
    let title = request(
        &[
            &[system("Write a title of four words for this conversation.")][..],
            &before_transfer(),
            &transfer_pair(),
            &[user("title?")],
        ]
        .concat(),
        &[],
    );
    assert_eq!(desk.send(&title, &says("Squealing brakes")).await, title);
    let list = [&[system(WORKSHOP)][..], &before_transfer(), &transfer_pair()].concat();
    has_brief(&desk.send(&request(&list, &workshop_tools()), &says("Bring it in.")).await, WORKSHOP);
    assert_eq!(desk.send(&title, &says("Squealing brakes")).await, title);
}

#[tokio::test]
async fn two_hidden_transfers_that_open_alike_never_get_each_others_brief() {
    let desk = Desk::new();
    for reply in ["What is wrong?", "What seems to be wrong with it?"] {
        let sent = request(&[system(DESK), user("hi")], &desk_tools());
        desk.send(&sent, &calls(&format!("c-{}", reply.len()), "transfer_to_workshop", &json!({}))).await;
    }
    let receiver = request(&[system(WORKSHOP), user("hi")], &workshop_tools());
    assert_eq!(desk.send(&receiver, &says("Hello.")).await, receiver);
}

#[tokio::test]
async fn conversations_that_open_alike_are_told_apart_by_what_follows() {
    let desk = Desk::new();
    let greeting = says("Welcome to the garage, how can we help you today?");
    for plate in ["AB 1", "CD 2"] {
        let mut list = vec![system(DESK), user("hi")];
        desk.send(&request(&list, &desk_tools()), &greeting).await;
        list.extend([greeting.clone(), user(&format!("brakes of {plate}"))]);
        let found = calls(&format!("c-{plate}"), "find_booking", &json!({"plate": plate}));
        desk.send(&request(&list, &desk_tools()), &found).await;
        list.extend([found, result(&format!("c-{plate}"), &format!(r#"{{"booking":"bk {plate}"}}"#))]);
        let moved = calls(&format!("t-{plate}"), "transfer_to_workshop", &json!({}));
        desk.send(&request(&list, &desk_tools()), &moved).await;
    }
    for (plate, other) in [("AB 1", "CD 2"), ("CD 2", "AB 1")] {
        let list = [system(WORKSHOP), user("hi"), greeting.clone(), user(&format!("brakes of {plate}"))];
        let got = desk.send(&request(&list, &workshop_tools()), &says("Fine.")).await;
        let brief = has_brief(&got, WORKSHOP);
        assert!(brief.contains(&format!("bk {plate}")) && !brief.contains(&format!("bk {other}")), "{brief}");
    }
}

#[tokio::test]
async fn an_invented_way_back_is_a_transfer_too() {
    let desk = Desk::new();
    play_sender(&desk, DESK).await;
    let mut list = [before_transfer(), transfer_pair().to_vec()].concat();
    let worker = [tool("open_job", &["booking"])];
    let with = |instructions: &str, list: &[Value]| [&[system(instructions)][..], list].concat();
    desk.send(&request(&with(WORKSHOP, &list), &worker), &says("Job jb_9 is open now.")).await;
    list.extend([
        says("Job jb_9 is open now."),
        calls("0b7e", "transfer_back_to_intake_desk", &json!({})),
        result("0b7e", "Successfully transferred back to intake desk"),
    ]);
    let got = desk.send(&request(&with(DESK, &list), &desk_tools()), &says("Anything else?")).await;
    let brief = has_brief(&got, DESK);
    assert!(brief.contains("bk_4471"), "{brief}");
}

#[tokio::test]
async fn without_memory_a_visible_transfer_still_gives_a_brief() {
    let desk = Desk::new();
    let list = [&[system(WORKSHOP)][..], &before_transfer(), &transfer_pair()].concat();
    let got = desk.send(&request(&list, &workshop_tools()), &says("Bring it in.")).await;
    let brief = has_brief(&got, WORKSHOP);
    assert!(brief.contains("bk_4471"), "{brief}");
    let own = [&[system(DESK)][..], &before_transfer(), &transfer_pair()].concat();
    let sent = request(&own, &desk_tools());
    assert_eq!(desk.send(&sent, &says("x")).await, sent, "who still offers the transfer is not its receiver");
}

#[tokio::test]
async fn a_task_that_opens_a_new_conversation_finds_its_run() {
    let desk = Desk::new();
    let tools = [tool("find_booking", &["plate"]), tool("delegate_task_to_member", &["member_id", "task"])];
    let task = "Open a job for booking bk_4471 and say its number";
    let list = before_transfer();
    desk.send(&request(&[&[system(DESK)][..], &list[..1]].concat(), &tools), &list[1]).await;
    let moved = calls("c2", "delegate_task_to_member", &json!({"member_id": "workshop", "task": task}));
    desk.send(&request(&[&[system(DESK)][..], &list].concat(), &tools), &moved).await;
    let got = desk
        .send(&request(&[system(WORKSHOP), user(task)], &[tool("open_job", &["booking"])]), &says("jb_9"))
        .await;
    assert!(has_brief(&got, WORKSHOP).contains("KA 17 XR"));
}

#[tokio::test]
async fn what_only_looks_like_a_transfer_is_left_alone() {
    let lookalikes = [
        tool("transfer_to_account", &["iban", "amount"]),
        tool("handoff_notes", &["text"]),
        tool("transfer_funds", &["amount"]),
        tool("route_to_address", &["street", "city"]),
        tool("escalate_to_priority", &["ticket", "level"]),
        tool("delegate_to_calendar", &["event_id", "delegate_email"]),
        tool("transfer_back_to_savings", &["amount"]),
        tool("agent-list", &["filter"]),
        tool("transfer_to_inventory", &["sku", "count"]),
        tool("hand_over_to_courier", &["parcel", "weight"]),
    ];
    let desk = Desk::new();
    for (n, tool) in lookalikes.iter().enumerate() {
        let name = tool["function"]["name"].as_str().expect("a name");
        let arguments = tool["function"]["parameters"]["properties"].clone();
        let id = format!("c{n}");
        let mut list =
            vec![system("You are a bank's assistant."), user("Please do what I asked for, number 4.")];
        let tools = [tool.clone()];
        let sent = request(&list, &tools);
        assert_eq!(desk.send(&sent, &calls(&id, name, &arguments)).await, sent);
        list.extend([calls(&id, name, &arguments), result(&id, "done")]);
        let sent = request(&list, &tools);
        assert_eq!(desk.send(&sent, &says("It is done.")).await, sent, "{name}");
        list[0] = system("You check what the other assistant did.");
        let sent = request(&list, &[crate::proxy::inspect::tests::tool("audit", &["id"])]);
        assert_eq!(desk.send(&sent, &says("It is fine.")).await, sent, "{name}");
    }
}

#[tokio::test]
async fn observe_changes_nothing_and_keeps_the_shadow_brief() {
    let desk = Desk::with(&[("SEAM_MODE", "observe")]);
    play_sender(&desk, DESK).await;
    let list = [&[system(WORKSHOP)][..], &before_transfer(), &transfer_pair()].concat();
    let sent = request(&list, &workshop_tools());
    assert_eq!(desk.send(&sent, &says("Bring it in.")).await, sent);
    let ids: Vec<String> = (0..20).map(|n| fresh("seed", n)).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let records = desk.records(&ids).await;
    assert!(records[0].brief.as_deref().is_some_and(|brief| brief.contains("bk_4471")));
}

#[tokio::test]
async fn a_tenant_never_meets_anothers_record() {
    let desk = Desk::new();
    play_sender(&desk, DESK).await;
    let receiver = request(&[system(WORKSHOP), opening()], &workshop_tools());
    assert_eq!(desk.send_as("Bearer two", &receiver, &says("x")).await, receiver);
    has_brief(&desk.send(&receiver, &says("x")).await, WORKSHOP);
}

#[tokio::test]
async fn a_brief_that_stands_already_is_left_as_it_is() {
    let outer = Desk::new();
    let inner = Desk::new();
    play_sender(&outer, DESK).await;
    play_sender(&inner, DESK).await;
    let list = [&[system(WORKSHOP)][..], &before_transfer(), &transfer_pair()].concat();
    let once = outer.send(&request(&list, &workshop_tools()), &says("x")).await;
    assert_eq!(inner.send(&once, &says("x")).await, once);
}

#[tokio::test]
async fn of_two_transfers_in_one_reply_the_one_that_was_made_counts() {
    let desk = Desk::new();
    let tools = [&desk_tools()[..], &[tool("transfer_to_billing", &[])]].concat();
    let list = before_transfer();
    desk.send(&request(&[&[system(DESK)][..], &list[..1]].concat(), &tools), &list[1]).await;
    let mut both = calls("c2", "transfer_to_workshop", &json!({}));
    let second = calls("c3", "transfer_to_billing", &json!({}))["tool_calls"][0].clone();
    both["tool_calls"].as_array_mut().expect("calls").push(second);
    desk.send(&request(&[&[system(DESK)][..], &list].concat(), &tools), &both).await;
    let refused = result("c3", "Multiple handoffs detected, ignoring this one.");
    let taken = result("c2", r#"{"assistant": "workshop"}"#);
    let list = [&[system(WORKSHOP)][..], &list, &[both, refused, taken]].concat();
    let got = desk.send(&request(&list, &workshop_tools()), &says("Bring it in.")).await;
    has_brief(&got, WORKSHOP);
    assert_eq!(got["messages"].as_array().map(Vec::len), Some(1 + before_transfer().len()));
}

#[tokio::test]
async fn a_run_of_every_release_keeps_its_brief_to_the_byte() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/store");
    let newest = folder.join(format!("{}.json", crate::engine::record::VERSION));
    if !newest.exists() {
        std::fs::write(&newest, golden().await.to_string()).expect("the checkout can be written to");
        panic!("{} was written: read it, and commit it for good", newest.display());
    }
    for version in 1..=crate::engine::record::VERSION {
        let text = std::fs::read_to_string(folder.join(format!("{version}.json"))).expect("a case a version");
        check_golden(&serde_json::from_str(&text).expect("JSON")).await;
    }
}

/// A holder's later request, what upstream gets of it, and all that the store holds before.
async fn golden() -> Value {
    let desk = Desk::new();
    play_sender(&desk, DESK).await;
    let mut list = vec![system(WORKSHOP), opening()];
    desk.send(&request(&list, &workshop_tools()), &says("I have opened job jb_9 for you.")).await;
    list.extend([says("I have opened job jb_9 for you."), user("Thanks. When is it done?")]);
    let later = request(&list, &workshop_tools());
    let dump = desk.store.dump();
    let values = dump.values.iter().map(|(key, bytes)| (key, String::from_utf8_lossy(bytes)));
    let values: std::collections::BTreeMap<_, _> = values.collect();
    let got = desk.send(&later, &says("Tomorrow.")).await;
    json!({"values": values, "sets": dump.sets, "request": later, "expected": got})
}

async fn check_golden(case: &Value) {
    use crate::store::{Expect, Write};
    let desk = Desk::new();
    let week = std::time::Duration::from_hours(7 * 24);
    let mut write = Write::default();
    for (key, value) in case["values"].as_object().expect("values") {
        let value = Bytes::from(value.as_str().expect("text").to_owned());
        write = write.put(key.clone(), value, Expect::Absent, week);
    }
    for (key, members) in case["sets"].as_object().expect("sets") {
        for member in members.as_array().expect("members") {
            write = write.add(key.clone(), member.as_str().expect("text"), 8, week);
        }
    }
    desk.store.write(write).await.expect("it is written");
    let got = desk.send(&case["request"], &says("Tomorrow.")).await;
    assert_eq!(has_brief(&got, WORKSHOP), has_brief(&case["expected"], WORKSHOP));
    // Written again by this build, it is the same still.
    let got = desk.send(&case["request"], &says("Tomorrow.")).await;
    assert_eq!(got, case["expected"]);
}

/// The events of a streamed reply that says a word and then transfers.
fn streamed_transfer() -> Vec<u8> {
    let chunk = |delta: Value, finish: Value| {
        let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        format!("data: {chunk}\n\n")
    };
    let call = |rest: Value| json!({"tool_calls": [rest]});
    [
        chunk(json!({"role": "assistant", "content": "I pass you on – now."}), Value::Null),
        chunk(call(json!({"index": 0, "id": "c2", "type": "function", "function": {"name": "transfer_to_workshop", "arguments": ""}})), Value::Null),
        ": ping\r\n\r\n".to_owned(),
        chunk(call(json!({"index": 0, "function": {"arguments": "{\"reason\": \"Br"}})), Value::Null),
        chunk(call(json!({"index": 0, "function": {"arguments": "emsen \u{fc}ber Nacht\"}"}})), Value::Null),
        chunk(json!({}), json!("tool_calls")),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat()
    .into_bytes()
}

/// Plays the sender's transfer as a stream that is cut at these places; gives what the client got, and the
/// receiver's request as upstream then got it.
async fn play_cut(cuts: &[usize]) -> (Vec<u8>, Value) {
    let desk = Desk::new();
    let list = before_transfer();
    desk.send(&request(&[&[system(DESK)][..], &list[..1]].concat(), &desk_tools()), &list[1]).await;
    let sent = request(&[&[system(DESK)][..], &list].concat(), &desk_tools());
    let answer = Answer {
        kind: "text/event-stream".into(),
        parts: cut_at(&streamed_transfer(), cuts),
        ..Answer::default()
    };
    let got = desk.play(&head("Bearer one"), &sent, vec![answer]).await;
    let receiver = request(&[system(WORKSHOP), opening()], &workshop_tools());
    (got.reply, desk.send(&receiver, &says("x")).await)
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime")
        .block_on(future)
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

    #[test]
    fn how_a_stream_is_cut_changes_neither_bytes_nor_record(cuts in proptest::collection::vec(0usize..2_000, 0..40)) {
        let (bytes, receiver) = block_on(play_cut(&cuts));
        proptest::prop_assert_eq!(&bytes, &streamed_transfer());
        let (_, uncut) = block_on(play_cut(&[]));
        let brief = has_brief(&receiver, WORKSHOP);
        proptest::prop_assert!(brief.contains("I pass you on") && brief.contains("Bremsen"), "{}", brief);
        proptest::prop_assert_eq!(receiver, uncut);
    }

    #[test]
    fn rewriting_twice_is_rewriting_once(
        instructions in "[ -~]{0,60}",
        said in "\\PC{0,80}",
        found in "\\PC{0,80}",
        rounds in 0usize..6,
    ) {
        let instructions = format!("{WORKSHOP} {instructions}");
        let mut list = vec![system(&instructions), user(&format!("My brakes squeal. {said}"))];
        for n in 0..rounds {
            list.push(calls(&format!("k{}", n % 2), "find_booking", &json!({"n": n})));
            list.push(result(&format!("k{}", n % 2), &found));
        }
        list.extend(transfer_pair());
        let body = request(&list, &workshop_tools());
        let once = block_on(async { Desk::new().send(&body, &says("x")).await });
        let twice = block_on(async { Desk::new().send(&once, &says("x")).await });
        has_brief(&once, &instructions);
        proptest::prop_assert_eq!(twice, once);
    }
}

const RULES: &[(&str, &str)] = &[("SEAM_ENFORCE", "custody,budget")];

/// A team in which everybody can pass the run to everybody, by full history.
struct Team {
    desk: Desk,
    list: Vec<Value>,
    calls: usize,
}

impl Team {
    const AGENTS: [&'static str; 4] = ["intake", "workshop", "billing", "parts"];

    fn new(settings: &[(&str, &str)]) -> Team {
        Team { desk: Desk::with(settings), list: vec![opening()], calls: 0 }
    }

    fn request(&self, agent: &str) -> Value {
        let tools: Vec<Value> = Team::AGENTS
            .iter()
            .filter(|other| **other != agent)
            .map(|other| tool(&format!("transfer_to_{other}"), &[]))
            .chain([tool(&format!("{agent}_look_up"), &["id"])])
            .collect();
        let instructions = format!("You are the {agent} agent of a garage.");
        request(&[&[system(&instructions)][..], &self.list].concat(), &tools)
    }

    /// The agent answers with `reply`, which joins the list. Gives what upstream got.
    async fn turn(&mut self, agent: &str, reply: Value) -> Value {
        let got = self.desk.send(&self.request(agent), &reply).await;
        self.list.push(reply);
        got
    }

    async fn pass(&mut self, from: &str, to: &str) -> Value {
        self.calls += 1;
        let id = format!("t{}", self.calls);
        let got = self.turn(from, calls(&id, &format!("transfer_to_{to}"), &json!({}))).await;
        self.list.push(result(&id, &format!("Successfully transferred to {to}")));
        got
    }

    async fn look_up(&mut self, agent: &str, found: &str) {
        self.calls += 1;
        let id = format!("k{}", self.calls);
        self.turn(agent, calls(&id, &format!("{agent}_look_up"), &json!({"id": self.calls}))).await;
        self.list.push(result(&id, found));
    }

    /// The codes that were found so far, with how often.
    fn found(&self, code: Code) -> u64 {
        self.desk.inspector.inner.telemetry.findings(code)
    }
}

#[tokio::test]
async fn agents_that_bounce_without_a_word_of_the_customer_are_found_out() {
    let mut team = Team::new(&[]);
    team.look_up("intake", r#"{"booking":"bk_1"}"#).await;
    let round = ["intake", "workshop", "billing", "parts"];
    for n in 0..14 {
        team.pass(round[n % 4], round[(n + 1) % 4]).await;
    }
    assert!(team.found(Code::Visited) >= 9, "{}", team.found(Code::Visited));
    assert!(team.found(Code::HopLimit) >= 1);
}

#[tokio::test]
async fn a_return_with_something_new_and_a_chat_of_many_turns_are_not() {
    let mut team = Team::new(&[]);
    team.pass("intake", "workshop").await;
    team.look_up("workshop", r#"{"job":"jb_1"}"#).await;
    team.pass("workshop", "intake").await;
    for n in 0..40 {
        let (from, to) = if n % 2 == 0 { ("intake", "workshop") } else { ("workshop", "intake") };
        team.list.push(user(&format!("And number {n}?")));
        team.pass(from, to).await;
        team.turn(to, says(&format!("Number {n} is fine."))).await;
    }
    for code in [Code::Visited, Code::HopLimit, Code::SelfTransfer, Code::UnknownDestination, Code::NotHolder]
    {
        assert_eq!(team.found(code), 0, "{}", code.name());
    }
}

#[tokio::test]
async fn a_constraint_that_every_sender_forgets_stands_in_the_last_brief_once() {
    let mut team = Team::new(&[]);
    let mut brief = String::new();
    for (from, to) in
        [("intake", "workshop"), ("workshop", "billing"), ("billing", "parts"), ("parts", "intake")]
    {
        team.look_up(from, &format!(r#"{{"{from}_ref":"{from}_77"}}"#)).await;
        team.pass(from, to).await;
        brief = has_brief(&team.turn(to, says("One moment.")).await, "You are the");
    }
    assert_eq!(brief.matches("Never call me before noon").count(), 2, "objective and constraint: {brief}");
    assert!(brief.contains("intake_77") && brief.contains("parts_77"), "{brief}");
}

#[tokio::test]
async fn what_the_customer_takes_back_is_no_longer_carried() {
    let mut team = Team::new(&[]);
    team.pass("intake", "workshop").await;
    team.turn("workshop", says("When can we reach you?")).await;
    team.list.push(user("You can call me before noon after all."));
    team.pass("workshop", "billing").await;
    let brief = has_brief(&team.turn("billing", says("Thanks.")).await, "You are the");
    let constraint = brief.lines().find(|line| line.starts_with("- ") && line.contains("Never call me"));
    assert_eq!(constraint, None, "{brief}");
}

#[tokio::test]
async fn a_former_holder_that_goes_on_is_refused_where_custody_is_enforced() {
    let mut team = Team::new(RULES);
    team.look_up("intake", r#"{"booking":"bk_1"}"#).await;
    team.pass("intake", "workshop").await;
    team.turn("workshop", says("I am on it.")).await;
    assert_eq!(team.desk.verdict(&team.request("intake")).await, Some("seam_not_holder"));
    assert_eq!(team.found(Code::NotHolder), 1);
    // The customer speaks, and the client lets the desk answer: custody follows.
    team.list.push(user("Hello? Is the desk there?"));
    assert_eq!(team.desk.verdict(&team.request("intake")).await, None);
    assert_eq!(team.found(Code::Rerouted), 1);
}

#[tokio::test]
async fn a_holder_that_is_silent_for_half_an_hour_has_lost_the_run() {
    let mut team = Team::new(RULES);
    team.pass("intake", "workshop").await;
    team.turn("workshop", says("I am on it.")).await;
    team.desk.clock.advance_ms(31 * 60 * 1000);
    assert_eq!(team.desk.verdict(&team.request("intake")).await, None);
    assert_eq!(team.found(Code::Rerouted), 1);
}

#[tokio::test]
async fn a_receiver_whose_first_reply_gives_the_run_back_declines() {
    let mut team = Team::new(&[]);
    team.look_up("intake", r#"{"booking":"bk_1"}"#).await;
    team.pass("intake", "workshop").await;
    // The sender's name comes from its own transfer back to it.
    team.pass("workshop", "intake").await;
    has_brief(&team.turn("intake", says("Then I help you myself.")).await, "You are the intake");
    let ids: Vec<String> = (0..20).map(|n| fresh("seed", n)).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let states: Vec<_> = team.desk.records(&ids).await.into_iter().map(|record| record.state).collect();
    assert_eq!(states[..1], [crate::engine::record::State::Declined], "{states:?}");
}

#[tokio::test]
async fn a_run_that_has_spent_what_it_may_is_refused_where_the_budget_is_enforced() {
    let settings = [RULES[0], ("SEAM_BUDGET_TOKENS", "5")];
    let mut team = Team::new(&settings);
    team.pass("intake", "workshop").await;
    let got = team.turn("workshop", says("I am on it.")).await;
    assert!(has_brief(&got, "You are the").contains("tokens"), "the budget stands in the brief");
    team.turn("workshop", says("Still on it.")).await;
    assert_eq!(team.desk.verdict(&team.request("workshop")).await, Some("seam_budget_exceeded"));
}
