//! Where in a large result a key or a value stands, without reading through all
//! of it: made when it is first asked for.

use super::document::Document;
use super::keys::KeyId;
use crate::engine::handoff::value::Sketch;

/// Results with fewer values are read through.
pub(crate) const LARGE: usize = 512;

/// The places of a result's keys and values.
#[derive(Debug)]
pub(crate) struct Lookup {
    keys: Vec<(KeyId, u32)>,
    /// Hashes of letters and digits, and of digits, with their places.
    letters: Vec<(u64, u32)>,
    amounts: Vec<(u64, u32)>,
}

impl Lookup {
    pub(crate) fn of(document: &Document) -> Lookup {
        let mut lookup = Lookup { keys: Vec::new(), letters: Vec::new(), amounts: Vec::new() };
        for node in 0..document.nodes.len() as u32 {
            let at = document.node(node);
            if at.key != KeyId::NONE {
                lookup.keys.push((at.key, node));
            }
            if document.is_leaf(node) && at.len <= 256 {
                let sketch = Sketch::of(document.raw(node));
                lookup.letters.push((sketch.letters, node));
                if sketch.amount != 0 {
                    lookup.amounts.push((sketch.amount, node));
                }
            }
        }
        lookup.keys.sort_unstable();
        lookup.letters.sort_unstable();
        lookup.amounts.sort_unstable();
        lookup
    }

    /// The nodes with a key, in order.
    pub(crate) fn with_key(&self, key: KeyId) -> impl Iterator<Item = u32> + '_ {
        equal(&self.keys, key)
    }

    /// The nodes that may hold a value of this sketch.
    pub(crate) fn like(&self, sketch: Sketch) -> impl Iterator<Item = u32> + '_ {
        let amounts = (sketch.amount != 0).then(|| equal(&self.amounts, sketch.amount)).into_iter().flatten();
        equal(&self.letters, sketch.letters).chain(amounts)
    }
}

fn equal<T: Ord + Copy>(sorted: &[(T, u32)], wanted: T) -> impl Iterator<Item = u32> + '_ {
    let from = sorted.partition_point(|(own, _)| *own < wanted);
    sorted[from..].iter().take_while(move |(own, _)| *own == wanted).map(|(_, node)| *node)
}
