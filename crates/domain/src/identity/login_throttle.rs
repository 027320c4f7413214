//! Throttling of failed sign-ins, against brute force.
//!
//! The wait grows with each failed attempt up to the window, so no account is locked permanently. An attempt is counted
//! before the password is checked and uncounted if it was right. So concurrent attempts cannot bypass the limit.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::primitives::time::Timestamp;

/// The limits of the throttle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoginThrottleLimits {
    /// The number of attempts without a wait.
    pub free: u32,
    /// The longest wait. After the same time without an attempt the count is reset.
    pub window: Duration,
}

impl Default for LoginThrottleLimits {
    fn default() -> Self {
        Self { free: 10, window: Duration::from_secs(900) }
    }
}

impl LoginThrottleLimits {
    /// Returns the wait after a number of failures in a row. It doubles each time, starting with `window / free`.
    pub fn wait(&self, failed: u32) -> Duration {
        // The first attempts are free, because people mistype passwords.
        let Some(beyond) = failed.checked_sub(self.free) else { return Duration::ZERO };
        let first = self.window / self.free.max(1);
        // An overflow means that the wait is longer than the window, which limits it.
        let doubled = 1_u32.checked_shl(beyond).and_then(|times| first.checked_mul(times));
        doubled.map_or(self.window, |it| it.min(self.window))
    }
}

/// One counter of failed attempts: for unknown browsers at one account name, for one known browser of an account, or
/// for one address.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailedSignIns {
    pub asker: String,
    /// The number of failures in a row.
    pub failed: u32,
    pub last: Timestamp,
}

impl FailedSignIns {
    /// Returns the end of the wait, if there is one. A time more than one window in the future comes from a wrong
    /// clock. It is ignored, so a wrong clock locks no account.
    pub fn waits_until(&self, bounds: &LoginThrottleLimits, now: Timestamp) -> Option<Timestamp> {
        let wait = bounds.wait(self.failed);
        let until = self.last.plus(wait);
        (!wait.is_zero() && now < until && self.is_of_this_clock(bounds, now)).then_some(until)
    }

    fn is_of_this_clock(&self, bounds: &LoginThrottleLimits, now: Timestamp) -> bool {
        self.last <= now.plus(bounds.window)
    }

    /// Counts one more attempt. An old counter starts again at zero.
    pub fn again(before: Option<&Self>, asker: &str, now: Timestamp, bounds: &LoginThrottleLimits) -> Self {
        let lately = |it: &&Self| {
            // The count outlives the wait by one window. Otherwise an attacker could wait and start again at zero.
            let kept = bounds.wait(it.failed).saturating_add(bounds.window);
            now < it.last.plus(kept) && it.is_of_this_clock(bounds, now)
        };
        let counted = before.filter(lately).map_or(0, |it| it.failed);
        // The attempt counts before its result is known, so concurrent attempts cannot bypass the limit.
        Self { asker: asker.to_owned(), failed: counted.saturating_add(1), last: now }
    }

    /// Returns the counter without the last attempt, because it was not a failure.
    pub fn taken_back(&self) -> Self {
        Self { failed: self.failed.saturating_sub(1), ..self.clone() }
    }

    /// Returns the counter at zero, after a successful sign-in.
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
    fn first_attempts_are_free_and_then_the_wait_doubles_up_to_the_window() {
        let waits: Vec<u64> = (0..8).map(|failed| BOUNDS.wait(failed).as_secs()).collect();
        assert_eq!(waits, [0, 0, 0, 30, 60, 90, 90, 90]);
        assert_eq!(BOUNDS.wait(u32::MAX), BOUNDS.window);
    }

    #[test]
    fn attempts_add_up_and_expire_one_window_after_the_wait() {
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
    fn clock_that_was_ahead_causes_no_wait() {
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
