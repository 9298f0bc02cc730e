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

/// The `key=value` pairs of one result.
fn read_as(result: &str, expected: &[&str]) {
    let evidence = Evidence::index([call("read", "{}", result)], true);
    let found: Vec<_> = evidence.leaves().map(|leaf| format!("{}={}", leaf.key(), leaf.value())).collect();
    assert_eq!(found, expected, "{result}");
}

#[test]
fn results_are_read_in_whatever_form_they_are_printed() {
    read_as(r#"{"a":1,"b":[true,null]}"#, &["a=1", "b=true", "b=null"]);
    read_as("{'a': 'it\\'s', 'b': None, 'c': (1, 2)}", &["a=it's", "b=None", "c=1", "c=2"]);
    read_as("Bed(number='7', ward=Ward(name='ICU'))", &["number=7", "name=ICU"]);
    read_as("{\"a\":1}\n{\"a\":2}", &["a=1", "a=2"]);
    read_as(r#""free""#, &["=free"]);
    read_as("42.0", &["=42.0"]);
    read_as("The bed is here: {\"bed\": \"7\"} and it is free.", &["bed=7"]);
    read_as("Bed: 7\nState: free\n\nBed: 8\nState: taken", &["Bed=7", "State=free", "Bed=8", "State=taken"]);
    read_as("bed | state\n--- | ---\n7 | free\n8 | taken", &["bed=7", "state=free", "bed=8", "state=taken"]);
    read_as("bed,state\n7,free\n8,taken", &["bed=7", "state=free", "bed=8", "state=taken"]);
    read_as(r#"{"a":"caf\u00e9","b":"x\ny"}"#, &["a=café", "b=x\ny"]);
}

#[test]
fn what_is_cut_off_or_broken_is_read_as_far_as_it_goes() {
    read_as(r#"{"a":1,"b":{"c":2,"#, &["a=1", "c=2"]);
    read_as(r#"{"a":1,"b":2} trailing"#, &["a=1", "b=2"]);
    read_as("[INFO] all is well today, nothing to report", &[]);
    read_as("{", &[]);
    read_as(r#"{"a"}"#, &[]);
    read_as(r#"{"text":"{\"a\":1,\"b\":"}"#, &["text={\"a\":1,\"b\":", "a=1"]);
}

#[test]
fn hostile_results_are_bounded_and_cheap() {
    let deep_lists = "[".repeat(100_000);
    let deep_objects = r#"{"a":"#.repeat(100_000);
    let many = format!("[{}1]", "1,".repeat(1_000_000));
    let braces = "{ [ ".repeat(100_000);
    let mut nested = r#"{"price":1}"#.to_owned();
    for _ in 0..14 {
        nested = serde_json::json!({ "text": nested }).to_string();
    }
    let start = std::time::Instant::now();
    for text in
        [&deep_lists, &deep_objects, &many, &braces, &nested, &"\\".repeat(100_000), &"'\"".repeat(100_000)]
    {
        let evidence = Evidence::index([call("read", "{}", text)], true);
        assert!(evidence.leaves().count() <= 200_000);
    }
    let evidence = Evidence::index([call("read", "{}", &many)], true);
    assert_eq!(evidence.findings()[0].code, Code::LimitReached);
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn an_index_that_is_extended_is_the_index_of_the_whole() {
    let run = [
        call("get_loan", r#"{"loan_id":"L-7"}"#, r#"{"loan_id":"L-7","status":"open"}"#),
        Happening::Customer("and?"),
        call("close_loan", r#"{"loan_id":"L-7"}"#, r#"{"loan_id":"L-7","status":"closed"}"#),
    ];
    let mut extended = Evidence::index(run[..1].iter().copied(), true);
    extended.extend(run[1..].iter().copied());
    let whole = Evidence::index(run, true);
    let shown = |evidence: &Evidence| {
        evidence.leaves().map(|leaf| (leaf.value().into_owned(), leaf.superseded())).collect::<Vec<_>>()
    };
    assert_eq!(shown(&extended), shown(&whole));
    assert_eq!(extended.len(), 3);
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_without_harm(text in "[\\[\\]{}()\"'\\\\:=,|\n a-c1é💥-]{0,120}") {
        let evidence = Evidence::index([call("read", "{}", &text)], true);
        for leaf in evidence.leaves() {
            let _ = (leaf.path(), leaf.value(), leaf.records(), leaf.superseded());
        }
    }
}
