use super::*;

fn tool<'b>(name: &'b str, parameters: &'b str) -> Tool<'b> {
    Tool {
        name: name.into(),
        description: None,
        parameters: (!parameters.is_empty()).then_some(parameters.into()),
        span: 0..0,
    }
}

/// A schema of these properties, all strings.
fn schema(names: &[&str]) -> String {
    let properties: Vec<String> =
        names.iter().map(|name| format!(r#""{name}":{{"type":"string"}}"#)).collect();
    format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties.join(","))
}

fn patterns(list: &[&str]) -> Vec<String> {
    list.iter().map(|pattern| (*pattern).to_owned()).collect()
}

#[test]
fn every_frameworks_transfer_is_one() {
    let check = |name: &str, parameters: &[&str]| {
        let schema = schema(parameters);
        assert!(Naming::default().is_transfer_tool(&tool(name, &schema)), "{name}({parameters:?})");
    };
    check("transfer_to_billing", &[]);
    check("transfer_to_billing_desk__eu_", &[]);
    check("transfer_back_to_triage", &[]);
    check("transfer_to_billing_2", &[]);
    check("handoff_to_billing", &[]);
    check("hand_over_to_night_shift", &["notes"]);
    check("Handoff-transfer_to_billing", &[]);
    check("final_result_transfer_to_billing", &["reason"]);
    check("transfer_to_agent", &["agent_name"]);
    check("handoff_to_agent", &["agent_name", "message", "context"]);
    check("handoff", &["to_agent", "reason"]);
    check("delegate_work_to_coworker", &["task", "context", "coworker"]);
    check("ask_question_to_coworker", &["question", "context", "coworker"]);
    check("Delegate work to coworker", &["task", "context", "coworker"]);
    check("delegate_task_to_member", &["member_id", "task"]);
    check("agent-billing", &["prompt"]);
    check("delegate_to_research_expert", &["task_description"]);
    check("escalate_to_supervisor", &["reason_for_escalation"]);
    check("transferToBilling", &["handoffSummary"]);
    check("transfer-to-billing", &[]);
    check("mcp__desk__transfer_to_billing", &["reason"]);
    check("transfer_to_human_agents", &["summary"]);
    check("transfer_to_department", &["department", "reason"]);
    check("transfer_to_billing", &["objective", "established", "remaining"]);
    check("transfer_to_billing", &["case_number", "facts"]);
    check("transfer_to_billing", &["handoff", "case_number"]);
}

#[test]
fn what_only_looks_like_a_transfer_is_none() {
    let check = |name: &str, parameters: &[&str]| {
        let schema = schema(parameters);
        assert!(!Naming::default().is_transfer_tool(&tool(name, &schema)), "{name}({parameters:?})");
    };
    check("transfer_to_account", &["iban", "amount"]);
    check("transfer_to_savings", &["amount"]);
    check("transfer_to_warehouse", &["sku", "quantity", "reason"]);
    check("transfer_to_bank", &["recipient", "amount"]);
    check("transfer_funds", &["to", "amount"]);
    check("transfer_tools", &[]);
    check("transfer_tokens", &["to"]);
    check("handoff_notes", &["text"]);
    check("handoff", &["text"]);
    check("handoff_to_courier", &["parcel_id"]);
    check("agent-list", &["filter"]);
    check("agent-search", &[]);
    check("agent_status", &["prompt"]);
    check("delegate_permissions_to_user", &["user_id", "scope"]);
    check("delegate_to_role", &["role_arn", "scope"]);
    check("ask_question", &["question"]);
    check("route_to_address", &["street", "city"]);
    check("route_tomorrow", &[]);
    check("escalate_to_sev1", &["ticket_id", "reason"]);
    check("transfer_to_folder", &["message_id"]);
    check("Handoff-complete_task", &["task_summary"]);
    check("final_result", &["reason"]);
    check("data-transfer_complete", &[]);
    check("lookup_order", &["order_id"]);
}

#[test]
fn parameters_that_cannot_be_read_are_not_a_transfers() {
    let check = |schema: &str, expected: bool| {
        assert_eq!(Naming::default().is_transfer_tool(&tool("transfer_to_x", schema)), expected, "{schema}");
    };
    check("", true);
    check("null", true);
    check("{}", true);
    check(r#"{"type":"object","properties":null}"#, true);
    check(r#"{"type":"object","properties":[1]}"#, false);
    check("[]", false);
    check(&format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)), false);
}

#[test]
fn a_frameworks_own_description_outweighs_an_applications_parameters() {
    let schema = schema(&["case_number", "amount"]);
    let mut typed = tool("transfer_to_billing", &schema);
    assert!(!Naming::default().is_transfer_tool(&typed));
    typed.description = Some("Handoff to the Billing agent to handle the request. Money only.".into());
    assert!(Naming::default().is_transfer_tool(&typed));
}

#[test]
fn the_operator_has_the_last_word() {
    let naming = Naming::new(
        &patterns(&["call_*_desk", "transfer_to_account", "page_*"]),
        &patterns(&["transfer_to_sandbox*"]),
        Some(&patterns(&["*_voicemail"])),
    );
    let odd = schema(&["iban", "amount"]);
    let check = |name: &str, expected: bool| {
        assert_eq!(naming.is_transfer_tool(&tool(name, &odd)), expected, "{name}");
    };
    check("call_night_desk", true);
    check("transfer_to_account", true);
    check("transfer_to_sandbox_eu", false);
    check("transfer_to_billing", false);
    let to = |name: &str| naming.destination(name, "{}").map(|to| to.name);
    assert_eq!(to("call_night_desk").as_deref(), Some("call_night_desk"));
    assert_eq!(to("page_oncall").as_deref(), Some("oncall"));
    assert!(naming.is_terminal("transfer_to_voicemail", None));
    assert!(!naming.is_terminal("transfer_to_human", None));
    assert!(Naming::default().is_terminal("transfer_to_human_agents", None));
}

#[test]
fn a_destination_is_read_from_the_name_or_an_argument() {
    let check = |name: &str, arguments: &str, expected: Option<(&str, Option<&str>, Spelled)>| {
        let found = Naming::default().destination(name, arguments);
        let found = found.as_ref().map(|to| (to.name.as_str(), to.uncounted.as_deref(), to.from));
        assert_eq!(found, expected, "{name}({arguments})");
    };
    let named = |name| Some((name, None, Spelled::InName));
    let argued = |name| Some((name, None, Spelled::InArgument));
    check("transfer_to_billing", "{}", named("billing"));
    check("transfer_to_billing", "", named("billing"));
    check("transfer_to_billing_2", "{}", Some(("billing_2", Some("billing"), Spelled::InName)));
    check("transfer_to_2", "{}", named("2"));
    check("transfer_back_to_front_desk", "{}", named("front_desk"));
    check("Handoff-transfer_to_billing", "{}", named("billing"));
    check("final_result_transfer_to_billing", r#"{"reason":"money"}"#, named("billing"));
    check("handoff_to_billing", r#"{"to":"ignored"}"#, named("billing"));
    check("agent-billing", r#"{"prompt":"do"}"#, named("billing"));
    check("transferToNightShift", "{}", named("NightShift"));
    check("transfer_to_agent", r#"{"agent_name":"Billing (EU)"}"#, argued("Billing (EU)"));
    check("handoff_to_agent", r#"{"agent_name":"billing","message":"m"}"#, argued("billing"));
    check("handoff", r#"{"to_agent":"billing","reason":"r"}"#, argued("billing"));
    check("delegate_work_to_coworker", r#"{"task":"t","context":"c","coworker":"Clerk"}"#, argued("Clerk"));
    check("delegate_task_to_member", r#"{"member_id":"clerk","task":"t"}"#, argued("clerk"));
    check("transfer_to_department", r#"{"department":"Billing"}"#, argued("Billing"));
    check("transfer_to_department", "{}", named("department"));
    check("transfer_to_specialist", r#"{"reason":"r"}"#, named("specialist"));
    check("transfer_to_specialist", r#"{"agent":"Night"}"#, argued("Night"));
    check("transfer_to_agent", "{}", None);
    check("transfer_to_agent", r#"{"agent_name":7}"#, None);
    check("transfer_to_agent", r#"{"agent_name":" "}"#, None);
    check("handoff", "not json", None);
    check("lookup_order", r#"{"to":"x"}"#, argued("x"));
}

#[test]
fn offers_say_where_each_tool_can_go() {
    let one_of = r#"{"properties":{"agent_name":{"type":"string","enum":["billing","night"]}}}"#;
    let nullable =
        r#"{"properties":{"to_agent":{"anyOf":[{"type":"null"},{"enum":["a","b"]}]},"reason":{}}}"#;
    let open = schema(&["to_agent", "reason"]);
    let order = schema(&["order_id"]);
    let tools = [
        tool("lookup_order", &order),
        tool("transfer_to_agent", one_of),
        tool("transfer_to_billing", ""),
        tool("handoff", &open),
        tool("handoff", nullable),
        tool("transfer_to_specialist", ""),
    ];
    let offers = Naming::default().offers(&tools);
    let named = |name: &str| {
        Offered::Named(Destination { name: name.to_owned(), uncounted: None, from: Spelled::InName })
    };
    assert_eq!(
        offers,
        [
            Offer { tool: 1, to: Offered::OneOf(patterns(&["billing", "night"])) },
            Offer { tool: 2, to: named("billing") },
            Offer { tool: 3, to: Offered::Open },
            Offer { tool: 4, to: Offered::OneOf(patterns(&["a", "b"])) },
            Offer { tool: 5, to: named("specialist") },
        ]
    );
}

#[test]
fn a_call_in_the_history_is_judged_by_what_it_says() {
    let check = |name: &str, arguments: &str, result: Option<&str>, expected: bool| {
        let found = Naming::default().is_transfer_call(name, arguments, result);
        assert_eq!(found, expected, "{name}({arguments}) -> {result:?}");
    };
    check("transfer_to_billing", "{}", None, true);
    check("transfer_to_billing", "", None, true);
    check("transfer_to_billing", r#"{"handoff":{"task":"x"},"x_confidence":1}"#, None, true);
    check("transfer_to_account", r#"{"iban":"DE00","amount":3}"#, Some(r#"{"ok":true}"#), false);
    check("transfer_to_billing", r#"{"case":7}"#, Some(r#"{"assistant":"Billing"}"#), true);
    check("transfer_to_billing", r#"{"case":7}"#, Some(r#"{"assistant":"Night"}"#), false);
    check("lookup_order", "{}", Some(r#"{"assistant":"Billing"}"#), false);
}

#[test]
fn spellings_of_one_agent_are_one_agent() {
    let check = |a: &str, b: &str, expected: bool| {
        assert_eq!(same_agent(a, b), expected, "{a} / {b}");
        assert_eq!(same_agent(b, a), expected, "{b} / {a}");
    };
    check("refund_agent__eu_", "Refund Agent (EU)", true);
    check("refundagent", "RefundAgent", true);
    check("refunds", "refunds_agent", true);
    check("refunds", "Refunds", true);
    check("r_ckgabe", "R\u{fc}ckgabe", true);
    check(
        "a_very_long_name_of_an_agent_for_refunds_and_returns_",
        "A very long name of an agent for refunds and returns of shoes",
        true,
    );
    check("refunds", "refund", false);
    check("agent", "refunds", false);
    check("agent", "agent", true);
    check("", "", false);
    check("__", "--", false);
    check("\u{5ba2}\u{670d}", "\u{9000}\u{6b3e}", false);
    let to = Naming::default().destination("transfer_to_billing_2", "{}").expect("it is named");
    assert!(to.is("Billing") && to.is("billing_2") && !to.is("billing_1"));
}

#[test]
fn results_that_confirm_a_transfer_name_the_agent() {
    let check = |result: &str, expected: Option<Option<&str>>| {
        let found = is_confirmation(result).map(|confirmation| confirmation.agent);
        assert_eq!(found.as_ref().map(Option::as_deref), expected, "{result}");
    };
    check(r#"{"assistant": "Billing (EU)"}"#, Some(Some("Billing (EU)")));
    check(r#"{"assistant":"billing"}"#, Some(Some("billing")));
    check(r#"{"handoff_to": "billing"}"#, Some(Some("billing")));
    check("Successfully transferred to billing", Some(Some("billing")));
    check("Successfully transferred back to front desk", Some(Some("front desk")));
    check("Transferred to Bill Co., adopting the role of Bill Co. immediately.", Some(Some("Bill Co.")));
    check("Transferred to billing.", Some(Some("billing")));
    check("Handing off to billing: the invoice is wrong", Some(Some("billing")));
    check(
        "Agent billing is now handling the request due to the following reason: x.\nGo on.",
        Some(Some("billing")),
    );
    check("Final result processed.", Some(None));
    check(r#"{"assistant":"billing","more":1}"#, None);
    check(r#"{"assistant":7}"#, None);
    check(r#"{"balance":"12"}"#, None);
    check("Agent not found", None);
    check("None", None);
    check("", None);
}

#[test]
fn results_that_refuse_a_transfer_are_known() {
    let check = |result: &str, expected: bool| assert_eq!(is_refusal(result), expected, "{result}");
    check("Multiple handoffs detected, ignoring this one.", true);
    check("handoff() got an unexpected keyword argument 'handoff'", true);
    check("Received unexpected argument(s): ['x']. Please revise", true);
    check(r#"{"error":[{"type":"extra_forbidden","loc":["handoff"]}]}"#, true);
    check(r#"{"assistant":"billing"}"#, false);
    check(&format!("{}\u{fc}{}", "a".repeat(1023), "got an unexpected keyword argument"), false);
}

#[test]
fn replies_that_promise_a_transfer_are_told_from_offers() {
    let check = |text: &str, expected: bool| assert_eq!(announces_transfer(text), expected, "{text}");
    check("I'll hand you over to our billing team.", true);
    check("Thanks for waiting. I\u{2019}m transferring you to a colleague who can help.", true);
    check("One moment.\nLet me connect you with billing!", true);
    check("You will be transferred to an engineer now.", true);
    check("I am escalating this to my supervisor", true);
    check("Would you like me to transfer you to billing?", false);
    check("I can transfer you to billing.", false);
    check("I'm sorry, I cannot transfer you.", false);
    check("I will transfer you if you confirm.", false);
    check("If that fails, I'll transfer you to billing.", false);
    check("I will transfer 20 EUR to your account.", false);
    check("The money was transferred to your account.", false);
    check("", false);
}

const PREAMBLE: &str = "For context: below is what another agent did.";

fn quoted(heading: &str, content: &str) -> String {
    format!("{heading}\n{}\n{content}\n{}", words::QUOTE_BEGIN, words::QUOTE_END)
}

#[test]
fn traces_of_a_transfer_in_prose_are_known() {
    let check = |text: &str, expected: Option<Option<&str>>| {
        let found = Naming::default().quoted_transfer(text).map(|trace| trace.to);
        assert_eq!(found.as_ref().map(Option::as_deref), expected, "{text}");
    };
    let call = quoted("[desk] called tool `transfer_to_agent` with parameters:", "{'agent_name': 'billing'}");
    let result = quoted("[desk] `transfer_to_agent` tool returned result:", "{'result': None}");
    let lookup = quoted("[desk] called tool `find_order` with parameters:", "{'order': '7'}");
    let said = quoted("[desk] said:", "[desk] called tool `transfer_to_agent` with parameters:");
    check("Transferred to billing, adopting the role of billing immediately.", Some(Some("billing")));
    check("Transferring back to desk", Some(Some("desk")));
    check("<name>billing</name><content>Transferring back to desk</content>", Some(Some("desk")));
    check(&format!("{PREAMBLE}\n{call}"), Some(Some("billing")));
    check(&format!("{PREAMBLE}\n{result}"), Some(None));
    check(
        &format!(
            "{PREAMBLE}\n[desk] called tool `transfer_to_agent` with parameters: {{'agent_name': 'billing'}}"
        ),
        Some(Some("billing")),
    );
    // More than the transfer is told: it stays.
    check(&format!("{PREAMBLE}\n{lookup}\n{call}"), None);
    check(&format!("{PREAMBLE}\n{lookup}"), None);
    // A quoted line that looks like a heading is no heading.
    check(&format!("{PREAMBLE}\n{said}"), None);
    check(&call, None);
    check("Please tell me what transferring back to desk means.", None);
    check("Transferred to", None);
}

#[test]
fn a_look_at_the_bytes_finds_every_body_that_names_a_transfer() {
    let naming = Naming::new(&["pass_the_baton*".into()], &["transfer_money".into()], None);
    let check = |body: &str, expected: bool| {
        assert_eq!(naming.may_be_named_in(body.as_bytes()), expected, "{body}");
    };
    check(r#"{"tools":[{"function":{"name":"transfer_to_bar"}}]}"#, true);
    check(r#"{"tools":[{"function":{"name" :	"Pass_The_Baton_on"}}]}"#, true);
    check(r#"{"messages":[{"tool_calls":[{"function":{"arguments":"","name":"handoff_to_bar"}}]}]}"#, true);
    // Whoever escapes what needs no escape has to be read.
    check(r#"{"tools":[{"n\u0061me":"transfer_to_bar"}]}"#, true);
    check(r#"{"tools":[{"name":"transfer\u005fto_bar"}]}"#, true);
    // Words are not names.
    check(
        r#"{"messages":[{"content":"I asked to transfer_to_bar, hand in hand"}],"tools":[{"name":"find"}]}"#,
        false,
    );
    check(r#"{"required":["name","transfer_to_bar"],"name":7,"x":"name\":\"transfer_to_bar"}"#, false);
    check(r#"{"tools":[{"name":"transfer_money"}]}"#, false);
    check(r#"{"name":"transfer_to_bar"#, false);
}
