//! What is kept between requests, with real stores behind real processes: shared, killed, gone and back.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use seam::engine::custody::run::Run;
use seam::engine::event::Code;
use seam::engine::record::State;

use crate::support::client::{Client, post};
use crate::support::garage::{Garage, Turn, brief};
use crate::support::redis::Redis;
use crate::support::seam::Seam;
use crate::support::upstream::{Gate, Step, Upstream};

/// What upstream got of a turn that went through the Seam behind `client`.
async fn play(client: &mut Client, upstream: &mut Upstream, turn: &Turn) -> Vec<u8> {
    upstream.replies(turn.answer());
    let got = client.exchange(turn.on_the_wire()).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let answer = turn.answer();
    assert!(answer.ends_with(&got.body) && got.whole, "the reply passes as it came");
    upstream.request().await.body
}

/// The brief that a turn brought upstream.
async fn briefed(client: &mut Client, upstream: &mut Upstream, turn: &Turn) -> String {
    let body = play(client, upstream, turn).await;
    brief(&body).unwrap_or_else(|| panic!("no brief in {}", String::from_utf8_lossy(&body)))
}

/// Long enough for many at once on a busy machine; what is bounded is shown by tests of their own.
fn shared(redis: &Redis) -> [(&'static str, String); 2] {
    [("SEAM_STORE", redis.url()), ("SEAM_STORE_TIMEOUT", "10s".to_owned())]
}

async fn replica(upstream: &Upstream, settings: &[(&'static str, String)]) -> Seam {
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Seam::with(&upstream.url(), &settings).await
}

/// The runs in a Redis server in which something was transferred.
fn runs(redis: &Redis) -> Vec<Run> {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg("seam:v:*/run/*").query(&mut connection).unwrap();
    let values =
        keys.iter().map(|key| -> Vec<u8> { redis::cmd("GET").arg(key).query(&mut connection).unwrap() });
    // Sixteen digits of the version stand before it.
    let runs = values.map(|value| serde_json::from_slice::<Run>(&value[16..]).unwrap());
    runs.filter(|run| !run.transfers.is_empty()).collect()
}

#[tokio::test]
async fn the_sender_through_one_replica_and_the_receiver_through_another() {
    let Some(redis) = Redis::start() else { return };
    let mut upstream = Upstream::start().await;
    let (one, two) = (replica(&upstream, &shared(&redis)).await, replica(&upstream, &shared(&redis)).await);
    let (mut one, mut two) = (one.client().await, two.client().await);
    let hidden = Garage::new("KA 1");
    play(&mut one, &mut upstream, &hidden.desk_looks_up()).await;
    play(&mut two, &mut upstream, &hidden.desk_transfers(0)).await;
    let first = briefed(&mut one, &mut upstream, &hidden.workshop_begins()).await;
    assert!(first.contains(&hidden.booking()), "{first}");
    assert_eq!(briefed(&mut two, &mut upstream, &hidden.workshop_goes_on()).await, first);
    assert_eq!(briefed(&mut one, &mut upstream, &hidden.workshop_goes_on()).await, first);

    let visible = Garage::new("KA 2");
    play(&mut one, &mut upstream, &visible.desk_looks_up()).await;
    play(&mut one, &mut upstream, &visible.desk_transfers(0)).await;
    let first = play(&mut two, &mut upstream, &visible.workshop_sees_transfer()).await;
    assert!(brief(&first).unwrap().contains(&visible.booking()));
    assert_eq!(play(&mut one, &mut upstream, &visible.workshop_sees_transfer()).await, first);
}

/// Sends a turn 64 times at once, half of it through either replica; what upstream got.
async fn sixty_four_times(upstream: &mut Upstream, replicas: [&Seam; 2], turn: &Turn) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    for n in 0..64 {
        upstream.replies(turn.answer());
        let (mut client, request) = (replicas[n % 2].client().await, turn.on_the_wire());
        sent.push(tokio::spawn(async move { client.exchange(request).await.status }));
    }
    for reply in sent {
        assert_eq!(reply.await.unwrap(), 200);
    }
    let mut bodies = Vec::new();
    for _ in 0..64 {
        bodies.push(upstream.request().await.body);
    }
    bodies
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_take_ups_at_once_end_with_one_holder_and_one_hop() {
    for seen in [true, false] {
        let Some(redis) = Redis::start() else { return };
        let mut upstream = Upstream::start().await;
        let (one, two) =
            (replica(&upstream, &shared(&redis)).await, replica(&upstream, &shared(&redis)).await);
        let garage = Garage::new("KA 3");
        // A hidden transfer was seen to be made; one that stands in the list need not have been.
        let turn = if seen { garage.workshop_begins() } else { garage.workshop_sees_transfer() };
        if seen {
            let mut client = one.client().await;
            play(&mut client, &mut upstream, &garage.desk_looks_up()).await;
            play(&mut client, &mut upstream, &garage.desk_transfers(0)).await;
        }
        let bodies = sixty_four_times(&mut upstream, [&one, &two], &turn).await;
        assert!(brief(&bodies[0]).is_some_and(|brief| brief.contains(&garage.booking())));
        assert!(bodies.iter().all(|body| *body == bodies[0]), "all read the same brief");
        let runs = runs(&redis);
        assert_eq!(runs.len(), 1, "one run, seen: {seen}");
        let run = &runs[0];
        assert_eq!((run.hops, run.transfers.len()), (1, 1));
        assert_eq!(run.transfers[0].record.state, State::TakenUp);
        assert_eq!(run.holder.map(|holder| holder.hop), Some(1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfers_made_at_once_are_all_kept_under_hops_of_their_own() {
    const AT_ONCE: usize = 24;
    let Some(redis) = Redis::start() else { return };
    let mut upstream = Upstream::start().await;
    let replicas = [replica(&upstream, &shared(&redis)).await, replica(&upstream, &shared(&redis)).await];
    let garage = Garage::new("KA 4");
    play(&mut replicas[0].client().await, &mut upstream, &garage.desk_looks_up()).await;
    let mut sent = Vec::new();
    for n in 0..AT_ONCE {
        let mut turn = garage.desk_transfers(n);
        // Requests of their own: what one that is resent makes replaces what it made before.
        turn.request["seed"] = n.into();
        upstream.replies(turn.answer());
        let mut client = replicas[n % 2].client().await;
        sent.push(tokio::spawn(async move { client.exchange(turn.on_the_wire()).await.status }));
    }
    for reply in sent {
        assert_eq!(reply.await.unwrap(), 200);
    }
    let runs = runs(&redis);
    assert_eq!(runs.len(), 1);
    let mut hops: Vec<u32> = runs[0].transfers.iter().map(|transfer| transfer.record.hop).collect();
    hops.sort_unstable();
    assert_eq!(hops, (1..=AT_ONCE as u32).collect::<Vec<_>>());
    assert_eq!(runs[0].hops, 0, "none was taken up");
}

#[tokio::test]
async fn a_store_that_hangs_or_is_gone_costs_its_bound_and_nothing_else() {
    const BOUND: Duration = Duration::from_millis(250);
    let keeping = ["--appendonly", "yes", "--appendfsync", "always"];
    let Some(mut redis) = Redis::with(&keeping) else { return };
    let mut upstream = Upstream::start().await;
    let seam = replica(&upstream, &[("SEAM_STORE", redis.url())]).await;
    let garage = Garage::new("KA 5");
    let mut client = seam.client().await;
    play(&mut client, &mut upstream, &garage.desk_looks_up()).await;
    play(&mut client, &mut upstream, &garage.desk_transfers(0)).await;
    let first = briefed(&mut client, &mut upstream, &garage.workshop_begins()).await;
    let turn = garage.workshop_goes_on();
    let as_it_came = turn.request.to_string().into_bytes();

    for trouble in ["paused", "stopped"] {
        match trouble {
            "paused" => redis.pause(),
            _ => redis.stop(),
        }
        let mut slow = 0;
        for n in 0..30 {
            let began = Instant::now();
            let body = play(&mut client, &mut upstream, &turn).await;
            let took = began.elapsed();
            assert!(took < BOUND * 2 + Duration::from_millis(500), "{trouble}: request {n} took {took:?}");
            assert_eq!(body, as_it_came, "{trouble}: it passes as it came");
            slow += u32::from(took >= BOUND);
        }
        assert!(slow <= 6, "{trouble}: {slow} of 30 waited for a store that does not answer");
        assert!(seam.findings(Code::StoreFailed) >= 30, "{trouble}: it is counted");
        match trouble {
            "paused" => redis.resume(),
            _ => redis.restart(),
        }
        let began = Instant::now();
        loop {
            if let Some(brief) = brief(&play(&mut client, &mut upstream, &turn).await) {
                assert_eq!(brief, first, "{trouble}: what it held is there");
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{trouble}: state does not return");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    assert_eq!(seam.findings(Code::AmbiguousRun), 0);
}

/// Seam as a process of its own, so that it can be killed.
struct Process {
    seam: Child,
    address: std::net::SocketAddr,
}

impl Process {
    async fn start(upstream: &Upstream, store: &Path) -> Process {
        // Ports that were free a moment ago: what is killed cannot be asked for those it found.
        let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (listen, admin) = (free(), free());
        let address = listen.local_addr().unwrap();
        let admin_address = admin.local_addr().unwrap();
        drop((listen, admin));
        let seam = Command::new(env!("CARGO_BIN_EXE_seam"))
            .env_clear()
            .env("SEAM_UPSTREAM", upstream.url())
            .env("SEAM_LISTEN", address.to_string())
            .env("SEAM_ADMIN_LISTEN", admin_address.to_string())
            .env("SEAM_STORE", format!("file:{}", store.display()))
            .env("SEAM_STORE_TIMEOUT", "10s")
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let process = Process { seam, address };
        let began = Instant::now();
        while tokio::net::TcpStream::connect(address).await.is_err() {
            assert!(began.elapsed() < Duration::from_secs(20), "it does not start");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        process
    }

    async fn client(&self) -> Client {
        Client::connect(self.address).await
    }

    /// `kill -9`.
    fn kill(&mut self) {
        let _ = self.seam.kill();
        let _ = self.seam.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn killed_between_the_transfer_and_its_receiver_it_gives_the_same_brief() {
    let folder = Folder(std::env::temp_dir().join(format!("seam-killed-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let (file, copy) = (folder.0.join("records"), folder.0.join("copy"));
    let mut upstream = Upstream::start().await;
    let garage = Garage::new("KA 6");

    let mut process = Process::start(&upstream, &file).await;
    let mut client = process.client().await;
    play(&mut client, &mut upstream, &garage.desk_looks_up()).await;
    play(&mut client, &mut upstream, &garage.desk_transfers(0)).await;
    // What a kill would leave at this moment; the process itself goes on, to show what it would have done.
    std::fs::copy(&file, &copy).unwrap();
    let expected = play(&mut client, &mut upstream, &garage.workshop_begins()).await;
    assert!(brief(&expected).unwrap().contains(&garage.booking()));
    process.kill();

    let mut process = Process::start(&upstream, &copy).await;
    let got = play(&mut process.client().await, &mut upstream, &garage.workshop_begins()).await;
    assert_eq!(got, expected, "killed before it was taken up");
    process.kill();
    let process = Process::start(&upstream, &copy).await;
    let got = play(&mut process.client().await, &mut upstream, &garage.workshop_begins()).await;
    assert_eq!(got, expected, "killed after it was taken up");
}

#[tokio::test]
async fn a_file_that_cannot_be_used_stops_the_start_and_says_why() {
    let folder = Folder(std::env::temp_dir().join(format!("seam-unusable-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let upstream = Upstream::start().await;
    let start = |file: &Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_seam"))
            .env_clear()
            .env("SEAM_UPSTREAM", upstream.url())
            .env("SEAM_LISTEN", "127.0.0.1:0")
            .env("SEAM_ADMIN_LISTEN", "127.0.0.1:0")
            .env("SEAM_STORE", format!("file:{}", file.display()))
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let file = folder.0.join("records");
    let process = Process::start(&upstream, &file).await;
    let (code, told) = start(&file);
    assert_eq!(code, Some(75), "{told}");
    assert!(told.contains(&format!("in use by process {} seam", process.seam.id())), "{told}");
    drop(process);
    std::fs::write(&file, "something else").unwrap();
    let (code, told) = start(&file);
    assert_eq!(code, Some(65), "{told}");
    assert!(told.contains("is not a sound store of Seam") && told.contains("move it away"), "{told}");
    assert_eq!(std::fs::read(&file).unwrap(), b"something else");
    let (code, told) = start(&folder.0.join("missing/records"));
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("No such file or directory"), "{told}");
}

#[tokio::test]
async fn closed_fails_what_cannot_be_kept_and_says_so() {
    let Some(redis) = Redis::start() else { return };
    let mut upstream = Upstream::start().await;
    let closed = [("SEAM_STORE", redis.url()), ("SEAM_ON_FAILURE", "closed".to_owned())];
    let seam = replica(&upstream, &closed).await;
    let garage = Garage::new("KA 7");
    let mut client = seam.client().await;
    play(&mut client, &mut upstream, &garage.desk_looks_up()).await;

    // The store hangs while upstream answers: the desk must not believe that it transferred.
    let (gate, turn) = (Gate::new(), garage.desk_transfers(0));
    upstream.then([Step::Wait(gate.clone()), Step::Send(turn.answer())]);
    client.send(turn.on_the_wire()).await;
    upstream.request().await;
    redis.pause();
    gate.open();
    let got = client.reply(false).await;
    assert!(!got.whole, "the reply breaks off: {}", got.text());
    assert!(serde_json::from_slice::<serde_json::Value>(&got.body).is_err(), "half a reply is no reply");

    let mut client = seam.client().await;
    let got = client.exchange(garage.workshop_begins().on_the_wire()).await;
    assert_eq!((got.status, got.error_code().as_str()), (503, "seam_store_failed"));
    assert_eq!(got.header("x-should-retry"), None, "the SDKs try again, and the store may be back");
    let got = client.exchange(post("/v1/embeddings", "", b"{}")).await;
    assert_eq!(got.status, 200, "what is not inspected passes");
    redis.resume();
}
