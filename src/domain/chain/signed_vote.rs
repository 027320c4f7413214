//! What a passkey signs of a vote, and what is kept of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::hash::{Digest, Tag};
use crate::domain::id::{AccountId, AmendmentId, InterruptId, ReviewId};
use crate::domain::json::canonical::canonical;
use crate::domain::passkey::{Assertion, Passkey, Refused};
use crate::domain::review::Verdict;
use crate::domain::time::Timestamp;

/// How long a signature over a vote may be used. It is made after the change was read, so that this is what "a passkey
/// not older than five minutes" comes to.
pub const SIGNATURE_TTL: Duration = Duration::from_secs(300);

/// What is signed: this person says this, of exactly this, on this page, until then.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are the protocol's own words, explained in docs/protocol.md")]
pub struct VoteStatement {
    pub comment: Option<Digest>,
    pub expires_at: Timestamp,
    pub iss: String,
    pub nonce: String,
    pub review: ReviewId,
    pub reviewer: AccountId,
    pub stage: u32,
    pub transition: Digest,
    pub verdict: Verdict,
}

/// The same of a vote on a policy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are the protocol's own words, explained in docs/protocol.md")]
pub struct PolicyVoteStatement {
    pub amendment: AmendmentId,
    pub comment: Option<Digest>,
    pub digest: Digest,
    pub expires_at: Timestamp,
    pub iss: String,
    pub nonce: String,
    pub reviewer: AccountId,
    pub stage: u32,
    pub verdict: Verdict,
}

/// The same of a vote on an interrupt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are the protocol's own words, explained in docs/protocol.md")]
pub struct InterruptVoteStatement {
    pub comment: Option<Digest>,
    pub digest: Digest,
    pub expires_at: Timestamp,
    pub interrupt: InterruptId,
    pub iss: String,
    pub nonce: String,
    pub reviewer: AccountId,
    pub stage: u32,
    pub verdict: Verdict,
}

/// A statement that a passkey signs. Each kind has a tag of its own, so that what was signed as one is never another.
pub trait Signable: Serialize {
    /// What the challenge is a hash of.
    const TAG: Tag;

    /// The reviewer who signs.
    fn reviewer(&self) -> &AccountId;

    /// What the passkey is asked to sign.
    fn challenge(&self) -> Digest {
        Digest::of(Self::TAG, &[canonical_text(self).as_bytes()])
    }
}

impl Signable for VoteStatement {
    const TAG: Tag = Tag::Vote;

    fn reviewer(&self) -> &AccountId {
        &self.reviewer
    }
}

impl Signable for PolicyVoteStatement {
    const TAG: Tag = Tag::PolicyVote;

    fn reviewer(&self) -> &AccountId {
        &self.reviewer
    }
}

impl Signable for InterruptVoteStatement {
    const TAG: Tag = Tag::InterruptVote;

    fn reviewer(&self) -> &AccountId {
        &self.reviewer
    }
}

/// The hash of a comment, as a statement carries it.
pub fn comment_hash(comment: Option<&str>) -> Option<Digest> {
    comment.map(|it| Digest::of(Tag::Comment, &[it.as_bytes()]))
}

/// A statement with the signature over it: what a receipt names by its digest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are the protocol's own words, explained in docs/protocol.md")]
pub struct Evidence<S = VoteStatement> {
    pub assertion: Assertion,
    pub statement: S,
}

impl<S: Signable> Evidence<S> {
    /// What an approval names it by.
    pub fn digest(&self) -> Digest {
        Digest::of(Tag::Evidence, &[canonical_text(self).as_bytes()])
    }

    /// The authenticator's counter after it, if this passkey of the reviewer's signed this very statement.
    pub fn check(&self, passkey: &Passkey) -> Result<u32, Refused> {
        if passkey.account != *self.statement.reviewer() {
            return Err(Refused::NotTheirs);
        }
        self.assertion.check(passkey, self.statement.challenge().bytes())
    }
}

fn canonical_text(value: &(impl Serialize + ?Sized)) -> String {
    canonical(&serde_json::to_value(value).expect("a plain struct with text keys"))
}
