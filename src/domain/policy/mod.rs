//! The policy text → `Policy`; judging, views, redaction.
//!
//! Two promises hold this together. *Write lists judge the effect*: whatever a patch says, what differs afterwards
//! must be in the node's `writes`. *Reads bound what can be learned*: two states that look alike to a node are
//! judged alike, and told alike.

mod bounds;
mod budget;
mod budget_check;
mod compile;
mod context_rules;
mod effect;
mod effort;
mod error;
mod held_paths;
mod hypothetical_context;
mod initial_state;
mod join_rules;
mod judge;
mod judgement;
mod model;
mod patch_footprint;
mod pattern_set;
mod policy_source;
mod redaction;
mod replay_comparison;
mod request;
mod rules;
mod same_approval_terms;
mod state_shape;
mod test_cases;
mod toml_reader;
mod tool_check;
mod tool_globs;
mod transition_check;
mod view;
mod violation;
mod visibility;
mod what_if;

pub use crate::domain::json::size::StateLimits;
pub use effort::{Effort, parts};
pub use error::{PolicyCode, PolicyError};
pub use hypothetical_context::{Around, SupposedPrincipal};
pub use initial_state::{Initial, judge_initial};
pub use join_rules::unread;
pub use judge::{judge, judge_for, judge_in};
pub use judgement::{Audience, Judgement, Reason, ReasonCode, RejectCode, Violation, Warning};
pub use model::{Amending, Approval, Comment, Confirm, Covers, NodePolicy, PasskeyRule, Policy, Stage};
pub use pattern_set::Patterns;
pub use policy_source::PolicySource;
pub use redaction::diff::{
    Effect, RedactedChange, RedactedLeaf, True, readable_leaves, redacted, redacted_by, shown_arguments,
    shown_arguments_by, shown_leaves,
};
pub use redaction::excerpt::{excerpt, hides_nothing};
pub use redaction::value_kind::{Kind, Length};
pub use redaction::value_scan::HiddenValues;
pub use redaction::{Comparison, Hiding, NO_LEAVES, Side};
pub use replay_comparison::{Became, Compared, Policies, Untold, Was, WouldBe};
pub use request::{Asker, Circumstances, Principal, Request, RequestKind};
pub use test_cases::{CASES_MAX, Case, CaseError, Expected, read_cases};
pub use view::{changed_for, diff_for, project};
pub use violation::{Instruction, OnViolation};
pub use what_if::{Supposed, Verdict, WhatIf, unreadable, what_if};

#[cfg(test)]
mod tests;
