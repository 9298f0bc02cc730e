//! The wall around the engine: a panic ends what it happened in, nothing else.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// That something panicked. Not what it said: that may quote the conversation.
#[derive(Debug)]
pub(super) struct Panicked;

/// Runs `future`, and gives back a panic instead of passing it on.
pub(super) async fn caught<T>(future: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| {
        // Whoever calls this drops what the future borrowed when it panicked.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    })
    .await
}

/// Runs `work`, and gives back a panic instead of passing it on.
pub(super) fn caught_now<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Panicked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_an_error_at_any_poll() {
        let result = caught(async {
            tokio::task::yield_now().await;
            let list: Vec<u8> = Vec::new();
            list[std::hint::black_box(1)]
        })
        .await;
        assert!(result.is_err());
        assert_eq!(caught(async { 1 }).await.ok(), Some(1));
    }
}
