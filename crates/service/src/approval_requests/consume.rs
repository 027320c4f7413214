//! Uses an approval once, cancels a request, and records the outcome of a call.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_adapters::random;
use countersign_domain::identity::account::Token;
use countersign_domain::platform::idempotency::IdempotencyKey;
use countersign_domain::primitives::id::WriteId;
use countersign_domain::reviews::Hold;
use countersign_domain::threads::approval_request::{ApprovalRequestError, CallOutcome, CallStatus, NOTE_CHARS_MAX};
use countersign_domain::threads::thread::WriteKey;
use countersign_store::record::Stored;
use sha2::{Digest as _, Sha256};

use super::ApprovalRequests;
use super::view::{ApprovalRequestView, RequestDecision, RequestStatus};
use crate::error::{Error, Result};
use crate::writes::verify::VerifyInput;

/// The beginning of the names of reservations for calls that the gateway sends.
const GUARDED: &str = "guarded-";

/// A used approval.
#[derive(Clone, Debug)]
pub struct ConsumedRequest {
    pub view: ApprovalRequestView,
    /// The signed answer of `verify`.
    pub verification: String,
    /// Whether an earlier request with this key got the same answer.
    pub is_again: bool,
}

impl ApprovalRequests {
    /// Uses an approval. A durable reservation exists before this returns, so that the call runs at most once. The same
    /// key again gets the same answer while the lease is valid.
    pub async fn consume(&self, token: &Stored<Token>, id: &str, key: &IdempotencyKey) -> Result<ConsumedRequest> {
        self.consume_as(token, id, write_id_of(id, key)).await
    }

    /// Uses an approval for a call that the gateway itself sends to the tool's server.
    pub async fn consume_in_guard(&self, token: &Stored<Token>, id: &str) -> Result<ConsumedRequest> {
        let name = format!("{GUARDED}{}", random::uuid_v4());
        self.consume_as(token, id, WriteId::try_from(name).expect("a prefix and a UUID are a name")).await
    }

    /// Uses an approval by the reservation of this name.
    pub(super) async fn consume_as(
        &self,
        token: &Stored<Token>,
        id: &str,
        write_id: WriteId,
    ) -> Result<ConsumedRequest> {
        let keys = self.core.keys()?;
        let own = self.own(&keys, &token.record, id).await?;
        let earlier = self.use_of(&keys, &own.thread).await?;
        let is_again = earlier.is_some();
        if let Some(earlier) = earlier {
            let mine = WriteKey { principal: token.record.principal(), write_id: write_id.clone() };
            // After the lease the outcome is unknown, so the call must not run again.
            if earlier.key != mine || !earlier.is_live(self.core.now()) {
                return Err(ApprovalRequestError::AlreadyConsumed.into());
            }
        }
        let own_id = own.thread.id.clone();
        let view = self.view_of(token, own, None).await?;
        let decision = usable(view.decision.as_ref())?;
        let ask = VerifyInput {
            thread: own_id.clone(),
            transition: decision.transition.ok_or(ApprovalRequestError::NotApproved)?,
            receipt: decision.receipt.clone(),
            write_id,
            expect: Vec::new(),
        };
        let allowed = match self.writes.verify_until(token, &ask, decision.expires_at).await {
            // An equal call used the approval since the first look. It may have ended, which closes the thread.
            Err(Error::Denied(_)) if !is_again && self.core.thread(&keys, &own_id).await?.record.fence > 0 => {
                return Err(ApprovalRequestError::AlreadyConsumed.into());
            }
            allowed => allowed?,
        };
        let view = ApprovalRequestView { consumed_at: Some(allowed.write.reserved_at), ..view };
        Ok(ConsumedRequest { view, verification: allowed.write.verification, is_again: allowed.replayed })
    }

    /// Cancels a request that is not decided yet.
    pub async fn cancel(&self, token: &Stored<Token>, id: &str) -> Result<ApprovalRequestView> {
        let view = self.view(token, id).await?;
        match view.decision.map(|it| it.status) {
            None => {}
            Some(RequestStatus::Cancelled) => return self.view(token, id).await,
            Some(_) => return Err(ApprovalRequestError::AlreadyDecided.into()),
        }
        let keys = self.core.keys()?;
        let held = self.own(&keys, &token.record, id).await?.thread.hold.ok_or(ApprovalRequestError::AlreadyDecided)?;
        let hold: Stored<Hold> = self.core.need(&keys, held.as_str(), "review").await?;
        let cancelled = self.threads.cancel(token, hold.record.transition, "the agent cancelled the request").await;
        match cancelled {
            Ok(()) => self.view(token, id).await,
            // Reviewers or the deadline were faster.
            Err(Error::Expired | Error::WrongState(_)) => Err(ApprovalRequestError::AlreadyDecided.into()),
            Err(other) => Err(other),
        }
    }

    /// Records the outcome of a call. The first report counts. An agent cannot report about a call that the gateway sent.
    pub async fn report(
        &self,
        token: &Stored<Token>,
        id: &str,
        status: CallStatus,
        note: Option<String>,
    ) -> Result<ApprovalRequestView> {
        self.report_if(token, id, status, note, |it| !is_guarded(it)).await
    }

    /// Records the outcome of a call that the gateway sent.
    pub async fn report_in_guard(
        &self,
        token: &Stored<Token>,
        id: &str,
        status: CallStatus,
        note: String,
    ) -> Result<()> {
        self.report_if(token, id, status, Some(note), is_guarded).await.map(|_| ())
    }

    async fn report_if(
        &self,
        token: &Stored<Token>,
        id: &str,
        status: CallStatus,
        note: Option<String>,
        may_report: fn(&WriteId) -> bool,
    ) -> Result<ApprovalRequestView> {
        if note.as_ref().is_some_and(|it| it.is_empty() || it.chars().count() > NOTE_CHARS_MAX) {
            return Err(Error::invalid("/note", format!("`note` must have 1 to {NOTE_CHARS_MAX} characters")));
        }
        let keys = self.core.keys()?;
        let own = self.own(&keys, &token.record, id).await?;
        let same = |it: &CallOutcome| it.status == status && it.note == note;
        if let Some(earlier) = &own.request.outcome {
            return if same(earlier) {
                self.view(token, id).await
            } else {
                Err(ApprovalRequestError::OutcomeDiffers.into())
            };
        }
        let used = self.use_of(&keys, &own.thread).await?.ok_or(ApprovalRequestError::NotConsumed)?;
        if used.key.principal != token.record.principal() || !may_report(&used.key.write_id) {
            return Err(ApprovalRequestError::NotConsumed.into());
        }
        let call = CallOutcome { status, note: note.clone(), at: self.core.now() };
        self.writes.report_call(token, &used.key.write_id, &call).await?;
        let view = self.view(token, id).await?;
        // An administrator or a concurrent report was faster.
        if view.outcome().is_some_and(same) { Ok(view) } else { Err(ApprovalRequestError::OutcomeDiffers.into()) }
    }
}

/// Returns the decision if the approval can be used. `verify` checks it again on the rows of its commit.
fn usable(decision: Option<&RequestDecision>) -> Result<&RequestDecision> {
    decision.filter(|it| it.status == RequestStatus::Approved).ok_or_else(|| ApprovalRequestError::NotApproved.into())
}

fn is_guarded(write: &WriteId) -> bool {
    write.as_str().starts_with(GUARDED)
}

/// Returns the id of the reservation. It depends on the request, so one key of two requests names two reservations.
pub(super) fn write_id_of(id: &str, key: &IdempotencyKey) -> WriteId {
    let hash = Sha256::new().chain_update(id).chain_update([0]).chain_update(key.as_str()).finalize();
    WriteId::try_from(format!("call-{}", URL_SAFE_NO_PAD.encode(hash))).expect("a prefix and base64url are a name")
}
