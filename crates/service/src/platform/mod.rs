//! Mechanisms that every capability uses: caches, the fair queue, idempotency, retries and leader locks.

pub mod core;
pub mod due_rows;
pub mod event_recorder;
pub(crate) mod fair_queue;
pub mod idempotency;
pub mod in_flight_keys;
pub(crate) mod label_backfill;
pub(crate) mod leader_lock;
pub mod lease_scan_cursor;
pub mod reason;
pub mod rejection_body;
pub(crate) mod retry;
pub(crate) mod row_cache;
pub(crate) mod settings;
pub mod trace_context;
