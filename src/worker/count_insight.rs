//! Counts events for Insight.

use countersign_service::Service;
use countersign_service::error::Result;

/// Batches in one run, so that a busy gateway can still stop.
const BATCHES_MAX: usize = 100;

/// Counts every event with a position that is not counted yet. Returns how many.
pub async fn run_once(service: &Service) -> Result<usize> {
    let mut counted = 0;
    for _ in 0..BATCHES_MAX {
        match service.log.count_events().await? {
            0 => break,
            more => counted += more,
        }
    }
    Ok(counted)
}
