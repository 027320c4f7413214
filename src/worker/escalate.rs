//! Records reminders and escalations that are due.

use countersign_service::Service;
use countersign_service::error::Result;

/// Records everything that is due. Returns the number of reviews.
pub async fn run_once(service: &Service) -> Result<usize> {
    super::each(service.core.reminders_due().await?, |review| async move { service.reviews.notice(&review).await })
        .await
}
