//! What the demo shows: the receiver's request without and with Seam, side by
//! side where there is room, for a terminal or for a file.

use std::fmt::Write as _;

use super::chat::Message;
use super::{Correction, Played, Sent};
use crate::engine::event::Finding;
use crate::engine::handoff::brief;

/// How a page may look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// Columns of text.
    pub(super) width: usize,
    /// Whether escape codes are understood and wanted.
    pub(super) colour: bool,
}

/// Columns that two requests need to stand beside each other.
const ROOM_FOR_TWO: usize = 100;
/// What stands between them.
const GUTTER: &str = " | ";
/// What every line of the brief begins with, so that it can be told without colour.
const BRIEF_MARK: &str = "> ";
const INDENT: &str = "  ";

const NEXT: &str = "Next: let Seam watch your own agents. In observe mode it changes no byte.";
/// Lines to copy, so they are not broken.
const COMMANDS: [&str; 2] = [
    "    SEAM_MODE=observe SEAM_UPSTREAM=https://api.openai.com/v1 seam",
    "    export OPENAI_BASE_URL=http://127.0.0.1:8484/v1",
];

/// How a line is set off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    Plain,
    Strong,
    Faint,
    Brief,
    Doubt,
}

#[derive(Clone, Debug)]
struct Line {
    text: String,
    tone: Tone,
}

/// The whole page.
pub(super) fn page(played: &[Played], look: Look) -> String {
    let mut page = Page { text: String::new(), look };
    page.paragraph(
        Tone::Plain,
        "Each conversation below was held twice over sockets of this machine: straight to a scripted model, and \
         through Seam. Shown is the first request of the agent that takes over, as the model's endpoint got it.",
    );
    for (at, scene) in played.iter().enumerate() {
        page.scene(at + 1, scene);
    }
    page.line("", Tone::Plain);
    page.paragraph(Tone::Plain, NEXT);
    for command in COMMANDS {
        page.line(command, Tone::Strong);
    }
    page.text
}

struct Page {
    text: String,
    look: Look,
}

impl Page {
    fn scene(&mut self, number: usize, played: &Played) {
        self.line("", Tone::Plain);
        self.paragraph(Tone::Strong, &format!("{number}. {}", played.scene.title));
        self.paragraph(Tone::Plain, played.scene.about);
        self.line("", Tone::Plain);
        if self.look.width >= ROOM_FOR_TWO {
            self.beside(&played.without, &played.with);
        } else {
            self.below(&played.without, &played.with);
        }
        self.line("", Tone::Plain);
        if let Some(correction) = &played.correction {
            self.correction(correction);
        }
        self.findings(&played.findings);
        let (before, after) = (played.without.tokens, played.with.tokens);
        self.paragraph(
            Tone::Plain,
            &format!("Tokens of the list, at 4 bytes each: {before} before, {after} after."),
        );
    }

    fn beside(&mut self, without: &Sent, with: &Sent) {
        let room = self.look.width - GUTTER.len();
        let left_width = room * 2 / 5;
        let left = column("WITHOUT SEAM", without, left_width);
        let right = column("WITH SEAM", with, room - left_width);
        let nothing = Line { text: String::new(), tone: Tone::Plain };
        for row in 0..left.len().max(right.len()) {
            let (left, right) = (left.get(row).unwrap_or(&nothing), right.get(row).unwrap_or(&nothing));
            let padding = left_width.saturating_sub(left.text.chars().count());
            self.toned(&left.text, left.tone);
            self.text.extend(std::iter::repeat_n(' ', padding));
            self.text.push_str(if right.text.is_empty() { GUTTER.trim_end() } else { GUTTER });
            self.toned(&right.text, right.tone);
            self.text.push('\n');
        }
    }

    fn below(&mut self, without: &Sent, with: &Sent) {
        for line in column("WITHOUT SEAM", without, self.look.width) {
            self.line(&line.text, line.tone);
        }
        self.line("", Tone::Plain);
        for line in column("WITH SEAM", with, self.look.width) {
            self.line(&line.text, line.tone);
        }
    }

    /// What passed between Seam and the sender, and nobody else saw.
    fn correction(&mut self, correction: &Correction) {
        self.line("WHAT THE SENDER WROTE FIRST", Tone::Strong);
        self.paragraph(Tone::Doubt, &correction.wrote);
        self.line("", Tone::Plain);
        self.line("WHAT SEAM TOLD IT, before the client saw anything of the call", Tone::Strong);
        for line in correction.told.lines() {
            self.paragraph(Tone::Brief, line);
        }
        self.line("", Tone::Plain);
    }

    fn findings(&mut self, findings: &[Finding]) {
        if findings.is_empty() {
            self.line("Findings: none.", Tone::Plain);
            return;
        }
        self.line("Findings:", Tone::Plain);
        for finding in findings {
            let text = format!("- {} at {}: {}", finding.code.name(), finding.place, finding.what);
            self.paragraph(Tone::Doubt, &text);
        }
    }

    fn paragraph(&mut self, tone: Tone, text: &str) {
        for line in wrapped(text, self.look.width) {
            self.line(&line, tone);
        }
    }

    fn line(&mut self, text: &str, tone: Tone) {
        self.toned(text, tone);
        self.text.push('\n');
    }

    fn toned(&mut self, text: &str, tone: Tone) {
        let code = match tone {
            Tone::Strong => "1",
            Tone::Faint => "2",
            Tone::Brief => "36",
            Tone::Doubt => "33",
            Tone::Plain => "",
        };
        if code.is_empty() || text.is_empty() || !self.look.colour {
            self.text.push_str(text);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(self.text, "\x1b[{code}m{text}\x1b[0m");
        }
    }
}

/// A request as lines of at most `width` columns.
fn column(title: &str, sent: &Sent, width: usize) -> Vec<Line> {
    let mut lines = vec![Line { text: title.to_owned(), tone: Tone::Strong }];
    for message in &sent.messages {
        lines.push(Line { text: head(message), tone: Tone::Faint });
        let text = message.content.as_deref().unwrap_or_default();
        match brief::find(text) {
            Some(found) => {
                add(&mut lines, Tone::Plain, INDENT, found.before, width);
                add_brief(&mut lines, found.brief, width);
            }
            None => add(&mut lines, Tone::Plain, INDENT, text, width),
        }
        for call in &message.tool_calls {
            let text = format!("calls {} {}", call.function.name, call.function.arguments);
            add(&mut lines, Tone::Plain, INDENT, &text, width);
        }
    }
    lines
}

fn head(message: &Message) -> String {
    match &message.tool_call_id {
        Some(id) => format!("{} ({id})", message.role),
        None => message.role.clone(),
    }
}

/// The brief, with the section of what is not confirmed set off.
fn add_brief(lines: &mut Vec<Line>, brief: &str, width: usize) {
    let mut doubtful = false;
    for line in brief.lines() {
        doubtful = line.starts_with("Not confirmed") || (doubtful && line.starts_with("- "));
        let tone = if doubtful { Tone::Doubt } else { Tone::Brief };
        add(lines, tone, BRIEF_MARK, line, width);
    }
}

fn add(lines: &mut Vec<Line>, tone: Tone, mark: &str, text: &str, width: usize) {
    let room = width.saturating_sub(mark.len());
    lines.extend(
        text.lines()
            .flat_map(|line| wrapped(line, room))
            .map(|line| Line { text: format!("{mark}{line}"), tone }),
    );
}

/// A line of text as lines of at most `width` columns, broken behind spaces and commas where there are any;
/// what follows a bullet stays behind it.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let hang = if text.starts_with("- ") { 2 } else { 0 };
    // Narrower than this nothing can be read, and nothing would get on.
    let width = width.max(hang + 8);
    let mut lines = Vec::new();
    let (mut line, mut used) = (String::new(), 0);
    for word in text.split_inclusive([' ', ',']) {
        let length = word.trim_end().chars().count();
        if used > hang && used + length > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(hang)).trim_end().to_owned());
            used = hang;
        }
        for c in word.chars() {
            if used == width && c != ' ' {
                lines.push(std::mem::replace(&mut line, " ".repeat(hang)));
                used = hang;
            }
            if used < width {
                line.push(c);
                used += 1;
            }
        }
    }
    lines.push(line.trim_end().to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, width: usize, expected: &[&str]) {
        assert_eq!(wrapped(text, width), expected, "{text}");
    }

    fn sent(system: &str) -> Sent {
        Sent {
            messages: vec![Message::text("system", system), Message::text("user", "Is it done?")],
            tokens: 9,
        }
    }

    fn shown(width: usize, colour: bool) -> String {
        let bare = sent("You mend wheels.");
        let rebuilt = sent("You mend wheels. You answer in one sentence, however long the question was.");
        let scene = crate::cli::demo::SCENES[0];
        let played = Played { scene, without: bare, with: rebuilt, correction: None, findings: Vec::new() };
        page(&[played], Look { width, colour })
    }

    #[test]
    fn two_requests_stand_beside_each_other_where_there_is_room() {
        let wide = shown(100, false);
        let row = |left: &str, right: &str| {
            let found = wide.lines().any(|line| {
                line.split_once(GUTTER)
                    .is_some_and(|(l, r)| (l.trim_end(), r) == (left, right) && l.len() == 38)
            });
            assert!(found, "{left} | {right} in\n{wide}");
        };
        row("WITHOUT SEAM", "WITH SEAM");
        row("  You mend wheels.", "  You mend wheels. You answer in one sentence, however long");
        row("user", "  the question was.");
        assert!(shown(99, false).lines().any(|line| line == "WITH SEAM"));
    }

    #[test]
    fn nothing_is_wider_than_the_page() {
        for width in [70, 80, 99, 100, 170] {
            let page = shown(width, false);
            assert_eq!(page.lines().find(|line| line.chars().count() > width), None);
        }
    }

    #[test]
    fn colour_adds_codes_and_nothing_else() {
        assert!(!shown(120, false).contains('\x1b'));
        let mut plain = shown(120, true);
        for code in ["0", "1", "2", "33", "36"] {
            plain = plain.replace(&format!("\x1b[{code}m"), "");
        }
        assert_eq!(plain, shown(120, false));
    }

    #[test]
    fn lines_break_behind_words_and_words_where_they_must() {
        check("a bicycle has two wheels", 12, &["a bicycle", "has two", "wheels"]);
        check("- a bicycle has two wheels", 12, &["- a bicycle", "  has two", "  wheels"]);
        check(r#"{"ticket":"W-3","part":"rim"}"#, 16, &[r#"{"ticket":"W-3","#, r#""part":"rim"}"#]);
        check("abcdefghijklmnop", 8, &["abcdefgh", "ijklmnop"]);
        check("", 8, &[""]);
        check("exactly8 next", 8, &["exactly8", "next"]);
    }
}
