//! Stores when tokens, people and sessions were last seen.

use countersign_service::Service;
use countersign_service::error::Result;

/// Stores what is due. Returns how many rows.
pub async fn run_once(service: &Service) -> Result<usize> {
    service.identity.flush_last_seen().await
}
