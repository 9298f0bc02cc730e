//! Closed lists: enums whose values are all known, so that they can label a
//! metric and stand in a page of the docs.

use crate::engine::decide::Pass;
use crate::engine::event::Code;
use crate::engine::handoff::verify::{Age, Outcome};
use crate::engine::record::{Origin, State};
use crate::engine::signal::Sign;

/// A value of a closed list.
pub trait Closed: Copy + 'static {
    /// All values, each at its [`Closed::index`].
    const ALL: &'static [Self];

    /// The name in logs, metrics and docs.
    fn name(self) -> &'static str;

    /// Where it stands in [`Closed::ALL`].
    fn index(self) -> usize;
}

/// Declares a closed list: each value with its name and, as its doc comment, what it means.
macro_rules! closed {
    ($(#[$outer:meta])* $vis:vis enum $list:ident { $($(#[doc = $doc:literal])+ $name:ident = $text:literal,)+ }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $vis enum $list { $($(#[doc = $doc])+ $name,)+ }

        impl $crate::telemetry::closed::Closed for $list {
            const ALL: &'static [Self] = &[$($list::$name,)+];

            fn name(self) -> &'static str {
                match self { $($list::$name => $text,)+ }
            }

            fn index(self) -> usize {
                self as usize
            }
        }

        impl $list {
            /// What it means, one sentence.
            pub fn meaning(self) -> &'static str {
                match self { $($list::$name => concat!($($doc),+).trim_ascii(),)+ }
            }
        }
    };
}
pub(crate) use closed;

/// Makes a closed list of an enum of the engine's that has `ALL` and `name`.
macro_rules! of_the_engine {
    ($($list:ty),+) => {
        $(impl Closed for $list {
            const ALL: &'static [Self] = <$list>::ALL;

            fn name(self) -> &'static str {
                <$list>::name(self)
            }

            fn index(self) -> usize {
                self as usize
            }
        })+
    };
}

of_the_engine!(Code, Pass, Outcome, Age, Origin, State, Sign);

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Closed>() {
        for (place, value) in T::ALL.iter().enumerate() {
            assert_eq!(value.index(), place, "{}", value.name());
            let plain =
                value.name().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
            assert!(plain && !value.name().is_empty(), "{}", value.name());
        }
    }

    #[test]
    fn every_value_stands_at_its_index_and_has_a_plain_name() {
        check::<Code>();
        check::<Pass>();
        check::<Outcome>();
        check::<Age>();
        check::<Origin>();
        check::<State>();
        check::<Sign>();
        check::<crate::telemetry::Event>();
        check::<crate::telemetry::Passed>();
        check::<crate::telemetry::Failed>();
    }
}
