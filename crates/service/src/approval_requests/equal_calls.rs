//! Requests that equal calls of an instance share, so that a repeated call opens no second review.
//!
//! A call shares the latest request of equal calls while reviewers decide, with their approval until it is used, and with
//! their denial until the deadline. Otherwise it makes the next request. The id of the next request is derived from the
//! latest one, so calls at the same moment, also at other gateways, make the same request.

use countersign_domain::chain::denial::DenialCode;
use countersign_domain::identity::account::Token;
use countersign_domain::platform::idempotency::IdempotencyKey;
use countersign_domain::threads::approval_request::{CallSharing, Submission, id_after, id_in, thread_of};
use countersign_domain::threads::thread::Thread;
use countersign_store::Direction;
use countersign_store::record::Stored;
use countersign_store::records::equal_call_word;

use super::ask::{AskedRequest, IDS};
use super::view::{ApprovalRequestView, RequestStatus};
use super::{ApprovalRequests, MISSING};
use crate::error::{Error, Result};

/// How many of the latest requests of equal calls are compared with the key of a repeated call.
const LATEST_MAX: u32 = 8;

impl ApprovalRequests {
    /// Asks for the approval of a call, or shares the request of an equal call. The same key again returns the same
    /// request, or another one that equal calls share.
    pub async fn ask_shared(
        &self,
        token: &Stored<Token>,
        key: &IdempotencyKey,
        submission: &Submission,
    ) -> Result<AskedRequest> {
        let keys = self.core.keys()?;
        let (secret, instance) = (keys.salt().thread_secret(IDS), token.record.principal());
        let call = submission.equal_call(&secret, &instance);
        let own_id = self.request_id(&token.record, key)?;
        let sharing = CallSharing { call, own_id: own_id.clone() };
        let ask = |id: &str| self.ask_as(token, id.to_owned(), submission, Some(sharing.clone()));
        let word = equal_call_word(&sharing.call);
        let reader = self.core.reader(&keys);
        let (latest, _) = reader.labelled::<Thread>(&word, Direction::Backward, None, LATEST_MAX).await?;
        let own = thread_of(&own_id).ok_or(Error::Broken("an approval request's id"))?;
        // The label of the first equal call would be there too.
        if !latest.is_empty() && self.core.fetch::<Thread>(&keys, own.as_str()).await?.is_some() {
            return ask(&own_id).await;
        }
        if let Some(repeated) = latest.iter().find(|it| is_own(&it.record, &own_id)) {
            return ask(id_in(&repeated.record.id).ok_or(MISSING)?).await;
        }
        let latest = latest.first().map(|it| &it.record);
        let previous = latest.and_then(|it| id_in(&it.id));
        if let (Some(thread), Some(id)) = (latest, previous)
            && self.is_open(thread).await?
        {
            let asked = ask(id).await?;
            if self.can_share(&asked.view).await? {
                return Ok(asked);
            }
        }
        let next = ask(&id_after(&secret, &instance, &sharing.call, previous)).await?;
        let is_first = next.view.request.sharing.as_ref().is_some_and(|it| it.own_id == own_id);
        if is_first || self.can_share(&next.view).await? {
            return Ok(next);
        }
        // An equal call at the same moment was first, and the policy has decided. Each of them has a request of its own.
        ask(&own_id).await
    }

    /// Checks whether a request can still be decided or used. A request without a decision of the policy is completed by
    /// the next equal call, before the deadline.
    async fn is_open(&self, thread: &Thread) -> Result<bool> {
        if thread.fence > 0 {
            return Ok(false);
        }
        let is_due = thread.request.as_ref().is_none_or(|it| it.deadline <= self.core.now());
        Ok(!(is_due || thread.closed.is_some()) || self.first_event_of(thread).await?.is_some())
    }

    /// Checks whether an equal call can share a request.
    async fn can_share(&self, view: &ApprovalRequestView) -> Result<bool> {
        let (Some(decision), now) = (&view.decision, self.core.now()) else { return Ok(true) };
        Ok(match decision.status {
            RequestStatus::Approved => {
                let is_unused = view.consumed_at.is_none() && decision.expires_at.is_some_and(|it| now < it);
                match decision.transition.filter(|_| is_unused && decision.receipt.is_some()) {
                    // A new policy or a revoked receipt ends an approval. A halt ends later.
                    Some(it) => matches!(self.writes.stopped(it).await?, None | Some(DenialCode::Halted)),
                    None => false,
                }
            }
            // So an agent does not ask until a reviewer gives in.
            RequestStatus::Denied => decision.transition.is_some() && now < view.request.deadline,
            RequestStatus::SetAside | RequestStatus::Expired | RequestStatus::Cancelled => false,
        })
    }
}

/// Checks whether the key of a call names this request.
fn is_own(thread: &Thread, own_id: &str) -> bool {
    thread.request.as_ref().and_then(|it| it.sharing.as_ref()).is_some_and(|it| it.own_id == own_id)
}
