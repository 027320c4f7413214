//! Revoking receipts before they are used.

use countersign_domain::log::event::EventType;
use countersign_domain::primitives::id::{Jti, PrincipalId};
use countersign_domain::threads::flow::{ReceiptRow, Revoked};
use countersign_domain::threads::thread::{HeadUse, Thread};
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::json;

use super::verify::peek_receipt;
use crate::error::{Error, Result};
use crate::platform::event_recorder;
use crate::platform::reason::cut_reason;
use crate::platform::retry::retrying;
use crate::writes::Writes;

/// The person or token that revokes a receipt.
#[derive(Clone, Debug)]
pub enum Revoker {
    Admin(PrincipalId),
    /// A reviewer, who must be one of the approvers.
    Reviewer(countersign_domain::primitives::id::AccountId),
}

impl Writes {
    /// Revokes a receipt. `verify` refuses it from then on. A write that was allowed before is not undone.
    pub async fn revoke_receipt(&self, by: &Revoker, jti: &Jti, reason: &str) -> Result<()> {
        retrying!({
            let (keys, now, reason) = (self.core.keys()?, self.core.now(), cut_reason(reason));
            let receipt: Stored<ReceiptRow> = self.core.need(&keys, jti.as_str(), "receipt").await?;
            let principal = match by {
                Revoker::Admin(principal) => principal.clone(),
                Revoker::Reviewer(account) if receipt.record.reviewers.contains(account) => PrincipalId::from(account),
                Revoker::Reviewer(_) => {
                    return Err(Error::Forbidden(
                        "only a reviewer who approved the change may revoke its receipt. Ask one of them or an administrator",
                    ));
                }
            };
            // A repeated revocation succeeds, so that an emergency script can retry.
            if receipt.record.revoked.is_some() {
                return Ok(());
            }
            let stored = self.core.thread(&keys, &receipt.record.thread).await?;
            let mut thread = stored.record.clone();
            if thread.head.transition == receipt.record.transition && thread.head.usage == (HeadUse::Unused {}) {
                thread.head.usage = HeadUse::Revoked {};
            } else {
                // The approved version is in use or was built upon, so later commits require their own approval.
                thread.taken_back |= rests_on(&thread, &receipt.record);
            }
            let mut record = receipt.record.clone();
            record.revoked = Some(Revoked { at: now, by: principal.clone(), reason: reason.clone() });
            let mut draft = Draft::new(keys.row(), now);
            let data =
                json!({"receipt": jti, "by": principal, "reason": reason, "owed": thread.rests_on_revoked_approval()});
            event_recorder::append_thread_event(&mut draft, &mut thread, now, EventType::ReceiptRevoked, data)?;
            draft.replace(&receipt, &record)?;
            draft.replace(&stored, &thread)?;
            self.core.store_response(&mut draft, &keys, &())?;
            self.core.commit(draft.finish()).await
        })
    }
}

/// Returns whether the head could be written because of this approval. Either the head is the approved
/// version, or it was committed on top of it since the last write and needs no receipt of its own.
fn rests_on(thread: &Thread, receipt: &ReceiptRow) -> bool {
    let version = peek_receipt(&receipt.token).map(|it| it.version);
    let on_top = !thread.head.needs_receipt && version.is_none_or(|it| it > thread.written_version);
    thread.head.transition == receipt.transition || on_top
}
