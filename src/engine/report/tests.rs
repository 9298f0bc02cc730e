use super::*;
use crate::engine::custody::agent::Fingerprint;
use crate::engine::custody::log::Log;
use crate::engine::custody::run::Known;
use crate::engine::decide::{Circumstances, SeenTransfer, transfer};
use crate::engine::handoff::compose::Asking;
use crate::engine::handoff::contract::Claim;
use crate::engine::handoff::verify::Fact;
use crate::engine::policy::Policy;
use crate::engine::read::transfer_mark;
use crate::engine::record::Tokens;
use crate::engine::signal::Signal;

/// A transfer of which nobody said anything.
fn made(run: &Run) -> Transfer {
    let policy = Policy::default();
    let stored = |_: &str| Log::default();
    let at =
        Circumstances { policy: &policy, now: Timestamp(0), fresh_id: &String::new, log: &stored, body: b"" };
    let seen = SeenTransfer {
        id: "c",
        name: "transfer_to_x",
        arguments: "{}",
        said: None,
        asking: Asking::Nobody,
        mark: transfer_mark("c", "transfer_to_x", "{}"),
        to: None,
        from_name: None,
        beside: "",
    };
    transfer(run, &Log::default(), seen, None, at)
}

/// A run of these transfers: sender, receiver, whether the receiver read a brief.
fn run(id: &str, transfers: &[(&str, &str, bool)]) -> Run {
    let mut run = Run::new(id.to_owned(), true, Timestamp(0));
    for (n, (from, to, briefed)) in transfers.iter().enumerate() {
        let hop = n as u32 + 1;
        let mut transfer = made(&run);
        transfer.shadow = !briefed;
        transfer.receiver = Some(0);
        transfer.taken_up_at = Some(Timestamp(2_000 * u64::from(hop)));
        let record = &mut transfer.record;
        (record.id, record.hop) = (format!("{id}-{hop}"), hop);
        (record.from_agent, record.to_agent) = (Some((*from).to_owned()), (*to).to_owned());
        (record.state, record.at) = (State::TakenUp, Timestamp(1_000 * u64::from(hop)));
        record.tokens = Tokens { before: 100, after: 60 };
        run.transfers.push(transfer);
    }
    run
}

fn fact(outcome: Outcome) -> Fact {
    Fact {
        claim: Claim::default(),
        outcome,
        why: String::new(),
        call: None,
        tool: None,
        as_of: None,
        age: Age::Ageless,
        contested_by: Vec::new(),
        customer_only: false,
    }
}

#[test]
fn transfers_are_counted_by_pair_arm_and_hops() {
    let runs = [
        run("a", &[("desk", "garage", true), ("garage", "till", true)]),
        run("b", &[("desk", "garage", false)]),
    ];
    let report = Report::of(&runs, &Wanted::default());
    assert_eq!((report.runs, report.all.transfers, report.all.taken_up()), (2, 3, 3));
    assert_eq!((report.all.tokens_before, report.all.tokens_after), (300, 180));
    let pairs: Vec<_> =
        report.pairs.iter().map(|pair| (&*pair.from, &*pair.to, pair.tally.transfers)).collect();
    assert_eq!(pairs, [("desk", "garage", 2), ("garage", "till", 1)]);
    assert_eq!((report.arms["rewrite"].transfers, report.arms["observe"].transfers), (2, 1));
    assert_eq!(report.hops, BTreeMap::from([(1, 1), (2, 1)]));
    assert_eq!(report.all.waited_ms, 1_000 + 2_000 + 1_000);
}

#[test]
fn a_sign_counts_once_a_transfer_and_worst_comes_first() {
    let mut one = run("a", &[("desk", "garage", true), ("garage", "till", true)]);
    one.signals = vec![
        Signal::new(Sign::ReAsked, 1, "order"),
        Signal::new(Sign::ReAsked, 1, "email"),
        Signal::new(Sign::GreetedAgain, 1, ""),
        Signal::new(Sign::Unanswered, 0, ""),
    ];
    one.transfers[1].record.facts =
        [Outcome::Verified, Outcome::Misattributed, Outcome::Unseen].map(fact).to_vec();
    let report = Report::of([&one], &Wanted { worst: 5, ..Wanted::default() });
    assert_eq!(report.all.rate(Sign::ReAsked), Rate { seen: 1, of: 2 });
    assert_eq!((report.all.established(), report.all.facts["misattributed"]), (1, 1));
    let worst: Vec<_> = report.worst.iter().map(|worst| (&*worst.id, worst.count)).collect();
    assert_eq!(worst, [("a-1", 2), ("a-2", 1)]);
}

#[test]
fn only_what_is_wanted_is_counted() {
    let runs = [run("a", &[("desk", "garage", true), ("garage", "till", true)])];
    let count = |wanted: &Wanted| Report::of(&runs, wanted).all.transfers;
    assert_eq!(count(&Wanted { since: Some(Timestamp(2_000)), ..Wanted::default() }), 1);
    assert_eq!(count(&Wanted { pair: Some(("desk".into(), "garage".into())), ..Wanted::default() }), 1);
    assert_eq!(count(&Wanted { pair: Some(("till".into(), "desk".into())), ..Wanted::default() }), 0);
}

#[test]
fn a_way_back_is_a_cycle() {
    let check = |transfers: &[(&str, &str, bool)], expected: &[&[&str]]| {
        let runs = [run("a", transfers)];
        let cycles = Report::of(&runs, &Wanted::default()).cycles;
        let cycles: Vec<Vec<&str>> =
            cycles.iter().map(|cycle| cycle.agents.iter().map(String::as_str).collect()).collect();
        assert_eq!(cycles, expected);
    };
    check(&[("a", "b", true), ("b", "c", true)], &[]);
    check(&[("a", "b", true), ("b", "a", true)], &[&["a", "b", "a"]]);
    check(&[("a", "b", true), ("b", "a", true), ("a", "b", true), ("b", "a", true)], &[&["a", "b", "a"]]);
    check(&[("a", "b", true), ("b", "c", true), ("c", "b", true)], &[&["b", "c", "b"]]);
}

#[test]
fn a_sender_that_was_named_later_is_no_stranger() {
    let mut run = run("a", &[("desk", "garage", true), ("garage", "desk", true)]);
    run.transfers[0].record.from_agent = None;
    let pairs = |run: &Run| -> Vec<String> {
        Report::of([run], &Wanted::default()).pairs.iter().map(|pair| pair.from.clone()).collect()
    };
    assert_eq!(pairs(&run), ["", "garage"]);
    let known = Known {
        print: Fingerprint::new("You are the desk.", std::iter::empty(), None),
        name: Some("desk".to_owned()),
        introduced: String::new(),
    };
    run.agents.push(known);
    run.transfers[0].sender = Some(0);
    assert_eq!(pairs(&run), ["desk", "garage"]);
    assert_eq!(Report::of([&run], &Wanted::default()).cycles[0].agents, ["desk", "garage", "desk"]);
}

#[test]
fn a_transfer_that_nobody_took_up_is_on_neither_side_of_a_canary() {
    let mut run = run("a", &[("desk", "garage", false), ("desk", "till", false)]);
    // Of two transfers in one reply, the client runs one.
    (run.transfers[1].receiver, run.transfers[1].shadow) = (None, false);
    run.transfers[1].record.state = State::Expired;
    let report = Report::of([&run], &Wanted::default());
    assert_eq!((report.all.transfers, report.arms["observe"].transfers), (2, 1));
    assert!(!report.arms.contains_key("rewrite"));
}
