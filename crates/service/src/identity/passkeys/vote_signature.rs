//! Checks the proof of a voter, such as a passkey signature, before a vote is counted.

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::signed_vote::{
    InterruptVoteStatement, PolicyVoteStatement, SIGNATURE_TTL, Signable as _, VoteEvidence, VoteStatement,
    comment_hash,
};
use countersign_domain::identity::passkey::{Assertion, AssertionRejected, Passkey};
use countersign_domain::interrupts::Interrupt;
use countersign_domain::keys::Keys;
use countersign_domain::policy_changes::change_request::PolicyChangeRequest;
use countersign_domain::primitives::id::{AccountId, AmendmentId, InterruptId, PasskeyId, ReviewId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Ballot, Hold, Vote, VoteRejected, VoterProof};
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

#[derive(Clone, Copy)]
pub(crate) enum BallotSubject<'a> {
    Review(&'a ReviewId),
    /// A policy change request.
    Amendment(&'a AmendmentId),
    /// An interrupt from a host application.
    Interrupt(&'a InterruptId),
}

/// Builds the statement that a passkey signs for a vote.
fn statement(
    keys: &Keys,
    review: &ReviewId,
    voter: &AccountId,
    ballot: &Ballot,
    expires_at: Timestamp,
) -> VoteStatement {
    VoteStatement {
        comment: comment_hash(ballot.comment.as_deref()),
        expires_at,
        iss: keys.issuer().to_owned(),
        nonce: ballot.nonce.clone(),
        review: review.clone(),
        reviewer: voter.clone(),
        stage: ballot.stage,
        transition: ballot.transition,
        verdict: ballot.verdict,
    }
}

/// Builds the statement that a passkey signs for a vote on a policy change request.
fn policy_statement(
    keys: &Keys,
    amendment: &AmendmentId,
    voter: &AccountId,
    ballot: &Ballot,
    expires_at: Timestamp,
) -> PolicyVoteStatement {
    PolicyVoteStatement {
        amendment: amendment.clone(),
        comment: comment_hash(ballot.comment.as_deref()),
        digest: ballot.transition,
        expires_at,
        iss: keys.issuer().to_owned(),
        nonce: ballot.nonce.clone(),
        reviewer: voter.clone(),
        stage: ballot.stage,
        verdict: ballot.verdict,
    }
}

/// Builds the statement that a passkey signs for a vote on an interrupt.
fn interrupt_statement(
    keys: &Keys,
    interrupt: &InterruptId,
    voter: &AccountId,
    ballot: &Ballot,
    expires_at: Timestamp,
) -> InterruptVoteStatement {
    InterruptVoteStatement {
        comment: comment_hash(ballot.comment.as_deref()),
        digest: ballot.transition,
        expires_at,
        interrupt: interrupt.clone(),
        iss: keys.issuer().to_owned(),
        nonce: ballot.nonce.clone(),
        reviewer: voter.clone(),
        stage: ballot.stage,
        verdict: ballot.verdict,
    }
}

/// Rebuilds the signed evidence of a vote on an interrupt from the stored vote.
pub fn interrupt_evidence_of(
    issuer: &str,
    interrupt: &InterruptId,
    vote: &Vote,
) -> Option<VoteEvidence<InterruptVoteStatement>> {
    let VoterProof::Signature { expires_at, assertion, .. } = &vote.proof else { return None };
    let statement = InterruptVoteStatement {
        comment: comment_hash(vote.comment.as_deref()),
        digest: vote.transition,
        expires_at: *expires_at,
        interrupt: interrupt.clone(),
        iss: issuer.to_owned(),
        nonce: vote.nonce.clone(),
        reviewer: vote.reviewer.clone(),
        stage: vote.stage,
        verdict: vote.verdict,
    };
    Some(VoteEvidence { assertion: assertion.clone(), statement })
}

/// Rebuilds the signed evidence of a vote on a policy change request from the stored vote.
pub fn policy_evidence_of(
    issuer: &str,
    amendment: &AmendmentId,
    vote: &Vote,
) -> Option<VoteEvidence<PolicyVoteStatement>> {
    let VoterProof::Signature { expires_at, assertion, .. } = &vote.proof else { return None };
    let statement = PolicyVoteStatement {
        amendment: amendment.clone(),
        comment: comment_hash(vote.comment.as_deref()),
        digest: vote.transition,
        expires_at: *expires_at,
        iss: issuer.to_owned(),
        nonce: vote.nonce.clone(),
        reviewer: vote.reviewer.clone(),
        stage: vote.stage,
        verdict: vote.verdict,
    };
    Some(VoteEvidence { assertion: assertion.clone(), statement })
}

/// Rebuilds the signed evidence of a vote from the stored vote.
pub fn evidence_of(issuer: &str, review: &ReviewId, vote: &Vote) -> Option<VoteEvidence> {
    let VoterProof::Signature { expires_at, assertion, .. } = &vote.proof else { return None };
    let statement = VoteStatement {
        comment: comment_hash(vote.comment.as_deref()),
        expires_at: *expires_at,
        iss: issuer.to_owned(),
        nonce: vote.nonce.clone(),
        review: review.clone(),
        reviewer: vote.reviewer.clone(),
        stage: vote.stage,
        transition: vote.transition,
        verdict: vote.verdict,
    };
    Some(VoteEvidence { assertion: assertion.clone(), statement })
}

impl Identity {
    /// Returns the digest that the voter's passkey signs, and its expiry.
    pub fn vote_challenge(&self, hold: &Hold, voter: &AccountId, ballot: &Ballot) -> Result<(Digest, Timestamp)> {
        // A signature must not outlive the review.
        let expires_at = self.core.now().plus(SIGNATURE_TTL).min(hold.expires_at);
        Ok((statement(&*self.core.keys()?, &hold.id, voter, ballot, expires_at).challenge(), expires_at))
    }

    /// Returns the digest and the expiry for a vote on a policy change request.
    pub fn policy_vote_challenge(
        &self,
        amendment: &PolicyChangeRequest,
        voter: &AccountId,
        ballot: &Ballot,
    ) -> Result<(Digest, Timestamp)> {
        let expires_at = self.core.now().plus(SIGNATURE_TTL).min(amendment.expires_at);
        let statement = policy_statement(&*self.core.keys()?, &amendment.id, voter, ballot, expires_at);
        Ok((statement.challenge(), expires_at))
    }

    /// Returns the digest and the expiry for a vote on an interrupt.
    pub fn interrupt_vote_challenge(
        &self,
        interrupt: &Interrupt,
        voter: &AccountId,
        ballot: &Ballot,
    ) -> Result<(Digest, Timestamp)> {
        let expires_at = self.core.now().plus(SIGNATURE_TTL).min(interrupt.expires_at);
        let statement = interrupt_statement(&*self.core.keys()?, &interrupt.id, voter, ballot, expires_at);
        Ok((statement.challenge(), expires_at))
    }

    /// Returns the signed evidence of the votes on an interrupt.
    pub fn evidence_of_interrupt(&self, interrupt: &Interrupt) -> Result<Vec<VoteEvidence<InterruptVoteStatement>>> {
        let keys = self.core.keys()?;
        Ok(interrupt.votes.iter().filter_map(|it| interrupt_evidence_of(keys.issuer(), &interrupt.id, it)).collect())
    }

    /// Returns the signed evidence of the votes on a policy change request.
    pub fn evidence_of_amendment(
        &self,
        amendment: &PolicyChangeRequest,
    ) -> Result<Vec<VoteEvidence<PolicyVoteStatement>>> {
        let keys = self.core.keys()?;
        Ok(amendment.votes.iter().filter_map(|it| policy_evidence_of(keys.issuer(), &amendment.id, it)).collect())
    }

    /// Returns the ballot with its verified proof, and the passkey that it depends on.
    pub(crate) async fn verify_voter_proof(
        &self,
        keys: &Keys,
        subject: BallotSubject<'_>,
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
        subject: BallotSubject<'_>,
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
        let (evidence, counter) = match subject {
            BallotSubject::Review(review) => {
                let statement = statement(keys, review, voter, ballot, until);
                let evidence = VoteEvidence { assertion, statement };
                (evidence.digest(), evidence.check(&stored.record))
            }
            BallotSubject::Amendment(amendment) => {
                let statement = policy_statement(keys, amendment, voter, ballot, until);
                let evidence = VoteEvidence { assertion, statement };
                (evidence.digest(), evidence.check(&stored.record))
            }
            BallotSubject::Interrupt(interrupt) => {
                let statement = interrupt_statement(keys, interrupt, voter, ballot, until);
                let evidence = VoteEvidence { assertion, statement };
                (evidence.digest(), evidence.check(&stored.record))
            }
        };
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
