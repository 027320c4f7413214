//! Reasons why the gateway does not issue or accept an envelope.

use countersign_domain::context::{EnvelopeCode, InputMismatch, ViewRejected};
use countersign_domain::json::pointer::Pointer;
use countersign_domain::policy::Policy;
use countersign_domain::threads::thread::Checkpoint;

/// Error for an envelope that could not be issued. The head was not changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{why}")]
pub struct EnvelopeCreationError {
    pub why: EnvelopeCreationCause,
    /// The head for which no envelope was issued.
    pub checkpoint: Checkpoint,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EnvelopeCreationCause {
    /// The view lacks a value that its node requires.
    #[error("the view lacks values that the node requires: `errors` lists their paths")]
    Missing(Vec<Pointer>),
    /// The required values exceed the token limit of the node.
    #[error("the values that the node requires have {tokens} tokens, but its limit is {max}")]
    OverBudget { tokens: u64, max: u64 },
    /// The view does not match the input schema of the node.
    #[error("the view does not match the input schema of the node: `errors` lists the paths")]
    Unfit(Vec<InputMismatch>),
}

impl EnvelopeCreationCause {
    /// Returns the code that clients compare.
    pub const fn code(&self) -> EnvelopeCode {
        match self {
            Self::Missing(_) => EnvelopeCode::RequiredMissing,
            Self::OverBudget { .. } => EnvelopeCode::OverBudget,
            Self::Unfit(_) => EnvelopeCode::SchemaMismatch,
        }
    }

    pub(crate) fn of(why: ViewRejected, max_tokens: Option<u64>, policy: &Policy) -> Self {
        match why {
            ViewRejected::Missing(places) => Self::Missing(places.iter().map(|it| policy.cut(it)).collect()),
            ViewRejected::OverBudget { tokens } => Self::OverBudget { tokens, max: max_tokens.unwrap_or_default() },
            ViewRejected::Unfit(misfits) => Self::Unfit(told(misfits, policy)),
        }
    }
}

/// Returns the mismatches without the names of redacted values.
pub(crate) fn told(misfits: Vec<InputMismatch>, policy: &Policy) -> Vec<InputMismatch> {
    let mut told: Vec<InputMismatch> =
        misfits.into_iter().map(|it| InputMismatch { pointer: policy.cut(&it.pointer), ..it }).collect();
    // Different paths can be equal once they are cut.
    told.sort();
    told.dedup();
    told
}

/// Error for an envelope that is not valid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnvelopeRejected {
    pub code: EnvelopeCode,
    /// Paths where the payload does not match the input schema of the node.
    pub misfits: Vec<InputMismatch>,
    /// Head of the thread. It is set only if the caller may know that the thread exists.
    pub checkpoint: Option<Checkpoint>,
}

impl From<EnvelopeCode> for EnvelopeRejected {
    fn from(code: EnvelopeCode) -> Self {
        Self { code, misfits: Vec::new(), checkpoint: None }
    }
}
