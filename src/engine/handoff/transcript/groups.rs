//! What of a list belongs together: a call message with all its results, a
//! reasoning item with what follows from it.

use std::collections::HashMap;

use crate::engine::view::{Item, Role, Seal};

/// A list taken apart.
#[derive(Debug)]
pub struct Groups {
    /// The units, in the order of their first items.
    pub(super) units: Vec<Unit>,
    /// Which unit each item belongs to.
    pub(super) unit_of: Vec<usize>,
}

/// Items that are kept or dropped together.
#[derive(Debug, Default)]
pub(super) struct Unit {
    /// Its items, ascending, never empty.
    pub members: Vec<usize>,
    /// Its calls, in order.
    pub calls: Vec<Paired>,
    /// Whether a signature or hidden reasoning covers it: no part can be cut out.
    pub sealed: bool,
    /// Whether it is a result that answers no call.
    pub orphan: bool,
}

/// A call and what answers it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paired {
    pub item: usize,
    /// Its place in the item's calls.
    pub call: usize,
    /// The item that answers it.
    pub answer: Option<usize>,
}

impl Groups {
    /// Pairs by occurrence: a result answers the nearest earlier call with its id that has none yet, because
    /// ids repeat. `adjacent`: only a call of the message directly before.
    pub fn of(items: &[Item<'_>], adjacent: bool) -> Groups {
        let mut groups = Groups { units: Vec::new(), unit_of: Vec::with_capacity(items.len()) };
        // Calls without a result yet, by id; each as its unit and its place among the unit's calls.
        let mut open: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
        // The unit of the reasoning item that the next item may follow from.
        let mut run: Option<Run> = None;
        for (at, item) in items.iter().enumerate() {
            if let Some(id) = &item.answers {
                run = None;
                match open.get_mut(id.as_ref()).and_then(Vec::pop) {
                    Some((unit, call)) => {
                        groups.units[unit].calls[call].answer = Some(at);
                        groups.join(unit, at);
                    }
                    None => {
                        groups.open(at, Unit { orphan: true, ..Unit::default() });
                    }
                }
                continue;
            }
            if adjacent {
                open.clear();
            }
            let unit = match run.filter(|run| run.takes(item)) {
                Some(run) => groups.join(run.unit, at),
                None => groups.open(at, Unit::default()),
            };
            run = Run::after(run.filter(|run| run.unit == unit), unit, item);
            groups.units[unit].sealed |= item.seal != Seal::Open;
            for (call, seen) in item.calls.iter().enumerate() {
                open.entry(&seen.id).or_default().push((unit, groups.units[unit].calls.len()));
                groups.units[unit].calls.push(Paired { item: at, call, answer: None });
            }
        }
        groups
    }

    /// Behind the last item of what belongs together with the item at `at`.
    pub fn end(&self, at: usize) -> usize {
        let unit = self.unit_of.get(at).and_then(|&unit| self.units[unit].members.last());
        unit.map_or(at, |last| *last) + 1
    }

    fn open(&mut self, at: usize, unit: Unit) -> usize {
        self.unit_of.push(self.units.len());
        self.units.push(Unit { members: vec![at], ..unit });
        self.units.len() - 1
    }

    fn join(&mut self, unit: usize, at: usize) -> usize {
        self.unit_of.push(unit);
        self.units[unit].members.push(at);
        unit
    }
}

/// A reasoning item and the items that follow from it.
#[derive(Clone, Copy)]
struct Run {
    unit: usize,
    /// Nothing but reasoning so far: more of it still belongs to the same items.
    only_reasoning: bool,
}

impl Run {
    fn takes(self, item: &Item<'_>) -> bool {
        match item.seal {
            Seal::Reasoning => self.only_reasoning,
            Seal::Open | Seal::Signed => matches!(item.role, Role::Assistant | Role::Other),
        }
    }

    /// The run after `item` went into `unit`; `before` where it continued one.
    fn after(before: Option<Run>, unit: usize, item: &Item<'_>) -> Option<Run> {
        let reasoning = item.seal == Seal::Reasoning;
        (reasoning || before.is_some()).then_some(Run { unit, only_reasoning: reasoning })
    }
}
