//! Why a store could not do what was asked.

use std::time::Duration;

/// Why a store could not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Somebody else wrote in between: read again and decide again.
    #[error("the value was written by somebody else in between")]
    Conflict,
    /// A value is larger than any store takes.
    #[error("a value of {bytes} bytes is more than a store takes")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The store did not answer in time.
    #[error("the store did not answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The store cannot be reached.
    #[error("the store cannot be reached: {0}")]
    Unreachable(String),
    /// The store failed lately and is left alone for a moment.
    #[error("the store has failed and is left alone for a moment")]
    Resting,
    /// The store answered, and cannot do it.
    #[error("the store failed: {0}")]
    Failed(String),
}

impl StoreError {
    /// The reason in logs and metrics; a closed list.
    pub fn reason(&self) -> &'static str {
        match self {
            StoreError::Conflict => "conflict",
            StoreError::TooLarge { .. } => "too_large",
            StoreError::TimedOut(_) => "timed_out",
            StoreError::Unreachable(_) => "unreachable",
            StoreError::Resting => "resting",
            StoreError::Failed(_) => "failed",
        }
    }
}
