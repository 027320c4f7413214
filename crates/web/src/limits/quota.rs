//! Quotas for concurrent use, per caller and in total.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A quota for something that callers hold for a while.
#[derive(Clone)]
pub struct CallerQuota {
    of_one_max: usize,
    all_max: usize,
    taken: Arc<Mutex<QuotaUsage>>,
}

#[derive(Default)]
struct QuotaUsage {
    by_asker: HashMap<String, usize>,
    all: usize,
}

/// A part of the quota. Dropping it returns the part.
pub struct QuotaPermit {
    taken: Arc<Mutex<QuotaUsage>>,
    asker: String,
    much: usize,
}

impl CallerQuota {
    /// Creates a quota with a limit per caller and a total limit.
    pub fn new(of_one_max: usize, all_max: usize) -> Self {
        Self { of_one_max, all_max, taken: Arc::default() }
    }

    /// Takes one unit for this caller if one is left.
    pub fn take(&self, asker: &str) -> Option<QuotaPermit> {
        self.acquire_amount(asker, 1)
    }

    /// Takes several units. A caller that holds none may exceed its own limit, so that one large request is possible.
    pub fn acquire_amount(&self, asker: &str, much: usize) -> Option<QuotaPermit> {
        let taken = locked(&self.taken);
        let own = taken.by_asker.get(asker).copied().unwrap_or_default();
        // A first request always fits, so that one larger than the limit is not refused forever.
        let fits = |of: usize, max: usize| of == 0 || of.saturating_add(much) <= max;
        if !fits(taken.all, self.all_max) || !fits(own, self.of_one_max) {
            return None;
        }
        Some(self.given(taken, asker, much))
    }

    /// Takes several units without checking the limits.
    pub fn acquire_unchecked(&self, asker: &str, much: usize) -> QuotaPermit {
        self.given(locked(&self.taken), asker, much)
    }

    fn given(&self, mut taken: MutexGuard<'_, QuotaUsage>, asker: &str, much: usize) -> QuotaPermit {
        let own = taken.by_asker.entry(asker.to_owned()).or_default();
        // Saturation keeps an absurd length from wrapping round to a small one.
        *own = own.saturating_add(much);
        taken.all = taken.all.saturating_add(much);
        QuotaPermit { taken: Arc::clone(&self.taken), asker: asker.to_owned(), much }
    }

    /// Returns true if this caller, which may already hold some units, can get more.
    pub fn has_capacity(&self, asker: &str) -> bool {
        let taken = locked(&self.taken);
        let own = taken.by_asker.get(asker).copied().unwrap_or_default();
        // A caller without unread bytes is always admitted, so that others cannot block it.
        own == 0 || (own < self.of_one_max && taken.all < self.all_max)
    }
}

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        let mut taken = locked(&self.taken);
        taken.all = taken.all.saturating_sub(self.much);
        match taken.by_asker.get_mut(&self.asker) {
            Some(own) if *own > self.much => *own -= self.much,
            // Callers without units are removed, or the map would grow with every caller.
            _ => drop(taken.by_asker.remove(&self.asker)),
        }
    }
}

/// A poisoned lock is safe here: the counters are always consistent.
fn locked(taken: &Mutex<QuotaUsage>) -> MutexGuard<'_, QuotaUsage> {
    // A panic cannot leave the counts half changed, so a poisoned lock is still usable.
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_has_limits_per_caller_and_in_total() {
        let seats = CallerQuota::new(2, 3);
        let (first, second) = (seats.take("a").unwrap(), seats.take("a").unwrap());
        assert!(seats.take("a").is_none());
        let third = seats.take("b").unwrap();
        assert!(seats.take("b").is_none() && seats.take("c").is_none(), "all are taken");
        drop(first);
        let again = seats.take("a").unwrap();
        assert!(seats.take("a").is_none());
        drop((second, third, again));
        let long = seats.acquire_amount("a", 9).expect("alone, more than a share");
        assert!(seats.take("a").is_none() && seats.take("b").is_none());
        assert!(
            !seats.has_capacity("a") && seats.has_capacity("b"),
            "a caller without units is not delayed by another"
        );
        let more = seats.acquire_unchecked("b", 1);
        assert!(!seats.has_capacity("b"), "all are taken");
        drop((long, more));
        let left = locked(&seats.taken);
        assert!(left.by_asker.is_empty() && left.all == 0, "nobody is remembered who has none");
    }
}
