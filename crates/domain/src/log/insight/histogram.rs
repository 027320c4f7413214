//! Histograms of decision times. A median of a million reviews needs no list of a million times.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The number of buckets per doubling of the time. A bucket is at most an eighth wider than its start. All arithmetic
/// is on integers, so an audit gets the same row.
const BUCKETS_PER_DOUBLING: u64 = 8;
const BITS: u32 = BUCKETS_PER_DOUBLING.trailing_zeros();

/// The upper limit, 139 years in milliseconds. It limits the number of buckets to about 320.
const MILLIS_MAX: u64 = (1 << 42) - 1;

/// Counts by duration.
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

/// Returns the start of a bucket and the start of the next one.
fn bounds(bucket: u16) -> (u64, u64) {
    let bucket = u64::from(bucket);
    let shift = (bucket / BUCKETS_PER_DOUBLING).saturating_sub(1);
    let begin = (bucket - shift * BUCKETS_PER_DOUBLING) << shift;
    (begin, begin + (1 << shift))
}

impl Histogram {
    /// Counts one duration.
    pub fn add(&mut self, took: Duration) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(MILLIS_MAX);
        *self.0.entry(bucket(millis)).or_insert(0) += 1;
    }

    /// Adds all counts of another histogram.
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

    /// Returns the approximate duration below which `percent` of the cases lie: the middle of a bucket, which is off by
    /// at most a sixteenth. Returns `None` without any case.
    pub fn quantile(&self, percent: u64) -> Option<Duration> {
        // The rank of the nearest case, at least the first one.
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
