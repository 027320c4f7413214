//! The latest lines of the audit log, read and serialized once for all delivery cursors.

use std::sync::Arc;

use countersign_domain::delivery::endpoint_kind::PayloadVersion;
use countersign_domain::delivery::signature::{SignedBody, second_of};
use countersign_domain::primitives::time::Timestamp;

use crate::delivery::Deliveries;
use crate::delivery::tail_cache::TailLine;
use crate::error::Result;

/// Number of lines in memory. Enough for cursors that are close together, but not for one that has to catch up.
const LINES_MAX: usize = 1_000;

impl Deliveries {
    /// Returns at most `limit` lines after a position. The second part is the position to continue from, which is the
    /// same position at the end of the log.
    pub(super) async fn lines_after(&self, after: u64, limit: u32) -> Result<(Vec<Arc<TailLine>>, u64)> {
        // The lock makes concurrent readers of the same position wait for this read instead of repeating it.
        let mut known = self.tail.lines.lock().await;
        let wanted = after + 1..=after + u64::from(limit);
        // Cached positions can have gaps, so the result ends at the first one.
        let have: Vec<Arc<TailLine>> = known
            .range(wanted.clone())
            .zip(wanted)
            .map_while(|(it, place)| (*it.0 == place).then(|| it.1.clone()))
            .collect();
        if let Some(last) = have.last().map(|it| it.placed.index) {
            return Ok((have, last));
        }
        let (read, next) = self.log.events_after(after, None, limit).await?;
        let read: Vec<Arc<TailLine>> = read.into_iter().map(TailLine::new).collect();
        known.extend(read.iter().map(|it| (it.placed.index, it.clone())));
        while known.len() > LINES_MAX {
            known.pop_first();
        }
        Ok((read, next))
    }

    /// Returns the signed body of a line. Within one second, all endpoints get the same body with the same signature.
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
        let keys = self.core.keys()?;
        let fresh = Arc::new(SignedBody::new(&keys, &line.placed.event.id, now, body));
        *said = Some((version, fresh.clone()));
        Ok(fresh)
    }
}
