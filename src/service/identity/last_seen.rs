//! Tracks when tokens, people and sessions were last seen. The times are in memory and are written every few minutes.
//!
//! Each has its own row, and no decision depends on it. Recording a time therefore neither delays nor rejects a
//! request. A crash loses some minutes of it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use countersign_domain::keys::Keys;
use countersign_domain::primitives::time::Timestamp;

use crate::service::Service;
use crate::service::error::Result;
use crate::store::LIST_ROWS_MAX;
use crate::store::change::Draft;
use crate::store::record::Stored;
use crate::store::records::LastSeenRow;

/// Precision of the times.
pub const GRAIN: Duration = Duration::from_secs(300);

/// More than come in an hour. Above this limit, new ones are not recorded.
const SEEN_MAX: usize = 20_000;

/// Entries older than this are dropped from memory. Their row stays.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);

/// Number of rows in one change.
const BATCH: usize = 200;

/// Last-seen times in this process, and the times that are already written.
#[derive(Debug, Default)]
pub(in crate::service) struct LastSeenTimes {
    seen: RwLock<HashMap<String, LastSeenEntry>>,
}

#[derive(Debug)]
struct LastSeenEntry {
    at: AtomicI64,
    written: AtomicI64,
}

impl LastSeenEntry {
    /// Returns true if the latest time is written to the required precision.
    fn is_written(&self) -> bool {
        let (at, written) = (self.at.load(Ordering::Relaxed), self.written.load(Ordering::Relaxed));
        at.saturating_sub(written) < millis(GRAIN)
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

impl LastSeenTimes {
    fn note(&self, of: &str, now: Timestamp) {
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

    fn forget(&self, now: Timestamp) {
        let recently = now.millis().saturating_sub(millis(FORGOTTEN_AFTER));
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|_, it| !it.is_written() || *it.at.get_mut() > recently);
    }

    /// Returns the times that are later than the written ones by at least the precision.
    fn due(&self) -> Vec<LastSeenRow> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        let due = seen.iter().filter(|(_, seen)| !seen.is_written()).map(|(of, seen)| {
            let at = Timestamp::from_millis(seen.at.load(Ordering::Relaxed));
            LastSeenRow { of: of.clone(), at }
        });
        due.take(BATCH).collect()
    }

    fn wrote(&self, sightings: &[LastSeenRow]) {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        for it in sightings {
            if let Some(seen) = seen.get(&it.of) {
                seen.written.fetch_max(it.at.millis(), Ordering::Relaxed);
            }
        }
    }

    fn at(&self, of: &str) -> Option<Timestamp> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        seen.get(of).map(|it| Timestamp::from_millis(it.at.load(Ordering::Relaxed)))
    }
}

impl Service {
    /// Records that something was seen: `token/…`, `account/…` or `session/…`.
    pub fn mark_seen(&self, of: &str) {
        self.sightings.note(of, self.now());
    }

    /// Writes the new times. Returns how many.
    pub async fn flush_last_seen(&self) -> Result<usize> {
        self.sightings.forget(self.now());
        let due = self.sightings.due();
        if due.is_empty() {
            return Ok(0);
        }
        let keys = self.keys()?;
        match self.put_sightings(&keys, &due).await {
            // Another gateway wrote first. The next run tries again.
            Err(error) if error.is_conflict() => Ok(0),
            other => other.map(|()| due.len()),
        }
    }

    async fn put_sightings(&self, keys: &Keys, due: &[LastSeenRow]) -> Result<()> {
        let ids: Vec<String> = due.iter().map(|it| it.of.clone()).collect();
        let stored: Vec<Stored<LastSeenRow>> = self.reader(keys).get_many(&ids).await?;
        let mut draft = Draft::new(keys.row(), self.now());
        for sighting in due {
            match stored.iter().find(|it| it.record.of == sighting.of) {
                Some(before) if before.record.at.plus(GRAIN) > sighting.at => {}
                Some(before) => draft.replace(before, sighting)?,
                None => drop(draft.insert(sighting)?),
            }
        }
        self.commit(draft.finish()).await?;
        self.sightings.wrote(due);
        Ok(())
    }

    /// Returns when each of these was last seen by any gateway, with a precision of some minutes.
    pub async fn last_seen(&self, of: &[String]) -> Result<HashMap<String, Timestamp>> {
        let keys = self.keys()?;
        let mut seen = HashMap::new();
        for ids in of.chunks(LIST_ROWS_MAX as usize) {
            let stored: Vec<Stored<LastSeenRow>> = self.reader(&keys).get_many(ids).await?;
            seen.extend(stored.into_iter().map(|it| (it.record.of, it.record.at)));
        }
        for id in of {
            if let Some(at) = self.sightings.at(id) {
                let known = seen.entry(id.clone()).or_insert(at);
                *known = at.max(*known);
            }
        }
        Ok(seen)
    }
}

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
