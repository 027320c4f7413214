//! Holds and the votes on them: who may decide, and when a decision is one.

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
mod tally;
mod typed_confirmation;
mod vote_preview;
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
pub use tally::{HoldTally, VoteContext};
pub use typed_confirmation::{ConfirmationMethod, TYPED_DIGITS};
pub use vote_preview::VotePreview;
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

/// Whose approval one stage asks for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalStage {
    pub groups: BTreeSet<GroupName>,
    /// The number of distinct people.
    pub need: u32,
    /// Whether a vote must say why.
    pub comment_required: bool,
    /// What it asks of a voter's passkey.
    #[serde(default, skip_serializing_if = "PasskeyRequirement::is_nothing")]
    pub passkey: PasskeyRequirement,
    /// How an approval is confirmed.
    #[serde(default, skip_serializing_if = "ConfirmationMethod::is_pressing")]
    pub confirm: ConfirmationMethod,
}

/// The verdict of a vote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = VoteVerdict)]
pub enum VoteVerdict {
    /// It may happen.
    Approve,
    /// It may not.
    Deny,
}

/// What the voter's browser said of its own recomputation: a claim, kept with the vote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BrowserCheck {
    /// Roots and digest came out as shown.
    Match,
    Mismatch,
    #[default]
    NotRecomputed,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vote {
    pub reviewer: AccountId,
    /// Their name when they voted.
    pub name: String,
    /// In whose place, if not in their own.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<DelegatedFrom>,
    /// For which stage, from 0.
    pub stage: u32,
    /// `approve` or `deny`.
    pub verdict: VoteVerdict,
    /// The digest of the decided transition.
    pub transition: Digest,
    /// The page's one-time nonce.
    pub nonce: String,
    pub comment: Option<String>,
    /// What their browser recomputed.
    pub browser_check: BrowserCheck,
    /// What they showed for being there.
    #[serde(default, skip_serializing_if = "VoterProof::is_session")]
    pub proof: VoterProof,
    /// What they typed to confirm it, where their stage asks for that: it names the transition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typed: Option<String>,
    pub at: Timestamp,
    /// Set when the voter took it back: it stays to be read, and does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<Withdrawal>,
}

impl Vote {
    /// Whether it counts: nobody took it back.
    pub const fn stands(&self) -> bool {
        self.withdrawn.is_none()
    }

    /// Whether it takes up a person's place: they cast it, or it was cast for them.
    pub fn takes_up(&self, person: &AccountId) -> bool {
        self.reviewer == *person || self.absent.as_ref().is_some_and(|it| it.person == *person)
    }
}

/// How a hold stands. Ends are facts, and a time-out is never a person's refusal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", deny_unknown_fields)]
pub enum HoldState {
    Open {},
    /// Every stage has its quorum.
    Approved {
        at: Timestamp,
        /// The receipt that came of it.
        receipt: Jti,
        version: u64,
    },
    Denied {
        at: Timestamp,
        denial: String,
    },
    Expired {
        /// When that was noticed; the deadline itself counts.
        at: Timestamp,
    },
    /// Its proposer took it back.
    Cancelled {
        at: Timestamp,
        reason: String,
    },
    /// An edit took its place, or a write was confirmed on the head it stood on, or the thread was closed, or
    /// another policy judges its flow.
    Superseded {
        at: Timestamp,
        /// By which transition, if one.
        by: Option<Digest>,
        /// The policy that was activated meanwhile, if that is why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<Digest>,
    },
}

/// A transition that waits for people.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    pub id: ReviewId,
    pub transition: Digest,
    /// The thread it would advance.
    pub thread: ThreadId,
    pub flow: FlowId,
    /// The policy it was judged by.
    pub policy: Digest,
    /// The node that proposed it.
    pub node: NodeId,
    /// The token that proposed it; of an edit, the one that proposed what was rewritten.
    pub proposer: PrincipalId,
    /// What the host said of the thread.
    pub context: Context,
    pub reasons: Vec<HoldReason>,
    /// Owners and editors who may not decide it.
    pub excluded: BTreeSet<String>,
    /// What an agent asks for with it, by which attempts are counted. A hold that a person opened has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Digest>,
    pub stages: Vec<ApprovalStage>,
    pub denials_needed: u32,
    pub opened_at: Timestamp,
    pub expires_at: Timestamp,
    /// When people are reminded, and when others are asked as well.
    #[serde(default, skip_serializing_if = "HoldReminders::are_none")]
    pub notices: HoldReminders,
    /// The votes, in their order, those that were taken back among them.
    pub votes: Vec<Vote>,
    /// What people said without voting, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<ReviewComment>,
    /// How the deadline was moved, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<Extension>,
    /// Who looked at hidden values, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reveals: Vec<Reveal>,
    /// The state of the delivery.
    pub state: HoldState,
}

/// A reason why a transition is held.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HoldReason {
    /// `protected`, `edit`, `reaffirm`, `rollback`.
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
    /// When it ended; an open one has not.
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
    /// Whether people can still decide it.
    pub fn is_open(&self, now: Timestamp) -> bool {
        matches!(self.state, HoldState::Open {}) && now < self.expires_at
    }

    /// Whether it counts as one of its node's tries on its head: what another policy put an end to does not, nor does
    /// what a person rewrote, since the rewrite counts instead.
    pub const fn counts(&self) -> bool {
        !matches!(self.state, HoldState::Superseded { policy: Some(_), .. } | HoldState::Superseded { by: Some(_), .. })
    }

    /// The effect for which it counts as an attempt that was not approved.
    pub fn attempted(&self) -> Option<Digest> {
        let is_approved = matches!(self.state, HoldState::Approved { .. });
        self.effect.filter(|_| self.counts() && !is_approved)
    }

    /// Who is asked by then, and what they have said so far.
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

    /// Why a person may not decide it, or the places in which they may.
    pub fn places(&self, person: &Account, roll: &VoterRoll) -> Result<Vec<VotingSeat>, Ineligible> {
        self.jury(roll.now).places(person, roll)
    }

    /// Why a person may not rewrite it. Whoever is asked may, having voted or not; and whoever made the rewrite that is
    /// held may do it better. Nobody rewrites in another's place.
    pub fn may_rewrite(&self, person: &Account, editor: Option<&AccountId>, now: Timestamp) -> Result<(), Ineligible> {
        let jury = self.jury(now);
        match jury.free(person) {
            Err(Ineligible::Author) if editor == Some(&person.id) => {}
            free => free?,
        }
        jury.eligible_stages(person).map(drop)
    }

    /// What a stage asks of a voter's passkey; of one that is not there, the most.
    pub fn passkey_need(&self, stage: u32) -> PasskeyRequirement {
        let stage = usize::try_from(stage).ok().and_then(|it| self.stages.get(it));
        stage.map_or(PasskeyRequirement::Signature {}, |it| it.passkey)
    }

    /// How many votes a stage has of those it needs, counting people as they stand now.
    pub fn approvals(&self, stage: u32, roll: &VoterRoll) -> u32 {
        self.jury(roll.now).approvals(stage, roll)
    }

    /// Whether a vote could be cast now as it was.
    pub fn may_still(&self, vote: &Vote, roll: &VoterRoll) -> bool {
        self.jury(roll.now).may_still(vote, roll)
    }

    /// The hold with its end. Only an open one can end, so an end is never overwritten.
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

/// Whether a person owns, alone or as a team, an agent that had a hand in it.
fn is_author(excluded: &BTreeSet<String>, person: &Account) -> bool {
    excluded.iter().any(|owner| person.answers_for(owner))
}
