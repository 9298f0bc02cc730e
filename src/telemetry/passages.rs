//! Requests that passed as they came, lately: what `seam explain` says of a
//! request that made no record. Ids, counts and reasons, never content.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::Closed;
use super::reasons::Passed;
use crate::engine::time::Timestamp;

/// How many are remembered.
const KEPT: usize = 1_000;

/// One request that went up as it came.
#[derive(Clone, Debug, Serialize)]
pub struct Passage {
    /// `pass-` and its number in this process.
    pub id: String,
    /// When it came.
    pub at: Timestamp,
    /// Why it passed.
    pub reason: Passed,
    /// What the client called it (`x-request-id`), if that is a plain id.
    pub request: Option<String>,
    /// The run it belongs to, where one was found.
    pub run: Option<String>,
    /// How many transfer tools it offers.
    pub offers: usize,
    /// How many transfers stand in its list.
    pub transfers: usize,
    /// The ways by which a run was looked for.
    pub ways: Vec<&'static str>,
    /// The findings that were made, by name.
    pub findings: Vec<&'static str>,
}

/// The last of them.
#[derive(Debug, Default)]
pub struct Passages {
    kept: Mutex<VecDeque<Passage>>,
    number: AtomicU64,
}

impl Passages {
    /// Remembers one, and gives it its id.
    pub fn remember(&self, mut passage: Passage) {
        passage.id = format!("pass-{}", self.number.fetch_add(1, Ordering::Relaxed) + 1);
        tracing::debug!(id = passage.id, reason = passage.reason.name(), run = passage.run, "passed");
        let mut kept = self.kept();
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(passage);
    }

    /// The newest first.
    pub fn newest(&self, limit: usize) -> Vec<Passage> {
        self.kept().iter().rev().take(limit).cloned().collect()
    }

    /// The newest with this id, or of a client's request with this id.
    pub fn by_id(&self, id: &str) -> Option<Passage> {
        let is_meant = |passage: &&Passage| passage.id == id || passage.request.as_deref() == Some(id);
        self.kept().iter().rev().find(is_meant).cloned()
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Passage>> {
        // Nothing is left half done under the lock, so a poisoned one is as good.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Passage {
    /// One that came at `at` and passed for `reason`.
    pub fn new(at: Timestamp, reason: Passed) -> Passage {
        Passage {
            id: String::new(),
            at,
            reason,
            request: None,
            run: None,
            offers: 0,
            transfers: 0,
            ways: Vec::new(),
            findings: Vec::new(),
        }
    }
}

impl Serialize for Passed {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_found_by_either_id() {
        let passages = Passages::default();
        for n in 0..KEPT as u64 + 2 {
            let mut passage = Passage::new(Timestamp(n), Passed::NotReceiver);
            passage.request = Some(format!("req-{n}"));
            passages.remember(passage);
        }
        assert_eq!(passages.newest(KEPT * 2).len(), KEPT);
        assert_eq!(passages.newest(1)[0].at, Timestamp(KEPT as u64 + 1));
        assert!(passages.by_id("req-1").is_none() && passages.by_id("pass-2").is_none());
        assert_eq!(passages.by_id("pass-3").map(|p| p.at), Some(Timestamp(2)));
        assert_eq!(passages.by_id("req-2").map(|p| p.id), Some("pass-3".into()));
    }
}
