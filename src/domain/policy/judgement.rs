//! What a judgement can be, in words that programs, agents and reviewers read.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::reason_wording;
use crate::domain::json::diff::LeafChange;
use crate::domain::json::pattern::Pattern;
use crate::domain::json::pointer::Pointer;
use crate::domain::primitives::openapi_schema::words;

/// What becomes of a request.
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
        /// The state after, should they approve.
        after: Value,
        /// The whole effect, leaf by leaf.
        changes: Vec<LeafChange>,
        /// As for `Commit`.
        named: Vec<Pointer>,
        reasons: Vec<JudgedReason>,
        /// What rules warn of besides.
        warnings: Vec<JudgedWarning>,
    },
    Reject {
        /// Everything that is wrong, in a fixed order; never empty.
        violations: Vec<Violation>,
    },
}

/// One violation of the policy. It does not depend on values that the node may not read.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, utoipa::ToSchema)]
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
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = JudgedReason)]
pub struct JudgedReason {
    /// The code of the reason.
    pub code: ReasonCode,
    /// The protected pattern that is touched.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<String>)]
    pub pattern: Option<Pattern>,
    /// A sentence that contains only the policy's words.
    pub text: String,
    /// The readers who may see it.
    pub audience: ReasonAudience,
}

/// A warning of a rule. It has no effect.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = JudgedWarning)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasonAudience {
    /// The asker too: it follows from what it asked and may read.
    Everyone,
    /// Reviewers and auditors: it would tell the asker that something it may not read differs.
    Reviewers,
}

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $text)] $variant,)*
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                words(Self::ALL.iter().map(|it| it.as_str()))
            }
        }

        impl utoipa::ToSchema for $name {}

        impl $name {
            /// Every code, in the order in which checks run.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

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
        /// Nothing was sent.
        Empty = "empty",
        /// Not JSON.
        Syntax = "syntax",
        /// A key twice in one object, or two keys that are equal after NFC.
        DuplicateKey = "duplicate_key",
        /// NaN or Infinity.
        NotANumber = "not_a_number",
        /// A number that no double holds exactly.
        NumberNotExact = "number_not_exact",
        /// More levels than are read.
        TooDeep = "too_deep",
        /// More bytes or leaves than are kept.
        TooLarge = "too_large",
        /// Not UTF-8, a lone surrogate, or a key that is not in NFC.
        Encoding = "encoding",
        /// The request asks about something that its node may not read.
        ReadNotAllowed = "read_not_allowed",
        /// The node may not write this.
        WriteNotAllowed = "write_not_allowed",
        /// The node is denied to write this.
        WriteDenied = "write_denied",
        /// The patch does not apply to the head.
        PatchFailed = "patch_failed",
        /// A schema refuses the result.
        Schema = "schema",
        /// The check against a schema takes more steps than one check may.
        SchemaTooCostly = "schema_too_costly",
        /// It may never change.
        Immutable = "immutable",
        /// It may only grow.
        NotMonotonic = "not_monotonic",
        /// It may only go forward.
        OrderRegressed = "order_regressed",
        /// A list of keyed items was changed otherwise than it may be.
        KeyedArray = "keyed_array",
        /// The node may not call this tool.
        ToolNotAllowed = "tool_not_allowed",
        /// A rule says no.
        RuleDenied = "rule_denied",
        /// A rule could not be evaluated.
        RuleError = "rule_error",
        /// It costs too much.
        Budget = "budget",
        /// Everybody who could approve is excluded, or there is nobody.
        NobodyCanApprove = "nobody_can_approve",
        /// The node has asked often enough on this head.
        AttemptsExhausted = "attempts_exhausted",
    }
}

codes! {
    /// Why people must decide.
    ReasonCode {
        /// A protected value is touched.
        Protected = "protected",
        /// A rule says so.
        Rule = "rule",
        /// More is used than the policy lets pass by itself.
        Budget = "budget",
        /// A reviewer rewrote a held request.
        Edit = "edit",
        /// A receipt is asked for the head as it stands.
        Reaffirm = "reaffirm",
        /// An ancestor's state is to stand again.
        Rollback = "rollback",
    }
}

impl Violation {
    /// A violation with one of the fixed sentences.
    pub const fn new(code: RejectCode, pointer: Pointer, detail: &'static str) -> Self {
        Self { code, pointer, detail: Cow::Borrowed(detail), rule: None }
    }
}

impl JudgedReason {
    pub(super) fn protected(pattern: &Pattern, audience: ReasonAudience) -> Self {
        let text = reason_wording::protected_reason(pattern.as_str());
        Self { code: ReasonCode::Protected, pattern: Some(pattern.clone()), text, audience }
    }

    /// A rule's reason, in its author's words.
    pub(super) fn of_rule(reason: &str, audience: ReasonAudience) -> Self {
        Self { code: ReasonCode::Rule, pattern: None, text: reason.to_owned(), audience }
    }

    /// A reason that lies in the kind of request.
    pub(super) fn of_kind(code: ReasonCode) -> Self {
        let text = reason_wording::of_code(code).to_owned();
        Self { code, pattern: None, text, audience: ReasonAudience::Everyone }
    }
}
