//! Votes: counting one, and what the last one leads to.

use std::sync::Arc;

use serde_json::{Value, json};

use super::rejudge::JudgedAgain;
use super::voter_roll::Rolled;
use crate::domain::chain::commitment::Setting;
use crate::domain::chain::entry::Gate;
use crate::domain::chain::jws::{self, Typ};
use crate::domain::chain::receipt::{Approval, Denial, Issued, Receipt, Refusal};
use crate::domain::keys::{KeyUse, Keys};
use crate::domain::log::event::EventType;
use crate::domain::policy::Policy;
use crate::domain::primitives::id::{AccountId, Jti, ReviewId};
use crate::domain::primitives::time::Timestamp;
use crate::domain::reviews::{Ballot, Bench, Hold, HoldState, Tally, Vote, VoteRefused};
use crate::domain::threads::flow::ReceiptRow;
use crate::domain::threads::thread::Thread;
use crate::domain::threads::transition::{EndWord, Outcome, Transition};
use crate::random;
use crate::service::error::{Error, Result};
use crate::service::identity::passkeys::{PasskeyUse, Signature, Subject};
use crate::service::platform::event_recorder;
use crate::service::platform::retry::retrying;
use crate::service::threads::commit::Base;
use crate::service::threads::heads::Version;
use crate::service::threads::lease_expiry::over_a_lapse;
use crate::service::threads::statement::Step;
use crate::service::{Service, Standing};
use crate::store::change::Draft;
use crate::store::record::Stored;

/// What a counted vote led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Voted {
    /// More are needed.
    Waiting,
    /// It is approved, committed, and has its receipt.
    Approved,
    /// It is denied.
    Denied,
}

/// How a vote comes.
#[derive(Clone, Copy)]
enum Manner<'a> {
    /// By itself, with a passkey's signature over it if there is one.
    Alone(Option<&'a Signature>),
    /// Among several.
    AmongSeveral,
}

/// Everything around one vote while it is counted.
struct Poll<'a> {
    keys: &'a Keys,
    standing: &'a Standing,
    hold: &'a Stored<Hold>,
    rolled: &'a Rolled,
    passkey: Option<PasskeyUse>,
    now: Timestamp,
}

impl Service {
    /// Counts a person's vote on exactly the digest it carries.
    pub async fn vote(&self, voter: &AccountId, review: &ReviewId, ballot: &Ballot) -> Result<Voted> {
        self.vote_signed(voter, review, ballot, None).await
    }

    /// The same, with a passkey's signature over it if there is one.
    pub async fn vote_signed(
        &self,
        voter: &AccountId,
        review: &ReviewId,
        ballot: &Ballot,
        signature: Option<&Signature>,
    ) -> Result<Voted> {
        self.vote_in(voter, review, ballot, Manner::Alone(signature)).await
    }

    /// The same, as one of several: only where nothing more is asked for than a look.
    pub(in crate::service) async fn vote_among_several(
        &self,
        voter: &AccountId,
        review: &ReviewId,
        ballot: &Ballot,
    ) -> Result<Voted> {
        self.vote_in(voter, review, ballot, Manner::AmongSeveral).await
    }

    async fn vote_in(
        &self,
        voter: &AccountId,
        review: &ReviewId,
        ballot: &Ballot,
        manner: Manner<'_>,
    ) -> Result<Voted> {
        let late = |error: Error| if error.is_too_late() { VoteRefused::Expired.into() } else { error };
        retrying!(self.vote_once(voter, review, ballot, manner)).map_err(late)
    }

    async fn vote_once(
        &self,
        voter: &AccountId,
        review: &ReviewId,
        ballot: &Ballot,
        manner: Manner<'_>,
    ) -> Result<Voted> {
        let (keys, now) = (self.keys()?, self.now());
        let hold: Stored<Hold> = self.need(&keys, review.as_str(), "review").await?;
        let thread = self.thread(&keys, &hold.record.thread).await?;
        let standing = self.standing(&keys, thread).await?;
        check_open(&standing, &hold.record, now)?;
        let signature = match (manner, hold.record.alone()) {
            (Manner::AmongSeveral, Some(why)) => return Err(VoteRefused::from(why).into()),
            (Manner::AmongSeveral, None) => None,
            (Manner::Alone(signature), _) => signature,
        };
        if self.judged_again(&keys, &standing, &hold).await? != JudgedAgain::Kept {
            return Err(VoteRefused::PolicyChanged.into());
        }
        let rolled = self.rolled(&keys, &hold.record.votes, (voter, ballot.delegation.as_ref())).await?;
        let now = rolled.roll.now;
        let person = rolled.roll.person(voter).ok_or(Error::Unauthenticated)?;
        let outcome_unknown = standing.thread.record.outcome_unknown(now);
        let bench = Bench { roll: &rolled.roll, outcome_unknown };
        let (ballot, passkey) = self.proven(&keys, (Subject::Review(review), voter), ballot.clone(), signature).await?;
        let (stage, proof) = (ballot.stage, ballot.proof.clone());
        let tally = hold.record.clone().vote(ballot, person, &bench)?;
        hold.record.passkey_need(stage).met_by(&proof, now)?;
        let poll = Poll { keys: &keys, standing: &standing, hold: &hold, rolled: &rolled, passkey, now };
        match tally {
            Tally::Waiting(counted) => self.wait_for_more(&poll, &counted).await,
            Tally::Approved(counted, approvals) => self.approve(&poll, counted, approvals).await,
            Tally::Denied(counted, refusals) => self.deny(&poll, counted, refusals).await,
        }
    }

    async fn wait_for_more(&self, poll: &Poll<'_>, counted: &Hold) -> Result<Voted> {
        let mut draft = poll.draft()?;
        let mut thread = poll.standing.thread.record.clone();
        put_vote_event(&mut draft, &mut thread, counted, poll.now)?;
        draft.replace(poll.hold, counted)?;
        draft.replace(&poll.standing.thread, &thread)?;
        self.commit(draft.finish()).await?;
        Ok(Voted::Waiting)
    }

    async fn deny(&self, poll: &Poll<'_>, counted: Hold, refusals: Vec<Refusal>) -> Result<Voted> {
        let stored = self.held(poll.keys, counted.transition).await?;
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
        let denial = jws::sign(poll.keys.signing(KeyUse::Chain), Typ::Denial, &denial);
        let mut draft = poll.draft()?;
        let mut thread = poll.standing.thread.record.clone();
        put_vote_event(&mut draft, &mut thread, &counted, poll.now)?;
        let counted = Stored { record: counted, ..poll.hold.clone() };
        let end = (HoldState::Denied { at: poll.now, denial }, EndWord::Denied, poll.now);
        self.put_end(&mut draft, poll.keys, &mut thread, &counted, end).await?;
        draft.replace(&poll.standing.thread, &thread)?;
        self.commit(draft.finish()).await?;
        Ok(Voted::Denied)
    }

    /// In one transaction: the entry, the receipt, the hold's end, the thread's new head, the events.
    async fn approve(&self, poll: &Poll<'_>, counted: Hold, approvals: Vec<Approval>) -> Result<Voted> {
        let stored = self.held(poll.keys, counted.transition).await?;
        let head = self.head(poll.keys, &poll.standing.thread.record).await?;
        let policy = self.policy(poll.keys, stored.record.statement.policy).await?;
        let step = self.approved_step(poll.keys, &head, &stored.record)?;
        let receipt = receipt_of(poll, &policy, &stored.record, approvals);
        let issued = Issued::sign(poll.keys.signing(KeyUse::Chain), receipt);
        let receipt = issued.claims();
        let mut draft = poll.draft()?;
        let mut thread = poll.standing.thread.record.clone();
        put_vote_event(&mut draft, &mut thread, &counted, poll.now)?;
        thread.authors.clone_from(&counted.excluded);
        let gate = Gate::Approved { review: counted.id.clone(), receipt: receipt.jti.clone() };
        let base = Base { head: &head, policy: &policy, flow: &poll.standing.flow.record };
        let advanced = self.advance(&mut draft, poll.keys, base, (step, gate, poll.now), &mut thread)?;
        let outcome = Outcome::Approved {
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
        self.commit(draft.finish()).await?;
        self.heads.put(Arc::new(advanced));
        self.issued.put(issued);
        Ok(Voted::Approved)
    }

    /// The held transition's effect on the head that it was stated on: it must come out as the very root that
    /// people approved, whatever the database says by now.
    fn approved_step(&self, keys: &Keys, head: &Version, transition: &Transition) -> Result<Step> {
        let statement = transition.statement.clone();
        let changed = Error::Broken("the held transition is not what was stated");
        if statement.parent != Some(head.entry.transition) || statement.from != head.tree.root() {
            return Err(changed);
        }
        let Ok(after) = transition.delta.apply(&head.state) else { return Err(changed) };
        let secret = self.secret(keys, &statement.thread);
        let setting = Setting { proposal: &statement.proposal, named: &transition.named };
        let tree = head.tree.advance(&secret, &head.state, &after, &setting);
        if tree.root() != statement.to {
            return Err(changed);
        }
        Ok(Step { transition: transition.clone(), after: head.followed_by(statement, after, tree) })
    }
}

impl<'a> Poll<'a> {
    /// Relies on the flow's and the gateway's halts, on everybody whom votes are about as they stand, and on the deadline.
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

pub(in crate::service) fn check_open(standing: &Standing, hold: &Hold, now: Timestamp) -> Result<()> {
    if !matches!(hold.state, HoldState::Open {}) {
        return Err(VoteRefused::Ended.into());
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

fn receipt_of(poll: &Poll<'_>, policy: &Policy, transition: &Transition, approvals: Vec<Approval>) -> Receipt {
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

/// 128 random bits.
pub(in crate::service) fn new_jti() -> Jti {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random::bytes::<16>());
    Jti::try_from(text).expect("base64url is token text")
}

fn put_vote_event(draft: &mut Draft<'_>, thread: &mut Thread, counted: &Hold, now: Timestamp) -> Result<()> {
    let Some(vote) = counted.votes.last() else { return Ok(()) };
    over_a_lapse(draft, thread, now)?;
    event_recorder::in_thread(draft, thread, now, EventType::ReviewVote, vote_data(counted, vote))
}

/// What the event of a vote tells: all of it but what the voter said. In whose place it was cast, that something was
/// typed, and how a passkey had a part in it, is told only where it is so.
pub(in crate::service) fn vote_data(hold: &Hold, vote: &Vote) -> Value {
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

/// What is told of how a passkey had a part in a vote.
pub(in crate::service) fn with_passkey(mut data: Value, vote: &Vote) -> Value {
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
    event_recorder::in_thread(draft, thread, now, EventType::TransitionApproved, data)?;
    let data =
        json!({"receipt": receipt.jti, "transition": receipt.transition, "aud": receipt.aud, "exp": receipt.exp});
    event_recorder::in_thread(draft, thread, now, EventType::ReceiptIssued, data)
}
