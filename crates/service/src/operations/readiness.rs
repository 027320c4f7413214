//! Readiness: whether this gateway can work now. The check commits a row, because a database that is
//! read-only or full still answers reads.

use std::time::Duration;

use countersign_domain::keys::Keys;
use countersign_store::StoreError;
use countersign_store::change::Draft;
use countersign_store::outage::Outage;
use countersign_store::records::{LastSeenRow, READY};

use crate::error::{Error, Result};
use crate::operations::Operations;

/// How long one result is reused. The endpoint needs no authentication, and each check writes to the disk.
const FRESH: Duration = Duration::from_millis(250);

/// The timeout of a check. Together with [`FRESH`] it is under two seconds, the time in which an outage has
/// to show.
const PATIENCE: Duration = Duration::from_millis(1_500);

impl Operations {
    /// Checks that the keys are available, the gateway's row is intact, and the database accepts commits.
    pub async fn ready_to_work(&self) -> Result<()> {
        let keys = self.core.keys()?;
        // The lock is held until the check ends, so concurrent requests share one result.
        let mut last = self.last_check.0.lock().await;
        if let Some((at, outage)) = *last
            && self.core.instant().saturating_duration_since(at) < FRESH
        {
            return outage.map_or(Ok(()), |outage| Err(unavailable(outage)));
        }
        let checked = tokio::time::timeout(PATIENCE, self.check_work(&keys)).await;
        let checked = checked.unwrap_or_else(|_| Err(unavailable(Outage::Down)));
        *last = match &checked {
            Ok(()) => Some((self.core.instant(), None)),
            Err(Error::Unavailable(StoreError::Unavailable { outage, .. })) => {
                Some((self.core.instant(), Some(*outage)))
            }
            // Other errors are not cached: they may be over at the next request.
            Err(_) => None,
        };
        checked
    }

    /// Waits until a file of the open database is removed or replaced. Returns which file.
    pub async fn database_replaced(&self) -> String {
        self.core.store.replaced().await
    }

    async fn check_work(&self, keys: &Keys) -> Result<()> {
        self.core.gateway(keys).await?;
        self.core.store.check_storage().await?;
        self.commit_sighting(keys).await?;
        self.core.store.recent_outage().map_or(Ok(()), |outage| Err(unavailable(outage)))
    }

    /// Commits a small row that no decision relies on.
    async fn commit_sighting(&self, keys: &Keys) -> Result<()> {
        let before = self.core.fetch::<LastSeenRow>(keys, READY).await?;
        let now = self.core.now();
        let mut draft = Draft::new(keys.row(), now);
        let sighting = LastSeenRow { of: READY.to_owned(), at: now };
        match before {
            Some(before) => draft.replace(&before, &sighting)?,
            None => drop(draft.insert(&sighting)?),
        }
        match self.core.commit(draft.finish()).await {
            // Another gateway has just committed the same.
            Err(error) if error.is_conflict() => Ok(()),
            done => done,
        }
    }
}

fn unavailable(outage: Outage) -> Error {
    StoreError::unavailable(outage, "a check of the gateway's readiness").into()
}
