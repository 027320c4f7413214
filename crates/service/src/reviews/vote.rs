//! Votes: checks and counts a vote, and applies the decision after the last one.

use countersign_adapters::random;
use countersign_domain::chain::commitment::LeafSource;
use countersign_domain::chain::entry::CommitGate;
use countersign_domain::chain::jws::{self, TokenType};
use countersign_domain::chain::receipt::{ApprovalClaim, Denial, DenialClaim, IssuedReceipt, Receipt};
use countersign_domain::keys::{KeyUse, Keys};
use countersign_domain::log::event::EventType;
use countersign_domain::policy::Policy;
use countersign_domain::primitives::id::{AccountId, Jti, ReviewId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Ballot, Hold, HoldState, HoldTally, Vote, VoteContext, VoteRejected};
use countersign_domain::threads::flow::ReceiptRow;
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{HoldEndReason, Transition, TransitionOutcome};
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::{Value, json};

use super::rejudge::RejudgeOutcome;
use super::voter_roll::LoadedVoterRoll;
use crate::error::{Error, Result};
use crate::identity::passkeys::{BallotSubject, PasskeyUse, VoteSignature};
use crate::platform::core::ThreadContext;
use crate::platform::event_recorder;
use crate::platform::retry::retrying;
use crate::reviews::Reviews;
use crate::threads::commit::{CommitBase, GatedTransition};
use crate::threads::hold_end::HoldEnd;
use crate::threads::lease_expiry::record_expired_lease;
use crate::threads::statement::StatedTransition;
use crate::threads::version::Version;

/// The result of a counted vote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VoteOutcome {
    Waiting,
    /// The change is approved and committed, and its receipt is issued.
    Approved,
    Denied,
}

#[derive(Clone, Copy)]
enum VoteSubmission<'a> {
    /// A single vote, with a passkey signature over it if there is one.
    Alone(Option<&'a VoteSignature>),
    AmongSeveral,
}

/// The context of one vote while it is counted.
struct PendingVote<'a> {
    keys: &'a Keys,
    standing: &'a ThreadContext,
    hold: &'a Stored<Hold>,
    rolled: &'a LoadedVoterRoll,
    passkey: Option<PasskeyUse>,
    now: Timestamp,
}

impl Reviews {
    /// Counts a person's vote on exactly the digest that the ballot contains.
    pub async fn vote(&self, voter: &AccountId, review: &ReviewId, ballot: &Ballot) -> Result<VoteOutcome> {
        self.vote_signed(voter, review, ballot, None).await
    }

    /// Counts a vote, with a passkey signature over it if there is one.
    pub async fn vote_signed(
        &self,
        voter: &AccountId,
        review: &ReviewId,
        ballot: &Ballot,
        signature: Option<&VoteSignature>,
    ) -> Result<VoteOutcome> {
        self.vote_in(voter, review, ballot, VoteSubmission::Alone(signature)).await
    }

    /// Counts a vote of a bulk decision. It is refused if the review requires a vote of its own, for example
    /// with a passkey.
    pub(crate) async fn vote_in_bulk(
        &self,
        voter: &AccountId,
        review: &ReviewId,
        ballot: &Ballot,
    ) -> Result<VoteOutcome> {
        self.vote_in(voter, review, ballot, VoteSubmission::AmongSeveral).await
    }

    async fn vote_in(
        &self,
        voter: &AccountId,
        review: &ReviewId,
        ballot: &Ballot,
        manner: VoteSubmission<'_>,
    ) -> Result<VoteOutcome> {
        let late = |error: Error| if error.is_too_late() { VoteRejected::Expired.into() } else { error };
        retrying!(self.vote_once(voter, review, ballot, manner)).map_err(late)
    }

    async fn vote_once(
        &self,
        voter: &AccountId,
        review: &ReviewId,
        ballot: &Ballot,
        manner: VoteSubmission<'_>,
    ) -> Result<VoteOutcome> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let hold: Stored<Hold> = self.core.need(&keys, review.as_str(), "review").await?;
        let thread = self.core.thread(&keys, &hold.record.thread).await?;
        let standing = self.core.standing(&keys, thread).await?;
        check_open(&standing, &hold.record, now)?;
        let signature = match (manner, hold.record.alone()) {
            (VoteSubmission::AmongSeveral, Some(why)) => return Err(VoteRejected::from(why).into()),
            (VoteSubmission::AmongSeveral, None) => None,
            (VoteSubmission::Alone(signature), _) => signature,
        };
        // Votes must never count under a policy that no longer judges the flow.
        if self.rejudge(&keys, &standing, &hold).await? != RejudgeOutcome::Kept {
            return Err(VoteRejected::PolicyChanged.into());
        }
        let rolled = self.load_voter_roll(&keys, &hold.record.votes, voter, ballot.delegation.as_ref()).await?;
        // One time for the whole vote, so that delegations and the deadline are judged at the same moment.
        let now = rolled.roll.now;
        let person = rolled.roll.person(voter).ok_or(Error::Unauthenticated)?;
        // Reviewers must know that an earlier write may have happened, so the quorum checks their
        // acknowledgement.
        let outcome_unknown = standing.thread.record.outcome_unknown(now);
        let bench = VoteContext { roll: &rolled.roll, outcome_unknown };
        let (ballot, passkey) = self
            .identity
            .verify_voter_proof(&keys, BallotSubject::Review(review), voter, ballot.clone(), signature)
            .await?;
        // The tally consumes the ballot, and the passkey requirement is checked after it.
        let (stage, proof) = (ballot.stage, ballot.proof.clone());
        let tally = hold.record.clone().vote(ballot, person, &bench)?;
        hold.record.passkey_need(stage).met_by(&proof, now)?;
        let poll = PendingVote { keys: &keys, standing: &standing, hold: &hold, rolled: &rolled, passkey, now };
        match tally {
            HoldTally::Waiting(counted) => self.wait_for_more(&poll, &counted).await,
            HoldTally::Approved(counted, approvals) => self.approve(&poll, counted, approvals).await,
            HoldTally::Denied(counted, refusals) => self.deny(&poll, counted, refusals).await,
        }
    }

    async fn wait_for_more(&self, poll: &PendingVote<'_>, counted: &Hold) -> Result<VoteOutcome> {
        let mut draft = poll.draft()?;
        let mut thread = poll.standing.thread.record.clone();
        put_vote_event(&mut draft, &mut thread, counted, poll.now)?;
        draft.replace(poll.hold, counted)?;
        draft.replace(&poll.standing.thread, &thread)?;
        self.core.commit(draft.finish()).await?;
        Ok(VoteOutcome::Waiting)
    }

    async fn deny(&self, poll: &PendingVote<'_>, counted: Hold, refusals: Vec<DenialClaim>) -> Result<VoteOutcome> {
        let stored = self.threads.held(poll.keys, counted.transition).await?;
        let statement = &stored.record.statement;
        let denial = Denial {
            iss: poll.keys.issuer().to_owned(),
            sub: counted.thread.clone(),
            jti: new_jti(),
            iat: poll.now.seconds(),
            flow: counted.flow.clone(),
            policy: statement.policy,
            transition: counted.transition,
            parent: statement.parent,
            review: counted.id.clone(),
            outcome: "denied".to_owned(),
            reviewers: refusals,
        };
        // A signed denial lets an agent prove the decision to others without the gateway.
        let denial = jws::sign(poll.keys.signing(KeyUse::Chain), TokenType::Denial, &denial);
        let mut draft = poll.draft()?;
        let mut thread = poll.standing.thread.record.clone();
        put_vote_event(&mut draft, &mut thread, &counted, poll.now)?;
        let counted = Stored { record: counted, ..poll.hold.clone() };
        let end =
            HoldEnd { state: HoldState::Denied { at: poll.now, denial }, reason: HoldEndReason::Denied, at: poll.now };
        self.threads.add_hold_end(&mut draft, poll.keys, &mut thread, &counted, end).await?;
        draft.replace(&poll.standing.thread, &thread)?;
        self.core.commit(draft.finish()).await?;
        Ok(VoteOutcome::Denied)
    }

    /// Stores the entry, the receipt, the end of the review, the new head and the events in one transaction.
    async fn approve(
        &self,
        poll: &PendingVote<'_>,
        counted: Hold,
        approvals: Vec<ApprovalClaim>,
    ) -> Result<VoteOutcome> {
        let stored = self.threads.held(poll.keys, counted.transition).await?;
        let head = self.threads.head(poll.keys, &poll.standing.thread.record).await?;
        let policy = self.policies.policy(poll.keys, stored.record.statement.policy).await?;
        let step = self.approved_step(poll.keys, &head, &stored.record)?;
        let receipt = receipt_of(poll, &policy, &stored.record, approvals);
        let issued = IssuedReceipt::sign(poll.keys.signing(KeyUse::Chain), receipt);
        let receipt = issued.claims();
        let mut draft = poll.draft()?;
        let mut thread = poll.standing.thread.record.clone();
        put_vote_event(&mut draft, &mut thread, &counted, poll.now)?;
        // The excluded people are the authors of the approved change, and they stay excluded until the next
        // write.
        thread.authors.clone_from(&counted.excluded);
        let gate = CommitGate::Approved { review: counted.id.clone(), receipt: receipt.jti.clone() };
        let base = CommitBase { head: &head, policy: &policy, flow: &poll.standing.flow.record };
        let gated = GatedTransition { step, gate, committed_at: poll.now };
        let advanced = self.threads.advance(&mut draft, poll.keys, base, gated, &mut thread)?;
        let outcome = TransitionOutcome::Approved {
            review: counted.id.clone(),
            receipt: receipt.jti.clone(),
            entry: advanced.token.clone(),
        };
        draft.replace(&stored, &Transition { outcome, ..stored.record.clone() })?;
        let (at, jti, version) = (poll.now, receipt.jti.clone(), receipt.version);
        draft.insert(&ReceiptRow {
            jti: jti.clone(),
            thread: thread.id.clone(),
            transition: counted.transition,
            token: issued.token().to_owned(),
            reviewers: receipt.approvals.iter().map(|it| it.reviewer.clone()).collect(),
            revoked: None,
        })?;
        put_approved_events(&mut draft, &mut thread, &counted, receipt, poll.now)?;
        draft.replace(poll.hold, &counted.ended(HoldState::Approved { at, receipt: jti, version })?)?;
        draft.replace(&poll.standing.thread, &thread)?;
        self.core.commit(draft.finish()).await?;
        // The caches are filled only after the commit, because a failed commit must leave no head behind.
        self.threads.cache_head(advanced);
        self.writes.cache_receipt(issued);
        Ok(VoteOutcome::Approved)
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

impl<'a> PendingVote<'a> {
    /// Returns a change that relies on the halts, on the accounts and delegations of all voters, and on the
    /// deadline.
    fn draft(&self) -> Result<Draft<'a>> {
        let mut draft = Draft::new(self.keys.row(), self.now);
        self.standing.rely(&mut draft);
        self.rolled.rely(&mut draft);
        if let Some(passkey) = &self.passkey {
            passkey.put(&mut draft, self.now)?;
        }
        draft.before(self.hold.record.expires_at);
        Ok(draft)
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
    poll: &PendingVote<'_>,
    policy: &Policy,
    transition: &Transition,
    approvals: Vec<ApprovalClaim>,
) -> Receipt {
    let statement = &transition.statement;
    Receipt {
        iss: poll.keys.issuer().to_owned(),
        sub: statement.thread.clone(),
        aud: policy.writers().map(|(node, _)| node.clone()).collect(),
        jti: new_jti(),
        iat: poll.now.seconds(),
        nbf: poll.now.seconds(),
        exp: poll.now.plus(policy.approval().receipt_ttl()).seconds(),
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

fn put_vote_event(draft: &mut Draft<'_>, thread: &mut Thread, counted: &Hold, now: Timestamp) -> Result<()> {
    // The vote that was just counted is always the last one.
    let Some(vote) = counted.votes.last() else { return Ok(()) };
    record_expired_lease(draft, thread, now)?;
    event_recorder::append_thread_event(draft, thread, now, EventType::ReviewVote, vote_data(counted, vote))
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
