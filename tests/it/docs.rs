//! Pages that come from a list in the code. `UPDATE_DOCS=1 cargo test --test it docs` writes them anew.

use std::fmt::Write;
use std::path::Path;

use seam::config::profiles;
use seam::engine::event::Code;
use seam::engine::view::Why;
use seam::telemetry::trace::names;
use seam::telemetry::{metrics, reasons};

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
fn the_docs_say_what_every_profile_chooses_and_why() {
    let mut page = String::from(
        "# Profiles: what servers want of a list\n\n\
         An OpenAI-compatible endpoint is not one thing. What every server wants of a rebuilt list is done for all: one \
         system-type message first in the role and the form that the client used, pairs whole and side by side, a customer's \
         turn among them, nothing of another agent's at the end, every kept message with the bytes that it had. What only some \
         want is a profile, `SEAM_PROFILE`. It changes requests that Seam rebuilds anyway and no other.\n\n\
         A profile is a file like those of `config/profiles/`, from which this page is made. The path of one of your own serves \
         as well.\n",
    );
    for (name, text) in profiles::ALL {
        let document = profiles::Document::read(text).expect(name);
        write!(page, "\n## `{name}`\n\n{}\n\n", document.about).expect("a string takes all");
        for told in document.told() {
            let (about, reason, source) = (told.about, told.reason, told.source);
            writeln!(page, "- **{about}**: {reason} ([source]({source}))").expect("a string takes all");
        }
        if !document.unthinking().is_empty() {
            writeln!(page, "- Its models that take no reasoning: `{}`.", document.unthinking().join("`, `"))
                .expect("a string takes all");
        }
        for note in &document.notes {
            writeln!(page, "- {} ([source]({}))", note.what, note.source).expect("a string takes all");
        }
        writeln!(page, "- Its streams: {}.", document.streams).expect("a string takes all");
    }
    check("docs/profiles.md", &page);
}

#[test]
fn the_docs_say_why_a_message_does_not_travel() {
    let page = include_str!("../../docs/page.md");
    for why in Why::ALL {
        assert!(page.contains(&format!("| `{}` |", why.name())), "docs/page.md lacks {}", why.name());
    }
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

#[test]
fn the_docs_list_every_metric_reason_and_attribute() {
    check("docs/metrics.md", &metrics::markdown());
    check("docs/reasons.md", &reasons::markdown());
    check("docs/traces.md", &names::markdown());
}
