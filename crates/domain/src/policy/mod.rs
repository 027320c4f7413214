//! Policies: compiling, judging, views and redaction.
//!
//! Two guarantees apply to the whole module. *Write lists limit the effect*: every value that differs after a patch
//! must be in the node's `writes`, whatever the patch contains. *Reads limit what can be learned*: if two states look
//! alike to a node, the judgement and the response are the same.

mod approval_basis;
mod bounds;
mod budget;
mod budget_check;
mod compile;
mod context_rules;
mod effect;
mod effort;
mod error;
mod guessable_leaves;
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
mod reason_wording;
mod redaction;
mod replay_comparison;
mod request;
mod restored_state;
mod rules;
mod same_approval_terms;
mod state_shape;
mod submission;
mod test_cases;
mod toml_reader;
mod tool_check;
mod tool_description;
mod tool_globs;
mod transition_check;
mod view;
mod violation;
mod visibility;
mod what_if;

pub use crate::json::size::StateLimits;
pub use effort::{Effort, parts};
pub use error::{PolicyCode, PolicyError};
pub use hypothetical_context::{HypotheticalContext, HypotheticalPrincipal};
pub use initial_state::{InitialState, judge_initial};
pub use join_rules::unread;
pub use judge::{judge, judge_for, judge_in};
pub use judgement::{
    JudgedReason, JudgedWarning, Judgement, ReasonAudience, ReasonCode, RejectCode, Violation, protected_reason,
};
pub use model::{
    ApprovalPolicy, ApprovalScope, CommentRule, ConfirmationRule, NodePolicy, PasskeyRule, Policy,
    PolicyChangeApproval, PolicyStage,
};
pub use pattern_set::Patterns;
pub use policy_source::PolicySource;
pub use reason_wording::current_wording;
pub use redaction::diff::{
    ConstTrue, RedactedChange, RedactedChangeKind, RedactedLeaf, readable_leaves, redacted, redacted_by,
    shown_arguments, shown_arguments_by, shown_leaves,
};
pub use redaction::excerpt::{excerpt, hides_nothing};
pub use redaction::state_text::{StateText, StateTextKind, TextIndex};
pub use redaction::value_kind::{LengthClass, RedactedValueKind};
pub use redaction::value_scan::RedactedValues;
pub use redaction::{ComparedValues, NO_TEXTS, Redactor, RedactorFindings, ScannedState};
pub use replay_comparison::{
    HypotheticalOutcome, RecordedOutcome, ReplayComparison, ReplayOutcome, ReplayPolicies, ReplayUnknownCause,
};
pub use request::{CallerContext, PolicyRequest, Principal, RequestContext, RequestKind};
pub use submission::{PolicyWarning, PolicyWarningCode, SubmittedPolicy};
pub use test_cases::{CASES_MAX, CaseError, ExpectedJudgement, PolicyTestCase, read_cases};
pub use tool_description::{ToolDescription, ToolRisk};
pub use tool_globs::ChangedTools;
pub use view::{changed_for, diff_for, project, project_any};
pub use violation::{Instruction, OnViolation};
pub use what_if::{HypotheticalRequest, JudgedOutcome, WhatIf, unreadable, what_if};

#[cfg(test)]
mod tests;
