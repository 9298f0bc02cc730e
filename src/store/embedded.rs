//! The store in one file: what was acknowledged survives the process, however it ends.
//!
//! One thread writes. It takes all writes that wait, does them in one
//! transaction and answers them after its commit is on the disk, so that many
//! writers share one sync. Readers see the last commit and never wait for it.

mod open;
mod tables;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use redb::Database;
use tokio::sync::oneshot;
use tracing::warn;

pub use open::OpenError;
use tables::{Reader, Tables, failed};

use super::write::Write;
use super::{StoreError, Value};
use crate::clock::Clock;

/// Writes that may wait; more are refused, since they would be answered too late.
const WAITING: usize = 1024;
/// Writes that share a transaction.
const TOGETHER: usize = 128;
/// How often what is over is looked for while nobody writes.
const SWEEP: Duration = Duration::from_secs(30);

/// The store in one file.
#[derive(Debug)]
pub(super) struct Embedded {
    book: Arc<Book>,
    /// Both gone only while it is dropped.
    orders: Option<SyncSender<Order>>,
    writer: Option<JoinHandle<()>>,
}

/// The file, as its readers and its writer share it.
#[derive(Debug)]
struct Book {
    path: PathBuf,
    capacity: u64,
    clock: Clock,
    /// None while it could not be opened again after the disk failed.
    database: RwLock<Option<Arc<Database>>>,
    touched: AtomicBool,
}

/// A write that waits for its commit.
struct Order {
    write: Write<Bytes>,
    done: oneshot::Sender<Result<(), StoreError>>,
}

impl Embedded {
    /// Opens the file at `path`, or makes it. It holds about `capacity` bytes at most; over that what
    /// was written longest ago goes.
    pub(super) fn open(path: &Path, capacity: usize, clock: Clock) -> Result<Embedded, OpenError> {
        let database = open::open(path, capacity)?;
        let is_empty = open::prepare(&database, path)?;
        let book = Arc::new(Book {
            path: path.to_owned(),
            capacity: capacity as u64,
            clock,
            database: RwLock::new(Some(Arc::new(database))),
            touched: AtomicBool::new(!is_empty),
        });
        let (orders, waiting) = sync_channel(WAITING);
        let writer = std::thread::Builder::new().name("seam-store".to_owned()).spawn({
            let book = Arc::clone(&book);
            move || book.write_until_closed(&waiting)
        });
        let writer = writer.map_err(|error| OpenError::Io { path: path.to_owned(), source: error })?;
        Ok(Embedded { book, orders: Some(orders), writer: Some(writer) })
    }

    pub(super) async fn values(&self, keys: &[String]) -> Result<Vec<Option<Value>>, StoreError> {
        let keys = keys.to_owned();
        self.read(move |reader| keys.iter().map(|key| reader.value(key)).collect()).await
    }

    pub(super) async fn members(&self, keys: &[String]) -> Result<Vec<Vec<String>>, StoreError> {
        let keys = keys.to_owned();
        self.read(move |reader| keys.iter().map(|key| reader.members(key)).collect()).await
    }

    pub(super) async fn newest(&self, list: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        let list = list.to_owned();
        self.read(move |reader| reader.newest(&list, limit)).await
    }

    pub(super) async fn write(&self, write: Write) -> Result<(), StoreError> {
        let write = write.encoded()?;
        let (done, answer) = oneshot::channel();
        let gone = || StoreError::Unreachable("its thread has ended".to_owned());
        let orders = self.orders.as_ref().ok_or_else(gone)?;
        match orders.try_send(Order { write, done }) {
            Ok(()) => answer.await.unwrap_or_else(|_| Err(gone())),
            Err(TrySendError::Full(_)) => Err(StoreError::Failed("too many writes wait".to_owned())),
            Err(TrySendError::Disconnected(_)) => Err(gone()),
        }
    }

    pub(super) fn is_untouched(&self) -> bool {
        !self.book.touched.load(Ordering::Acquire)
    }

    /// Reading may wait for the disk, so it does not run on a thread that serves.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T, redb::Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        let book = Arc::clone(&self.book);
        let work = move || {
            let database = book.database().ok_or_else(disk_failed)?;
            let reader = Reader::new(&database, book.clock.now()).map_err(failed)?;
            read(&reader).map_err(failed)
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(StoreError::Failed(error.to_string())))
    }
}

impl Drop for Embedded {
    /// Waits for the writer, so that the file is closed well: the next start need not look it through.
    fn drop(&mut self) {
        self.orders = None;
        if let Some(writer) = self.writer.take() {
            // An error here is a writer that panicked; there is nothing left to close.
            let _ = writer.join();
        }
    }
}

impl Book {
    fn database(&self) -> Option<Arc<Database>> {
        self.database.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write_until_closed(&self, waiting: &Receiver<Order>) {
        loop {
            let first = match waiting.recv_timeout(SWEEP) {
                Ok(order) => Some(order),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let orders: Vec<Order> = first.into_iter().chain(waiting.try_iter()).take(TOGETHER).collect();
            let (writes, done): (Vec<_>, Vec<_>) =
                orders.into_iter().map(|order| (order.write, order.done)).unzip();
            let results = self.commit(writes).unwrap_or_else(|error| {
                warn!(%error, "the store's file cannot be written");
                done.iter().map(|_| Err(error.clone())).collect()
            });
            for (done, result) in done.into_iter().zip(results) {
                // Nobody waits any more for a write that took too long.
                let _ = done.send(result);
            }
        }
        *self.database.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Does the writes in one transaction, each of them whole or not at all.
    fn commit(&self, writes: Vec<Write<Bytes>>) -> Result<Vec<Result<(), StoreError>>, StoreError> {
        let database = self.database_or_reopened()?;
        let now = self.clock.now();
        if writes.is_empty() && !tables::has_expired(&database, now).map_err(failed)? {
            return Ok(Vec::new());
        }
        self.touched.store(true, Ordering::Release);
        let committed = tables::transact(&database, now, self.capacity, |tables: &mut Tables<'_>| {
            writes.into_iter().map(|write| tables.carry_out(write)).collect()
        });
        committed.map_err(|error| {
            // After a failed write redb serves nothing any more until the file is opened anew. Where that
            // fails too, the next write tries again.
            drop(database);
            *self.database.write().unwrap_or_else(PoisonError::into_inner) = None;
            let _ = self.database_or_reopened();
            failed(error)
        })
    }

    fn database_or_reopened(&self) -> Result<Arc<Database>, StoreError> {
        if let Some(database) = self.database() {
            return Ok(database);
        }
        let capacity = usize::try_from(self.capacity).unwrap_or(usize::MAX);
        let opened = open::open(&self.path, capacity)
            .and_then(|database| open::prepare(&database, &self.path).map(|_| Arc::new(database)));
        let database = opened.map_err(|error| StoreError::Unreachable(error.to_string()))?;
        *self.database.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&database));
        Ok(database)
    }
}

fn disk_failed() -> StoreError {
    StoreError::Unreachable("its file could not be written and is opened anew with the next write".to_owned())
}

#[cfg(test)]
mod tests;
