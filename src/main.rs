//! The `seam` binary.

fn main() {}
