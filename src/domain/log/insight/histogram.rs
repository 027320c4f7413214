//! How long decisions took, as counts in buckets: a median of a million needs no list of a million.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Each doubling of the time is divided into so many buckets, so that a bucket is at most an eighth wider than it
/// begins. Whole numbers throughout: whoever counts again comes to the same row.
const BUCKETS_PER_DOUBLING: u64 = 8;
const BITS: u32 = BUCKETS_PER_DOUBLING.trailing_zeros();

/// Longer is counted as this, 139 years in milliseconds: it bounds how many buckets there are, some 320.
const MILLIS_MAX: u64 = (1 << 42) - 1;

/// How often something took about so long.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histogram(BTreeMap<u16, u64>);

fn bucket(millis: u64) -> u16 {
    let millis = millis.min(MILLIS_MAX);
    let place = match millis.checked_ilog2() {
        Some(doubling) if doubling >= BITS => {
            let shift = u64::from(doubling - BITS);
            shift * BUCKETS_PER_DOUBLING + (millis >> shift)
        }
        _ => millis,
    };
    u16::try_from(place).expect("some 320 buckets are below the bound")
}

/// The first moment of a bucket, and the first after it.
fn bounds(bucket: u16) -> (u64, u64) {
    let bucket = u64::from(bucket);
    let shift = (bucket / BUCKETS_PER_DOUBLING).saturating_sub(1);
    let begin = (bucket - shift * BUCKETS_PER_DOUBLING) << shift;
    (begin, begin + (1 << shift))
}

impl Histogram {
    /// One more that took so long.
    pub fn add(&mut self, took: Duration) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(MILLIS_MAX);
        *self.0.entry(bucket(millis)).or_insert(0) += 1;
    }

    /// Everything in another, too.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.0 {
            *self.0.entry(*bucket).or_insert(0) += count;
        }
    }

    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// About how long it took at most in so many of a hundred cases: the middle of the bucket, which is off by a
    /// sixteenth at most. None if there are no cases.
    pub fn quantile(&self, percent: u64) -> Option<Duration> {
        let rank = (self.count() * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let (bucket, _) = self.0.iter().find(|(_, count)| {
            seen += *count;
            seen >= rank
        })?;
        let (begin, end) = bounds(*bucket);
        Some(Duration::from_millis(u64::midpoint(begin, end - 1)))
    }
}
