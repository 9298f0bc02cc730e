//! A receiver's message list before and after it was rebuilt, told line by line:
//! who, how much, what became of it and why. Texts only where they are asked for.

use std::mem::size_of;

use serde::Serialize;

use super::view::{Item, Keep, Plan, View, Why};

/// Lines that are told of one list: its head and its end.
const HEAD: usize = 60;
/// See [`HEAD`].
const END: usize = 240;
/// Bytes of one text, of all texts of a list, and of a name.
const TEXT: usize = 4 << 10;
/// See [`TEXT`].
const TEXTS: usize = 256 << 10;
/// See [`TEXT`].
const NAME: usize = 128;

/// Both lists of one take-up, side by side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Lists {
    /// In the order of both lists.
    pub lines: Vec<Line>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Line {
    /// An item of the list as the client sent it.
    Item(Row),
    /// The brief stands here in the list that goes up.
    Brief {
        /// Its size.
        bytes: usize,
    },
    /// A customer turn that the client had dropped stands here in the list that goes up.
    PutBack {
        /// Its size.
        bytes: usize,
    },
    /// Lines that are not told: the list is long.
    Gap {
        /// How many.
        lines: usize,
    },
}

/// An item, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Who it is from.
    pub role: &'static str,
    /// The tools that it calls.
    pub calls: Vec<String>,
    /// Bytes of its text, arguments included.
    pub bytes: usize,
    /// Bytes of images, audio and files.
    pub media: usize,
    /// What becomes of it.
    pub fate: Fate,
    /// Why, where it does not travel as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
    /// Bytes of text that go up.
    pub bytes_after: usize,
    /// The text, where it may be shown; bounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// What becomes of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It travels as it was.
    Kept,
    /// It travels without a transfer's call.
    Cut,
    /// Its text is shortened.
    Shortened,
    /// It does not travel.
    LeftOut,
}

impl Fate {
    /// The name on the admin listener.
    pub fn name(self) -> &'static str {
        match self {
            Fate::Kept => "kept",
            Fate::Cut => "cut",
            Fate::Shortened => "shortened",
            Fate::LeftOut => "left_out",
        }
    }
}

impl Lists {
    /// The lists of a request and its plan. Texts are told where `texts` is set.
    pub fn of(view: &View<'_>, plan: &Plan, texts: bool) -> Lists {
        let count = view.items.len();
        let hidden = HEAD..count.saturating_sub(END).max(HEAD);
        let brief = plan.brief.as_ref().map(|brief| Line::Brief { bytes: brief.len() });
        let mut room = if texts { TEXTS } else { 0 };
        let mut lines = Vec::with_capacity(count.min(HEAD + END) + 2);
        if plan.brief_after.is_none() {
            lines.extend(brief.clone());
        }
        for (at, item) in view.items.iter().enumerate() {
            put_back(&mut lines, plan, at);
            if !hidden.contains(&at) {
                let keep = plan.keep.get(at).unwrap_or(&Keep::Whole);
                let mut row = Row::of(item, keep, plan.why.get(at).copied().flatten());
                row.text = text(item, &mut room);
                lines.push(Line::Item(row));
            } else if at == hidden.start {
                lines.push(Line::Gap { lines: hidden.len() });
            }
            if plan.brief_after == Some(at) {
                lines.extend(brief.clone());
            }
        }
        put_back(&mut lines, plan, count);
        Lists { lines }
    }

    /// Bytes that it takes in memory, about.
    pub fn size(&self) -> usize {
        let of_line = |line: &Line| match line {
            Line::Item(row) => {
                row.calls.iter().map(|name| name.len() + size_of::<String>()).sum::<usize>()
                    + row.text.as_ref().map_or(0, String::len)
            }
            _ => 0,
        };
        self.lines.iter().map(|line| size_of::<Line>() + of_line(line)).sum()
    }
}

impl Row {
    fn of(item: &Item<'_>, keep: &Keep, why: Option<Why>) -> Row {
        let bytes_of = |call: &super::view::Call<'_>| call.name.len() + call.arguments.len();
        let bytes = item.text.len() + item.calls.iter().map(bytes_of).sum::<usize>();
        let (fate, bytes_after) = match keep {
            Keep::Whole => (Fate::Kept, bytes),
            Keep::WithoutCalls(gone) => {
                let gone = gone.iter().filter_map(|&call| item.calls.get(call)).map(bytes_of).sum::<usize>();
                (Fate::Cut, bytes.saturating_sub(gone))
            }
            Keep::Shortened(text) => (Fate::Shortened, text.len()),
            Keep::Drop => (Fate::LeftOut, 0),
        };
        let calls = item.calls.iter().take(8).map(|call| head(&call.name, NAME).to_owned()).collect();
        let why = why.filter(|_| fate != Fate::Kept).map(Why::name);
        Row { role: item.role.name(), calls, bytes, media: item.media, fate, why, bytes_after, text: None }
    }
}

/// Customer turns that stand before the item at `at`.
fn put_back(lines: &mut Vec<Line>, plan: &Plan, at: usize) {
    let here = plan.put_back.iter().filter(|(place, _)| *place == at);
    lines.extend(here.map(|(_, raw)| Line::PutBack { bytes: raw.len() }));
}

/// The item's text with the arguments of its calls, as far as there is room.
fn text(item: &Item<'_>, room: &mut usize) -> Option<String> {
    if *room == 0 {
        return None;
    }
    let most = TEXT.min(*room);
    let mut text = head(&item.text, most).to_owned();
    for call in &item.calls {
        if text.len() < most {
            let line =
                format!("{}{}({})", if text.is_empty() { "" } else { "\n" }, call.name, call.arguments);
            text.push_str(head(&line, most - text.len()));
        }
    }
    if text.len() == most {
        text.push('…');
    }
    *room = room.saturating_sub(text.len());
    Some(text)
}

fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::view::Dialect;
    use crate::engine::wire;

    fn body(messages: usize) -> String {
        let message = |n: usize| format!(r#"{{"role":"user","content":"turn {n}"}}"#);
        let messages: Vec<String> = (0..messages).map(message).collect();
        format!(r#"{{"messages":[{}]}}"#, messages.join(","))
    }

    fn check(messages: usize, plan: &Plan, texts: bool) -> Vec<Line> {
        let body = body(messages);
        let view = wire::read(body.as_bytes(), Dialect::Chat).expect("a body");
        Lists::of(&view, plan, texts).lines
    }

    #[test]
    fn each_item_says_what_becomes_of_it() {
        let plan = Plan {
            brief: Some("a brief".into()),
            keep: vec![Keep::Drop, Keep::Whole],
            why: vec![Some(Why::OverLimit), None],
            put_back: vec![(2, "turn".into())],
            ..Plan::default()
        };
        let lines = check(2, &plan, false);
        let row = |fate, why: Option<Why>, bytes_after| {
            Line::Item(Row {
                role: "user",
                calls: Vec::new(),
                bytes: 6,
                media: 0,
                fate,
                why: why.map(Why::name),
                bytes_after,
                text: None,
            })
        };
        let expected = [
            Line::Brief { bytes: 7 },
            row(Fate::LeftOut, Some(Why::OverLimit), 0),
            row(Fate::Kept, None, 6),
            Line::PutBack { bytes: 4 },
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_long_list_is_told_by_its_ends_and_texts_are_bounded() {
        let plan = Plan { brief_after: Some(70), brief: Some("b".into()), ..Plan::default() };
        let lines = check(1_000, &plan, true);
        assert_eq!(lines.len(), HEAD + END + 2);
        assert_eq!(lines[HEAD], Line::Gap { lines: 700 });
        assert_eq!(lines[HEAD + 1], Line::Brief { bytes: 1 });
        let Line::Item(last) = &lines[lines.len() - 1] else { panic!("no item") };
        assert_eq!(last.text.as_deref(), Some("turn 999"));
        let mut room = 3;
        let body = body(1);
        let view = wire::read(body.as_bytes(), Dialect::Chat).expect("a body");
        assert_eq!(text(&view.items[0], &mut room).as_deref(), Some("tur…"));
        assert_eq!((room, text(&view.items[0], &mut room)), (0, None));
    }
}
