//! What telemetry is told of an inspected request.

use std::sync::Arc;

use http::HeaderMap;

use super::Inner;
use crate::engine::custody::run::Run;
use crate::engine::decide::{Action, Decision, Found};
use crate::engine::lists::Lists;
use crate::engine::read::Reading;
use crate::engine::record::State;
use crate::engine::time::Timestamp;
use crate::telemetry::Passed;
use crate::telemetry::metrics::Arm;
use crate::telemetry::passages::Passage;

/// Bytes of a client's name for its request.
const REQUEST_ID: usize = 128;

/// Where the transfers of the runs that were found stood before a decision.
#[derive(Debug, Default)]
pub(super) struct Before(Vec<(String, u32, State)>);

impl Before {
    pub(super) fn of(found: &Found) -> Before {
        let states = |run: &Arc<Run>| -> Vec<(String, u32, State)> {
            run.transfers.iter().map(|t| (run.id.clone(), t.record.hop, t.record.state)).collect()
        };
        Before(found.runs.values().flat_map(states).collect())
    }

    fn state(&self, run: &str, hop: u32) -> Option<State> {
        self.0.iter().find(|(id, at, _)| id == run && *at == hop).map(|(_, _, state)| *state)
    }
}

/// What becomes of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// It is carried out.
    Kept,
    /// It is, and the agent is asked for something beside it.
    Asked,
    /// It is not: the request goes up as it came, for this reason.
    Shadow(Passed),
}

impl Inner {
    /// A request went up as it came, before anything was decided about it.
    pub(super) fn tell_undecided(&self, headers: &HeaderMap, reading: Option<&Reading<'_>>, reason: Passed) {
        let mut passage = Passage::new(self.clock.now(), reason);
        passage.request = request_id(headers);
        if let Some(reading) = reading {
            describe(&mut passage, reading, None);
        }
        self.telemetry.passages.remember(passage);
    }

    /// A request was decided.
    pub(super) fn tell_decision(
        &self,
        decision: &Decision,
        before: &Before,
        reading: &Reading<'_>,
        headers: &HeaderMap,
        course: Course,
        at: Timestamp,
    ) {
        let telemetry = &self.telemetry;
        let shadow = if let Course::Shadow(reason) = course { Some(reason) } else { None };
        decision.findings.iter().for_each(|finding| telemetry.finding(finding));
        telemetry.refusable(&decision.findings);
        let arm = if shadow.is_some() { Arm::Observe } else { Arm::Rewrite };
        if let Action::Rewrite(_) = decision.action {
            telemetry.rebuilt(arm);
        }
        if let Some(run) = decision.run.as_ref().filter(|_| decision.changed) {
            if let Some(hop) = decision.hop {
                telemetry.taken_up(run, hop, arm);
                self.remember_lists(decision, run, hop, reading, at);
            }
            let others =
                run.transfers.iter().map(|t| &t.record).filter(|record| Some(record.hop) != decision.hop);
            for record in others.filter(|record| before.state(&run.id, record.hop) != Some(record.state)) {
                telemetry.moved(record, arm);
            }
        }
        if course == Course::Asked {
            telemetry.asked();
        }
        let reason = match (&decision.action, shadow) {
            (Action::Forward(_), _) if course == Course::Asked => return,
            (Action::Forward(pass), _) => Passed::from(*pass),
            (Action::Refuse(finding), None) => return telemetry.refused(finding),
            (Action::Rewrite(_) | Action::Refuse(_), Some(reason)) => reason,
            (Action::Rewrite(_), None) => return,
        };
        telemetry.passed(reason);
        if matches!(decision.action, Action::Forward(_)) && reading.last_answered().is_some() {
            telemetry.unmatched(reason);
        }
        let mut passage = Passage::new(at, reason);
        passage.request = request_id(headers);
        passage.findings = decision.findings.iter().map(|finding| finding.code.name()).collect();
        describe(&mut passage, reading, decision.run.as_deref());
        telemetry.passages.remember(passage);
    }
}

impl Inner {
    /// The lists of a record that was taken up, for people to see.
    fn remember_lists(&self, decision: &Decision, run: &Run, hop: u32, reading: &Reading<'_>, at: Timestamp) {
        let record = run.transfers.iter().map(|held| &held.record).find(|record| record.hop == hop);
        if let (Some(record), Action::Rewrite(plan)) = (record, &decision.action) {
            let lists = Lists::of(&reading.view, plan, self.content);
            self.telemetry.lists.remember(&record.id, lists, at, self.retention_ms);
        }
    }
}

fn describe(passage: &mut Passage, reading: &Reading<'_>, run: Option<&Run>) {
    passage.offers = reading.offers.len();
    passage.transfers = reading.transfers.len();
    passage.ways = reading.lookups().iter().map(|lookup| lookup.way.name()).collect();
    passage.ways.dedup();
    passage.run = run.map(|run| run.id.clone());
}

/// What the client calls its request, if that is a plain id: it is shown to people.
fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get("x-request-id")?.to_str().ok()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (!id.is_empty() && id.len() <= REQUEST_ID && id.bytes().all(is_plain)).then(|| id.to_owned())
}
