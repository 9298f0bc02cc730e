//! What stands under a key: bytes, or what becomes bytes only where it leaves this process.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use super::StoreError;

/// What stands under a key.
#[derive(Clone, Debug)]
pub enum Content {
    /// Bytes.
    Bytes(Bytes),
    /// What a store in this process's memory keeps as it is.
    Live(Arc<dyn Live>),
}

/// What can be kept without being written as bytes.
pub trait Live: Any + Debug + Send + Sync {
    /// Its bytes.
    fn encode(&self) -> Result<Bytes, StoreError>;
    /// Bytes that it takes, about.
    fn weight(&self) -> usize;
}

impl Content {
    /// It as bytes.
    pub fn bytes(&self) -> Result<Bytes, StoreError> {
        match self {
            Content::Bytes(bytes) => Ok(bytes.clone()),
            Content::Live(live) => live.encode(),
        }
    }

    /// It as it was put, if it was not bytes.
    pub fn live<T: Live>(&self) -> Option<Arc<T>> {
        match self {
            Content::Bytes(_) => None,
            Content::Live(live) => (Arc::clone(live) as Arc<dyn Any + Send + Sync>).downcast().ok(),
        }
    }

    /// Bytes that it takes, about.
    pub fn weight(&self) -> usize {
        match self {
            Content::Bytes(bytes) => bytes.len(),
            Content::Live(live) => live.weight(),
        }
    }
}

impl From<Bytes> for Content {
    fn from(bytes: Bytes) -> Content {
        Content::Bytes(bytes)
    }
}

impl<T: Live> From<Arc<T>> for Content {
    fn from(live: Arc<T>) -> Content {
        Content::Live(live)
    }
}

#[cfg(test)]
impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}
