//! Counts the steps of one schema check, and ends the check when it takes too many.
//!
//! The validator cannot be stopped, so a check without steps left unwinds out of it, like a cancelled query in a
//! compiler. The count depends only on the schema and the value: the same check ends at the same step everywhere.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

thread_local! {
    /// Remaining steps of the check on this thread. The validator creates its own nodes for the names of members, so
    /// the count cannot be passed from node to node.
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Panic payload that ends a check.
struct OutOfSteps;

/// Runs a check. Returns `None` if it takes more than `steps`.
pub(super) fn within<T>(steps: u64, check: impl FnOnce() -> T) -> Option<T> {
    let outer = LEFT.replace(steps);
    let done = catch_unwind(AssertUnwindSafe(check));
    // Restored after a panic, too, because an outer check on this thread has its own steps.
    LEFT.set(outer);
    match done {
        Ok(result) => Some(result),
        Err(why) if why.is::<OutOfSteps>() => None,
        // Any other panic is an error of the program and must not look like an expensive check.
        Err(why) => resume_unwind(why),
    }
}

/// Subtracts steps from the check on this thread, and ends the check if too few are left.
#[inline]
pub(super) fn spend(steps: u64) {
    match LEFT.get().checked_sub(steps) {
        Some(left) => LEFT.set(left),
        None => end(),
    }
}

/// Ends the check on this thread.
#[cold]
pub(super) fn end() -> ! {
    // This is not a panic: no hook runs, and nothing is written to the server log.
    resume_unwind(Box::new(OutOfSteps))
}

/// Returns the steps for reading a text of this length in bytes.
pub(super) const fn reading(bytes: usize) -> u64 {
    1 + bytes as u64 / BYTES_PER_STEP
}

/// Bytes per step. A pattern takes about as long for eight bytes as the validator takes to visit a part.
const BYTES_PER_STEP: u64 = 8;

/// States of an expression per step, for each byte.
const STATES_PER_STEP: u64 = 8;

/// Maximum number of states that a text reaches for each byte.
const STATES_PER_BYTE: u64 = 4;

/// Returns the worst-case steps for matching a text of this length with an expression of this number of states.
pub(super) fn matching(bytes: usize, states: u64) -> u64 {
    let bytes = bytes as u64;
    1 + bytes.saturating_mul(states.min(bytes.saturating_mul(STATES_PER_BYTE))) / STATES_PER_STEP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_may_take_its_steps_and_not_one_more() {
        let takes = |steps: u64| move || (0..steps).for_each(|_| spend(1));
        assert_eq!(within(10, takes(10)), Some(()));
        assert_eq!(within(10, takes(11)), None);
        assert_eq!(within(0, takes(0)), Some(()));
    }

    #[test]
    fn a_check_within_another_has_steps_of_its_own() {
        let outer = within(10, || {
            assert_eq!(within(5, || spend(6)), None);
            assert_eq!(within(100, || spend(90)), Some(()));
            spend(10);
        });
        assert_eq!(outer, Some(()));
        spend(1_000_000);
    }

    #[test]
    fn any_other_panic_goes_on() {
        let panicked = catch_unwind(|| within(10, || resume_unwind(Box::new("another"))));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"another"));
        spend(1_000_000);
    }
}
