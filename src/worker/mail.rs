//! Tells people by mail what waits for them.

use std::time::Duration;

use crate::mail::Mailer;
use crate::service::Service;
use crate::service::error::Result;

/// A run ends after so many batches, so that a busy gateway can still be stopped.
const BATCHES_MAX: usize = 20;

/// Writes down who is to be told, and tells those who are due; says how many letters were done with.
/// Nothing to do where another gateway tells.
pub async fn run_once(service: &Service, mailer: &Mailer, digests: Duration) -> Result<Option<usize>> {
    for _ in 0..BATCHES_MAX {
        if service.queue_mail(digests).await?.unwrap_or_default() == 0 {
            break;
        }
    }
    service.send_due_mail(|mail| async move { mailer.send(&mail).await }).await
}
