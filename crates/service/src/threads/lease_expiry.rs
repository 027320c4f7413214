//! Leases that expired without an outcome from their writer.

use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::thread::{HeadUse, Thread};
use countersign_store::change::Draft;
use serde_json::json;

use crate::error::{Error, Result};
use crate::platform::event_recorder;
use crate::platform::retry::retrying;
use crate::threads::Threads;

/// Records an expired lease before another change of the head, and relies on its expiry by the database's
/// clock. Later the event could not be recorded, because the new head hides the lease. Without an expired
/// lease it does nothing.
pub(crate) fn record_expired_lease(draft: &mut Draft<'_>, thread: &mut Thread, now: Timestamp) -> Result<()> {
    let HeadUse::Reserved { write, lease_expires_at } = thread.head.usage.clone() else { return Ok(()) };
    if lease_expires_at > now {
        return Ok(());
    }
    // The local clock may be ahead. The commit fails if the lease is still valid for the database.
    draft.not_before(lease_expires_at);
    let data = json!({"write_id": write.write_id, "by": write.principal, "fence": thread.fence});
    if thread.unresolved.insert(write) {
        event_recorder::append_thread_event(draft, thread, now, EventType::WriteLapsed, data)?;
    }
    Ok(())
}

impl Threads {
    /// Logs an expired lease. Reads treat the lease as expired even before this event.
    pub async fn log_expired_lease(&self, thread: &ThreadId) -> Result<()> {
        // By the database's clock the lease may not have expired.
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let stored = self.core.thread(&keys, thread).await?;
            let mut record = stored.record.clone();
            let mut draft = Draft::new(keys.row(), now);
            record_expired_lease(&mut draft, &mut record, now)?;
            if record.unresolved == stored.record.unresolved {
                return Ok(());
            }
            draft.replace(&stored, &record)?;
            self.core.commit(draft.finish()).await
        })
        .or_else(Error::ok_if_too_soon)
    }
}
