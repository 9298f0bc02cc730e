//! The engine decides what to do with a request and what a reply says. It is
//! pure: no I/O, no clock, no environment, no logging.

pub mod compressed;
pub mod custody;
pub mod decide;
pub mod event;
pub mod fit;
pub mod handoff;
pub mod hash;
pub mod learn;
pub mod lists;
pub mod odd;
pub mod policy;
pub mod profile;
pub mod read;
pub mod record;
pub mod reply;
pub mod report;
pub mod ruling;
pub mod signal;
pub mod time;
pub mod view;
pub mod watch;
pub mod wire;
