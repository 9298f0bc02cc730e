//! How long a store is waited for, and when it is not even asked.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tracing::{info, warn};

use super::StoreError;

/// Failures in a row after which the store is left alone: one slow answer is no outage.
const FAILURES: u32 = 3;
/// How long it is left alone before one call tries it again.
const REST: Duration = Duration::from_secs(1);

/// A bound on every call, and a rest after several that failed: while a store hangs, exchanges do not
/// each wait for it to the bound.
#[derive(Debug)]
pub(super) struct Patience {
    limit: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Failures since the last success.
    failures: u32,
    /// Nobody asks before this.
    resting: Option<Instant>,
}

impl Patience {
    pub(super) fn new(limit: Duration) -> Patience {
        Patience { limit, state: Mutex::default() }
    }

    /// The bound.
    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// What `call` gives, within the bound.
    pub(super) async fn wait<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        if !self.may_ask() {
            return Err(StoreError::Resting);
        }
        let result = timeout(self.limit, call).await.unwrap_or(Err(StoreError::TimedOut(self.limit)));
        match &result {
            Err(error @ (StoreError::TimedOut(_) | StoreError::Unreachable(_) | StoreError::Failed(_))) => {
                self.failed(error);
            }
            // Whatever it answered, it answered.
            Ok(_) | Err(StoreError::Conflict | StoreError::TooLarge { .. } | StoreError::Resting) => {
                self.answered();
            }
        }
        result
    }

    fn may_ask(&self) -> bool {
        let mut state = self.state();
        match state.resting {
            Some(until) if Instant::now() < until => false,
            // The one who asks now finds out; the others wait for its news.
            Some(_) => {
                state.resting = Some(Instant::now() + REST);
                true
            }
            None => true,
        }
    }

    fn failed(&self, error: &StoreError) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        if state.failures >= FAILURES {
            if state.resting.is_none() {
                warn!(%error, "the store fails; it is asked once a second until it answers");
            }
            state.resting = Some(Instant::now() + REST);
        }
    }

    fn answered(&self) {
        let mut state = self.state();
        state.failures = 0;
        if state.resting.take().is_some() {
            info!("the store answers again");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    const LIMIT: Duration = Duration::from_millis(250);

    async fn ask(patience: &Patience, answer: Result<(), StoreError>) -> Result<(), StoreError> {
        patience.wait(ready(answer)).await
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_longer_than_the_bound_nor_at_all_while_it_rests() {
        let patience = Patience::new(LIMIT);
        let began = Instant::now();
        for _ in 0..FAILURES {
            assert_eq!(patience.wait(pending::<Result<(), _>>()).await, Err(StoreError::TimedOut(LIMIT)));
        }
        assert_eq!(began.elapsed(), LIMIT * FAILURES);
        for _ in 0..1000 {
            assert_eq!(patience.wait(pending::<Result<(), _>>()).await, Err(StoreError::Resting));
        }
        assert_eq!(began.elapsed(), LIMIT * FAILURES);
    }

    #[tokio::test(start_paused = true)]
    async fn after_its_rest_one_call_finds_out_for_all() {
        let patience = Patience::new(LIMIT);
        let down = || Err(StoreError::Unreachable("gone".into()));
        for _ in 0..FAILURES {
            assert_eq!(ask(&patience, down()).await, down());
        }
        tokio::time::advance(REST).await;
        let (first, second) = tokio::join!(patience.wait(pending::<Result<(), _>>()), ask(&patience, Ok(())));
        assert_eq!((first, second), (Err(StoreError::TimedOut(LIMIT)), Err(StoreError::Resting)));
        tokio::time::advance(REST).await;
        assert_eq!(ask(&patience, Ok(())).await, Ok(()));
        assert_eq!(ask(&patience, Ok(())).await, Ok(()), "and it is asked as before");
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_now_and_then_is_no_outage_and_a_conflict_is_none_at_all() {
        let patience = Patience::new(LIMIT);
        for _ in 0..10 {
            for _ in 0..FAILURES - 1 {
                assert!(patience.wait(pending::<Result<(), _>>()).await.is_err());
            }
            assert_eq!(ask(&patience, Err(StoreError::Conflict)).await, Err(StoreError::Conflict));
        }
    }
}
