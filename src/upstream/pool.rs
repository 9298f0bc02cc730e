//! The connections to upstream that wait for the next request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;

use super::h2::{Place, Shared};
use super::line::Line;

/// Resting HTTP/1.1 connections beyond this many are closed.
const RESTING: usize = 512;

type Lines = Vec<Box<Line>>;

/// Resting HTTP/1.1 connections, and shared HTTP/2 ones.
#[derive(Debug)]
pub(super) struct Pool {
    /// The last used at the end, taken first: the others may grow old and go.
    lines: Mutex<Lines>,
    shared: Mutex<Vec<Shared>>,
    /// Held by the one who finds out which protocol upstream speaks.
    dial: tokio::sync::Mutex<()>,
    http1_only: AtomicBool,
    idle_timeout: Duration,
}

impl Pool {
    /// An empty pool. What rests in it longer than `idle_timeout` is closed.
    /// Needs a runtime.
    pub(super) fn new(idle_timeout: Duration) -> Arc<Pool> {
        let pool = Arc::new(Pool {
            lines: Mutex::default(),
            shared: Mutex::default(),
            dial: tokio::sync::Mutex::default(),
            http1_only: AtomicBool::new(false),
            idle_timeout,
        });
        tokio::spawn(sweep(Arc::downgrade(&pool), idle_timeout / 2));
        pool
    }

    /// An open HTTP/1.1 connection, if one rests here.
    pub(super) async fn take(&self) -> Option<Box<Line>> {
        loop {
            let mut line = self.lines().pop()?;
            if line.rested.elapsed() > self.idle_timeout {
                continue;
            }
            let is_open = std::future::poll_fn(|cx| Poll::Ready(line.is_open(cx))).await;
            if is_open {
                return Some(line);
            }
        }
    }

    /// Lets a connection rest.
    pub(super) fn put(&self, line: Box<Line>) {
        let mut lines = self.lines();
        if lines.len() < RESTING {
            lines.push(line);
        }
    }

    /// A place on an HTTP/2 connection with room, if there is one.
    pub(super) fn share(&self) -> Option<Place> {
        if self.http1_only.load(Ordering::Relaxed) {
            return None;
        }
        let mut shared = self.shared();
        shared.retain(|shared| !shared.is_spent(self.idle_timeout));
        shared.iter().find(|shared| shared.has_room()).map(Shared::enter)
    }

    /// Makes an HTTP/2 connection known to others.
    pub(super) fn offer(&self, shared: &Shared) {
        self.http1_only.store(false, Ordering::Relaxed);
        self.shared().push(shared.again());
    }

    /// Upstream chose HTTP/1.1.
    pub(super) fn speaks_http1(&self) {
        self.http1_only.store(true, Ordering::Relaxed);
    }

    /// While it is not known that upstream speaks only HTTP/1.1, one exchange
    /// dials (and holds what this gives back), and the others wait for what it
    /// learns, since one HTTP/2 connection serves them all. If it learns
    /// nothing, each of them dials by itself: they do not queue up.
    pub(super) async fn dialling(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        if self.http1_only.load(Ordering::Relaxed) {
            return None;
        }
        if let Ok(gate) = self.dial.try_lock() {
            return Some(gate);
        }
        drop(self.dial.lock().await);
        None
    }

    /// Closes all that rest: one was found closed, the others are likely to be.
    pub(super) fn clear(&self) {
        self.lines().clear();
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        // Nothing is left half done under the lock, so a poisoned one is as good.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shared(&self) -> MutexGuard<'_, Vec<Shared>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes what has rested too long, until the pool is dropped: nobody else looks at a resting connection.
async fn sweep(pool: Weak<Pool>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        let Some(pool) = pool.upgrade() else { return };
        pool.lines().retain(|line| line.rested.elapsed() <= pool.idle_timeout);
        pool.shared().retain(|shared| !shared.is_spent(pool.idle_timeout));
    }
}
