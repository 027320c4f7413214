//! Remembers the refused envelopes that were recorded.

use std::sync::Mutex;

use countersign_domain::context::EnvelopeRefusalLog;

/// Refusals in this process.
#[derive(Debug, Default)]
pub(crate) struct EnvelopeRefusals(pub(crate) Mutex<EnvelopeRefusalLog>);
