//! Sends events to endpoints and tracks how far each endpoint has been served.
//!
//! A decision writes nothing for endpoints. Its change contains the event, and each delivery cursor reads the audit log
//! from its own position. The position moves in the change that records the result of an attempt. A crash therefore
//! loses nothing and repeats at most the deliveries in progress.

mod attempt_result;
mod chat;
pub mod cursor;
pub mod deliveries;
mod endpoint_headers;
mod endpoint_health;
pub mod endpoint_kind;
pub mod endpoints;
pub mod instances;
pub mod job;
pub(super) mod log_tail;
pub mod mail;
mod payload;
pub mod persist;
mod preflight;
pub mod request;
mod review_outcome;
pub mod tail_cache;
pub mod target;

use std::sync::Arc;

use countersign_adapters::http_client::HttpClient;

use crate::identity::Identity;
use crate::interrupts::Interrupts;
use crate::log::Log;
use crate::platform::core::Core;
use crate::reviews::Reviews;
use tail_cache::LogTail;

/// Webhooks, chat messages and mail.
pub struct Deliveries {
    core: Arc<Core>,
    identity: Arc<Identity>,
    log: Arc<Log>,
    reviews: Arc<Reviews>,
    interrupts: Arc<Interrupts>,
    outgoing: Option<HttpClient>,
    tail: LogTail,
}

impl Deliveries {
    pub(crate) fn new(
        core: &Arc<Core>,
        identity: &Arc<Identity>,
        log: &Arc<Log>,
        reviews: &Arc<Reviews>,
        interrupts: &Arc<Interrupts>,
        outgoing: Option<HttpClient>,
    ) -> Self {
        Self {
            core: Arc::clone(core),
            identity: Arc::clone(identity),
            log: Arc::clone(log),
            reviews: Arc::clone(reviews),
            interrupts: Arc::clone(interrupts),
            outgoing,
            tail: LogTail::default(),
        }
    }
}
