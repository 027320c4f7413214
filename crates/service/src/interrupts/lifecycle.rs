//! Receives interrupts, counts the votes on them and ends them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use countersign_adapters::random;
use countersign_domain::identity::account::{Account, MachineRole, Token};
use countersign_domain::interrupts::{
    ApprovalRequirements, HostAssertion, Interrupt, InterruptDecision, InterruptDecisionInput,
    InterruptDecisionResponse, InterruptRejected, InterruptSource, InterruptState, InterruptTerms, SignedPostId,
    StoredInterruptDecision,
};
use countersign_domain::keys::{KeyUse, Keys};
use countersign_domain::log::event::EventType;
use countersign_domain::policy::Policy;
use countersign_domain::policy_changes::change_request::ReplacedPolicy;
use countersign_domain::primitives::id::{AccountId, FlowId, InterruptId, PrincipalId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Ballot, QuorumResult, Tally, VoteRejected, VoterRoll, can_be_approved, stages_of};
use countersign_domain::threads::flow::{Flow, Gateway};
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use countersign_store::records::OPEN;

use crate::error::{Error, Result};
use crate::identity::passkeys::VoteSignature;
use crate::interrupts::Interrupts;
use crate::interrupts::duplicates::record_signed_post;
use crate::interrupts::view::{InterruptView, end_data, end_event, received_data, vote_data};
use crate::platform::event_recorder;
use crate::platform::retry::retrying;
use crate::reviews::cast_vote::{CountedVote, SubmittedBallot, VoteOutcome, VoteUseCase};
use crate::reviews::vote::new_jti;

/// The rows on which a decision about an interrupt depends.
struct InterruptContext {
    gateway: Stored<Gateway>,
    flow: Stored<Flow>,
    policy: Arc<Policy>,
}

impl InterruptContext {
    pub(crate) fn rely(&self, draft: &mut Draft<'_>) {
        draft.require_unchanged(&self.gateway).require_unchanged(&self.flow);
    }

    pub(crate) fn is_halted(&self) -> bool {
        self.gateway.record.halt.proposing || self.flow.record.halt.proposing
    }
}

/// A vote on an interrupt.
struct InterruptVote<'a> {
    interrupts: &'a Interrupts,
    id: &'a InterruptId,
}

impl VoteUseCase for InterruptVote<'_> {
    type Subject = Interrupt;
    type Context = InterruptContext;

    async fn load(&self, keys: &Keys) -> Result<(Stored<Interrupt>, InterruptContext)> {
        let core = &self.interrupts.core;
        let stored = self.interrupts.interrupt_row(keys, self.id).await?;
        let flow = core.flow(keys, &stored.record.flow).await?;
        let ground = self.interrupts.ground(keys, flow).await?;
        if ground.is_halted() {
            return Err(Error::Halted);
        }
        // The reviewer would vote under terms that the active policy has replaced.
        if stored.record.is_open(core.now()) && approval_requirements(&ground.policy) != stored.record.asking {
            return Err(VoteRejected::PolicyChanged.into());
        }
        Ok((stored, ground))
    }

    fn rely(ground: &InterruptContext, draft: &mut Draft<'_>) {
        ground.rely(draft);
    }

    fn count(
        interrupt: Interrupt,
        _ground: &InterruptContext,
        ballot: Ballot,
        voter: &Account,
        roll: &VoterRoll,
    ) -> Result<Tally<Interrupt>> {
        Ok(interrupt.vote(ballot, voter, roll)?)
    }

    async fn store(&self, vote: CountedVote<'_, Self>) -> Result<()> {
        let CountedVote { keys, now, stored, context: ground, tally, mut draft } = vote;
        let counted = tally.record;
        if let Some(vote) = counted.votes.last() {
            let data = vote_data(&counted, vote);
            event_recorder::outside(&mut draft, Some(&counted.flow), now, EventType::InterruptVote, data)?;
        }
        match ending_of(tally.result, now, ground.policy.approval().receipt_ttl()) {
            None => draft.replace(stored, &counted)?,
            Some(end) => self.interrupts.put_interrupt_end(&mut draft, keys, stored, counted, end).await?,
        }
        self.interrupts.core.commit(draft.finish()).await
    }
}

impl Interrupts {
    /// Receives an interrupt from a host application. A repeated request returns the same interrupt. A signed post is
    /// also recognized by its webhook id.
    pub async fn receive_interrupt(
        &self,
        source: &Stored<Token>,
        asserted: &HostAssertion,
        post: Option<&SignedPostId>,
    ) -> Result<Interrupt> {
        let wrong =
            |it: countersign_domain::threads::usage::InvalidUsage| Error::invalid(it.pointer.as_str(), it.detail);
        asserted.check().map_err(wrong)?;
        retrying!(self.receive_once(source, asserted, post))
    }

    async fn receive_once(
        &self,
        source: &Stored<Token>,
        asserted: &HostAssertion,
        post: Option<&SignedPostId>,
    ) -> Result<Interrupt> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        // Checked first, so that a retry succeeds even if a halt has begun.
        if let Some(known) = self.find_duplicate(&keys, source, asserted, post).await? {
            return Ok(known);
        }
        let flow = source
            .record
            .flow
            .as_ref()
            .ok_or(Error::Forbidden("this token is not bound to a flow: use a host token of one flow"))?;
        let flow = self.core.flow(&keys, flow).await?;
        let ground = self.ground(&keys, flow).await?;
        if ground.is_halted() {
            return Err(Error::Halted);
        }
        self.check_attempt(&keys, source, asserted, &ground.policy).await?;
        let asking = approval_requirements(&ground.policy);
        if asking.stages.is_empty() {
            return Err(InterruptRejected::NobodyAsked.into());
        }
        // Separation of duties: the owner of the host's token may not vote.
        let excluded = BTreeSet::from([source.record.owner.clone()]);
        if !can_be_approved(&asking.stages, &excluded, &self.identity.accounts_all(&keys).await?) {
            return Err(InterruptRejected::NobodyCanApprove.into());
        }
        let ttl = ground.policy.approval().ttl();
        let id = InterruptId::try_from(random::uuid_v7(now).to_string()).expect("a UUID is a name");
        let terms = InterruptTerms {
            source: InterruptSource { token: source.record.principal(), name: source.record.name.clone() },
            flow: ground.flow.record.id.clone(),
            policy: ground.flow.record.policy,
            excluded,
            asking,
            received_at: now,
            // The host can shorten the policy's deadline but not extend it.
            expires_at: now.plus(asserted.expires_in.map_or(ttl, |secs| ttl.min(Duration::from_secs(secs)))),
        };
        let interrupt = Interrupt::new(id, asserted.clone(), terms);
        let mut draft = Draft::new(keys.row(), now);
        // The commit fails if another policy is activated at the same time.
        ground.rely(&mut draft);
        draft.require_unchanged(source);
        draft.insert(&interrupt)?;
        let data = received_data(&interrupt, &ground.policy);
        event_recorder::outside(&mut draft, Some(&interrupt.flow), now, EventType::InterruptReceived, data)?;
        if let Some(post) = post {
            record_signed_post(&mut draft, &interrupt, post, now)?;
        }
        self.core.store_response(&mut draft, &keys, &interrupt)?;
        self.core.commit(draft.finish()).await?;
        Ok(interrupt)
    }

    async fn ground(&self, keys: &Keys, flow: Stored<Flow>) -> Result<InterruptContext> {
        let policy = self.policies.policy(keys, flow.record.policy).await?;
        Ok(InterruptContext { gateway: self.core.gateway(keys).await?, flow, policy })
    }

    pub(crate) async fn interrupt_row(&self, keys: &Keys, id: &InterruptId) -> Result<Stored<Interrupt>> {
        let stored: Stored<Interrupt> = self.core.need(keys, id.as_str(), "interrupt").await?;
        if stored.record.is_whole() { Ok(stored) } else { Err(Error::Broken("an interrupt")) }
    }

    /// Returns the current interrupt. It is ended first if its deadline has passed or the policy now requires other
    /// approvals.
    pub async fn interrupt(&self, id: &InterruptId) -> Result<Interrupt> {
        self.end_interrupt_if_due(id).await?;
        Ok(self.interrupt_row(&*self.core.keys()?, id).await?.record)
    }

    /// Returns the current interrupt with the policies that redact it.
    pub async fn interrupt_view(&self, id: &InterruptId) -> Result<InterruptView> {
        let interrupt = self.interrupt(id).await?;
        let keys = self.core.keys()?;
        let active = self.core.flow(&keys, &interrupt.flow).await?.record.policy;
        let policies = self.threads.policies_under(&keys, active, [interrupt.policy]).await?;
        Ok(InterruptView { interrupt, policies })
    }

    /// Returns the answer of an interrupt as a token may read it. In the comment, values of the interrupt are masked.
    /// A token that could have written the comment gets it without that comparison, because the mask would confirm a
    /// guess. The token that sent the interrupt knows its values, so it gets the masked comment. The signed answer
    /// contains the digest of the interrupt, so only auditors and the party that sent the interrupt get it.
    pub async fn interrupt_answer(&self, id: &InterruptId, token: &Token) -> Result<Option<InterruptDecisionResponse>> {
        let shown = self.interrupt_view(id).await?;
        let Some(mut answered) = shown.interrupt.answered() else { return Ok(None) };
        let last = shown.interrupt.deciders(answered.decision).next_back();
        let (keys, reader) = (self.core.keys()?, self.identity.reader_with(token).await?);
        let source = self.threads.party_of(&keys, &shown.interrupt.source.token).await?;
        if token.role != MachineRole::Auditor && !reader.could_have_written_as(&source) {
            answered.answer = None;
        }
        if let Some((vote, words)) = last.and_then(|it| Some((it, it.comment.as_deref()?)))
            && shown.interrupt.source.token != token.principal()
        {
            let author = self.threads.party_of(&keys, &PrincipalId::from(&vote.reviewer)).await?;
            if reader.could_have_written_as(&author) {
                answered.comment = Some(shown.uncompared(words).into_owned());
            }
        }
        Ok(Some(answered))
    }

    /// Returns the current accounts of the voters on an interrupt and of a viewer.
    pub async fn roll_of_interrupt(&self, interrupt: &Interrupt, viewer: &AccountId) -> Result<VoterRoll> {
        Ok(self.reviews.load_voter_roll(&*self.core.keys()?, &interrupt.votes, viewer, None).await?.roll)
    }

    /// Returns true if the flow is halted.
    pub async fn is_halted(&self, flow: &FlowId) -> Result<bool> {
        let keys = self.core.keys()?;
        let flow = self.core.flow(&keys, flow).await?;
        Ok(self.ground(&keys, flow).await?.is_halted())
    }

    /// Counts the vote of a person on exactly the digest in the ballot, with a passkey signature over it if there is
    /// one. The last required vote answers the host application.
    pub async fn vote_on_interrupt(
        &self,
        voter: &AccountId,
        id: &InterruptId,
        ballot: &Ballot,
        signature: Option<&VoteSignature>,
    ) -> Result<VoteOutcome> {
        let vote = InterruptVote { interrupts: self, id };
        self.reviews.cast_vote(&vote, SubmittedBallot { voter, ballot, signature }).await
    }

    /// Adds the end of an interrupt to a change: the signed answer and its event.
    async fn put_interrupt_end(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        stored: &Stored<Interrupt>,
        counted: Interrupt,
        ending: InterruptDecisionInput,
    ) -> Result<()> {
        let active = self.core.flow(keys, &counted.flow).await?.record.policy;
        let policies = self.threads.policies_under(keys, active, [counted.policy]).await?;
        let shown = InterruptView { policies, interrupt: counted };
        let counted = &shown.interrupt;
        let (decision, at, nonce) = (ending.decision, ending.at, new_jti());
        let said = counted.deciders(decision).next_back().and_then(|it| it.comment.as_deref());
        // Events with the answer leave the gateway, so the comment is stored without redacted values.
        let answer = StoredInterruptDecision {
            nonce: nonce.clone(),
            expires_at: ending.expires_at,
            comment: said.map(|it| shown.masked(it).into_owned()),
            token: counted.claims(keys.issuer(), &nonce, ending).sign(keys.signing(KeyUse::Chain)),
        };
        let ended = counted.clone().ended(decision, at, answer)?;
        draft.replace(stored, &ended)?;
        event_recorder::outside(draft, Some(&ended.flow), at, end_event(decision), end_data(&ended))
    }

    /// Returns the open interrupts whose deadline has passed.
    pub async fn interrupts_due(&self) -> Result<Vec<InterruptId>> {
        self.core.due(OPEN, |it: Interrupt| Some(it.id)).await
    }

    /// Returns the open interrupts whose flow has another active policy now.
    pub async fn interrupts_to_rejudge(&self) -> Result<Vec<InterruptId>> {
        let keys = self.core.keys()?;
        let judging = self.policies.active_policy_by_flow(&keys).await?;
        let of_before = |interrupt: Interrupt| {
            let over = judging.get(&interrupt.flow).filter(|it| it.policy != interrupt.policy)?;
            (!self.interrupts_looked.stands(interrupt.id.as_str(), *over)).then_some(interrupt.id)
        };
        if self.interrupts_looked.is_done(&judging) {
            return Ok(Vec::new());
        }
        let found = self.core.select_open(&keys, of_before).await?;
        // A list that was cut says nothing about the rest, so the next pass reads it again.
        if found.items.is_empty() && found.is_complete {
            self.interrupts_looked.done(judging);
        }
        Ok(found.items)
    }

    /// Ends an open interrupt if its deadline has passed or the policy now requires other approvals.
    pub async fn end_interrupt_if_due(&self, id: &InterruptId) -> Result<()> {
        // By the database's clock the deadline may not have passed.
        retrying!(self.settle_once(id)).or_else(Error::ok_if_too_soon)
    }

    pub(crate) async fn settle_once(&self, id: &InterruptId) -> Result<()> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let stored = self.interrupt_row(&keys, id).await?;
        if !matches!(stored.record.state, InterruptState::Open {}) {
            return Ok(());
        }
        let mut draft = Draft::new(keys.row(), now);
        let decision = if stored.record.is_open(now) {
            let flow = self.core.flow(&keys, &stored.record.flow).await?;
            let ground = self.ground(&keys, flow).await?;
            // The new policy requires the same approvals, so the interrupt stays open.
            if approval_requirements(&ground.policy) == stored.record.asking {
                self.interrupts_looked.keep(id.as_str(), ReplacedPolicy::of(&ground.flow.record));
                return Ok(());
            }
            ground.rely(&mut draft);
            InterruptDecision::Superseded
        } else {
            // The database's clock decides, so that a fast clock of one gateway cannot end an interrupt early.
            draft.not_before(stored.record.expires_at);
            InterruptDecision::Expired
        };
        let open = stored.record.clone();
        self.put_interrupt_end(&mut draft, &keys, &stored, open, without_people(decision, now)).await?;
        self.core.commit(draft.finish()).await
    }
}

/// Returns the approvals that a policy requires.
pub(crate) fn approval_requirements(policy: &Policy) -> ApprovalRequirements {
    ApprovalRequirements { stages: stages_of(policy), denials_needed: policy.approval().denials() }
}

/// Returns the ending after a counted vote, if it was the last required one.
fn ending_of(result: QuorumResult, now: Timestamp, good_for: Duration) -> Option<InterruptDecisionInput> {
    match result {
        QuorumResult::Waiting => None,
        QuorumResult::Approved(approvals) => {
            // The claim has the time in whole seconds.
            let expires_at = Some(Timestamp::from_millis(now.plus(good_for).seconds().saturating_mul(1000)));
            Some(InterruptDecisionInput { approvals, expires_at, ..without_people(InterruptDecision::Approved, now) })
        }
        QuorumResult::Denied(refusals) => {
            Some(InterruptDecisionInput { refusals, ..without_people(InterruptDecision::Denied, now) })
        }
    }
}

/// Returns an ending without approvals.
const fn without_people(decision: InterruptDecision, at: Timestamp) -> InterruptDecisionInput {
    InterruptDecisionInput { decision, at, expires_at: None, approvals: Vec::new(), refusals: Vec::new() }
}
