//! A refusal: what is said of a proposal that is rejected.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::domain::policy::Instruction;
use crate::domain::threads::thread::Checkpoint;
use crate::domain::writes::write::ResultError;

/// What is said of a proposal that is rejected.
#[derive(Clone, Debug, Default)]
pub struct RejectionBody {
    /// Each thing that is wrong.
    pub errors: Vec<ResultError>,
    /// What the proposer itself sent there, by the error's place in the list. Never kept: made from the request
    /// each time, so that nobody else is told, and nothing that was not sent.
    pub values: BTreeMap<usize, Value>,
    pub instruction: Option<Instruction>,
    /// What it was proposed on, and still stands.
    pub checkpoint: Option<Checkpoint>,
}

impl From<Vec<ResultError>> for RejectionBody {
    fn from(errors: Vec<ResultError>) -> Self {
        Self { errors, ..Self::default() }
    }
}
