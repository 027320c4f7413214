//! Looks at what is open again after another policy was activated, so that people see at once what it asks.

use crate::service::Service;
use crate::service::error::Result;

/// Judges every open hold of an older policy again, and ends interrupts of which other people are to be asked by now; says
/// how many it looked at.
pub async fn run_once(service: &Service) -> Result<usize> {
    let holds = service.holds_to_rejudge().await?;
    let judged = super::each(holds, |review| async move { service.rejudge_hold(&review).await }).await;
    // One hold that cannot be judged stands in the way of nobody else.
    let interrupts = service.interrupts_to_rejudge().await?;
    Ok(super::each(interrupts, |id| async move { service.end_interrupt_if_due(&id).await }).await? + judged?)
}
