//! The table of settings as text: for `--help`, `config/seam.env.example` and
//! `docs/configuration.md`.

use std::fmt::Write as _;

use super::vars::{ALL, Entry, Fallback, Group};

/// The settings as a section of `--help`.
pub fn help() -> String {
    let mut text = String::from("Settings are environment variables. Only SEAM_UPSTREAM has to be set.\n");
    each_group(|group, entries| {
        let _ = write!(text, "\n{}:\n", group.title());
        for entry in entries {
            let _ = writeln!(text, "  {} [{}]\n      {}", entry.name, default_words(entry), entry.about);
        }
    });
    text
}

/// `config/seam.env.example`: everything at its default, commented out.
pub fn env_example() -> String {
    let mut text = String::from(
        "# Settings of Seam. Every line that is commented out shows the default.\n\
         # Made from the table in src/config/vars.rs: change it there.\n",
    );
    each_group(|group, entries| {
        let _ = write!(text, "\n# --- {}\n", group.title());
        for entry in entries {
            let _ = writeln!(text, "\n# {}\n# Expected: {}.", entry.about, entry.expected);
            let _ = match entry.default {
                Fallback::Required => writeln!(text, "{}={}", entry.name, entry.example),
                Fallback::Unset => writeln!(text, "#{}={}", entry.name, entry.example),
                Fallback::Is(value) => writeln!(text, "#{}={value}", entry.name),
            };
        }
    });
    text
}

/// `docs/configuration.md`.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Settings\n\n\
         Settings are environment variables; only `SEAM_UPSTREAM` has to be set. `seam check` shows those in force, \
         checks them and says what they mean together. A value that does not read, or a variable with our prefix \
         that does not exist, stops Seam before it opens a port (exit code 64), with everything that is wrong told \
         at once. An empty value counts as not set. Variables that Kubernetes makes for Services called `seam` or \
         `seam-...` are left alone.\n\n\
         Times carry their unit (`250ms`, `10s`, `5m`, `24h`, `1d`), and so do sizes (`64KiB`, `32MiB`). Lists are \
         separated by commas; `none` is the empty list. A secret can also be given in a file, by a variable of the \
         same name with `_FILE` at its end, and is shown as `***`.\n\n\
         This page is made from the table in `src/config/vars.rs`.\n",
    );
    each_group(|group, entries| {
        let _ = write!(text, "\n## {}\n", group.title());
        for entry in entries {
            let secret = if entry.secret { " Secret." } else { "" };
            let _ = write!(
                text,
                "\n### `{}`\n\n{}{secret}\n\n- Expected: {}, for example `{}`\n- Default: {}. {}\n",
                entry.name,
                entry.about,
                entry.expected,
                entry.example,
                default_markdown(entry),
                entry.reason,
            );
        }
    });
    text.push_str(
        "\n## Variables that other programs know too\n\n\
         - `HTTPS_PROXY`, else `https_proxy`: the proxy through which an https upstream (and an https receiver of traces) is \
         reached, `http://HOST:PORT` with `USER:PASSWORD@` in front of the host where needed. It is asked for a tunnel \
         (`CONNECT`), so that it sees a name and no byte of what is said. An upstream that is not https is reached directly.\n\
         - `NO_PROXY`, else `no_proxy`: what is reached without it, separated by commas: names with all names below them, \
         addresses, networks like `10.0.0.0/8`, or `*`.\n\
         - `NO_COLOR`: no colour in what commands print.\n",
    );
    text
}

fn each_group(mut write: impl FnMut(Group, &[&Entry])) {
    let entries: Vec<&Entry> = ALL.iter().map(|var| var.entry()).collect();
    for group in entries.chunk_by(|a, b| a.group == b.group) {
        if let Some(first) = group.first() {
            write(first.group, group);
        }
    }
}

fn default_words(entry: &Entry) -> String {
    match entry.default {
        Fallback::Required => format!("required, for example {}", entry.example),
        Fallback::Unset => format!("not set; for example {}", entry.example),
        Fallback::Is(value) => value.to_owned(),
    }
}

fn default_markdown(entry: &Entry) -> String {
    match entry.default {
        Fallback::Required => "none, it has to be set".to_owned(),
        Fallback::Unset => "not set".to_owned(),
        Fallback::Is(value) => format!("`{value}`"),
    }
}
