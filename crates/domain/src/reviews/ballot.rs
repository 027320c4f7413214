//! Ballots, and the reasons for which a vote is rejected.

use super::{BrowserCheck, NotBulkDecidable, VotePreview, VoteVerdict, VoterProof};
use crate::chain::hash::Digest;
use crate::identity::passkey;
use crate::primitives::id::DelegationId;

/// A submitted vote, before it is checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ballot {
    pub transition: Digest,
    pub stage: u32,
    /// The delegation, if the voter acts on behalf of another reviewer.
    pub delegation: Option<DelegationId>,
    pub verdict: VoteVerdict,
    /// The page's nonce. The caller has verified that this gateway issued it.
    pub nonce: String,
    pub comment: Option<String>,
    /// The result of the digest check in the voter's browser.
    pub browser_check: BrowserCheck,
    /// The proof of the voter's presence. The caller verifies it before the vote is counted.
    pub proof: VoterProof,
    /// The text that the voter typed to confirm.
    pub typed: Option<String>,
    /// Whether the voter accepted that a write's outcome is unknown.
    pub outcome_unknown_accepted: CheckboxState,
    /// The result that the page showed to the voter, if it showed one.
    pub told: Option<VotePreview>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckboxState {
    Yes,
    No,
}

/// The reason why an account cannot decide a review.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Ineligible {
    #[error("only accounts with the role reviewer can decide")]
    Role,
    /// The account was disabled.
    #[error("the account is disabled")]
    Disabled,
    /// An agent of theirs proposed it, or they edited it.
    #[error(
        "your agent proposed this change, or you edited it, since the last confirmed write: another reviewer must decide"
    )]
    Author,
    #[error("you are not in a group that can decide this review")]
    Group,
    #[error("you have already voted, or your delegate voted for you")]
    Voted,
}

impl Ineligible {
    pub const fn code(self) -> &'static str {
        match self {
            Self::Role => "role",
            Self::Disabled => "disabled",
            Self::Author => "author",
            Self::Group => "group",
            Self::Voted => "voted",
        }
    }
}

/// The reason why an account cannot decide a review now: its own state, or the account.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CannotDecide {
    #[error("this review is over")]
    Ended,
    /// An administrator halted the flow or the gateway.
    #[error("an administrator halted this flow; decide again after it is resumed")]
    Halted,
    /// A writer is authorized and has not reported the outcome.
    #[error("a writer is authorized and has not reported the outcome yet; try again in a moment")]
    Writing,
    #[error("{0}")]
    Ineligible(#[from] Ineligible),
}

impl CannotDecide {
    pub const fn code(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Halted => "halted",
            Self::Writing => "write_in_progress",
            Self::Ineligible(reason) => reason.code(),
        }
    }
}

/// The reason why a vote is rejected.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VoteRejected {
    #[error("this review has ended")]
    Ended,
    #[error("the deadline has passed")]
    Expired,
    #[error("this digest is not the digest of the review; open the review again")]
    Digest,
    #[error("{0}")]
    Ineligible(#[from] Ineligible),
    /// The stage does not exist, or the voter is in none of its groups.
    #[error("you cannot decide this stage")]
    Stage,
    /// The absent reviewer has no active delegation to the voter, or cannot decide the stage.
    #[error("no active delegation allows you to vote here for another reviewer")]
    Delegation,
    /// The policy requires a comment.
    #[error("this stage requires a comment")]
    CommentRequired,
    #[error("a comment has at most {COMMENT_CHARS_MAX} characters")]
    CommentTooLong,
    #[error("this page was used before; open the review again")]
    NonceUsed,
    /// The page does not match the digest in the voter's browser.
    #[error("the page does not match the digest in your browser; do not approve, and report this to an administrator")]
    Mismatch,
    /// The flow has a new active policy, and the review changed with it.
    #[error("the flow's policy and the review have changed; open the review again")]
    PolicyChanged,
    #[error("this stage requires a vote that is signed with a passkey")]
    PasskeyRequired,
    /// The stage requires a passkey that was used recently.
    #[error("this stage requires a passkey that was used more recently; use your passkey again")]
    PasskeyStale,
    /// The signature is too late, or its validity is too long.
    #[error("the signature came too late; open the review again")]
    SignatureExpired,
    /// The passkey's signature is invalid.
    #[error("{0}")]
    Passkey(#[from] passkey::AssertionRejected),
    /// A write's outcome is unknown, and the voter did not accept that.
    #[error("an earlier write's outcome is unknown; tick the box to approve")]
    OutcomeUnknown,
    /// The stage requires a typed confirmation.
    #[error("this stage requires the last digits of the digest; type them to approve")]
    NotTyped,
    /// The result would differ from the result that the page showed.
    #[error(
        "other reviewers voted since you opened the page, and your vote would have another result; open the review again"
    )]
    MovedOn,
    /// The review cannot be part of a bulk decision.
    #[error("this review cannot be part of a bulk decision: {0}")]
    Alone(#[from] NotBulkDecidable),
    /// The vote does not exist, belongs to another reviewer, or is withdrawn already.
    #[error("you have no such vote, or it is withdrawn already")]
    NothingToWithdraw,
    /// The voter reached the limit of withdrawals.
    #[error("you have reached the limit of withdrawn votes for this review")]
    WithdrawnTooOften,
}

/// The length limit of a comment, for a paragraph rather than a document.
pub const COMMENT_CHARS_MAX: usize = 4_000;
