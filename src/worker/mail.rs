//! Sends email notifications.

use std::time::Duration;

use countersign_adapters::mail::Mailer;
use countersign_service::Service;
use countersign_service::error::Result;

/// Batches in one run, so that a busy gateway can still stop.
const BATCHES_MAX: usize = 20;

/// Queues the email notifications of new events, and sends those that are due. Returns how many were handled,
/// or `None` if another gateway is the leader.
pub async fn run_once(service: &Service, mailer: &Mailer, digests: Duration) -> Result<Option<usize>> {
    for _ in 0..BATCHES_MAX {
        if service.delivery.queue_mail(digests).await?.unwrap_or_default() == 0 {
            break;
        }
    }
    service.delivery.send_due_mail(|mail| async move { mailer.send(&mail).await }).await
}
