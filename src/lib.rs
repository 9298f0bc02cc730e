//! Seam: a transparent sidecar proxy that turns the transfer of a conversation
//! between agents into a verified contract.
//!
//! [`engine`] decides and is pure; everything else moves bytes for it.

pub mod cli;
pub mod engine;
