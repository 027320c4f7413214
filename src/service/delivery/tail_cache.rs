//! Remembers the last lines of the log for all endpoints.

use std::collections::BTreeMap;
use std::sync::Arc;

use countersign_domain::delivery::endpoint_kind::PayloadVersion;
use countersign_domain::delivery::signature::SignedBody;
use tokio::sync::Mutex;

use crate::service::log::sequencer::SequencedEvent;

/// A log line with its last serialized form.
pub(in crate::service) struct TailLine {
    pub(in crate::service) placed: SequencedEvent,
    pub(in crate::service) said: Mutex<Option<(PayloadVersion, Arc<SignedBody>)>>,
}

impl TailLine {
    pub(in crate::service) fn new(placed: SequencedEvent) -> Arc<Self> {
        Arc::new(Self { placed, said: Mutex::default() })
    }
}

/// Lines by log position. The log is append-only, so a cached line stays valid.
#[derive(Default)]
pub(in crate::service) struct LogTail {
    pub(in crate::service) lines: Mutex<BTreeMap<u64, Arc<TailLine>>>,
}
