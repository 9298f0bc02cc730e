//! Facts of every label about a made-up run, and how they are judged.

use seam::engine::handoff::contract::{self, Claim, Source};
use seam::engine::handoff::evidence::{Evidence, Happening};
use seam::engine::handoff::freshness::Freshness;
use seam::engine::handoff::verify::verify;
use seam::engine::time::Timestamp;
use serde_json::{Value, json};

use super::Score;
use super::world::{Dice, Truth, World};

struct Fact {
    label: &'static str,
    key: String,
    value: Value,
    evidence: String,
    accept: bool,
}

/// Makes facts of every label and judges them.
pub(crate) fn judge(world: &World, seed: u64, score: &mut Score) {
    let run = world.calls.iter().map(|call| Happening::Call {
        id: &call.id,
        name: call.tool,
        arguments: &call.arguments,
        result: Some(&call.result),
        as_of: None,
    });
    let evidence = Evidence::index(run, true);
    for fact in facts(world, &mut Dice::new(seed ^ 0x5eed)) {
        let (text, quoted) = match &fact.value {
            Value::String(text) => (text.clone(), true),
            other => (other.to_string(), false),
        };
        let claim = Claim {
            key: Some(fact.key.clone()),
            value: contract::Value { text, quoted },
            source: Some(Source::ToolResult),
            evidence: Some(fact.evidence.clone()),
            ..Claim::default()
        };
        let found = verify(vec![claim], &evidence, &Freshness::default(), Timestamp(0)).remove(0);
        score.add(fact.label, found.outcome.holds() == fact.accept, || {
            let cited = world.calls.iter().find(|call| call.id == fact.evidence);
            let cited = cited.map_or(String::new(), |call| {
                format!(
                    "{} {} => {}",
                    call.tool,
                    call.arguments,
                    call.result.chars().take(700).collect::<String>()
                )
            });
            format!("{} = {} | {} | {} | {cited}", fact.key, fact.value, found.outcome.name(), found.why)
        });
    }
}

fn facts(world: &World, dice: &mut Dice) -> Vec<Fact> {
    let mut facts = Vec::new();
    for (index, truth) in world.truths.iter().enumerate() {
        let evidence = world.calls[truth.call].id.clone();
        let key = key(world, truth, dice);
        let newer = world.truths[index + 1..]
            .iter()
            .rev()
            .find(|other| other.is_same(truth) && other.call > truth.call);
        let fact = |label, value: Value, evidence: String, accept| Fact {
            label,
            key: key.clone(),
            value,
            evidence,
            accept,
        };
        match newer {
            Some(newer) if newer.value != truth.value => {
                facts.push(fact("stale", truth.value.clone(), evidence, false));
                continue;
            }
            _ => {}
        }
        match dice.roll(6) {
            0 | 1 => facts.push(fact("true", truth.value.clone(), evidence.clone(), true)),
            2 | 3 => {
                if let Some(value) = reformatted(&truth.value, dice) {
                    facts.push(fact("true_reformatted", value, evidence.clone(), true));
                }
            }
            4 => facts.push(fact(
                "fabricated_call",
                truth.value.clone(),
                fabricated(world, &evidence, dice),
                false,
            )),
            _ => {
                if let Some(value) = perturbed(world, truth, dice) {
                    facts.push(fact("value_absent", value, evidence.clone(), false));
                }
            }
        }
        facts.extend(misattributed(world, index, &key, dice));
    }
    facts
}

/// The truth's key in one of the styles: dotted, snake, words, or the leaf alone where it is the only one.
fn key(world: &World, truth: &Truth, dice: &mut Dice) -> String {
    let path = truth.path.join(".");
    let chain = &truth.chain;
    let last = truth.path[truth.path.len() - 1];
    let same_leaf = world
        .truths
        .iter()
        .filter(|other| other.call == truth.call && other.path.last() == truth.path.last())
        .count();
    let same_path = |other: &&Truth| {
        other.call == truth.call && other.chain == *chain && other.path.last() == truth.path.last()
    };
    let alone = world.truths.iter().filter(same_path).count() == 1;
    match dice.roll(4) {
        0 if same_leaf == 1 => last.to_owned(),
        1 if alone => {
            let of: String =
                chain.iter().rev().fold(String::new(), |of, (kind, name)| of + " of " + kind + " " + name);
            format!("{}{of}", words(last))
        }
        2 => {
            let chain: String =
                chain.iter().fold(String::new(), |chain, (kind, name)| chain + kind + "_" + name + "_");
            format!("{chain}{}", truth.path.join("_"))
                .replace(['.', '-', ' ', '#', '/'], "_")
                .replace("__", "_")
        }
        _ => {
            let chain: String =
                chain.iter().fold(String::new(), |chain, (kind, name)| chain + kind + "." + name + ".");
            format!("{chain}{path}")
        }
    }
}

fn words(key: &str) -> String {
    let mut out = String::new();
    for c in key.chars() {
        if c == '_' {
            out.push(' ');
        } else if c.is_uppercase() {
            out.push(' ');
            out.extend(c.to_lowercase());
        } else {
            out.push(c);
        }
    }
    out
}

/// Values that stand in a cited result, under another key or record.
fn misattributed(world: &World, index: usize, key: &str, dice: &mut Dice) -> Option<Fact> {
    let truth = &world.truths[index];
    if key == truth.path[truth.path.len() - 1] {
        return None;
    }
    let fact = |value: Value, call: usize| Fact {
        label: "misattributed",
        key: key.to_owned(),
        value,
        evidence: world.calls[call].id.clone(),
        accept: false,
    };
    let others: Vec<&Truth> = match dice.roll(3) {
        // The same key of another record of the same result.
        0 => world
            .truths
            .iter()
            .filter(|other| {
                other.call == truth.call
                    && other.path == truth.path
                    && !other.is_same_record(truth)
                    && differ(&other.value, &truth.value)
            })
            .collect(),
        // Another key of the same record.
        1 => world
            .truths
            .iter()
            .filter(|other| {
                other.call == truth.call
                    && other.chain == truth.chain
                    && other.path.last() != truth.path.last()
                    && !world.truths.iter().any(|own| {
                        own.call == truth.call
                            && own.chain == truth.chain
                            && own.path.last() == truth.path.last()
                            && own.value == other.value
                    })
                    && differ(&other.value, &truth.value)
            })
            .collect(),
        // The right value, of a call that tells of another record that has the same.
        _ => world
            .truths
            .iter()
            .filter(|other| {
                other.path == truth.path
                && !other.is_same_record(truth)
                && other.call != truth.call
                && other.value == truth.value
                && !world.truths.iter().any(|mine| mine.call == other.call && mine.is_same_record(truth))
                && !truth.chain.is_empty()
                // It tells nothing of the record that is named.
                && !world.calls[other.call].arguments.contains(truth.chain[truth.chain.len() - 1].1.as_str())
            })
            .collect(),
    };
    (!others.is_empty()).then(|| {
        let other = *dice.pick(&others);
        fact(other.value.clone(), other.call)
    })
}

fn differ(a: &Value, b: &Value) -> bool {
    let squeezed = |value: &Value| value.to_string().to_lowercase().replace(['"', ' ', '_', '-'], "");
    squeezed(a) != squeezed(b)
}

fn fabricated(world: &World, evidence: &str, dice: &mut Dice) -> String {
    match dice.roll(4) {
        0 => format!("call_{}", dice.digits(12)),
        1 => {
            let mut near: Vec<char> = evidence.chars().collect();
            let last = near.len() - 1;
            near[last] = if near[last] == '9' { '8' } else { '9' };
            near.into_iter().collect()
        }
        2 => world.calls[dice.roll(world.calls.len())].tool.to_owned(),
        _ => "call_1".to_owned(),
    }
}

/// A value that the cited result has not: a digit changed, or a part of it.
fn perturbed(world: &World, truth: &Truth, dice: &mut Dice) -> Option<Value> {
    let text = match &truth.value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let mut chars: Vec<char> = text.chars().collect();
    if dice.roll(2) == 0 && chars.len() > 4 {
        chars.pop();
    } else {
        let digits: Vec<usize> = (0..chars.len()).filter(|at| chars[*at].is_ascii_digit()).collect();
        let at = *digits.get(dice.roll(digits.len().max(1)))?;
        chars[at] = if chars[at] == '7' { '3' } else { '7' };
    }
    let changed: String = chars.into_iter().collect();
    let value = if truth.value.is_string() { json!(changed) } else { serde_json::from_str(&changed).ok()? };
    // Some other value of the result may be just that.
    let own = world.truths.iter().any(|other| other.call == truth.call && !differ(&other.value, &value));
    let number = |value: &Value| value.as_str().map_or_else(|| value.as_f64(), |text| text.parse().ok());
    let equal = number(&value).is_some() && number(&value) == number(&truth.value);
    (!own && !equal && changed.len() > 1 && changed != text && !text.ends_with('Z')).then_some(value)
}

/// The same value written another way.
fn reformatted(value: &Value, dice: &mut Dice) -> Option<Value> {
    Some(json!(match value {
        Value::Bool(truth) => match dice.roll(3) {
            0 => if *truth { "yes" } else { "no" }.to_owned(),
            1 => if *truth { "True" } else { "False" }.to_owned(),
            _ => if *truth { "TRUE" } else { "FALSE" }.to_owned(),
        },
        Value::Number(number) => {
            let text = number.to_string();
            let (whole, fraction) = text.split_once('.').unwrap_or((&text, "0"));
            match dice.roll(5) {
                0 => text,
                1 => format!("{whole}.{fraction:0<2}"),
                2 => format!("${}.{fraction:0<2}", grouped(whole)),
                3 => format!("EUR {whole}.{fraction:0<2}"),
                _ => format!("{}.{fraction}", grouped(whole)),
            }
        }
        Value::Array(values) => {
            let mut texts: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
            match dice.roll(3) {
                0 => texts.join(", "),
                1 => {
                    texts.reverse();
                    texts.join("; ")
                }
                _ => {
                    let last = texts.pop()?;
                    format!("{} and {last}", texts.join(", "))
                }
            }
        }
        Value::String(text) => return string(text, dice).map(Value::String),
        _ => return None,
    }))
}

fn string(text: &str, dice: &mut Dice) -> Option<String> {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let is_day = text.len() == 10 && digits == 8 && text.contains('-');
    let is_stamp = text.len() >= 19 && text.as_bytes()[10] == b'T' && digits == 14;
    if is_day || is_stamp {
        let (year, month, day) =
            (&text[..4], text[5..7].parse::<usize>().ok()?, text[8..10].parse::<usize>().ok()?);
        let name = [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ][month - 1];
        if is_stamp {
            let clock = &text[11..19];
            return Some(match dice.roll(3) {
                0 => format!("{} {clock}", &text[..10]),
                1 => format!("{} {year} {clock}", format_args!("{day} {name}")),
                _ => format!(
                    "{}T{}",
                    &text[..10],
                    if text.ends_with('Z') { clock.to_owned() } else { format!("{clock}Z") }
                ),
            });
        }
        return Some(match dice.roll(5) {
            0 => format!("{name} {day}, {year}"),
            1 => format!("{day} {} {year}", &name[..3]),
            2 => format!("{year}/{month:02}/{day:02}"),
            3 => format!("{month:02}/{day:02}/{year}"),
            _ => format!("{text}T00:00:00Z"),
        });
    }
    let other = match dice.roll(6) {
        0 => text.to_uppercase(),
        1 => text.replace('_', " "),
        2 => text.replace('-', "\u{2011}"),
        3 => text.replace(' ', "\u{a0}"),
        4 => text
            .chars()
            .map(|c| if c.is_ascii_digit() { char::from_u32(c as u32 + 0xfee0).unwrap_or(c) } else { c })
            .collect(),
        _ => format!(" {text} "),
    };
    (other != text).then_some(other)
}

fn grouped(whole: &str) -> String {
    let mut out = String::new();
    for (index, c) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}
