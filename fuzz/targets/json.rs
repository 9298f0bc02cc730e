//! The cursor accepts what serde_json accepts, and its ways of reading agree.

#![no_main]

use libfuzzer_sys::fuzz_target;
use seam::engine::wire::json::{Cursor, Fault, Kind};
use serde::de::IgnoredAny;

fuzz_target!(|text: &str| {
    let read = |text: &str| -> Result<(), Fault> {
        let mut cursor = Cursor::new(text);
        cursor.skip()?;
        cursor.end()
    };
    let skipped = read(text);
    if skipped != Err(Fault::TooDeep) {
        let accepted = serde_json::from_slice::<IgnoredAny>(text.as_bytes()).is_ok();
        assert_eq!(skipped.is_ok(), accepted);
    }
    let mut cursor = Cursor::new(text);
    assert_eq!(skipped, descend(&mut cursor).and_then(|()| cursor.end()));
});

fn descend(cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    match cursor.peek() {
        Some(Kind::Object) => cursor.object(|inner, _| descend(inner)).map(drop),
        Some(Kind::Array) => cursor.array(descend).map(drop),
        Some(Kind::String) => {
            let mut again = cursor.clone();
            let ours = cursor.string()?;
            let span = again.skip()?;
            // Lone surrogates are read as U+FFFD here and refused there.
            if let Ok(theirs) = serde_json::from_str::<String>(again.raw(span)) {
                assert_eq!(ours.as_deref(), Some(theirs.as_str()));
            }
            Ok(())
        }
        _ => cursor.skip().map(drop),
    }
}
