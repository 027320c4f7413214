//! Logs leases that expired without an outcome from their writer.

use countersign_service::Service;
use countersign_service::error::Result;

/// Logs every expired lease that is not logged yet. Returns how many.
pub async fn run_once(service: &Service) -> Result<usize> {
    super::each(service.core.expired_leases().await?, |thread| async move {
        service.threads.log_expired_lease(&thread).await
    })
    .await
}
