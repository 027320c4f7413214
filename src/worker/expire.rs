//! Ends holds whose deadline has passed, so that agents who wait hear of it.

use crate::service::Service;
use crate::service::error::Result;

/// Ends every hold that is due; says how many.
pub async fn run_once(service: &Service) -> Result<usize> {
    super::each(service.holds_due().await?, |review| async move { service.expire_hold(&review).await }).await
}
