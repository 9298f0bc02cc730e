//! The settings that can change while Seam runs: whether receivers' requests
//! are rebuilt, and for how many runs of a hundred.

use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};

use super::vars::{self, Var};
use super::{Mode, source};
use crate::engine::hash::Hasher;

/// The settings in force now.
#[derive(Debug)]
pub struct Live {
    observe: AtomicU8,
    percent: AtomicU8,
}

/// Why a run's requests are left as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shadow {
    /// Nothing is rebuilt at all.
    Observe,
    /// The run is outside the share that is.
    ControlArm,
}

impl Live {
    /// These settings.
    pub fn new(mode: Mode, percent: u8) -> Live {
        let live = Live { observe: AtomicU8::new(0), percent: AtomicU8::new(0) };
        live.set(mode, percent);
        live
    }

    /// These settings from now on.
    pub fn set(&self, mode: Mode, percent: u8) {
        self.observe.store(u8::from(mode == Mode::Observe), Ordering::Relaxed);
        self.percent.store(percent, Ordering::Relaxed);
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        if self.observe.load(Ordering::Relaxed) == 0 { Mode::Rewrite } else { Mode::Observe }
    }

    /// Runs of a hundred that are rewritten.
    pub fn percent(&self) -> u8 {
        self.percent.load(Ordering::Relaxed)
    }

    /// Whether a run stays in the shadow. By its id alone: a run that is rewritten at one share is
    /// rewritten at every larger one.
    pub fn shadow(&self, run: &str) -> Option<Shadow> {
        match (self.mode(), self.percent()) {
            (Mode::Observe, _) => Some(Shadow::Observe),
            (Mode::Rewrite, 100..) => None,
            (Mode::Rewrite, percent) => (place(run) >= percent).then_some(Shadow::ControlArm),
        }
    }
}

/// What a file of live settings says; what it does not say stays as it was at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The mode.
    pub mode: Option<Mode>,
    /// Runs of a hundred that are rewritten.
    pub percent: Option<u8>,
}

impl Told {
    /// Reads a file; an error says everything that is wrong with it, in clauses. A file that is not there
    /// says nothing.
    pub fn read(path: &Path) -> Result<Told, String> {
        match path.try_exists() {
            Ok(false) => Ok(Told::default()),
            _ => Told::parse(&source::read_text(path)?),
        }
    }

    fn parse(text: &str) -> Result<Told, String> {
        let mut told = Told::default();
        let mut wrong = Vec::new();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            let (name, value) = line.split_once('=').unwrap_or((line, ""));
            let (name, value) = (name.trim(), value.trim());
            if name == vars::MODE.entry.name {
                take(&vars::MODE, value, &mut told.mode, &mut wrong);
            } else if name == vars::REWRITE_PERCENT.entry.name {
                take(&vars::REWRITE_PERCENT, value, &mut told.percent, &mut wrong);
            } else {
                wrong.push(format!("{name:?} cannot be changed while Seam runs"));
            }
        }
        if wrong.is_empty() { Ok(told) } else { Err(wrong.join("; ")) }
    }
}

fn take<T>(var: &Var<T>, value: &str, into: &mut Option<T>, wrong: &mut Vec<String>) {
    if let Ok(read) = (var.kind.parse)(value) {
        *into = Some(read);
    } else {
        let entry = &var.entry;
        wrong.push(format!("{}={value:?} does not read, expected {}", entry.name, entry.expected));
    }
}

/// A run's place among a hundred.
fn place(run: &str) -> u8 {
    let hash = Hasher::new("arm").bytes(run.as_bytes()).finish();
    let number = u64::from_str_radix(&hash.digits(8), 16).unwrap_or_default();
    (number % 100) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_runs_is_rewritten_and_a_larger_share_keeps_them() {
        let rewritten = |percent: u8| -> Vec<usize> {
            let live = Live::new(Mode::Rewrite, percent);
            (0..2_000).filter(|n| live.shadow(&format!("run{n}")).is_none()).collect()
        };
        let (some, more) = (rewritten(20), rewritten(50));
        assert!((300..500).contains(&some.len()), "{}", some.len());
        assert!((900..1_100).contains(&more.len()), "{}", more.len());
        assert!(some.iter().all(|n| more.contains(n)));
        assert!(rewritten(0).is_empty());
        assert_eq!(rewritten(100).len(), 2_000);
    }

    #[test]
    fn a_file_says_what_it_says_and_everything_that_is_wrong_with_it() {
        let check = |text: &str, expected: Result<Told, &str>| {
            assert_eq!(Told::parse(text), expected.map_err(str::to_owned), "{text}");
        };
        let told = |mode, percent| Ok(Told { mode, percent });
        check("", told(None, None));
        check("# kill switch\nSEAM_MODE=observe\n", told(Some(Mode::Observe), None));
        check("SEAM_REWRITE_PERCENT = 5\r\nSEAM_MODE=rewrite", told(Some(Mode::Rewrite), Some(5)));
        check(
            "SEAM_MODE=off\nSEAM_REWRITE_PERCENT=101\nSEAM_STORE=memory",
            Err(
                "SEAM_MODE=\"off\" does not read, expected observe or rewrite; SEAM_REWRITE_PERCENT=\"101\" does not \
                 read, expected a whole number from 0 to 100; \"SEAM_STORE\" cannot be changed while Seam runs",
            ),
        );
    }

    #[test]
    fn observe_leaves_every_run_alone() {
        let live = Live::new(Mode::Rewrite, 100);
        live.set(Mode::Observe, 100);
        assert_eq!(live.shadow("a"), Some(Shadow::Observe));
    }
}
