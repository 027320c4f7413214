//! The stretch of the log that lanes are at: read once, and said once, for all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::domain::delivery::endpoint_kind::PayloadVersion;
use crate::domain::delivery::signature::{SignedBody, second_of};
use crate::domain::primitives::time::Timestamp;
use crate::service::Service;
use crate::service::error::Result;
use crate::service::log::sequencer::SequencedEvent;

/// Lines that stay in memory: what lanes that arrive are apart, and not what one that was away has to catch up with.
const LINES_MAX: usize = 1_000;

/// A line of the log, and what was last said of it.
pub(super) struct TailLine {
    pub(super) placed: SequencedEvent,
    said: Mutex<Option<(PayloadVersion, Arc<SignedBody>)>>,
}

impl TailLine {
    pub(super) fn new(placed: SequencedEvent) -> Arc<Self> {
        Arc::new(Self { placed, said: Mutex::default() })
    }
}

/// Lines by their places. The log is only ever added to, so a line that was read stays as it was.
#[derive(Default)]
pub(in crate::service) struct LogTail {
    lines: Mutex<BTreeMap<u64, Arc<TailLine>>>,
}

impl Service {
    /// The lines after a place, at most so many. The second part is where to go on from: the same place at the log's end.
    pub(super) async fn lines_after(&self, after: u64, limit: u32) -> Result<(Vec<Arc<TailLine>>, u64)> {
        // Whoever comes to the same place meanwhile waits for this reading, instead of doing it too.
        let mut known = self.tail.lines.lock().await;
        let wanted = after + 1..=after + u64::from(limit);
        let have: Vec<Arc<TailLine>> = known
            .range(wanted.clone())
            .zip(wanted)
            .map_while(|(it, place)| (*it.0 == place).then(|| it.1.clone()))
            .collect();
        if let Some(last) = have.last().map(|it| it.placed.index) {
            return Ok((have, last));
        }
        let (read, next) = self.events_after(after, None, limit).await?;
        let read: Vec<Arc<TailLine>> = read.into_iter().map(TailLine::new).collect();
        known.extend(read.iter().map(|it| (it.placed.index, it.clone())));
        while known.len() > LINES_MAX {
            known.pop_first();
        }
        Ok((read, next))
    }

    /// What is sent of a line now. Within a second every endpoint is sent the same, under the same signature.
    pub(super) async fn said(
        &self,
        version: PayloadVersion,
        line: &TailLine,
        now: Timestamp,
    ) -> Result<Arc<SignedBody>> {
        let mut said = line.said.lock().await;
        if let Some((_, said)) = said.as_ref().filter(|it| it.0 == version && it.1.second() == second_of(now)) {
            return Ok(said.clone());
        }
        let body = self.payload_of(version, &line.placed).await?;
        let keys = self.keys()?;
        let fresh = Arc::new(SignedBody::new(&keys, (&line.placed.event.id, now), body));
        *said = Some((version, fresh.clone()));
        Ok(fresh)
    }
}
