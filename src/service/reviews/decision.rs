//! The decision that an agent resumes with. The body for an outcome never changes, except if a later policy
//! redacts its comment.

use std::collections::BTreeMap;
use std::sync::Arc;

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::opening::Opening;
use countersign_domain::chain::statement::{Statement, TransitionType};
use countersign_domain::identity::account::Token;
use countersign_domain::identity::party::{Author, Party};
use countersign_domain::json::diff::{LeafChange, diff};
use countersign_domain::keys::Keys;
use countersign_domain::policy::{
    JudgedWarning, Policy, RedactedChange, RedactedLeaf, redacted_by, shown_arguments_by,
};
use countersign_domain::primitives::id::{AccountId, FlowId, Jti, NodeId, ReviewId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Hold, HoldState, Vote, VoteVerdict};
use countersign_domain::threads::archive::ArchivedLocation;
use countersign_domain::threads::flow::ReceiptRow;
use countersign_domain::threads::transition::{Transition, TransitionOutcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::service::log::browse::WITHHELD;
use crate::service::threads::history::warnings_by;
use crate::service::threads::provenance::TraceStart;
use crate::service::threads::redacted_fields::RedactedField;
use crate::service::threads::redaction::{Redaction, RedactionDetail, TextComparisonScope, beside};
use crate::store::record::Stored;

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

/// A transition as its reader may see it.
#[derive(Clone, Debug)]
pub struct TransitionView {
    pub thread: ThreadId,
    /// `committed`, `observed`, `held`, `approved`, `denied`, `expired`, `cancelled` or `superseded`.
    pub status: String,
    /// The statement of the transition.
    pub statement: Statement,
    /// The signed entry, if the transition is committed.
    pub entry: Option<String>,
    pub changes: Vec<LeafChange>,
    /// The arguments of its tool call, redacted.
    pub arguments: Option<Vec<RedactedLeaf>>,
    /// The whole effect, redacted.
    pub redacted: Vec<RedactedChange>,
    /// The warnings of rules, for the proposer.
    pub warnings: Vec<JudgedWarning>,
    /// The warnings of rules, redacted for other readers.
    pub warnings_shown: Vec<JudgedWarning>,
    /// The kinds of the redacted values.
    pub hidden: Vec<RedactedField>,
    /// The review, if the transition was held for approval.
    pub hold: Option<Hold>,
}

impl Service {
    /// Returns the decision on a transition, or `None` while its review is pending.
    pub async fn decision(&self, digest: Digest, reader: &Party) -> Result<(ThreadId, Option<DecisionResponse>)> {
        let keys = self.keys()?;
        let transition = self.stated(&keys, digest).await?;
        let thread = transition.statement.thread.clone();
        let Some(hold) = self.hold_of(&keys, digest).await? else {
            return Ok((thread, Some(committed(&transition))));
        };
        // A passed deadline is a decision even before the worker has recorded it.
        if matches!(hold.record.state, HoldState::Open {}) && !hold.record.is_open(self.now()) {
            self.expire_hold(&hold.record.id).await?;
            let hold = self.hold_of(&keys, digest).await?.map(|it| it.record);
            return Ok((thread, self.decided(&keys, hold.as_ref(), reader).await?));
        }
        Ok((thread, self.decided(&keys, Some(&hold.record), reader).await?))
    }

    async fn decided(&self, keys: &Keys, hold: Option<&Hold>, reader: &Party) -> Result<Option<DecisionResponse>> {
        let Some(hold) = hold else { return Ok(None) };
        let receipt: Option<Stored<ReceiptRow>> = match &hold.state {
            HoldState::Approved { receipt, .. } => self.fetch(keys, receipt.as_str()).await?,
            _ => None,
        };
        let Some(mut decision) = decision_of(hold, receipt.map(|it| it.record)) else { return Ok(None) };
        if let (Some(comment), Some(author)) = (decision.comment.as_mut(), &decision.reviewer_id) {
            let author = Author::of(self.party_of(keys, &author.into()).await?);
            *comment = self.redacted_comment(keys, hold, reader, &author, comment).await?;
        }
        decision.superseded_by = self.superseding_review(keys, &hold.state).await?;
        Ok(Some(decision))
    }

    /// Returns the transition under review that replaced a superseded one. A confirmed write may also end a
    /// review. It belongs to another proposal and replaces nothing.
    pub(in crate::service) async fn superseding_review(
        &self,
        keys: &Keys,
        ended: &HoldState,
    ) -> Result<Option<Digest>> {
        let HoldState::Superseded { by: Some(next), .. } = ended else { return Ok(None) };
        // A confirmed write ends the review too, but its transition is no proposal that the agent could wait
        // for.
        let asks = self.stated(keys, *next).await?.statement.kind != TransitionType::Confirm;
        Ok(asks.then_some(*next))
    }

    /// Returns a comment as the reader may see it. If the state values are erased, redacted values in it
    /// cannot be found, so the whole comment is withheld.
    pub(in crate::service) async fn redacted_comment(
        &self,
        keys: &Keys,
        hold: &Hold,
        reader: &Party,
        author: &Author,
        comment: &str,
    ) -> Result<String> {
        let states = async {
            let transition = self.transition(keys, hold.transition).await?;
            Ok((self.states_of(keys, &transition).await?, transition.tool))
        };
        let ((before, after), tool) = match states.await {
            Err(Error::Erased) => return Ok(WITHHELD.to_owned()),
            states => states?,
        };
        let thread = self.thread(keys, &hold.thread).await?.record;
        let policies = self.policies_over(keys, &thread, [hold.policy]).await?;
        let redaction = Redaction::new(reader.clone(), &policies, &[&before, &after], tool.as_ref(), []);
        Ok(redaction.words(author, comment).into_owned())
    }

    /// Returns a transition with its statement and redacted effect.
    pub async fn told(&self, digest: Digest, reader: &Party, part: RedactionDetail) -> Result<TransitionView> {
        let keys = self.keys()?;
        let transition = self.transition(&keys, digest).await?;
        let thread = self.thread(&keys, &transition.statement.thread).await?.record;
        let policies = self.policies_over(&keys, &thread, [transition.statement.policy]).await?;
        let (before, after) = self.states_of(&keys, &transition).await?;
        let changes = diff(&before, &after);
        let sides = [
            TraceStart::before(&transition, &before),
            TraceStart::After { transition: &transition, before: &before, after: &after },
        ];
        let tool = transition.tool.as_ref();
        let states_reader = match part {
            // A receiver never triggers a trace of leaves, whose duration could reveal a redacted value.
            RedactionDetail::OfAnAgent => &Party::Receiver,
            RedactionDetail::Whole => reader,
        };
        let hidings = self.redactors_for(&keys, states_reader, &policies, sides, &[tool]).await?;
        let (_, caller) = self.authors_of(&keys, &transition).await?;
        let called = beside(&policies, TextComparisonScope::of(reader, &caller), &[&before, &after], tool);
        let redacted = redacted_by(&hidings, &changes, &transition.named);
        let hidden = redacted.iter().filter_map(|it| match it {
            RedactedChange::Hidden { pointer, .. } => Some(RedactedField::of(pointer.clone(), &before, &after)),
            RedactedChange::Shown { .. } => None,
        });
        let hold = self.hold_of(&keys, digest).await?.map(|it| it.record);
        Ok(TransitionView {
            thread: transition.statement.thread.clone(),
            status: status_of(&transition),
            entry: transition.outcome.entry().map(str::to_owned),
            arguments: tool.map(|it| shown_arguments_by(&called, it)),
            warnings_shown: warnings_by(&hidings, &transition),
            statement: transition.statement,
            warnings: transition.warnings,
            hidden: hidden.collect(),
            redacted,
            changes,
            hold,
        })
    }

    /// Returns the review of a transition, if it was held for approval.
    pub async fn review_about(&self, digest: Digest) -> Result<Option<ReviewId>> {
        Ok(self.hold_of(&*self.keys()?, digest).await?.map(|it| it.record.id))
    }

    /// Returns the flow of a transition from the database alone. No archive is read before the caller's
    /// access is checked.
    pub async fn flow_of_transition(&self, digest: Digest) -> Result<FlowId> {
        let keys = self.keys()?;
        if let Some(stored) = self.fetch::<Transition>(&keys, &digest.to_string()).await? {
            return Ok(stored.record.statement.flow);
        }
        let place = self.need::<ArchivedLocation>(&keys, &digest.to_string(), "transition").await?;
        Ok(self.thread(&keys, &place.record.thread).await?.record.flow)
    }

    /// Returns the part of an effect that an agent may see. The active policy and the policy of the
    /// transition must both allow it for the same node.
    pub async fn visible_effect(&self, token: &Token, told: &TransitionView) -> Result<Vec<LeafChange>> {
        let keys = self.keys()?;
        let thread = self.thread(&keys, &told.thread).await?;
        let active = self.flow(&keys, &thread.record.flow).await?.record.policy;
        let mut policies = self.policies_of(&keys, &told.statement).await?;
        // The active policy may redact paths that the old policy showed.
        policies.push(self.policy(&keys, active).await?);
        let reads = |policy: &Policy, node: &NodeId, change: &LeafChange| {
            policy.node(node).is_some_and(|it| it.reads().covers(&change.pointer))
        };
        let seen =
            |change: &&LeafChange| token.nodes.iter().any(|node| policies.iter().all(|it| reads(it, node, change)));
        Ok(told.changes.iter().filter(seen).cloned().collect())
    }

    /// Returns the policies that restricted the readers of an effect when it was stated: its own, and for a
    /// rollback that of the restored version.
    pub(in crate::service) async fn policies_of(&self, keys: &Keys, statement: &Statement) -> Result<Vec<Arc<Policy>>> {
        let mut policies = vec![self.policy(keys, statement.policy).await?];
        if let Some(restored) = statement.restores {
            let then = self.stated(keys, restored).await?.statement.policy;
            policies.push(self.policy(keys, then).await?);
        }
        Ok(policies)
    }

    /// Returns the complete opening of a transition for auditors, without redaction.
    pub async fn opening(&self, digest: Digest) -> Result<Opening> {
        let keys = self.keys()?;
        let transition = self.transition(&keys, digest).await?;
        let policy = self.policy(&keys, transition.statement.policy).await?;
        self.open_transition(&keys, &transition, &policy, &|_| false).await
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

fn status_of(transition: &Transition) -> String {
    match &transition.outcome {
        TransitionOutcome::Ended { decision, .. } => match serde_json::to_value(decision) {
            Ok(Value::String(word)) => word,
            _ => "ended".to_owned(),
        },
        other => other.word().to_owned(),
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
            let claims = receipt.as_ref().and_then(|it| crate::service::writes::verify::peek_receipt(&it.token));
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
