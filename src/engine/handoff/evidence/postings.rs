//! All records of a run under the hashes of their names, newest first.

use super::mixed::Mixed;
use crate::engine::handoff::value::fold;

/// A record of one call's result, in the list of all records of one name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posting {
    hash: u64,
    pub(crate) call: u32,
    pub(crate) record: u32,
    /// One past the posting before it in the same slot; 0 for none.
    before: u32,
}

/// The postings of one index. As a chain through one list they take half the room that a map of lists takes.
#[derive(Debug, Default)]
pub(crate) struct Postings {
    all: Vec<Posting>,
    /// For each slot, one past its newest posting; 0 for none. `slots.len()` is 0 or a power of two.
    slots: Vec<u32>,
    seed: u64,
}

/// Room for so many names is made at once.
const FEW: usize = 64;

impl Postings {
    /// No postings yet. With a seed that those who write results do not know, names cannot be made to collide.
    pub(crate) fn seeded(seed: Mixed) -> Postings {
        Postings { all: Vec::with_capacity(FEW), slots: vec![0; FEW], seed: seed.text("") }
    }

    /// Adds a record under a name.
    pub(crate) fn add(&mut self, hash: u64, call: u32, record: u32) {
        if self.all.len() >= self.slots.len() {
            self.widen();
        }
        let Some(slot) = self.slot(hash) else { return };
        self.all.push(Posting { hash, call, record, before: self.slots[slot] });
        self.slots[slot] = self.all.len() as u32;
    }

    /// All records with a name, newest first.
    pub(crate) fn named(&self, hash: u64) -> impl Iterator<Item = Posting> + '_ {
        let at = |behind: u32| self.all.get((behind as usize).wrapping_sub(1)).copied();
        let newest = self.slot(hash).and_then(|slot| at(self.slots[slot]));
        std::iter::successors(newest, move |posting| at(posting.before)).filter(move |own| own.hash == hash)
    }

    fn slot(&self, hash: u64) -> Option<usize> {
        let last = self.slots.len().checked_sub(1)?;
        Some(fold::combine(self.seed, hash) as usize & last)
    }

    /// Makes room for twice as many; each slot's postings stay in their order.
    fn widen(&mut self) {
        let slots = FEW.max(self.slots.len() * 2);
        self.slots.clear();
        self.slots.resize(slots, 0);
        for index in 0..self.all.len() {
            let Some(slot) = self.slot(self.all[index].hash) else { return };
            self.all[index].before = self.slots[slot];
            self.slots[slot] = index as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_a_name_comes_first_however_many_there_are() {
        let mut postings = Postings::seeded(Mixed::default());
        for call in 0..1_000 {
            postings.add(u64::from(call % 300), call, 7);
        }
        let calls: Vec<u32> = postings.named(42).map(|posting| posting.call).collect();
        assert_eq!(calls, [942, 642, 342, 42]);
        assert_eq!(postings.named(300).count(), 0);
        assert_eq!(Postings::default().named(1).count(), 0);
    }
}
