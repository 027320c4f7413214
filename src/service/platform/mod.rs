//! Mechanisms that every capability uses: caches, the fair queue, idempotency, retries and leader locks.

pub mod due_rows;
pub mod event_recorder;
pub(crate) mod fair_queue;
pub mod idempotency;
pub(crate) mod judge_queue;
pub(crate) mod label_backfill;
pub(crate) mod leader_lock;
pub mod rejection_body;
pub(crate) mod retry;
pub(crate) mod row_cache;
pub(crate) mod settings;
pub mod trace_context;
