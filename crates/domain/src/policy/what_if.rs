//! Dry runs (what-if): the same judgement without any effect and without a review.

use serde::Serialize;
use serde_json::Value;

use super::hypothetical_context::HypotheticalContext;
use super::judge::judge_in;
use super::judgement::{JudgedReason, JudgedWarning, Judgement, RejectCode, Violation};
use super::model::Policy;
use super::redaction::Redactor;
use super::redaction::diff::{RedactedChange, redacted_by};
use super::request::{PolicyRequest, RequestKind};
use crate::chain::hash::Digest;
use crate::json::patch::{Patch, PatchFormat};
use crate::json::pointer::Pointer;
use crate::json::size::StateLimits;
use crate::primitives::id::NodeId;
use crate::primitives::named_enum::named_json_enum;

/// A state, which may be invented, and a request of a node.
#[derive(Clone, Debug)]
pub struct HypotheticalRequest<'a> {
    pub state: &'a Value,
    /// The node that acts. The token must name it.
    pub node: &'a NodeId,
    pub format: PatchFormat,
    pub patch: &'a Value,
    /// Caller, tool call, usage and history of the request.
    pub around: &'a HypotheticalContext,
}

named_json_enum! {
    /// The possible result of a request.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    #[cfg_attr(feature = "openapi", schema(as = JudgedOutcome))]
    pub enum JudgedOutcome {
        /// It would commit without approval.
        Commit = "commit",
        /// It would require approval.
        Hold = "hold",
        /// It would be rejected.
        Reject = "reject",
    }
}

/// The result of a dry run.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WhatIf {
    /// The result that the request would have.
    pub outcome: JudgedOutcome,
    /// The digest of the policy that judged it.
    pub policy: Digest,
    /// The reasons, if it would be held.
    pub reasons: Vec<JudgedReason>,
    /// The warnings of rules, if it would commit or be held.
    pub warnings: Vec<JudgedWarning>,
    /// The errors, if it would be rejected.
    pub errors: Vec<Violation>,
    /// The changes, with redaction applied.
    pub diff: Vec<RedactedChange>,
}

/// Judges a request as a dry run. It ignores facts that only a gateway has: the reviewers who could
/// approve, earlier attempts, and a pending review or lease of the thread.
pub fn what_if(policy: &Policy, supposed: &HypotheticalRequest<'_>, limits: &StateLimits) -> WhatIf {
    let judgement = match Patch::read(supposed.format, supposed.patch.clone()) {
        Ok(patch) => {
            let request = PolicyRequest { node: supposed.node, kind: RequestKind::Propose { patch: &patch } };
            judge_in(policy, supposed.state, &request, &supposed.around.circumstances(), limits)
        }
        // A malformed patch is a rejection, as it is for a proposal.
        Err(error) => unreadable(error.pointer()),
    };
    let told = |outcome| WhatIf {
        outcome,
        policy: policy.digest(),
        reasons: Vec::new(),
        warnings: Vec::new(),
        errors: Vec::new(),
        diff: Vec::new(),
    };
    let tool = supposed.around.circumstances().tool;
    match judgement {
        Judgement::Commit { after, changes, named, warnings } => {
            // One redactor covers both states, because a redacted value of one may be copied in the other.
            let hiding = Redactor::of(policy, [supposed.state, &after], tool);
            let diff = redacted_by(std::slice::from_ref(&hiding), &changes, &named);
            let warnings = hiding.warnings(&warnings);
            WhatIf { diff, warnings, ..told(JudgedOutcome::Commit) }
        }
        Judgement::Hold { after, changes, named, reasons, warnings } => {
            let hiding = Redactor::of(policy, [supposed.state, &after], tool);
            let diff = redacted_by(std::slice::from_ref(&hiding), &changes, &named);
            let warnings = hiding.warnings(&warnings);
            // Reasons contain only the policy's words, so they need no redaction.
            WhatIf { diff, reasons, warnings, ..told(JudgedOutcome::Hold) }
        }
        Judgement::Reject { violations } => {
            // A rejected request has no state after it, so the request itself is searched for redacted values.
            let hiding = Redactor::of_request(policy, supposed.state, supposed.format, supposed.patch, tool);
            WhatIf { errors: hiding.violations(violations), ..told(JudgedOutcome::Reject) }
        }
    }
}

/// Returns the judgement of a value that is not a patch of its format.
pub fn unreadable(pointer: Pointer) -> Judgement {
    let violation = Violation::new(RejectCode::PatchFailed, pointer, "not a patch of the given format");
    Judgement::Reject { violations: vec![violation] }
}
