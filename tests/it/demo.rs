//! `seam demo`, as a newcomer runs it.

use std::process::Command;

use serde_json::Value;

fn demo(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_seam"));
    // Settings that would break it, or change what it shows, are not its own.
    command.arg("demo").args(arguments).env("SEAM_UPSTREAM", "nowhere").env("SEAM_MODE", "observe");
    let output = command.output().expect("the binary runs");
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{}{said}", String::from_utf8_lossy(&output.stderr));
    said
}

fn scenes() -> Vec<Value> {
    scenes_of(&["--json"])
}

fn scenes_of(arguments: &[&str]) -> Vec<Value> {
    match serde_json::from_str(&demo(arguments)) {
        Ok(Value::Array(scenes)) => scenes,
        other => panic!("no list of scenes: {other:?}"),
    }
}

/// The entries of a section of a brief.
fn section<'b>(brief: &'b str, title: &str) -> Vec<&'b str> {
    brief
        .lines()
        .skip_while(|line| !line.starts_with(title))
        .skip(1)
        .take_while(|line| line.starts_with("- ") || line.starts_with("  "))
        .collect()
}

#[track_caller]
fn check_entry(brief: &str, title: &str, parts: &[&str]) {
    let entries = section(brief, title);
    let found = entries.iter().any(|entry| parts.iter().all(|part| entry.contains(part)));
    assert!(found, "no entry with {parts:?} under {title:?} in\n{brief}");
}

#[test]
fn the_receiver_reads_what_the_sender_did_not_say() {
    let scenes = scenes();
    let (without, with) =
        (scenes[0]["without_seam"]["messages"].to_string(), scenes[0]["with_seam"]["messages"].to_string());
    assert!(without.contains("transfer_to_workshop") && !with.contains("transfer_to_workshop"));
    let own = scenes[0]["without_seam"]["messages"][0]["content"].as_str().expect("instructions");
    let slot = scenes[0]["with_seam"]["messages"][0]["content"].as_str().expect("instructions");
    let brief = scenes[0]["brief"].as_str().expect("a brief");
    assert!(slot.starts_with(own) && slot.ends_with(brief));
    check_entry(brief, "Already established", &["find_repair call_desk_1", "W-318", "green touring bike"]);
    check_entry(brief, "Already established", &["W-318", "waiting for a rear wheel", "changes quickly"]);
    check_entry(brief, "Constraints, binding", &["do not spend more than 160 EUR without asking me"]);
    check_entry(brief, "Already done", &["update_repair", "W-318"]);
    assert_eq!(scenes[0]["findings"], Value::Array(Vec::new()));
}

#[test]
fn a_fact_that_the_sender_made_up_is_not_confirmed_and_says_why() {
    let scenes = scenes();
    let without = scenes[1]["without_seam"]["messages"].to_string();
    assert!(!without.contains("find_loan"), "the client hides its tool calls: {without}");
    let brief = scenes[1]["brief"].as_str().expect("a brief");
    check_entry(brief, "Already established", &["find_loan call_info_1", "due"]);
    check_entry(brief, "Not confirmed", &[r#"extensions="0""#, "the cited result has no such value"]);
    check_entry(brief, "Not confirmed", &[r#"fees_paid="yes""#, "the cited call never ran"]);
    let findings = scenes[1]["findings"].as_array().expect("findings");
    let made_up = |finding: &&Value| finding["code"] == "fact_not_confirmed";
    assert_eq!(findings.iter().filter(made_up).count(), 2, "{findings:?}");
}

#[test]
fn a_fact_that_an_asked_sender_made_up_is_corrected_before_the_receiver_starts() {
    let scenes = scenes_of(&["--inject", "--json"]);
    let correction = &scenes[0]["correction"];
    let (wrote, told) =
        (correction["wrote"].as_str().expect("a text"), correction["told"].as_str().expect("a text"));
    assert!(wrote.contains("step_free_row") && wrote.contains("call_office_9"), "{wrote}");
    assert!(
        told.contains("1 fault")
            && told.contains("step_free_row: no_such_call: no call of the run has the id call_office_9"),
        "{told}"
    );
    let brief = scenes[0]["brief"].as_str().expect("a brief");
    assert!(!brief.contains("step_free_row"), "{brief}");
    assert!(brief.contains("Exchange booking T-58 for two seats without steps."), "{brief}");
    check_entry(brief, "Already established", &["find_booking call_office_1", "84.00"]);
    check_entry(brief, "Open questions", &["Which rows have no steps?"]);
    let list = scenes[0]["with_seam"]["messages"].to_string();
    assert!(
        !list.contains("handoff\\\"") && !list.contains("Not transferred"),
        "the client knows nothing of it: {list}"
    );
    let page = demo(&["--inject"]);
    assert_eq!(page.lines().find(|line| line.chars().count() > 80), None);
    assert!(page.contains("WHAT SEAM TOLD IT"), "{page}");
}

#[test]
fn the_page_fits_a_file_and_ends_with_what_to_do_next() {
    let page = demo(&[]);
    assert!(!page.contains('\x1b'), "no colour where there is no terminal");
    assert_eq!(page.lines().find(|line| line.chars().count() > 80), None);
    for part in
        ["WITHOUT SEAM", "WITH SEAM", "> Not confirmed", "fact_not_confirmed", "Tokens", "SEAM_MODE=observe"]
    {
        assert!(page.contains(part), "{part} in\n{page}");
    }
}

#[test]
fn the_readme_shows_the_report_that_the_demo_prints() {
    let printed = demo(&["--report"]);
    let readme = include_str!("../../README.md");
    let (_, behind) = readme.split_once("demo --report` prints").expect("the README names the command");
    let shown = behind.split("```").nth(1).expect("a block");
    let mut lines = 0;
    for line in shown.lines().filter(|line| !line.trim().is_empty() && *line != "...") {
        assert!(printed.lines().any(|own| own == line), "{line:?} is not in\n{printed}");
        lines += 1;
    }
    assert!(lines > 10, "{shown}");
}
