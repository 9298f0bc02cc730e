//! What the operator chose, as far as the engine needs it.

use std::sync::Arc;

use super::custody::budget::Allowance;
use super::custody::judge::Limits;
use super::handoff::contract::Fields;
use super::handoff::detect::Naming;
use super::handoff::freshness::Freshness;
use super::handoff::transcript;
use super::profile::{Models, Profile};

/// How much is asked of a contract; each includes the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contract {
    /// What clients declare and Seam owns; no declared handoff, no rewrite.
    Read,
    /// Topped up, or made whole, by rules.
    #[default]
    Derive,
    /// The sender is asked.
    Inject,
}

/// What refuses; everything else is a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one name of SEAM_ENFORCE, chosen by itself")]
pub struct Enforce {
    /// A handoff that is empty, filler, or not of the contract's form.
    pub contract: bool,
    /// A fact that fails verification.
    pub facts: bool,
    /// A transfer to the sender itself, to nobody on offer, beside another one, over a limit, or in a circle.
    pub hops: bool,
    /// A former holder's requests.
    pub custody: bool,
    /// Requests of a run that has spent what it may.
    pub budget: bool,
}

impl Enforce {
    /// Whether anything keeps a transfer back.
    pub fn transfers(self) -> bool {
        self.contract || self.facts || self.hops
    }
}

/// Whether receivers' requests are changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Never a byte; the brief is built in the shadow and recorded.
    Observe,
    /// Receivers' requests are rebuilt.
    #[default]
    Rewrite,
}

/// What happens where Seam cannot do its part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The original bytes go on.
    #[default]
    Open,
    /// The exchange fails.
    Closed,
}

/// The engine's settings.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Whether receivers' requests are changed.
    pub mode: Mode,
    /// How much is asked of a contract.
    pub contract: Contract,
    /// What a sender is asked for.
    pub fields: Fields,
    /// How often a sender is corrected before its transfer is redirected or refused.
    pub corrections: u32,
    /// The name of a client's own tool whose call is the contract of the transfer behind it.
    pub submit_tool: String,
    /// Which tools are transfers.
    pub naming: Arc<Naming>,
    /// What travels behind the brief.
    pub transcript: transcript::Policy,
    /// What the server behind Seam wants of a list.
    pub profile: Profile,
    /// Models that refuse to be given hidden reasoning.
    pub unthinking: Models,
    /// How long facts stay good.
    pub freshness: Freshness,
    /// Milliseconds that a transfer waits for its receiver.
    pub pending_ms: u64,
    /// How many transfers a run may have.
    pub hops: Limits,
    /// What a run may spend.
    pub allowance: Allowance,
    /// The operator's own rules; what equals one binds.
    pub rules: Vec<String>,
    /// What refuses.
    pub enforce: Enforce,
}

impl Policy {
    /// Whether a tool of this name, behind any namespace, is the client's way to hand in a contract.
    pub fn is_submit(&self, tool: &str) -> bool {
        !self.submit_tool.is_empty()
            && tool.strip_suffix(self.submit_tool.as_str()).is_some_and(|head| {
                head.is_empty() || head.ends_with(['-', '.', '/', ':']) || head.ends_with("__")
            })
    }
}
