//! How long nothing may come: a timeout between reads, not of the whole.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Measures how long somebody waits without anything coming.
///
/// The clock is read once when a wait begins and a timer is moved only when it
/// fires, so that a chunk costs no timer.
#[derive(Debug)]
pub(crate) struct Idle {
    limit: Duration,
    /// Set while somebody waits.
    since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Idle {
    pub(crate) fn new(limit: Duration) -> Idle {
        Idle { limit, since: None, timer: None }
    }

    /// The limit, for words.
    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Something came: the next wait begins anew.
    pub(crate) fn stir(&mut self) {
        self.since = None;
    }

    /// Waits; ready once nothing came for the limit.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = *self.since.get_or_insert_with(Instant::now) + self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        while timer.as_mut().poll(cx).is_ready() {
            if timer.deadline() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::time::{advance, timeout};

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn only_a_whole_wait_counts() {
        let mut idle = Idle::new(LIMIT);
        for _ in 0..5 {
            let waited = timeout(Duration::from_secs(9), poll_fn(|cx| idle.poll(cx))).await;
            assert!(waited.is_err(), "no wait so far was as long as the limit");
            idle.stir();
        }
        // Time in which nobody waits for the peer is not the peer's.
        advance(Duration::from_mins(1)).await;
        let began = Instant::now();
        poll_fn(|cx| idle.poll(cx)).await;
        assert_eq!(began.elapsed(), LIMIT);
    }
}
