//! Against a real server: the promises, one that is away, slow or guarded, and TLS.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_rustls::TlsConnector;

use super::*;
use crate::config::{self, Config, Roots};
use crate::store::promises::{Subject, keeps_its_promises};
use crate::store::{Expect, Store};

#[path = "../../../tests/it/support/redis.rs"]
mod server;

const LIMIT: Duration = Duration::from_secs(5);

fn address(url: &str) -> Address {
    let source = [("SEAM_UPSTREAM", "http://127.0.0.1:9/v1"), ("SEAM_STORE", url)];
    match Config::read(&source).expect("good settings").store {
        config::Store::Redis(server) => {
            Address { host: server.host, port: server.port, tls: None, login: server.login }
        }
        other => panic!("{other:?}"),
    }
}

fn put(key: &str) -> Write {
    Write::default().put(key.into(), Bytes::from_static(b"x"), Expect::Absent, Duration::from_mins(1))
}

fn start() -> Option<Subject> {
    let server = server::Redis::start()?;
    let store = Store::redis(address(&server.url()), LIMIT);
    Some(Subject::real(store, server))
}

keeps_its_promises!(start());

#[tokio::test]
async fn a_server_that_goes_and_comes_costs_no_call_more_than_its_limit() {
    let Some(mut server) = server::Redis::start() else { return };
    let limit = Duration::from_millis(200);
    let store = Store::redis(address(&server.url()), limit);
    store.write(put("a")).await.expect("it is written");
    let check = async |what: &str| {
        let began = Instant::now();
        let answer = store.get("a").await;
        assert!(began.elapsed() < limit * 3, "{what}: {:?}", began.elapsed());
        answer
    };
    let comes_back = async |what: &str| {
        let began = Instant::now();
        while check(what).await.is_err() {
            assert!(began.elapsed() < Duration::from_secs(20), "{what}: it does not come back");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    server.pause();
    for n in 0..20 {
        check("paused").await.expect_err("it hangs");
        if n == 5 {
            assert_eq!(check("paused").await, Err(StoreError::Resting));
        }
    }
    server.resume();
    comes_back("resumed").await;
    assert!(check("resumed").await.expect("it answers").is_some(), "what it held is there");
    server.stop();
    for _ in 0..20 {
        check("stopped").await.expect_err("it is gone");
    }
    server.restart();
    comes_back("restarted").await;
    store.write(put("b")).await.expect("it is written");
}

#[tokio::test]
async fn a_server_that_was_away_while_nobody_asked_costs_nothing() {
    let Some(mut server) = server::Redis::start() else { return };
    let redis = Redis::new(address(&server.url()));
    redis.write(put("a")).await.expect("it is written");
    let link = redis.links.link().await.expect("a connection");
    server.restart();
    while !link.is_lost() {
        tokio::task::yield_now().await;
    }
    redis.write(put("a")).await.expect("on a new connection");
}

#[tokio::test]
async fn a_password_is_sent_and_never_told() {
    let Some(server) = server::Redis::with(&["--requirepass", "hunter2"]) else { return };
    let ask = async |login: &str| {
        let address = address(&format!("redis://{login}127.0.0.1:{}/2", server.port));
        assert!(!format!("{address:?}").contains("hunter"));
        Store::redis(address, LIMIT).reach().await
    };
    assert_eq!(ask(":hunter2@").await, Ok(()));
    assert_eq!(ask("default:hunter2@").await, Ok(()));
    for login in ["", ":hunter3@", "someone:hunter2@"] {
        let error = ask(login).await.expect_err("it is not let in");
        assert!(matches!(error, StoreError::Failed(_)), "{error:?}");
        assert!(!error.to_string().contains("hunter"), "{error}");
    }
}

#[tokio::test]
async fn a_user_with_the_rights_that_the_docs_name_can_do_all_of_it() {
    let docs = include_str!("../../../docs/stores.md");
    let rights = "+@read +@write +@scripting +time +client +select";
    assert!(docs.contains(rights), "docs/stores.md names other rights");
    let user = format!("--user seam on >pw resetkeys ~seam:* -@all {rights}");
    let Some(server) = server::Redis::with(&user.split(' ').collect::<Vec<_>>()) else { return };
    let store = Store::redis(address(&format!("redis://seam:pw@127.0.0.1:{}/3", server.port)), LIMIT);
    let minute = Duration::from_mins(1);
    let write = put("a").add("a".into(), "m", 3, minute);
    let write = write.note("a", "n", crate::engine::time::Timestamp(1), 3, minute);
    store.write(write.remove("b".into()).forget("b", "x")).await.expect("it is written");
    assert!(store.get("a").await.expect("it answers").is_some());
    assert_eq!(store.members(&["a".into()]).await, Ok(vec![vec!["m".to_owned()]]));
    assert_eq!(store.newest("a", 3).await, Ok(vec!["n".to_owned()]));
}

#[tokio::test]
async fn over_tls_the_server_has_to_be_vouched_for() {
    let tls = |file: &str| format!("{}/tests/it/support/tls/{file}", env!("CARGO_MANIFEST_DIR"));
    let (certificate, key) = (tls("upstream.pem"), tls("upstream.key"));
    let Some(free) = server::Redis::start() else { return };
    let port = free.port.to_string();
    drop(free);
    let arguments = ["--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"];
    let files = ["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-ca-cert-file", &certificate];
    let Some(_server) = server::Redis::at(port.parse().expect("a port"), &[&arguments[..], &files].concat())
    else {
        return;
    };
    let ask = async |roots: &Roots, host: &str| {
        let client = crate::tls::client(roots).expect("roots");
        let name = crate::tls::name(host).expect("a name");
        let tls = Some((TlsConnector::from(Arc::new(client)), name));
        let store = Store::redis(Address { tls, ..address(&format!("rediss://localhost:{port}")) }, LIMIT);
        store.write(put("a")).await
    };
    let ours = Roots::File(tls("ca.pem").into());
    assert_eq!(ask(&ours, "localhost").await, Ok(()));
    for (roots, host) in [(&Roots::Bundled, "localhost"), (&ours, "elsewhere.example")] {
        let error = ask(roots, host).await.expect_err("nobody vouches for it");
        assert!(matches!(error, StoreError::Unreachable(_)), "{error:?}");
    }
}

#[tokio::test]
async fn what_is_not_ours_under_our_keys_is_an_error_and_stays() {
    let Some(server) = server::Redis::start() else { return };
    let redis = Redis::new(address(&server.url()));
    let mut set = redis::cmd("SET");
    set.arg("seam:v:a").arg("not ours");
    redis.ask::<()>(set).await.expect("it is set");
    assert!(matches!(redis.values(&["a".into()]).await, Err(StoreError::Failed(_))));
    assert_eq!(redis.write(put("a")).await, Err(StoreError::Conflict));
}

#[tokio::test]
async fn what_is_kept_ends_by_itself() {
    let Some(server) = server::Redis::start() else { return };
    let redis = Redis::new(address(&server.url()));
    let minute = Duration::from_mins(1);
    let write = put("a").add("a".into(), "m", 3, minute);
    redis.write(write.note("a", "n", crate::engine::time::Timestamp(1), 3, minute)).await.expect("written");
    for key in ["seam:v:a", "seam:s:a", "seam:l:a"] {
        let mut ttl = redis::cmd("PTTL");
        ttl.arg(key);
        let left: i64 = redis.ask(ttl).await.expect("it answers");
        assert!((50_000..=60_000).contains(&left), "{key}: {left}");
    }
}

#[tokio::test]
async fn a_full_server_fails_writes_and_still_reads() {
    let Some(server) = server::Redis::with(&["--maxmemory", "3mb"]) else { return };
    let redis = Redis::new(address(&server.url()));
    redis.write(put("a")).await.expect("it is written");
    let big = |n: usize| {
        let value = Bytes::from(vec![b'x'; 500_000]);
        Write::default().put(n.to_string(), value, Expect::Absent, Duration::from_mins(1))
    };
    let mut written = Ok(());
    for n in 0..10 {
        written = redis.write(big(n)).await;
        if written.is_err() {
            break;
        }
    }
    assert!(matches!(written, Err(StoreError::Failed(_))), "{written:?}");
    assert!(redis.values(&["a".into()]).await.expect("it answers")[0].is_some());
}
