//! The client of an exchange, for the guard.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_domain::identity::account::Token;
use countersign_mcp_guard::exchange::ExchangeClient;
use countersign_service::Stored;
use countersign_service::approval_requests::ApprovalRequests;

use crate::api::long_poll::LongPoll;
use crate::limits::sse::EventStreams;
use crate::state::Capability;

/// A token, and what it may do.
pub struct GatewayClient {
    /// The name of the server.
    pub server: String,
    pub token: Arc<Stored<Token>>,
    pub requests: Capability<ApprovalRequests>,
    pub waiting: LongPoll,
    pub streams: EventStreams,
}

#[async_trait]
impl ExchangeClient for GatewayClient {
    fn session_mark(&self, session: &str) -> Option<String> {
        self.requests.session_mark(&self.token.record, &self.server, session).ok()
    }

    async fn is_revoked(&self) -> bool {
        self.waiting.is_revoked(&self.token).await
    }

    async fn shut_down(&self) {
        self.streams.closed().await;
    }
}
