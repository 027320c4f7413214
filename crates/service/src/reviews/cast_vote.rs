//! Casts a vote. Reviews, policy change requests and interrupts share these steps, so that none of them skips one.

use countersign_domain::identity::account::Account;
use countersign_domain::keys::Keys;
use countersign_domain::primitives::id::AccountId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Ballot, QuorumResult, Tally, VoteSubject, VoterRoll};
use countersign_store::change::Draft;
use countersign_store::record::Stored;

use crate::error::{Error, Result};
use crate::identity::passkeys::VoteSignature;
use crate::platform::retry::retrying;
use crate::reviews::Reviews;

/// The result of a counted vote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VoteOutcome {
    Waiting,
    /// The change is approved and committed, and its receipt is issued.
    Approved,
    Denied,
}

/// A ballot as a person submits it.
#[derive(Clone, Copy)]
pub(crate) struct SubmittedBallot<'a> {
    pub(crate) voter: &'a AccountId,
    pub(crate) ballot: &'a Ballot,
    /// A passkey signature over the vote.
    pub(crate) signature: Option<&'a VoteSignature>,
}

/// Loads a vote subject, and stores it after a counted vote.
pub(crate) trait VoteUseCase {
    type Subject: VoteSubject + Clone;

    /// The other rows that the decision depends on.
    type Context;

    /// Loads the subject. Returns an error if no vote on it may be counted now, for example during a halt.
    async fn load(&self, keys: &Keys) -> Result<(Stored<Self::Subject>, Self::Context)>;

    /// Requires at commit time that the context is unchanged.
    fn rely(context: &Self::Context, draft: &mut Draft<'_>);

    fn count(
        subject: Self::Subject,
        context: &Self::Context,
        ballot: Ballot,
        voter: &Account,
        roll: &VoterRoll,
    ) -> Result<Tally<Self::Subject>>;

    /// Adds the vote and its result to the change, and commits it.
    async fn store(&self, vote: CountedVote<'_, Self>) -> Result<()>;
}

/// A counted vote, and the change that stores it.
pub(crate) struct CountedVote<'a, U: VoteUseCase + ?Sized> {
    pub(crate) keys: &'a Keys,
    pub(crate) now: Timestamp,
    /// The subject before the vote.
    pub(crate) stored: &'a Stored<U::Subject>,
    pub(crate) context: &'a U::Context,
    pub(crate) tally: Tally<U::Subject>,
    /// A change that relies on the context, the voters, the passkey and the deadline.
    pub(crate) draft: Draft<'a>,
}

impl Reviews {
    /// Casts a vote on exactly the digest that the ballot contains.
    pub(crate) async fn cast_vote<U: VoteUseCase>(&self, case: &U, cast: SubmittedBallot<'_>) -> Result<VoteOutcome> {
        let SubmittedBallot { voter, ballot, signature } = cast;
        retrying!({
            let keys = self.core.keys()?;
            let (stored, context) = case.load(&keys).await?;
            let subject = &stored.record;
            let delegation = ballot.delegation.as_ref().filter(|_| U::Subject::DELEGABLE);
            let votes = subject.quorum(self.core.now()).votes;
            let rolled = self.load_voter_roll(&keys, votes, voter, delegation).await?;
            // One time for the whole vote, so that delegations and the deadline are judged at the same moment.
            let now = rolled.roll.now;
            let person = rolled.roll.person(voter).ok_or(Error::Unauthenticated)?;
            let (ballot, passkey) =
                self.identity.verify_voter_proof(&keys, subject, voter, ballot.clone(), signature).await?;
            let (stage, proof) = (ballot.stage, ballot.proof.clone());
            let tally = U::count(subject.clone(), &context, ballot, person, &rolled.roll)?;
            // After the vote was judged, so that a person without the right to vote gets that reason first.
            subject.quorum(now).passkey_need(stage).met_by(&proof, now)?;
            let mut draft = Draft::new(keys.row(), now);
            U::rely(&context, &mut draft);
            rolled.rely(&mut draft);
            passkey.iter().try_for_each(|it| it.put(&mut draft, now))?;
            // The database's clock decides whether the vote came before the deadline.
            draft.before(subject.quorum(now).expires_at);
            let outcome = VoteOutcome::from(&tally.result);
            case.store(CountedVote { keys: &keys, now, stored: &stored, context: &context, tally, draft }).await?;
            Ok(outcome)
        })
        .map_err(Error::expired_if_too_late)
    }
}

impl From<&QuorumResult> for VoteOutcome {
    fn from(result: &QuorumResult) -> Self {
        match result {
            QuorumResult::Waiting => Self::Waiting,
            QuorumResult::Approved(_) => Self::Approved,
            QuorumResult::Denied(_) => Self::Denied,
        }
    }
}
