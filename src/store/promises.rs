//! What every store promises, as one suite that runs against each of them.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::{Expect, Store, StoreError, VALUE_LIMIT, Version, Write};
use crate::clock::Clock;
use crate::engine::time::Timestamp;

/// A store under test, and how its time passes.
pub(super) struct Subject {
    store: Store,
    /// None where a real server keeps the time.
    clock: Option<Clock>,
    /// What the store stands on, kept as long as it.
    _ground: Box<dyn Send>,
}

/// Nothing runs out while a test runs.
const LONG: Duration = Duration::from_hours(1);
/// Short enough to be waited for where time is real.
const SHORT: Duration = Duration::from_millis(60);

impl Subject {
    /// A store whose time is simulated.
    pub(super) fn simulated(store: Store, clock: Clock, ground: impl Send + 'static) -> Subject {
        Subject { store, clock: Some(clock), _ground: Box::new(ground) }
    }

    /// A store whose time only passes.
    pub(super) fn real(store: Store, ground: impl Send + 'static) -> Subject {
        Subject { store, clock: None, _ground: Box::new(ground) }
    }

    async fn let_pass(&self, time: Duration) {
        match &self.clock {
            Some(clock) => clock.advance_ms(time.as_millis() as u64),
            None => tokio::time::sleep(time).await,
        }
    }

    async fn put(&self, key: &str, value: &str, expect: Expect) -> Result<(), StoreError> {
        self.store.write(put(key, value, expect)).await
    }

    async fn value(&self, key: &str) -> Option<String> {
        let found = self.store.get(key).await.expect("it answers");
        found.map(|(content, _)| String::from_utf8_lossy(&content.bytes().expect("bytes")).into_owned())
    }

    async fn version(&self, key: &str) -> Option<Version> {
        self.store.get(key).await.expect("it answers").map(|(_, version)| version)
    }

    async fn members(&self, key: &str) -> Vec<String> {
        let mut members = self.store.members(&[key.to_owned()]).await.expect("it answers").remove(0);
        members.sort();
        members
    }

    async fn newest(&self, list: &str, limit: usize) -> Vec<String> {
        self.store.newest(list, limit).await.expect("it answers")
    }

    async fn write(&self, write: Write) {
        self.store.write(write).await.expect("it is written");
    }
}

fn put(key: &str, value: &str, expect: Expect) -> Write {
    Write::default().put(key.to_owned(), Bytes::copy_from_slice(value.as_bytes()), expect, LONG)
}

fn add(key: &str, member: &str) -> Write {
    Write::default().add(key.to_owned(), member, 3, LONG)
}

pub(super) async fn a_write_is_seen_by_every_later_read(subject: &Subject) {
    assert_eq!(subject.value("a").await, None);
    assert_eq!(subject.members("a").await, [""; 0]);
    subject.put("a", "one", Expect::Absent).await.expect("it is written");
    assert_eq!(subject.value("a").await.as_deref(), Some("one"));
    let version = subject.version("a").await.expect("it has a version");
    subject.put("a", "two", Expect::Version(version)).await.expect("it is written");
    assert_eq!(subject.value("a").await.as_deref(), Some("two"));
    assert!(subject.version("a").await > Some(version));
}

pub(super) async fn a_put_that_expected_something_else_changes_nothing(subject: &Subject) {
    subject.put("a", "one", Expect::Absent).await.expect("it is written");
    let version = subject.version("a").await.expect("it has a version");
    for expect in [Expect::Absent, Expect::Version(version - 1), Expect::Version(version + 1)] {
        assert_eq!(subject.put("a", "two", expect).await, Err(StoreError::Conflict), "{expect:?}");
    }
    assert_eq!(subject.put("b", "one", Expect::Version(1)).await, Err(StoreError::Conflict));
    assert_eq!(
        (subject.value("a").await.as_deref(), subject.version("a").await),
        (Some("one"), Some(version))
    );
    assert_eq!(subject.value("b").await, None);
}

pub(super) async fn of_many_writers_one_wins(subject: &Subject) {
    for expect in [None, Some(())] {
        let expect = match expect {
            None => Expect::Absent,
            Some(()) => Expect::from(subject.version("a").await),
        };
        let writers: Vec<_> = (0..64)
            .map(|n| {
                let store = subject.store.clone();
                tokio::spawn(async move { store.write(put("a", &n.to_string(), expect)).await.map(|()| n) })
            })
            .collect();
        let mut winners = Vec::new();
        for writer in writers {
            match writer.await.expect("no panic") {
                Ok(n) => winners.push(n.to_string()),
                Err(error) => assert_eq!(error, StoreError::Conflict),
            }
        }
        assert_eq!(winners.len(), 1);
        assert_eq!(subject.value("a").await, winners.pop());
    }
}

pub(super) async fn no_write_is_lost_where_writers_read_and_try_again(subject: &Subject) {
    let writers: Vec<_> = (0..16)
        .map(|_| {
            let store = subject.store.clone();
            tokio::spawn(async move {
                loop {
                    let found = store.get("count").await.expect("it answers");
                    let version = found.as_ref().map(|(_, version)| *version);
                    let count: u32 = found.map_or(0, |(content, _)| {
                        String::from_utf8_lossy(&content.bytes().expect("bytes")).parse().expect("a number")
                    });
                    let more = put("count", &(count + 1).to_string(), version.into());
                    match store.write(more).await {
                        Ok(()) => return,
                        Err(error) => assert_eq!(error, StoreError::Conflict),
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("no panic");
    }
    assert_eq!(subject.value("count").await.as_deref(), Some("16"));
}

pub(super) async fn what_is_written_together_happens_together_or_not_at_all(subject: &Subject) {
    let together = |value: &str, expect: Expect| {
        let write = put("free", value, Expect::Absent).add("set".into(), value, 3, LONG);
        let write = write.note("list", value, Timestamp(1), 3, LONG).remove("doomed".into());
        let bytes = Bytes::copy_from_slice(value.as_bytes());
        write.put("guarded".into(), bytes, expect, LONG)
    };
    subject.put("doomed", "alive", Expect::Absent).await.expect("it is written");
    let refused = subject.store.write(together("no", Expect::Version(7))).await;
    assert_eq!(refused, Err(StoreError::Conflict));
    assert_eq!(subject.value("free").await, None);
    assert_eq!(subject.members("set").await, [""; 0]);
    assert_eq!(subject.newest("list", 3).await, [""; 0]);
    assert_eq!(subject.value("doomed").await.as_deref(), Some("alive"));
    subject.write(together("yes", Expect::Absent)).await;
    for key in ["free", "guarded"] {
        assert_eq!(subject.value(key).await.as_deref(), Some("yes"));
    }
    assert_eq!(subject.members("set").await, ["yes"]);
    assert_eq!(subject.newest("list", 3).await, ["yes"]);
    assert_eq!(subject.value("doomed").await, None);
}

pub(super) async fn a_set_holds_a_member_once_and_stays_full(subject: &Subject) {
    for member in ["one", "two", "one", "three", "four", "two"] {
        subject.write(add("a", member)).await;
    }
    assert_eq!(subject.members("a").await, ["one", "three", "two"]);
    subject.write(add("b", "four")).await;
    let keys = ["b", "none", "a"].map(str::to_owned);
    let sizes: Vec<usize> =
        subject.store.members(&keys).await.expect("it answers").iter().map(Vec::len).collect();
    assert_eq!(sizes, [1, 0, 3], "in the order of the keys");
    assert!(subject.store.members(&[]).await.expect("it answers").is_empty());
}

pub(super) async fn a_list_gives_its_newest_first_and_is_bounded(subject: &Subject) {
    let note = |member: &str, at: u64| Write::default().note("list", member, Timestamp(at), 3, LONG);
    for (member, at) in [("a", 10), ("b", 20), ("a", 30), ("c", 5)] {
        subject.write(note(member, at)).await;
    }
    assert_eq!(subject.newest("list", 9).await, ["a", "b", "c"]);
    assert_eq!(subject.newest("list", 2).await, ["a", "b"]);
    assert_eq!(subject.newest("list", 0).await, [""; 0]);
    subject.write(note("d", 25)).await;
    assert_eq!(subject.newest("list", 9).await, ["a", "d", "b"], "the oldest left it");
    subject.write(Write::default().forget("list", "a").forget("list", "x").forget("none", "a")).await;
    assert_eq!(subject.newest("list", 9).await, ["d", "b"]);
    let later = Timestamp(21 + LONG.as_millis() as u64);
    subject.write(Write::default().note("list", "e", later, 3, LONG)).await;
    assert_eq!(subject.newest("list", 9).await, ["e", "d"], "what is too old left it");
}

pub(super) async fn nothing_outlives_its_time(subject: &Subject) {
    let short = |key: &str, expect: Expect| {
        let write = Write::default().put(key.into(), Bytes::from_static(b"x"), expect, SHORT);
        write.add(key.into(), "x", 3, SHORT)
    };
    subject.write(short("a", Expect::Absent)).await;
    subject.write(put("b", "x", Expect::Absent).add("b".into(), "x", 3, LONG)).await;
    // Written again, it lives from then on.
    subject.write(short("c", Expect::Absent)).await;
    let version = subject.version("c").await;
    subject.write(put("c", "y", version.into()).add("c".into(), "y", 3, LONG)).await;
    subject.let_pass(SHORT + Duration::from_millis(1)).await;
    assert_eq!((subject.value("a").await, subject.members("a").await.len()), (None, 0));
    assert_eq!((subject.value("b").await.as_deref(), subject.members("b").await.len()), (Some("x"), 1));
    assert_eq!((subject.value("c").await.as_deref(), subject.members("c").await.len()), (Some("y"), 2));
    // What is over is absent to whoever writes, too.
    subject.put("a", "anew", Expect::Absent).await.expect("it is written");
    subject.write(add("a", "anew")).await;
    assert_eq!(subject.members("a").await, ["anew"]);
}

pub(super) async fn a_key_that_was_removed_comes_back_as_another(subject: &Subject) {
    subject.put("a", "one", Expect::Absent).await.expect("it is written");
    subject.write(add("a", "one")).await;
    let before = subject.version("a").await.expect("it has a version");
    subject.write(Write::default().remove("a".into()).remove("none".into())).await;
    assert_eq!((subject.value("a").await, subject.members("a").await.len()), (None, 0));
    let stale = subject.put("a", "two", Expect::Version(before)).await;
    assert_eq!(stale, Err(StoreError::Conflict), "who read it before must not bring it back");
    subject.put("a", "two", Expect::Absent).await.expect("it is written");
    let stale = subject.put("a", "three", Expect::Version(before)).await;
    assert_eq!(stale, Err(StoreError::Conflict), "nor write over its successor");
}

pub(super) async fn values_sets_and_lists_of_one_name_do_not_meet(subject: &Subject) {
    let write = put("a", "value", Expect::Absent).add("a".into(), "member", 3, LONG);
    subject.write(write.note("a", "noted", Timestamp(1), 3, LONG)).await;
    assert_eq!(subject.value("a").await.as_deref(), Some("value"));
    assert_eq!(subject.members("a").await, ["member"]);
    assert_eq!(subject.newest("a", 3).await, ["noted"]);
}

pub(super) async fn any_bytes_under_any_key_come_back(subject: &Subject) {
    let name = prop_oneof![".{0,24}", "[a/:]{1,4}", Just("\0\n\r {}*".to_owned())];
    let pairs = prop::collection::btree_map(name, prop::collection::vec(any::<u8>(), 0..300), 1..12);
    let mut runner = TestRunner::deterministic();
    for round in 0..16 {
        let pairs = pairs.new_tree(&mut runner).expect("a value").current();
        let key = |name: &String| format!("{round}/{name}");
        let mut write = Write::default();
        for (name, bytes) in &pairs {
            write = write.put(key(name), Bytes::from(bytes.clone()), Expect::Absent, LONG);
            write = write.add(key(name), name, 3, LONG);
        }
        subject.write(write).await;
        let keys: Vec<String> = pairs.keys().map(key).collect();
        let values = subject.store.values(&keys).await.expect("it answers");
        let values: Vec<_> = values
            .into_iter()
            .map(|value| value.map(|(content, _)| content.bytes().expect("bytes").to_vec()))
            .collect();
        assert_eq!(values, pairs.values().cloned().map(Some).collect::<Vec<_>>());
        let members = subject.store.members(&keys).await.expect("it answers");
        assert_eq!(members, pairs.keys().map(|name| vec![name.clone()]).collect::<Vec<_>>());
    }
    assert!(subject.store.values(&[]).await.expect("it answers").is_empty());
    let missing = subject.store.values(&["none".into(), "0/none".into()]).await.expect("it answers");
    assert!(missing.iter().all(Option::is_none));
}

pub(super) async fn a_value_that_is_too_large_is_refused(subject: &Subject) {
    let write =
        |bytes: usize| Write::default().put("a".into(), Bytes::from(vec![7; bytes]), Expect::Absent, LONG);
    let bytes = VALUE_LIMIT + 1;
    assert_eq!(subject.store.write(write(bytes)).await, Err(StoreError::TooLarge { bytes }));
    subject.write(write(2 << 20)).await;
    let (value, _) = subject.store.get("a").await.expect("it answers").expect("it is there");
    let value = value.bytes().expect("bytes");
    assert!(value.len() == 2 << 20 && value.iter().all(|byte| *byte == 7));
}

/// Every promise as a test of one store. `$start` gives a [`Subject`], or none where the store cannot
/// be had, which it says itself.
macro_rules! keeps_its_promises {
    ($start:expr) => {
        $crate::store::promises::keeps_its_promises! { $start =>
            a_write_is_seen_by_every_later_read
            a_put_that_expected_something_else_changes_nothing
            of_many_writers_one_wins
            no_write_is_lost_where_writers_read_and_try_again
            what_is_written_together_happens_together_or_not_at_all
            a_set_holds_a_member_once_and_stays_full
            a_list_gives_its_newest_first_and_is_bounded
            nothing_outlives_its_time
            a_key_that_was_removed_comes_back_as_another
            values_sets_and_lists_of_one_name_do_not_meet
            any_bytes_under_any_key_come_back
            a_value_that_is_too_large_is_refused
        }
    };
    ($start:expr => $($promise:ident)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                if let Some(subject) = $start {
                    $crate::store::promises::$promise(&subject).await;
                }
            }
        )+
    };
}
pub(super) use keeps_its_promises;
