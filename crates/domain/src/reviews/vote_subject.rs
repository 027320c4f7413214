//! The records that reviewers decide by votes: reviews, policy change requests and interrupts.

use super::{Hold, Quorum};
use crate::chain::signed_vote::{Signable, VoteStatement};
use crate::primitives::id::ReviewId;
use crate::primitives::time::Timestamp;

/// A record that reviewers decide by votes.
pub trait VoteSubject {
    /// The statement that a passkey signs for a vote.
    type Statement: Signable;

    /// Whether a delegate may vote on it for an absent reviewer.
    const DELEGABLE: bool = false;

    /// Returns the id that a signed vote names.
    fn subject_id(&self) -> &<Self::Statement as Signable>::Subject;

    /// Returns the quorum at a time: the eligible voters and their votes.
    fn quorum(&self, now: Timestamp) -> Quorum<'_>;
}

impl VoteSubject for Hold {
    type Statement = VoteStatement;

    const DELEGABLE: bool = true;

    fn subject_id(&self) -> &ReviewId {
        &self.id
    }

    fn quorum(&self, now: Timestamp) -> Quorum<'_> {
        self.jury(now)
    }
}
