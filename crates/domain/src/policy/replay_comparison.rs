//! Compares the result of a recorded request with its result under another policy.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::judgement::{JudgedWarning, Judgement, RejectCode, Violation};
use super::model::Policy;
use super::redaction::Redactor;
use crate::primitives::named_enum::named_enum;
use crate::primitives::named_enum::named_json_enum;
use crate::threads::flow::Mode;
use crate::threads::rejected_request::RejectedRequest;

named_json_enum! {
    /// The actual or possible result of a request.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum ReplayOutcome {
        /// It commits without approval.
        Commit = "commit",
        /// It commits because the flow only observes. Otherwise it would require approval.
        Observe = "observe",
        /// It requires approval. The decision of the reviewers is not compared.
        Hold = "hold",
        /// It was rejected.
        Reject = "reject",
    }
}

/// The result of a request, as far as the policy decides it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecordedOutcome {
    /// The result.
    pub outcome: ReplayOutcome,
    /// The codes of the errors, or of the reasons for a review.
    pub codes: BTreeSet<String>,
}

/// The result under another policy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HypotheticalOutcome {
    /// The result.
    pub outcome: ReplayOutcome,
    /// The codes of the errors, or of the reasons for a review.
    pub codes: BTreeSet<String>,
    /// The reasons for a review, in the policy's words.
    pub reasons: Vec<String>,
    /// The rules that would warn. Warnings are not compared.
    pub warnings: Vec<String>,
    /// The errors. Pointers are cut where either policy redacts.
    pub errors: Vec<Violation>,
}

/// The comparison of both results.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "comparison", rename_all = "snake_case")]
pub enum ReplayComparison {
    /// The result is the same, with the same codes.
    Same {
        /// The result under the candidate policy.
        would_be: HypotheticalOutcome,
    },
    /// The result differs.
    Differs {
        /// The result under the candidate policy.
        would_be: HypotheticalOutcome,
    },
    /// The result cannot be known.
    Unknown {
        /// The reason why it cannot be known.
        #[cfg_attr(feature = "openapi", schema(value_type = UnknownOutcomeReason))]
        why: ReplayUnknownCause,
    },
}

named_enum! {
    /// Why the result under another policy is unknown.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum ReplayUnknownCause {
        /// The request is not stored any more.
        NotKept = "not_kept",
        /// It was rejected without being judged, because its node had no attempts left.
        NotJudged = "not_judged",
        /// The token that sent it does not exist any more.
        NoAsker = "no_asker",
        /// It would require approval, but at that time no reviewer could approve under the policy then.
        NobodyThen = "nobody_then",
        /// Its thread is longer than the replay's limit.
        TooFar = "too_far",
        /// Its values, or those of the state before it, are erased.
        Erased = "erased",
    }
}

/// The reason as it is returned.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct UnknownOutcomeReason {
    /// The error code, for programs.
    code: &'static str,
    /// The description, in words.
    detail: &'static str,
}

impl ReplayUnknownCause {
    pub const fn detail(self) -> &'static str {
        match self {
            Self::NotKept => {
                "the rejected request is not stored: it was too long, contained a redacted value, or is older than the retention time"
            }
            Self::NotJudged => {
                "it was rejected without being judged, because its node had no attempts left on that head"
            }
            Self::NoAsker => "the token that sent it does not exist any more",
            Self::NobodyThen => {
                "it would require approval at a time when no reviewer could approve it; today's reviewers are not considered"
            }
            Self::TooFar => "its thread is longer than the replay's limit",
            Self::Erased => "its values, or those of the state before it, are erased",
        }
    }
}

impl Serialize for ReplayUnknownCause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        UnknownOutcomeReason { code: self.as_str(), detail: self.detail() }.serialize(serializer)
    }
}

impl RecordedOutcome {
    /// Returns a result with these codes. `attempts_exhausted` is left out beside other codes, because it does not
    /// depend on the request itself.
    pub fn new(outcome: ReplayOutcome, codes: impl IntoIterator<Item = String>) -> Self {
        let mut codes: BTreeSet<String> = codes.into_iter().collect();
        if codes.len() > 1 {
            codes.remove(RejectCode::AttemptsExhausted.as_str());
        }
        Self { outcome, codes }
    }

    fn is_only(&self, code: RejectCode) -> bool {
        self.outcome == ReplayOutcome::Reject && self.codes.len() == 1 && self.codes.contains(code.as_str())
    }

    /// Compares the recorded result with the result under the candidate policy.
    pub fn compared(&self, would_be: HypotheticalOutcome) -> ReplayComparison {
        if self.is_only(RejectCode::AttemptsExhausted) {
            // The gateway rejected the request without a judgement, so there is nothing to compare.
            ReplayComparison::Unknown { why: ReplayUnknownCause::NotJudged }
        } else if self.is_only(RejectCode::NobodyCanApprove) && would_be.outcome == ReplayOutcome::Hold {
            // The rejection depended on the reviewers of that time, and the reviewers of today may differ.
            ReplayComparison::Unknown { why: ReplayUnknownCause::NobodyThen }
        } else if self.outcome == would_be.outcome && self.codes == would_be.codes {
            ReplayComparison::Same { would_be }
        } else {
            ReplayComparison::Differs { would_be }
        }
    }
}

/// The policies of a replay.
#[derive(Clone, Copy, Debug)]
pub struct ReplayPolicies<'p> {
    pub candidate: &'p Policy,
    /// The active policy of the flow.
    pub active: &'p Policy,
}

impl HypotheticalOutcome {
    /// Returns the result of a request that fails before it is judged, such as conflicting branches.
    pub fn refused(code: &str) -> Self {
        let (reasons, warnings, errors) = (Vec::new(), Vec::new(), Vec::new());
        Self { outcome: ReplayOutcome::Reject, codes: BTreeSet::from([code.to_owned()]), reasons, warnings, errors }
    }

    /// Returns the result under the candidate policy. Paths and values that the candidate or the active policy
    /// redacts in the request and its state are redacted.
    pub fn of(judgement: Judgement, policies: ReplayPolicies<'_>, state: &Value, kept: &RejectedRequest) -> Self {
        let ReplayPolicies { candidate, active } = policies;
        let nothing = |outcome| Self {
            outcome,
            codes: BTreeSet::new(),
            reasons: Vec::new(),
            warnings: Vec::new(),
            errors: Vec::new(),
        };
        let names = |warnings: Vec<JudgedWarning>| warnings.into_iter().map(|it| it.rule).collect();
        match judgement {
            Judgement::Commit { warnings, .. } => Self { warnings: names(warnings), ..nothing(ReplayOutcome::Commit) },
            Judgement::Hold { reasons, warnings, .. } => Self {
                warnings: names(warnings),
                codes: reasons.iter().map(|it| it.code.as_str().to_owned()).collect(),
                reasons: reasons.into_iter().map(|it| it.text).collect(),
                // In observe mode a change that requires approval commits at once.
                ..nothing(match candidate.mode() {
                    Mode::Enforce => ReplayOutcome::Hold,
                    Mode::Observe => ReplayOutcome::Observe,
                })
            },
            Judgement::Reject { violations } => {
                let codes = violations.iter().map(|it| it.code.as_str().to_owned()).collect();
                let hiding =
                    |policy| Redactor::of_request(policy, state, kept.format, &kept.content, kept.tool.as_ref());
                // A candidate that redacts less must not reveal what the active policy redacts.
                let errors = hiding(active).violations(hiding(candidate).violations(violations));
                Self { codes, errors, ..nothing(ReplayOutcome::Reject) }
            }
        }
    }
}

#[cfg(test)]
mod tests;
