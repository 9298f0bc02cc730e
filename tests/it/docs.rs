//! Pages that come from a list in the code. `UPDATE_DOCS=1 cargo test --test it docs` writes them anew.

use std::fmt::Write;
use std::path::Path;

use seam::engine::event::Code;

#[track_caller]
fn check(file: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, expected).expect("the checkout can be written to");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == expected, "{file} is not what the code says; write it anew with UPDATE_DOCS=1");
}

#[test]
fn the_docs_list_every_finding() {
    let mut page = String::from(
        "# Findings\n\n\
         What a check can find. A finding goes to the record, the log and the metrics; it never changes a byte by itself.\n\
         The list is closed.\n\n\
         | finding | means |\n|---|---|\n",
    );
    for code in Code::ALL {
        writeln!(page, "| `{}` | {} |", code.name(), code.meaning()).expect("a string takes all");
    }
    check("docs/findings.md", &page);
}
