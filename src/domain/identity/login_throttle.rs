//! Failed sign-ins: how long an asker waits after so many, and when that is forgotten.
//!
//! Who asks too often waits longer and longer, but never longer than the window; so nobody is locked out for good. A
//! try is written down before the password is looked at and taken back if it was right: however many are made at once,
//! each counts.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domain::primitives::time::Timestamp;

/// How many tries are free, and how long one waits after those.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoginThrottleLimits {
    /// Tries that nobody waits for.
    pub free: u32,
    /// The longest wait; and after so long without a try, all is forgotten.
    pub window: Duration,
}

impl Default for LoginThrottleLimits {
    fn default() -> Self {
        Self { free: 10, window: Duration::from_secs(900) }
    }
}

impl LoginThrottleLimits {
    /// How long nobody of the asker's kind may try after so many failures in a row: twice as long each time, beginning
    /// with the window's share of one try.
    pub fn wait(&self, failed: u32) -> Duration {
        let Some(beyond) = failed.checked_sub(self.free) else { return Duration::ZERO };
        let first = self.window / self.free.max(1);
        let doubled = 1_u32.checked_shl(beyond).and_then(|times| first.checked_mul(times));
        doubled.map_or(self.window, |it| it.min(self.window))
    }
}

/// The tries on one counter: of unknown browsers at a name, of one browser that the account knows, or of one address.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailedSignIns {
    pub asker: String,
    /// How many failed in a row.
    pub failed: u32,
    pub last: Timestamp,
}

impl FailedSignIns {
    /// Until when the asker must wait, if so. Nobody waits until a clock that was ahead is caught up with: a
    /// try whose moment lies more than a window from now does not count.
    pub fn waits_until(&self, bounds: &LoginThrottleLimits, now: Timestamp) -> Option<Timestamp> {
        let wait = bounds.wait(self.failed);
        let until = self.last.plus(wait);
        (!wait.is_zero() && now < until && self.is_of_this_clock(bounds, now)).then_some(until)
    }

    fn is_of_this_clock(&self, bounds: &LoginThrottleLimits, now: Timestamp) -> bool {
        self.last <= now.plus(bounds.window)
    }

    /// One more try, made now; what is long ago is forgotten.
    pub fn again(before: Option<&Self>, asker: &str, now: Timestamp, bounds: &LoginThrottleLimits) -> Self {
        let lately = |it: &&Self| {
            let kept = bounds.wait(it.failed).saturating_add(bounds.window);
            now < it.last.plus(kept) && it.is_of_this_clock(bounds, now)
        };
        let counted = before.filter(lately).map_or(0, |it| it.failed);
        Self { asker: asker.to_owned(), failed: counted.saturating_add(1), last: now }
    }

    /// As it stands once the try is known to have been no failure.
    pub fn taken_back(&self) -> Self {
        Self { failed: self.failed.saturating_sub(1), ..self.clone() }
    }

    /// As it stands once the right person was there: nothing counts against the asker any more.
    pub fn forgiven(&self) -> Self {
        Self { failed: 0, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: LoginThrottleLimits = LoginThrottleLimits { free: 3, window: Duration::from_secs(90) };

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    #[test]
    fn the_first_are_free_and_then_each_costs_twice_as_much_up_to_the_window() {
        let waits: Vec<u64> = (0..8).map(|failed| BOUNDS.wait(failed).as_secs()).collect();
        assert_eq!(waits, [0, 0, 0, 30, 60, 90, 90, 90]);
        assert_eq!(BOUNDS.wait(u32::MAX), BOUNDS.window);
    }

    #[test]
    fn tries_add_up_and_are_forgotten_a_window_after_the_wait() {
        let mut tries = None;
        for second in 0..4 {
            tries = Some(FailedSignIns::again(tries.as_ref(), "a", at(second), &BOUNDS));
        }
        let tries = tries.unwrap();
        assert_eq!((tries.failed, tries.waits_until(&BOUNDS, at(62))), (4, Some(at(63))));
        assert_eq!(tries.waits_until(&BOUNDS, at(63)), None);
        assert_eq!(FailedSignIns::again(Some(&tries), "a", at(152), &BOUNDS).failed, 5);
        assert_eq!(FailedSignIns::again(Some(&tries), "a", at(153), &BOUNDS).failed, 1);
        assert_eq!((tries.taken_back().failed, tries.forgiven().failed), (3, 0));
    }

    #[test]
    fn nobody_waits_for_a_clock_that_was_ahead() {
        let tried = |failed| FailedSignIns { asker: "a".to_owned(), failed, last: at(1000) };
        assert_eq!(tried(0).waits_until(&BOUNDS, at(999)), None, "nothing failed");
        assert_eq!(tried(2).waits_until(&BOUNDS, at(999)), None, "the first are free");
        assert_eq!(tried(3).waits_until(&BOUNDS, at(999)), Some(at(1030)), "a moment back is no way out");
        assert_eq!(tried(3).waits_until(&BOUNDS, at(910)), Some(at(1030)));
        assert_eq!(tried(3).waits_until(&BOUNDS, at(909)), None);
        assert_eq!(FailedSignIns::again(Some(&tried(3)), "a", at(910), &BOUNDS).failed, 4);
        assert_eq!(FailedSignIns::again(Some(&tried(3)), "a", at(909), &BOUNDS).failed, 1);
    }
}
