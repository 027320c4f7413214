//! Tool calls of an agent session, as hooks of the agent's program name them.
//!
//! Each call has an id, which names one use of an approval. A program repeats a call that was not decided in time with a new
//! id. So an equal call of the same session finds the request that waits. The session is part of the submission.

use countersign_domain::identity::account::Token;
use countersign_domain::keys::Keys;
use countersign_domain::platform::idempotency::IdempotencyKey;
use countersign_domain::primitives::id::WriteId;
use countersign_domain::threads::approval_request::{ApprovalRequestError, CallStatus, Submission, id_in};
use countersign_domain::threads::thread::WriteKey;
use countersign_domain::writes::write::Write;
use countersign_store::record::Stored;
use countersign_store::records::write_row_id;
use serde_json::{Map, Value};

use super::consume::{ConsumedRequest, write_id_of};
use super::view::ApprovalRequestView;
use super::{ApprovalRequests, MISSING};
use crate::error::Result;

/// The label under which uses are named. It has spaces, so it is the id of no request.
const USES: &str = "uses of session calls";

/// The note of a call whose arguments were changed after the approval.
const ALTERED: &str = "The call ran with other arguments than the approved ones. Another hook may have changed them.";

/// A tool call of a session.
#[derive(Clone, Debug)]
pub struct SessionCall {
    /// The name of the call.
    pub key: IdempotencyKey,
    pub submission: Submission,
}

/// The end of a call, as the agent's program reports it.
#[derive(Clone, Debug)]
pub struct SessionCallEnd {
    /// The name of the call.
    pub key: IdempotencyKey,
    /// The arguments with which the tool ran.
    pub arguments: Map<String, Value>,
    pub status: CallStatus,
    pub note: Option<String>,
}

impl ApprovalRequests {
    /// Asks for the approval of a call, or shares the request of an equal call of the session. The same call again gets
    /// the same request.
    pub async fn ask_in_session(&self, token: &Stored<Token>, call: &SessionCall) -> Result<ApprovalRequestView> {
        let keys = self.core.keys()?;
        if let Some(used) = self.use_in_session(&keys, token, &call.key).await? {
            return self.same_call(&keys, token, &used, call).await;
        }
        Ok(self.ask_shared(token, &call.key, &call.submission).await?.view)
    }

    /// Uses an approval for a call, once. The same call again gets the same answer while the lease is valid.
    pub async fn consume_in_session(
        &self,
        token: &Stored<Token>,
        id: &str,
        key: &IdempotencyKey,
    ) -> Result<ConsumedRequest> {
        self.consume_as(token, id, use_of(key)).await
    }

    /// Records how a call ended. A call that ran with other arguments than the approved ones is recorded as failed.
    pub async fn report_in_session(&self, token: &Stored<Token>, end: &SessionCallEnd) -> Result<ApprovalRequestView> {
        let keys = self.core.keys()?;
        let used = self.use_in_session(&keys, token, &end.key).await?.ok_or(ApprovalRequestError::NotConsumed)?;
        let id = id_in(&used.thread).ok_or(MISSING)?;
        if self.view(token, id).await?.call.arguments != end.arguments {
            return self.report(token, id, CallStatus::Failed, Some(ALTERED.to_owned())).await;
        }
        self.report(token, id, end.status, end.note.clone()).await
    }

    /// Returns the reservation of a call.
    async fn use_in_session(&self, keys: &Keys, token: &Stored<Token>, key: &IdempotencyKey) -> Result<Option<Write>> {
        let key = WriteKey { principal: token.record.principal(), write_id: use_of(key) };
        Ok(self.core.fetch::<Write>(keys, &write_row_id(&key)).await?.map(|it| it.record))
    }

    /// Returns the request that a call used, if the call is the same.
    async fn same_call(
        &self,
        keys: &Keys,
        token: &Stored<Token>,
        used: &Write,
        call: &SessionCall,
    ) -> Result<ApprovalRequestView> {
        let view = self.view(token, id_in(&used.thread).ok_or(MISSING)?).await?;
        let digest = call.submission.digest(&keys.salt().thread_secret(used.thread.as_str()));
        if view.request.submission == digest { Ok(view) } else { Err(ApprovalRequestError::KeyReused.into()) }
    }
}

/// Returns the name of the reservation of a call. It depends on the call alone, so a call uses one approval at most.
fn use_of(key: &IdempotencyKey) -> WriteId {
    write_id_of(USES, key)
}
