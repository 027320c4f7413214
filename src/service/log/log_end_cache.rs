//! Remembers the end of the log for a moment.

use std::time::Instant;

use tokio::sync::Mutex;

/// The log length that was last read.
#[derive(Debug, Default)]
pub(in crate::service) struct LogEndCache(pub(in crate::service) Mutex<Option<(Instant, u64)>>);
