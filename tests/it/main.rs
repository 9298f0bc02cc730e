//! The project's own tests against the built product. One binary.

#![allow(clippy::unwrap_used, reason = "what a test stands on fails the test")]

mod admin;
mod bad_input;
mod cancellation;
mod captures;
mod captures_responses;
mod config;
mod contract;
mod demo;
mod docs;
mod drain;
mod failure;
mod field_reports;
mod http2;
mod inject;
mod matrix;
mod pass_through;
mod prompt_cache;
mod responses;
mod responses_held;
mod signals;
mod silence;
mod stores;
mod support;
mod tidy;
mod traces;
mod verifier;
mod watched;
mod way_out;
