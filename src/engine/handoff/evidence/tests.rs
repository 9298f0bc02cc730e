//! What the index makes of results in every form.

use super::*;

fn call<'a>(name: &'a str, arguments: &'a str, result: &'a str) -> Happening<'a> {
    Happening::Call { id: "c", name, arguments, result: Some(result), as_of: None }
}

/// Each leaf as `kind name / kind name: path = value`.
fn told(run: &[Happening<'_>]) -> Vec<String> {
    let evidence = Evidence::index(run.iter().copied(), true);
    evidence
        .leaves()
        .map(|leaf| {
            let records: Vec<_> = leaf
                .records()
                .iter()
                .map(|name| format!("{} {}", name.kind, name.name).trim().to_owned())
                .collect();
            let old = if leaf.superseded() { " (old)" } else { "" };
            format!("{}: {} = {}{old}", records.join(" / "), leaf.path(), leaf.value())
        })
        .collect()
}

fn check(run: &[Happening<'_>], expected: &[&str]) {
    assert_eq!(told(run), expected);
}

#[test]
fn a_record_is_named_by_its_own_field() {
    check(
        &[call(
            "get_loan",
            r#"{"loan_id":"L-7"}"#,
            r#"{"loan_id":"L-7","member_id":"m_1","due":{"on":"2031-02-03"}}"#,
        )],
        &["loan L-7: loan_id = L-7", "loan L-7: member_id = m_1", "loan L-7: due.on = 2031-02-03"],
    );
}

#[test]
fn a_record_is_named_by_an_outer_object_or_a_map_key() {
    check(
        &[call(
            "get_rack",
            r#"{"rack_id":"R1"}"#,
            r#"{"rack_id":"R1","hosts":{"web-01":{"up":true},"web-02":{"up":false}}}"#,
        )],
        &["rack R1: rack_id = R1", "rack R1 / host web-01: up = true", "rack R1 / host web-02: up = false"],
    );
}

#[test]
fn a_record_is_named_only_by_the_arguments() {
    check(
        &[call("get_member", r#"{"member_id":"m_1"}"#, r#"{"fines":3.50,"card":null}"#)],
        &["member m_1: fines = 3.50", "member m_1: card = null"],
    );
}

#[test]
fn a_person_in_a_list_is_named_by_both_names() {
    check(
        &[call(
            "get_visit",
            "{}",
            r#"{"visit_id":"V9","guests":[{"first_name":"Ada","last_name":"Obi","age":40}]}"#,
        )],
        &[
            "visit V9: visit_id = V9",
            "visit V9 / Ada Obi: first_name = Ada",
            "visit V9 / Ada Obi: last_name = Obi",
            "visit V9 / Ada Obi: age = 40",
        ],
    );
}

#[test]
fn a_later_result_for_the_same_record_and_key_supersedes() {
    check(
        &[
            call("get_loan", r#"{"loan_id":"L-7"}"#, r#"{"loan_id":"L-7","status":"open","copies":1}"#),
            call("get_loan", r#"{"loan_id":"L-8"}"#, r#"{"loan_id":"L-8","status":"lost"}"#),
            call("close_loan", r#"{"loan_id":"L-7"}"#, r#"{"result":{"loan_id":"L-7","status":"closed"}}"#),
        ],
        &[
            "loan L-7: loan_id = L-7",
            "loan L-7: status = open (old)",
            "loan L-7: copies = 1",
            "loan L-8: loan_id = L-8",
            "loan L-8: status = lost",
            "loan L-7: loan_id = L-7",
            "loan L-7: status = closed",
        ],
    );
}

#[test]
fn json_inside_a_printed_object_inside_json_is_read() {
    let printed = r#"meta=None content=[Text(type='text', text='{\n "_m": null, "inner": "{\\n \\"backend\\": \\"ex\\"}" }')] isError=False"#;
    let evidence = Evidence::index([call("run", "{}", printed)], true);
    let found: Vec<_> = evidence.leaves().map(|leaf| format!("{}={}", leaf.key(), leaf.value())).collect();
    assert!(found.contains(&"backend=ex".to_owned()), "{found:?}");
    assert!(found.contains(&"isError=False".to_owned()), "{found:?}");
}

#[test]
fn calls_end_in_four_ways() {
    let ended = |result: Option<&str>| {
        let run = [Happening::Call { id: "c", name: "t", arguments: "{}", result, as_of: None }];
        Evidence::index(run, true).calls()[0].ended
    };
    for (result, expected) in [
        (None, Ended::NoResult),
        (Some(""), Ended::Empty),
        (Some("[]"), Ended::Empty),
        (Some(r#"{"result": []}"#), Ended::Empty),
        (Some("Error: no such bed"), Ended::Error),
        (Some(r#"{"error":"no such bed"}"#), Ended::Error),
        (Some(r#"{"error":null,"bed":"7"}"#), Ended::Ok),
        (Some("7"), Ended::Ok),
        (Some("The bed is free now and stays so."), Ended::Ok),
    ] {
        assert_eq!(ended(result), expected, "{result:?}");
    }
}
