//! A ballot: what a person asks to have counted, and why it may not be.

use super::{BrowserCheck, NotBulkDecidable, VotePreview, VoteVerdict, VoterProof};
use crate::domain::chain::hash::Digest;
use crate::domain::identity::passkey;
use crate::domain::primitives::id::DelegationId;

/// What a person asks to have counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ballot {
    pub transition: Digest,
    pub stage: u32,
    /// By which delegation they vote in another's place, if not in their own.
    pub delegation: Option<DelegationId>,
    pub verdict: VoteVerdict,
    /// The page's nonce, already found to be ours.
    pub nonce: String,
    pub comment: Option<String>,
    /// What their browser recomputed.
    pub browser_check: BrowserCheck,
    /// What they show for being there. Whoever counts the vote makes sure of it first.
    pub proof: VoterProof,
    /// What they typed to confirm it.
    pub typed: Option<String>,
    /// Whether they ticked that a write's outcome is unknown.
    pub outcome_unknown_accepted: CheckboxState,
    /// What they were told that it comes to, if they were.
    pub told: Option<VotePreview>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckboxState {
    Yes,
    No,
}

/// Why a person cannot decide a hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Ineligible {
    #[error("only accounts with the role reviewer decide")]
    Role,
    /// The account was disabled.
    #[error("the account is disabled")]
    Disabled,
    /// Their agent proposed it, or they edited it.
    #[error("proposed by your own agent, or edited by you, since the last confirmed write")]
    Author,
    #[error("not in a group that this review asks")]
    Group,
    #[error("you have already voted, or somebody did in your place")]
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

/// Why a review cannot be decided by somebody now: for what it is, or for who they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CannotDecide {
    #[error("this review is over")]
    Ended,
    /// An administrator stopped the flow, or everything.
    #[error("an administrator has stopped this flow; nothing is decided until it goes on")]
    Halted,
    /// A writer was let through and has not said how it went.
    #[error("a writer was let through a moment ago and has not said how it went")]
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

/// Why a vote is not counted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VoteRejected {
    #[error("this review has ended")]
    Ended,
    #[error("the deadline has passed")]
    Expired,
    /// The digest is not the one held.
    #[error("the digest is not the one that is held")]
    Digest,
    /// The person may not decide it.
    #[error("{0}")]
    Ineligible(#[from] Ineligible),
    /// There is no such stage, or the person is not in its groups.
    #[error("not a stage that you can decide")]
    Stage,
    /// Whoever is away has not named them, or not any more, or could not vote here either.
    #[error("nobody who could vote here has named you to vote in their place, or not any more")]
    Delegation,
    /// The policy asks for a reason.
    #[error("this stage asks for a comment")]
    CommentRequired,
    #[error("a comment has at most {COMMENT_CHARS_MAX} characters")]
    CommentTooLong,
    /// The page was used before.
    #[error("this page was used before; open the review again")]
    NonceUsed,
    /// The browser found that the page does not come out as the digest.
    #[error("the browser found that the page and the digest do not agree")]
    Mismatch,
    /// Another policy judges the flow by now, and it did not keep the review as it was.
    #[error("the flow's policy has changed, and the review with it; look again")]
    PolicyChanged,
    /// The stage asks for a vote that a passkey signs.
    #[error("this stage asks for a vote that is signed by a passkey")]
    PasskeyRequired,
    /// The stage asks for a passkey that was used a moment ago.
    #[error("this stage asks for a passkey that was used more recently")]
    PasskeyStale,
    /// The signature took too long, or says that it may be used for too long.
    #[error("the signature was not made in time; open the review again")]
    SignatureExpired,
    /// The passkey's signature does not count.
    #[error("{0}")]
    Passkey(#[from] passkey::AssertionRejected),
    /// A write's outcome is unknown and the box was not ticked.
    #[error("an earlier write's outcome is unknown; approving needs the box ticked")]
    OutcomeUnknown,
    /// The stage asks for something to be typed, and it was not.
    #[error("this stage asks for the last digits of the digest to be typed")]
    NotTyped,
    /// It would come to something else than the voter was told.
    #[error("others have voted since, and something else would follow; look again")]
    MovedOn,
    /// It was to be decided among several, and is decided by itself.
    #[error("it is decided by itself: {0}")]
    Alone(#[from] NotBulkDecidable),
    /// The vote to be taken back is not there, not theirs, or was taken back before.
    #[error("there is no such vote of yours that counts")]
    NothingToWithdraw,
    /// They changed their mind too often.
    #[error("you have taken votes back here as often as may be")]
    WithdrawnTooOften,
}

/// A comment is a paragraph, not a document.
pub const COMMENT_CHARS_MAX: usize = 4_000;
