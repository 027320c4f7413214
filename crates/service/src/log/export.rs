//! The log export: writes every event at least once, in log order, and resumes where it stopped.

use std::future::Future;
use std::io;

use countersign_domain::primitives::sanitize;
use countersign_store::LeaderTask;
use countersign_store::change::Draft;
use countersign_store::records::{LogCursor, LogFollower};

use super::sequencer::SequencedEvent;
use crate::error::{Error, Result};
use crate::log::Log;

/// Events in one write. A crash between the write and the stored cursor repeats these.
const COPIED_AT_ONCE: u32 = 250;

impl Log {
    /// Passes the next events of the log to `write`, one line of JSON each, and stores the cursor after the
    /// write. Returns the number of events. The leader lock allows one gateway at a time, and the others
    /// return 0.
    pub async fn copy_log<F: Future<Output = io::Result<()>>>(&self, write: impl FnOnce(String) -> F) -> Result<usize> {
        Ok(self.core.run_as_leader(LeaderTask::Copying, self.copy_next(write)).await?.unwrap_or(0))
    }

    async fn copy_next<F: Future<Output = io::Result<()>>>(&self, write: impl FnOnce(String) -> F) -> Result<usize> {
        let keys = self.core.keys()?;
        let mark = self.core.fetch::<LogCursor>(&keys, LogFollower::Copy.name()).await?;
        let reached = mark.as_ref().map_or(0, |it| it.record.reached);
        let (mut events, last) = self.events_after(reached, None, COPIED_AT_ONCE).await?;
        for SequencedEvent { event, .. } in &mut events {
            *event = self.for_machines(&keys, event.clone()).await?;
        }
        if events.is_empty() {
            return Ok(0);
        }
        // A missing event would silently end up as a gap in the export.
        if events.len() as u64 != last - reached {
            return Err(Error::Broken("the log"));
        }
        // Written before the cursor is stored: a crash between the two repeats events and loses none.
        write(lines(&events)).await.map_err(Error::Copy)?;
        let mut draft = Draft::new(keys.row(), self.core.now());
        let next = LogCursor { of: LogFollower::Copy, reached: last };
        match &mark {
            None => drop(draft.insert(&next)?),
            Some(mark) => draft.replace(mark, &next)?,
        }
        self.core.commit(draft.finish()).await?;
        Ok(events.len())
    }
}

/// Returns one line for each event, sanitized so that a terminal that shows it executes nothing.
fn lines(events: &[SequencedEvent]) -> String {
    events.iter().map(|it| sanitize::json(&it.told().to_string()) + "\n").collect()
}
