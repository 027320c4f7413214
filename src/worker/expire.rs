//! Expires reviews, policy change requests and interrupts whose deadline has passed, so that waiting clients
//! are notified.

use countersign_service::Service;
use countersign_service::error::Result;

/// Expires everything that is due. Returns how many.
pub async fn run_once(service: &Service) -> Result<usize> {
    // A failure in one kind must not stop the others, so errors are returned at the end.
    let interrupts = service.interrupts.interrupts_due().await?;
    let settled = super::each(interrupts, |id| async move { service.interrupts.end_interrupt_if_due(&id).await }).await;
    let amendments = service.policy_changes.policy_changes_due().await?;
    let expired =
        super::each(amendments, |id| async move { service.policy_changes.expire_policy_change(&id).await }).await;
    let holds = service.core.holds_due().await?;
    let ended = super::each(holds, |review| async move { service.threads.expire_hold(&review).await }).await;
    Ok(settled? + expired? + ended?)
}
