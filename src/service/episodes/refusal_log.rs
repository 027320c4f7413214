//! Remembers the refused envelopes that were recorded.

use countersign_domain::context::EnvelopeRefusalLog;
use std::sync::Mutex;

/// Refusals in this process.
#[derive(Debug, Default)]
pub(in crate::service) struct EnvelopeRefusals(pub(in crate::service) Mutex<EnvelopeRefusalLog>);
