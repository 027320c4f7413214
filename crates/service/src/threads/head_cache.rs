//! Caches heads of threads in memory.

use std::sync::{Arc, Mutex, PoisonError};

use countersign_domain::chain::hash::Digest;
use countersign_domain::json::size::ValueSize;
use countersign_domain::primitives::id::ThreadId;

use crate::platform::row_cache::GenerationalCache;
use crate::threads::version::Version;

/// Checked heads by thread, the most recently used ones. Their roots were verified in this process, so an
/// edit of the database cannot reach a writer through the cache. Whether a head is current always comes from
/// the thread row.
#[derive(Debug)]
pub(crate) struct HeadCache {
    pub(crate) heads: Mutex<GenerationalCache<Arc<Version>>>,
}

impl Default for HeadCache {
    fn default() -> Self {
        Self { heads: Mutex::new(GenerationalCache::new(HEADS_BYTES_MAX)) }
    }
}

impl HeadCache {
    pub(crate) fn get(&self, thread: &ThreadId, transition: Digest) -> Option<Arc<Version>> {
        let mut heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        heads.get(thread.as_str()).filter(|head| head.entry.transition == transition)
    }

    pub(crate) fn put(&self, head: Arc<Version>) {
        let size = ValueSize::of(&head.state);
        // An estimate is enough: the limit only protects the memory of the process.
        let bytes = HEAD_BYTES + head.token.len() + size.bytes + size.leaves * LEAF_BYTES;
        let mut heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        heads.put(head.entry.thread.to_string(), head, bytes);
    }
}

/// Bytes of cached heads.
pub(crate) const HEADS_BYTES_MAX: usize = 128 * 1024 * 1024;

/// The memory overhead of a head: its statement and the inner nodes of its tree.
pub(crate) const HEAD_BYTES: usize = 2_048;

/// The memory of a leaf with its position in the tree.
pub(crate) const LEAF_BYTES: usize = 256;
