//! Writes down when tokens, people and sessions were last seen.

use crate::service::Service;
use crate::service::error::Result;

/// Writes what is due; says how much.
pub async fn run_once(service: &Service) -> Result<usize> {
    service.flush_last_seen().await
}
