//! Remembers the last lines of the log for all endpoints.

use std::collections::BTreeMap;
use std::sync::Arc;

use countersign_domain::delivery::endpoint_kind::PayloadVersion;
use countersign_domain::delivery::signature::SignedBody;
use tokio::sync::Mutex;

use crate::log::sequencer::SequencedEvent;

/// A log line with its last serialized form.
pub(crate) struct TailLine {
    pub(crate) placed: SequencedEvent,
    pub(crate) said: Mutex<Option<(PayloadVersion, Arc<SignedBody>)>>,
}

impl TailLine {
    pub(crate) fn new(placed: SequencedEvent) -> Arc<Self> {
        Arc::new(Self { placed, said: Mutex::default() })
    }
}

/// Lines by log position. The log is append-only, so a cached line stays valid.
#[derive(Default)]
pub(crate) struct LogTail {
    pub(crate) lines: Mutex<BTreeMap<u64, Arc<TailLine>>>,
}
