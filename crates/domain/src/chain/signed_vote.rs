//! Statements that a passkey signs for a vote, and the stored evidence.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::hash::{Digest, Tag};
use crate::identity::passkey::{Assertion, AssertionRejected, Passkey};
use crate::json::canonical::canonical;
use crate::primitives::id::{AccountId, AmendmentId, InterruptId, ReviewId};
use crate::primitives::time::Timestamp;
use crate::reviews::VoteVerdict;

/// How long a signature over a vote is valid. The reviewer signs after reading the change, so this implements "a
/// passkey not older than five minutes".
pub const SIGNATURE_TTL: Duration = Duration::from_secs(300);

/// Statement of a vote on a review: reviewer, verdict, transition, page nonce and expiry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct VoteStatement {
    pub comment: Option<Digest>,
    pub expires_at: Timestamp,
    pub iss: String,
    pub nonce: String,
    pub review: ReviewId,
    pub reviewer: AccountId,
    pub stage: u32,
    pub transition: Digest,
    pub verdict: VoteVerdict,
}

/// Statement of a vote on a policy change request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PolicyVoteStatement {
    pub amendment: AmendmentId,
    pub comment: Option<Digest>,
    pub digest: Digest,
    pub expires_at: Timestamp,
    pub iss: String,
    pub nonce: String,
    pub reviewer: AccountId,
    pub stage: u32,
    pub verdict: VoteVerdict,
}

/// Statement of a vote on an interrupt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct InterruptVoteStatement {
    pub comment: Option<Digest>,
    pub digest: Digest,
    pub expires_at: Timestamp,
    pub interrupt: InterruptId,
    pub iss: String,
    pub nonce: String,
    pub reviewer: AccountId,
    pub stage: u32,
    pub verdict: VoteVerdict,
}

/// The members that the statements of all votes share.
#[derive(Clone, Debug)]
pub struct SignedVote {
    pub comment: Option<Digest>,
    /// The digest that the vote is about.
    pub digest: Digest,
    pub expires_at: Timestamp,
    pub iss: String,
    pub nonce: String,
    pub reviewer: AccountId,
    pub stage: u32,
    pub verdict: VoteVerdict,
}

/// A statement that a passkey signs. Each kind has its own tag, so a signature over one is never valid for another.
pub trait Signable: Serialize {
    const TAG: Tag;

    /// The id of the record that the vote is about.
    type Subject: Clone;

    fn new(subject: Self::Subject, vote: SignedVote) -> Self;

    fn reviewer(&self) -> &AccountId;

    /// Returns the challenge for the passkey.
    fn challenge(&self) -> Digest {
        Digest::of(Self::TAG, &[canonical_text(self).as_bytes()])
    }
}

macro_rules! signable {
    ($statement:ident, $tag:ident, $subject:ident: $id:ident, $digest:ident) => {
        impl Signable for $statement {
            const TAG: Tag = Tag::$tag;

            type Subject = $id;

            fn new($subject: $id, vote: SignedVote) -> Self {
                let SignedVote { comment, digest, expires_at, iss, nonce, reviewer, stage, verdict } = vote;
                Self { $subject, $digest: digest, comment, expires_at, iss, nonce, reviewer, stage, verdict }
            }

            fn reviewer(&self) -> &AccountId {
                &self.reviewer
            }
        }
    };
}

signable!(VoteStatement, Vote, review: ReviewId, transition);
signable!(PolicyVoteStatement, PolicyVote, amendment: AmendmentId, digest);
signable!(InterruptVoteStatement, InterruptVote, interrupt: InterruptId, digest);

/// Returns the hash of a comment, as a statement contains it.
pub fn comment_hash(comment: Option<&str>) -> Option<Digest> {
    // The statement contains only the digest, so it reveals no comment.
    comment.map(|it| Digest::of(Tag::Comment, &[it.as_bytes()]))
}

/// A statement with the signature over it. A receipt names it by its digest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct VoteEvidence<S = VoteStatement> {
    pub assertion: Assertion,
    pub statement: S,
}

impl<S: Signable> VoteEvidence<S> {
    /// Returns the digest that an approval names.
    pub fn digest(&self) -> Digest {
        Digest::of(Tag::Evidence, &[canonical_text(self).as_bytes()])
    }

    /// Returns the authenticator's new counter if this passkey of the reviewer signed this statement.
    pub fn check(&self, passkey: &Passkey) -> Result<u32, AssertionRejected> {
        // Otherwise a reviewer could sign a vote in the name of another one.
        if passkey.account != *self.statement.reviewer() {
            return Err(AssertionRejected::NotTheirs);
        }
        self.assertion.check(passkey, self.statement.challenge().bytes())
    }
}

fn canonical_text(value: &(impl Serialize + ?Sized)) -> String {
    canonical(&serde_json::to_value(value).expect("a plain struct with text keys"))
}
