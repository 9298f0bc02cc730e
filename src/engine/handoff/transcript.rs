//! The transcript behind the brief: what of the list before the boundary
//! travels. It removes whole groups, so that the list stays valid for its
//! dialect, and adds nothing.
//!
//! What it decides depends on nothing behind the boundary except which results
//! stand there: the same prefix under the same policy is cut the same way on
//! every turn, so the prompt cache survives.

mod groups;
mod shorten;

use std::collections::HashSet;

use crate::engine::event::{Code, Finding};
use crate::engine::handoff::speaker::Speaker;
use crate::engine::record::LeftOut;
use crate::engine::view::{Call, Item, Keep, Role, Seal, Why};

use groups::Unit;

pub use groups::Groups;

/// How much of the transcript travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Which kind of filter.
    pub form: Form,
    /// What `Window` keeps whole, in estimated tokens (4 bytes of text each).
    pub tokens: u64,
    /// How many of the last turns `Window` keeps beside the opening one where there is more.
    pub turns: usize,
    /// The size in bytes beyond which one result is shortened.
    pub result_bytes: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Policy { form: Form::Window, tokens: 15_000, turns: 4, result_bytes: 64 * 1024 }
    }
}

/// The kinds of filter. The opening and the last customer turn survive each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Everything while it is small; else the opening turn and the last ones.
    Window,
    /// Everything.
    Full,
    /// What was said, without tool groups.
    Dialogue,
    /// Nothing else.
    None,
}

/// A list with what is known of its items.
#[derive(Clone, Copy, Debug)]
pub struct List<'a> {
    /// The client's list.
    pub items: &'a [Item<'a>],
    /// How many of them lie before the boundary; the others are not touched.
    pub boundary: usize,
    /// Who speaks in each item; as many as there are items.
    pub speakers: &'a [Speaker],
    /// The transfer calls, as indices of item and call.
    pub transfers: &'a [(usize, usize)],
    /// Items that leave whatever they are: traces of a transfer in prose, the sender's system text.
    pub leaving: &'a [usize],
    /// Reasoning items that the receiver's model could not read: another one made them.
    pub unreadable: &'a [usize],
    /// Whether the dialect wants results directly behind their call's message.
    pub adjacent: bool,
}

/// What travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filtered {
    /// What becomes of each item of the whole list, in order.
    pub keep: Vec<Keep>,
    /// Why an item does not travel as it was, in the same order.
    pub why: Vec<Option<Why>>,
    /// What the policy left out; the transfer's own traces do not count.
    pub left_out: LeftOut,
    /// What was wrong with the list.
    pub findings: Vec<Finding>,
    /// Items whose text belongs to the sender's parting words: beside and behind the last transfer call, and
    /// what the list may not end in.
    pub parting: Vec<usize>,
    /// No turn of the customer is left before the boundary: the opening and the last one have to be put back.
    pub customer_gone: bool,
    /// What stays before the boundary ends in an agent's text: where nothing follows, the last turn of the
    /// customer has to be put back behind it.
    pub open_end: bool,
}

/// Text of these items that a model reads, in estimated tokens. Images, audio and files do not count.
pub fn tokens(items: &[Item<'_>]) -> u64 {
    (items.iter().map(text_bytes).sum::<usize>() / BYTES_A_TOKEN) as u64
}

/// Filters what lies before the boundary; `groups` are those of the whole list.
pub fn filter(list: &List<'_>, groups: &Groups, policy: &Policy) -> Filtered {
    let mut filter = Filter::new(list, groups);
    filter.leave_what_never_travels();
    filter.note(Why::Trace);
    filter.leave_broken_and_transfers();
    filter.note(Why::Broken);
    filter.leave_unreadable();
    filter.note(Why::Unreadable);
    filter.shorten_results(policy.result_bytes);
    filter.note(Why::TooLong);
    filter.release_tail();
    filter.note(Why::Parting);
    match policy.form {
        Form::Full => {}
        Form::Window => filter.window(policy),
        Form::Dialogue => filter.dialogue(),
        Form::None => filter.only_customer(),
    }
    filter.note(Why::OverLimit);
    filter.release_tail();
    filter.note(Why::Parting);
    filter.finish()
}

/// Bytes of text that are called a token here, an estimate; limits need no tokenizer.
pub const BYTES_A_TOKEN: usize = 4;

/// The longest id or name that a finding repeats.
const PLACE_BYTES: usize = 80;

struct Filter<'a> {
    list: &'a List<'a>,
    boundary: usize,
    groups: &'a Groups,
    keep: Vec<Keep>,
    /// Why, where that is not whole.
    why: Vec<Option<Why>>,
    /// Which items leave whatever they are.
    leaving: Vec<bool>,
    /// The transfer calls.
    transfers: HashSet<(usize, usize)>,
    /// Customer turns before the boundary, in order.
    customers: Vec<usize>,
    left_out: LeftOut,
    findings: Vec<Finding>,
    /// Items whose text the list may not end in.
    tail: Vec<usize>,
    /// An agent's text stays at the end.
    open_end: bool,
}

impl<'a> Filter<'a> {
    fn new(list: &'a List<'a>, groups: &'a Groups) -> Self {
        let boundary = list.boundary.min(list.items.len());
        let mut leaving = vec![false; list.items.len()];
        for &at in list.leaving.iter().filter(|&&at| at < boundary) {
            leaving[at] = true;
        }
        let customers = (0..boundary)
            .filter(|&at| list.speakers.get(at) == Some(&Speaker::Customer) && !leaving[at])
            .collect();
        Filter {
            list,
            boundary,
            groups,
            keep: vec![Keep::Whole; list.items.len()],
            why: vec![None; list.items.len()],
            leaving,
            transfers: list.transfers.iter().copied().collect(),
            customers,
            left_out: LeftOut::default(),
            findings: Vec::new(),
            tail: Vec::new(),
            open_end: false,
        }
    }

    /// Says why of what has changed since this was called last. What belongs together with a transfer's call
    /// changes because of it.
    fn note(&mut self, why: Why) {
        for at in 0..self.boundary {
            if self.why[at].is_none() && self.keep[at] != Keep::Whole {
                let calls = &self.groups.units[self.groups.unit_of[at]].calls;
                let moves = calls.iter().any(|call| self.transfers.contains(&(call.item, call.call)));
                self.why[at] = Some(if why == Why::Broken && moves { Why::Transfer } else { why });
            }
        }
    }

    fn leave_what_never_travels(&mut self) {
        for at in 0..self.boundary {
            if self.leaving[at] && self.is_lone(at) {
                self.keep[at] = Keep::Drop;
            }
        }
    }

    /// Transfer calls, calls without a result, results without a call, and reasoning that nothing follows from
    /// leave the list.
    fn leave_broken_and_transfers(&mut self) {
        for index in 0..self.groups.units.len() {
            let unit = &self.groups.units[index];
            if !self.is_before(unit) {
                continue;
            }
            let at = unit.members[0];
            if unit.members.iter().all(|&at| self.list.items[at].seal == Seal::Reasoning) {
                let what = "a reasoning item without what follows from it; left out";
                self.findings.push(Finding::new(Code::ListBroken, format!("item {at}"), what));
                self.drop_unit(index);
            } else if unit.orphan {
                let id = self.list.items[at].answers.as_deref().unwrap_or_default();
                self.findings.push(finding(Code::ResultUnpaired, id, "answers no open call; left out"));
                self.keep[at] = Keep::Drop;
            } else if !unit.calls.is_empty() {
                self.cut_calls(index);
            }
        }
    }

    /// What follows from reasoning that cannot be read goes with it.
    fn leave_unreadable(&mut self) {
        for &at in self.list.unreadable {
            if let Some(&unit) = self.groups.unit_of.get(at) {
                self.leave_out(unit);
            }
        }
    }

    fn cut_calls(&mut self, index: usize) {
        let unit = &self.groups.units[index];
        let is_transfer = |item, call| self.transfers.contains(&(item, call));
        let mut unanswered = false;
        let mut cut = Vec::new();
        for call in &unit.calls {
            let transfer = is_transfer(call.item, call.call);
            if call.answer.is_none() {
                unanswered = true;
                let seen = &self.list.items[call.item].calls[call.call];
                let code = if transfer { Code::TransferResultMissing } else { Code::CallUnanswered };
                self.findings.push(finding(code, &seen.id, "has no result before the boundary; left out"));
            }
            if transfer || call.answer.is_none() {
                cut.push(*call);
            }
        }
        if cut.is_empty() {
            return;
        }
        if unit.sealed {
            // Nothing can be cut out of it. It stays whole, the transfer included, for the sake of the other
            // calls; where there are none, or the group could not be sent anyway, it goes whole.
            if unanswered || cut.len() == unit.calls.len() {
                self.drop_unit(index);
            }
            return;
        }
        for call in cut {
            if let Some(answer) = call.answer {
                self.keep[answer] = Keep::Drop;
            }
            self.cut_call(call.item, call.call);
        }
    }

    fn cut_call(&mut self, item: usize, call: usize) {
        let mut gone = match &self.keep[item] {
            Keep::WithoutCalls(gone) => gone.clone(),
            Keep::Drop => return,
            Keep::Whole | Keep::Shortened(_) => Vec::new(),
        };
        if !gone.contains(&call) {
            gone.push(call);
            gone.sort_unstable();
        }
        let seen = &self.list.items[item];
        let says_nothing = (seen.text.trim().is_empty() && seen.media == 0) || self.leaving[item];
        let nothing_left = gone.len() == seen.calls.len() && says_nothing;
        self.keep[item] = if nothing_left { Keep::Drop } else { Keep::WithoutCalls(gone) };
    }

    fn shorten_results(&mut self, limit: usize) {
        for at in 0..self.boundary {
            let item = &self.list.items[at];
            if item.answers.is_some()
                && self.keep[at] == Keep::Whole
                && let Some(short) = shorten::shorten(&item.text, limit)
            {
                self.keep[at] = Keep::Shortened(short);
            }
        }
    }

    /// The list before the boundary does not end in what the sender said beside its transfer or behind it: the
    /// receiver did not write it, and some servers would go on writing. It is for the brief. Talk from before
    /// the transfer stays, and somebody has to speak behind it.
    fn release_tail(&mut self) {
        self.open_end = false;
        for at in (0..self.boundary).rev() {
            if self.keep[at] == Keep::Drop {
                continue;
            }
            let item = &self.list.items[at];
            let unit = self.groups.unit_of[at];
            if item.role != Role::Assistant
                || self.keeps_calls(at)
                || !self.is_before(&self.groups.units[unit])
            {
                return;
            }
            if self.is_earlier_talk(at) {
                self.open_end = true;
                return;
            }
            for &member in &self.groups.units[unit].members {
                if self.keep[member] != Keep::Drop {
                    self.keep[member] = Keep::Drop;
                    self.tail.push(member);
                }
            }
        }
    }

    /// Whether an agent's text is talk from before the transfer and not a word beside it: a message of its
    /// own ahead of the transfer's. Where every item is one, a reply's text stands so too.
    fn is_earlier_talk(&self, at: usize) -> bool {
        let wrapped = self.list.speakers.get(at) == Some(&Speaker::Wrapper);
        let moved =
            self.list.transfers.iter().map(|&(item, _)| item).filter(|&item| item < self.boundary).max();
        wrapped || (self.list.adjacent && moved.is_some_and(|moved| at < moved))
    }

    fn window(&mut self, policy: &Policy) {
        let budget = usize::try_from(policy.tokens).unwrap_or(usize::MAX).saturating_mul(BYTES_A_TOKEN);
        let mut total: usize = (0..self.boundary).map(|at| self.kept_bytes(at)).sum();
        if total <= budget {
            return;
        }
        let opening_ends = self.customers.get(1).copied().unwrap_or(self.boundary);
        let last_begin = match self.customers.len().checked_sub(policy.turns) {
            Some(first) => self.customers.get(first).copied().unwrap_or(self.boundary),
            None => 0,
        };
        let travels = |at: usize| at < opening_ends || at >= last_begin;
        // What lies between goes first; what lies inside goes oldest first, and no more than needed.
        let (inside, between): (Vec<usize>, Vec<usize>) =
            (0..self.groups.units.len()).partition(|&unit| travels(self.groups.units[unit].members[0]));
        for unit in between {
            total -= self.leave_out(unit);
        }
        for unit in inside {
            if total <= budget {
                return;
            }
            total -= self.leave_out(unit);
        }
    }

    fn dialogue(&mut self) {
        for index in 0..self.groups.units.len() {
            let unit = &self.groups.units[index];
            if unit.calls.is_empty() {
                continue;
            }
            if unit.sealed || !self.is_before(unit) {
                self.leave_out(index);
                continue;
            }
            for call in unit.calls.clone() {
                if let Some(answer) = call.answer {
                    self.leave_out_item(answer);
                }
                if self.keep[call.item] == Keep::Drop {
                    continue;
                }
                let before = self.kept_bytes(call.item);
                self.cut_call(call.item, call.call);
                self.left_out.tokens += (before - self.kept_bytes(call.item)) as u64;
                self.left_out.items += u32::from(self.keep[call.item] == Keep::Drop);
            }
        }
    }

    fn only_customer(&mut self) {
        for unit in 0..self.groups.units.len() {
            self.leave_out(unit);
        }
    }

    /// Leaves a unit out because the policy says so. Returns the bytes of text that went; none where it has to stay.
    fn leave_out(&mut self, index: usize) -> usize {
        let unit = &self.groups.units[index];
        if !self.is_before(unit) || unit.members.iter().any(|&at| self.survives(at)) {
            return 0;
        }
        unit.members.clone().into_iter().map(|at| self.leave_out_item(at)).sum()
    }

    fn leave_out_item(&mut self, at: usize) -> usize {
        if self.keep[at] == Keep::Drop {
            return 0;
        }
        let bytes = self.kept_bytes(at);
        self.left_out.items += 1;
        self.left_out.tokens += bytes as u64;
        self.keep[at] = Keep::Drop;
        bytes
    }

    fn drop_unit(&mut self, index: usize) {
        for &at in &self.groups.units[index].members {
            self.keep[at] = Keep::Drop;
        }
    }

    /// Standing instructions, and the customer's first and last turn.
    fn survives(&self, at: usize) -> bool {
        self.list.items[at].role == Role::System
            || self.customers.first() == Some(&at)
            || self.customers.last() == Some(&at)
    }

    /// Whether all of it lies before the boundary; if not, it is not touched.
    fn is_before(&self, unit: &Unit) -> bool {
        unit.members.last().is_some_and(|&at| at < self.boundary)
    }

    fn is_lone(&self, at: usize) -> bool {
        self.groups.units[self.groups.unit_of[at]].members.len() == 1
    }

    fn keeps_calls(&self, at: usize) -> bool {
        let calls = self.list.items[at].calls.len();
        match &self.keep[at] {
            Keep::Whole | Keep::Shortened(_) => calls > 0,
            Keep::WithoutCalls(gone) => gone.len() < calls,
            Keep::Drop => false,
        }
    }

    /// Bytes of text that travel of this item; standing instructions are not the transcript's.
    fn kept_bytes(&self, at: usize) -> usize {
        let item = &self.list.items[at];
        match &self.keep[at] {
            _ if item.role == Role::System => 0,
            Keep::Whole => text_bytes(item),
            Keep::Shortened(text) => text.len(),
            Keep::WithoutCalls(gone) => {
                text_bytes(item) - gone.iter().map(|&call| call_bytes(&item.calls[call])).sum::<usize>()
            }
            Keep::Drop => 0,
        }
    }

    /// Texts beside and behind the last transfer call, and those that the list may not end in.
    fn parting(&self) -> Vec<usize> {
        let last =
            self.list.transfers.iter().map(|&(item, _)| item).filter(|&item| item < self.boundary).max();
        let first = |item: usize| self.groups.units[self.groups.unit_of[item]].members[0];
        let behind = last.map_or(self.boundary..self.boundary, |item| first(item)..self.boundary);
        let mut parting: Vec<usize> = behind
            .filter(|&at| self.list.items[at].role == Role::Assistant)
            .chain(self.tail.iter().copied())
            .filter(|&at| !self.list.items[at].text.trim().is_empty())
            .filter(|at| {
                self.list.speakers.get(*at) == Some(&Speaker::Agent) && !self.list.leaving.contains(at)
            })
            .collect();
        parting.sort_unstable();
        parting.dedup();
        parting
    }

    fn finish(mut self) -> Filtered {
        let stays = |at: usize| self.keep[at] != Keep::Drop;
        let customer_gone = !(0..self.boundary).any(|at| {
            let speaker = self.list.speakers.get(at);
            let asks = self.list.items[at].role == Role::User && speaker != Some(&Speaker::Agent);
            stays(at) && (asks || speaker == Some(&Speaker::Customer))
        });
        let others = (0..self.boundary).any(|at| stays(at) && !self.survives(at));
        let parting = self.parting();
        self.left_out.tokens /= BYTES_A_TOKEN as u64;
        self.left_out.all = self.left_out.items > 0 && !others;
        self.left_out.shortened =
            self.keep.iter().filter(|keep| matches!(keep, Keep::Shortened(_))).count() as u32;
        let open_end = self.open_end;
        Filtered {
            keep: self.keep,
            why: self.why,
            left_out: self.left_out,
            findings: self.findings,
            parting,
            customer_gone,
            open_end,
        }
    }
}

fn text_bytes(item: &Item<'_>) -> usize {
    item.text.len() + item.calls.iter().map(call_bytes).sum::<usize>()
}

fn call_bytes(call: &Call<'_>) -> usize {
    call.name.len() + call.arguments.len()
}

fn finding(code: Code, place: &str, what: &str) -> Finding {
    Finding::new(code, shorten::head(place, PLACE_BYTES), what)
}

#[cfg(test)]
mod tests;
