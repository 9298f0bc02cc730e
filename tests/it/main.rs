//! The project's own tests against the built product. One binary.

mod contract;
mod docs;
mod support;
