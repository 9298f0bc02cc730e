//! The settings as people meet them: the files made from the table, and the binary's word on what is wrong.

use std::path::Path;
use std::process::{Command, Output};

use seam::config::docs;

/// The file has to be what the table makes; `UPDATE_DOCS=1` writes it anew.
fn check(path: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "{} is not what the table makes: run the tests with UPDATE_DOCS=1",
        path.display()
    );
}

#[test]
fn the_files_are_made_from_the_table() {
    check("config/seam.env.example", &docs::env_example());
    check("docs/configuration.md", &docs::markdown());
}

fn seam(arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_seam"))
        .args(arguments)
        .env_clear()
        .envs(settings.iter().copied())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_problem_is_told_at_once_before_a_port_is_bound() {
    // Binding it would fail, with another exit code.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = seam(
        &[],
        &[
            ("SEAM_UPSTREAM", "https://bob:hunter2@api.example/v1"),
            ("SEAM_LISTEN", &address),
            ("SEAM_MODE", "watch"),
            ("SEAM_DRAIN_TIMEOUT", "25"),
            ("SEAM_TRANSCRIPT_TOKEN", "1"),
        ],
    );
    assert_eq!(output.status.code(), Some(64));
    let told = text(&output.stderr);
    for expected in [
        "4 problems",
        "SEAM_UPSTREAM: ",
        "SEAM_MODE: \"watch\" does not read; expected observe or rewrite, for example observe",
        "SEAM_DRAIN_TIMEOUT: \"25\" does not read (the unit is missing)",
        "SEAM_TRANSCRIPT_TOKEN: unknown variable; did you mean SEAM_TRANSCRIPT_TOKENS?",
    ] {
        assert!(told.contains(expected), "{expected:?} is missing in\n{told}");
    }
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn a_port_that_is_taken_is_named_with_its_variable() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = seam(&["serve"], &[("SEAM_UPSTREAM", "http://127.0.0.1:9"), ("SEAM_LISTEN", &address)]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(told.contains(&format!("SEAM_LISTEN={address} cannot be listened on")), "{told}");
}

#[test]
fn a_file_of_authorities_that_holds_none_is_named() {
    let settings = [("SEAM_UPSTREAM", "https://api.example"), ("SEAM_UPSTREAM_CA", "/no/such.pem")];
    let output = seam(&[], &settings);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/no/such.pem"), "{}", text(&output.stderr));
}

#[test]
fn check_shows_what_is_in_force_and_says_what_it_means() {
    let output = seam(&["check"], &[("SEAM_UPSTREAM", "https://api.example/v1"), ("SEAM_MODE", "observe")]);
    assert_eq!(output.status.code(), Some(0));
    let told = text(&output.stdout);
    for expected in ["* SEAM_MODE=observe\n", "  SEAM_LISTEN=127.0.0.1:8484\n", "No byte is changed"] {
        assert!(told.contains(expected), "{expected:?} is missing in\n{told}");
    }
    assert_eq!(seam(&["check"], &[]).status.code(), Some(64));
}

#[test]
fn check_warns_of_what_cannot_work_and_fails_where_that_is_asked() {
    let settings = [("SEAM_UPSTREAM", "https://api.example/v1")];
    let replicas = ["check", "--replicas", "3", "--tokens-rotate"];
    let output = seam(&replicas, &settings);
    assert_eq!(output.status.code(), Some(0));
    let told = text(&output.stdout);
    for expected in ["If a sender declares an empty handoff: ", "! SEAM_STORE: ", "! SEAM_TENANT_HEADER: "] {
        assert!(told.contains(expected), "{expected:?} is missing in\n{told}");
    }
    assert_eq!(seam(&[&replicas[..], &["--strict"]].concat(), &settings).status.code(), Some(1));
    assert_eq!(seam(&["check", "--strict"], &settings).status.code(), Some(0));
    assert_eq!(seam(&["check", "--replicas", "0"], &settings).status.code(), Some(64));
}

#[test]
fn help_teaches_and_wrong_use_is_64() {
    let output = seam(&["--help"], &[]);
    assert_eq!(output.status.code(), Some(0));
    let told = text(&output.stdout);
    for expected in
        ["OPENAI_BASE_URL=http://127.0.0.1:8484/v1", "SEAM_UPSTREAM", "SEAM_THREADS", "Limits and timeouts:"]
    {
        assert!(told.contains(expected), "{expected:?} is missing in\n{told}");
    }
    assert_eq!(seam(&["--version"], &[]).status.code(), Some(0));
    assert_eq!(seam(&["fly"], &[]).status.code(), Some(64));
    assert_eq!(seam(&["--fly"], &[]).status.code(), Some(64));
}

#[test]
fn a_healthcheck_without_anyone_to_ask_fails() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    assert_eq!(seam(&["healthcheck"], &[("SEAM_ADMIN_LISTEN", &free)]).status.code(), Some(1));
}
