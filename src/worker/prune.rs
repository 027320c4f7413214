//! Forgets deliveries and kept answers that are old. The log forgets nothing.

use crate::service::Service;
use crate::service::error::Result;

/// A run ends after so many batches, so that a busy gateway can still be stopped.
const BATCHES_MAX: usize = 100;

/// Forgets what is old enough; says how much.
pub async fn run_once(service: &Service) -> Result<usize> {
    let mut forgotten = 0;
    for _ in 0..BATCHES_MAX {
        match service.forget_deliveries(service.deliveries_kept()).await? + service.prune_responses().await? {
            0 => break,
            more => forgotten += more,
        }
    }
    Ok(forgotten)
}
