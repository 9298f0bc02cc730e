//! What the tests stand on.

pub(crate) mod binary;
pub(crate) mod client;
pub(crate) mod conversations;
pub(crate) mod fake;
pub(crate) mod garage;
pub(crate) mod h2;
pub(crate) mod prompt_cache;
pub(crate) mod redis;
pub(crate) mod responses_rules;
pub(crate) mod rules;
pub(crate) mod seam;
pub(crate) mod story;
pub(crate) mod upstream;

use std::time::Duration;

/// Waits for what should come at once: a test that hangs says where.
#[track_caller]
pub(crate) fn soon<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let place = std::panic::Location::caller();
    async move {
        let output = tokio::time::timeout(Duration::from_secs(20), future).await;
        output.unwrap_or_else(|_| panic!("what was awaited at {place} did not come"))
    }
}
