//! A request that can be read applies to itself, and any plan gives one that can be read.
//!
//! The input's first line says what becomes of each message, the second is the brief, the rest is the body.

#![no_main]

use libfuzzer_sys::fuzz_target;
use seam::engine::view::{Dialect, Keep, Plan, Role};
use seam::engine::wire;

fuzz_target!(|input: &str| {
    let mut lines = input.splitn(3, '\n');
    let (Some(choices), Some(brief), Some(body)) = (lines.next(), lines.next(), lines.next()) else { return };
    let choices = choices.as_bytes();
    let Ok(view) = wire::read(body.as_bytes(), Dialect::Chat) else { return };
    assert_eq!(wire::apply(body.as_bytes(), &view, &Plan::default()), body.as_bytes());

    let keep: Vec<Keep> = view
        .items
        .iter()
        .zip(choices.iter().chain(std::iter::repeat(&0)))
        .map(|(item, choice)| match choice % 4 {
            0 => Keep::Whole,
            1 => Keep::Drop,
            2 => Keep::Shortened("short".into()),
            _ => Keep::WithoutCalls(
                (0..item.calls.len()).filter(|call| choice >> (call % 6 + 2) & 1 == 1).collect(),
            ),
        })
        .collect();
    let carrier = (0..keep.len()).find(|&at| view.items[at].role == Role::System && keep[at] == Keep::Whole);
    let plan = Plan {
        brief: Some(brief.to_owned()),
        brief_after: carrier,
        keep: keep.clone(),
        put_back: vec![(choices.len(), br#"{"role":"user","content":"back"}"#.as_slice().into())],
        ..Plan::default()
    };
    let out = wire::apply(body.as_bytes(), &view, &plan);
    let again = wire::read(&out, Dialect::Chat).expect("what is rebuilt can be read");
    let kept = keep.iter().filter(|keep| **keep != Keep::Drop).count();
    assert_eq!(again.items.len(), kept + 1 + usize::from(carrier.is_none()));
    assert!(again.items.iter().any(|item| item.role == Role::System && item.text.ends_with(brief)));
});
