//! What Seam said while the demo ran: its findings, heard in its own log.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry;

use crate::engine::event::{Code, Finding};

/// The findings since they were last taken, each once. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard(Arc<Mutex<Vec<Finding>>>);

impl Heard {
    /// Listens to this thread until the guard is dropped.
    #[must_use]
    pub(super) fn listen(&self) -> tracing::subscriber::DefaultGuard {
        tracing::subscriber::set_default(registry().with(self.clone()))
    }

    /// The findings so far; the next ones begin a new list.
    pub(super) fn take(&self) -> Vec<Finding> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<S: Subscriber> Layer<S> for Heard {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let Some(code) = Code::ALL.iter().find(|code| code.name() == fields.code) else { return };
        let finding = Finding::new(*code, fields.place, fields.what);
        let mut findings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A record's findings are told at the transfer and again when it is taken up.
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
}

/// The fields of a logged finding.
#[derive(Default)]
struct Fields {
    code: String,
    place: String,
    what: String,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "code" => value.clone_into(&mut self.code),
            "place" => value.clone_into(&mut self.place),
            "what" => value.clone_into(&mut self.what),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Telemetry;

    #[test]
    fn what_telemetry_logs_of_a_finding_is_heard_once() {
        let heard = Heard::default();
        let finding = Finding::new(Code::FactNotConfirmed, "extensions", "not_found");
        {
            let _listening = heard.listen();
            let telemetry = Telemetry::default();
            telemetry.finding(&finding);
            telemetry.finding(&finding);
        }
        Telemetry::default().finding(&finding);
        assert_eq!(heard.take(), [finding]);
        assert_eq!(heard.take(), []);
    }
}
