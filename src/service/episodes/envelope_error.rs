//! Why an envelope is not made, or not believed.

use crate::domain::context::{EnvelopeCode, InputMismatch, ViewRejected};
use crate::domain::json::pointer::Pointer;
use crate::domain::policy::Policy;
use crate::domain::threads::thread::Checkpoint;

/// That no envelope is made. Nothing was changed: the head is as it was.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{why}")]
pub struct EnvelopeCreationError {
    pub why: EnvelopeCreationCause,
    /// The head of which none is made.
    pub checkpoint: Checkpoint,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EnvelopeCreationCause {
    /// The view lacks what its node requires.
    #[error("the view lacks what the node requires; `errors` says where")]
    Missing(Vec<Pointer>),
    /// What its node requires is more than it may be given.
    #[error("what the node requires is {tokens} tokens, and it may be given {max}")]
    OverBudget { tokens: u64, max: u64 },
    /// What its node would be given is not what it may receive.
    #[error("the view does not fit the schema of what the node receives; `errors` says where")]
    Unfit(Vec<InputMismatch>),
}

impl EnvelopeCreationCause {
    /// What programs look at.
    pub const fn code(&self) -> EnvelopeCode {
        match self {
            Self::Missing(_) => EnvelopeCode::RequiredMissing,
            Self::OverBudget { .. } => EnvelopeCode::OverBudget,
            Self::Unfit(_) => EnvelopeCode::SchemaMismatch,
        }
    }

    pub(in crate::service) fn of(why: ViewRejected, max_tokens: Option<u64>, policy: &Policy) -> Self {
        match why {
            ViewRejected::Missing(places) => Self::Missing(places.iter().map(|it| policy.cut(it)).collect()),
            ViewRejected::OverBudget { tokens } => Self::OverBudget { tokens, max: max_tokens.unwrap_or_default() },
            ViewRejected::Unfit(misfits) => Self::Unfit(told(misfits, policy)),
        }
    }
}

/// Misfits, without the names of what the policy hides.
pub(in crate::service) fn told(misfits: Vec<InputMismatch>, policy: &Policy) -> Vec<InputMismatch> {
    let mut told: Vec<InputMismatch> =
        misfits.into_iter().map(|it| InputMismatch { pointer: policy.cut(&it.pointer), ..it }).collect();
    told.sort();
    told.dedup();
    told
}

/// That an envelope is not believed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnvelopeRejected {
    pub code: EnvelopeCode,
    /// Where it is not what its node may receive.
    pub misfits: Vec<InputMismatch>,
    /// The thread's head, once it is known that the asker may know of the thread.
    pub checkpoint: Option<Checkpoint>,
}

impl From<EnvelopeCode> for EnvelopeRejected {
    fn from(code: EnvelopeCode) -> Self {
        Self { code, misfits: Vec::new(), checkpoint: None }
    }
}
