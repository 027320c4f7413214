//! Events of the audit log and the counters over them.

pub mod event;
pub mod insight;
