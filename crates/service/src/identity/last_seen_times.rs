//! The times at which accounts and tokens were last seen, until they are stored.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use countersign_domain::primitives::time::Timestamp;
use countersign_store::records::LastSeenRow;

/// Last-seen times in this process, and the times that are already written.
#[derive(Debug, Default)]
pub(crate) struct LastSeenTimes {
    pub(crate) seen: RwLock<HashMap<String, LastSeenEntry>>,
}

impl LastSeenTimes {
    pub(crate) fn note(&self, of: &str, now: Timestamp) {
        // Most callers are known, and a read lock lets their requests run in parallel.
        if let Some(seen) = self.seen.read().unwrap_or_else(PoisonError::into_inner).get(of) {
            seen.at.fetch_max(now.millis(), Ordering::Relaxed);
            return;
        }
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        if seen.len() < SEEN_MAX {
            let new = LastSeenEntry { at: AtomicI64::new(now.millis()), written: AtomicI64::new(i64::MIN) };
            seen.entry(of.to_owned()).or_insert(new);
        }
    }

    pub(crate) fn forget(&self, now: Timestamp) {
        let recently = now.millis().saturating_sub(millis(FORGOTTEN_AFTER));
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        // A time that is not written yet would be lost.
        seen.retain(|_, it| !it.is_written() || *it.at.get_mut() > recently);
    }

    /// Returns the times that are later than the written ones by at least the precision.
    pub(crate) fn due(&self) -> Vec<LastSeenRow> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        let due = seen.iter().filter(|(_, seen)| !seen.is_written()).map(|(of, seen)| {
            let at = Timestamp::from_millis(seen.at.load(Ordering::Relaxed));
            LastSeenRow { of: of.clone(), at }
        });
        due.take(BATCH).collect()
    }

    pub(crate) fn wrote(&self, sightings: &[LastSeenRow]) {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        for it in sightings {
            if let Some(seen) = seen.get(&it.of) {
                seen.written.fetch_max(it.at.millis(), Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn at(&self, of: &str) -> Option<Timestamp> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        seen.get(of).map(|it| Timestamp::from_millis(it.at.load(Ordering::Relaxed)))
    }
}

#[derive(Debug)]
pub(crate) struct LastSeenEntry {
    pub(crate) at: AtomicI64,
    pub(crate) written: AtomicI64,
}

impl LastSeenEntry {
    /// Returns true if the latest time is written to the required precision.
    pub(crate) fn is_written(&self) -> bool {
        let (at, written) = (self.at.load(Ordering::Relaxed), self.written.load(Ordering::Relaxed));
        at.saturating_sub(written) < millis(GRAIN)
    }
}

pub(crate) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// More than come in an hour. Above this limit, new ones are not recorded.
pub(crate) const SEEN_MAX: usize = 20_000;

/// Entries older than this are dropped from memory. Their row stays.
pub(crate) const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);

/// Precision of the times.
pub const GRAIN: Duration = Duration::from_secs(300);

/// Number of rows in one change.
pub(crate) const BATCH: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_written_entry_is_evicted_for_a_new_one() {
        let (sightings, first) = (LastSeenTimes::default(), Timestamp::from_millis(0));
        for number in 0..SEEN_MAX {
            sightings.note(&format!("session/{number}"), first);
        }
        let later = first.plus(FORGOTTEN_AFTER * 2);
        sightings.note("session/0", later);
        sightings.note("session/anew", later);
        assert_eq!(sightings.at("session/anew"), None, "the limit is reached");
        sightings.forget(later);
        assert_eq!(sightings.at("session/1"), Some(first), "an entry that is not written stays in memory");
        sightings.wrote(&[first, later].map(|at| LastSeenRow { of: "session/0".to_owned(), at }));
        sightings.wrote(&[LastSeenRow { of: "session/1".to_owned(), at: first }]);
        sightings.forget(later);
        assert_eq!((sightings.at("session/0"), sightings.at("session/1")), (Some(later), None));
        sightings.note("session/anew", later);
        assert_eq!(sightings.at("session/anew"), Some(later));
    }
}
