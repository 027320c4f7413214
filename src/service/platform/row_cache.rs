//! What this gateway last saw of rows: read and opened, or written, by itself.
//!
//! A decision may start from memory where it ends in a commit: the store looks at every row that a change
//! relies on when it commits, and another seal than the one remembered is a conflict. Whatever ends otherwise,
//! a refusal too, is decided again from rows read afresh: memory alone never answers anybody.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::chain::receipt::IssuedReceipt;
use crate::domain::primitives::id::Jti;
use crate::store::record::{CachedRecord, Record, Stored};
use crate::store::row::Table;

/// As much of each table as is kept, by the length of its rows' content.
const TABLE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// What a row costs besides its content.
const ROW_BYTES: usize = 512;

/// Things by name, the last used of them: those that were not asked for since half the room filled up are
/// forgotten together.
#[derive(Debug)]
pub(in crate::service) struct GenerationalCache<V> {
    young: HashMap<String, (V, usize)>,
    old: HashMap<String, (V, usize)>,
    bytes: usize,
    half: usize,
}

impl<V: Clone> GenerationalCache<V> {
    /// Room for so many bytes.
    pub(in crate::service) fn new(bytes_max: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), bytes: 0, half: bytes_max / 2 }
    }

    pub(in crate::service) fn get(&mut self, name: &str) -> Option<V> {
        if let Some((found, _)) = self.young.get(name) {
            return Some(found.clone());
        }
        let (name, (found, bytes)) = self.old.remove_entry(name)?;
        self.put(name, found.clone(), bytes);
        Some(found)
    }

    pub(in crate::service) fn put(&mut self, name: String, thing: V, bytes: usize) {
        if self.bytes + bytes > self.half {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += bytes;
        if let Some((_, before)) = self.young.insert(name, (thing, bytes)) {
            self.bytes -= before;
        }
    }

    pub(in crate::service) fn forget(&mut self, name: &str) {
        self.old.remove(name);
        if let Some((_, bytes)) = self.young.remove(name) {
            self.bytes -= bytes;
        }
    }
}

/// The rows, a shelf for each table.
#[derive(Debug)]
pub(in crate::service) struct RowCache {
    shelves: Vec<Mutex<GenerationalCache<Arc<dyn Any + Send + Sync>>>>,
}

impl Default for RowCache {
    fn default() -> Self {
        Self { shelves: Table::ALL.iter().map(|_| Mutex::new(GenerationalCache::new(TABLE_BYTES_MAX))).collect() }
    }
}

impl RowCache {
    fn shelf(&self, table: Table) -> MutexGuard<'_, GenerationalCache<Arc<dyn Any + Send + Sync>>> {
        self.shelves[table as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record as this gateway last saw it. For beginning a decision that ends in a commit, and nothing else.
    pub(in crate::service) fn recall<R: Record>(&self, id: &str) -> Option<Arc<Stored<R>>> {
        let known = self.shelf(R::TABLE).get(id)?;
        known.downcast().ok()
    }

    /// Keeps what was just read or written.
    pub(in crate::service) fn keep(&self, known: CachedRecord) {
        self.shelf(known.table).put(known.id, known.stored, known.bytes + ROW_BYTES);
    }

    /// Forgets everything that a change relied on or wrote: it was refused, or nobody knows what became of it.
    pub(in crate::service) fn forget(&self, names: &[(Table, String)]) {
        for (table, id) in names {
            self.shelf(*table).forget(id);
        }
    }
}

/// As much as is kept of receipts that this process signed.
const ISSUED_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Receipts as this process signed them, by their ids.
#[derive(Debug)]
pub(in crate::service) struct IssuedReceipts {
    receipts: Mutex<GenerationalCache<Arc<IssuedReceipt>>>,
}

impl Default for IssuedReceipts {
    fn default() -> Self {
        Self { receipts: Mutex::new(GenerationalCache::new(ISSUED_BYTES_MAX)) }
    }
}

impl IssuedReceipts {
    pub(in crate::service) fn get(&self, id: &Jti) -> Option<Arc<IssuedReceipt>> {
        self.receipts.lock().unwrap_or_else(PoisonError::into_inner).get(id.as_str())
    }

    pub(in crate::service) fn put(&self, issued: IssuedReceipt) {
        // Its claims are about as long again as its token.
        let (id, bytes) = (issued.claims().jti.to_string(), ROW_BYTES + 2 * issued.token().len());
        self.receipts.lock().unwrap_or_else(PoisonError::into_inner).put(id, Arc::new(issued), bytes);
    }
}
