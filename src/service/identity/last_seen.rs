//! Tracks when tokens, people and sessions were last seen. The times are in memory and are written every few minutes.
//!
//! Each has its own row, and no decision depends on it. Recording a time therefore neither delays nor rejects a
//! request. A crash loses some minutes of it.

use std::collections::HashMap;

use countersign_domain::keys::Keys;
use countersign_domain::primitives::time::Timestamp;

use crate::service::Service;
use crate::service::error::Result;
use crate::service::identity::last_seen_times::GRAIN;
use crate::store::LIST_ROWS_MAX;
use crate::store::change::Draft;
use crate::store::record::Stored;
use crate::store::records::LastSeenRow;

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
