//! Every outcome, with the words in which it is told.

use super::*;
use crate::engine::handoff::contract::Value;
use crate::engine::handoff::evidence::Happening;

/// A run of a library: a member's loans, a payment, a desk that answers in sentences.
fn run() -> Vec<Happening<'static>> {
    vec![
        Happening::Customer("My card is 5519, I think the fine is 12 euros. Is loan L-7 overdue?"),
        call(
            "c1",
            "get_member",
            r#"{"card_number":"5519"}"#,
            r#"{"name":{"first":"Ada","last":"Obi"},"fines_due":4.50,"status":"active"}"#,
        ),
        call(
            "c2",
            "list_loans",
            r#"{"card_number":"5519"}"#,
            r#"{"loans":[{"loan_id":"L-7","title":"Moss","due_on":"2031-02-03","renewals":1,"status":"delivered"},{"loan_id":"L-8","title":"Rivers","due_on":"2031-03-09","renewals":2,"status":"open"}]}"#,
        ),
        call(
            "c3",
            "desk_note",
            r#"{"loan_id":"L-8"}"#,
            "Loan L-8 is on shelf 14 since yesterday. The deposit for loan L-8 is 20 euros.",
        ),
        call(
            "c4",
            "renew_loan",
            r#"{"loan_id":"L-8"}"#,
            r#"{"loan_id":"L-8","due_on":"2031-04-09","renewals":3}"#,
        ),
        call("same", "check_hold", r#"{"hold":"H1"}"#, "waiting"),
        call("same", "check_hold", r#"{"hold":"H2"}"#, "ready"),
    ]
}

fn call(
    id: &'static str,
    name: &'static str,
    arguments: &'static str,
    result: &'static str,
) -> Happening<'static> {
    Happening::Call { id, name, arguments, result: Some(result), as_of: Some(Timestamp(1_000_000)) }
}

fn claim(key: &str, value: &str, evidence: &str) -> Claim {
    Claim {
        key: (!key.is_empty()).then(|| key.to_owned()),
        value: Value { text: value.to_owned(), quoted: true },
        source: Some(Source::ToolResult),
        evidence: (!evidence.is_empty()).then(|| evidence.to_owned()),
        ..Claim::default()
    }
}

fn judge(run: &[Happening<'_>], whole: bool, claim: Claim) -> Fact {
    let evidence = Evidence::index(run.iter().copied(), whole);
    verify(vec![claim], &evidence, &Freshness::default(), Timestamp(2_000_000)).remove(0)
}

/// Outcome and explanation of a claim about the library's run.
fn check(key: &str, value: &str, evidence: &str, outcome: Outcome, why: &str) {
    let fact = judge(&run(), true, claim(key, value, evidence));
    assert_eq!((fact.outcome, fact.why.as_str()), (outcome, why), "{key} = {value} by {evidence}");
}

#[test]
fn verified_in_every_style_of_key() {
    let why = "list_loans (c2) has \"2031-02-03\"";
    for key in ["loan.L-7.due_on", "loan_L_7_due_on", "due on of loan L-7", "loans.0.due_on", "loanL-7.dueOn"]
    {
        check(key, "2031-02-03", "c2", Outcome::Verified, why);
    }
    check("fines_due", "4.50", "c1", Outcome::Verified, "get_member (c1) has \"4.50\"");
    check(
        "status of hold H1",
        "waiting",
        "same",
        Outcome::Verified,
        "check_hold (same) has \"waiting\"; 2 calls bear the id same",
    );
    check(
        "loan.L-7.due_on",
        "2031-02-03",
        "",
        Outcome::Verified,
        "no call is cited; list_loans (c2) has \"2031-02-03\"",
    );
}

#[test]
fn the_record_may_stand_apart_from_the_key() {
    let of = |of: &str| Claim { of: Some(of.to_owned()), ..claim("due_on", "2031-02-03", "c2") };
    assert_eq!(judge(&run(), true, of("loan L-7")).outcome, Outcome::Verified);
    assert_eq!(judge(&run(), true, of("loan L-8")).outcome, Outcome::Misattributed);
}

#[test]
fn reformatted_counts_as_verified() {
    check(
        "loan.L-7.due_on",
        "3 February 2031",
        "c2",
        Outcome::Reformatted,
        "list_loans (c2) has \"2031-02-03\"",
    );
    check("fines_due", "€4.5", "c1", Outcome::Reformatted, "get_member (c1) has \"4.50\"");
    check(
        "member.5519.name",
        "Ada Obi",
        "c1",
        Outcome::Reformatted,
        "get_member (c1) has {\"first\":\"Ada\",\"last\":\"Obi\"}",
    );
    let fact = judge(&run(), true, claim("deposit of loan L-8", "€20", "c3"));
    assert_eq!(fact.outcome, Outcome::Reformatted, "{}", fact.why);
}

#[test]
fn a_key_and_its_value_stand_beside_each_other_in_sentences() {
    let fact = judge(&run(), true, claim("shelf of loan L-8", "14", "c3"));
    assert_eq!(fact.outcome, Outcome::Reformatted, "{}", fact.why);
    let fact = judge(&run(), true, claim("deposit of loan L-8", "14", "c3"));
    assert_eq!(fact.outcome, Outcome::Misattributed, "{}", fact.why);
}

#[test]
fn no_such_call_and_unseen() {
    check(
        "fines_due",
        "4.50",
        "c9",
        Outcome::NoSuchCall,
        "no call of the run has the id c9; get_member (c1) has the value",
    );
    let fact = judge(&run(), false, claim("fines_due", "4.51", "c9"));
    assert_eq!((fact.outcome, fact.why.as_str()), (Outcome::Unseen, "no call that was seen has the id c9"));
}

#[test]
fn not_found_misattributed_and_elsewhere() {
    check("loan.L-7.due_on", "2031-02-04", "c2", Outcome::NotFound, "list_loans (c2) has \"2031-02-03\"");
    check(
        "loan.L-8.title",
        "Moss",
        "c2",
        Outcome::Misattributed,
        "the value is title of loan L-7 of card 5519 there; list_loans (c2) has \"Rivers\"",
    );
    check("refund_status", "active", "c1", Outcome::Misattributed, "the value is status of card 5519 there");
    check("loan.L-7.due_on", "2031-02-03", "c1", Outcome::Elsewhere, "list_loans (c2) has \"2031-02-03\"");
}

#[test]
fn superseded_by_a_later_result_for_the_same_record_and_key() {
    check(
        "loan.L-8.due_on",
        "2031-03-09",
        "c2",
        Outcome::Superseded,
        "list_loans (c2) said so; renew_loan (c4) has since said \"2031-04-09\"",
    );
    check("loan.L-8.due_on", "2031-04-09", "c4", Outcome::Verified, "renew_loan (c4) has \"2031-04-09\"");
}

#[test]
fn ambiguous_where_a_key_in_part_fits_several_values() {
    let run = [call("c1", "get_trip", "{}", r#"{"boarding_time":"07:00","arrival_time":"09:00"}"#)];
    let fact = judge(&run, true, claim("time", "07:00", "c1"));
    assert_eq!(fact.outcome, Outcome::Ambiguous, "{}", fact.why);
    let fact = judge(&run, true, claim("boarding", "07:00", "c1"));
    assert_eq!(fact.outcome, Outcome::Verified, "{}", fact.why);
}

#[test]
fn two_results_of_one_call_contest_each_other() {
    let run = [
        call("c1", "get_bed", r#"{"bed_id":"B1"}"#, r#"{"bed_id":"B1","state":"free"}"#),
        call("c1", "get_bed", r#"{"bed_id":"B1"}"#, r#"{"bed_id":"B1","state":"taken"}"#),
    ];
    let fact = judge(&run, true, claim("bed.B1.state", "free", "c1"));
    assert_eq!(
        (fact.outcome, fact.why.as_str()),
        (Outcome::Contested, "get_bed (c1) was seen with two results: \"free\" and \"taken\"")
    );
}

/// What becomes of `key = value`, established by a lookup, after an agent's and the customer's words.
fn after(key: &str, value: &str, agent: &'static str, customer: &'static str) -> Fact {
    let result = r#"{"loan_id":"L-7","status":"delivered","due_on":"2031-03-03","fine":4.50}"#;
    let run = [
        call("c1", "get_loan", r#"{"loan_id":"L-7"}"#, result),
        Happening::Agent(agent),
        Happening::Customer(customer),
    ];
    judge(&run, true, claim(key, value, "c1"))
}

#[test]
fn contested_by_a_later_turn_of_the_customer() {
    for (key, value, agent, customer) in [
        ("loan.L-7.status", "delivered", "Loan L-7 was delivered.", "Well, I refused it at the door."),
        ("loan.L-7.status", "delivered", "Anything else?", "Loan L-7 was never delivered!"),
        ("loan.L-7.status", "delivered", "Loan L-7 was delivered.", "It has not arrived."),
        ("loan.L-7.due_on", "2031-03-03", "It is due on March 3, 2031.", "No, May."),
        ("loan.L-7.fine", "4.50", "The fine is 4.50.", "That's wrong, it was 2.50."),
    ] {
        let fact = after(key, value, agent, customer);
        assert_eq!(fact.outcome, Outcome::Contested, "{customer}: {}", fact.why);
        assert_eq!(fact.contested_by, [customer]);
    }
}

#[test]
fn wishes_questions_and_other_records_contest_nothing() {
    for (key, value, agent, customer) in [
        ("loan.L-7.status", "delivered", "Loan L-7 was delivered.", "I want to return it."),
        ("loan.L-7.status", "delivered", "Loan L-7 was delivered.", "Was it not delivered?"),
        ("loan.L-7.due_on", "2031-03-03", "It is due on March 3, 2031.", "No, please move it to May."),
        ("loan.L-7.due_on", "2031-03-03", "It is due on March 3, 2031.", "No, thanks."),
        ("loan.L-7.fine", "4.50", "The fine is 4.50.", "OK, I pay 4.50 with my card 5519."),
        ("loan.L-7.fine", "4.50", "Anything else?", "No, I have 2 bags."),
    ] {
        let fact = after(key, value, agent, customer);
        assert_eq!(fact.outcome, Outcome::Verified, "{customer}: {}", fact.why);
    }
}

#[test]
fn quotes_are_found_in_the_customers_words_alone() {
    let run = [
        Happening::Customer("Hi! It arrived broken on 3 Feb; my budget is 40 euros."),
        Happening::Agent("So you want a refund of 55 euros."),
        call("c1", "lookup", "{}", "a refund of 55 euros"),
    ];
    let said = |value: &str, evidence: &str| {
        let source = Some(Source::CustomerUtterance);
        judge(&run, true, Claim { source, ..claim("said", value, evidence) }).outcome
    };
    assert_eq!(said("arrived broken", "it ARRIVED broken"), Outcome::Quoted);
    assert_eq!(said("budget 40 euros", "my budget is 40 euros"), Outcome::Quoted);
    assert_eq!(said("budget 50 euros", "my budget is 40 euros"), Outcome::NotQuoted);
    assert_eq!(said("it arrived broken", ""), Outcome::Quoted);
    assert_eq!(said("refund", "you want a refund of 55 euros"), Outcome::NotQuoted);
    assert_eq!(said("arrived", "It arrived ... budget is 40"), Outcome::Quoted);
}

#[test]
fn a_later_quote_takes_an_earlier_one_back_and_both_are_shown() {
    let run = [
        Happening::Customer("The deadline is March 3."),
        Happening::Agent("Noted: March 3."),
        Happening::Customer("Correction: the deadline is May 9."),
    ];
    let source = Some(Source::CustomerUtterance);
    let fact = judge(&run, true, Claim { source, ..claim("deadline", "March 3", "The deadline is March 3") });
    assert_eq!(fact.outcome, Outcome::Contested, "{}", fact.why);
    assert_eq!(fact.contested_by, ["The deadline is March 3.", "Correction: the deadline is May 9."]);
}

#[test]
fn a_tool_cited_for_what_only_the_customer_said_is_marked() {
    let fact = judge(&run(), true, claim("fines_due", "12 euros", "c1"));
    assert_eq!(fact.outcome, Outcome::NotFound);
    assert!(fact.customer_only && fact.why.starts_with("only the customer said so"), "{}", fact.why);
    assert!(!judge(&run(), true, claim("fines_due", "13 euros", "c1")).customer_only);
}

#[test]
fn statements_are_checked_detail_by_detail() {
    for (text, evidence, outcome) in [
        ("Loan L-7 is due on 3 February 2031.", "c2", Outcome::Reformatted),
        ("Loan L-7 is due 2031-02-03", "c2", Outcome::Verified),
        ("Loan L-7 is due 2031-02-05", "c2", Outcome::NotFound),
        ("Loan L-7 is due 2031-02-03", "c9", Outcome::NoSuchCall),
        ("Loan L-7 is due 2031-02-03", "", Outcome::Verified),
        ("Loan L-8 was due 2031-03-09", "c2", Outcome::Superseded),
        ("The fine of 4.50 is open", "c2", Outcome::Elsewhere),
        ("Loan L-8 is due 2031-02-03", "c2", Outcome::Misattributed),
        ("The customer is calm", "c2", Outcome::Uncheckable),
    ] {
        let fact = judge(&run(), true, claim("", text, evidence));
        assert_eq!(fact.outcome, outcome, "{text} by {evidence}: {}", fact.why);
    }
}

#[test]
fn an_inference_is_uncheckable_whatever_it_cites() {
    let source = Some(Source::AgentInference);
    let fact = judge(&run(), true, Claim { source, ..claim("fines_due", "4.50", "c1") });
    assert_eq!((fact.outcome, fact.why.as_str()), (Outcome::Uncheckable, "the sender's own conclusion"));
}

#[test]
fn age_is_judged_with_the_result_that_bears_the_fact() {
    let evidence = Evidence::index(run(), true);
    let age = |rules: &str, now: u64| {
        let freshness = Freshness::parse(rules).expect(rules);
        verify(vec![claim("fines_due", "4.50", "c1")], &evidence, &freshness, Timestamp(1_000_000 + now))
            .remove(0)
            .age
    };
    for (rules, now, expected) in [
        ("fines_due=0", 0, Age::Stale),
        ("fines_due=60", 59_000, Age::Fresh),
        ("fines_due=60", 60_000, Age::Fresh),
        ("fines_due=60", 61_000, Age::Stale),
        ("fines_due=immutable", 900_000, Age::Ageless),
        ("other=60", 900_000, Age::Ageless),
    ] {
        assert_eq!(age(rules, now), expected, "{rules} {now}");
    }
    let unknown = [Happening::Call {
        id: "c1",
        name: "t",
        arguments: "{}",
        result: Some(r#"{"fines_due":4.50}"#),
        as_of: None,
    }];
    let freshness = Freshness::parse("fines_due=60").expect("a rule");
    let evidence = Evidence::index(unknown, true);
    let fact = verify(vec![claim("fines_due", "4.50", "c1")], &evidence, &freshness, Timestamp(1)).remove(0);
    assert_eq!((fact.outcome, fact.age), (Outcome::Verified, Age::Stale));
}

#[test]
fn keys_that_look_alike_in_two_records_are_kept_apart() {
    let result = r#"{"orders":[{"order_id":1,"items":[{"item_id":1,"price":5},{"item_id":2,"price":6}]},
        {"order_id":2,"items":[{"item_id":1,"price":7},{"item_id":2,"price":8}]}]}"#;
    let run = [call("c1", "list_orders", "{}", result)];
    for (key, value, outcome) in [
        ("order.1.item.1.price", "5", Outcome::Verified),
        ("order.1.item.2.price", "6", Outcome::Verified),
        ("order.2.item.1.price", "7", Outcome::Verified),
        ("order.1.item.2.price", "7", Outcome::Misattributed),
        ("order.2.item.1.price", "6", Outcome::Misattributed),
        ("order_1_item_2_price", "7", Outcome::Misattributed),
        ("price of item 2 of order 1", "7", Outcome::Misattributed),
    ] {
        let fact = judge(&run, true, claim(key, value, "c1"));
        assert_eq!(fact.outcome, outcome, "{key} = {value}: {}", fact.why);
    }
}

#[test]
fn odd_claims_do_no_harm() {
    let long = "a.b_c ".repeat(5_000);
    let cases = ["", " ", ".", "of", "\u{200b}", "💥", "1", "of of of", "\u{202e}status", long.as_str()];
    for key in cases {
        for value in cases {
            for evidence in ["c2", "", "c1 c2", "💥", long.as_str()] {
                let fact = judge(&run(), true, claim(key, value, evidence));
                assert!(fact.why.len() <= 300, "{}", fact.why.len());
            }
        }
    }
}
