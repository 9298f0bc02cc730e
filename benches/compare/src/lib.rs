//! What the mock upstream and the load generator share.

pub mod clock;
pub mod conversation;
pub mod wire;
