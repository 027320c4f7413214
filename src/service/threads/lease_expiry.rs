//! Leases that passed without a word from their writers.

use serde_json::json;

use crate::domain::log::event::EventType;
use crate::domain::primitives::id::ThreadId;
use crate::domain::primitives::time::Timestamp;
use crate::domain::threads::thread::{HeadUse, Thread};
use crate::service::Service;
use crate::service::error::Result;
use crate::service::platform::event_recorder;
use crate::service::platform::retry::retrying;
use crate::store::change::Draft;

/// Whoever goes on over a lease that has passed relies on that by the database's clock, and has it told first: once
/// the head is another, nobody else would find it. Nothing, where no lease has passed.
pub(in crate::service) fn record_expired_lease(
    draft: &mut Draft<'_>,
    thread: &mut Thread,
    now: Timestamp,
) -> Result<()> {
    let HeadUse::Reserved { write, lease_expires_at } = thread.head.usage.clone() else { return Ok(()) };
    if lease_expires_at > now {
        return Ok(());
    }
    draft.not_before(lease_expires_at);
    let data = json!({"write_id": write.write_id, "by": write.principal, "fence": thread.fence});
    if thread.unresolved.insert(write) {
        event_recorder::append_thread_event(draft, thread, now, EventType::WriteLapsed, data)?;
    }
    Ok(())
}

impl Service {
    /// Logs that a lease passed without a word. Everybody who reads already counts it as lapsed.
    pub async fn log_expired_lease(&self, thread: &ThreadId) -> Result<()> {
        match retrying!(self.note_lapse_once(thread)) {
            // By the database's clock it has not.
            Err(error) if error.is_too_soon() => Ok(()),
            done => done,
        }
    }

    async fn note_lapse_once(&self, thread: &ThreadId) -> Result<()> {
        let (keys, now) = (self.keys()?, self.now());
        let stored = self.thread(&keys, thread).await?;
        let mut record = stored.record.clone();
        let mut draft = Draft::new(keys.row(), now);
        record_expired_lease(&mut draft, &mut record, now)?;
        if record.unresolved == stored.record.unresolved {
            return Ok(());
        }
        draft.replace(&stored, &record)?;
        self.commit(draft.finish()).await
    }
}
