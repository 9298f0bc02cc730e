//! Seam: a transparent sidecar proxy that turns the transfer of a conversation
//! between agents into a verified contract.
//!
//! [`engine`] decides and is pure; everything else moves bytes for it.
//!
//! The path of a request: [`server`] accepts the connection → [`proxy`] tells
//! the exchange as a story (collect what is to be inspected, ask the engine,
//! forward, watch the reply) → [`upstream`] carries it to the endpoint and the
//! reply back. [`runs`] keeps what was learnt in a [`store`]. [`app`] wires them, [`drain`] ends them, [`config`] says how
//! they behave, [`telemetry`] is told what happened, [`admin`] answers for
//! health, [`cli`] is the command line around it all.

pub mod admin;
pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
mod dial;
pub mod drain;
pub mod engine;
pub mod proxy;
mod reload;
pub mod runs;
pub mod server;
pub mod store;
pub mod telemetry;
mod tls;
pub mod upstream;
