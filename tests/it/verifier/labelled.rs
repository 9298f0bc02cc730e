//! The labelled facts, where they stand beside the checkout.

use std::path::Path;
use std::process::Command;

#[test]
fn labelled_facts_are_judged_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    if !folder.join("facts/facts.jsonl").exists() {
        println!("SKIPPED: no labelled facts beside the checkout ({})", folder.display());
        return;
    }
    let told = Command::new(env!("CARGO_BIN_EXE_seam"))
        .arg("verify")
        .arg(folder.join("facts/facts.jsonl"))
        .arg("--transcripts")
        .arg(folder.join("transcripts"))
        .output()
        .unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let accepted: std::collections::HashMap<String, serde_json::Value> = String::from_utf8(told.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| (line["id"].as_str().unwrap().to_owned(), line))
        .collect();
    let rows = std::fs::read_to_string(folder.join("facts/facts.jsonl")).unwrap();
    let mut score = super::Score::default();
    for row in rows.lines() {
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        let told = &accepted[row["id"].as_str().unwrap()];
        let right = (row["expect"] == "accept") == told["accepted"].as_bool().unwrap();
        score.add(row["label"].as_str().unwrap(), right, || format!("{} {told}", row["fact"]));
    }
    score.check();
}
