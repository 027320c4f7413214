//! Requests approval for a policy, counts votes and ends requests.

use std::collections::BTreeSet;

use countersign_adapters::random;
use countersign_domain::identity::account::{Account, Token};
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::policy::PolicyChangeApproval;
use countersign_domain::policy_changes::change_request::{
    PolicyChange, PolicyChangeRequest, PolicyChangeState, PolicyChangeTerms, ReplacedPolicy,
};
use countersign_domain::primitives::id::{AccountId, AmendmentId, FlowId, PrincipalId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{
    Ballot, QuorumResult, Tally, Vote, VoteRejected, VoterRoll, can_be_approved, stage_of,
};
use countersign_domain::threads::flow::Flow;
use countersign_store::change::Draft;
use countersign_store::record::{ListBounds, Stored};
use countersign_store::records::OPEN;
use countersign_store::{LIST_ROWS_MAX, RowFilter};
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::identity::passkeys::VoteSignature;
use crate::platform::event_recorder;
use crate::platform::reason::cut_reason;
use crate::platform::retry::retrying;
use crate::policy_changes::PolicyChanges;
use crate::policy_changes::activate::{ActivationOutcome, activated_flow, activation_data};
use crate::reviews::cast_vote::{CountedVote, SubmittedBallot, VoteOutcome, VoteUseCase};
use crate::reviews::vote::with_passkey;

/// Pending policy change requests of one flow. Reviewers read each of them whole.
const OPEN_MAX: usize = 16;

const PAGES_MAX: usize = 100;

const TOO_MANY: &str = "The flow has the most pending policy change requests that are allowed. Cancel one first";
const NOBODY: &str = "No reviewer other than the proposer could approve the policy. Add people to the groups that `[approval.policy]` of the active policy names";

/// A vote on a policy change request.
struct PolicyChangeVote<'a> {
    changes: &'a PolicyChanges,
    id: &'a AmendmentId,
}

impl VoteUseCase for PolicyChangeVote<'_> {
    type Subject = PolicyChangeRequest;
    type Context = Stored<Flow>;

    async fn load(&self, keys: &Keys) -> Result<(Stored<PolicyChangeRequest>, Stored<Flow>)> {
        let stored = self.changes.amendment_row(keys, self.id).await?;
        let flow = self.changes.core.flow(keys, &stored.record.change.flow).await?;
        // The reviewers compared the new policy with one that is not active any more.
        let is_open = stored.record.is_open(self.changes.core.now());
        if is_open && stored.record.change.over != ReplacedPolicy::of(&flow.record) {
            return Err(VoteRejected::PolicyChanged.into());
        }
        Ok((stored, flow))
    }

    fn rely(flow: &Stored<Flow>, draft: &mut Draft<'_>) {
        // A halt or an activation in the same moment must conflict with this vote.
        draft.require_unchanged(flow);
    }

    fn count(
        request: PolicyChangeRequest,
        _flow: &Stored<Flow>,
        ballot: Ballot,
        voter: &Account,
        roll: &VoterRoll,
    ) -> Result<Tally<PolicyChangeRequest>> {
        Ok(request.vote(ballot, voter, roll)?)
    }

    async fn store(&self, vote: CountedVote<'_, Self>) -> Result<()> {
        let CountedVote { keys, now, stored, context: flow, tally, mut draft } = vote;
        let (amendment, of_flow) = (tally.record, Some(&flow.record.id));
        draft.replace(stored, &amendment)?;
        let vote = amendment.votes.last().ok_or(Error::Broken("the vote that was counted"))?;
        event_recorder::outside(&mut draft, of_flow, now, EventType::PolicyVote, vote_data(&amendment, vote))?;
        if tally.result != QuorumResult::Waiting {
            event_recorder::outside(&mut draft, of_flow, now, EventType::PolicyEnded, end_data(&amendment))?;
        }
        if matches!(tally.result, QuorumResult::Approved(_)) {
            self.changes.apply_policy_change(&mut draft, keys, flow, &amendment, now).await?;
        }
        self.changes.core.commit(draft.finish()).await
    }
}

impl PolicyChanges {
    /// Opens a policy change request, as the active policy demands. The same request while the first one is
    /// pending returns the first one.
    pub(crate) async fn request_policy_change(
        &self,
        mut draft: Draft<'_>,
        keys: &Keys,
        by: &PrincipalId,
        change: PolicyChange,
        terms: &PolicyChangeApproval,
    ) -> Result<ActivationOutcome> {
        let now = self.core.now();
        let open = self.open_amendments(keys, &change.flow).await?;
        if let Some(same) = open.iter().find(|it| it.record.change == change && it.record.is_open(now)) {
            return Ok(ActivationOutcome::Waiting(Box::new(same.record.clone())));
        }
        // Reviewers have limited attention, so an agent or an administrator must not flood them.
        if open.len() >= OPEN_MAX {
            return Err(Error::WrongState(TOO_MANY));
        }
        // Separation of duties: the owner of the proposing token may not vote.
        let token = self.core.fetch::<Token>(keys, by.as_str()).await?;
        let excluded: BTreeSet<String> = token.map(|it| it.record.owner).into_iter().collect();
        let stage = stage_of(terms.stage());
        if !can_be_approved(std::slice::from_ref(&stage), &excluded, &self.identity.accounts_all(keys).await?) {
            return Err(Error::WrongState(NOBODY));
        }
        let id = AmendmentId::try_from(random::uuid_v7(now).to_string()).expect("a UUID is a name");
        let terms = PolicyChangeTerms {
            proposer: by.clone(),
            excluded,
            stage,
            opened_at: now,
            expires_at: now.plus(terms.ttl()),
        };
        let amendment = PolicyChangeRequest::new(id, change, terms);
        draft.insert(&amendment)?;
        let kind = EventType::PolicyProposed;
        event_recorder::outside(&mut draft, Some(&amendment.change.flow), now, kind, proposal_data(&amendment))?;
        let waiting = ActivationOutcome::Waiting(Box::new(amendment));
        self.core.store_response(&mut draft, keys, &waiting)?;
        self.core.commit(draft.finish()).await?;
        Ok(waiting)
    }

    pub async fn amendment(&self, id: &AmendmentId) -> Result<PolicyChangeRequest> {
        let keys = self.core.keys()?;
        Ok(self.amendment_row(&keys, id).await?.record)
    }

    async fn amendment_row(&self, keys: &Keys, id: &AmendmentId) -> Result<Stored<PolicyChangeRequest>> {
        let stored: Stored<PolicyChangeRequest> = self.core.need(keys, id.as_str(), "policy change request").await?;
        if stored.record.is_whole() { Ok(stored) } else { Err(Error::Broken("a policy change request")) }
    }

    /// Returns the pending policy change requests, the nearest deadline first.
    pub async fn open_policy_changes(&self) -> Result<Vec<PolicyChangeRequest>> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let open =
            self.core.reader(&keys).list::<PolicyChangeRequest>(RowFilter::State(OPEN), None, LIST_ROWS_MAX).await?;
        Ok(open.into_iter().map(|it| it.record).filter(|it| it.is_open(now)).collect())
    }

    /// Returns the policy change requests of a flow, the latest first.
    pub async fn policy_changes_of(&self, flow: &FlowId) -> Result<Vec<PolicyChangeRequest>> {
        let keys = self.core.keys()?;
        self.core.flow(&keys, flow).await?;
        let (of_flow, bounds) = (RowFilter::Owner(flow.as_str()), ListBounds::pages(PAGES_MAX));
        let record = |it: Stored<PolicyChangeRequest>| Some(it.record);
        let mut all = self.core.reader(&keys).select(of_flow, None, bounds, record).await?.items;
        // Ids begin with their time, so the list by id has the oldest first.
        all.reverse();
        Ok(all)
    }

    async fn open_amendments(&self, keys: &Keys, flow: &FlowId) -> Result<Vec<Stored<PolicyChangeRequest>>> {
        let of_flow = |it: Stored<PolicyChangeRequest>| (it.record.change.flow == *flow).then_some(it);
        let (open, bounds) = (RowFilter::State(OPEN), ListBounds::pages(PAGES_MAX));
        Ok(self.core.reader(keys).select(open, None, bounds, of_flow).await?.items)
    }

    /// Counts a vote on exactly the digest that the ballot contains, with a passkey signature over it if there is one.
    /// The last approval activates the policy.
    pub async fn vote_on_policy_change(
        &self,
        voter: &AccountId,
        id: &AmendmentId,
        ballot: &Ballot,
        signature: Option<&VoteSignature>,
    ) -> Result<VoteOutcome> {
        let vote = PolicyChangeVote { changes: self, id };
        self.reviews.cast_vote(&vote, SubmittedBallot { voter, ballot, signature }).await
    }

    /// Adds the activation of an approved policy to a change. Other pending requests of the flow are
    /// superseded, because they were made against the replaced policy.
    async fn apply_policy_change(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        flow: &Stored<Flow>,
        amendment: &PolicyChangeRequest,
        now: Timestamp,
    ) -> Result<()> {
        let change = &amendment.change;
        let (by, request) = (&amendment.proposer, Some(&amendment.id));
        let next = activated_flow(flow, change.policy, &change.accepts, by, request, now);
        draft.replace(flow, &next)?;
        let data = activation_data(&next, flow.revision + 1);
        event_recorder::outside(draft, Some(&next.id), now, EventType::PolicyActivated, data)?;
        let open = self.open_amendments(keys, &flow.record.id).await?;
        for stored in open.iter().filter(|it| it.record.id != amendment.id) {
            self.end_policy_change(draft, stored, |at| PolicyChangeState::Superseded { at })?;
        }
        Ok(())
    }

    fn end_policy_change(
        &self,
        draft: &mut Draft<'_>,
        stored: &Stored<PolicyChangeRequest>,
        end: impl FnOnce(Timestamp) -> PolicyChangeState,
    ) -> Result<PolicyChangeRequest> {
        let now = self.core.now();
        let ended = stored.record.clone().ended(end(now))?;
        draft.replace(stored, &ended)?;
        let flow = ended.change.flow.clone();
        event_recorder::outside(draft, Some(&flow), now, EventType::PolicyEnded, end_data(&ended))?;
        Ok(ended)
    }

    /// Cancels a policy change request. Returns its final state.
    pub async fn cancel_policy_change(
        &self,
        by: &PrincipalId,
        id: &AmendmentId,
        reason: &str,
    ) -> Result<PolicyChangeRequest> {
        retrying!({
            let keys = self.core.keys()?;
            let stored = self.amendment_row(&keys, id).await?;
            match &stored.record.state {
                PolicyChangeState::Open {} => {}
                // A repeated cancellation succeeds, so that a client can retry.
                PolicyChangeState::Cancelled { .. } => return Ok(stored.record.clone()),
                _ => return Err(Error::WrongState("The policy change request has ended and cannot be cancelled")),
            }
            let mut draft = Draft::new(keys.row(), self.core.now());
            // The reason belongs to no thread, so it is masked before it is stored.
            let (by, reason) = (
                by.clone(),
                self.policies.mask_reason(&keys, Some(&stored.record.change.flow), &cut_reason(reason)).await,
            );
            let ended =
                self.end_policy_change(&mut draft, &stored, |at| PolicyChangeState::Cancelled { at, by, reason })?;
            self.core.store_response(&mut draft, &keys, &ended)?;
            self.core.commit(draft.finish()).await?;
            Ok(ended)
        })
    }

    /// Returns policy change requests whose deadline has passed.
    pub async fn policy_changes_due(&self) -> Result<Vec<AmendmentId>> {
        self.core.due(OPEN, |it: PolicyChangeRequest| Some(it.id)).await
    }

    /// Expires a policy change request, if it is still open after its deadline.
    pub async fn expire_policy_change(&self, id: &AmendmentId) -> Result<()> {
        retrying!({
            let keys = self.core.keys()?;
            let stored = self.amendment_row(&keys, id).await?;
            let open = matches!(stored.record.state, PolicyChangeState::Open {});
            if !open || stored.record.is_open(self.core.now()) {
                return Ok(());
            }
            let mut draft = Draft::new(keys.row(), self.core.now());
            // The database's clock decides, as it does for votes.
            draft.not_before(stored.record.expires_at);
            self.end_policy_change(&mut draft, &stored, |at| PolicyChangeState::Expired { at })?;
            self.core.commit(draft.finish()).await
        })
        // By the database's clock the deadline may not have passed.
        .or_else(Error::ok_if_too_soon)
    }
}

/// Returns the event data of a new policy change request.
pub(crate) fn proposal_data(amendment: &PolicyChangeRequest) -> Value {
    let PolicyChangeRequest { id, change, proposer, digest, excluded, stages, expires_at, .. } = amendment;
    json!({
        "amendment": id, "digest": digest, "policy": change.policy, "accepts": change.accepts, "over": change.over,
        "by": proposer, "excluded": excluded, "stages": stages, "expires_at": expires_at,
    })
}

/// Returns the event data of a vote on a policy change request.
pub(crate) fn vote_data(amendment: &PolicyChangeRequest, vote: &Vote) -> Value {
    let data = json!({
        "amendment": amendment.id, "digest": vote.transition, "reviewer": vote.reviewer, "stage": vote.stage,
        "verdict": vote.verdict, "browser_check": vote.browser_check,
    });
    with_passkey(data, vote)
}

pub(crate) fn end_data(amendment: &PolicyChangeRequest) -> Value {
    let mut data = json!({"amendment": amendment.id, "digest": amendment.digest, "end": amendment.state.word()});
    if let PolicyChangeState::Cancelled { by, reason, .. } = &amendment.state {
        data["by"] = json!(by);
        data["reason"] = json!(reason);
    }
    data
}
