//! Whether an approved or committed change may still be written. The decision itself never changes, so this
//! is a separate query.

use countersign_domain::chain::denial::DenialCode;
use countersign_domain::chain::entry::Entry;
use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::jws::{self, TokenType};
use countersign_domain::chain::receipt::Receipt;
use countersign_domain::chain::verify_write::check_times;
use countersign_domain::keys::{KeyState, KeyUse, Keys, PublicKey};
use countersign_domain::threads::flow::ReceiptRow;
use countersign_domain::threads::transition::{Transition, TransitionOutcome};

use crate::error::Result;
use crate::writes::Writes;

impl Writes {
    /// Returns the denial code if a committed transition may not be written any more. Returns `None` while it
    /// may, and for a transition that is not committed. Whether it is the head and unused is left to
    /// `verify`.
    pub async fn stopped(&self, digest: Digest) -> Result<Option<DenialCode>> {
        let keys = self.core.keys()?;
        let transition = self.threads.stated(&keys, digest).await?;
        let Some(entry) = transition.outcome.entry() else { return Ok(None) };
        let signed = jws::read::<Entry>(entry, TokenType::Entry).is_ok_and(|it| is_trusted(&keys, it.kid()));
        let thread = self.core.thread(&keys, &transition.statement.thread).await?;
        let standing = self.core.standing(&keys, thread).await?;
        // The order is the one of `verify`, so that both report the same code.
        Ok(if standing.verifying_halted() {
            Some(DenialCode::Halted)
        } else if standing.thread.record.closed.is_some() {
            Some(DenialCode::Closed)
        } else if !signed {
            Some(DenialCode::ChainBroken)
        } else if !standing.flow.record.accepted().contains(&transition.statement.policy) {
            Some(DenialCode::PolicyMismatch)
        } else {
            self.receipt_stopped(&keys, &transition).await?
        })
    }

    async fn receipt_stopped(&self, keys: &Keys, transition: &Transition) -> Result<Option<DenialCode>> {
        let TransitionOutcome::Approved { receipt, .. } = &transition.outcome else { return Ok(None) };
        let receipt = self.core.fetch::<ReceiptRow>(keys, receipt.as_str()).await?.map(|it| it.record);
        let read = receipt.as_ref().and_then(|it| jws::read::<Receipt>(&it.token, TokenType::Receipt).ok());
        let Some(read) = read else { return Ok(Some(DenialCode::ChainBroken)) };
        if !is_trusted(keys, read.kid()) {
            return Ok(Some(DenialCode::UnknownKey));
        }
        if receipt.is_some_and(|it| it.revoked.is_some()) {
            return Ok(Some(DenialCode::Revoked));
        }
        Ok(check_times(read.claims_unverified(), self.core.now()).err())
    }
}

/// Returns whether signatures of this key are accepted.
fn is_trusted(keys: &Keys, kid: &str) -> bool {
    let state = keys.public(KeyUse::Chain, kid).map(PublicKey::state);
    matches!(state, Some(KeyState::Signing | KeyState::Retired))
}
