//! The truth table: what each situation leads to under the settings in force.

use crate::config::{Config, Contract, Mode, OnFailure};

/// A situation, and what it leads to.
pub(super) type Row = (&'static str, String);

/// Every situation that settings decide on, in the order in which an exchange can meet them.
pub(super) fn rows(config: &Config) -> Vec<Row> {
    let mut rows =
        vec![("a request neither offers nor holds a transfer", "it passes byte for byte".to_owned())];
    rows.extend(trouble(config));
    rows.extend(handoffs(config));
    rows.extend(facts(config));
    rows.extend(custody(config));
    rows
}

/// Seam cannot do its part, or must not.
fn trouble(config: &Config) -> Vec<Row> {
    let unable = |reason: &str, status: u16| match config.on_failure {
        OnFailure::Open => format!("it passes as it came ({reason})"),
        OnFailure::Closed => format!("it is answered with {status} (seam_{reason})"),
    };
    let mut store = unable("store_failed", 503);
    if config.on_failure == OnFailure::Closed {
        store.push_str("; a reply that transfers breaks off before its end");
    }
    vec![
        ("its body is larger than SEAM_INSPECT_LIMIT", unable("body_too_large", 413)),
        ("its body is compressed", unable("body_compressed", 415)),
        ("its body is no JSON of its route", unable("body_unreadable", 400)),
        ("the store fails, or answers later than SEAM_STORE_TIMEOUT", store),
        ("two runs fit it", "it passes as it came (ambiguous_run)".to_owned()),
        ("it asks for several choices, or is made in the background", "it passes as it came".to_owned()),
    ]
}

/// What a sender says, and what its receiver reads.
fn handoffs(config: &Config) -> Vec<Row> {
    let derives = config.contract >= Contract::Derive;
    let whole = if derives {
        "what was declared, checked, and what rules add from the run"
    } else {
        "what was declared, checked, and what Seam knows by itself"
    };
    let empty = if derives {
        "a brief that rules make from the run (empty_handoff is found)"
    } else {
        "the customer's own words and who holds the run, nothing else (empty_handoff is found)"
    };
    let nothing = if derives {
        reads(config, "a brief that rules make from the run")
    } else {
        "the receiver's request passes as it came (no_contract)".to_owned()
    };
    let terminal = format!("the run ends here: nobody receives it ({})", list(&config.terminal));
    let offers = match (config.contract, config.mode) {
        (Contract::Inject, Mode::Rewrite) => "its agent is asked for a handoff in the transfer tools",
        _ => "it passes as it came, and its reply is watched",
    };
    vec![
        ("a request offers a transfer", offers.to_owned()),
        ("a sender declares a whole handoff", reads(config, whole)),
        ("a sender declares an empty handoff", faulty(config, config.enforce.contract, reads(config, empty))),
        ("a sender says nothing but where to", nothing),
        ("a transfer goes to a terminal destination", terminal),
    ]
}

/// What a receiver reads of a fact.
fn facts(config: &Config) -> Vec<Row> {
    let unborne = reads(config, "it as not confirmed, with the reason");
    vec![
        ("the run bears a fact out", reads(config, "it as established, with the call that shows it")),
        ("the run does not bear a fact out", faulty(config, config.enforce.facts, unborne)),
        (
            "a fact is older than its rule of SEAM_FRESHNESS allows",
            reads(config, "it as it was, to be checked again"),
        ),
    ]
}

/// Who goes on, and what is left to spend.
fn custody(config: &Config) -> Vec<Row> {
    let refuses = |asked: bool, code: &str| match (asked, config.mode) {
        (false, _) => format!("it goes on; {code} is found"),
        (true, Mode::Observe) => {
            format!("it goes on; {code} is found and counted as one that would be refused")
        }
        (true, Mode::Rewrite) => format!("it is refused with 422 (seam_{code})"),
    };
    let has_budget =
        config.budget_tokens.is_some() || config.budget_spend.is_some() || config.budget_time.is_some();
    let spent = if has_budget {
        refuses(config.enforce.budget, "budget_exceeded")
    } else {
        "cannot be: no budget is set".to_owned()
    };
    let hops = format!(
        "hop_limit is found (limits: {} since the customer spoke, {} in all)",
        config.hops.unwrap_or(crate::engine::custody::judge::Limits::default().since_turn as usize),
        config.run_hops,
    );
    vec![
        ("an agent goes on after losing the run", refuses(config.enforce.custody, "not_holder")),
        ("a run has spent what it may", spent),
        ("a run is passed on too often", faulty(config, config.enforce.hops, hops)),
    ]
}

/// What becomes of a transfer with a fault; `otherwise` where that is not enforced.
fn faulty(config: &Config, enforced: bool, otherwise: String) -> String {
    match (enforced, config.mode) {
        (false, _) => otherwise,
        (true, Mode::Observe) => format!("{otherwise}; it is counted as one that would be refused"),
        (true, Mode::Rewrite) => {
            let asked = match config.corrections {
                0 => "it",
                1 => "its sender is asked once more; if that does not help it",
                _ => "its sender is asked again; if that does not help it",
            };
            format!("{asked} goes to a terminal destination on offer, else it is refused")
        }
    }
}

/// Who reads it, by mode and share.
fn reads(config: &Config, what: &str) -> String {
    match (config.mode, config.rewrite_percent) {
        (Mode::Observe, _) => format!("nobody reads anything new; recorded is {what}"),
        (Mode::Rewrite, 100) => format!("its receiver reads {what}"),
        (Mode::Rewrite, share) => {
            format!("in {share} runs of 100 its receiver reads {what}; in the others that is only recorded")
        }
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none is named".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(settings: &[(&str, &str)], situation: &str, expected: &str) {
        let mut source = vec![("SEAM_UPSTREAM".to_owned(), "http://127.0.0.1:9".to_owned())];
        source.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let config = Config::read(&source).expect("they read");
        let rows = rows(&config);
        let row = rows.iter().find(|(found, _)| *found == situation).expect(situation);
        assert_eq!(row.1, expected, "{situation} {settings:?}");
    }

    #[test]
    fn an_empty_handoff_leads_to_what_the_contract_allows() {
        let empty = "a sender declares an empty handoff";
        let derived = "a brief that rules make from the run (empty_handoff is found)";
        check(&[], empty, &format!("its receiver reads {derived}"));
        check(
            &[("SEAM_MODE", "observe")],
            empty,
            &format!("nobody reads anything new; recorded is {derived}"),
        );
        check(
            &[("SEAM_REWRITE_PERCENT", "5")],
            empty,
            &format!("in 5 runs of 100 its receiver reads {derived}; in the others that is only recorded"),
        );
        check(
            &[("SEAM_CONTRACT", "read")],
            empty,
            "its receiver reads the customer's own words and who holds the run, nothing else (empty_handoff is found)",
        );
        check(
            &[("SEAM_CONTRACT", "read")],
            "a sender says nothing but where to",
            "the receiver's request passes as it came (no_contract)",
        );
    }

    #[test]
    fn a_fault_that_is_enforced_is_corrected_redirected_or_refused() {
        let fact = "the run does not bear a fact out";
        let refused = "goes to a terminal destination on offer, else it is refused";
        let enforced = ("SEAM_ENFORCE", "facts");
        check(&[], fact, "its receiver reads it as not confirmed, with the reason");
        check(
            &[enforced],
            fact,
            &format!("its sender is asked once more; if that does not help it {refused}"),
        );
        check(&[enforced, ("SEAM_CORRECTIONS", "0")], fact, &format!("it {refused}"));
        check(
            &[enforced, ("SEAM_MODE", "observe")],
            fact,
            "nobody reads anything new; recorded is it as not confirmed, with the reason; it is counted as one that \
             would be refused",
        );
        let offers = "a request offers a transfer";
        check(&[], offers, "it passes as it came, and its reply is watched");
        check(
            &[("SEAM_CONTRACT", "inject")],
            offers,
            "its agent is asked for a handoff in the transfer tools",
        );
    }

    #[test]
    fn trouble_of_its_own_passes_or_fails_as_was_chosen() {
        let larger = "its body is larger than SEAM_INSPECT_LIMIT";
        check(&[], larger, "it passes as it came (body_too_large)");
        check(&[("SEAM_ON_FAILURE", "closed")], larger, "it is answered with 413 (seam_body_too_large)");
    }

    #[test]
    fn a_refusal_needs_a_rule_a_budget_and_the_mode() {
        let custody = "an agent goes on after losing the run";
        check(&[], custody, "it goes on; not_holder is found");
        check(&[("SEAM_ENFORCE", "custody")], custody, "it is refused with 422 (seam_not_holder)");
        check(
            &[("SEAM_ENFORCE", "custody"), ("SEAM_MODE", "observe")],
            custody,
            "it goes on; not_holder is found and counted as one that would be refused",
        );
        let spent = "a run has spent what it may";
        check(&[("SEAM_ENFORCE", "budget")], spent, "cannot be: no budget is set");
        check(
            &[("SEAM_ENFORCE", "budget"), ("SEAM_BUDGET_TOKENS", "9000")],
            spent,
            "it is refused with 422 (seam_budget_exceeded)",
        );
    }
}
