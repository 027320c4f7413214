//! Gives events their place in the log.

use crate::service::Service;
use crate::service::error::Result;

/// A run ends after so many batches, so that a busy gateway can still be stopped.
const BATCHES_MAX: usize = 100;

/// Gives every waiting event its place; says how many. Nothing to do where another sequencer works.
pub async fn run_once(service: &Service) -> Result<usize> {
    let mut placed = 0;
    for _ in 0..BATCHES_MAX {
        match service.sequence().await? {
            0 => break,
            more => placed += more,
        }
    }
    Ok(placed)
}
