//! Remembers the end of the log for a moment.

use std::time::Instant;

use tokio::sync::Mutex;

/// The log length that was last read.
#[derive(Debug, Default)]
pub(crate) struct LogEndCache(pub(crate) Mutex<Option<(Instant, u64)>>);
