//! Everything that is wrong with the settings, told at once.

use std::fmt;

/// One thing that is wrong: variable, value, what was expected, an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The variable.
    pub name: String,
    /// What is wrong, and what would be right.
    pub what: String,
}

/// All of them, never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Problems(pub Vec<Problem>);

impl Problem {
    pub(super) fn new(name: &str, what: impl Into<String>) -> Problem {
        Problem { name: name.to_owned(), what: what.into() }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        let noun = if count == 1 { "problem" } else { "problems" };
        writeln!(f, "{count} {noun} with the settings:")?;
        for problem in &self.0 {
            writeln!(f, "  {}: {}", problem.name, problem.what)?;
        }
        write!(f, "`seam --help` lists every variable, its default and an example")
    }
}
