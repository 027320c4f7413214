//! A cache of the rows that this gateway last read or wrote.
//!
//! A decision may start from the cache only if it ends in a commit. The commit checks every row that it
//! relied on, and a row with another seal is a conflict. A decision that ends otherwise, for example in a
//! refusal, is repeated on rows from the database. Therefore no answer depends on the cache alone.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use countersign_domain::chain::receipt::IssuedReceipt;
use countersign_domain::primitives::id::Jti;
use countersign_store::record::{CachedRecord, Record, Stored};
use countersign_store::row::Table;

/// Bytes of row content in the cache for each table.
const TABLE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The memory overhead of a row.
const ROW_BYTES: usize = 512;

/// A cache with two generations. When the young one fills half of the limit, it becomes the old one, and the entries without a use since then are dropped together.
#[derive(Debug)]
pub(crate) struct GenerationalCache<V> {
    young: HashMap<String, (V, usize)>,
    old: HashMap<String, (V, usize)>,
    bytes: usize,
    half: usize,
}

impl<V: Clone> GenerationalCache<V> {
    /// Creates a cache that holds at most so many bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), bytes: 0, half: bytes_max / 2 }
    }

    pub(crate) fn get(&mut self, name: &str) -> Option<V> {
        if let Some((found, _)) = self.young.get(name) {
            return Some(found.clone());
        }
        // A use moves the entry to the young generation, so that it survives the next change.
        let (name, (found, bytes)) = self.old.remove_entry(name)?;
        self.put(name, found.clone(), bytes);
        Some(found)
    }

    pub(crate) fn put(&mut self, name: String, thing: V, bytes: usize) {
        if self.bytes + bytes > self.half {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += bytes;
        if let Some((_, before)) = self.young.insert(name, (thing, bytes)) {
            self.bytes -= before;
        }
    }

    pub(crate) fn forget(&mut self, name: &str) {
        self.old.remove(name);
        if let Some((_, bytes)) = self.young.remove(name) {
            self.bytes -= bytes;
        }
    }
}

/// The cached rows, with one cache for each table.
#[derive(Debug)]
pub(crate) struct RowCache {
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

    /// Returns the record as this gateway last saw it. Use it only for a decision that ends in a commit.
    pub(crate) fn recall<R: Record>(&self, id: &str) -> Option<Arc<Stored<R>>> {
        let known = self.shelf(R::TABLE).get(id)?;
        known.downcast().ok()
    }

    pub(crate) fn keep(&self, known: CachedRecord) {
        self.shelf(known.table).put(known.id, known.stored, known.bytes + ROW_BYTES);
    }

    /// Removes the rows that a change relied on or wrote. The change was refused, or its outcome is unknown.
    pub(crate) fn forget(&self, names: &[(Table, String)]) {
        for (table, id) in names {
            self.shelf(*table).forget(id);
        }
    }
}

/// Bytes of cached receipts.
const ISSUED_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Receipts that this process signed, by id.
#[derive(Debug)]
pub(crate) struct IssuedReceipts {
    receipts: Mutex<GenerationalCache<Arc<IssuedReceipt>>>,
}

impl Default for IssuedReceipts {
    fn default() -> Self {
        Self { receipts: Mutex::new(GenerationalCache::new(ISSUED_BYTES_MAX)) }
    }
}

impl IssuedReceipts {
    pub(crate) fn get(&self, id: &Jti) -> Option<Arc<IssuedReceipt>> {
        self.receipts.lock().unwrap_or_else(PoisonError::into_inner).get(id.as_str())
    }

    pub(crate) fn put(&self, issued: IssuedReceipt) {
        // The claims take about as much memory as the token.
        let (id, bytes) = (issued.claims().jti.to_string(), ROW_BYTES + 2 * issued.token().len());
        self.receipts.lock().unwrap_or_else(PoisonError::into_inner).put(id, Arc::new(issued), bytes);
    }
}
