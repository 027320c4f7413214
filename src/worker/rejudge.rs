//! Judges open items again after a policy activation, so that reviewers see the new terms at once.

use countersign_service::Service;
use countersign_service::error::Result;

/// Judges every pending review under an older policy again, and ends interrupts whose reviewers have changed.
/// Returns how many items it processed.
pub async fn run_once(service: &Service) -> Result<usize> {
    let holds = service.reviews.holds_to_rejudge().await?;
    let judged = super::each(holds, |review| async move { service.reviews.rejudge_hold(&review).await }).await;
    // A failed review must not stop the interrupts, so its error is returned at the end.
    let interrupts = service.interrupts.interrupts_to_rejudge().await?;
    Ok(super::each(interrupts, |id| async move { service.interrupts.end_interrupt_if_due(&id).await }).await? + judged?)
}
