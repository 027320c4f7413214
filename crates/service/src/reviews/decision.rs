//! The decision that an agent resumes with. The body for an outcome never changes, except if a later policy
//! redacts its comment.

use std::collections::BTreeMap;

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::opening::Opening;
use countersign_domain::identity::account::Token;
use countersign_domain::identity::party::{Author, Party};
use countersign_domain::json::diff::LeafChange;
use countersign_domain::keys::Keys;
use countersign_domain::policy::Policy;
use countersign_domain::primitives::id::{AccountId, Jti, NodeId, ReviewId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Hold, HoldState, Vote, VoteVerdict};
use countersign_domain::threads::flow::ReceiptRow;
use countersign_domain::threads::transition::{Transition, TransitionOutcome};
use countersign_store::record::Stored;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::reviews::Reviews;
use crate::threads::transition_view::TransitionView;

/// The decision on a transition, which an agent resumes with.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DecisionResponse {
    /// Whether the reviewers, or the policy without approval, allowed the change.
    pub approved: bool,
    /// `committed`, `approved`, `denied`, `expired`, `cancelled` or `superseded`.
    pub decision: String,
    /// The digest of the decided transition.
    pub transition_digest: Digest,
    /// The last voter. Null if no person decided.
    pub reviewer_id: Option<AccountId>,
    /// Every reviewer who voted for the decision.
    pub reviewers: Vec<AccountId>,
    /// The delegated votes: from the voter's account to the delegator's. Left out if there are none.
    #[serde(rename = "for", default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    pub absent: BTreeMap<AccountId, AccountId>,
    /// The id of the receipt (`jti`).
    pub nonce: Option<Jti>,
    /// The expiry time of the receipt.
    pub expires_at: Option<Timestamp>,
    /// The receipt.
    pub receipt: Option<String>,
    /// The committed version.
    pub version: Option<u64>,
    /// The comment of the last voter.
    pub comment: Option<String>,
    /// The digest of the transition that replaced it, if any.
    pub superseded_by: Option<Digest>,
}

impl Reviews {
    /// Returns the decision on a transition, or `None` while its review is pending.
    pub async fn decision(&self, digest: Digest, reader: &Party) -> Result<(ThreadId, Option<DecisionResponse>)> {
        let keys = self.core.keys()?;
        let transition = self.threads.stated(&keys, digest).await?;
        let thread = transition.statement.thread.clone();
        let Some(hold) = self.threads.hold_of(&keys, digest).await? else {
            return Ok((thread, Some(committed(&transition))));
        };
        // A passed deadline is a decision even before the worker has recorded it.
        if matches!(hold.record.state, HoldState::Open {}) && !hold.record.is_open(self.core.now()) {
            self.threads.expire_hold(&hold.record.id).await?;
            let hold = self.threads.hold_of(&keys, digest).await?.map(|it| it.record);
            return Ok((thread, self.decided(&keys, hold.as_ref(), reader).await?));
        }
        Ok((thread, self.decided(&keys, Some(&hold.record), reader).await?))
    }

    async fn decided(&self, keys: &Keys, hold: Option<&Hold>, reader: &Party) -> Result<Option<DecisionResponse>> {
        let Some(hold) = hold else { return Ok(None) };
        let receipt: Option<Stored<ReceiptRow>> = match &hold.state {
            HoldState::Approved { receipt, .. } => self.core.fetch(keys, receipt.as_str()).await?,
            _ => None,
        };
        let Some(mut decision) = decision_of(hold, receipt.map(|it| it.record)) else { return Ok(None) };
        if let (Some(comment), Some(author)) = (decision.comment.as_mut(), &decision.reviewer_id) {
            let author = Author::of(self.threads.party_of(keys, &author.into()).await?);
            *comment = self.threads.redacted_comment(keys, hold, reader, &author, comment).await?;
        }
        decision.superseded_by = self.proposals.superseding_review(keys, &hold.state).await?;
        Ok(Some(decision))
    }

    /// Returns the review of a transition, if it was held for approval.
    pub async fn review_about(&self, digest: Digest) -> Result<Option<ReviewId>> {
        Ok(self.threads.hold_of(&*self.core.keys()?, digest).await?.map(|it| it.record.id))
    }

    /// Returns the part of an effect that an agent may see. The active policy and the policy of the
    /// transition must both allow it for the same node.
    pub async fn visible_effect(&self, token: &Token, told: &TransitionView) -> Result<Vec<LeafChange>> {
        let keys = self.core.keys()?;
        let thread = self.core.thread(&keys, &told.thread).await?;
        let active = self.core.flow(&keys, &thread.record.flow).await?.record.policy;
        let mut policies = self.threads.policies_of(&keys, &told.statement).await?;
        // The active policy may redact paths that the old policy showed.
        policies.push(self.policies.policy(&keys, active).await?);
        let reads = |policy: &Policy, node: &NodeId, change: &LeafChange| {
            policy.node(node).is_some_and(|it| it.reads().covers(&change.pointer))
        };
        let seen =
            |change: &&LeafChange| token.nodes.iter().any(|node| policies.iter().all(|it| reads(it, node, change)));
        Ok(told.changes.iter().filter(seen).cloned().collect())
    }

    /// Returns the complete opening of a transition for auditors, without redaction.
    pub async fn opening(&self, digest: Digest) -> Result<Opening> {
        let keys = self.core.keys()?;
        let transition = self.threads.transition(&keys, digest).await?;
        let policy = self.policies.policy(&keys, transition.statement.policy).await?;
        self.threads.open_transition(&keys, &transition, &policy, &|_| false).await
    }
}

/// Returns the review of a transition, pending or ended.
pub fn review_of(transition: &Transition) -> Option<&ReviewId> {
    match &transition.outcome {
        TransitionOutcome::Held { review }
        | TransitionOutcome::Approved { review, .. }
        | TransitionOutcome::Ended { review, .. } => Some(review),
        TransitionOutcome::Committed { .. } | TransitionOutcome::Observed { .. } => None,
    }
}

fn committed(transition: &Transition) -> DecisionResponse {
    DecisionResponse {
        approved: true,
        version: Some(transition.statement.version),
        ..undecided(transition.digest, "committed")
    }
}

fn undecided(digest: Digest, word: &str) -> DecisionResponse {
    DecisionResponse {
        approved: false,
        decision: word.to_owned(),
        transition_digest: digest,
        reviewer_id: None,
        reviewers: Vec::new(),
        absent: BTreeMap::new(),
        nonce: None,
        expires_at: None,
        receipt: None,
        version: None,
        comment: None,
        superseded_by: None,
    }
}

fn decision_of(hold: &Hold, receipt: Option<ReceiptRow>) -> Option<DecisionResponse> {
    let with = |word: &str| undecided(hold.transition, word);
    Some(match &hold.state {
        HoldState::Open {} => return None,
        HoldState::Approved { receipt: jti, version, .. } => {
            // The gateway signed this receipt itself and its row is sealed, so the claims need no
            // verification here.
            let claims = receipt.as_ref().and_then(|it| crate::writes::verify::peek_receipt(&it.token));
            DecisionResponse {
                approved: true,
                nonce: Some(jti.clone()),
                expires_at: claims.map(|it| Timestamp::from_millis(it.exp.saturating_mul(1000))),
                receipt: receipt.map(|it| it.token),
                version: Some(*version),
                ..voted(hold, VoteVerdict::Approve, with("approved"))
            }
        }
        HoldState::Denied { .. } => voted(hold, VoteVerdict::Deny, with("denied")),
        HoldState::Expired { .. } => with("expired"),
        HoldState::Cancelled { .. } => with("cancelled"),
        HoldState::Superseded { .. } => with("superseded"),
    })
}

fn voted(hold: &Hold, verdict: VoteVerdict, mut decision: DecisionResponse) -> DecisionResponse {
    let mut deciders = hold.counted_votes().filter(|vote| vote.verdict == verdict);
    let absent = |vote: &Vote| Some((vote.reviewer.clone(), vote.absent.as_ref()?.person.clone()));
    decision.absent = deciders.clone().filter_map(absent).collect();
    decision.reviewers = deciders.clone().map(|vote| vote.reviewer.clone()).collect();
    // The last vote completed the quorum, so its comment is the decision's comment.
    let last = deciders.next_back();
    decision.reviewer_id = last.map(|vote| vote.reviewer.clone());
    decision.comment = last.and_then(|vote| vote.comment.clone());
    decision
}
