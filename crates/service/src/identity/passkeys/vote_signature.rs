//! Checks the proof of a voter, such as a passkey signature, before a vote is counted.

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::signed_vote::{SIGNATURE_TTL, Signable as _, SignedVote, VoteEvidence, comment_hash};
use countersign_domain::identity::passkey::{Assertion, AssertionRejected, Passkey};
use countersign_domain::keys::Keys;
use countersign_domain::primitives::id::{AccountId, PasskeyId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Ballot, Vote, VoteRejected, VoteSubject, VoterProof};
use countersign_store::change::Draft;
use countersign_store::record::Stored;

use crate::error::Result;
use crate::identity::Identity;

/// Signature of a passkey over a vote, as submitted with a form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VoteSignature {
    /// Signed expiry.
    pub expires_at: Timestamp,
    pub assertion: Assertion,
}

/// A passkey that a decision depends on, with its new counter if it signed.
#[derive(Clone, Debug)]
pub(crate) struct PasskeyUse {
    stored: Stored<Passkey>,
    counter: Option<u32>,
}

impl PasskeyUse {
    pub(super) fn signed(stored: Stored<Passkey>, counter: u32) -> Self {
        Self { stored, counter: Some(counter) }
    }

    pub(crate) fn id(&self) -> &PasskeyId {
        &self.stored.record.id
    }

    /// Returns the passkey after this use.
    pub(super) fn next(&self, now: Timestamp) -> Passkey {
        let stored = &self.stored.record;
        self.counter.map_or_else(|| stored.clone(), |counter| stored.used(counter, now))
    }

    /// Adds the use to a change. The commit fails if the passkey was removed or used again since then.
    pub(crate) fn put(&self, draft: &mut Draft<'_>, now: Timestamp) -> Result<()> {
        match self.counter {
            None => {
                draft.require_unchanged(&self.stored);
            }
            Some(_) => draft.replace(&self.stored, &self.next(now))?,
        }
        Ok(())
    }
}

/// Builds the statement that a passkey signs for a vote.
fn statement<S: VoteSubject>(
    keys: &Keys,
    subject: &S,
    voter: &AccountId,
    ballot: &Ballot,
    expires_at: Timestamp,
) -> S::Statement {
    let signed = SignedVote {
        comment: comment_hash(ballot.comment.as_deref()),
        digest: ballot.transition,
        expires_at,
        iss: keys.issuer().to_owned(),
        nonce: ballot.nonce.clone(),
        reviewer: voter.clone(),
        stage: ballot.stage,
        verdict: ballot.verdict,
    };
    S::Statement::new(subject.subject_id().clone(), signed)
}

/// Rebuilds the signed evidence of a vote from the stored vote.
pub fn evidence_of<S: VoteSubject>(issuer: &str, subject: &S, vote: &Vote) -> Option<VoteEvidence<S::Statement>> {
    let VoterProof::Signature { expires_at, assertion, .. } = &vote.proof else { return None };
    let signed = SignedVote {
        comment: comment_hash(vote.comment.as_deref()),
        digest: vote.transition,
        expires_at: *expires_at,
        iss: issuer.to_owned(),
        nonce: vote.nonce.clone(),
        reviewer: vote.reviewer.clone(),
        stage: vote.stage,
        verdict: vote.verdict,
    };
    let statement = S::Statement::new(subject.subject_id().clone(), signed);
    Some(VoteEvidence { assertion: assertion.clone(), statement })
}

impl Identity {
    /// Returns the digest that the voter's passkey signs, and its expiry.
    pub fn vote_challenge(
        &self,
        subject: &impl VoteSubject,
        voter: &AccountId,
        ballot: &Ballot,
    ) -> Result<(Digest, Timestamp)> {
        let now = self.core.now();
        // A signature must not outlive the deadline.
        let expires_at = now.plus(SIGNATURE_TTL).min(subject.quorum(now).expires_at);
        Ok((statement(&*self.core.keys()?, subject, voter, ballot, expires_at).challenge(), expires_at))
    }

    /// Returns the signed evidence of the votes.
    pub fn vote_evidence<S: VoteSubject>(&self, subject: &S) -> Result<Vec<VoteEvidence<S::Statement>>> {
        let keys = self.core.keys()?;
        let votes = subject.quorum(self.core.now()).votes;
        Ok(votes.iter().filter_map(|it| evidence_of(keys.issuer(), subject, it)).collect())
    }

    /// Returns the ballot with its verified proof, and the passkey that it depends on.
    pub(crate) async fn verify_voter_proof(
        &self,
        keys: &Keys,
        subject: &impl VoteSubject,
        voter: &AccountId,
        mut ballot: Ballot,
        signature: Option<&VoteSignature>,
    ) -> Result<(Ballot, Option<PasskeyUse>)> {
        if let Some(signature) = signature {
            let (evidence, used) = self.signed(keys, subject, voter, &ballot, signature).await?;
            let VoteSignature { expires_at, assertion } = signature.clone();
            ballot.proof = VoterProof::Signature { evidence, expires_at, assertion };
            return Ok((ballot, Some(used)));
        }
        // Without a passkey, the proof is the session, whatever the ballot contains.
        let VoterProof::PasskeySession { passkey, .. } = &ballot.proof else {
            ballot.proof = VoterProof::Session {};
            return Ok((ballot, None));
        };
        // The session may be older than the removal of its passkey, so the passkey is checked now.
        let stored = self.passkey_of_voter(keys, passkey, voter).await?;
        Ok((ballot, Some(PasskeyUse { stored, counter: None })))
    }

    async fn signed(
        &self,
        keys: &Keys,
        subject: &impl VoteSubject,
        voter: &AccountId,
        ballot: &Ballot,
        signature: &VoteSignature,
    ) -> Result<(Digest, PasskeyUse)> {
        let now = self.core.now();
        // An expiry too far in the future would allow a replay attack with an old signature.
        if now >= signature.expires_at || signature.expires_at > now.plus(SIGNATURE_TTL) {
            return Err(VoteRejected::SignatureExpired.into());
        }
        let stored = self.passkey_of_voter(keys, &signature.assertion.passkey, voter).await?;
        let (assertion, until) = (signature.assertion.clone(), signature.expires_at);
        let statement = statement(keys, subject, voter, ballot, until);
        let evidence = VoteEvidence { assertion, statement };
        let (evidence, counter) = (evidence.digest(), evidence.check(&stored.record));
        let counter = self.told_if_copied(keys, &stored.record, counter).await?;
        Ok((evidence, PasskeyUse::signed(stored, counter)))
    }

    /// Returns an active passkey of this person that was registered for this gateway.
    async fn passkey_of_voter(&self, keys: &Keys, id: &PasskeyId, voter: &AccountId) -> Result<Stored<Passkey>> {
        let stored = self.core.fetch::<Passkey>(keys, id.as_str()).await?;
        let now = self.core.now();
        let stored =
            stored.filter(|it| it.record.account == *voter && it.record.counts_at(now) && self.is_of_here(&it.record));
        stored.ok_or_else(|| VoteRejected::from(AssertionRejected::NotTheirs).into())
    }
}
