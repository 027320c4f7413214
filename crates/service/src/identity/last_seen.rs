//! Tracks when tokens, people and sessions were last seen. The times are in memory and are written every few minutes.
//!
//! Each has its own row, and no decision depends on it. Recording a time therefore neither delays nor rejects a
//! request. A crash loses some minutes of it.

use std::collections::HashMap;

use countersign_domain::keys::Keys;
use countersign_domain::primitives::time::Timestamp;
use countersign_store::LIST_ROWS_MAX;
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use countersign_store::records::LastSeenRow;

use crate::error::Result;
use crate::identity::Identity;
use crate::identity::last_seen_times::GRAIN;

impl Identity {
    /// Records that something was seen: `token/…`, `account/…` or `session/…`.
    pub fn mark_seen(&self, of: &str) {
        self.sightings.note(of, self.core.now());
    }

    /// Writes the new times. Returns how many.
    pub async fn flush_last_seen(&self) -> Result<usize> {
        self.sightings.forget(self.core.now());
        let due = self.sightings.due();
        if due.is_empty() {
            return Ok(0);
        }
        let keys = self.core.keys()?;
        match self.put_sightings(&keys, &due).await {
            // Another gateway wrote first. The next run tries again.
            Err(error) if error.is_conflict() => Ok(0),
            other => other.map(|()| due.len()),
        }
    }

    async fn put_sightings(&self, keys: &Keys, due: &[LastSeenRow]) -> Result<()> {
        let ids: Vec<String> = due.iter().map(|it| it.of.clone()).collect();
        let stored: Vec<Stored<LastSeenRow>> = self.core.reader(keys).get_many(&ids).await?;
        let mut draft = Draft::new(keys.row(), self.core.now());
        for sighting in due {
            match stored.iter().find(|it| it.record.of == sighting.of) {
                // Another gateway has already written a time that is precise enough.
                Some(before) if before.record.at.plus(GRAIN) > sighting.at => {}
                Some(before) => draft.replace(before, sighting)?,
                None => drop(draft.insert(sighting)?),
            }
        }
        self.core.commit(draft.finish()).await?;
        // Marked after the commit, so that the next run repeats a failed change.
        self.sightings.wrote(due);
        Ok(())
    }

    /// Returns when each of these was last seen by any gateway, with a precision of some minutes.
    pub async fn last_seen(&self, of: &[String]) -> Result<HashMap<String, Timestamp>> {
        let keys = self.core.keys()?;
        let mut seen = HashMap::new();
        for ids in of.chunks(LIST_ROWS_MAX as usize) {
            let stored: Vec<Stored<LastSeenRow>> = self.core.reader(&keys).get_many(ids).await?;
            seen.extend(stored.into_iter().map(|it| (it.record.of, it.record.at)));
        }
        // This process may have seen them later than the last written time.
        for id in of {
            if let Some(at) = self.sightings.at(id) {
                let known = seen.entry(id.clone()).or_insert(at);
                *known = at.max(*known);
            }
        }
        Ok(seen)
    }
}
