//! Closes threads and reopens them.

use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::{PrincipalId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Hold, HoldState};
use countersign_domain::threads::thread::{Thread, ThreadClosure, ThreadStatusCode};
use countersign_domain::threads::transition::HoldEndReason;
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::json;

use super::hold_end::HoldEnd;
use super::lease_expiry::record_expired_lease;
use crate::error::{Error, Result};
use crate::platform::event_recorder;
use crate::platform::reason::cut_reason;
use crate::platform::retry::retrying;
use crate::threads::Threads;

/// Closes the thread of an approval request that has ended. Other threads stay open.
pub(crate) fn close_request(draft: &mut Draft<'_>, thread: &mut Thread, now: Timestamp) -> Result<()> {
    let Some(request) = thread.request.as_ref().filter(|_| thread.closed.is_none()) else { return Ok(()) };
    let (by, reason) = (request.instance.clone(), "the approval request has ended".to_owned());
    let data = json!({"by": by, "reason": reason});
    thread.closed = Some(ThreadClosure { by, at: now, reason });
    event_recorder::append_thread_event(draft, thread, now, EventType::ThreadClosed, data)
}

impl Threads {
    /// Closes a thread. It accepts no proposals, votes or writes until it is reopened.
    pub async fn close_thread(&self, by: &PrincipalId, thread: &ThreadId, reason: &str) -> Result<()> {
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let stored = self.core.thread(&keys, thread).await?;
            let mut record = stored.record.clone();
            // A repeated request succeeds, so that a client can retry.
            if record.closed.is_some() {
                return Ok(());
            }
            // Otherwise the result of the write could not be committed any more.
            if record.live_write(now).is_some() {
                return Err(Error::WriteInProgress);
            }
            let mut draft = Draft::new(keys.row(), now);
            record_expired_lease(&mut draft, &mut record, now)?;
            if let Some(review) = record.hold.clone() {
                let hold: Stored<Hold> = self.core.need(&keys, review.as_str(), "review").await?;
                // A review past its deadline has expired, even if the worker has not recorded it yet.
                let (state, reason) = if hold.record.is_open(now) {
                    (HoldState::Superseded { at: now, by: None, policy: None }, HoldEndReason::Superseded)
                } else {
                    (HoldState::Expired { at: now }, HoldEndReason::Expired)
                };
                let end = HoldEnd { state, reason, at: now };
                self.add_hold_end(&mut draft, &keys, &mut record, &hold, end).await?;
            }
            // The end of its review has closed the thread of an approval request.
            if record.closed.is_none() {
                let reason = cut_reason(reason);
                let data = json!({"by": by, "reason": reason});
                record.closed = Some(ThreadClosure { by: by.clone(), at: now, reason });
                event_recorder::append_thread_event(&mut draft, &mut record, now, EventType::ThreadClosed, data)?;
            }
            draft.replace(&stored, &record)?;
            // The response is stored with its change, so that a repeated request gets it back.
            self.core.store_response(&mut draft, &keys, &())?;
            self.core.commit(draft.finish()).await
        })
    }

    /// Reopens a closed thread. Returns its status after that.
    pub async fn reopen_thread(&self, by: &PrincipalId, thread: &ThreadId, reason: &str) -> Result<ThreadStatusCode> {
        retrying!({
            let (keys, now) = (self.core.keys()?, self.core.now());
            let stored = self.core.thread(&keys, thread).await?;
            let mut record = stored.record.clone();
            if record.closed.take().is_none() {
                return Ok(record.status(now));
            }
            let mut draft = Draft::new(keys.row(), now);
            event_recorder::append_thread_event(
                &mut draft,
                &mut record,
                now,
                EventType::ThreadReopened,
                json!({"by": by, "reason": cut_reason(reason)}),
            )?;
            draft.replace(&stored, &record)?;
            let status = record.status(now);
            self.core.store_response(&mut draft, &keys, &status)?;
            self.core.commit(draft.finish()).await?;
            Ok(status)
        })
    }
}
