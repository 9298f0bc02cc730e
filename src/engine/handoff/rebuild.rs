//! The receiver's list, rebuilt: the brief in its system slot, the filtered
//! transcript behind it. A plan in the view's own terms; the wire makes bytes of it.

use bytes::Bytes;

use super::contract::Line;
use super::speaker::{Speaker, Voice};
use super::{compose, transcript};
use crate::engine::custody::agent::Fingerprint;
use crate::engine::custody::run::Run;
use crate::engine::event::{Code, Finding};
use crate::engine::policy::Policy;
use crate::engine::profile::Models;
use crate::engine::read::Reading;
use crate::engine::record::LeftOut;
use crate::engine::view::{Dialect, Hidden, Keep, Plan, Role, Why};

/// A rebuilt list that still lacks its brief.
#[derive(Debug)]
pub struct Rebuilt {
    plan: Plan,
    ends: Ends,
    /// Which customer turns the list lacks.
    pub lacks: Lacks,
    /// Items whose text belongs to the sender's parting words.
    parting: Vec<usize>,
    /// What the transcript lost.
    pub left_out: LeftOut,
    /// What was found on the way.
    pub findings: Vec<Finding>,
    /// Estimated tokens of the list as it came.
    pub tokens_before: u64,
    /// Estimated tokens of the list as it goes, without the brief.
    pub tokens_after: u64,
}

impl Rebuilt {
    /// The plan with its brief, and with customer turns put back as bytes.
    pub fn with(mut self, brief: String, put_back: &[String]) -> Plan {
        self.plan.brief = Some(brief);
        let at = self.ends.taken_up;
        self.plan.put_back =
            put_back.iter().map(|raw| (at, Bytes::copy_from_slice(raw.as_bytes()))).collect();
        self.plan
    }

    /// The parting words that the list holds.
    pub fn parting(&self, voices: &[Voice<'_>]) -> Vec<Line> {
        let spoken = self.parting.iter().filter(|&&at| voices[at].speaker == Speaker::Agent);
        spoken.filter_map(|&at| compose::parting(&voices[at].words)).collect()
    }
}

/// Which customer turns a filtered list lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacks {
    /// None.
    Nothing,
    /// The client left none at all: the opening and the last one are put back.
    All,
    /// The list would end in another agent's text: the last one is put back behind it.
    Last,
}

/// Where the receiver's part of a list begins.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Where the list ended when it was taken up; customer turns are put back there.
    pub taken_up: usize,
    /// Where the sender's part ends; a client may show again, behind the first, what it hid in it.
    pub filtered: usize,
}

/// That the upstream holds what stands behind the brief.
pub fn unfiltered() -> Finding {
    let what = "the upstream holds the history; nothing was filtered";
    Finding::new(Code::ServerStateUnfiltered, "previous", what)
}

/// What of a list is another agent's.
#[derive(Clone, Copy, Debug)]
pub struct Foreign<'a> {
    /// Whose system text does not travel.
    pub sender: Option<&'a Fingerprint>,
    /// Hidden reasoning of other models than the receiver's.
    pub thoughts: &'a [usize],
}

/// The hidden reasoning in a list that the model it goes to cannot read: another one made it, or it takes none.
pub fn foreign_thoughts(reading: &Reading<'_>, run: &Run, unthinking: &Models) -> Vec<usize> {
    let Some(asked) = reading.view.model.as_deref() else { return Vec::new() };
    let takes_none = unthinking.have(asked);
    let is_foreign =
        |hidden: &&Hidden<'_>| takes_none || run.thinker(&hidden.id).is_some_and(|made| made != asked);
    reading.view.hidden.iter().filter(is_foreign).map(|hidden| hidden.item).collect()
}

/// Plans a receiver's list.
pub fn rebuild(
    reading: &Reading<'_>,
    voices: &[Voice<'_>],
    ends: Ends,
    others: Foreign<'_>,
    policy: &Policy,
) -> Rebuilt {
    let delta = reading.view.is_delta();
    let boundary = if delta { 0 } else { ends.filtered };
    let items = &reading.view.items;
    let leading = reading.view.leading_system();
    let mut findings = Vec::new();
    let mut leaving: Vec<usize> = (leading..boundary)
        .filter(|&at| {
            matches!(voices[at].speaker, Speaker::Wrapper | Speaker::Agent)
                && items[at].role == Role::User
                && policy.naming.quoted_transfer(&items[at].text).is_some()
        })
        .collect();
    let foreign: Vec<usize> = match others.sender {
        Some(print) => (0..leading).filter(|&at| print.has_text(&items[at].text)).collect(),
        None => Vec::new(),
    };
    // What stands in the list of a request that goes on is kept by the upstream for good. The brief is not.
    let carriers = if delta { reading.view.head.items } else { leading };
    let own = (0..carriers).rev().find(|at| !foreign.contains(at));
    let brief_after = match (own, foreign.last()) {
        (Some(own), _) => {
            leaving.extend(&foreign);
            Some(own)
        }
        (None, Some(&only)) if !delta => {
            let what = "the only system text is the sender's; it stays";
            findings.push(Finding::new(Code::SystemTextOfSender, "messages", what));
            Some(only)
        }
        (None, _) => None,
    };
    let speakers: Vec<Speaker> = voices.iter().map(|voice| voice.speaker).collect();
    let transfers: Vec<(usize, usize)> =
        reading.transfers.iter().map(|seen| (seen.item, seen.call)).collect();
    let filtered = transcript::filter(
        &transcript::List {
            items,
            boundary,
            speakers: &speakers,
            transfers: &transfers,
            leaving: &leaving,
            unreadable: others.thoughts,
            adjacent: reading.view.dialect == Dialect::Chat,
        },
        reading.groups(),
        &policy.transcript,
    );
    let (mut keep, mut why) = (filtered.keep, filtered.why);
    if own.is_some() {
        for &at in &foreign {
            keep[at] = Keep::Drop;
            why[at] = Some(Why::SenderInstructions);
        }
    }
    findings.extend(filtered.findings);
    let kept: u64 = items.iter().zip(&keep).map(|(item, keep)| kept_tokens(item, keep)).sum();
    let behind = &items[boundary..];
    let lacks = if delta {
        findings.push(unfiltered());
        Lacks::Nothing
    } else if filtered.customer_gone && !behind.iter().any(|item| item.role == Role::User) {
        Lacks::All
    } else if filtered.open_end && behind.is_empty() {
        Lacks::Last
    } else {
        Lacks::Nothing
    };
    Rebuilt {
        plan: Plan { brief_after, keep, why, profile: policy.profile, ..Plan::default() },
        ends,
        lacks,
        parting: filtered.parting,
        left_out: filtered.left_out,
        findings,
        tokens_before: transcript::tokens(items),
        tokens_after: kept,
    }
}

fn kept_tokens(item: &crate::engine::view::Item<'_>, keep: &Keep) -> u64 {
    match keep {
        Keep::Drop => 0,
        Keep::Shortened(text) => text.len() as u64 / 4,
        Keep::Whole | Keep::WithoutCalls(_) => transcript::tokens(std::slice::from_ref(item)),
    }
}
