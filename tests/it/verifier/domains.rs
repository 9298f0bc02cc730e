//! Runs of four domains: a clinic, a server room, a library, and a bank.

use serde_json::{Value, json};

use super::world::{Dice, Part, Record, World};

pub(crate) const ALL: [fn(&mut Dice) -> World; 4] = [clinic, servers, library, bank];

const FIRST: [&str; 8] = ["Ada", "Bo", "Chidi", "Dana", "Elif", "Femi", "Greta", "Hugo"];
const LAST: [&str; 8] = ["Obi", "Lund", "Okoro", "Silva", "Kaya", "Ade", "Weiss", "Marin"];

fn leaf(value: impl Into<Value>) -> Part {
    Part::Leaf(value.into())
}

fn text(dice: &mut Dice, from: &[&str]) -> Part {
    leaf(*dice.pick(from))
}

fn distinct<'a>(dice: &mut Dice, from: &[&'a str], count: usize) -> Vec<&'a str> {
    let start = dice.roll(from.len());
    (0..count).map(|step| from[(start + step) % from.len()]).collect()
}

/// A patient named by the arguments alone, visits with a doctor inside, bare answers about beds.
fn clinic(dice: &mut Dice) -> World {
    let mut world = World::new(dice.roll(1 << 30));
    for _ in 0..2 {
        let patient = format!("P-{}", dice.digits(5));
        let visits: Vec<String> = (0..3).map(|_| format!("V{}", dice.digits(6))).collect();
        let contacts = distinct(dice, &FIRST, 2);
        let drugs = distinct(dice, &["ibuprofen", "metformin", "ramipril", "HbX-12"], 2);
        let fields = vec![
            (
                "name",
                Part::Group(vec![("first", leaf(*dice.pick(&FIRST))), ("last", leaf(*dice.pick(&LAST)))]),
            ),
            ("birthDate", leaf(dice.day())),
            ("bloodGroup", text(dice, &["A+", "B-", "0+"])),
            ("smoker", leaf(dice.roll(2) == 0)),
            (
                "insurance",
                Part::Group(vec![
                    ("provider", text(dice, &["north_mutual", "CityCare"])),
                    ("policyNumber", leaf(dice.digits(9))),
                    ("copay", leaf(dice.money())),
                ]),
            ),
            (
                "allergies",
                Part::Plain(
                    distinct(dice, &["latex", "pollen", "nuts"], 2).into_iter().map(Value::from).collect(),
                ),
            ),
            (
                "contacts",
                Part::List(
                    contacts
                        .iter()
                        .map(|first| {
                            let last = *dice.pick(&LAST);
                            Record {
                                kind: "contact",
                                name: format!("{first} {last}"),
                                fields: vec![
                                    ("firstName", leaf(*first)),
                                    ("lastName", leaf(last)),
                                    ("phone", leaf(format!("+49 30 {}", dice.digits(7)))),
                                    ("relation", text(dice, &["sister", "father"])),
                                ],
                            }
                        })
                        .collect(),
                ),
            ),
            (
                "medication",
                Part::List(
                    drugs
                        .iter()
                        .map(|drug| Record {
                            kind: "medication",
                            name: (*drug).to_owned(),
                            fields: vec![
                                ("drug", leaf(*drug)),
                                ("dose_mg", leaf(5 * (1 + dice.roll(40)))),
                                ("since", leaf(dice.day())),
                            ],
                        })
                        .collect(),
                ),
            ),
        ];
        world.record(
            "fetchPatient",
            &json!({ "patientId": patient }),
            &Record { kind: "patient", name: patient.clone(), fields },
        );
        let list: Vec<Record> = visits.iter().map(|visit| visit_record(dice, visit)).collect();
        world.list(
            "list_visits",
            &json!({ "patient_id": patient }),
            &[("patient", patient.clone())],
            Some("visits"),
            &list,
        );
        let visit = visits[0].clone();
        let again = visit_record(dice, &visit);
        world.record("reschedule_visit", &json!({ "visit_id": visit, "starts_at": dice.day() }), &again);
        for ward in distinct(dice, &["W1", "W2", "ICU-3"], 2) {
            let day = dice.day();
            let of = [("ward", format!("{ward} on {day}"))];
            let state = *dice.pick(&["free", "full", "one bed left"]);
            world.bare(
                "check_ward_status",
                &json!({ "ward": ward, "date": day }),
                &of,
                "status",
                json!(state),
            );
        }
    }
    world
}

fn visit_record(dice: &mut Dice, visit: &str) -> Record {
    Record {
        kind: "visit",
        name: visit.to_owned(),
        fields: vec![
            ("visit_id", leaf(visit)),
            ("status", text(dice, &["booked", "moved", "checked_in", "done"])),
            ("startsAt", leaf(format!("{}T{}", dice.day(), dice.time()))),
            ("room", leaf(dice.digits(3))),
            (
                "doctor",
                Part::Group(vec![
                    ("name", leaf(format!("Dr. {}", dice.pick(&LAST)))),
                    ("fee", leaf(dice.money())),
                ]),
            ),
            ("telehealth", leaf(dice.roll(2) == 0)),
        ],
    }
}

/// Hosts in a rack, disks inside hosts, a map of services, bare metrics.
fn servers(dice: &mut Dice) -> World {
    let mut world = World::new(dice.roll(1 << 30));
    for _ in 0..2 {
        let rack = format!("r{}-{}", dice.digits(2), dice.digits(2));
        let hosts: Vec<String> = (0..3)
            .map(|n| format!("{}-{}{n}.lab", dice.pick(&["db", "web", "cache"]), dice.digits(2)))
            .collect();
        let list: Vec<Record> = hosts.iter().map(|host| host_record(dice, host)).collect();
        world.list("list_hosts", &json!({ "rack": rack }), &[("rack", rack.clone())], Some("hosts"), &list);
        let host = hosts[1].clone();
        world.record("restart_host", &json!({ "hostname": host, "force": true }), &host_record(dice, &host));
        let services = distinct(dice, &["auth", "search", "mail-2", "billing"], 3);
        let fields = vec![
            ("cluster_id", leaf(format!("cl_{rack}"))),
            (
                "services",
                Part::Map(
                    services
                        .iter()
                        .map(|name| Record {
                            kind: "service",
                            name: (*name).to_owned(),
                            fields: vec![
                                (
                                    "version",
                                    leaf(format!("{}.{}.{}", dice.roll(5), dice.roll(20), dice.roll(9))),
                                ),
                                ("replicas", leaf(1 + dice.roll(9))),
                                ("healthy", leaf(dice.roll(2) == 0)),
                                ("last_deploy", leaf(format!("{}T{}Z", dice.day(), dice.time()))),
                            ],
                        })
                        .collect(),
                ),
            ),
        ];
        let cluster = format!("cl_{rack}");
        world.record(
            "describe_cluster",
            &json!({ "id": cluster }),
            &Record { kind: "cluster", name: cluster.clone(), fields },
        );
        for host in &hosts {
            let load = json!((dice.roll(400) as f64) / 100.0);
            world.bare("get_cpu_load", &json!({ "host": host }), &[("host", host.clone())], "cpu load", load);
        }
    }
    world
}

fn host_record(dice: &mut Dice, host: &str) -> Record {
    Record {
        kind: "host",
        name: host.to_owned(),
        fields: vec![
            ("hostname", leaf(host)),
            ("ip", leaf(format!("10.{}.{}.{}", dice.roll(256), dice.roll(256), dice.roll(256)))),
            ("state", text(dice, &["running", "stopped", "draining"])),
            (
                "cpu",
                Part::Group(vec![
                    ("cores", leaf(1 + dice.roll(64))),
                    ("model", text(dice, &["Epyc 9354", "Xeon-6 6780E"])),
                ]),
            ),
            ("memory_gb", leaf(8 << dice.roll(6))),
            (
                "tags",
                Part::Plain(
                    distinct(dice, &["prod", "eu", "ssd", "old"], 3).into_iter().map(Value::from).collect(),
                ),
            ),
            (
                "disks",
                Part::List(
                    ["sda1", "sdb1", "nvme0"]
                        .iter()
                        .map(|dev| Record {
                            kind: "disk",
                            name: (*dev).to_owned(),
                            fields: vec![
                                ("dev", leaf(*dev)),
                                ("size_gb", leaf(100 + dice.roll(4000))),
                                ("used_percent", leaf(dice.roll(100))),
                                ("failed", leaf(dice.roll(2) == 0)),
                            ],
                        })
                        .collect(),
                ),
            ),
        ],
    }
}

/// Members named by a card, loans as a map, titles in a catalogue by number.
fn library(dice: &mut Dice) -> World {
    let mut world = World::new(dice.roll(1 << 30));
    for _ in 0..2 {
        let card = dice.digits(8);
        let loans: Vec<String> = (0..3).map(|_| format!("#L{}", dice.digits(5))).collect();
        let member = member_record(dice, &card, &loans);
        world.record("get_member", &json!({ "card_number": card }), &member);
        let again = member_record(dice, &card, &loans);
        world.record("pay_fine", &json!({ "card_number": card, "amount": 2 }), &again);
        let books: Vec<Record> = (0..4).map(|_| book_record(dice)).collect();
        let query = *dice.pick(&["moss", "rivers"]);
        world.list("search_catalogue", &json!({ "query": query, "branch": "Northside" }), &[], None, &books);
        let isbn = books[2].name.clone();
        world.record(
            "reserve_book",
            &json!({ "isbn": isbn, "card_number": card }),
            &Record { kind: "book", name: isbn.clone(), fields: book_fields(dice, &isbn) },
        );
    }
    world
}

fn member_record(dice: &mut Dice, card: &str, loans: &[String]) -> Record {
    Record {
        kind: "member",
        name: card.to_owned(),
        fields: vec![
            ("full_name", leaf(format!("{} {}", dice.pick(&FIRST), dice.pick(&LAST)))),
            (
                "email",
                leaf(format!("{}{}@library.example", dice.pick(&FIRST).to_lowercase(), dice.digits(3))),
            ),
            ("fines_due", leaf(dice.money())),
            ("active", leaf(dice.roll(2) == 0)),
            (
                "address",
                Part::Group(vec![
                    ("street", leaf(format!("{} {} Lane", 1 + dice.roll(900), dice.pick(&LAST)))),
                    ("postcode", leaf(dice.digits(5))),
                    ("town", text(dice, &["Ostby", "New Harbour", "Kell"])),
                ]),
            ),
            (
                "loans",
                Part::Map(
                    loans
                        .iter()
                        .map(|loan| Record {
                            kind: "loan",
                            name: loan.clone(),
                            fields: vec![
                                (
                                    "title",
                                    leaf(format!(
                                        "The {} {}",
                                        dice.pick(&["Quiet", "Long", "Red"]),
                                        dice.pick(&["River", "Winter", "Moss"])
                                    )),
                                ),
                                ("due_on", leaf(dice.day())),
                                ("renewals", leaf(dice.roll(5))),
                            ],
                        })
                        .collect(),
                ),
            ),
            ("holds", Part::Plain((0..3).map(|_| json!(format!("H{}", dice.digits(4)))).collect())),
        ],
    }
}

fn book_record(dice: &mut Dice) -> Record {
    let isbn = format!("978-{}", dice.digits(10));
    Record { kind: "book", name: isbn.clone(), fields: book_fields(dice, &isbn) }
}

fn book_fields(dice: &mut Dice, isbn: &str) -> Vec<(&'static str, Part)> {
    vec![
        ("isbn", leaf(isbn)),
        ("title", leaf(format!("{} {}", dice.pick(&["Moss", "Water", "Stone"]), dice.digits(3)))),
        ("copies_total", leaf(1 + dice.roll(9))),
        ("copies_in", leaf(dice.roll(9))),
        ("shelf", text(dice, &["open_stack", "closed_stack", "on order"])),
        ("price", leaf(dice.money())),
    ]
}

/// Accounts with holders, transactions by reference, rates by pair, closing and reopening.
fn bank(dice: &mut Dice) -> World {
    let mut world = World::new(dice.roll(1 << 30));
    for _ in 0..2 {
        let customer = format!(
            "{}_{}_{}",
            dice.pick(&FIRST).to_lowercase(),
            dice.pick(&LAST).to_lowercase(),
            dice.digits(4)
        );
        let accounts: Vec<String> = (0..2).map(|_| format!("DE{}", dice.digits(18))).collect();
        let list: Vec<Record> = accounts.iter().map(|account| account_record(dice, account)).collect();
        world.list(
            "get_customer_accounts",
            &json!({ "customer_id": customer }),
            &[("customer", customer.clone())],
            None,
            &list,
        );
        let account = accounts[0].clone();
        world.record(
            "freeze_account",
            &json!({ "iban": account, "reason": "lost card" }),
            &account_record(dice, &account),
        );
        let transfers: Vec<Record> = (0..4)
            .map(|_| {
                let reference = format!("TX{}", dice.digits(7));
                Record {
                    kind: "transaction",
                    name: reference.clone(),
                    fields: vec![
                        ("reference", leaf(reference)),
                        ("amount", leaf(dice.money())),
                        ("booked_at", leaf(format!("{}T{}", dice.day(), dice.time()))),
                        ("counterparty", leaf(format!("{} {}", dice.pick(&FIRST), dice.pick(&LAST)))),
                        ("settled", text(dice, &["yes", "no"])),
                    ],
                }
            })
            .collect();
        world.list(
            "list_transactions",
            &json!({ "iban": account }),
            &[("account", account.clone())],
            Some("transactions"),
            &transfers,
        );
        world.bare(
            "find_customer_id_by_phone",
            &json!({ "phone": dice.digits(9) }),
            &[],
            "customer_id",
            json!(customer),
        );
        for pair in ["EUR/CHF", "EUR/SEK"] {
            let rate = json!((9000 + dice.roll(3000)) as f64 / 10_000.0);
            world.bare(
                "exchange_rate",
                &json!({ "pair": pair }),
                &[("pair", pair.to_owned())],
                "exchange rate",
                rate,
            );
        }
    }
    world
}

fn account_record(dice: &mut Dice, account: &str) -> Record {
    Record {
        kind: "account",
        name: account.to_owned(),
        fields: vec![
            ("iban", leaf(account)),
            ("status", text(dice, &["open", "frozen", "closing_soon"])),
            ("balance", leaf(dice.money())),
            ("overdraft_limit", leaf(dice.money())),
            ("opened", leaf(dice.day())),
            (
                "card",
                Part::Group(vec![
                    ("last_four", leaf(dice.digits(4))),
                    ("network", text(dice, &["visa", "maestro"])),
                    ("contactless", leaf(dice.roll(2) == 0)),
                ]),
            ),
        ],
    }
}
