//! The possible judgements, with their codes and sentences for programs, agents and reviewers.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::diff::LeafChange;
use crate::json::pattern::Pattern;
use crate::json::pointer::Pointer;
use crate::primitives::named_enum::named_json_enum;
use crate::primitives::openapi_schema::one_of_words;

/// Result of judging a request.
#[derive(Clone, PartialEq, Debug)]
pub enum Judgement {
    Commit {
        after: Value,
        /// The whole effect, leaf by leaf.
        changes: Vec<LeafChange>,
        /// Leaves that the request set outside its node's reads. They count as set whether or not their value
        /// differs: answer and commitment tree must not tell a right guess from a wrong one.
        named: Vec<Pointer>,
        /// The warnings of the policy's rules.
        warnings: Vec<JudgedWarning>,
    },
    Hold {
        /// The state after an approval.
        after: Value,
        /// The whole effect, leaf by leaf.
        changes: Vec<LeafChange>,
        /// As for `Commit`.
        named: Vec<Pointer>,
        reasons: Vec<JudgedReason>,
        /// Warnings of rules, in addition to the reasons.
        warnings: Vec<JudgedWarning>,
    },
    Reject {
        /// All violations in a fixed order. Never empty.
        violations: Vec<Violation>,
    },
}

/// One violation of the policy. It does not depend on values that the node may not read.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Violation {
    /// The code of the violation.
    pub code: RejectCode,
    /// The JSON Pointer, cut at redacted prefixes.
    pub pointer: Pointer,
    /// A fixed sentence without values. For a rule that denies, its reason.
    pub detail: Cow<'static, str>,
    /// The name of the rule, if the error comes from one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<String>,
}

/// One reason for a review.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = JudgedReason))]
pub struct JudgedReason {
    /// The code of the reason.
    pub code: ReasonCode,
    /// The protected pattern that is touched.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub pattern: Option<Pattern>,
    /// A sentence that contains only the policy's words.
    pub text: String,
    /// The readers who may see it.
    pub audience: ReasonAudience,
}

/// A warning of a rule. It has no effect.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", schema(as = JudgedWarning))]
pub struct JudgedWarning {
    /// The name of the rule.
    pub rule: String,
    /// The JSON Pointer, cut at redacted prefixes.
    pub pointer: Pointer,
    /// The reason in the policy.
    pub detail: String,
    /// The readers who may see it.
    pub audience: ReasonAudience,
}

/// The readers who may see a reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReasonAudience {
    /// Also the caller: the reason follows from its request and from values that it may read.
    Everyone,
    /// Only reviewers and auditors: the reason would reveal to the caller that an unreadable value differs.
    Reviewers,
}

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:tt,)* }) => {
        named_json_enum! {
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
            pub enum $name { $($(#[$variant_doc])* $variant = $text,)* }
        }

        one_of_words!($name, Self::ALL.iter().map(|it| it.as_str()));

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

codes! {
    /// Why a request is rejected. The first block is for JSON itself.
    RejectCode {
        /// The request is empty.
        Empty = "empty",
        /// Not JSON.
        Syntax = "syntax",
        /// A key twice in one object, or two keys that are equal after NFC.
        DuplicateKey = "duplicate_key",
        /// NaN or Infinity.
        NotANumber = "not_a_number",
        /// A number that no double holds exactly.
        NumberNotExact = "number_not_exact",
        /// More levels than the limit.
        TooDeep = "too_deep",
        /// More bytes or leaves than the limit.
        TooLarge = "too_large",
        /// Not UTF-8, a lone surrogate, or a key that is not in NFC.
        Encoding = "encoding",
        /// The request depends on a value that its node may not read.
        ReadNotAllowed = "read_not_allowed",
        /// The node may not write this.
        WriteNotAllowed = "write_not_allowed",
        /// The node's `deny` covers the path.
        WriteDenied = "write_denied",
        /// The patch does not apply to the head.
        PatchFailed = "patch_failed",
        /// The result does not match a schema.
        Schema = "schema",
        /// The check against a schema takes more steps than one check may.
        SchemaTooCostly = "schema_too_costly",
        /// The value may never change.
        Immutable = "immutable",
        /// The number may only grow.
        NotMonotonic = "not_monotonic",
        /// The value may only move forward in its order.
        OrderRegressed = "order_regressed",
        /// A change of a list of keyed items that the rule does not allow.
        KeyedArray = "keyed_array",
        /// The node may not call this tool.
        ToolNotAllowed = "tool_not_allowed",
        /// A rule denies the request.
        RuleDenied = "rule_denied",
        /// A rule could not be evaluated.
        RuleError = "rule_error",
        /// The request exceeds a budget.
        Budget = "budget",
        /// No reviewer can approve: the stage has none, or all are excluded.
        NobodyCanApprove = "nobody_can_approve",
        /// The node has no attempts left on this head.
        AttemptsExhausted = "attempts_exhausted",
    }
}

codes! {
    /// Why a request requires approval.
    ReasonCode {
        /// A protected path is touched.
        Protected = "protected",
        /// A rule requires approval.
        Rule = "rule",
        /// The request exceeds a budget whose result is `hold`.
        Budget = "budget",
        /// A reviewer edited a held request.
        Edit = "edit",
        /// A receipt for the current head is requested.
        Reaffirm = "reaffirm",
        /// A rollback to an ancestor's state is requested.
        Rollback = "rollback",
        /// The server has changed the definition of the called tool.
        ToolChanged = "tool_changed",
    }
}

impl ReasonCode {
    /// Returns the reason for a kind of request.
    pub(super) const fn sentence(self) -> &'static str {
        match self {
            Self::Protected => "a protected value changes",
            Self::Rule => "a rule requires approval",
            Self::Budget => "the request exceeds a limit of the policy",
            Self::Edit => "a reviewer edited the request, and the edited request requires approval",
            Self::Reaffirm => "a receipt for the current state requires approval",
            Self::Rollback => "a rollback to an earlier state requires approval",
            Self::ToolChanged => "the server has changed the definition of this tool since it was first seen",
        }
    }
}

/// Returns the reason for a protected pattern.
pub fn protected_reason(pattern: &str) -> String {
    format!("`{pattern}` is protected and requires approval")
}

impl Violation {
    /// Returns a violation with one of the fixed sentences.
    pub const fn new(code: RejectCode, pointer: Pointer, detail: &'static str) -> Self {
        // A static sentence cannot contain a value of a state.
        Self { code, pointer, detail: Cow::Borrowed(detail), rule: None }
    }
}

impl JudgedReason {
    pub(super) fn protected(pattern: &Pattern, audience: ReasonAudience) -> Self {
        let text = protected_reason(pattern.as_str());
        Self { code: ReasonCode::Protected, pattern: Some(pattern.clone()), text, audience }
    }

    /// Returns a rule's reason, in the words of its author.
    pub(super) fn of_rule(reason: &str, audience: ReasonAudience) -> Self {
        Self { code: ReasonCode::Rule, pattern: None, text: reason.to_owned(), audience }
    }

    /// Returns the reason for a kind of request.
    pub(super) fn of_kind(code: ReasonCode) -> Self {
        let text = code.sentence().to_owned();
        // The caller knows the kind of its own request.
        Self { code, pattern: None, text, audience: ReasonAudience::Everyone }
    }
}
