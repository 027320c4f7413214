//! Judges open holds again after another policy was activated, so that people see at once what it asks.

use crate::service::Service;
use crate::service::error::Result;

/// Judges every open hold of an older policy again; says how many.
pub async fn run_once(service: &Service) -> Result<usize> {
    let holds = service.holds_to_judge_again().await?;
    super::each(holds, |review| async move { service.judge_hold_again(&review).await }).await
}
