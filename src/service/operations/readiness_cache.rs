//! Remembers the result of the last readiness check.

use std::time::Instant;

use tokio::sync::Mutex;

use crate::store::outage::Outage;

/// The last check, and its outage.
#[derive(Debug, Default)]
pub(in crate::service) struct ReadinessCache(pub(in crate::service) Mutex<Option<(Instant, Option<Outage>)>>);
