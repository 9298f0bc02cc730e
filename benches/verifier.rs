//! What the evidence index and the verifier cost: microseconds per KB of tool results and per fact.
//!
//! `cargo bench --bench verifier` prints a table. For instructions instead of time:
//! `valgrind --tool=callgrind target/release/deps/verifier-* once base|index|verify`.

#![expect(clippy::print_stdout, reason = "the table is what it is for")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use seam::engine::handoff::contract::{Claim, Source, Value};
use seam::engine::handoff::evidence::{Evidence, Happening};
use seam::engine::handoff::freshness::Freshness;
use seam::engine::handoff::verify::verify;
use seam::engine::time::Timestamp;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let once = arguments.iter().position(|argument| argument == "once");
    if let Some(at) = once {
        let run = run(200, 8);
        println!("{} bytes of results, 200 facts", bytes(&run));
        let what = arguments.get(at + 1).map_or("", String::as_str);
        if what == "index" || what == "verify" {
            let evidence = index(&run);
            if what == "verify" {
                black_box(check(&evidence, 200, 200, 8));
            }
        }
        return;
    }
    println!("{:>8} {:>8} {:>9} {:>12} {:>12}", "results", "facts", "KB", "us per KB", "us per fact");
    for (results, facts, items) in
        [(10, 50, 8), (100, 500, 8), (1000, 500, 8), (1000, 2000, 8), (4000, 2000, 8), (100, 500, 200)]
    {
        measure(results, facts, items);
    }
    println!("\n{:<28} {:>9} {:>12}", "kind of result", "KB", "us per KB");
    for (name, run) in kinds() {
        let kilobytes = bytes(&run) as f64 / 1024.0;
        let time = fastest(|| {
            black_box(index(&run));
        });
        println!("{name:<28} {kilobytes:>9.0} {:>12.2}", time * 1e6 / kilobytes);
    }
    println!();
    for (name, text) in adversarial() {
        let start = Instant::now();
        let call =
            Happening::Call { id: "c", name: "read", arguments: "{}", result: Some(&text), as_of: None };
        let evidence = Evidence::index([call], true);
        let indexed = start.elapsed();
        let start = Instant::now();
        let claims = (0..100).map(|n| claim(&format!("item.{n}.price"), "1", "c")).collect();
        let facts = verify(claims, &evidence, &Freshness::default(), Timestamp(0));
        println!(
            "{name:<28} {:>9} bytes: index {indexed:?}, {} facts {:?}",
            text.len(),
            facts.len(),
            start.elapsed()
        );
    }
}

fn measure(results: usize, facts: usize, items: usize) {
    let run = run(results, items);
    let kilobytes = bytes(&run) as f64 / 1024.0;
    let index_time = fastest(|| {
        black_box(index(&run));
    });
    let evidence = index(&run);
    let verify_time = fastest(|| {
        black_box(check(&evidence, facts, results, items));
    });
    println!(
        "{results:>8} {facts:>8} {kilobytes:>9.0} {:>12.2} {:>12.2}",
        index_time * 1e6 / kilobytes,
        verify_time * 1e6 / facts as f64
    );
}

fn fastest(mut work: impl FnMut()) -> f64 {
    (0..40)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

type Call = (String, String, String);

/// Lookups of loans with items, each record of its own.
fn run(results: usize, items: usize) -> Vec<Call> {
    (0..results)
        .map(|n| {
            let mut text = format!(
                r##"{{"loan_id":"#L{n:06}","member_id":"ada_obi_{n:04}","address":{{"street":"{n} Elm Lane","town":"Kell","postcode":"{:05}"}},"items":["##,
                n * 7 % 99_999
            );
            for item in 0..items {
                let comma = if item == 0 { "" } else { "," };
                let _ = write!(
                    text,
                    r#"{comma}{{"title":"The Long Winter {item}","item_id":"{:010}","price":{}.{:02},"options":{{"binding":"hard","size":"A5"}}}}"#,
                    n * 1000 + item,
                    item * 3 + n % 50,
                    n % 100
                );
            }
            text.push_str(r#"],"status":"open","created_at":"2031-02-03T04:05:06"}"#);
            (format!("call_{n:06}"), format!(r##"{{"loan_id":"#L{n:06}"}}"##), text)
        })
        .collect()
}

fn bytes(run: &[Call]) -> usize {
    run.iter().map(|(_, _, result)| result.len()).sum()
}

fn index(run: &[Call]) -> Evidence {
    let happenings = run.iter().map(|(id, arguments, result)| Happening::Call {
        id,
        name: "get_loan_details",
        arguments,
        result: Some(result),
        as_of: None,
    });
    Evidence::index(happenings, true)
}

/// Facts of every kind: true, rewritten, of another record, absent, fabricated.
fn check(evidence: &Evidence, facts: usize, results: usize, items: usize) -> usize {
    let claims = (0..facts)
        .map(|fact| {
            let n = fact * 31 % results;
            let item = fact % items;
            let price = format!("{}.{:02}", item * 3 + n % 50, n % 100);
            let key = format!("loan.#L{n:06}.item.{:010}.price", n * 1000 + item);
            let cited = format!("call_{n:06}");
            match fact % 6 {
                0 | 1 => claim(&key, &price, &cited),
                2 => claim(&key, &format!("${price}"), &cited),
                3 => claim(&format!("status of loan #L{n:06}"), "open", &cited),
                4 => claim(&key, "99999.5", &cited),
                _ => claim(&key, &price, "call_none"),
            }
        })
        .collect();
    verify(claims, evidence, &Freshness::default(), Timestamp(0))
        .iter()
        .filter(|fact| fact.outcome.holds())
        .count()
}

fn claim(key: &str, value: &str, evidence: &str) -> Claim {
    Claim {
        key: Some(key.to_owned()),
        value: Value { text: value.to_owned(), quoted: true },
        source: Some(Source::ToolResult),
        evidence: Some(evidence.to_owned()),
        ..Claim::default()
    }
}

/// Results as tools print them, some hundred KB of each kind.
fn kinds() -> Vec<(&'static str, Vec<Call>)> {
    let of = |results: usize, print: fn(usize) -> String| -> Vec<Call> {
        (0..results).map(|n| (format!("call_{n}"), format!(r##"{{"loan_id":"#L{n}"}}"##), print(n))).collect()
    };
    vec![
        ("JSON records", run(300, 8)),
        ("JSON records, one each", run(1500, 1)),
        ("nested JSON", of(300, nested)),
        ("lists of texts and numbers", of(300, lists)),
        (
            "JSON inside text",
            of(300, |n| serde_json::json!([{ "type": "text", "text": nested(n) }]).to_string()),
        ),
        ("printed objects", of(300, printed)),
        ("sentences", of(300, sentences)),
        ("key: value lines", of(300, lines)),
        ("tables", of(300, table)),
    ]
}

fn joined(range: std::ops::Range<usize>, part: impl Fn(usize) -> String, between: &str) -> String {
    range.map(part).collect::<Vec<_>>().join(between)
}

fn nested(n: usize) -> String {
    let shelf = |at: usize| {
        format!(
            r#""{n}{at:04}": {{"shelf_id": "S-{at}", "room": {{"floor": {at}, "open": true, "note": null}}, "copies": {{"held": {}, "lent": {at}}}}}"#,
            n % 17
        )
    };
    format!(r#"{{"branch": {{"name": "Kell", "shelves": {{{}}}}}}}"#, joined(0..10, shelf, ", "))
}

fn lists(n: usize) -> String {
    let texts = joined(0..40, |at| format!(r#""title {at} of {n}""#), ", ");
    let numbers = joined(0..80, |at| format!("{}.{at}", at * n), ", ");
    format!(r#"{{"titles": [{texts}], "prices": [{numbers}]}}"#)
}

fn printed(n: usize) -> String {
    let loan = |at: usize| {
        format!("Loan(loan_id='L{n}-{at}', title='The Long Winter', copies={at}, due=None, open=True)")
    };
    format!("[{}]", joined(0..12, loan, ", "))
}

fn sentences(n: usize) -> String {
    let sentence = |at: usize| {
        format!(
            "The loan L{n}-{at} is due on 3 May, and the reader, who has {at} others, was told so by letter."
        )
    };
    joined(0..12, sentence, " ")
}

fn lines(n: usize) -> String {
    joined(
        0..12,
        |at| format!("Loan: L{n}-{at}\nTitle: The Long Winter\nDue date: 2031-02-{at:02}\nOpen: yes\n"),
        "\n",
    )
}

fn table(n: usize) -> String {
    let row = |at: usize| format!("| L{n}-{at} | The Long Winter | 2031-02-{at:02} | {at}.50 |");
    format!("| loan id | title | due date | price |\n|---|---|---|---|\n{}", joined(0..20, row, "\n"))
}

fn adversarial() -> Vec<(&'static str, String)> {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let objects = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    let leaves = format!("[{}1]", "1,".repeat(1_000_000));
    let keys = (0..200_000).fold(String::from("{"), |mut text, n| {
        let _ = write!(text, r#""k{n}":{n},"#);
        text
    }) + "\"z\":1}";
    let prose = "The price of item 7 is 1 and the price of item 8 is 2. ".repeat(100_000);
    let quotes = "\"".repeat(1_000_000);
    let records = (0..50_000).fold(String::from("["), |mut text, n| {
        let _ = write!(text, r#"{{"item_id":"{n}","price":1}},"#);
        text
    }) + "{}]";
    let nested = (0..12)
        .fold(String::from(r#"{"price":1}"#), |inner, _| serde_json::json!({ "text": inner }).to_string());
    vec![
        ("lists 10^5 deep", deep),
        ("objects 10^5 deep", objects),
        ("10^6 values", leaves),
        ("200,000 keys", keys),
        ("5 MB of prose", prose),
        ("10^6 quotes", quotes),
        ("50,000 records", records),
        ("text in text, 12 times", nested),
        ("braces in prose", "{ [ ".repeat(250_000)),
        ("key: value lines", "price: 1\n".repeat(200_000)),
    ]
}
