//! Ends holds, amendments and interrupts whose deadline has passed, so that whoever waits hears of it.

use crate::service::Service;
use crate::service::error::Result;

/// Ends everything that is due; says how many.
pub async fn run_once(service: &Service) -> Result<usize> {
    // One that cannot be ended stands in the way of nothing else.
    let interrupts = service.interrupts_due().await?;
    let settled = super::each(interrupts, |id| async move { service.end_interrupt_if_due(&id).await }).await;
    let amendments = service.policy_changes_due().await?;
    let expired = super::each(amendments, |id| async move { service.expire_policy_change(&id).await }).await;
    let holds = service.holds_due().await?;
    let ended = super::each(holds, |review| async move { service.expire_hold(&review).await }).await;
    Ok(settled? + expired? + ended?)
}
