//! The graph of who hands to whom: agents in layers, ways with their counts, and those
//! on which runs came back to where they began marked.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::grouped;
use super::list::UNKNOWN;
use crate::engine::report::Report;
use crate::telemetry::shown::head;

/// Agents and ways that are drawn; the table below has more.
const AGENTS: usize = 16;
/// See [`AGENTS`].
const WAYS: usize = 32;

/// A node's size, and the pitch of columns and rows.
const WIDTH: f64 = 108.0;
const HEIGHT: f64 = 30.0;
const COLUMN: f64 = 162.0;
const ROW: f64 = 58.0;
/// Room around the nodes.
const EDGE: f64 = 12.0;
/// How far a way that passes other columns keeps away from them.
const BEND: f64 = 30.0;
/// A graph up to this width is made to fit; a wider one scrolls.
const FITS: f64 = 640.0;

/// Agents and ways, laid out.
struct Layout<'r> {
    agents: Vec<&'r str>,
    /// Indexes of agents, and how often.
    ways: Vec<(usize, usize, u64)>,
    /// Column and row of each agent.
    places: Vec<(usize, f64)>,
    /// What reaches what.
    reaches: Vec<Vec<bool>>,
    /// Which agents stand in one band.
    bands: Vec<usize>,
}

/// The graph of a report.
pub(super) fn graph(report: &Report) -> Markup {
    let layout = Layout::of(report);
    if layout.ways.is_empty() {
        return html! { p.empty { "Nobody has handed over yet." } };
    }
    let most = layout.ways.iter().map(|way| way.2).max().unwrap_or(1);
    let columns = layout.places.iter().map(|place| place.0).max().unwrap_or(0);
    let rows = layout.places.iter().map(|place| place.1).fold(0.0, f64::max);
    let back = layout.ways.iter().filter(|way| layout.goes_back(way)).count() as f64;
    let width = columns as f64 * COLUMN + WIDTH + 2.0 * EDGE;
    let height = rows * ROW + HEIGHT + 2.0 * EDGE + if back > 0.0 { 22.0 + back * 16.0 } else { 0.0 };
    let above = if layout.ways.iter().any(|way| layout.bends(way).is_some_and(|up| up)) { BEND } else { 0.0 };
    let below =
        if layout.ways.iter().any(|way| layout.bends(way).is_some_and(|up| !up)) { BEND } else { 0.0 };
    let (top, height) = (-above, height + above + below);
    let mut depth = vec![0.0; layout.agents.len()];
    html! {
        div.scroll tabindex="0" role="region" aria-label="Graph" {
            svg.graph.fits[width <= FITS] viewBox={ "0 " (top) " " (width) " " (height) } width=(width) height=(height) role="img"
                aria-label=(told(report)) {
                defs {
                    (arrow("arrow", "head")) (arrow("arrow-cycle", "head cycle"))
                }
                @for way in &layout.ways {
                    @let cycle = came_back(report, layout.agents[way.0], layout.agents[way.1]);
                    @let stroke = 1.0 + 2.5 * (way.2 as f64).ln_1p() / (most as f64).ln_1p();
                    @let (path, label) = layout.path(way, &mut depth[layout.bands[way.0]]);
                    g.way.cycle[cycle] {
                        title {
                            (agent(layout.agents[way.0])) " to " (agent(layout.agents[way.1])) ": " (grouped(way.2))
                            @if cycle { ", came back" }
                        }
                        path d=(path) stroke-width={ (format!("{stroke:.1}")) }
                            marker-end=(if cycle { "url(#arrow-cycle)" } else { "url(#arrow)" }) {}
                        text x=(format!("{:.0}", label.0)) y=(format!("{:.0}", label.1)) { (grouped(way.2)) }
                    }
                }
                @for (at, name) in layout.agents.iter().enumerate() {
                    @let (x, y) = layout.corner(at);
                    a.node href={ "/page?q=" (encoded(agent(name))) } {
                        title { (agent(name)) }
                        rect x=(x) y=(y) width=(WIDTH) height=(HEIGHT) rx="6" {}
                        text x=(x + WIDTH / 2.0) y=(y + HEIGHT / 2.0) { (short(agent(name))) }
                    }
                }
            }
        }
        @if !report.cycles.is_empty() {
            ul.cycles { @for cycle in report.cycles.iter().take(4) {
                li {
                    span.dot aria-hidden="true" {}
                    span { (cycle.agents.iter().map(|name| agent(name)).collect::<Vec<_>>().join(" → ")) }
                    span.muted { (grouped(cycle.runs)) @if cycle.runs == 1 { " run" } @else { " runs" } }
                }
            } }
        }
    }
}

/// Whether a run came back to where it began, and went this way in between.
fn came_back(report: &Report, from: &str, to: &str) -> bool {
    report.cycles.iter().any(|cycle| cycle.agents.windows(2).any(|way| way[0] == from && way[1] == to))
}

/// An agent's name as it is shown.
pub(super) fn agent(name: &str) -> &str {
    if name.is_empty() { UNKNOWN } else { head(name) }
}

impl<'r> Layout<'r> {
    fn of(report: &'r Report) -> Layout<'r> {
        let mut agents: Vec<&str> = Vec::new();
        let mut ways: Vec<(usize, usize, u64)> = Vec::new();
        for pair in report.pairs.iter().take(WAYS) {
            let mut at = |name: &'r str| {
                agents.iter().position(|known| *known == name).or_else(|| {
                    agents.push(name);
                    (agents.len() <= AGENTS).then(|| agents.len() - 1)
                })
            };
            if let (Some(from), Some(to)) = (at(&pair.from), at(&pair.to)) {
                ways.push((from, to, pair.tally.transfers));
            }
            agents.truncate(AGENTS);
        }
        let mut layout = Layout { places: Vec::new(), reaches: Vec::new(), bands: Vec::new(), agents, ways };
        layout.reaches = layout.reached();
        layout.bands = layout.bands();
        layout.places = layout.placed();
        layout
    }

    fn reached(&self) -> Vec<Vec<bool>> {
        let count = self.agents.len();
        let mut reaches = vec![vec![false; count]; count];
        for &(from, to, _) in &self.ways {
            reaches[from][to] = true;
        }
        for over in 0..count {
            for from in 0..count {
                for to in 0..count {
                    reaches[from][to] |= reaches[from][over] && reaches[over][to];
                }
            }
        }
        reaches
    }

    /// The column of each agent: behind all that hand to it, save on a cycle, where it is behind the first. It
    /// begins with those that nobody hands to, or else with those that hand over more often than they are handed to.
    fn columns(&self) -> Vec<usize> {
        let count = self.agents.len();
        let mut column: Vec<Option<usize>> = vec![None; count];
        let is_first = |at: usize| !self.ways.iter().any(|&(from, to, _)| to == at && from != at);
        let mut next: Vec<usize> = (0..count).filter(|&at| is_first(at)).collect();
        let mut depth = 0;
        loop {
            if next.is_empty() {
                let sum = |ways: &mut dyn Iterator<Item = &(usize, usize, u64)>| -> i128 {
                    ways.map(|way| i128::from(way.2)).sum()
                };
                let sends = |at: usize| {
                    sum(&mut self.ways.iter().filter(|way| way.0 == at))
                        - sum(&mut self.ways.iter().filter(|way| way.1 == at))
                };
                let waiting = (0..count).filter(|&at| column[at].is_none());
                let Some(first) = waiting.max_by_key(|&at| (sends(at), std::cmp::Reverse(at))) else { break };
                next = vec![first];
                depth = 0;
            }
            for &at in &next {
                column[at].get_or_insert(depth);
            }
            depth += 1;
            let behind = self.ways.iter().filter(|way| next.contains(&way.0) && column[way.1].is_none());
            let mut behind: Vec<usize> = behind.map(|way| way.1).collect();
            behind.dedup();
            next = behind;
        }
        let mut columns: Vec<usize> = column.into_iter().map(Option::unwrap_or_default).collect();
        // As often as the longest way is long.
        for _ in 0..count {
            for &(from, to, _) in self.ways.iter().filter(|way| !self.reaches[way.1][way.0]) {
                columns[to] = columns[to].max(columns[from] + 1);
            }
        }
        columns
    }

    /// The lowest agent that each is tied to by ways, in whichever direction: agents with the same stand in one
    /// band.
    fn bands(&self) -> Vec<usize> {
        let mut band: Vec<usize> = (0..self.agents.len()).collect();
        for _ in 0..self.agents.len() {
            for &(from, to, _) in &self.ways {
                let lowest = band[from].min(band[to]);
                (band[from], band[to]) = (lowest, lowest);
            }
        }
        band
    }

    /// Column and row of each agent. In a band the columns are centred; bands stand one below the other.
    fn placed(&self) -> Vec<(usize, f64)> {
        let (count, columns, bands) = (self.agents.len(), &self.columns()[..], &self.bands);
        let mut places = vec![(0, 0.0); count];
        let mut top = 0.0;
        for band in (0..count).filter(|&at| bands[at] == at) {
            let members: Vec<usize> = (0..count).filter(|&at| bands[at] == band).collect();
            let in_column = |column: usize| members.iter().copied().filter(move |&at| columns[at] == column);
            let tall = members.iter().map(|&at| in_column(columns[at]).count()).max().unwrap_or(0);
            for &at in &members {
                let above = in_column(columns[at]).filter(|&other| other < at).count();
                let free = tall - in_column(columns[at]).count();
                places[at] = (columns[at], top + above as f64 + free as f64 / 2.0);
            }
            // Ways back and ways past columns need room as well.
            let beside = self.ways.iter().filter(|way| bands[way.0] == band);
            let beside = beside.filter(|way| columns[way.1] != columns[way.0] + 1).count();
            top += tall as f64 + if beside > 0 { 0.8 } else { 0.0 };
        }
        places
    }

    fn corner(&self, agent: usize) -> (f64, f64) {
        let (column, row) = self.places[agent];
        (EDGE + column as f64 * COLUMN, EDGE + row * ROW)
    }

    /// Whether a way passes other columns, and if so, whether above what stands there.
    fn bends(&self, way: &(usize, usize, u64)) -> Option<bool> {
        let ((column1, row1), (column2, row2)) = (self.places[way.0], self.places[way.1]);
        (column2 > column1 + 1).then_some(row2 <= row1)
    }

    fn goes_back(&self, way: &(usize, usize, u64)) -> bool {
        self.places[way.1].0 <= self.places[way.0].0
    }

    /// A way's path, and where its count stands. Ways back run below the nodes, each a little deeper.
    fn path(&self, way: &(usize, usize, u64), depth: &mut f64) -> (String, (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (self.corner(way.0), self.corner(way.1));
        let mut path = String::new();
        if self.goes_back(way) {
            *depth += 1.0;
            let band = (0..self.agents.len()).filter(|&at| self.bands[at] == self.bands[way.0]);
            let floor = band.map(|at| self.corner(at).1 + HEIGHT).fold(0.0, f64::max);
            let low = floor + 6.0 + *depth * 16.0;
            let (from, to) = (x1 + WIDTH * 0.5 + 8.0, x2 + WIDTH * 0.5 - 8.0 * (*depth - 1.0).min(4.0));
            let (y1, y2) = (y1 + HEIGHT, y2 + HEIGHT + 5.0);
            let _ = write!(path, "M{from:.0} {y1:.0}C{from:.0} {low:.0} {to:.0} {low:.0} {to:.0} {y2:.0}");
            // The deepest point of the curve.
            return (path, (f64::midpoint(from, to), (y1 + y2) / 8.0 + low * 0.75));
        }
        if let Some(up) = self.bends(way) {
            let (from, to) = (x1 + WIDTH * 0.5 + 10.0, x2 + WIDTH * 0.5 - 10.0);
            let (side, end, beside) = if up {
                (0.0, -5.0, y1.min(y2) - BEND * 1.3)
            } else {
                (HEIGHT, HEIGHT + 5.0, y1.max(y2) + HEIGHT + BEND * 1.3)
            };
            let (y1, y2) = (y1 + side, y2 + end);
            let _ =
                write!(path, "M{from:.0} {y1:.0}C{from:.0} {beside:.0} {to:.0} {beside:.0} {to:.0} {y2:.0}");
            return (path, (f64::midpoint(from, to), (y1 + y2) / 8.0 + beside * 0.75));
        }
        let (from, to) = (x1 + WIDTH, x2 - 5.0);
        let (y1, y2) = (y1 + HEIGHT / 2.0, y2 + HEIGHT / 2.0);
        let half = f64::midpoint(from, to);
        let _ = write!(path, "M{from:.0} {y1:.0}C{half:.0} {y1:.0} {half:.0} {y2:.0} {to:.0} {y2:.0}");
        (path, (half, f64::midpoint(y1, y2)))
    }
}

fn arrow(id: &str, class: &str) -> Markup {
    html! {
        marker id=(id) viewBox="0 0 6 6" refX="5" refY="3" markerWidth="9" markerHeight="9"
            markerUnits="userSpaceOnUse" orient="auto" { path class=(class) d="M0 0 6 3 0 6z" {} }
    }
}

/// The graph in words.
fn told(report: &Report) -> String {
    let mut told = String::from("Who hands to whom. ");
    for pair in report.pairs.iter().take(8) {
        let (from, to) = (agent(&pair.from), agent(&pair.to));
        let _ = write!(told, "{from} to {to}: {}. ", pair.tally.transfers);
    }
    told
}

fn short(name: &str) -> String {
    const MOST: usize = 16;
    if name.chars().count() <= MOST {
        return name.to_owned();
    }
    name.chars().take(MOST - 1).chain(['…']).collect()
}

fn encoded(name: &str) -> String {
    percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::report::{Cycle, Pair, Tally};

    fn report(pairs: &[(&str, &str, u64)]) -> Report {
        let pair = |(from, to, transfers): &(&str, &str, u64)| Pair {
            from: (*from).to_owned(),
            to: (*to).to_owned(),
            tally: Tally { transfers: *transfers, ..Tally::default() },
        };
        Report { pairs: pairs.iter().map(pair).collect(), ..Report::default() }
    }

    #[test]
    fn agents_stand_behind_those_that_hand_to_them() {
        let check = |pairs: &[(&str, &str, u64)], expected: &[usize]| {
            let report = report(pairs);
            let columns: Vec<usize> = Layout::of(&report).places.iter().map(|place| place.0).collect();
            assert_eq!(columns, expected, "{pairs:?}");
        };
        check(&[("a", "b", 1)], &[0, 1]);
        check(&[("a", "b", 1), ("a", "c", 1), ("c", "d", 1)], &[0, 1, 1, 2]);
        check(&[("a", "b", 2), ("b", "a", 1)], &[0, 1]);
        check(&[("a", "a", 2)], &[0]);
        check(&[("a", "b", 3), ("a", "c", 2), ("c", "b", 1)], &[0, 2, 1]);
        check(&[("a", "b", 2), ("b", "a", 1), ("x", "y", 1)], &[0, 1, 0, 1]);
    }

    #[test]
    fn only_ways_on_which_a_run_came_back_are_marked() {
        let mut report = report(&[("a", "b", 2), ("b", "a", 1), ("a", "c", 1)]);
        assert!(!graph(&report).into_string().contains("way cycle"), "different runs went there and back");
        let agents = ["a", "b", "a"].map(str::to_owned).to_vec();
        report.cycles.push(Cycle { agents, runs: 1 });
        let drawn = graph(&report).into_string();
        assert_eq!(drawn.matches("class=\"way cycle\"").count(), 2, "{drawn}");
        assert_eq!(drawn.matches("class=\"way\"").count(), 1, "{drawn}");
    }

    #[test]
    fn a_name_that_is_markup_is_text() {
        let drawn = graph(&report(&[("<script>", "b\" onload=\"x", 1)])).into_string();
        assert!(!drawn.contains("<script>") && !drawn.contains("\" onload"), "{drawn}");
    }

    #[test]
    fn many_agents_are_bounded() {
        let names: Vec<String> = (0..200).map(|n| format!("agent {n}")).collect();
        let pairs: Vec<(&str, &str, u64)> = names.windows(2).map(|pair| (&*pair[0], &*pair[1], 1)).collect();
        let report = report(&pairs);
        let layout = Layout::of(&report);
        assert!(layout.agents.len() <= AGENTS && layout.ways.len() <= WAYS);
    }
}
