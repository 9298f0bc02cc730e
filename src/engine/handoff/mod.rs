//! The handoff: detected, read, filled, verified, rendered, and the list
//! rebuilt around it. Knows no field name of either dialect.

pub mod brief;
pub mod compose;
pub mod contract;
pub mod derive;
pub mod detect;
pub mod evidence;
pub mod freshness;
pub mod inject;
pub mod rebuild;
pub mod speaker;
pub mod transcript;
pub mod value;
pub mod verify;
