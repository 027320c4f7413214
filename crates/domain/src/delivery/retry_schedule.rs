//! The retry schedule of deliveries.

use std::time::Duration;

/// The delay (backoff) before each attempt. After the last one, about three days later, the delivery is a dead letter.
/// Other webhook senders use similar schedules.
pub const DELAYS: [Duration; 10] = [
    Duration::ZERO,
    Duration::from_secs(5),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3600),
    Duration::from_secs(5 * 3600),
    Duration::from_secs(10 * 3600),
    Duration::from_secs(14 * 3600),
    Duration::from_secs(20 * 3600),
    Duration::from_secs(24 * 3600),
];

/// The limit of `retry-after`, so that a receiver cannot delay a delivery forever.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

/// The fraction of a delay that is added as jitter. Deliveries that failed together are then not repeated together.
const JITTER_PARTS: u32 = 5;

/// Returns the delay before the next attempt, or `None` after the last one. `chance` is any number.
pub fn delay(attempts: u32, chance: u32, retry_after: Option<Duration>) -> Option<Duration> {
    let planned = *DELAYS.get(attempts as usize)?;
    let jitter = planned / JITTER_PARTS * (chance % 1024) / 1024;
    let asked = retry_after.unwrap_or_default().min(RETRY_AFTER_MAX);
    // The receiver can lengthen the delay but not shorten it.
    Some((planned + jitter).max(asked))
}
