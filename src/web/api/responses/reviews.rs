//! What people are asked, as it is told.

use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::chain::hash::Digest;
use crate::domain::primitives::id::{AccountId, AmendmentId, FlowId, GroupName, InterruptId, PrincipalId, ReviewId};
use crate::domain::primitives::time::Timestamp;
use crate::domain::reviews::Verdict;

/// A review's name and address.
#[derive(Debug, ToSchema)]
pub struct ReviewLink {
    /// Its name.
    pub id: ReviewId,
    /// Where people decide.
    #[schema(format = "uri")]
    pub url: String,
}

/// A review as machines are told it.
#[derive(Debug, ToSchema)]
pub struct ReviewTold {
    /// Its name.
    pub id: ReviewId,
    /// Where people decide.
    #[schema(format = "uri")]
    pub url: String,
    /// Its deadline.
    pub expires_at: Timestamp,
    /// Who moved the deadline last.
    #[schema(nullable = false)]
    pub extended: Option<Extended>,
    /// Who is asked, stage by stage.
    pub needed: Vec<StageNeeded>,
    /// Who else is asked by now.
    #[schema(nullable = false)]
    pub escalated: Option<Escalated>,
    /// Always false: no token decides.
    pub can_decide: bool,
    /// Why.
    pub why_not: WhyNot,
    /// Who could decide; to auditors.
    #[schema(nullable = false)]
    pub people: Option<Vec<PersonTold>>,
}

/// A stage of an approval.
#[derive(Debug, ToSchema)]
pub struct StageNeeded {
    /// Whose members are asked.
    pub groups: Vec<GroupName>,
    /// How many distinct people.
    pub need: u32,
}

/// A deadline that was moved.
#[derive(Debug, ToSchema)]
pub struct Extended {
    /// By whom.
    pub by: AccountId,
    /// When.
    pub at: Timestamp,
    /// What it was before.
    pub was: Timestamp,
}

/// Others who are asked as well.
#[derive(Debug, ToSchema)]
pub struct Escalated {
    /// Since when.
    pub at: Timestamp,
    /// Whose members.
    pub to: Vec<GroupName>,
}

/// Why somebody cannot decide.
#[derive(Debug, ToSchema)]
pub struct WhyNot {
    /// `machine`, `ended`, `author`, `disabled`, `group`, `halted`, `role`, `voted` or `write_in_progress`.
    pub code: String,
    /// In words.
    pub detail: String,
}

/// Somebody who is asked.
#[derive(Debug, ToSchema)]
pub struct PersonTold {
    /// Who.
    pub reviewer: AccountId,
    /// What people call them.
    pub name: String,
    /// Whether they can decide now.
    pub can_decide: bool,
    /// Which stages.
    #[schema(nullable = false)]
    pub stages: Option<Vec<u32>>,
    /// In whose place.
    #[schema(rename = "for", nullable = false)]
    pub absent: Option<Vec<InPlaceOf>>,
    /// Why not.
    #[schema(nullable = false)]
    pub why_not: Option<WhyNot>,
}

/// In whose place somebody votes.
#[derive(Debug, ToSchema)]
pub struct InPlaceOf {
    /// Whose.
    pub reviewer: AccountId,
    /// What people call them.
    pub name: String,
    /// In which stage.
    pub stage: u32,
}

/// A policy that people are asked about.
#[derive(Debug, ToSchema)]
pub struct AmendmentTold {
    /// Its name.
    pub amendment: AmendmentId,
    /// `open`, `approved`, `denied`, `expired`, `cancelled` or `superseded`.
    pub state: String,
    /// What people vote on.
    pub digest: Digest,
    /// Whose policy.
    pub flow: FlowId,
    /// The policy.
    pub policy: Digest,
    /// Older policies whose heads may still be written.
    pub accepts: Vec<Digest>,
    /// The policy that judges until then.
    pub over: Digest,
    /// Who asked.
    pub proposer: PrincipalId,
    /// When.
    pub proposed_at: Timestamp,
    /// Its deadline.
    pub expires_at: Timestamp,
    /// Where people decide.
    #[schema(format = "uri")]
    pub url: String,
    /// Who is asked.
    pub needed: Vec<StageNeeded>,
    /// Who voted.
    pub votes: Vec<VoteTold>,
    /// What passkeys signed of the votes.
    #[schema(nullable = false)]
    pub evidence: Option<Vec<Value>>,
}

/// A vote.
#[derive(Debug, ToSchema)]
pub struct VoteTold {
    /// Whose.
    pub reviewer: AccountId,
    /// What people call them.
    pub name: String,
    /// What they said.
    pub verdict: Verdict,
    /// In their words.
    #[schema(required)]
    pub comment: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// Every amendment of a flow.
#[derive(Debug, ToSchema)]
pub struct AmendmentList {
    /// The latest first.
    pub amendments: Vec<AmendmentTold>,
}

/// An interrupt that people are asked about, or were: the same bytes each time.
#[derive(Debug, ToSchema)]
pub struct InterruptTaken {
    /// Its name here.
    pub id: InterruptId,
    /// What the host's framework calls it.
    pub interrupt_id: String,
    /// The host's own digest of the step.
    pub transition_digest: String,
    /// Which try.
    pub attempt: u32,
    /// What people vote on.
    pub digest: Digest,
    /// Where people decide.
    #[schema(format = "uri")]
    pub url: String,
    /// Its deadline.
    pub expires_at: Timestamp,
    /// Who is asked.
    pub needed: Vec<StageNeeded>,
}

/// People are still asked.
#[derive(Debug, ToSchema)]
pub struct StillOpen {
    /// `open`.
    #[schema(pattern = "^open$")]
    pub status: String,
}
