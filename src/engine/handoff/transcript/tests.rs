use std::borrow::Cow;

use proptest::prelude::*;

use super::*;
use crate::engine::view::{Call, Form as Content, Seal};

/// One item of a test conversation.
#[derive(Clone, Debug)]
enum Said {
    System(&'static str),
    /// The customer.
    U(&'static str),
    /// An agent's text.
    A(&'static str),
    /// An agent's text (may be empty) and calls: id and tool. A tool whose name begins with `to_` is a transfer.
    Calls(&'static str, Vec<(&'static str, &'static str)>),
    /// The same under a signature.
    Signed(&'static str, Vec<(&'static str, &'static str)>),
    Reasoning,
    /// A result: id and text.
    R(&'static str, &'static str),
    /// A trace of a transfer in prose, as a user's message.
    Trace,
}
use Said::{A, Calls, R, Reasoning, Signed, System, Trace, U};

fn travels(list: &List<'_>, policy: &Policy) -> Filtered {
    filter(list, &Groups::of(list.items, list.adjacent), policy)
}

fn item(said: &Said) -> (Item<'static>, Speaker) {
    let plain = |role, text: &'static str| Item {
        span: 0..0,
        role,
        name: None,
        text: Cow::Borrowed(text),
        form: Content::Text,
        content: None,
        calls: Vec::new(),
        answers: None,
        seal: Seal::Open,
        media: 0,
    };
    let calling = |text, calls: &[(&'static str, &'static str)], seal| Item {
        calls: calls
            .iter()
            .map(|&(id, name)| Call { id: id.into(), name: name.into(), arguments: "{}".into(), span: 0..0 })
            .collect(),
        seal,
        ..plain(Role::Assistant, text)
    };
    match said {
        System(text) => (plain(Role::System, text), Speaker::System),
        U(text) => (plain(Role::User, text), Speaker::Customer),
        A(text) => (plain(Role::Assistant, text), Speaker::Agent),
        Calls(text, calls) => (calling(text, calls, Seal::Open), Speaker::Agent),
        Signed(text, calls) => (calling(text, calls, Seal::Signed), Speaker::Agent),
        Reasoning => (Item { seal: Seal::Reasoning, ..plain(Role::Assistant, "") }, Speaker::Agent),
        R(id, text) => (Item { answers: Some((*id).into()), ..plain(Role::Tool, text) }, Speaker::Tool),
        Trace => (plain(Role::User, "moved on"), Speaker::Agent),
    }
}

struct Talk {
    items: Vec<Item<'static>>,
    speakers: Vec<Speaker>,
    transfers: Vec<(usize, usize)>,
    leaving: Vec<usize>,
}

impl Talk {
    fn of(said: &[Said]) -> Talk {
        let (items, speakers) = said.iter().map(item).unzip();
        let leaving = (0..said.len()).filter(|&at| matches!(said[at], Trace)).collect();
        Talk { items, speakers, transfers: Vec::new(), leaving }.with_transfers()
    }

    fn with_transfers(mut self) -> Talk {
        self.transfers = self
            .items
            .iter()
            .enumerate()
            .flat_map(|(at, item)| item.calls.iter().enumerate().map(move |(call, seen)| (at, call, seen)))
            .filter(|(_, _, seen)| seen.name.starts_with("to_"))
            .map(|(at, call, _)| (at, call))
            .collect();
        self
    }

    fn list(&self, boundary: usize, adjacent: bool) -> List<'_> {
        List {
            items: &self.items,
            boundary,
            speakers: &self.speakers,
            transfers: &self.transfers,
            leaving: &self.leaving,
            unreadable: &[],
            adjacent,
        }
    }

    fn filter(&self, policy: &Policy) -> Filtered {
        travels(&self.list(self.items.len(), true), policy)
    }

    /// What the list is after the filter.
    fn after(&self, filtered: &Filtered) -> Talk {
        let mut talk = Talk { items: vec![], speakers: vec![], transfers: vec![], leaving: vec![] };
        for (at, fate) in filtered.keep.iter().enumerate() {
            let mut item = self.items[at].clone();
            match fate {
                Keep::Drop => continue,
                Keep::Whole => {}
                Keep::WithoutCalls(gone) => {
                    let calls = item.calls.iter().enumerate().filter(|(call, _)| !gone.contains(call));
                    item.calls = calls.map(|(_, call)| call.clone()).collect();
                }
                Keep::Shortened(text) => item.text = Cow::Owned(text.clone()),
            }
            if self.leaving.contains(&at) {
                talk.leaving.push(talk.items.len());
            }
            talk.items.push(item);
            talk.speakers.push(self.speakers[at]);
        }
        // What the caller does with an open end: the customer's last turn behind it.
        if filtered.open_end {
            let (item, speaker) = item(&U("as I said"));
            talk.items.push(item);
            talk.speakers.push(speaker);
        }
        talk.with_transfers()
    }
}

fn all(form: Form) -> Policy {
    Policy { form, ..Policy::default() }
}

/// What becomes of each item, a letter each: kept, dropped, cut, shortened.
fn letters(keep: &[Keep]) -> String {
    keep.iter()
        .map(|keep| match keep {
            Keep::Whole => 'k',
            Keep::Drop => '.',
            Keep::WithoutCalls(_) => 'c',
            Keep::Shortened(_) => 's',
        })
        .collect()
}

fn check(policy: &Policy, said: &[Said], expected: &str) -> Filtered {
    let filtered = Talk::of(said).filter(policy);
    assert_eq!(letters(&filtered.keep), expected, "{said:?}\n{:?}", filtered.findings);
    filtered
}

fn codes(filtered: &Filtered) -> Vec<Code> {
    filtered.findings.iter().map(|finding| finding.code).collect()
}

#[test]
fn a_transfer_and_its_result_leave() {
    let said = [
        System("you are b"),
        U("my parcel is lost"),
        Calls("", vec![("c1", "track")]),
        R("c1", "lost"),
        Calls("", vec![("c2", "to_b")]),
        R("c2", "ok"),
    ];
    for form in [Form::Window, Form::Full] {
        assert_eq!(check(&all(form), &said, "kkkk..").findings, []);
    }
    check(&all(Form::Dialogue), &said, "kk....");
    let none = check(&all(Form::None), &said, "kk....");
    assert_eq!(none.left_out, LeftOut { items: 2, tokens: 2, shortened: 0, all: true });
}

#[test]
fn older_and_refused_transfers_leave_as_well() {
    // The refused one's result stands before the accepted one's.
    let said = [
        U("hi"),
        Calls("", vec![("c1", "to_b"), ("c2", "to_c")]),
        R("c2", "one is enough"),
        R("c1", "ok"),
        A("b speaks"),
        U("go on"),
        Calls("", vec![("c3", "to_a")]),
        R("c3", "ok"),
    ];
    check(&all(Form::Full), &said, "k...kk..");
}

#[test]
fn a_transfer_beside_another_call_is_cut_out() {
    let said = [U("hi"), Calls("", vec![("c1", "track"), ("c2", "to_b")]), R("c1", "lost"), R("c2", "ok")];
    let filtered = check(&all(Form::Full), &said, "kck.");
    assert_eq!(filtered.keep[1], Keep::WithoutCalls(vec![1]));
}

#[test]
fn a_sealed_group_stays_whole_or_goes_whole() {
    let both = || vec![("c1", "track"), ("c2", "to_b")];
    check(&all(Form::Full), &[U("hi"), Signed("", both()), R("c1", "lost"), R("c2", "ok")], "kkkk");
    check(&all(Form::Full), &[U("hi"), Signed("", both()), R("c2", "ok")], "k..");
    check(&all(Form::Full), &[U("hi"), Signed("", vec![("c2", "to_b")]), R("c2", "ok")], "k..");
    check(&all(Form::Dialogue), &[U("hi"), Signed("x", both()), R("c1", "lost"), R("c2", "ok")], "k...");
    let check = |said: &[Said], expected: &str| {
        let talk = Talk::of(said);
        let filtered = travels(&talk.list(talk.items.len(), false), &all(Form::Full));
        assert_eq!(letters(&filtered.keep), expected, "{said:?}");
    };
    let fc = |id, name| Calls("", vec![(id, name)]);
    check(&[U("hi"), Reasoning, fc("c1", "to_b"), R("c1", "ok")], "k...");
    check(&[U("hi"), Reasoning, fc("c1", "track"), fc("c2", "to_b"), R("c1", "a"), R("c2", "b")], "kkkkkk");
    check(
        &[U("hi"), Reasoning, fc("c1", "track"), R("c1", "a"), Reasoning, fc("c2", "to_b"), R("c2", "b")],
        "kkkk...",
    );
    check(&[U("hi"), Reasoning, fc("c1", "track"), A("so"), U("go")], "k...k");
    check(&[U("hi"), fc("c1", "track"), fc("c2", "to_b"), R("c1", "a"), R("c2", "b")], "kk.k.");
    check(&[U("hi"), Reasoning, Reasoning, A("done")], "k...");
    check(&[Reasoning, U("hi"), Reasoning, A("done"), U("go")], ".kkkk");
}

#[test]
fn what_is_broken_leaves_with_a_finding() {
    let track = || vec![("c1", "track")];
    let lost = check(&all(Form::Full), &[U("hi"), R("c9", "x"), Calls("", track())], "k..");
    assert_eq!(codes(&lost), [Code::ResultUnpaired, Code::CallUnanswered]);
    let unanswered = check(&all(Form::Full), &[U("hi"), Calls("", vec![("c1", "to_b")])], "k.");
    assert_eq!(codes(&unanswered), [Code::TransferResultMissing]);
    // A result that does not stand directly behind its call's message.
    let parted = check(&all(Form::Full), &[Calls("", track()), U("hi"), R("c1", "x")], ".k.");
    assert_eq!(codes(&parted), [Code::CallUnanswered, Code::ResultUnpaired]);
    // The transfer was answered, the call beside it was not; its message goes.
    check(
        &all(Form::Full),
        &[U("hi"), Calls("", vec![("c1", "track"), ("c2", "to_b")]), R("c2", "ok")],
        "k..",
    );
}

#[test]
fn ids_that_repeat_are_told_apart_by_position() {
    let said = [
        U("hi"),
        Calls("", vec![("x", "track")]),
        Calls("", vec![("x", "track")]),
        R("x", "second"),
        Calls("", vec![("x", "to_b")]),
        R("x", "ok"),
    ];
    check(&all(Form::Full), &said, "k.kk..");
    check(
        &all(Form::Full),
        &[U("hi"), Calls("", vec![("", "track"), ("", "track")]), R("", "1"), R("", "2")],
        "kkkk",
    );
}

#[test]
fn the_list_never_ends_in_words_the_receiver_did_not_write() {
    let check = |said: &[Said], expected: &str, parting: &[usize]| {
        assert_eq!(check(&all(Form::Full), said, expected).parting, parting, "{said:?}");
    };
    let transfer = || vec![("c1", "to_b")];
    check(&[U("hi"), Calls("moving you", transfer()), R("c1", "ok")], "k..", &[1]);
    check(&[U("hi"), Calls("", transfer()), R("c1", "ok"), A("bye")], "k...", &[3]);
    // Talk from before the transfer stays, and the end is open.
    let said = [U("hi"), A("let me see"), Calls("", transfer()), R("c1", "ok"), A("bye")];
    check(&said, "kk...", &[4]);
    assert!(Talk::of(&said).filter(&all(Form::Full)).open_end);
    assert!(!Talk::of(&said[..2]).filter(&all(Form::Full)).open_end);
    check(&[U("hi"), A("hello"), U("go"), Calls("", transfer()), R("c1", "ok")], "kkk..", &[]);
    check(
        &[U("hi"), Calls("both", vec![("c1", "to_b"), ("c2", "track")]), R("c1", "ok"), R("c2", "lost")],
        "kc.k",
        &[1],
    );
    check(&[A("welcome")], ".", &[0]);
}

#[test]
fn an_older_transfers_words_stay_in_their_place() {
    let said = [U("hi"), Calls("moving you", vec![("c1", "to_b")]), R("c1", "ok"), A("b here"), U("go on")];
    assert_eq!(check(&all(Form::Full), &said, "kc.kk").parting, [1, 3]);
}

#[test]
fn traces_in_prose_leave() {
    let gone = check(&all(Form::Full), &[System("s"), U("hi"), Trace], "kk.");
    assert!(!gone.customer_gone);
    assert!(check(&all(Form::Full), &[System("s"), Trace], "k.").customer_gone);
    assert!(check(&all(Form::Full), &[System("s"), A("all of it in one text")], "k.").customer_gone);
}

#[test]
fn standing_instructions_stay_where_they_are() {
    check(
        &all(Form::None),
        &[System("s"), U("hi"), System("t"), A("x"), U("go"), A("y"), U("now")],
        "kkk...k",
    );
}

/// Five turns of 400 tokens each after a greeting.
fn five_turns() -> Vec<Said> {
    let long: &'static str = Box::leak("x".repeat(1600).into_boxed_str());
    let mut said = vec![A("welcome")];
    for id in ["a", "b", "c", "d", "e"] {
        said.extend([U("next"), Calls("", vec![(id, "look")]), R(id, long)]);
    }
    said
}

#[test]
fn the_window_keeps_the_opening_turn_and_the_last_ones() {
    let window = |tokens, turns| Policy { tokens, turns, ..Policy::default() };
    check(&window(15_000, 2), &five_turns(), "kkkkkkkkkkkkkkkk");
    let cut = check(&window(1_900, 2), &five_turns(), "kkkk......kkkkkk");
    assert_eq!((cut.left_out.items, cut.left_out.tokens, cut.left_out.all), (6, 2 * (1600 + 10) / 4, false));
    // The oldest groups inside them go, no more than needed; opening and last customer turn stay.
    check(&window(900, 2), &five_turns(), ".k........kkkkkk");
    check(&window(500, 2), &five_turns(), ".k...........kkk");
    check(&window(100, 2), &five_turns(), ".k...........k..");
    check(&window(0, 0), &five_turns(), ".k...........k..");
}

#[test]
fn an_oversized_result_is_shortened_before_the_window_is_measured() {
    let long: &'static str = Box::leak("x".repeat(200_000).into_boxed_str());
    let said = [U("hi"), Calls("", vec![("a", "look")]), R("a", long), U("go")];
    let filtered = check(&Policy::default(), &said, "kksk");
    assert_eq!(filtered.left_out, LeftOut { shortened: 1, ..LeftOut::default() });
}

#[test]
fn what_lies_behind_the_boundary_is_not_touched() {
    let talk = Talk::of(&[
        U("hi"),
        Calls("", vec![("c1", "to_b")]),
        R("c1", "ok"),
        Calls("", vec![("c2", "look")]),
        R("c2", "x"),
        A("done"),
    ]);
    let filtered = travels(&talk.list(3, true), &all(Form::None));
    assert_eq!(letters(&filtered.keep), "k..kkk");
    // A group that the boundary would cut in two stays whole.
    let split = travels(&talk.list(4, true), &all(Form::None));
    assert_eq!(letters(&split.keep), "k..kkk");
    let beyond = travels(&talk.list(99, true), &all(Form::Full));
    assert_eq!(beyond.keep.len(), 6);
}

fn said() -> impl Strategy<Value = Said> {
    let ids = prop::sample::select(vec!["a", "b", "c", ""]);
    let names = prop::sample::select(vec!["look", "find", "to_b", "to_c"]);
    let calls = prop::collection::vec((ids.clone(), names), 1..4);
    let texts = prop::sample::select(vec!["", "word", "a longer text that says several things at once"]);
    prop_oneof![
        3 => texts.clone().prop_map(U),
        2 => texts.clone().prop_map(A),
        4 => (texts.clone(), calls.clone()).prop_map(|(text, calls)| Calls(text, calls)),
        1 => (texts.clone(), calls).prop_map(|(text, calls)| Signed(text, calls)),
        6 => (ids, texts).prop_map(|(id, text)| R(id, text)),
        1 => Just(Trace),
        1 => Just(System("s")),
        1 => Just(Reasoning),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    let forms = prop::sample::select(vec![Form::Window, Form::Full, Form::Dialogue, Form::None]);
    (forms, 0u64..80, 0usize..4).prop_map(|(form, tokens, turns)| Policy {
        form,
        tokens,
        turns,
        result_bytes: 1024,
    })
}

/// Whether every call has its result and every result its call, directly behind it where the dialect wants that.
fn is_paired(items: &[Item<'_>], adjacent: bool) -> bool {
    let groups = Groups::of(items, adjacent);
    groups.units.iter().all(|unit| !unit.orphan && unit.calls.iter().all(|call| call.answer.is_some()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_filtered_list_is_valid_at_every_budget(
        said in prop::collection::vec(said(), 0..24),
        policy in policy(),
        adjacent in any::<bool>(),
    ) {
        let talk = Talk::of(&said);
        let filtered = travels(&talk.list(talk.items.len(), adjacent), &policy);
        prop_assert_eq!(filtered.keep.len(), talk.items.len());
        let after = talk.after(&filtered);
        prop_assert!(is_paired(&after.items, adjacent), "{:?}", after.items);
        // Never an agent's words last, never without the customer where there was one.
        let ends_foreign = after.items.last().is_some_and(|last| last.role == Role::Assistant);
        prop_assert!(!ends_foreign, "{:?}", after.items);
        let customers = talk.speakers.iter().filter(|s| **s == Speaker::Customer).count();
        let left = after.speakers.iter().filter(|s| **s == Speaker::Customer).count();
        prop_assert!(left >= customers.min(2), "{left} of {customers}");
        // No reasoning item without what follows from it.
        let groups = Groups::of(&talk.items, adjacent);
        for unit in groups.units.iter().filter(|unit| unit.sealed) {
            let kept = unit.members.iter().filter(|&&at| filtered.keep[at] != Keep::Drop).count();
            prop_assert!(kept == 0 || kept == unit.members.len());
            let follows = |at: &usize| talk.items[*at].seal != Seal::Reasoning;
            prop_assert!(kept == 0 || unit.members.iter().any(follows));
        }
    }

    #[test]
    fn filtering_twice_is_filtering_once(
        said in prop::collection::vec(said(), 0..24),
        policy in policy(),
        adjacent in any::<bool>(),
    ) {
        let talk = Talk::of(&said);
        let filtered = travels(&talk.list(talk.items.len(), adjacent), &policy);
        // A turn that the caller puts back changes which turn is the last.
        prop_assume!(!filtered.open_end);
        let after = talk.after(&filtered);
        let again = travels(&after.list(after.items.len(), adjacent), &policy);
        prop_assert!(again.keep.iter().all(|keep| *keep == Keep::Whole), "{:?} {:?}", after.items, again.keep);
    }

    #[test]
    fn what_follows_the_boundary_changes_nothing_before_it(
        before in prop::collection::vec(said(), 0..16),
        behind in prop::collection::vec(said(), 0..8),
        policy in policy(),
    ) {
        let boundary = before.len();
        let alone = Talk::of(&before);
        let alone = travels(&alone.list(boundary, true), &policy);
        let followed = Talk::of(&[before, behind].concat());
        // A boundary that cuts a group in two is no boundary.
        let units = Groups::of(&followed.items, true).units;
        prop_assume!(units.iter().all(|unit| (unit.members[0] < boundary) == (unit.members[unit.members.len() - 1] < boundary)));
        let followed = travels(&followed.list(boundary, true), &policy);
        prop_assert_eq!(&alone.keep[..], &followed.keep[..boundary]);
        prop_assert!(followed.keep[boundary..].iter().all(|keep| *keep == Keep::Whole));
        prop_assert_eq!(alone.left_out, followed.left_out);
        prop_assert_eq!(alone.parting, followed.parting);
    }
}
