//! What another policy would have made of a recorded request, beside what became of it.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::judgement::{JudgedWarning, Judgement, RejectCode, Violation};
use super::model::Policy;
use super::redaction::Redactor;
use crate::domain::threads::flow::Mode;
use crate::domain::threads::rejected_request::RejectedRequest;

/// The actual or possible result of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplayOutcome {
    /// It committed by itself.
    Commit,
    /// It committed because its flow only observes: otherwise people would have been asked.
    Observe,
    /// People were asked; what they decided is not looked at.
    Hold,
    /// It was rejected.
    Reject,
}

/// The result of a request, as far as the policy decides it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
pub struct RecordedOutcome {
    /// The result.
    pub outcome: ReplayOutcome,
    /// The codes of the errors, or of the reasons for a review.
    pub codes: BTreeSet<String>,
}

/// The result under another policy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
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
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
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
        #[schema(value_type = UnknownOutcomeReason)]
        why: ReplayUnknownCause,
    },
}

/// Why it cannot be told what would have become of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplayUnknownCause {
    /// The request itself is not there any more.
    NotKept,
    /// It was turned away unread, because its node had no tries left.
    NotJudged,
    /// Whose token it was is not there any more.
    NoAsker,
    /// People would be asked, where it is known that nobody could approve under the policy of that time.
    NobodyThen,
    /// Its thread is longer than is looked back.
    TooFar,
    /// Its values are erased, or those of the state that it was asked for on.
    Erased,
}

/// The reason as it is returned.
#[derive(Serialize, utoipa::ToSchema)]
struct UnknownOutcomeReason {
    /// The error code, for programs.
    code: &'static str,
    /// The description, in words.
    detail: &'static str,
}

impl ReplayOutcome {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Observe => "observe",
            Self::Hold => "hold",
            Self::Reject => "reject",
        }
    }
}

impl ReplayUnknownCause {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotKept => "not_kept",
            Self::NotJudged => "not_judged",
            Self::NoAsker => "no_asker",
            Self::NobodyThen => "nobody_then",
            Self::TooFar => "too_far",
            Self::Erased => "erased",
        }
    }

    pub const fn detail(self) -> &'static str {
        match self {
            Self::NotKept => {
                "the rejected request is not kept: it was too long, held what was hidden, or is older than keeping them"
            }
            Self::NotJudged => "it was turned away unread: its node had no tries left on that head",
            Self::NoAsker => "the token that asked is not there any more",
            Self::NobodyThen => {
                "people would be asked; nobody could approve then, and who could under this policy is not looked at"
            }
            Self::TooFar => "its thread is longer than is looked back",
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
    /// Something with these codes. That a rejection was its node's last try says nothing of the request.
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

    /// Held against what would become of it.
    pub fn compared(&self, would_be: HypotheticalOutcome) -> ReplayComparison {
        if self.is_only(RejectCode::AttemptsExhausted) {
            ReplayComparison::Unknown { why: ReplayUnknownCause::NotJudged }
        } else if self.is_only(RejectCode::NobodyCanApprove) && would_be.outcome == ReplayOutcome::Hold {
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
    /// The one that the flow has.
    pub active: &'p Policy,
}

impl HypotheticalOutcome {
    /// A request that would come to nothing before it was judged: branches that do not agree.
    pub fn refused(code: &str) -> Self {
        let (reasons, warnings, errors) = (Vec::new(), Vec::new(), Vec::new());
        Self { outcome: ReplayOutcome::Reject, codes: BTreeSet::from([code.to_owned()]), reasons, warnings, errors }
    }

    /// What the candidate makes of a request, told without what it or the active policy hides of the request and the
    /// state it was for.
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
                ..nothing(match candidate.mode() {
                    Mode::Enforce => ReplayOutcome::Hold,
                    Mode::Observe => ReplayOutcome::Observe,
                })
            },
            Judgement::Reject { violations } => {
                let codes = violations.iter().map(|it| it.code.as_str().to_owned()).collect();
                let hiding =
                    |policy| Redactor::of_request(policy, state, (kept.format, &kept.content), kept.tool.as_ref());
                let errors = hiding(active).violations(hiding(candidate).violations(violations));
                Self { codes, errors, ..nothing(ReplayOutcome::Reject) }
            }
        }
    }
}

#[cfg(test)]
mod tests;
