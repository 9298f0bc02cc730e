//! `seam check`: the settings in force, and what they mean together.

mod table;
mod warnings;

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, value_parser};

use warnings::Deployment;

use super::{Subcommand, USAGE, complain, print};
use crate::config::{self, Config, Contract, Http2, Mode, Roots, Source, Store, TraceContext, Transcript};

pub(super) const COMMAND: Subcommand = Subcommand {
    name: "check",
    about: "Check the settings, show those in force and say what they mean together",
    arguments: |command| {
        let replicas = Arg::new("replicas")
            .long("replicas")
            .value_name("N")
            .help("How many processes serve the same clients")
            .value_parser(value_parser!(u16).range(1..))
            .default_value("1");
        let rotate = Arg::new("rotate")
            .long("tokens-rotate")
            .help("Say that a client's credential changes during a conversation")
            .action(ArgAction::SetTrue);
        let strict = Arg::new("strict")
            .long("strict")
            .help("Exit with 1 if there are warnings")
            .action(ArgAction::SetTrue);
        command.arg(replicas).arg(rotate).arg(strict)
    },
    run,
};

fn run(arguments: &ArgMatches, source: &dyn Source) -> ExitCode {
    match Config::read(source) {
        Ok(config) => {
            let place = Deployment {
                replicas: arguments.get_one::<u16>("replicas").copied().unwrap_or(1).into(),
                tokens_rotate: arguments.get_flag("rotate"),
            };
            let warnings = warnings::warnings(&config, &config::shown(source), place);
            print(&report(&config, source, &warnings));
            if arguments.get_flag("strict") && !warnings.is_empty() {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            }
        }
        Err(problems) => {
            complain(&problems);
            ExitCode::from(USAGE)
        }
    }
}

fn report(config: &Config, source: &dyn Source, warnings: &[(&'static str, String)]) -> String {
    let mut text = String::from("Settings in force (* = not the default):\n\n");
    for shown in config::shown(source) {
        let mark = if shown.is_default { ' ' } else { '*' };
        let _ = writeln!(text, "{mark} {}={}", shown.name, shown.value);
    }
    text.push_str("\nTogether they mean:\n\n");
    for sentence in meaning(config) {
        let _ = writeln!(text, "- {sentence}");
    }
    text.push_str("\nWhat leads to what:\n\n");
    for (situation, result) in table::rows(config) {
        let _ = writeln!(text, "- If {situation}: {result}.");
    }
    if !warnings.is_empty() {
        text.push_str("\nWarnings:\n\n");
    }
    for (name, what) in warnings {
        let _ = writeln!(text, "! {name}: {what}.");
    }
    text
}

fn meaning(config: &Config) -> Vec<String> {
    let upstream = &config.upstream;
    let prefix = if upstream.path.is_empty() { "/v1" } else { &upstream.path };
    vec![
        format!("Clients use http://{}{prefix} as their base URL; requests go to {upstream}.", config.listen),
        protocol(config),
        match config.mode {
            Mode::Observe => "No byte is changed; what rewrite would have done is recorded.".to_owned(),
            Mode::Rewrite => "The first and every later request of a transfer's receiver is rebuilt: brief in the \
                              system slot, filtered transcript behind it."
                .to_owned(),
        },
        match config.contract {
            Contract::Read => "A transfer whose sender declares no handoff is left as it is.".to_owned(),
            Contract::Derive => "A transfer whose sender declares no handoff gets a brief that is derived by rules; an \
                                 incomplete one is topped up."
                .to_owned(),
            Contract::Inject => "Senders are asked for a handoff in their transfer tools; what they leave out is \
                                 derived by rules."
                .to_owned(),
        },
        enforced(config),
        transcript(config),
        match &config.tenant_header {
            Some(name) => format!("Records are kept apart by the header {name}."),
            None => "Records are kept apart by a hash of the credential: if tokens rotate during a conversation, set \
                     SEAM_TENANT_HEADER."
                .to_owned(),
        },
        store(config),
        traces(config),
        match &config.live_file {
            Some(file) => format!("Mode and share change while Seam runs, by what {} says.", file.display()),
            None => "A change of any setting needs a restart.".to_owned(),
        },
    ]
}

fn enforced(config: &Config) -> String {
    let checks = [
        ("contract", config.enforce.contract),
        ("facts", config.enforce.facts),
        ("hops", config.enforce.hops),
    ];
    let on: Vec<&str> = checks.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect();
    match (on.is_empty(), config.mode) {
        (true, _) => "No transfer is refused; what fails a check is marked in the brief.".to_owned(),
        (false, Mode::Observe) => {
            format!("No transfer is refused; those that would fail {} are counted.", on.join(", "))
        }
        (false, Mode::Rewrite) => format!(
            "A transfer that fails {} goes back to its sender {} within {} s, then to a terminal destination on offer; \
             else it is refused.",
            on.join(", "),
            match config.corrections {
                0 => "never".to_owned(),
                1 => "once".to_owned(),
                times => format!("up to {times} times"),
            },
            config.correction_timeout.as_secs_f32(),
        ),
    }
}

fn store(config: &Config) -> String {
    match &config.store {
        Store::Memory => {
            "Records live in this process: they do not survive a restart, and replicas do not share \
                          them, so that a client must reach the same replica throughout a conversation."
                .to_owned()
        }
        Store::File(path) => format!(
            "Records live in {} and survive a restart. One process uses the file; replicas do not share it, so that a \
             client must reach the same replica throughout a conversation.",
            path.display()
        ),
        Store::Redis(server) => format!(
            "Records live in {server}, vouched for by {}; all replicas that use it and see the same credentials share \
             them. They survive what that server survives, and it is waited for {} ms at most.",
            if server.tls { trusted(&config.store_ca) } else { "nobody, since it is not TLS".to_owned() },
            config.store_timeout.as_millis(),
        ),
    }
}

fn traces(config: &Config) -> String {
    let Some(receiver) = &config.trace_endpoint else { return "No traces are sent.".to_owned() };
    let content = if config.trace_content { "with what was said" } else { "without what was said" };
    let context = match config.trace_context {
        TraceContext::On => "a client's context is continued and handed on",
        TraceContext::In => "a client's context is continued and goes up as it came",
        TraceContext::Off => "a client's context is not read",
    };
    format!("Each request and each transfer is a span for {receiver}, {content}; {context}.")
}

fn protocol(config: &Config) -> String {
    if !config.upstream.tls {
        return "The upstream is spoken to in plain HTTP/1.1.".to_owned();
    }
    let versions = match config.http2 {
        Http2::Auto => "HTTP/2 or HTTP/1.1, as the upstream chooses",
        Http2::Off => "HTTP/1.1",
    };
    let roots = trusted(&config.upstream_ca);
    let way = config.proxies.on_the_way(&config.upstream);
    let way = way.map_or(String::new(), |proxy| format!(" through the proxy {proxy}"));
    format!("The upstream is spoken to over TLS in {versions}{way}, vouched for by {roots}.")
}

fn trusted(roots: &Roots) -> String {
    match roots {
        Roots::Bundled => "the built-in list of authorities".to_owned(),
        Roots::Native => "the machine's list of authorities".to_owned(),
        Roots::File(path) => format!("the authorities in {} alone", path.display()),
    }
}

fn transcript(config: &Config) -> String {
    match config.transcript {
        Transcript::Window => format!(
            "Of the conversation before a transfer all stays up to about {} tokens, beyond that the opening and the \
             last {} turns.",
            config.transcript_tokens, config.transcript_turns
        ),
        Transcript::Full => "The whole conversation before a transfer stays.".to_owned(),
        Transcript::Dialogue => "Of the conversation before a transfer all but tool calls stays.".to_owned(),
        Transcript::None => {
            "Of the conversation before a transfer the opening and the last customer turn stay.".to_owned()
        }
    }
}
