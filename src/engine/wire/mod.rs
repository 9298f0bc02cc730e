//! The wire: bytes to the neutral view and back, by splicing. Knows no handoffs.

pub mod json;
