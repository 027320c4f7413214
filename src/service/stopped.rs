//! Whether what was let through still is. A decision is the same for ever; what became of it since is asked here.

use super::Service;
use super::error::Result;
use super::verify::peek_receipt;
use crate::domain::chain::denial::DenialCode;
use crate::domain::chain::hash::Digest;
use crate::domain::chain::verify::check_times;
use crate::domain::flow::ReceiptRow;
use crate::domain::keys::Keys;
use crate::domain::transition::{Outcome, Transition};

impl Service {
    /// Why nothing may be done any more by a transition that is in the chain, in verify's words; `None` while something
    /// may, and for what is not in it. Whether it is the head, and was written, is between verify and a writer.
    pub async fn stopped(&self, digest: Digest) -> Result<Option<DenialCode>> {
        let keys = self.keys()?;
        let transition = self.stated(&keys, digest).await?;
        if transition.outcome.entry().is_none() {
            return Ok(None);
        }
        let thread = self.thread(&keys, &transition.statement.thread).await?;
        let standing = self.standing(&keys, thread).await?;
        Ok(if standing.verifying_halted() {
            Some(DenialCode::Halted)
        } else if standing.thread.record.closed.is_some() {
            Some(DenialCode::Closed)
        } else if !standing.flow.record.accepted().contains(&transition.statement.policy) {
            Some(DenialCode::PolicyMismatch)
        } else {
            self.receipt_stopped(&keys, &transition).await?
        })
    }

    async fn receipt_stopped(&self, keys: &Keys, transition: &Transition) -> Result<Option<DenialCode>> {
        let Outcome::Approved { receipt, .. } = &transition.outcome else { return Ok(None) };
        let receipt = self.fetch::<ReceiptRow>(keys, receipt.as_str()).await?.map(|it| it.record);
        let Some(claims) = receipt.as_ref().and_then(|it| peek_receipt(&it.token)) else {
            return Ok(Some(DenialCode::ChainBroken));
        };
        if receipt.is_some_and(|it| it.revoked.is_some()) {
            return Ok(Some(DenialCode::Revoked));
        }
        Ok(check_times(&claims, self.now()).err())
    }
}
