//! Votes on reviews: checks that a vote may be counted, and applies the decision after the last one.

use countersign_adapters::random;
use countersign_domain::chain::commitment::LeafSource;
use countersign_domain::chain::entry::CommitGate;
use countersign_domain::chain::jws::{self, TokenType};
use countersign_domain::chain::receipt::{ApprovalClaim, Denial, DenialClaim, IssuedReceipt, Receipt};
use countersign_domain::identity::account::Account;
use countersign_domain::keys::{KeyUse, Keys};
use countersign_domain::log::event::EventType;
use countersign_domain::policy::Policy;
use countersign_domain::primitives::id::{AccountId, Jti, ReviewId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{
    Ballot, Hold, HoldState, QuorumResult, Tally, Vote, VoteContext, VoteRejected, VoterRoll,
};
use countersign_domain::threads::flow::ReceiptRow;
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{HoldEndReason, Transition, TransitionOutcome};
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::{Value, json};

use super::cast_vote::{CountedVote, SubmittedBallot, VoteUseCase};
use super::rejudge::RejudgeOutcome;
use crate::error::{Error, Result};
use crate::identity::passkeys::VoteSignature;
use crate::platform::core::ThreadContext;
use crate::platform::event_recorder;
use crate::reviews::Reviews;
use crate::threads::commit::{CommitBase, GatedTransition};
use crate::threads::hold_end::HoldEnd;
use crate::threads::lease_expiry::record_expired_lease;
use crate::threads::statement::StatedTransition;
use crate::threads::version::Version;

pub use super::cast_vote::VoteOutcome;

/// A vote on a review.
struct ReviewVote<'a> {
    reviews: &'a Reviews,
    review: &'a ReviewId,
    /// Whether the vote is part of a bulk decision.
    in_bulk: bool,
}

/// The decision of a review while it is added to a change.
struct ReviewDecision<'a> {
    keys: &'a Keys,
    standing: &'a ThreadContext,
    hold: &'a Stored<Hold>,
    now: Timestamp,
    draft: Draft<'a>,
    /// The thread after the decision.
    thread: Thread,
}

impl VoteUseCase for ReviewVote<'_> {
    type Subject = Hold;
    type Context = ThreadContext;

    async fn load(&self, keys: &Keys) -> Result<(Stored<Hold>, ThreadContext)> {
        let core = &self.reviews.core;
        let hold: Stored<Hold> = core.need(keys, self.review.as_str(), "review").await?;
        let thread = core.thread(keys, &hold.record.thread).await?;
        let standing = core.standing(keys, thread).await?;
        check_open(&standing, &hold.record, core.now())?;
        if let Some(why) = hold.record.alone().filter(|_| self.in_bulk) {
            return Err(VoteRejected::from(why).into());
        }
        // Votes must never count under a policy that no longer judges the flow.
        if self.reviews.rejudge(keys, &standing, &hold).await? != RejudgeOutcome::Kept {
            return Err(VoteRejected::PolicyChanged.into());
        }
        Ok((hold, standing))
    }

    fn rely(standing: &ThreadContext, draft: &mut Draft<'_>) {
        standing.rely(draft);
    }

    fn count(
        hold: Hold,
        standing: &ThreadContext,
        ballot: Ballot,
        voter: &Account,
        roll: &VoterRoll,
    ) -> Result<Tally<Hold>> {
        // Reviewers must know that an earlier write may have happened, so the quorum checks their
        // acknowledgement.
        let outcome_unknown = standing.thread.record.outcome_unknown(roll.now);
        Ok(hold.vote(ballot, voter, &VoteContext { roll, outcome_unknown })?)
    }

    async fn store(&self, vote: CountedVote<'_, Self>) -> Result<()> {
        let CountedVote { keys, now, stored: hold, context: standing, tally, draft } = vote;
        let (counted, thread) = (tally.record, standing.thread.record.clone());
        let mut decision = ReviewDecision { keys, standing, hold, now, draft, thread };
        decision.put_vote_event(&counted)?;
        let mut committed = None;
        match tally.result {
            QuorumResult::Waiting => decision.draft.replace(hold, &counted)?,
            QuorumResult::Approved(approvals) => {
                committed = Some(self.reviews.approve(&mut decision, counted, approvals).await?);
            }
            QuorumResult::Denied(refusals) => self.reviews.deny(&mut decision, counted, refusals).await?,
        }
        let ReviewDecision { mut draft, thread, .. } = decision;
        draft.replace(&standing.thread, &thread)?;
        self.reviews.core.commit(draft.finish()).await?;
        // The caches are filled only after the commit, because a failed commit must leave no head behind.
        if let Some((head, receipt)) = committed {
            self.reviews.threads.cache_head(head);
            self.reviews.writes.cache_receipt(receipt);
        }
        Ok(())
    }
}

impl Reviews {
    /// Counts a person's vote on exactly the digest that the ballot contains, with a passkey signature over it if
    /// there is one.
    pub async fn vote(
        &self,
        voter: &AccountId,
        review: &ReviewId,
        ballot: &Ballot,
        signature: Option<&VoteSignature>,
    ) -> Result<VoteOutcome> {
        let vote = ReviewVote { reviews: self, review, in_bulk: false };
        self.cast_vote(&vote, SubmittedBallot { voter, ballot, signature }).await
    }

    /// Counts a vote of a bulk decision. It is refused if the review requires a vote of its own, for example
    /// with a passkey.
    pub(crate) async fn vote_in_bulk(
        &self,
        voter: &AccountId,
        review: &ReviewId,
        ballot: &Ballot,
    ) -> Result<VoteOutcome> {
        let vote = ReviewVote { reviews: self, review, in_bulk: true };
        self.cast_vote(&vote, SubmittedBallot { voter, ballot, signature: None }).await
    }

    async fn deny(&self, decision: &mut ReviewDecision<'_>, counted: Hold, refusals: Vec<DenialClaim>) -> Result<()> {
        let (keys, at) = (decision.keys, decision.now);
        let stored = self.threads.held(keys, counted.transition).await?;
        let statement = &stored.record.statement;
        let denial = Denial {
            iss: keys.issuer().to_owned(),
            sub: counted.thread.clone(),
            jti: new_jti(),
            iat: at.seconds(),
            flow: counted.flow.clone(),
            policy: statement.policy,
            transition: counted.transition,
            parent: statement.parent,
            review: counted.id.clone(),
            outcome: "denied".to_owned(),
            reviewers: refusals,
        };
        // A signed denial lets an agent prove the decision to others without the gateway.
        let denial = jws::sign(keys.signing(KeyUse::Chain), TokenType::Denial, &denial);
        let counted = Stored { record: counted, ..decision.hold.clone() };
        let end = HoldEnd { state: HoldState::Denied { at, denial }, reason: HoldEndReason::Denied, at };
        self.threads.add_hold_end(&mut decision.draft, keys, &mut decision.thread, &counted, end).await
    }

    /// Adds the entry, the receipt, the end of the review, the new head and the events. Returns the new head and the
    /// receipt.
    async fn approve(
        &self,
        decision: &mut ReviewDecision<'_>,
        counted: Hold,
        approvals: Vec<ApprovalClaim>,
    ) -> Result<(Version, IssuedReceipt)> {
        let ReviewDecision { keys, standing, hold, now, draft, thread } = decision;
        let (keys, standing, now) = (*keys, *standing, *now);
        let stored = self.threads.held(keys, counted.transition).await?;
        let head = self.threads.head(keys, &standing.thread.record).await?;
        let policy = self.policies.policy(keys, stored.record.statement.policy).await?;
        let step = self.approved_step(keys, &head, &stored.record)?;
        let receipt = receipt_of(keys, now, &policy, &stored.record, approvals);
        let issued = IssuedReceipt::sign(keys.signing(KeyUse::Chain), receipt);
        let receipt = issued.claims();
        // The excluded people are the authors of the approved change, and they stay excluded until the next
        // write.
        thread.authors.clone_from(&counted.excluded);
        let gate = CommitGate::Approved { review: counted.id.clone(), receipt: receipt.jti.clone() };
        let base = CommitBase { head: &head, policy: &policy, flow: &standing.flow.record };
        let gated = GatedTransition { step, gate, committed_at: now };
        let advanced = self.threads.advance(draft, keys, base, gated, thread)?;
        let outcome = TransitionOutcome::Approved {
            review: counted.id.clone(),
            receipt: receipt.jti.clone(),
            entry: advanced.token.clone(),
        };
        draft.replace(&stored, &Transition { outcome, ..stored.record.clone() })?;
        let (jti, version) = (receipt.jti.clone(), receipt.version);
        draft.insert(&ReceiptRow {
            jti: jti.clone(),
            thread: thread.id.clone(),
            transition: counted.transition,
            token: issued.token().to_owned(),
            reviewers: receipt.approvals.iter().map(|it| it.reviewer.clone()).collect(),
            revoked: None,
        })?;
        put_approved_events(draft, thread, &counted, receipt, now)?;
        draft.replace(hold, &counted.ended(HoldState::Approved { at: now, receipt: jti, version })?)?;
        Ok((advanced, issued))
    }

    /// Applies a held transition to the head that it was stated on. The result must have exactly the root
    /// that the reviewers approved, even if the database was changed since then.
    fn approved_step(&self, keys: &Keys, head: &Version, transition: &Transition) -> Result<StatedTransition> {
        let statement = transition.statement.clone();
        let changed = Error::Broken("the held transition does not match its statement");
        // The proposal was made on this head. Another head would apply the approved difference to other
        // values.
        if statement.parent != Some(head.entry.transition) || statement.from != head.tree.root() {
            return Err(changed);
        }
        let Ok(after) = transition.delta.apply(&head.state) else { return Err(changed) };
        let secret = self.threads.secret(keys, &statement.thread);
        let setting = LeafSource { proposal: &statement.proposal, named: &transition.named };
        let tree = head.tree.advance(&secret, &head.state, &after, &setting);
        if tree.root() != statement.to {
            return Err(changed);
        }
        Ok(StatedTransition { transition: transition.clone(), after: head.followed_by(statement, after, tree) })
    }
}

impl ReviewDecision<'_> {
    fn put_vote_event(&mut self, counted: &Hold) -> Result<()> {
        // The vote that was just counted is always the last one.
        let Some(vote) = counted.votes.last() else { return Ok(()) };
        record_expired_lease(&mut self.draft, &mut self.thread, self.now)?;
        let data = vote_data(counted, vote);
        event_recorder::append_thread_event(&mut self.draft, &mut self.thread, self.now, EventType::ReviewVote, data)
    }
}

pub(crate) fn check_open(standing: &ThreadContext, hold: &Hold, now: Timestamp) -> Result<()> {
    if !matches!(hold.state, HoldState::Open {}) {
        return Err(VoteRejected::Ended.into());
    }
    if standing.thread.record.closed.is_some() {
        return Err(Error::Closed);
    }
    if standing.proposing_halted() {
        return Err(Error::Halted);
    }
    if standing.thread.record.live_write(now).is_some() {
        return Err(Error::WriteInProgress);
    }
    Ok(())
}

fn receipt_of(
    keys: &Keys,
    now: Timestamp,
    policy: &Policy,
    transition: &Transition,
    approvals: Vec<ApprovalClaim>,
) -> Receipt {
    let statement = &transition.statement;
    Receipt {
        iss: keys.issuer().to_owned(),
        sub: statement.thread.clone(),
        aud: policy.writers().map(|(node, _)| node.clone()).collect(),
        jti: new_jti(),
        iat: now.seconds(),
        nbf: now.seconds(),
        exp: now.plus(policy.approval().receipt_ttl()).seconds(),
        flow: statement.flow.clone(),
        policy: statement.policy,
        transition: transition.digest,
        parent: statement.parent,
        version: statement.version,
        to: statement.to,
        approvals,
    }
}

/// Returns an id with 128 random bits, so that receipts cannot be guessed.
pub(crate) fn new_jti() -> Jti {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random::bytes::<16>());
    Jti::try_from(text).expect("base64url is token text")
}

/// Returns the data of a vote event. It omits the comment. Delegation, typed confirmation and passkey are
/// members only if the vote has them.
pub(crate) fn vote_data(hold: &Hold, vote: &Vote) -> Value {
    let mut data = json!({
        "review": hold.id, "transition": vote.transition, "reviewer": vote.reviewer, "stage": vote.stage,
        "verdict": vote.verdict, "browser_check": vote.browser_check,
    });
    if let Some(typed) = &vote.typed {
        data["typed"] = json!(typed);
    }
    if let Some(absent) = &vote.absent {
        data["for"] = json!(absent.person);
        data["delegation"] = json!(absent.delegation);
    }
    with_passkey(data, vote)
}

/// Adds the passkey proof of a vote to its event data.
pub(crate) fn with_passkey(mut data: Value, vote: &Vote) -> Value {
    if let Some(passkey) = vote.proof.passkey() {
        data["method"] = json!(vote.proof.method());
        data["passkey"] = json!(passkey);
        data["evidence"] = json!(vote.proof.evidence());
    }
    data
}

fn put_approved_events(
    draft: &mut Draft<'_>,
    thread: &mut Thread,
    hold: &Hold,
    receipt: &Receipt,
    now: Timestamp,
) -> Result<()> {
    let data = json!({"transition": hold.transition, "review": hold.id, "node": hold.node});
    event_recorder::append_thread_event(draft, thread, now, EventType::TransitionApproved, data)?;
    let data =
        json!({"receipt": receipt.jti, "transition": receipt.transition, "aud": receipt.aud, "exp": receipt.exp});
    event_recorder::append_thread_event(draft, thread, now, EventType::ReceiptIssued, data)
}
