//! What is written to a store: steps that happen together or not at all.

use std::time::Duration;

use bytes::Bytes;

use super::{Content, StoreError, VALUE_LIMIT};
use crate::engine::time::Timestamp;

/// A value's version. It grows with every write of its key, and is not used again when a key was
/// removed and comes back.
pub type Version = u64;

/// What a put expects to find; nothing is written otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No value under the key.
    Absent,
    /// The value of this version.
    Version(Version),
}

/// Steps that happen together or not at all, in their order. A key is put at most once.
#[derive(Clone, Debug)]
pub struct Write<C = Content> {
    pub(super) steps: Vec<Step<C>>,
}

/// One step of a [`Write`].
#[derive(Clone, Debug)]
pub(super) enum Step<C = Content> {
    Put { key: String, value: C, expect: Expect, ttl: Duration },
    Add { key: String, member: String, cap: usize, ttl: Duration },
    Note { list: String, member: String, at: Timestamp, cap: usize, ttl: Duration },
    RemoveValue { key: String },
    RemoveSet { key: String },
    Forget { list: String, member: String },
}

impl Write {
    /// Puts `value` under `key` if `expect` holds, to live for `ttl` from now.
    #[must_use]
    pub fn put(mut self, key: String, value: impl Into<Content>, expect: Expect, ttl: Duration) -> Self {
        let value = value.into();
        self.steps.push(Step::Put { key, value, expect, ttl });
        self
    }

    /// Adds `member` to the set under `key`, which holds `cap` at most; the set lives for `ttl` from now,
    /// or a sixteenth less where it holds the member already.
    /// A full set stays full: that a key is common is worth knowing, who came first is not.
    #[must_use]
    pub fn add(mut self, key: String, member: &str, cap: usize, ttl: Duration) -> Self {
        self.steps.push(Step::Add { key, member: member.to_owned(), cap, ttl });
        self
    }

    /// Notes `member` in a list, at `at` from now on. The list holds `cap` at most; the oldest leave it,
    /// and so does what is older than `ttl`.
    #[must_use]
    pub fn note(mut self, list: &str, member: &str, at: Timestamp, cap: usize, ttl: Duration) -> Self {
        let (list, member) = (list.to_owned(), member.to_owned());
        self.steps.push(Step::Note { list, member, at, cap, ttl });
        self
    }

    /// Removes the value and the set under `key`, if there are any.
    #[must_use]
    pub fn remove(mut self, key: String) -> Self {
        self.steps.extend([Step::RemoveValue { key: key.clone() }, Step::RemoveSet { key }]);
        self
    }

    /// Takes `member` out of a list, if it is there.
    #[must_use]
    pub fn forget(mut self, list: &str, member: &str) -> Self {
        self.steps.push(Step::Forget { list: list.to_owned(), member: member.to_owned() });
        self
    }

    /// The same, if a store takes it.
    pub(super) fn checked(self) -> Result<Self, StoreError> {
        let bytes = self.steps.iter().map(|step| match step {
            Step::Put { value, .. } => value.weight(),
            _ => 0,
        });
        match bytes.max() {
            Some(bytes) if bytes > VALUE_LIMIT => Err(StoreError::TooLarge { bytes }),
            _ => Ok(self),
        }
    }

    /// The same in bytes, if a store takes it.
    pub(super) fn encoded(self) -> Result<Write<Bytes>, StoreError> {
        let encoded = |step| {
            Ok(match step {
                Step::Put { key, value, expect, ttl } => {
                    let value: Bytes = Content::bytes(&value)?;
                    if value.len() > VALUE_LIMIT {
                        return Err(StoreError::TooLarge { bytes: value.len() });
                    }
                    Step::Put { key, value, expect, ttl }
                }
                Step::Add { key, member, cap, ttl } => Step::Add { key, member, cap, ttl },
                Step::Note { list, member, at, cap, ttl } => Step::Note { list, member, at, cap, ttl },
                Step::RemoveValue { key } => Step::RemoveValue { key },
                Step::RemoveSet { key } => Step::RemoveSet { key },
                Step::Forget { list, member } => Step::Forget { list, member },
            })
        };
        Ok(Write { steps: self.steps.into_iter().map(encoded).collect::<Result<_, StoreError>>()? })
    }
}

impl<C> Write<C> {
    /// What has to hold before anything is written.
    pub(super) fn expectations(&self) -> impl Iterator<Item = (&str, Expect)> {
        self.steps.iter().filter_map(|step| match step {
            Step::Put { key, expect, .. } => Some((key.as_str(), *expect)),
            _ => None,
        })
    }
}

impl Default for Write {
    fn default() -> Self {
        Write { steps: Vec::new() }
    }
}

impl Expect {
    /// Whether it holds where a value of this version was found.
    pub(super) fn holds(self, found: Option<Version>) -> bool {
        match self {
            Expect::Absent => found.is_none(),
            Expect::Version(version) => found == Some(version),
        }
    }
}

impl From<Option<Version>> for Expect {
    fn from(found: Option<Version>) -> Expect {
        found.map_or(Expect::Absent, Expect::Version)
    }
}
