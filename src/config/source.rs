//! Where settings come from: the environment in production, a map in tests,
//! and the files that a setting may name.

use std::io::Read;
use std::path::Path;

use super::proxies::{EXCEPT, PROXY};

/// Files with settings are small; a larger one is a wrong path.
const FILE_LIMIT: u64 = 1 << 20;

/// A place that holds variables.
pub trait Source {
    /// Every variable whose name begins with `SEAM_`, and those that name a proxy, in any order.
    fn variables(&self) -> Vec<(String, String)>;
}

/// The process's environment.
#[derive(Clone, Copy, Debug)]
pub struct Environment;

impl Source for Environment {
    fn variables(&self) -> Vec<(String, String)> {
        std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
            .filter(|(name, _)| {
                let others = PROXY.iter().chain(&EXCEPT);
                name.starts_with(super::PREFIX) || others.into_iter().any(|other| other == name)
            })
            .collect()
    }
}

impl Source for Vec<(String, String)> {
    fn variables(&self) -> Vec<(String, String)> {
        self.clone()
    }
}

impl<const N: usize> Source for [(&str, &str); N] {
    fn variables(&self) -> Vec<(String, String)> {
        self.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }
}

/// Whether the environment asks for plain text (<https://no-color.org>).
pub fn no_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// The text of the file at `path`; an error says what is wrong in a clause.
pub(super) fn read_text(path: &Path) -> Result<String, String> {
    let remark = |error: &dyn std::fmt::Display| format!("{} cannot be read: {error}", path.display());
    let file = std::fs::File::open(path).map_err(|error| remark(&error))?;
    let mut text = String::new();
    file.take(FILE_LIMIT + 1).read_to_string(&mut text).map_err(|error| remark(&error))?;
    if text.len() as u64 > FILE_LIMIT {
        return Err(remark(&"it is larger than 1 MiB"));
    }
    Ok(text)
}
