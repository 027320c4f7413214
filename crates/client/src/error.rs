//! Why a call has no result.

use crate::mismatch::AnswerMismatch;

/// Why a call has no result. After any error of `verify` or `consume`, do not write and do not run the call.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The gateway refused the request. The codes are in its reference of errors.
    #[error("the gateway refused the request ({code}): {detail}")]
    Refused { status: u16, code: String, detail: String },
    /// There was no answer in time. The gateway may have handled the request.
    #[error("the gateway cannot be reached: {0}")]
    Unreachable(String),
    /// The answer is not one of a gateway of this version.
    #[error("the answer is not one of a gateway: {0}")]
    UnexpectedAnswer(String),
    /// The answer belongs to another request, or was not signed for this one.
    #[error("the answer is refused ({}): {}", .0.code(), .0.detail())]
    Mismatch(AnswerMismatch),
    /// The client cannot be set up.
    #[error("{0}")]
    SetUp(&'static str),
}

impl ClientError {
    /// Returns the code, for programs.
    pub fn code(&self) -> &str {
        match self {
            Self::Refused { code, .. } => code,
            Self::Unreachable(_) => "unreachable",
            Self::UnexpectedAnswer(_) => "unexpected_answer",
            Self::Mismatch(mismatch) => mismatch.code(),
            Self::SetUp(_) => "invalid_argument",
        }
    }
}

impl From<AnswerMismatch> for ClientError {
    fn from(mismatch: AnswerMismatch) -> Self {
        Self::Mismatch(mismatch)
    }
}
