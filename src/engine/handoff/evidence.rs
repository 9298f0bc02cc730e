//! The evidence index: what the run's tools returned and its customer said,
//! indexed once, so that checking a fact costs what the fact costs.

use crate::engine::time::Timestamp;

/// One thing that happened in the run, in order.
#[derive(Clone, Copy, Debug)]
pub enum Happening<'a> {
    /// A tool call, with its result where it has one. Ids repeat: the place in the order tells calls apart.
    Call {
        /// The call's id as the client has it.
        id: &'a str,
        /// The tool's name.
        name: &'a str,
        /// The arguments, JSON text.
        arguments: &'a str,
        /// The result's text.
        result: Option<&'a str>,
        /// When the result was first seen, if that can be known.
        as_of: Option<Timestamp>,
    },
    /// A turn of the customer.
    Customer(&'a str),
    /// What an agent said to the customer.
    Agent(&'a str),
}

/// The index.
#[derive(Debug, Default)]
pub struct Evidence {}

impl Evidence {
    /// Indexes a run. `whole` says that Seam saw the run from its first request.
    pub fn index<'a>(_run: impl IntoIterator<Item = Happening<'a>>, _whole: bool) -> Evidence {
        Evidence {}
    }
}
