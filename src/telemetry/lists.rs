//! The message lists of the last take-ups, before and after, for people. In this
//! process's memory alone, bounded in number and bytes, gone after the retention of records.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::lists::Lists;
use crate::engine::time::Timestamp;

/// How many are remembered.
const KEPT: usize = 500;
/// Bytes that they take together.
const BYTES: usize = 16 << 20;

/// The last of them.
#[derive(Debug, Default)]
pub struct TakenUp {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    lists: VecDeque<One>,
    /// The sum of their sizes.
    bytes: usize,
}

#[derive(Debug)]
struct One {
    /// The record's id.
    record: String,
    at: Timestamp,
    lists: Arc<Lists>,
    size: usize,
}

impl TakenUp {
    /// Remembers the lists of a record, and forgets those that are older than `retention_ms`.
    pub fn remember(&self, record: &str, lists: Lists, at: Timestamp, retention_ms: u64) {
        let size = lists.size();
        let mut kept = self.kept();
        kept.retain(|one| one.record != record && at.0.saturating_sub(one.at.0) <= retention_ms);
        kept.bytes += size;
        kept.lists.push_back(One { record: record.to_owned(), at, lists: Arc::new(lists), size });
        while kept.lists.len() > KEPT || kept.bytes > BYTES {
            let Some(oldest) = kept.lists.pop_front() else { return };
            kept.bytes -= oldest.size;
        }
    }

    /// Those of a record.
    pub fn of(&self, record: &str) -> Option<Arc<Lists>> {
        let kept = self.kept();
        kept.lists.iter().rev().find(|one| one.record == record).map(|one| Arc::clone(&one.lists))
    }

    /// Forgets what was said in a run.
    pub fn forget(&self, run: &str) {
        self.kept().retain(|one| one.record.rsplit_once('-').is_none_or(|(own, _)| own != run));
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // A sum that went wrong under a poisoned lock costs a few lists.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn retain(&mut self, stays: impl Fn(&One) -> bool) {
        self.lists.retain(stays);
        self.bytes = self.lists.iter().map(|one| one.size).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::lists::Line;

    fn lists(lines: usize) -> Lists {
        Lists { lines: vec![Line::Brief { bytes: 1 }; lines] }
    }

    #[test]
    fn the_newest_are_kept_in_bounds_of_number_bytes_and_age() {
        let kept = TakenUp::default();
        for n in 0..KEPT as u64 + 3 {
            kept.remember(&format!("run{n}-1"), lists(1), Timestamp(n), u64::MAX);
        }
        assert!(kept.of("run2-1").is_none() && kept.of("run3-1").is_some());
        kept.remember("late-1", lists(1), Timestamp(10_000), 1_000);
        assert_eq!(kept.kept().lists.len(), 1);
        for n in 0..40 {
            kept.remember(&format!("large-{n}"), lists(10_000), Timestamp(10_000), 1_000);
        }
        assert!(kept.kept().bytes <= BYTES && kept.of("late-1").is_none());
    }

    #[test]
    fn a_run_that_is_removed_is_forgotten() {
        let kept = TakenUp::default();
        kept.remember("a-1", lists(1), Timestamp(1), 9);
        kept.remember("a-b-1", lists(1), Timestamp(1), 9);
        kept.remember("a-1", lists(2), Timestamp(2), 9);
        assert_eq!(kept.of("a-1").map(|lists| lists.lines.len()), Some(2));
        kept.forget("a");
        assert!(kept.of("a-1").is_none() && kept.of("a-b-1").is_some());
    }
}
