//! Rate limits with token buckets.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use countersign_domain::primitives::time::Timestamp;

/// The limit on stored buckets. Beyond it the fullest buckets are dropped, which only gives their callers more.
const ASKERS_MAX: usize = 50_000;

/// A bucket per caller. Each holds at most `burst` units and regains one every `interval`.
pub struct RateLimiter {
    burst: f64,
    interval: Duration,
    buckets: Mutex<HashMap<String, TokenBucket>>,
}

#[derive(Clone, Copy)]
struct TokenBucket {
    level: f64,
    at: Timestamp,
}

#[derive(Debug, PartialEq, Eq)]
pub struct RateLimited;

impl RateLimiter {
    /// Creates buckets of this size and rate.
    pub fn new(burst: u32, interval: Duration) -> Self {
        Self { burst: f64::from(burst), interval, buckets: Mutex::default() }
    }

    /// Takes a unit from the caller's bucket.
    pub fn take(&self, asker: &(impl Hash + ToString + ?Sized), now: Timestamp) -> Result<(), RateLimited> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= ASKERS_MAX {
            let burst = self.burst;
            // A full bucket equals a new one, so dropping it loses nothing.
            buckets.retain(|_, bucket| self.level(*bucket, now) < burst - 0.5);
        }
        let bucket = buckets.entry(asker.to_string()).or_insert(TokenBucket { level: self.burst, at: now });
        let level = self.level(*bucket, now);
        if level < 1.0 {
            return Err(RateLimited);
        }
        // A refused request takes nothing, so that retries do not extend the wait.
        *bucket = TokenBucket { level: level - 1.0, at: now };
        Ok(())
    }

    /// Returns a unit, for a request that should not count.
    pub fn give_back(&self, asker: &(impl Hash + ToString + ?Sized)) {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.get_mut(&asker.to_string()) {
            // The bucket may have refilled in the meantime, so the burst limits it here too.
            bucket.level = (bucket.level + 1.0).min(self.burst);
        }
    }

    fn level(&self, bucket: TokenBucket, now: Timestamp) -> f64 {
        // The minimum prevents a division by zero if the interval is zero.
        let refill = bucket.at.until(now).as_secs_f64() / self.interval.as_secs_f64().max(f64::EPSILON);
        // The burst is the ceiling, so that a long pause does not allow more than one burst.
        (bucket.level + refill).min(self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_empties_refills_and_belongs_to_one_caller() {
        let throttle = RateLimiter::new(2, Duration::from_secs(10));
        let at = |secs: i64| Timestamp::from_millis(secs * 1000);
        assert!(throttle.take("a", at(0)).is_ok() && throttle.take("a", at(0)).is_ok());
        assert_eq!(throttle.take("a", at(9)), Err(RateLimited));
        assert!(throttle.take("b", at(9)).is_ok());
        assert!(throttle.take("a", at(10)).is_ok());
        throttle.give_back("a");
        assert!(throttle.take("a", at(10)).is_ok());
        assert_eq!(throttle.take("a", at(0)), Err(RateLimited), "a clock that jumps back fills nothing");
    }
}
