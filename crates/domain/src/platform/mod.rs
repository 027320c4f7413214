//! Idempotent responses and trace headers.

pub mod idempotency;
pub mod trace_parent;
