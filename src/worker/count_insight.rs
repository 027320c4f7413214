//! Counts what the log says, for Insight.

use crate::service::Service;
use crate::service::error::Result;

/// A run ends after so many batches, so that a busy gateway can still be stopped.
const BATCHES_MAX: usize = 100;

/// Counts every event that has its place and was not counted yet; says how many.
pub async fn run_once(service: &Service) -> Result<usize> {
    let mut counted = 0;
    for _ in 0..BATCHES_MAX {
        match service.count_events().await? {
            0 => break,
            more => counted += more,
        }
    }
    Ok(counted)
}
