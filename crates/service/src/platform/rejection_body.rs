//! The body of a rejection.

use std::collections::BTreeMap;

use countersign_domain::policy::{Instruction, Violation};
use countersign_domain::threads::thread::Checkpoint;
use countersign_domain::writes::write::ResultError;
use serde_json::Value;

/// The reasons for a rejection, as the proposer receives them.
#[derive(Clone, Debug, Default)]
pub struct RejectionBody {
    pub errors: Vec<ResultError>,
    /// The values that the proposer sent at the paths of the errors, by the index of the error. They are
    /// taken from the request and never stored, so that they reveal nothing to others.
    pub values: BTreeMap<usize, Value>,
    pub instruction: Option<Instruction>,
    /// The head that the proposal was based on, if it is still the head.
    pub checkpoint: Option<Checkpoint>,
}

impl From<Vec<ResultError>> for RejectionBody {
    fn from(errors: Vec<ResultError>) -> Self {
        Self { errors, ..Self::default() }
    }
}

pub(crate) fn result_error(violation: &Violation) -> ResultError {
    ResultError {
        pointer: violation.pointer.to_string(),
        code: violation.code.as_str().to_owned(),
        detail: violation.detail.clone().into_owned(),
        rule: violation.rule.clone(),
    }
}
