//! The idempotency keys of requests that run in this process.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use countersign_domain::platform::idempotency::IdempotencyError;

use crate::error::Result;

/// The keys of requests that run in this process.
#[derive(Debug, Default)]
pub(crate) struct InFlightKeys(pub(crate) Mutex<HashSet<String>>);

impl InFlightKeys {
    pub(crate) fn begin(&self, id: &str) -> Result<ExecutionGuard<'_>> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if running.insert(id.to_owned()) {
            Ok(ExecutionGuard { running: self, id: id.to_owned() })
        } else {
            Err(IdempotencyError::Running.into())
        }
    }
}

/// Removes a key from [`InFlightKeys`] when its request ends.
pub(crate) struct ExecutionGuard<'a> {
    pub(crate) running: &'a InFlightKeys,
    pub(crate) id: String,
}

impl Drop for ExecutionGuard<'_> {
    fn drop(&mut self) {
        self.running.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// Long enough for a failure at night that is noticed on the next day.
pub const ANSWERS_KEPT: Duration = Duration::from_secs(24 * 3600);
