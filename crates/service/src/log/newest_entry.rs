//! Checks the keyring against the newest entry of the log.

use crate::error::Result;
use crate::log::Log;

/// How many of the newest events are searched for one of a thread.
const NEWEST: u32 = 200;

impl Log {
    /// Verifies the head of the thread with the newest event. An older or another keyring does not verify it.
    pub async fn check_newest_entry(&self) -> Result<()> {
        let (keys, length) = (self.core.keys()?, self.log_length().await?);
        let (events, _) = self.events_after(length.saturating_sub(u64::from(NEWEST)), None, NEWEST).await?;
        let Some(thread) = events.iter().rev().find_map(|it| it.event.thread.as_ref()) else { return Ok(()) };
        let thread = self.core.thread(&keys, thread).await?;
        self.threads.head(&keys, &thread.record).await.map(drop)
    }
}
