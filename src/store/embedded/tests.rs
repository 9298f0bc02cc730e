//! The file: its promises, its neighbours, its damage and its end.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicUsize;

use bytes::Bytes;

use super::*;
use crate::engine::time::Timestamp;
use crate::store::promises::{Subject, keeps_its_promises};
use crate::store::{Expect, Store};

const HOUR: Duration = Duration::from_hours(1);
const MANY: usize = 64 << 20;

/// A folder of a test's own.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("seam-store-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("records")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn clock() -> Clock {
    Clock::manual(Timestamp(1_790_000_000_000))
}

fn put(key: &str, bytes: usize, expect: Expect) -> Write {
    Write::default().put(key.into(), Bytes::from(vec![b'x'; bytes]), expect, HOUR)
}

async fn keys_of(file: &Embedded, keys: impl IntoIterator<Item = String>) -> Vec<String> {
    let keys: Vec<String> = keys.into_iter().collect();
    let values = file.values(&keys).await.expect("it answers");
    keys.into_iter().zip(values).filter(|(_, value)| value.is_some()).map(|(key, _)| key).collect()
}

fn start() -> Subject {
    let (folder, clock) = (Folder::new(), clock());
    let store = Store::file(&folder.file(), MANY, HOUR, clock.clone()).expect("it opens");
    Subject::simulated(store, clock, folder)
}

keeps_its_promises!(Some(start()));

#[tokio::test]
async fn what_was_written_is_there_after_a_restart_and_versions_go_on() {
    let folder = Folder::new();
    let file = Embedded::open(&folder.file(), MANY, clock()).expect("it opens");
    assert!(file.is_untouched());
    let write = put("a", 3, Expect::Absent).add("s".into(), "m", 3, HOUR);
    file.write(write.note("l", "n", Timestamp(1), 3, HOUR)).await.expect("it is written");
    file.write(put("b", 3, Expect::Absent)).await.expect("it is written");
    file.write(Write::default().remove("b".into())).await.expect("it is written");
    let before = file.values(&["a".into()]).await.expect("it answers");
    drop(file);
    let file = Embedded::open(&folder.file(), MANY, clock()).expect("it opens");
    assert!(!file.is_untouched());
    assert_eq!(file.values(&["a".into()]).await, Ok(before.clone()));
    assert_eq!(file.members(&["s".into()]).await, Ok(vec![vec!["m".to_owned()]]));
    assert_eq!(file.newest("l", 3).await, Ok(vec!["n".to_owned()]));
    file.write(put("b", 3, Expect::Absent)).await.expect("it is written");
    let version = |values: Vec<Option<Value>>| values[0].as_ref().map(|(_, version)| *version);
    let after = file.values(&["b".into()]).await.expect("it answers");
    assert!(
        version(after) > version(before).map(|version| version + 1),
        "b's first version is not used again"
    );
}

#[tokio::test]
async fn the_file_as_a_killed_process_leaves_it_holds_all_that_was_acknowledged() {
    let (folder, copy) = (Folder::new(), Folder::new());
    let file = Embedded::open(&folder.file(), MANY, clock()).expect("it opens");
    for n in 0..40 {
        file.write(put(&n.to_string(), 5000, Expect::Absent)).await.expect("it is written");
        std::fs::copy(folder.file(), copy.file()).expect("a copy");
        let left = Embedded::open(&copy.file(), MANY, clock()).expect("it opens");
        assert_eq!(keys_of(&left, (0..=n).map(|n| n.to_string())).await.len(), n + 1);
    }
}

#[tokio::test]
async fn many_writers_share_a_commit() {
    let folder = Folder::new();
    let file = Arc::new(Embedded::open(&folder.file(), MANY, clock()).expect("it opens"));
    let writers = (0..500).map(|n| {
        let file = Arc::clone(&file);
        tokio::spawn(async move { file.write(put(&n.to_string(), 2000, Expect::Absent)).await })
    });
    for writer in writers.collect::<Vec<_>>() {
        assert_eq!(writer.await.expect("no panic"), Ok(()));
    }
    assert_eq!(keys_of(&file, (0..500).map(|n| n.to_string())).await.len(), 500);
}

#[tokio::test]
async fn over_its_capacity_what_was_written_longest_ago_goes() {
    let folder = Folder::new();
    let file = Embedded::open(&folder.file(), 100 << 10, clock()).expect("it opens");
    for n in 0..50 {
        file.write(put(&n.to_string(), 10 << 10, Expect::Absent)).await.expect("it is written");
    }
    let kept = keys_of(&file, (0..50).map(|n| n.to_string())).await;
    assert_eq!(kept, ["41", "42", "43", "44", "45", "46", "47", "48", "49"]);
}

#[tokio::test]
async fn what_is_over_leaves_the_file() {
    let (folder, clock) = (Folder::new(), clock());
    let file = Embedded::open(&folder.file(), MANY, clock.clone()).expect("it opens");
    for n in 0..60 {
        file.write(put(&n.to_string(), 1000, Expect::Absent)).await.expect("it is written");
    }
    clock.advance_ms(3_600_001);
    let database = file.book.database().expect("it is open");
    assert!(tables::has_expired(&database, clock.now()).expect("it answers"));
    // As when the writer finds nothing to do for a while.
    assert_eq!(file.book.commit(Vec::new()), Ok(Vec::new()));
    assert!(!tables::has_expired(&database, clock.now()).expect("it answers"));
    assert_eq!(tables::bytes(&database).expect("it answers"), 0);
}

#[tokio::test]
async fn a_file_that_failed_is_opened_anew_by_the_next_write() {
    let folder = Folder::new();
    let file = Embedded::open(&folder.file(), MANY, clock()).expect("it opens");
    file.write(put("a", 3, Expect::Absent)).await.expect("it is written");
    *file.book.database.write().expect("a lock") = None;
    assert!(matches!(file.values(&["a".into()]).await, Err(StoreError::Unreachable(_))));
    file.write(put("b", 3, Expect::Absent)).await.expect("it is written");
    assert_eq!(keys_of(&file, ["a".into(), "b".into()]).await, ["a", "b"]);
}

#[test]
fn a_file_in_use_is_refused_and_its_holder_named() {
    let folder = Folder::new();
    let _held = Embedded::open(&folder.file(), MANY, clock()).expect("it opens");
    let error = Embedded::open(&folder.file(), MANY, clock()).expect_err("it is held");
    assert!(matches!(error, OpenError::Held { .. }), "{error:?}");
    let told = error.to_string();
    assert!(told.contains(&format!("process {}", std::process::id())), "{told}");
}

#[test]
fn what_is_no_store_is_refused_and_left_as_it_is() {
    let folder = Folder::new();
    for junk in [b"not a store".to_vec(), vec![0; 1 << 20], b"redb\x1a\x0a\xa9\x0d\x0a".repeat(1000)] {
        std::fs::write(folder.file(), &junk).expect("a file");
        let error = Embedded::open(&folder.file(), MANY, clock()).expect_err("it is no store");
        assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
        assert!(error.to_string().contains("move it away"), "{error}");
        assert_eq!(std::fs::read(folder.file()).expect("a file"), junk);
    }
}

#[tokio::test]
async fn damage_is_told_at_the_start_or_changes_nothing() {
    let folder = Folder::new();
    let file = Embedded::open(&folder.file(), MANY, clock()).expect("it opens");
    for n in 0..50 {
        file.write(put(&n.to_string(), 1000, Expect::Absent)).await.expect("it is written");
    }
    drop(file);
    let sound = std::fs::read(folder.file()).expect("a file");
    let mut told = 0;
    let cuts = (1..8).map(|n| sound[..sound.len() * n / 8].to_vec());
    let flips = (0..sound.len()).step_by(sound.len() / 24).map(|at| {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x55;
        bytes
    });
    for bytes in cuts.chain(flips) {
        std::fs::write(folder.file(), &bytes).expect("a file");
        match Embedded::open(&folder.file(), MANY, clock()) {
            Ok(file) => {
                let kept = keys_of(&file, (0..50).map(|n| n.to_string())).await;
                assert_eq!(kept.len(), 50, "where it is opened, all is there");
            }
            Err(error) => {
                told += 1;
                assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
            }
        }
    }
    assert!(told > 5, "{told}");
}

#[test]
fn a_file_of_a_newer_release_is_refused() {
    let folder = Folder::new();
    let database = open::open(&folder.file(), MANY).expect("it opens");
    assert!(matches!(tables::prepare(&database, 2), Ok((2, true))));
    drop(database);
    let error = Embedded::open(&folder.file(), MANY, clock()).expect_err("it is newer");
    assert!(matches!(error, OpenError::Newer { format: 2, .. }), "{error:?}");
}

#[test]
fn the_file_is_its_users_alone() {
    let folder = Folder::new();
    let mode = || std::fs::metadata(folder.file()).expect("a file").permissions().mode() & 0o777;
    drop(Embedded::open(&folder.file(), MANY, clock()).expect("it opens"));
    assert_eq!(mode(), 0o600);
    std::fs::set_permissions(folder.file(), std::fs::Permissions::from_mode(0o664)).expect("a file");
    drop(Embedded::open(&folder.file(), MANY, clock()).expect("it opens"));
    assert_eq!(mode(), 0o600);
}

#[test]
fn a_path_that_cannot_be_is_told_with_its_cause() {
    let folder = Folder::new();
    for path in [folder.0.join("no/such/folder"), folder.0.clone()] {
        let error = Embedded::open(&path, MANY, clock()).expect_err("it cannot be opened");
        assert!(matches!(error, OpenError::Io { .. }), "{error:?}");
    }
}
