//! The names in a body, found by its bytes alone. Both dialects name tools and calls under one key.

use std::sync::LazyLock;

use memchr::memchr2;
use memchr::memmem::Finder;

static KEY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br#""name""#));
/// How an escaped letter of that key begins: `n`, `a`, `m` and `e` are U+006E, U+0061, U+006D and U+0065.
static ESCAPED_LETTER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br"\u006"));

/// What may name a tool or a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'b> {
    /// These bytes.
    Plain(&'b [u8]),
    /// What stands there has to be decoded.
    Unclear,
}

/// The names in a body.
pub fn names(body: &[u8]) -> impl Iterator<Item = Name<'_>> {
    // Nobody escapes the letters of the key; who does has to be read.
    let escaped = ESCAPED_LETTER.find(body).map(|_| Name::Unclear);
    let found = KEY.find_iter(body).filter_map(|at| behind(&body[at + KEY.needle().len()..]));
    escaped.into_iter().chain(found)
}

/// The string behind a key.
fn behind(key: &[u8]) -> Option<Name<'_>> {
    let value = key.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let name = value.strip_prefix(b"\"")?;
    let end = memchr2(b'"', b'\\', name)?;
    Some(if name[end] == b'"' { Name::Plain(&name[..end]) } else { Name::Unclear })
}
