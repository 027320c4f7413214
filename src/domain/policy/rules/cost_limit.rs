//! What rules may cost. CEL has no loops without end, but expressions multiply: rules, changes, lists in lists,
//! long texts. Each step is counted, over all the rules of one judgement.

use crate::domain::policy::bounds::RULE_STEPS_MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EvaluationError {
    /// The expression has none here: a key that is not there, types that do not fit, an overflow.
    Failed,
    /// It asks about an asker or a thread of which nothing is supposed.
    Unsupposed,
    /// It would cost too much. Nothing makes up for that, not even `false && …`.
    Spent,
}

/// What an evaluation gives.
pub(super) type MeteredResult<T> = Result<T, EvaluationError>;

/// How many bytes of text are looked at for the price of one step.
const BYTES_PER_STEP: usize = 32;

/// Counts the steps of one judgement.
pub(super) struct CostMeter {
    left: usize,
}

impl CostMeter {
    pub(super) const fn new() -> Self {
        Self { left: RULE_STEPS_MAX }
    }

    pub(super) fn step(&mut self) -> MeteredResult<()> {
        self.take(1)
    }

    pub(super) fn text(&mut self, text: &str) -> MeteredResult<()> {
        self.take(1 + text.len() / BYTES_PER_STEP)
    }

    fn take(&mut self, steps: usize) -> MeteredResult<()> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(EvaluationError::Spent)
            }
        }
    }
}
