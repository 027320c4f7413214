//! Finds earlier requests: with the same content, from the same signed post, and the attempt before.

use countersign_domain::identity::account::Token;
use countersign_domain::interrupts::{HostAssertion, Interrupt, InterruptRejected, SignedPostId, SignedPostRecord};
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::policy::Policy;
use countersign_domain::primitives::time::Timestamp;
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use countersign_store::records::{interrupt_alias, post_id};

use super::posted_data;
use crate::error::Result;
use crate::interrupts::Interrupts;
use crate::platform::event_recorder;

impl Interrupts {
    /// Returns the interrupt that the host application already requested with this content or this post.
    pub(super) async fn find_duplicate(
        &self,
        keys: &Keys,
        source: &Stored<Token>,
        asserted: &HostAssertion,
        post: Option<&SignedPostId>,
    ) -> Result<Option<Interrupt>> {
        let principal = source.record.principal();
        if let Some(post) = post
            && let Some(before) =
                self.core.fetch::<SignedPostRecord>(keys, &post_id(&principal, &post.webhook_id)).await?
        {
            // Reusing a webhook id with another body is a replay attack or a defect of the host application.
            if before.record.body != post.body {
                return Err(InterruptRejected::PostDiffers.into());
            }
            return Ok(Some(self.interrupt_row(keys, &before.record.interrupt).await?.record));
        }
        let Some(before) = self.asked_before(keys, source, asserted, asserted.attempt).await? else {
            return Ok(None);
        };
        // The same digest with other content cannot be the same request.
        if before.record.asserted != *asserted {
            return Err(InterruptRejected::Differs.into());
        }
        // Recorded here too, so that the same webhook id with another body is refused later.
        if let Some(post) = post {
            let now = self.core.now();
            let mut draft = Draft::new(keys.row(), now);
            draft.require_unchanged(source);
            record_signed_post(&mut draft, &before.record, post, now)?;
            self.core.commit(draft.finish()).await?;
        }
        Ok(Some(before.record))
    }

    async fn asked_before(
        &self,
        keys: &Keys,
        source: &Stored<Token>,
        asserted: &HostAssertion,
        attempt: u32,
    ) -> Result<Option<Stored<Interrupt>>> {
        let alias = interrupt_alias(&source.record.principal(), attempt, &asserted.transition_digest);
        Ok(self.core.reader(keys).get_by_alias::<Interrupt>(&alias).await?)
    }

    /// Checks that the attempt before has ended, and that the policy allows this number of attempts.
    pub(super) async fn check_attempt(
        &self,
        keys: &Keys,
        source: &Stored<Token>,
        asserted: &HostAssertion,
        policy: &Policy,
    ) -> Result<()> {
        if asserted.attempt > policy.approval().attempts() {
            return Err(InterruptRejected::AttemptsExhausted.into());
        }
        if asserted.attempt > 1 {
            let before = self.asked_before(keys, source, asserted, asserted.attempt - 1).await?;
            let before = before.ok_or(InterruptRejected::EarlierAttempt)?;
            // The attempt before may be past its deadline without having been ended.
            self.settle_once(&before.record.id).await?;
            let before = self.interrupt_row(keys, &before.record.id).await?;
            before.record.ending().ok_or(InterruptRejected::EarlierAttempt)?;
        }
        Ok(())
    }
}

pub(super) fn record_signed_post(
    draft: &mut Draft<'_>,
    interrupt: &Interrupt,
    post: &SignedPostId,
    now: Timestamp,
) -> Result<()> {
    let SignedPostId { webhook_id, body } = post.clone();
    let posted = SignedPostRecord {
        source: interrupt.source.token.clone(),
        webhook_id,
        body,
        interrupt: interrupt.id.clone(),
        at: now,
    };
    draft.insert(&posted)?;
    event_recorder::outside(draft, Some(&interrupt.flow), now, EventType::InterruptPosted, posted_data(&posted))
}
