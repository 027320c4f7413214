//! Detects a clock that was set back, by comparing it with the newest event.

use std::fmt;
use std::time::Duration;

use countersign_domain::log::event::Event;
use countersign_domain::primitives::time::Timestamp;
use countersign_store::records::{LOG, LogRow};
use countersign_store::{CLOCK_SKEW_MILLIS_MAX, Cursor, RowFilter};

use crate::error::Result;
use crate::log::Log;

/// Two gateways may each differ from the database's clock by the allowed skew, in opposite directions.
const APART: Duration = Duration::from_millis(2 * CLOCK_SKEW_MILLIS_MAX.unsigned_abs());

/// A clock that is behind the newest event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockBehind {
    /// The time of the newest event, by the clock that wrote it.
    pub newest: Timestamp,
    pub now: Timestamp,
}

impl ClockBehind {
    pub fn by(&self) -> Duration {
        self.now.until(self.newest)
    }
}

impl fmt::Display for ClockBehind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { newest, now } = self;
        write!(f, "the clock shows {now}, {} s before the newest event ({newest})", self.by().as_secs())
    }
}

impl Log {
    /// Returns whether the clock is behind the newest event by more than clocks may differ. Until it is set right,
    /// leases, receipts and sessions that should have expired are still valid.
    pub async fn clock_behind(&self) -> Result<Option<ClockBehind>> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let reader = self.core.reader(&keys);
        // An event id begins with its time, so one query finds the first later event without reading the
        // others.
        let after = Cursor { due: 0, id: event_ids_from(now.plus(APART)) };
        let Some(later) = reader.list::<Event>(RowFilter::All, Some(&after), 1).await?.pop() else { return Ok(None) };
        let last = match reader.last_of::<LogRow>(LOG).await? {
            Some(row) => self.core.fetch::<Event>(&keys, row.record.event.as_str()).await?,
            None => None,
        };
        // One later event proves the problem. The last of the log is only closer to the real distance.
        let newest = last.map_or(later.record.at, |it| it.record.at.max(later.record.at));
        Ok(Some(ClockBehind { newest, now }))
    }
}

/// Returns the lowest id that an event of that moment can have.
pub(crate) fn event_ids_from(moment: Timestamp) -> String {
    let millis = moment.millis().max(0);
    format!("{:08x}-{:04x}", millis >> 16, millis & 0xffff)
}
