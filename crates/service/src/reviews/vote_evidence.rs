//! Returns the signed evidence of votes.

use countersign_domain::chain::signed_vote::VoteEvidence;
use countersign_domain::primitives::id::Jti;
use countersign_domain::threads::flow::ReceiptRow;

use crate::error::{Error, Result};
use crate::identity::passkeys::vote_signature::evidence_of;
use crate::reviews::Reviews;

impl Reviews {
    /// Returns the signed evidence of the approvals in a receipt.
    pub async fn evidence_of_receipt(&self, jti: &Jti) -> Result<Vec<VoteEvidence>> {
        let keys = self.core.keys()?;
        let receipt = self.core.need::<ReceiptRow>(&keys, jti.as_str(), "receipt").await?.record;
        let hold = self.threads.hold_of(&keys, receipt.transition).await?.ok_or(Error::NotFound("receipt"))?.record;
        let signed = hold.votes.iter().filter_map(|it| evidence_of(keys.issuer(), &hold, it));
        Ok(signed.filter(|it| receipt.reviewers.contains(&it.statement.reviewer)).collect())
    }
}
