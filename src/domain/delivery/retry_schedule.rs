//! When a delivery is tried again.

use std::time::Duration;

/// Before each attempt. After the last one it is given up: three days, as receivers know it from others.
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

/// A receiver that asks for more time gets no more than this: its word must not park a delivery for ever.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

/// A delay is longer by up to this part of it, so that what failed together does not come back together.
const JITTER_PARTS: u32 = 5;

/// How long to wait before the next attempt, after so many; nothing if there is none any more. `chance` is any number.
pub fn delay(attempts: u32, chance: u32, retry_after: Option<Duration>) -> Option<Duration> {
    let planned = *DELAYS.get(attempts as usize)?;
    let jitter = planned / JITTER_PARTS * (chance % 1024) / 1024;
    let asked = retry_after.unwrap_or_default().min(RETRY_AFTER_MAX);
    Some((planned + jitter).max(asked))
}
