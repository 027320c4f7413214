//! Reviews of held transitions: eligible voters, votes, and decisions.

mod ballot;
mod bulk;
pub mod change_fingerprint;
mod comment;
pub mod edit;
mod extension;
mod quorum;
mod quorum_feasible;
mod reason_text;
mod reminders;
mod reveal;
mod search_labels;
mod stage_shortage;
mod stages_of_policy;
mod tally;
mod typed_confirmation;
mod vote_preview;
mod vote_subject;
mod voter_proof;
mod voter_roll;
mod withdrawal;

pub use ballot::{Ballot, COMMENT_CHARS_MAX, CannotDecide, CheckboxState, Ineligible, VoteRejected};
pub use bulk::{BulkGroupKey, CHANGES_AMONG_SEVERAL_MAX, NotBulkDecidable, SEVERAL_MAX};
pub use comment::{COMMENTS_MAX, COMMENTS_OF_ONE_MAX, CommentRejected, ReviewComment};
pub use extension::{EXTENSION_REASON_CHARS_MAX, EXTENSIONS_MAX, Extension, ExtensionRejected, ExtensionRequest};
pub use quorum::{Quorum, QuorumResult};
pub use quorum_feasible::can_be_approved;
pub use reminders::{DueReminder, Escalation, HoldReminders, Reminder};
pub use reveal::{REVEAL_REASON_CHARS_MAX, REVEALS_MAX, Reveal, RevealRejected, groups_to_reveal_to};
pub use search_labels::{HoldOutcome, HoldPhase, SearchKey, SearchWord};
pub use stage_shortage::{StageExclusion, StageMember, StageShortage, shortages};
pub use stages_of_policy::{stage_of, stages_of};
pub use tally::{Tally, VoteContext};
pub use typed_confirmation::{ConfirmationMethod, TYPED_DIGITS};
pub use vote_preview::VotePreview;
pub use vote_subject::VoteSubject;
pub use voter_proof::{PasskeyRequirement, VoterProof};
pub use voter_roll::{DelegatedFrom, VoterRoll, VotingSeat};
pub use withdrawal::{WITHDRAWALS_MAX, Withdrawal, WithdrawalRequest};

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::chain::hash::Digest;
use super::identity::account::Account;
use super::primitives::id::{AccountId, FlowId, GroupName, Jti, NodeId, PrincipalId, ReviewId, ThreadId};
use super::primitives::time::Timestamp;
use super::threads::thread::Context;

/// One stage of approval.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalStage {
    pub groups: BTreeSet<GroupName>,
    /// The number of distinct people who must approve.
    pub need: u32,
    /// Whether a vote needs a comment.
    pub comment_required: bool,
    /// The passkey that a vote needs.
    #[serde(default, skip_serializing_if = "PasskeyRequirement::is_nothing")]
    pub passkey: PasskeyRequirement,
    /// How an approval is confirmed.
    #[serde(default, skip_serializing_if = "ConfirmationMethod::is_pressing")]
    pub confirm: ConfirmationMethod,
}

/// The verdict of a vote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", schema(as = VoteVerdict))]
pub enum VoteVerdict {
    /// The change may be committed.
    Approve,
    /// The change must not be committed.
    Deny,
}

/// The result of the digest check in the voter's browser. It is an unverified claim, stored with the vote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BrowserCheck {
    /// The roots and the digest match the page.
    Match,
    Mismatch,
    #[default]
    NotRecomputed,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vote {
    pub reviewer: AccountId,
    /// The reviewer's name at the time of the vote.
    pub name: String,
    /// The reviewer on whose behalf the vote was cast, by a delegation.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<DelegatedFrom>,
    /// The stage, from 0.
    pub stage: u32,
    /// `approve` or `deny`.
    pub verdict: VoteVerdict,
    /// The digest of the decided transition.
    pub transition: Digest,
    /// The page's one-time nonce.
    pub nonce: String,
    pub comment: Option<String>,
    /// The result of the digest check in the voter's browser.
    pub browser_check: BrowserCheck,
    /// The proof of the voter's presence.
    #[serde(default, skip_serializing_if = "VoterProof::is_session")]
    pub proof: VoterProof,
    /// The typed confirmation, if the stage requires it. It identifies the transition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typed: Option<String>,
    pub at: Timestamp,
    /// Set if the vote is withdrawn. A withdrawn vote stays visible and is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<Withdrawal>,
}

impl Vote {
    /// Checks that the vote is not withdrawn.
    pub const fn stands(&self) -> bool {
        self.withdrawn.is_none()
    }

    /// Checks that the vote uses a person's seat: they cast it, or it was cast on their behalf.
    pub fn takes_up(&self, person: &AccountId) -> bool {
        self.reviewer == *person || self.absent.as_ref().is_some_and(|it| it.person == *person)
    }
}

/// The state of a review. An expired review is not a denial by a person.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
pub enum HoldState {
    Open {},
    /// Every stage has its quorum.
    Approved {
        at: Timestamp,
        /// The receipt of the approval.
        receipt: Jti,
        version: u64,
    },
    Denied {
        at: Timestamp,
        denial: String,
    },
    Expired {
        /// The time at which the gateway noticed. The deadline itself decides.
        at: Timestamp,
    },
    /// The proposer cancelled it.
    Cancelled {
        at: Timestamp,
        reason: String,
    },
    /// An edit replaced it, a write was confirmed on its head, the thread was closed, or the flow has a new active
    /// policy.
    Superseded {
        at: Timestamp,
        /// The transition that replaced it, if any.
        by: Option<Digest>,
        /// The newly activated policy, if that is the cause.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<Digest>,
    },
}

/// A transition that is held for approval.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    pub id: ReviewId,
    pub transition: Digest,
    pub thread: ThreadId,
    pub flow: FlowId,
    /// The policy that evaluated it.
    pub policy: Digest,
    /// The proposing node.
    pub node: NodeId,
    /// The token that proposed it. For an edit, the token of the original proposal.
    pub proposer: PrincipalId,
    /// The host application's description of the thread. It is an unverified claim.
    pub context: Context,
    pub reasons: Vec<HoldReason>,
    /// Owners and editors. They may not decide it (separation of duties).
    pub excluded: BTreeSet<String>,
    /// The fingerprint of the requested effect, by which attempts are counted. `None` if a person opened the review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Digest>,
    pub stages: Vec<ApprovalStage>,
    pub denials_needed: u32,
    pub opened_at: Timestamp,
    pub expires_at: Timestamp,
    /// The times of the reminder and of the escalation.
    #[serde(default, skip_serializing_if = "HoldReminders::are_none")]
    pub notices: HoldReminders,
    /// The votes in order, with withdrawn votes.
    pub votes: Vec<Vote>,
    /// The comments in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<ReviewComment>,
    /// The extensions in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<Extension>,
    /// The reveals of redacted values, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reveals: Vec<Reveal>,
    /// The state of the delivery.
    pub state: HoldState,
}

/// A reason why a transition is held.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct HoldReason {
    /// The code, such as `protected`, `edit`, `reaffirm` or `rollback`.
    pub code: String,
    /// The protected pattern that is touched, as the policy writes it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pointer: Option<String>,
    /// The description, in words.
    pub text: String,
    /// Whether the reason would reveal to the proposer that an unreadable value differs.
    #[serde(default)]
    pub for_reviewers_only: bool,
}

impl HoldState {
    /// Returns the time of the end, or `None` if it is open.
    pub const fn ended_at(&self) -> Option<Timestamp> {
        match self {
            Self::Open {} => None,
            Self::Approved { at, .. }
            | Self::Denied { at, .. }
            | Self::Expired { at }
            | Self::Cancelled { at, .. }
            | Self::Superseded { at, .. } => Some(*at),
        }
    }
}

impl Hold {
    /// Checks that reviewers can still decide it.
    pub fn is_open(&self, now: Timestamp) -> bool {
        matches!(self.state, HoldState::Open {}) && now < self.expires_at
    }

    /// Checks that the review counts as an attempt of its node on its head. A review that a new policy ended is not
    /// counted. If an edit replaced a review, the edit is counted instead.
    pub const fn counts(&self) -> bool {
        !matches!(self.state, HoldState::Superseded { policy: Some(_), .. } | HoldState::Superseded { by: Some(_), .. })
    }

    /// Returns the effect for which this review counts as an attempt that was not approved.
    pub fn attempted(&self) -> Option<Digest> {
        let is_approved = matches!(self.state, HoldState::Approved { .. });
        // An approved request is allowed to be repeated.
        self.effect.filter(|_| self.counts() && !is_approved)
    }

    /// Returns the quorum at a time: the eligible voters and their votes.
    pub fn jury(&self, now: Timestamp) -> Quorum<'_> {
        Quorum {
            digest: self.transition,
            stages: &self.stages,
            also_asked: self.escalation_groups(now),
            excluded: &self.excluded,
            denials_needed: self.denials_needed,
            expires_at: self.expires_at,
            votes: &self.votes,
        }
    }

    pub fn counted_votes(&self) -> impl DoubleEndedIterator<Item = &Vote> + Clone {
        self.votes.iter().filter(|it| it.stands())
    }

    /// Returns the seats in which a person may vote, or the reason why there is none.
    pub fn places(&self, person: &Account, roll: &VoterRoll) -> Result<Vec<VotingSeat>, Ineligible> {
        self.jury(roll.now).places(person, roll)
    }

    /// Checks that a person may edit it. Everyone who can decide it may, before and after their vote. The editor of a
    /// held edit may edit it again. A delegation does not allow edits.
    pub fn may_rewrite(&self, person: &Account, editor: Option<&AccountId>, now: Timestamp) -> Result<(), Ineligible> {
        let jury = self.jury(now);
        match jury.free(person) {
            Err(Ineligible::Author) if editor == Some(&person.id) => {}
            // Other reasons, such as a disabled account, exclude editors too.
            free => free?,
        }
        jury.eligible_stages(person).map(drop)
    }

    /// Returns the number of approvals of a stage, by the voters' current accounts.
    pub fn approvals(&self, stage: u32, roll: &VoterRoll) -> u32 {
        self.jury(roll.now).approvals(stage, roll)
    }

    /// Checks that the voter could cast the same vote now.
    pub fn may_still(&self, vote: &Vote, roll: &VoterRoll) -> bool {
        self.jury(roll.now).may_still(vote, roll)
    }

    /// Returns the ended review. Only an open review can end, so an end is never overwritten.
    pub fn ended(mut self, end: HoldState) -> Result<Self, VoteRejected> {
        match self.state {
            HoldState::Open {} => {
                self.state = end;
                Ok(self)
            }
            _ => Err(VoteRejected::Ended),
        }
    }
}

/// Checks that a person, alone or as a team, owns an agent that is an author of it.
fn is_author(excluded: &BTreeSet<String>, person: &Account) -> bool {
    // An owner may be a group, so each owner is compared with the person's groups too.
    excluded.iter().any(|owner| person.answers_for(owner))
}
