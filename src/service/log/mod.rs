//! The audit log: assigns positions to events, serves pages of them, exports them and counts them.

pub mod browse;
pub mod clock_check;
pub mod export;
pub mod follow;
pub mod insight;
pub mod key_events;
pub mod log_end_cache;
pub(crate) mod machine_view;
pub mod sequencer;
