//! Deletes old deliveries and stored responses. Events of the audit log are never deleted.

use countersign_service::Service;
use countersign_service::error::Result;

/// Batches in one run, so that a busy gateway can still stop.
const BATCHES_MAX: usize = 100;

/// Deletes everything that is old enough. Returns how many rows.
pub async fn run_once(service: &Service) -> Result<usize> {
    let mut forgotten = 0;
    for _ in 0..BATCHES_MAX {
        match service.delivery.forget_deliveries(service.delivery.deliveries_kept()).await?
            + service.core.prune_responses().await?
            + service.delivery.remove_ended_instances().await?
        {
            0 => break,
            more => forgotten += more,
        }
    }
    Ok(forgotten)
}
