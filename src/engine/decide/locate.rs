//! Which run a request belongs to: the surest way first, and two that fit are
//! never guessed between.

use std::cell::LazyCell;

use super::whose::{Whose, hidden_boundary, whose};
use super::{COMMON, Found};
use crate::engine::custody::run::Run;
use crate::engine::read::{Nobody, Reading, Way};
use crate::engine::time::Timestamp;

pub(super) enum Located<'a> {
    Run(&'a str),
    Nowhere,
    Ambiguous,
}

/// Which run the request belongs to.
pub(super) fn locate<'a>(reading: &Reading<'_>, found: &'a Found, now: Timestamp) -> Located<'a> {
    let sets = |way: Way| found.sets.iter().filter(move |(other, _)| *other == way).map(|(_, set)| set);
    if let Some(id) = sets(Way::Header).find_map(|set| set.first()) {
        return Located::Run(id);
    }
    if let [only] = sets(Way::Resent).flatten().collect::<Vec<_>>()[..] {
        return Located::Run(only);
    }
    let turns = LazyCell::new(|| reading.turns(&reading.voices(&Nobody)));
    let fits = |way: Way, id: &String| {
        // Words alone are alike in many runs: what the customer said since tells them apart.
        way != Way::Text || found.runs.get(id).is_some_and(|run| run.continues(&turns))
    };
    for way in [Way::Response, Way::Call, Way::Lineage, Way::Text] {
        let mut candidates: Option<Vec<&String>> = None;
        for set in sets(way).filter(|set| set.len() < COMMON) {
            let fitting: Vec<&String> = set.iter().filter(|id| fits(way, id)).collect();
            match fitting[..] {
                [only] => return Located::Run(only),
                [] => {}
                _ => candidates = candidates.or(Some(fitting)),
            }
        }
        let Some(mut fitting) = candidates else { continue };
        let by_lineage = |id: &&String| sets(Way::Lineage).chain(sets(Way::Text)).any(|set| set.contains(id));
        if way == Way::Call {
            fitting.retain(|id| by_lineage(id));
        }
        let live = |id: &&String| found.runs.get(*id).is_some_and(|run| !run.transfers.is_empty());
        return match fitting[..] {
            [only] => Located::Run(only),
            // Runs that nothing was transferred in are alike so far: this one begins anew.
            _ if !fitting.iter().any(live) && way > Way::Call => Located::Nowhere,
            _ => Located::Ambiguous,
        };
    }
    let waiting = || sets(Way::Turns).chain(sets(Way::Words));
    let mut fitting: Vec<&String> = waiting()
        .flatten()
        .filter(|id| found.runs.get(*id).is_some_and(|run| waits_for(reading, run, now)))
        .collect();
    fitting.sort_unstable();
    fitting.dedup();
    // Where too many runs open alike, the one that is meant may not even have been loaded.
    let crowded = waiting().any(|set| set.len() >= COMMON);
    match fitting[..] {
        [] => Located::Nowhere,
        [only] if !crowded => Located::Run(only),
        _ => Located::Ambiguous,
    }
}

/// Whether a run waits for this very request, or has taken it up before.
fn waits_for(reading: &Reading<'_>, run: &Run, now: Timestamp) -> bool {
    match whose(reading, run, now) {
        Whose::TakesUp { .. } => true,
        Whose::Holder => run.held().is_some_and(|held| hidden_boundary(reading, held).is_some()),
        Whose::Unseen { .. } | Whose::Other | Whose::Unclear => false,
    }
}
