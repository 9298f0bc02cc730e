//! The kinds of metrics: numbers under labels whose values are closed lists, so
//! that how many series there are is known when Seam is built.

use std::fmt::Write as _;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use super::closed::Closed;

/// What a family of series is called, and what people are told about it.
#[derive(Debug)]
pub(super) struct Family {
    /// The name, with unit and `_total` as Prometheus has them.
    pub name: &'static str,
    /// The names of the labels.
    pub labels: Vec<&'static str>,
    /// What it counts, one sentence.
    pub about: &'static str,
}

/// A family that can be written out.
pub(super) trait Series {
    /// What it is.
    fn family(&self) -> &Family;
    /// `counter`, `gauge` or `histogram`.
    fn kind(&self) -> &'static str;
    /// The values of each label.
    fn values(&self) -> Vec<Vec<&'static str>>;
    /// Writes its series as Prometheus' text.
    fn write(&self, text: &mut String);
}

/// Label values for one series: a tuple of closed lists.
pub trait Labels: Copy {
    /// The values of each label.
    fn values() -> Vec<Vec<&'static str>>;
    /// Which series it is, among all combinations; the last label turns fastest.
    fn place(self) -> usize;
}

fn names<T: Closed>() -> Vec<&'static str> {
    T::ALL.iter().map(|value| value.name()).collect()
}

impl Labels for () {
    fn values() -> Vec<Vec<&'static str>> {
        Vec::new()
    }

    fn place(self) -> usize {
        0
    }
}

impl<A: Closed> Labels for (A,) {
    fn values() -> Vec<Vec<&'static str>> {
        vec![names::<A>()]
    }

    fn place(self) -> usize {
        self.0.index()
    }
}

impl<A: Closed, B: Closed> Labels for (A, B) {
    fn values() -> Vec<Vec<&'static str>> {
        vec![names::<A>(), names::<B>()]
    }

    fn place(self) -> usize {
        self.0.index() * B::ALL.len() + self.1.index()
    }
}

impl<A: Closed, B: Closed, C: Closed> Labels for (A, B, C) {
    fn values() -> Vec<Vec<&'static str>> {
        vec![names::<A>(), names::<B>(), names::<C>()]
    }

    fn place(self) -> usize {
        (self.0, self.1).place() * C::ALL.len() + self.2.index()
    }
}

/// How many series there are for `L`.
fn count<L: Labels>() -> usize {
    L::values().iter().map(Vec::len).product()
}

fn family<const N: usize>(name: &'static str, labels: [&'static str; N], about: &'static str) -> Family {
    Family { name, labels: labels.to_vec(), about }
}

/// The labels of every series in order, each as `a="x",b="y"`.
fn labelled(family: &Family, values: &[Vec<&'static str>]) -> Vec<String> {
    let mut all = vec![String::new()];
    for (label, values) in family.labels.iter().zip(values) {
        all = all
            .iter()
            .flat_map(|before| {
                let comma = if before.is_empty() { "" } else { "," };
                values.iter().map(move |value| format!("{before}{comma}{label}=\"{value}\""))
            })
            .collect();
    }
    all
}

fn line(text: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    // A string takes all that is written to it.
    let _ = match labels {
        "" => writeln!(text, "{name} {value}"),
        labels => writeln!(text, "{name}{{{labels}}} {value}"),
    };
}

/// Counts up.
#[derive(Debug)]
pub struct Counter<L> {
    family: Family,
    cells: Box<[AtomicU64]>,
    labels: PhantomData<fn(L)>,
}

impl<L: Labels> Counter<L> {
    pub(super) fn new<const N: usize>(
        name: &'static str,
        labels: [&'static str; N],
        about: &'static str,
    ) -> Self {
        let cells = (0..count::<L>()).map(|_| AtomicU64::new(0)).collect();
        Counter { family: family(name, labels, about), cells, labels: PhantomData }
    }

    /// Adds one.
    pub fn one(&self, labels: L) {
        self.add(labels, 1);
    }

    /// Adds `n`.
    pub fn add(&self, labels: L, n: u64) {
        if let Some(cell) = self.cells.get(labels.place()) {
            cell.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// What was counted since the start.
    pub fn value(&self, labels: L) -> u64 {
        self.cells.get(labels.place()).map_or(0, |cell| cell.load(Ordering::Relaxed))
    }
}

impl<L: Labels> Series for Counter<L> {
    fn family(&self) -> &Family {
        &self.family
    }

    fn kind(&self) -> &'static str {
        "counter"
    }

    fn values(&self) -> Vec<Vec<&'static str>> {
        L::values()
    }

    fn write(&self, text: &mut String) {
        for (labels, cell) in labelled(&self.family, &L::values()).iter().zip(&self.cells) {
            line(text, self.family.name, labels, cell.load(Ordering::Relaxed));
        }
    }
}

/// Stands where it was put.
#[derive(Debug)]
pub struct Gauge {
    family: Family,
    value: AtomicI64,
}

impl Gauge {
    pub(super) fn new(name: &'static str, about: &'static str) -> Self {
        Gauge { family: family(name, [], about), value: AtomicI64::new(0) }
    }

    /// Moves it by `n`.
    pub fn add(&self, n: i64) {
        self.value.fetch_add(n, Ordering::Relaxed);
    }

    /// Puts it at `value`.
    pub fn set(&self, value: i64) {
        self.value.store(value, Ordering::Relaxed);
    }

    /// Where it stands.
    pub fn value(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }
}

impl Series for Gauge {
    fn family(&self) -> &Family {
        &self.family
    }

    fn kind(&self) -> &'static str {
        "gauge"
    }

    fn values(&self) -> Vec<Vec<&'static str>> {
        Vec::new()
    }

    fn write(&self, text: &mut String) {
        line(text, self.family.name, "", self.value());
    }
}

/// How what is measured is bucketed.
#[derive(Debug)]
pub(super) struct Scale {
    /// Upper bounds, in the unit that is shown.
    bounds: &'static [f64],
    /// How many of what is counted make one of what is shown.
    per: f64,
}

const NANOS: f64 = 1e9;

/// From 10 µs, where Seam's own work lies, to 10 s.
pub(super) const SECONDS: Scale = Scale {
    bounds: &[
        1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.5, 1.0, 10.0,
    ],
    per: NANOS,
};

/// From 10 ms to 10 min, for what a model takes.
pub(super) const LONG_SECONDS: Scale = Scale {
    bounds: &[0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0],
    per: NANOS,
};

/// Bytes, in powers of four.
pub(super) const BYTES: Scale = Scale {
    bounds: &[64.0, 256.0, 1024.0, 4096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0, 4_194_304.0],
    per: 1.0,
};

/// Tokens of one handoff.
pub(super) const TOKENS: Scale = Scale {
    bounds: &[16.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 16_384.0, 65_536.0],
    per: 1.0,
};

/// Transfers of one run; 12 and 100 are the limits.
pub(super) const HOPS: Scale =
    Scale { bounds: &[1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 50.0, 100.0], per: 1.0 };

/// Measures, in buckets.
#[derive(Debug)]
pub struct Histogram<L> {
    family: Family,
    scale: Scale,
    cells: Box<[Buckets]>,
    labels: PhantomData<fn(L)>,
}

#[derive(Debug)]
struct Buckets {
    /// One more than there are bounds; not cumulative.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl<L: Labels> Histogram<L> {
    pub(super) fn new<const N: usize>(
        name: &'static str,
        labels: [&'static str; N],
        scale: Scale,
        about: &'static str,
    ) -> Self {
        let buckets = || (0..=scale.bounds.len()).map(|_| AtomicU64::new(0)).collect();
        let cells =
            (0..count::<L>()).map(|_| Buckets { counts: buckets(), sum: AtomicU64::new(0) }).collect();
        Histogram { family: family(name, labels, about), scale, cells, labels: PhantomData }
    }

    /// Measures a number.
    pub fn measure(&self, labels: L, n: u64) {
        let Some(cell) = self.cells.get(labels.place()) else { return };
        let shown = n as f64 / self.scale.per;
        let place = self.scale.bounds.partition_point(|bound| *bound < shown);
        if let Some(count) = cell.counts.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        cell.sum.fetch_add(n, Ordering::Relaxed);
    }

    /// Measures a span of time.
    pub fn time(&self, labels: L, span: Duration) {
        self.measure(labels, u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
    }

    /// How often something was measured since the start.
    pub fn count(&self, labels: L) -> u64 {
        let Some(cell) = self.cells.get(labels.place()) else { return 0 };
        cell.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

impl<L: Labels> Series for Histogram<L> {
    fn family(&self) -> &Family {
        &self.family
    }

    fn kind(&self) -> &'static str {
        "histogram"
    }

    fn values(&self) -> Vec<Vec<&'static str>> {
        L::values()
    }

    fn write(&self, text: &mut String) {
        let name = self.family.name;
        let bucket = format!("{name}_bucket");
        for (labels, cell) in labelled(&self.family, &L::values()).iter().zip(&self.cells) {
            let comma = if labels.is_empty() { "" } else { "," };
            let mut so_far = 0;
            for (at, count) in cell.counts.iter().enumerate() {
                so_far += count.load(Ordering::Relaxed);
                let bound = self.scale.bounds.get(at).map_or("+Inf".to_owned(), ToString::to_string);
                line(text, &bucket, &format!("{labels}{comma}le=\"{bound}\""), so_far);
            }
            line(
                text,
                &format!("{name}_sum"),
                labels,
                cell.sum.load(Ordering::Relaxed) as f64 / self.scale.per,
            );
            line(text, &format!("{name}_count"), labels, so_far);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::record::{Origin, State};

    fn check(series: &dyn Series, expected: &str) {
        let mut text = String::new();
        series.write(&mut text);
        assert_eq!(text, expected);
    }

    #[test]
    fn a_series_stands_at_every_combination_of_its_labels() {
        let counter = Counter::new("c_total", ["state", "source"], "");
        counter.one((State::TakenUp, Origin::Derived));
        counter.add((State::Expired, Origin::Declared), 2);
        let mut text = String::new();
        counter.write(&mut text);
        assert_eq!(text.lines().count(), State::ALL.len() * Origin::ALL.len());
        assert!(text.contains("c_total{state=\"taken_up\",source=\"derived\"} 1\n"), "{text}");
        assert!(text.contains("c_total{state=\"expired\",source=\"declared\"} 2\n"), "{text}");
        assert_eq!(counter.value((State::Expired, Origin::Declared)), 2);
    }

    #[test]
    fn buckets_add_up_and_a_bound_belongs_to_its_own() {
        const TWO: Scale = Scale { bounds: &[0.5, 1.0], per: NANOS };
        let histogram = Histogram::new("h_seconds", [], TWO, "");
        for ms in [500, 501, 1500] {
            histogram.time((), Duration::from_millis(ms));
        }
        check(
            &histogram,
            "h_seconds_bucket{le=\"0.5\"} 1\nh_seconds_bucket{le=\"1\"} 2\nh_seconds_bucket{le=\"+Inf\"} 3\n\
             h_seconds_sum 2.501\nh_seconds_count 3\n",
        );
    }

    #[test]
    fn a_gauge_goes_both_ways() {
        let gauge = Gauge::new("g", "");
        gauge.add(2);
        gauge.add(-3);
        check(&gauge, "g -1\n");
    }
}
