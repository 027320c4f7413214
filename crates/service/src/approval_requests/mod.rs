//! Approval requests: approvals of single tool calls, without threads.
//!
//! An instance of an agent asks, waits, uses the approval once and reports the outcome. Each request has a thread of
//! its own behind the scenes, so that a waiting call never blocks another one. The use is a reservation by `verify`, and
//! the outcome ends it.

pub mod ask;
mod consume;
mod equal_calls;
pub mod session_call;
pub mod view;

use std::sync::Arc;

use countersign_domain::identity::account::Token;
use countersign_domain::keys::Keys;
use countersign_domain::primitives::id::NodeId;
use countersign_domain::threads::approval_request::{self, ApprovalRequest};
use countersign_domain::threads::thread::Thread;
use countersign_store::record::Stored;

use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::platform::core::Core;
use crate::policies::Policies;
use crate::proposals::Proposals;
use crate::reviews::Reviews;
use crate::threads::Threads;
use crate::writes::Writes;
use crate::writes::verify::writer_node;

pub struct ApprovalRequests {
    pub(crate) core: Arc<Core>,
    pub(crate) policies: Arc<Policies>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) threads: Arc<Threads>,
    pub(crate) proposals: Arc<Proposals>,
    pub(crate) writes: Arc<Writes>,
    pub(crate) reviews: Arc<Reviews>,
}

impl ApprovalRequests {
    /// Returns the thread of a request. A request of another instance looks like a missing one.
    async fn own(&self, keys: &Keys, token: &Token, id: &str) -> Result<OwnRequest> {
        writer_node(token)?;
        let name = approval_request::thread_of(id).ok_or(MISSING)?;
        let stored = self.core.fetch::<Thread>(keys, name.as_str()).await?.ok_or(MISSING)?;
        let request = stored.record.request.clone().filter(|it| it.instance == token.principal()).ok_or(MISSING)?;
        Ok(OwnRequest { thread: stored.record, request: *request })
    }
}

/// The error for a request that does not exist, or that belongs to another instance.
const MISSING: Error = Error::NotFound("approval request");

/// A request of the instance that sent it, and its thread.
struct OwnRequest {
    thread: Thread,
    request: ApprovalRequest,
}

/// Returns the node of an instance.
fn node_of(token: &Stored<Token>) -> Result<&NodeId> {
    let wrong = "this token is not an instance. Create one with `countersign token add --role instance`";
    writer_node(&token.record).map_err(|_| Error::Forbidden(wrong))
}
