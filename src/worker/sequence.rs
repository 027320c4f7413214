//! Assigns log positions to events.

use countersign_service::Service;
use countersign_service::error::Result;

/// Batches in one run, so that a busy gateway can still stop.
const BATCHES_MAX: usize = 100;

/// Assigns a position to every waiting event. Returns how many. If another gateway is the leader, it does
/// nothing.
pub async fn run_once(service: &Service) -> Result<usize> {
    let mut placed = 0;
    for _ in 0..BATCHES_MAX {
        match service.log.sequence().await? {
            0 => break,
            more => placed += more,
        }
    }
    Ok(placed)
}
