//! Copying the log out, line by line: in its order, each line at least once, going on where it stopped.

use std::future::Future;
use std::io;

use super::sequencer::SequencedEvent;
use crate::domain::primitives::sanitize;
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::store::LeaderTask;
use crate::store::change::Draft;
use crate::store::records::{LogCursor, LogFollower};

/// Events that are written out at once: what a crash between writing and noting it makes twice.
const COPIED_AT_ONCE: u32 = 250;

impl Service {
    /// Hands the next events of the log to `write`, a line of JSON each, and notes how far it came once they are
    /// written. Returns how many. Of all gateways one does so at a time; if another does, there is nothing to do here.
    pub async fn copy_log<F: Future<Output = io::Result<()>>>(&self, write: impl FnOnce(String) -> F) -> Result<usize> {
        Ok(self.run_as_leader(LeaderTask::Copying, self.copy_next(write)).await?.unwrap_or(0))
    }

    async fn copy_next<F: Future<Output = io::Result<()>>>(&self, write: impl FnOnce(String) -> F) -> Result<usize> {
        let keys = self.keys()?;
        let mark = self.fetch::<LogCursor>(&keys, LogFollower::Copy.name()).await?;
        let reached = mark.as_ref().map_or(0, |it| it.record.reached);
        let (mut events, last) = self.events_after(reached, None, COPIED_AT_ONCE).await?;
        for SequencedEvent { event, .. } in &mut events {
            *event = self.for_machines(&keys, event.clone()).await?;
        }
        if events.is_empty() {
            return Ok(0);
        }
        if events.len() as u64 != last - reached {
            return Err(Error::Broken("the log"));
        }
        write(lines(&events)).await.map_err(Error::Copy)?;
        let mut draft = Draft::new(keys.row(), self.now());
        let next = LogCursor { of: LogFollower::Copy, reached: last };
        match &mark {
            None => drop(draft.insert(&next)?),
            Some(mark) => draft.replace(mark, &next)?,
        }
        self.commit(draft.finish()).await?;
        Ok(events.len())
    }
}

/// A line each, in which nothing acts on who looks at it.
fn lines(events: &[SequencedEvent]) -> String {
    events.iter().map(|it| sanitize::json(&it.told().to_string()) + "\n").collect()
}
