//! Writes the request bodies of the comparison to a folder: `bodies FOLDER`.

use std::fs;
use std::path::PathBuf;

use seam_compare::conversation::{Conversation, Kind, Reply};

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "bodies".to_owned()));
    fs::create_dir_all(&folder)?;
    for kind in Kind::ALL {
        for (label, size) in [("2k", 2_000), ("50k", 50_000), ("500k", 500_000)] {
            for reply in [Reply::Whole, Reply::Streamed] {
                let mut body = Vec::new();
                Conversation::new(kind, size, 0, reply).body(0, 4471, &mut body);
                let streamed = if reply == Reply::Streamed { "-stream" } else { "" };
                fs::write(folder.join(format!("{}-{label}{streamed}.json", kind.name())), body)?;
            }
        }
    }
    Ok(())
}
