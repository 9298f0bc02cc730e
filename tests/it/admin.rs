//! The admin listener.

use serde_json::json;

use crate::support::binary::Binary;
use crate::support::client::{Client, post};
use crate::support::seam::Seam;
use crate::support::soon;
use crate::support::story;
use crate::support::upstream::Upstream;

#[tokio::test]
async fn health_is_asked_on_a_port_of_its_own() {
    let seam = Seam::start("http://127.0.0.1:9").await;
    assert_eq!(seam.admin_status("/live").await, 200);
    assert_eq!(seam.admin_status("/ready").await, 200);
    assert_eq!(seam.admin_status("/v1/models").await, 404);
    // The clients' port knows no health: what is asked there is for upstream.
    assert_eq!(seam.exchange("GET /ready HTTP/1.1\r\nhost: s\r\n\r\n").await.status, 502);
}

/// A value of `/metrics`, by its name and labels as they are written.
async fn metric(seam: &Seam, series: &str) -> f64 {
    let text = seam.admin("GET", "/metrics", "").await.text();
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series}")).parse().unwrap()
}

#[tokio::test]
async fn a_transfer_shows_in_handoffs_and_metrics() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let (_, head) = story::play(&seam, &mut upstream).await;
    let id =
        head.iter().find_map(|line| line.strip_prefix("seam-handoff: ")).expect("the reply names the record");

    let list = seam.admin_json("/handoffs").await;
    let [one] = list.as_array().unwrap().as_slice() else { panic!("{list}") };
    assert_eq!(one["id"], id);
    assert_eq!(
        (&one["to"], &one["state"], &one["source"], &one["hop"]),
        (&json!("workshop"), &json!("taken_up"), &json!("derived"), &json!(1))
    );
    let fact = one["facts"].as_array().unwrap().iter().find(|fact| fact["key"] == "quote").expect("a fact");
    assert_eq!((&fact["outcome"], &fact["evidence"]), (&json!("verified"), &json!("call_1")));
    assert!(fact.get("value").is_none(), "{fact}");
    let used: Vec<_> = one["facts"].as_array().unwrap().iter().filter(|fact| fact["used"] == true).collect();
    assert!(used.iter().all(|fact| fact["key"] == "booking") && used.len() == 1, "{used:?}");
    assert_eq!(
        seam.admin_json(&format!("/handoffs/{id}")).await["call"],
        json!({"id": "call_9", "name": "transfer_to_workshop"})
    );
    let why = seam.admin_json(&format!("/handoffs/{id}?explain")).await;
    let steps: Vec<&str> =
        why["steps"].as_array().unwrap().iter().map(|s| s["step"].as_str().unwrap()).collect();
    assert_eq!((steps[0], steps[1], steps[steps.len() - 1]), ("detection", "match", "filter"));

    let taken_up = r#"seam_transfers_total{outcome="taken_up",source="derived",arm="rewrite"}"#;
    for (series, expected) in [
        (taken_up, 1.0),
        (r#"seam_transfers_total{outcome="pending",source="derived",arm="rewrite"}"#, 1.0),
        (r#"seam_rewrites_total{arm="rewrite"}"#, 1.0),
        (r#"seam_passed_total{reason="not_receiver"}"#, 1.0),
        (r#"seam_upstream_tokens_total{kind="cache_read",brief="with"}"#, 512.0),
        (r#"seam_upstream_tokens_total{kind="input",brief="without"}"#, 900.0),
        (r#"seam_brief_values_total{value="used"}"#, 1.0),
        ("seam_hops_count", 1.0),
        (r#"seam_contract_tokens_count{source="derived"}"#, 1.0),
        (r#"seam_upstream_replies_total{status="2xx"}"#, 2.0),
        ("seam_exchanges_in_flight", 0.0),
        ("seam_ready", 1.0),
    ] {
        assert!((metric(&seam, series).await - expected).abs() < 1e-9, "{series} is not {expected}");
    }
    assert!(metric(&seam, r#"seam_list_tokens_total{side="after",arm="rewrite"}"#).await > 0.0);
    assert!(metric(&seam, r#"seam_store_seconds_count{call="write"}"#).await > 1.0);
    assert!(metric(&seam, r#"seam_overhead_seconds_count{part="request"}"#).await > 1.0);
    assert!(metric(&seam, "seam_held_bytes_count").await > 1.0);
}

#[tokio::test]
async fn a_run_can_be_removed() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    story::play(&seam, &mut upstream).await;
    let run = seam.admin_json("/handoffs").await[0]["run"].as_str().unwrap().to_owned();
    assert_eq!(seam.admin("GET", &format!("/runs/{run}"), "").await.status, 405);
    assert_eq!(seam.admin("DELETE", &format!("/runs/{run}"), "").await.status, 200);
    assert_eq!(seam.admin("DELETE", &format!("/runs/{run}"), "").await.status, 404);
    assert_eq!(seam.admin_json("/handoffs").await, json!([]));
}

#[tokio::test]
async fn a_request_that_passed_can_be_explained() {
    let upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let head = format!("{}x-request-id: mine-1\r\n", story::head());
    seam.exchange(post("/v1/chat/completions", &head, story::sender_request().to_string().as_bytes())).await;
    let passes = seam.admin_json("/passes").await;
    assert_eq!((&passes[0]["reason"], &passes[0]["id"]), (&json!("not_receiver"), &json!("pass-1")));
    for id in ["pass-1", "mine-1"] {
        let why = seam.admin_json(&format!("/handoffs/{id}?explain")).await;
        assert!(why["steps"][0]["what"].as_str().unwrap().starts_with("not_receiver: "), "{why}");
    }
    assert_eq!(seam.admin("GET", "/handoffs/pass-9?explain", "").await.status, 404);
}

/// `seam explain`, as somebody beside this Seam calls it: its exit code, and what it says.
async fn explain(seam: &Seam, id: &[&str], settings: &[(&str, &str)]) -> (Option<i32>, String) {
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_seam"))
        .arg("explain")
        .args(id)
        .env_clear()
        .env("SEAM_ADMIN_LISTEN", seam.admin.to_string())
        .envs(settings.iter().copied())
        .output();
    let output = soon(output).await.unwrap();
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[tokio::test]
async fn the_command_explains_a_handoff_and_a_pass() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let (code, told) = explain(&seam, &[], &[]).await;
    assert_eq!((code, told.contains("Nothing was transferred")), (Some(0), true), "{told}");
    story::play(&seam, &mut upstream).await;
    let id = seam.admin_json("/handoffs").await[0]["id"].as_str().unwrap().to_owned();
    let (code, told) = explain(&seam, &[&id], &[]).await;
    assert_eq!(code, Some(0), "{told}");
    let steps: Vec<&str> =
        told.lines().filter_map(|line| line.split_once(' ')).map(|(step, _)| step).collect();
    assert_eq!((steps[0], steps[1], steps[2]), ("handoff", "detection", "match"), "{told}");
    assert!(told.contains("transfer_to_workshop") && !told.contains("318.40"), "{told}");
    let (code, told) = explain(&seam, &["pass-1"], &[]).await;
    assert_eq!((code, told.contains("not_receiver: ")), (Some(0), true), "{told}");
    let (_, told) = explain(&seam, &[], &[]).await;
    assert!(
        told.contains(&id) && told.contains("to workshop, taken_up") && told.contains("pass-1"),
        "{told}"
    );
    let (code, told) = explain(&seam, &["nought-1"], &[]).await;
    assert_eq!((code, told.contains("is called \"nought-1\"")), (Some(1), true), "{told}");
}

#[tokio::test]
async fn the_command_shows_the_token_and_says_where_it_is_missing() {
    let upstream = Upstream::start().await;
    let token = [("SEAM_ADMIN_TOKEN", "a-token-of-some-length")];
    let seam = Seam::with(&upstream.url(), &token).await;
    let (code, told) = explain(&seam, &["pass-1"], &[]).await;
    assert_eq!((code, told.contains("SEAM_ADMIN_TOKEN")), (Some(1), true), "{told}");
    let (code, told) = explain(&seam, &["pass-1"], &token).await;
    assert_eq!((code, told.contains("is called")), (Some(1), true), "{told}");
    let (_, told) = explain(&seam, &["a b"], &[]).await;
    assert!(told.contains("is no id"), "{told}");
}

#[tokio::test]
async fn with_a_token_nobody_sees_handoffs_without_it() {
    let upstream = Upstream::start().await;
    let seam = Seam::with(&upstream.url(), &[("SEAM_ADMIN_TOKEN", "a-token-of-some-length")]).await;
    for path in ["/handoffs", "/handoffs/a-1", "/passes"] {
        assert_eq!(seam.admin("GET", path, "").await.status, 404);
    }
    assert_eq!(seam.admin("DELETE", "/runs/a", "").await.status, 404);
    let token = "authorization: Bearer a-token-of-some-length\r\n";
    assert_eq!(seam.admin("GET", "/handoffs", token).await.status, 200);
    assert_eq!(seam.admin("GET", "/metrics", "").await.status, 200);
    assert_eq!(seam.admin("POST", "/metrics", "").await.status, 405);
}

#[tokio::test]
async fn content_is_shown_where_the_setting_allows_it() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::with(&upstream.url(), &[("SEAM_ADMIN_CONTENT", "on")]).await;
    story::play(&seam, &mut upstream).await;
    let list = seam.admin_json("/handoffs").await;
    let values: Vec<_> = list[0]["facts"].as_array().unwrap().iter().map(|fact| &fact["value"]).collect();
    assert!(values.contains(&&json!("318.40")), "{values:?}");
    let whole = seam.admin_json(&format!("/handoffs/{}", list[0]["id"].as_str().unwrap())).await;
    assert!(whole["content"]["brief"].as_str().unwrap().contains("318.40"), "{whole}");
}

/// What of the garage's conversation must not show by default.
const SAID: [&str; 4] = ["318.40", "KA 17 XR", "brakes squeal", "before noon"];

#[tokio::test]
async fn the_page_shows_transfers_and_nothing_that_was_said() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    let front = seam.admin("GET", "/", "").await;
    assert_eq!((front.status, front.head.iter().any(|line| line == "location: /page")), (303, true));
    assert!(seam.admin("GET", "/page", "").await.text().contains("No transfer yet"));
    story::play(&seam, &mut upstream).await;
    let id = seam.admin_json("/handoffs").await[0]["id"].as_str().unwrap().to_owned();
    let record = format!("/page/handoffs/{id}");
    for (path, expected) in [
        ("/page", ["<!DOCTYPE html>", &*id, "workshop"]),
        ("/page/live", ["taken up", &*id, "class=\"graph"]),
        ("/page/live?q=workshop+taken%5Fup", ["taken up", &*id, "1 newest"]),
        ("/page/live?q=nought", ["No transfer has all", "0 of 1", "workshop"]),
        (&record, ["What was said is not shown", "verified", "transfer_to_workshop"]),
        ("/page/script.js", ["use strict", "Escape", "/page/live"]),
        ("/page/style.css", ["prefers-color-scheme", "max-width", "focus-visible"]),
        ("/favicon.ico", ["<svg", "rect", "path"]),
    ] {
        let got = seam.admin("GET", path, "").await;
        assert_eq!(got.status, 200, "{path}");
        let policy = got.head.iter().find(|line| line.starts_with("content-security-policy: "));
        let policy = policy.expect("a policy");
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        let text = got.text();
        for words in expected {
            assert!(text.contains(words), "{path} lacks {words}: {text}");
        }
        for words in SAID {
            assert!(!text.contains(words), "{path} shows {words}");
        }
    }
    assert_eq!(seam.admin("GET", "/page/handoffs/a-1", "").await.status, 404);
    assert_eq!(seam.admin("POST", "/page", "").await.status, 405);
}

#[tokio::test]
async fn the_page_follows_the_rules_of_handoffs() {
    let upstream = Upstream::start().await;
    let seam = Seam::with(&upstream.url(), &[("SEAM_ADMIN_TOKEN", "a-token-of-some-length")]).await;
    for path in ["/", "/page", "/page/live", "/page/script.js", "/page/handoffs/a-1"] {
        let got = seam.admin("GET", path, "").await;
        assert_eq!(got.status, 401, "{path}");
        assert!(got.head.iter().any(|line| line.starts_with("www-authenticate: Basic ")), "{path}");
    }
    let bearer = "authorization: Bearer a-token-of-some-length\r\n";
    let browser = "authorization: Basic bWU6YS10b2tlbi1vZi1zb21lLWxlbmd0aA==\r\n";
    assert_eq!(seam.admin("GET", "/page", bearer).await.status, 200);
    assert_eq!(seam.admin("GET", "/page", browser).await.status, 200);
    // A browser sends its password along with whatever a page makes it ask.
    assert_eq!(seam.admin("GET", "/handoffs", browser).await.status, 404);
    assert_eq!(seam.admin("DELETE", "/runs/a", browser).await.status, 404);
}

#[tokio::test]
async fn the_lists_before_and_after_go_with_their_run() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    story::play(&seam, &mut upstream).await;
    let one = seam.admin_json("/handoffs").await[0].clone();
    assert_eq!(one["signals"], json!([]));
    let path = format!("/handoffs/{}", one["id"].as_str().unwrap());
    let messages = seam.admin_json(&path).await["messages"].clone();
    let fates: Vec<(&str, &str)> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (line["line"].as_str().unwrap(), line["why"].as_str().unwrap_or_default()))
        .collect();
    let item = |why| ("item", why);
    let expected =
        [item(""), ("brief", ""), item(""), item(""), item(""), item("transfer"), item("transfer")];
    assert_eq!(fates, expected, "{messages}");
    assert!(messages.to_string().find("318.40").is_none(), "{messages}");
    let run = one["run"].as_str().unwrap();
    assert_eq!(seam.admin("DELETE", &format!("/runs/{run}"), "").await.status, 200);
    assert_eq!(seam.admin("GET", &path, "").await.status, 404);
}

#[tokio::test]
async fn outside_the_share_a_receivers_request_goes_up_as_it_came() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::with(&upstream.url(), &[("SEAM_REWRITE_PERCENT", "0")]).await;
    let (received, head) = story::play(&seam, &mut upstream).await;
    assert_eq!(received, story::receiver_request());
    assert!(!head.iter().any(|line| line.starts_with("seam-")), "{head:?}");
    let one = &seam.admin_json("/handoffs").await[0];
    assert_eq!((&one["arm"], &one["state"]), (&json!("observe"), &json!("taken_up")));
    assert!((metric(&seam, r#"seam_passed_total{reason="control_arm"}"#).await - 1.0).abs() < 1e-9);
}

/// The names of all series, labels included.
async fn series(seam: &Seam) -> Vec<String> {
    let text = seam.admin("GET", "/metrics", "").await.text();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
}

#[tokio::test]
async fn ten_thousand_hostile_names_add_no_series() {
    let mut upstream = Upstream::start().await;
    let seam = Seam::with(&upstream.url(), &[("SEAM_AGENT_HEADER", "x-agent")]).await;
    let before = series(&seam).await;
    for n in 0..100 {
        let hostile = |m: usize| format!("transfer_to_{n}_{m}_\"}} 1\nseam_ready{{a=\"\u{1b}[31m");
        let tools: Vec<_> = (0..100)
            .map(|m| json!({"type": "function", "function": {"name": hostile(m), "parameters": {"type": "object", "properties": {}}}}))
            .collect();
        let call = json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": format!("call_{n}\n"), "type": "function", "function": {"name": hostile(n), "arguments": "{}"}}]});
        let user = json!({"role": "user", "content": format!("Case {n}.")});
        upstream.replies(story::reply(&call));
        let head = format!("{}x-agent: agent {n}\r\n", story::head());
        let body = json!({"model": "m", "messages": [user], "tools": tools}).to_string();
        assert_eq!(seam.exchange(post("/v1/chat/completions", &head, body.as_bytes())).await.status, 200);
        upstream.request().await;
        upstream.replies(story::receivers_reply());
        let result = json!({"role": "tool", "tool_call_id": format!("call_{n}\n"), "content": "ok"});
        let system = json!({"role": "system", "content": format!("You are agent {n}.")});
        let body = json!({"model": "m", "messages": [system, user, call, result]}).to_string();
        assert_eq!(seam.exchange(post("/v1/chat/completions", &head, body.as_bytes())).await.status, 200);
        upstream.request().await;
    }
    assert!(
        metric(&seam, r#"seam_transfers_total{outcome="pending",source="derived",arm="rewrite"}"#).await
            > 99.0
    );
    assert_eq!(series(&seam).await, before);
}

#[tokio::test]
async fn prometheus_own_tool_finds_nothing_to_say() {
    use std::io::Write;
    use std::process::{Command, Stdio};

    let mut upstream = Upstream::start().await;
    let seam = Seam::start(&upstream.url()).await;
    story::play(&seam, &mut upstream).await;
    let text = seam.admin("GET", "/metrics", "").await.text();
    let promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = promtool else {
        // Past the capture of the test's output: who reads the run has to know.
        let skipped = "SKIPPED: no promtool here (Debian: prometheus), /metrics was not checked with it";
        let _ = writeln!(std::io::stderr(), "{skipped}");
        return;
    };
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!((output.status.code(), told.as_str()), (Some(0), ""));
}

#[tokio::test]
async fn mode_and_share_change_while_it_runs() {
    let folder = std::env::temp_dir().join(format!("seam-live-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("live");
    let upstream = Upstream::start().await;
    let settings = [("SEAM_LIVE_FILE", file.to_str().unwrap()), ("SEAM_REWRITE_PERCENT", "50")];
    let seam = Binary::start(&upstream.url(), &settings).await;
    let check = async |text: Option<&str>, expected: &str| {
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
            seam.signal("HUP");
        }
        let expected = format!("\nseam_rewrite_percent {expected}\n");
        let request = "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n";
        soon(async {
            while !Client::connect(seam.admin).await.exchange(request).await.text().contains(&expected) {}
        })
        .await;
    };
    check(None, "50").await;
    check(Some("SEAM_MODE=observe\n"), "0").await;
    check(Some("SEAM_REWRITE_PERCENT=5\n"), "5").await;
    // What does not read changes nothing, and says so.
    std::fs::write(&file, "SEAM_REWRITE_PERCENT=many\n").unwrap();
    seam.says("SEAM_REWRITE_PERCENT=\\\"many\\\" does not read").await;
    check(None, "5").await;
    std::fs::remove_file(&file).unwrap();
    check(None, "50").await;
    seam.signal("TERM");
    let (code, log) = seam.ended().await;
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(code, Some(0));
    assert!(log.iter().any(|line| line.contains("settings changed")), "{log:#?}");
}

#[tokio::test]
async fn a_run_follows_the_mode_that_is_in_force() {
    let file = std::env::temp_dir().join(format!("seam-live-run-{}", std::process::id()));
    std::fs::write(&file, "SEAM_MODE=observe\n").unwrap();
    let mut upstream = Upstream::start().await;
    let seam = Seam::with(&upstream.url(), &[("SEAM_LIVE_FILE", file.to_str().unwrap())]).await;
    let (received, _) = story::play(&seam, &mut upstream).await;
    assert_eq!(received, story::receiver_request());
    std::fs::remove_file(&file).unwrap();
    soon(async { while metric(&seam, "seam_rewrite_percent").await < 99.0 {} }).await;
    upstream.replies(story::receivers_reply());
    let body = story::receiver_request().to_string();
    seam.exchange(post("/v1/chat/completions", &story::head(), body.as_bytes())).await;
    let received: serde_json::Value = serde_json::from_slice(&upstream.request().await.body).unwrap();
    assert_ne!(received, story::receiver_request(), "it is rebuilt now");
}
