//! `/ready` and `/metrics`.

use http::StatusCode;

use super::{Admin, Answer, METRICS, PLAIN, text};
use crate::config::OnFailure;
use crate::drain::Phase;

impl Admin {
    /// Not ready while starting and draining. A store that fails makes Seam degraded; only where that fails
    /// requests, it makes it not ready.
    pub(super) async fn ready(&self) -> Answer {
        if !self.drain.is_ready() {
            let starting = self.drain.phase() == Phase::Serving;
            let words = if starting { "starting\n" } else { "draining\n" };
            return text(StatusCode::SERVICE_UNAVAILABLE, PLAIN, words);
        }
        if !self.store_answers().await {
            return match self.on_failure {
                OnFailure::Open => text(
                    StatusCode::OK,
                    PLAIN,
                    "ready\ndegraded: the store fails, transfers pass as they are\n",
                ),
                OnFailure::Closed => text(
                    StatusCode::SERVICE_UNAVAILABLE,
                    PLAIN,
                    "degraded: the store fails, and so do requests\n",
                ),
            };
        }
        text(StatusCode::OK, PLAIN, "ready\n")
    }

    /// As the last call said; where that failed it is asked again: no traffic comes to tell that it is back.
    async fn store_answers(&self) -> bool {
        self.telemetry.metrics.store_degraded.value() == 0 || self.runs.answers().await
    }

    pub(super) fn metrics(&self) -> Answer {
        let metrics = &self.telemetry.metrics;
        metrics.ready.set(self.drain.is_ready().into());
        text(StatusCode::OK, METRICS, metrics.text())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::clock::Clock;
    use crate::drain::Drain;
    use crate::runs::Runs;
    use crate::store::{Store, StoreError};
    use crate::telemetry::Telemetry;
    use crate::telemetry::metrics::Call;

    fn admin(on_failure: OnFailure, drain: &Drain) -> Admin {
        let telemetry: Arc<Telemetry> = Arc::default();
        let hour = Duration::from_hours(1);
        let runs = Runs::new(Store::memory(1 << 20, Clock::System), hour, hour, Arc::clone(&telemetry));
        Admin {
            runs: Arc::new(runs),
            telemetry,
            drain: drain.clone(),
            on_failure,
            token: None,
            content: false,
        }
    }

    #[tokio::test]
    async fn ready_follows_the_process() {
        let drain = Drain::default();
        let admin = admin(OnFailure::Open, &drain);
        let latch = drain.latch();
        assert_eq!(admin.ready().await.status(), 503);
        drop(latch);
        assert_eq!(admin.ready().await.status(), 200);
        drain.ask();
        assert_eq!(admin.ready().await.status(), 503);
    }

    #[tokio::test]
    async fn a_store_that_is_back_is_found_by_asking() {
        let admin = admin(OnFailure::Closed, &Drain::default());
        admin.telemetry.stored(Call::Write, Some(&StoreError::Resting), Duration::ZERO);
        assert_eq!(admin.ready().await.status(), 200);
        assert_eq!(admin.telemetry.metrics.store_degraded.value(), 0);
    }
}
