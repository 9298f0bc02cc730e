//! Custody: who the agents of a run are, which of them holds it, and what the
//! run remembers between requests.

pub mod agent;
pub mod budget;
pub mod judge;
pub mod ledger;
pub mod log;
pub mod run;
