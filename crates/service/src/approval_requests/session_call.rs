//! Tool calls of an agent session, as hooks of the agent's program name them.
//!
//! Each call has an id, which names one use of an approval. A program repeats a call that was not decided in time with a new
//! id. So an equal call of the same session finds the request that waits. The session is part of the submission.

use countersign_domain::identity::account::Token;
use countersign_domain::keys::Keys;
use countersign_domain::platform::idempotency::IdempotencyKey;
use countersign_domain::primitives::id::WriteId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::approval_request::{ApprovalRequestError, CallStatus, Submission, id_in, thread_of};
use countersign_domain::threads::thread::{Thread, WriteKey};
use countersign_domain::writes::write::Write;
use countersign_store::Direction;
use countersign_store::record::Stored;
use countersign_store::records::{session_call_word, write_row_id};
use serde_json::{Map, Value};

use super::ask::IDS;
use super::consume::{ConsumedRequest, write_id_of};
use super::view::{ApprovalRequestView, RequestStatus};
use super::{ApprovalRequests, MISSING};
use crate::error::{Error, Result};

/// The label under which uses are named. It has spaces, so it is the id of no request.
const USES: &str = "uses of session calls";

/// How many of the latest requests of equal calls are looked at. Only calls at the same moment can open a second one.
const EQUAL_MAX: u32 = 4;

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
    /// Asks for the approval of a call. An equal call of the session that waits, or that reviewers have decided, shares
    /// its request. The same call again gets the same request.
    pub async fn ask_in_session(&self, token: &Stored<Token>, call: &SessionCall) -> Result<ApprovalRequestView> {
        let keys = self.core.keys()?;
        if let Some(used) = self.use_in_session(&keys, token, &call.key).await? {
            return self.same_call(&keys, token, &used, call).await;
        }
        let own = self.request_id(&token.record, &call.key)?;
        let own = thread_of(&own).ok_or(Error::Broken("an approval request's id"))?;
        let digest = call.submission.session_call(&keys.salt().thread_secret(IDS), &token.record.principal());
        let is_new = self.core.fetch::<Thread>(&keys, own.as_str()).await?.is_none();
        if is_new && let Some(shared) = self.shared(&keys, token, &session_call_word(&digest)).await? {
            return Ok(shared);
        }
        Ok(self.ask_findably(token, &call.key, &call.submission, Some(digest)).await?.view)
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

    /// Returns the latest request of an equal call that this call can share.
    async fn shared(&self, keys: &Keys, token: &Stored<Token>, word: &str) -> Result<Option<ApprovalRequestView>> {
        let (equal, _) = self.core.reader(keys).labelled::<Thread>(word, Direction::Backward, None, EQUAL_MAX).await?;
        let now = self.core.now();
        for thread in &equal {
            let id = id_in(&thread.record.id).ok_or(MISSING)?;
            match self.view(token, id).await {
                Ok(view) if can_share(&view, now) => return Ok(Some(view)),
                // The policy denied a call with redacted arguments, or the call is not judged yet.
                Ok(_) | Err(Error::NotFound(_)) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(None)
    }
}

/// Checks whether an equal call can share a request: while reviewers decide, with their approval until it is used, and
/// with their denial until the deadline. So a repeated call neither opens a second review nor asks until someone gives in.
fn can_share(view: &ApprovalRequestView, now: Timestamp) -> bool {
    let Some(decision) = &view.decision else { return true };
    match decision.status {
        RequestStatus::Approved => {
            decision.receipt.is_some() && view.consumed_at.is_none() && decision.expires_at.is_some_and(|it| now < it)
        }
        RequestStatus::Denied => decision.transition.is_some() && now < view.request.deadline,
        RequestStatus::SetAside | RequestStatus::Expired | RequestStatus::Cancelled => false,
    }
}

/// Returns the name of the reservation of a call. It depends on the call alone, so a call uses one approval at most.
fn use_of(key: &IdempotencyKey) -> WriteId {
    write_id_of(USES, key)
}
