//! What the commands of the `seam` binary do, one file a command.

pub mod schema;
