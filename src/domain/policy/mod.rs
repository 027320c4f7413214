//! The policy text → `Policy`; judging, views, redaction.
//!
//! Two promises hold this together. *Write lists judge the effect*: whatever a patch says, what differs afterwards
//! must be in the node's `writes`. *Reads bound what can be learned*: two states that look alike to a node are
//! judged alike, and told alike.

mod alike;
mod around;
mod bounds;
mod breaches;
mod budget;
mod cases;
mod claims;
mod compile;
mod detect;
mod effort;
mod error;
mod excerpt;
mod following;
mod given;
mod held_paths;
mod hidden_values;
mod hiding;
mod initial;
mod joining;
mod judge;
mod kind;
mod model;
mod outcome;
mod patterns;
mod redact;
mod replayed;
mod request;
mod rules;
mod shape;
mod sight;
mod source;
mod toml_reader;
mod tool_calls;
mod tools;
mod verdict;
mod view;
mod violation;
mod what_if;

pub use crate::domain::json::size::StateLimits;
pub use around::{Around, SupposedPrincipal};
pub use cases::{CASES_MAX, Case, CaseError, Expected, read_cases};
pub use effort::{Effort, parts};
pub use error::{PolicyCode, PolicyError};
pub use excerpt::{excerpt, hides_nothing};
pub use hidden_values::HiddenValues;
pub use hiding::{Comparison, Hiding, NO_LEAVES, Side};
pub use initial::{Initial, judge_initial};
pub use joining::unread;
pub use judge::{judge, judge_for, judge_in};
pub use kind::{Kind, Length};
pub use model::{Amending, Approval, Comment, Confirm, Covers, NodePolicy, PasskeyRule, Policy, Stage};
pub use patterns::Patterns;
pub use redact::{
    Effect, RedactedChange, RedactedLeaf, True, readable_leaves, redacted, redacted_by, shown_arguments,
    shown_arguments_by, shown_leaves,
};
pub use replayed::{Became, Compared, Policies, Untold, Was, WouldBe};
pub use request::{Asker, Circumstances, Principal, Request, RequestKind};
pub use source::PolicySource;
pub use verdict::{Audience, Judgement, Reason, ReasonCode, RejectCode, Violation, Warning};
pub use view::{changed_for, diff_for, project};
pub use violation::{Instruction, OnViolation};
pub use what_if::{Supposed, Verdict, WhatIf, unreadable, what_if};

#[cfg(test)]
mod tests;
