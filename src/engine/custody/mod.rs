//! Custody: who the agents of a run are, which of them holds it, and what the
//! run remembers between requests.

pub mod agent;
pub mod log;
pub mod run;
