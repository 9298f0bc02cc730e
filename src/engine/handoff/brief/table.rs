//! The facts of one call, written short: those of one record in one line, and
//! records of one kind with the same keys as a table that names the keys once.

use super::facts::{MAX_VALUE, flags, gathered, key_value, same_age};
use super::page::{Page, is_identifier};
use crate::engine::handoff::contract::By;
use crate::engine::handoff::verify::{Age, Fact, Outcome};

/// Facts under one key; several where the record has a list there.
type Cell<'f> = Vec<&'f Fact>;

/// What one line says.
pub(super) enum Block<'f> {
    /// `order 41182: total="68.40"; status="delivered"`
    Record(Vec<Cell<'f>>),
    /// `item (name, price): 9523: "Desk", 120; 8811: "Lamp", 14.5`
    Table(Vec<Vec<Cell<'f>>>),
}

impl<'f> Block<'f> {
    /// Its first fact; what age says of it, it says of all.
    pub(super) fn first(&self) -> &'f Fact {
        match self {
            Block::Record(cells) => cells[0][0],
            Block::Table(rows) => rows[0][0][0],
        }
    }
}

/// The facts of one call as lines.
pub(super) fn blocks<'f>(facts: &[&'f Fact]) -> Vec<Block<'f>> {
    let records = gathered(facts, |a, b| a.claim.of == b.claim.of && same_age(a, b));
    let records = records.iter().map(|record| gathered(record, same_cell));
    let mut blocks: Vec<Vec<Vec<Cell<'f>>>> = Vec::new();
    for record in records {
        match blocks.last_mut() {
            Some(block) if same_shape(&block[0], &record) => block.push(record),
            _ => blocks.push(vec![record]),
        }
    }
    let block =
        |mut rows: Vec<_>| if rows.len() == 1 { Block::Record(rows.remove(0)) } else { Block::Table(rows) };
    blocks.into_iter().map(block).collect()
}

/// Writes one line, without its end. Returns how many facts stand in it.
pub(super) fn write_block(page: &mut Page, block: &Block<'_>) -> usize {
    match block {
        Block::Record(cells) => {
            write_record(page, cells);
            cells.iter().map(Vec::len).sum()
        }
        Block::Table(rows) => {
            write_table(page, rows);
            rows.iter().flatten().map(Vec::len).sum()
        }
    }
}

/// Whether two facts of a record are entries of one list: under one key, with
/// nothing to be said of either.
fn same_cell(a: &Fact, b: &Fact) -> bool {
    a.claim.key.is_some() && a.claim.key == b.claim.key && is_plain(a) && is_plain(b)
}

fn is_plain(fact: &Fact) -> bool {
    (fact.outcome == Outcome::Verified || fact.claim.by == By::Derived)
        && fact.age != Age::Stale
        && fact.claim.confidence.is_none()
        && fact.claim.source_text.is_none()
        && !fact.customer_only
}

/// Whether two records can be rows of one table.
fn same_shape(a: &[Cell<'_>], b: &[Cell<'_>]) -> bool {
    let key = |cell: &Cell<'_>| cell[0].claim.key.clone();
    let plain =
        |record: &[Cell<'_>]| record.iter().all(|cell| is_plain(cell[0]) && cell[0].claim.key.is_some());
    let same_kind = match (kind_and_name(a), kind_and_name(b)) {
        (Some((a, _)), Some((b, _))) => a == b,
        _ => false,
    };
    same_kind && same_age(a[0][0], b[0][0]) && plain(a) && plain(b) && a.iter().map(key).eq(b.iter().map(key))
}

/// A record's kind and its own name: `item 9523` is 9523 of the kind `item`.
fn kind_and_name<'f>(record: &[Cell<'f>]) -> Option<(&'f str, &'f str)> {
    let of = record[0][0].claim.of.as_deref().filter(|of| is_identifier(of))?;
    of.rsplit_once(' ')
}

fn write_record(page: &mut Page, cells: &[Cell<'_>]) {
    if let Some(of) = &cells[0][0].claim.of {
        page.name(of).say(": ");
    }
    for (i, cell) in cells.iter().enumerate() {
        page.say(if i == 0 { "" } else { "; " });
        let fact = cell[0];
        match &fact.claim.key {
            Some(key) if cell.len() > 1 => {
                page.name(key).say("=");
                write_cell(page, cell);
            }
            _ => key_value(page, fact, if fact.age == Age::Stale { " was " } else { "=" }),
        }
        flags(page, fact);
    }
}

fn write_table(page: &mut Page, rows: &[Vec<Cell<'_>>]) {
    let kind = kind_and_name(&rows[0]).map_or("", |(kind, _)| kind);
    page.name(kind).say(" (");
    for (i, cell) in rows[0].iter().enumerate() {
        page.say(if i == 0 { "" } else { ", " }).name(cell[0].claim.key.as_deref().unwrap_or(""));
    }
    page.say("): ");
    for (i, row) in rows.iter().enumerate() {
        let name = kind_and_name(row).map_or("", |(_, name)| name);
        page.say(if i == 0 { "" } else { "; " }).name(name).say(": ");
        for (i, cell) in row.iter().enumerate() {
            page.say(if i == 0 { "" } else { ", " });
            write_cell(page, cell);
        }
    }
}

/// One value, or a list of them.
fn write_cell(page: &mut Page, cell: &[&Fact]) {
    if let [fact] = cell {
        page.value(&fact.claim.value, MAX_VALUE);
        return;
    }
    page.say("[");
    for (i, fact) in cell.iter().enumerate() {
        page.say(if i == 0 { "" } else { ", " }).value(&fact.claim.value, MAX_VALUE);
    }
    page.say("]");
}
