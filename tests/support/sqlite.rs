//! Options of the SQLite stores that tests open.

use countersign_adapters::clock::ClockOffset;
use countersign_store::sqlite::{SqliteOptions, Synchronous};

/// Tests do not cut the power, so they need not wait for the disk. Optimised builds measure, and wait as in
/// production.
const SYNCHRONOUS: Synchronous = if cfg!(debug_assertions) { Synchronous::Off } else { Synchronous::Full };

/// Returns the options of a store with that clock. `tests/store_contract/` and `tests/kills/` always wait for the disk.
pub fn unsynced(clock: &ClockOffset) -> SqliteOptions {
    SqliteOptions { clock_offset: clock.clone(), synchronous: SYNCHRONOUS, ..SqliteOptions::default() }
}
