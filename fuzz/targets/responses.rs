//! A request of the Responses API that can be read applies to itself, and any plan gives one that can be read.
//!
//! The input's first line says what becomes of each item, the second is the brief, the rest is the body.

#![no_main]

use libfuzzer_sys::fuzz_target;
use seam::engine::view::{Dialect, Keep, Plan, Role};
use seam::engine::wire;

fuzz_target!(|input: &str| {
    let mut lines = input.splitn(3, '\n');
    let (Some(choices), Some(brief), Some(body)) = (lines.next(), lines.next(), lines.next()) else { return };
    let choices = choices.as_bytes();
    let Ok(view) = wire::read(body.as_bytes(), Dialect::Responses) else { return };
    assert_eq!(wire::apply(body.as_bytes(), &view, &Plan::default()), body.as_bytes());

    let keep: Vec<Keep> = view
        .items
        .iter()
        .zip(choices.iter().chain(std::iter::repeat(&0)))
        .map(|(item, choice)| match choice % 4 {
            1 => Keep::Drop,
            2 if item.answers.is_some() => Keep::Shortened("short".into()),
            3 if !item.calls.is_empty() => Keep::WithoutCalls(vec![0]),
            _ => Keep::Whole,
        })
        .collect();
    let carrier = (0..keep.len()).find(|&at| view.items[at].role == Role::System && keep[at] == Keep::Whole);
    let put_back = vec![(choices.len(), br#"{"role":"user","content":"back"}"#.as_slice().into())];
    let plan = Plan { brief: Some(brief.to_owned()), brief_after: carrier, keep, put_back, ..Plan::default() };
    let out = wire::apply(body.as_bytes(), &view, &plan);
    let again = wire::read(&out, Dialect::Responses).expect("what is rebuilt can be read");
    assert!(again.items.iter().any(|item| item.role == Role::System && item.text.ends_with(brief)));
});
