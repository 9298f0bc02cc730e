//! A made-up run: tool calls whose results are known value by value.

use serde_json::{Map, Value, json};

/// A small deterministic random source.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }

    pub(crate) fn digits(&mut self, count: usize) -> String {
        (0..count).map(|_| char::from(b'0' + self.roll(10) as u8)).collect()
    }

    pub(crate) fn day(&mut self) -> String {
        format!("{}-{:02}-{:02}", 2030 + self.roll(3), 1 + self.roll(12), 1 + self.roll(28))
    }

    pub(crate) fn time(&mut self) -> String {
        format!("{:02}:{:02}:00", self.roll(24), [0, 15, 30, 45][self.roll(4)])
    }

    pub(crate) fn money(&mut self) -> Value {
        let cents = 100 + self.roll(400_000);
        let text = match self.roll(3) {
            0 => format!("{}", cents / 100),
            1 => format!("{}.{:02}", cents / 100, cents % 100),
            _ => format!("{}.{}", cents / 100, 1 + cents % 9),
        };
        serde_json::from_str(&text).unwrap()
    }
}

/// A part of a result.
pub(crate) enum Part {
    /// A value.
    Leaf(Value),
    /// An object that is no record of its own.
    Group(Vec<(&'static str, Part)>),
    /// A list of plain values.
    Plain(Vec<Value>),
    /// A list of records.
    List(Vec<Record>),
    /// A map from names to records.
    Map(Vec<Record>),
}

/// A thing that has values.
pub(crate) struct Record {
    /// What kind of thing a sender calls it.
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) fields: Vec<(&'static str, Part)>,
}

/// A value that is true: where it stands and what of.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    pub(crate) call: usize,
    /// From the outermost record in: kind and name.
    pub(crate) chain: Vec<(&'static str, String)>,
    /// The keys from the innermost record.
    pub(crate) path: Vec<&'static str>,
    pub(crate) value: Value,
}

impl Truth {
    /// Whether the other is a value of the same record under the same key; one of them may name fewer of
    /// the records around it.
    pub(crate) fn is_same(&self, other: &Truth) -> bool {
        self.path == other.path && self.is_same_record(other)
    }

    pub(crate) fn is_same_record(&self, other: &Truth) -> bool {
        !self.chain.is_empty()
            && !other.chain.is_empty()
            && self.chain.iter().rev().zip(other.chain.iter().rev()).all(|(a, b)| a == b)
    }
}

pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) tool: &'static str,
    pub(crate) arguments: String,
    pub(crate) result: String,
}

pub(crate) struct World {
    dice: Dice,
    pub(crate) calls: Vec<Call>,
    pub(crate) truths: Vec<Truth>,
}

impl World {
    /// A run in which nothing has happened yet.
    pub(crate) fn new(seed: usize) -> World {
        World { dice: Dice::new(seed as u64), calls: Vec::new(), truths: Vec::new() }
    }

    /// Adds a call whose result is a record, named in it or only by the arguments.
    pub(crate) fn record(&mut self, tool: &'static str, arguments: &Value, record: &Record) {
        let mut body = Map::new();
        self.fields(&[(record.kind, record.name.clone())], &mut Vec::new(), &record.fields, &mut body);
        self.add(tool, arguments, &Value::Object(body));
    }

    /// Adds a call whose result is a list of records of something that the arguments name.
    pub(crate) fn list(
        &mut self,
        tool: &'static str,
        arguments: &Value,
        of: &[(&'static str, String)],
        wrapper: Option<&str>,
        records: &[Record],
    ) {
        let list: Vec<Value> = records.iter().map(|record| self.nested(of, record)).collect();
        let result = match wrapper {
            Some(key) => json!({ key: list }),
            None => Value::Array(list),
        };
        self.add(tool, arguments, &result);
    }

    /// Adds a call that returns one bare value.
    pub(crate) fn bare(
        &mut self,
        tool: &'static str,
        arguments: &Value,
        of: &[(&'static str, String)],
        key: &'static str,
        value: Value,
    ) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.truths.push(Truth { call: self.calls.len(), chain: of.to_vec(), path: vec![key], value });
        let id = id(&mut self.dice);
        self.calls.push(Call { id, tool, arguments: arguments.to_string(), result: text });
    }

    fn add(&mut self, tool: &'static str, arguments: &Value, result: &Value) {
        let result = match self.dice.roll(12) {
            0 => json!({ "result": result }).to_string(),
            1 => json!({ "content": [{ "type": "text", "text": result.to_string() }], "isError": false })
                .to_string(),
            2 => python(result),
            3 => serde_json::to_string_pretty(result).unwrap(),
            _ => result.to_string(),
        };
        self.calls.push(Call { id: id(&mut self.dice), tool, arguments: arguments.to_string(), result });
    }

    fn nested(&mut self, of: &[(&'static str, String)], record: &Record) -> Value {
        let mut chain = of.to_vec();
        chain.push((record.kind, record.name.clone()));
        let mut body = Map::new();
        self.fields(&chain, &mut Vec::new(), &record.fields, &mut body);
        Value::Object(body)
    }

    fn fields(
        &mut self,
        chain: &[(&'static str, String)],
        path: &mut Vec<&'static str>,
        fields: &[(&'static str, Part)],
        body: &mut Map<String, Value>,
    ) {
        for (key, part) in fields {
            path.push(key);
            let value = match part {
                Part::Leaf(value) => {
                    self.truth(chain, path, value.clone());
                    value.clone()
                }
                Part::Plain(values) => {
                    self.truth(chain, path, Value::Array(values.clone()));
                    Value::Array(values.clone())
                }
                Part::Group(fields) => {
                    let mut inner = Map::new();
                    self.fields(chain, path, fields, &mut inner);
                    Value::Object(inner)
                }
                Part::List(records) => records.iter().map(|record| self.nested(chain, record)).collect(),
                Part::Map(records) => {
                    let entries =
                        records.iter().map(|record| (record.name.clone(), self.nested(chain, record)));
                    Value::Object(entries.collect())
                }
            };
            body.insert((*key).to_owned(), value);
            path.pop();
        }
    }

    fn truth(&mut self, chain: &[(&'static str, String)], path: &[&'static str], value: Value) {
        let truth = Truth { call: self.calls.len(), chain: chain.to_vec(), path: path.to_vec(), value };
        self.truths.push(truth);
    }
}

fn id(dice: &mut Dice) -> String {
    format!(
        "call_{}",
        (0..12).map(|_| char::from(b"abcdefghkmnpqrstwxyz23456789"[dice.roll(28)])).collect::<String>()
    )
}

/// A value as Python prints it.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        Value::Array(values) => format!("[{}]", values.iter().map(python).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("'{key}': {}", python(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}
