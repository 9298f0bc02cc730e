//! Readings of request bodies, kept for a while: of a conversation that goes on, only what is new is read.
//!
//! A body is recognised by the length and the keyed hash of its beginning, taken at every [`BLOCK`] bytes; what
//! an earlier body with the same beginning gave up to there is taken over.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use moka::sync::Cache;
use xxhash_rust::xxh3::Xxh3;

use crate::engine::handoff::detect::Naming;
use crate::engine::read::{Reading, reading_on};
use crate::engine::view::{Dialect, View};
use crate::engine::wire::{self, Known, Unreadable};

/// A beginning is recognised at multiples of so many bytes.
const BLOCK: usize = 2048;
/// Bytes that the kept readings take at most, about.
const CAPACITY: u64 = 16 << 20;
/// The length of the hash's secret, as the hash wants it.
const SECRET: usize = 192;

/// The readings that are kept.
pub(super) struct Readings {
    naming: Arc<Naming>,
    /// What nobody outside knows, so that nobody can make two bodies meet.
    secret: [u8; SECRET],
    kept: Cache<Mark, Arc<Kept>>,
}

/// What the beginning of a body is recognised by: its length, and its hash with the dialect's.
type Mark = (usize, u128);

struct Kept {
    /// The whole body's.
    mark: Mark,
    agent: Option<String>,
    reading: Arc<Reading<'static>>,
}

/// The marks of a body at every block, and of the whole.
struct Marks {
    blocks: Vec<u128>,
    whole: Mark,
}

impl Readings {
    pub(super) fn new(naming: Arc<Naming>) -> Readings {
        let random = RandomState::new();
        let mut secret = [0; SECRET];
        for (at, part) in secret.chunks_exact_mut(8).enumerate() {
            part.copy_from_slice(&random.hash_one(at).to_le_bytes());
        }
        let weigh = |_: &Mark, kept: &Arc<Kept>| u32::try_from(2 * kept.mark.0 + 4096).unwrap_or(u32::MAX);
        let kept = Cache::builder().max_capacity(CAPACITY).weigher(weigh).build();
        Readings { naming, secret, kept }
    }

    /// What a body says; `agent` is the operator's agent header.
    pub(super) fn read(
        &self,
        body: &[u8],
        dialect: Dialect,
        agent: Option<&str>,
    ) -> Result<Arc<Reading<'static>>, Unreadable> {
        let marks = self.marks(body, dialect);
        let known = marks.beginnings().find_map(|mark| Some((mark, self.kept.get(&mark)?)));
        if let Some((_, kept)) = &known
            && kept.mark == marks.whole
            && kept.agent.as_deref() == agent
        {
            return Ok(Arc::clone(&kept.reading));
        }
        let earlier = known.as_ref().map(|((same, _), kept)| (&*kept.reading, *same));
        let known_view = earlier.map(|(earlier, same)| Known { view: &earlier.view, same });
        let view = wire::read_on(body, dialect, known_view)?;
        let end = list_end(&view);
        let read = Arc::new(reading_on(view, &self.naming, agent, earlier).into_owned());
        let mark = marks.up_to(end);
        if let Some((before, _)) = known.filter(|(before, _)| *before != mark) {
            // The conversation went on: its older readings are of no more use.
            self.kept.invalidate(&before);
        }
        let (whole, reading) = (marks.whole, Arc::clone(&read));
        self.kept.insert(mark, Arc::new(Kept { mark: whole, agent: agent.map(str::to_owned), reading }));
        Ok(read)
    }

    fn marks(&self, body: &[u8], dialect: Dialect) -> Marks {
        let mut hasher = Xxh3::with_secret(self.secret);
        hasher.update(&[dialect as u8]);
        let mut blocks = Vec::with_capacity(body.len() / BLOCK);
        let mut chunks = body.chunks_exact(BLOCK);
        for block in &mut chunks {
            hasher.update(block);
            blocks.push(hasher.digest128());
        }
        hasher.update(chunks.remainder());
        Marks { blocks, whole: (body.len(), hasher.digest128()) }
    }
}

impl Marks {
    /// The marks of the beginnings under which a reading may be kept, the longest first.
    fn beginnings(&self) -> impl Iterator<Item = Mark> {
        let blocks = self.blocks.iter().enumerate().rev();
        std::iter::once(self.whole).chain(blocks.map(|(at, hash)| ((at + 1) * BLOCK, *hash)))
    }

    /// The mark of the longest beginning within the first `end` bytes; the whole's, where none is.
    fn up_to(&self, end: usize) -> Mark {
        match end / BLOCK {
            0 => self.whole,
            blocks => (blocks * BLOCK, self.blocks[blocks - 1]),
        }
    }
}

/// Where the last item of the list ends.
fn list_end(view: &View<'_>) -> usize {
    view.items.iter().map(|item| item.span.end).max().unwrap_or_default()
}

impl std::fmt::Debug for Readings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readings").field("kept", &self.kept.entry_count()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings() -> Readings {
        Readings::new(Arc::new(Naming::default()))
    }

    /// A conversation of so many turns about stays, with a transfer half-way.
    fn body(dialect: Dialect, turns: usize, agent: &str) -> String {
        let mut items = Vec::new();
        for turn in 0..turns {
            items.push(format!(
                r#"{{"role":"user","content":"Turn {turn}: a room \"with a view\", please — {}"}}"#,
                "quiet ".repeat(40)
            ));
            let (name, arguments) =
                if turn == turns / 2 { ("transfer_to_desk", "{}") } else { ("find_room", r#"{\"n\":1}"#) };
            if dialect == Dialect::Chat {
                items.push(format!(r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{turn}","type":"function","function":{{"name":"{name}","arguments":"{arguments}"}}}}]}}"#));
                items.push(format!(
                    r#"{{"role":"tool","tool_call_id":"c{turn}","content":"{{\"room\":{turn}}}"}}"#
                ));
            } else {
                items.push(format!(r#"{{"type":"reasoning","id":"rs_{turn}","summary":[]}}"#));
                items.push(format!(r#"{{"type":"function_call","call_id":"c{turn}","name":"{name}","arguments":"{arguments}"}}"#));
                items.push(format!(
                    r#"{{"type":"function_call_output","call_id":"c{turn}","output":"{{\"room\":{turn}}}"}}"#
                ));
            }
        }
        let (list, head) = match dialect {
            Dialect::Chat => {
                ("messages", format!(r#"{{"role":"system","content":"You are the {agent}."}},"#))
            }
            Dialect::Responses => ("input", String::new()),
        };
        let told = if dialect == Dialect::Responses {
            format!(r#""instructions":"You are the {agent}.","#)
        } else {
            String::new()
        };
        let tool =
            r#"{"type":"function","name":"transfer_to_bar","parameters":{"type":"object","properties":{}}}"#;
        format!(
            r#"{{"model":"m",{told}"{list}":[{head}{}],"tools":[{tool}],"stream":{}}}"#,
            items.join(","),
            turns.is_multiple_of(2)
        )
    }

    /// All that a reading says, as text.
    fn said(reading: &Reading<'_>) -> String {
        let Reading { view, print, system, briefed, offers, transfers, .. } = reading;
        let mut results: Vec<_> = reading.results.iter().collect();
        results.sort_unstable();
        let lookups = reading.lookups();
        format!("{view:?} {print:?} {system} {briefed} {offers:?} {transfers:?} {results:?} {lookups:?}")
    }

    #[test]
    fn a_conversation_that_goes_on_reads_as_if_it_were_read_anew() {
        for dialect in [Dialect::Chat, Dialect::Responses] {
            let readings = readings();
            for turns in (1..40).chain([7, 39, 3]) {
                for agent in ["porter", "cook"] {
                    let body = body(dialect, turns, agent);
                    let kept = readings.read(body.as_bytes(), dialect, None).expect("a body");
                    let naming = Arc::new(Naming::default());
                    let view = wire::read(body.as_bytes(), dialect).expect("a body");
                    let anew = crate::engine::read::reading(view, &naming, None);
                    assert_eq!(said(&kept), said(&anew), "{dialect:?} {turns} {agent}");
                }
            }
        }
    }

    #[test]
    fn the_same_body_is_read_once_for_one_agent() {
        let readings = readings();
        for turns in [1, 30] {
            let body = body(Dialect::Chat, turns, "porter");
            let read = |agent| readings.read(body.as_bytes(), Dialect::Chat, agent).expect("a body");
            assert!(Arc::ptr_eq(&read(None), &read(None)), "{turns}");
            assert_eq!(read(Some("cook")).print.named.as_deref(), Some("cook"));
        }
    }

    #[test]
    fn a_fault_behind_a_known_beginning_is_a_fault() {
        let readings = readings();
        let body = body(Dialect::Chat, 30, "porter");
        readings.read(body.as_bytes(), Dialect::Chat, None).expect("a body");
        let broken = format!("{} ", body.strip_suffix('}').expect("an object"));
        assert_eq!(
            readings.read(broken.as_bytes(), Dialect::Chat, None).err(),
            wire::read(broken.as_bytes(), Dialect::Chat).err()
        );
    }
}
