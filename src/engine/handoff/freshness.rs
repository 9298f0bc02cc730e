//! How long a kind of fact stays good: a table from globs on keys to seconds.

/// The table.
#[derive(Clone, Debug, Default)]
pub struct Freshness {}
