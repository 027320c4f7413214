//! Limits the cost of rules. CEL has no endless loops, but expressions multiply: rules, changes, nested lists and
//! long texts. The meter counts each step of all rules of one judgement.

use crate::policy::bounds::RULE_STEPS_MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EvaluationError {
    /// The expression has no value: a missing key, wrong types or an overflow.
    Failed,
    /// It needs the caller or the thread's history, which a dry run left out.
    Unsupposed,
    /// It costs too much. Nothing replaces that error, not even `false && …`.
    Spent,
}

/// Result of an evaluation.
pub(super) type MeteredResult<T> = Result<T, EvaluationError>;

/// Bytes of text that cost one step.
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
        // Even a short text costs one step, so that many of them are not free.
        self.take(1 + text.len() / BYTES_PER_STEP)
    }

    fn take(&mut self, steps: usize) -> MeteredResult<()> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                // `&&` and `||` continue after an error, so each later step must fail, too.
                self.left = 0;
                Err(EvaluationError::Spent)
            }
        }
    }
}
