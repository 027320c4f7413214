//! The state of an approval request, as its instance sees it.

use countersign_domain::chain::entry::Entry;
use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::jws::{self, TokenType};
use countersign_domain::identity::account::Token;
use countersign_domain::keys::Keys;
use countersign_domain::log::event::{Event, EventType};
use countersign_domain::primitives::id::ReviewId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::HoldState;
use countersign_domain::threads::approval_request::{ApprovalRequest, CallOutcome, id_in};
use countersign_domain::threads::rejected_request::RejectedRequest;
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::tool_call::Tool;
use countersign_domain::threads::transition::{Rejection, Transition};
use countersign_domain::writes::write::{Write, WriteState};
use countersign_store::record::Stored;
use countersign_store::records::event_alias;

use super::{ApprovalRequests, MISSING, OwnRequest};
use crate::error::{Error, Result};
use crate::proposals::allowed_call::AllowedCall;
use crate::reviews::decision::DecisionResponse;

/// The number of the event that records the first decision about the call. The first event is the thread's creation.
const DECIDING_EVENT: u64 = 2;

/// The most reviews that replace one another before a request is given up: edits, and new policies.
const SUPERSEDED_MAX: usize = 100;

/// An approval request.
#[derive(Clone, PartialEq, Debug)]
pub struct ApprovalRequestView {
    pub id: String,
    pub request: ApprovalRequest,
    pub call: Tool,
    pub reasoning: Option<String>,
    pub created_at: Timestamp,
    /// The decision, or `None` while reviewers decide.
    pub decision: Option<RequestDecision>,
    /// The pending review.
    pub review: Option<ReviewId>,
    /// The use of the approval.
    pub consumed_at: Option<Timestamp>,
    /// Whether the lease of the use has ended without a report.
    pub outcome_is_unknown: bool,
}

/// The decision on an approval request.
#[derive(Clone, PartialEq, Debug)]
pub struct RequestDecision {
    pub status: RequestStatus,
    /// The reason, from a reviewer or the policy.
    pub note: Option<String>,
    pub at: Timestamp,
    /// The end of an approval.
    pub expires_at: Option<Timestamp>,
    /// The receipt, if reviewers approved.
    pub receipt: Option<String>,
    /// The decided transition. A policy's denial has none.
    pub transition: Option<Digest>,
}

/// How a request was decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestStatus {
    Approved,
    Denied,
    /// The review ended without a decision, because the flow has a new policy or the thread was closed.
    SetAside,
    Expired,
    Cancelled,
}

impl RequestStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            // The protocol has no status of its own for this.
            Self::Denied | Self::SetAside => "denied",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }
}

impl ApprovalRequestView {
    /// Returns the tool's name at its server.
    pub fn tool(&self) -> &str {
        let name = self.call.name.as_str();
        let server = self.request.server.as_deref();
        server.and_then(|it| name.strip_prefix(it)?.strip_prefix(':')).unwrap_or(name)
    }

    pub fn outcome(&self) -> Option<&CallOutcome> {
        self.request.outcome.as_ref()
    }
}

/// A call as it was sent, for a response to the request that sends it.
pub(super) struct SubmittedCall {
    pub(super) call: Tool,
    pub(super) reasoning: Option<String>,
}

/// The call of a request with its decision.
struct DecidedCall {
    call: Tool,
    reasoning: Option<String>,
    decision: Option<RequestDecision>,
}

impl ApprovalRequests {
    /// Returns the page of the pending review.
    pub fn page(&self, view: &ApprovalRequestView) -> Option<String> {
        view.review.as_ref().map(|it| format!("{}/reviews/{it}", self.core.public_url()))
    }

    /// Returns a request of the instance that sent it.
    pub async fn view(&self, token: &Stored<Token>, id: &str) -> Result<ApprovalRequestView> {
        let own = self.own(&*self.core.keys()?, &token.record, id).await?;
        self.view_of(token, own, None).await
    }

    pub(super) async fn view_of(
        &self,
        token: &Stored<Token>,
        own: OwnRequest,
        sent: Option<SubmittedCall>,
    ) -> Result<ApprovalRequestView> {
        let keys = self.core.keys()?;
        let event = self.first_event_of(&own.thread).await?.ok_or(MISSING)?;
        let decided = match event.kind {
            EventType::TransitionRejected => self.rejected(&keys, &own.request, &event, sent).await?,
            _ => self.judged(&keys, token, &event).await?,
        };
        let used = self.use_of(&keys, &own.thread).await?;
        let now = self.core.now();
        let is_unreported = |it: &Write| matches!(it.state, WriteState::Reserved {} | WriteState::Resolved { .. });
        let outcome_is_unknown =
            own.request.outcome.is_none() && used.as_ref().is_some_and(|it| is_unreported(it) && !it.is_live(now));
        Ok(ApprovalRequestView {
            id: id_in(&own.thread.id).ok_or(MISSING)?.to_owned(),
            request: own.request,
            call: decided.call,
            reasoning: decided.reasoning,
            created_at: own.thread.created_at,
            review: own.thread.hold,
            decision: decided.decision,
            consumed_at: used.map(|it| it.reserved_at),
            outcome_is_unknown,
        })
    }

    /// Returns the event with which the policy judged the call, if it has.
    pub(super) async fn first_event_of(&self, thread: &Thread) -> Result<Option<Event>> {
        let keys = self.core.keys()?;
        let alias = event_alias(&thread.id, DECIDING_EVENT);
        Ok(self.core.reader(&keys).get_by_alias::<Event>(&alias).await?.map(|it| it.record))
    }

    /// Returns the reservation that used the approval.
    pub(super) async fn use_of(&self, keys: &Keys, thread: &Thread) -> Result<Option<Write>> {
        if thread.fence == 0 {
            return Ok(None);
        }
        let alias = event_alias(&thread.id, thread.fence);
        Ok(self.core.reader(keys).get_by_alias::<Write>(&alias).await?.map(|it| it.record))
    }

    /// Returns a call that the policy denied.
    async fn rejected(
        &self,
        keys: &Keys,
        request: &ApprovalRequest,
        event: &Event,
        sent: Option<SubmittedCall>,
    ) -> Result<DecidedCall> {
        let identity = event.data["identity"].as_str().unwrap_or_default();
        let rejection = self.core.need::<Rejection>(keys, identity, "approval request").await?.record;
        // A rejected call with a redacted value is not stored, so it cannot be returned later.
        let stored = || rejection.request.as_deref().and_then(RejectedRequest::read).and_then(|it| it.tool);
        let (call, reasoning) = match sent {
            Some(sent) => (sent.call, sent.reasoning),
            None => (stored().ok_or(MISSING)?, request.reasoning.clone()),
        };
        let shown = rejection.errors.iter().enumerate().filter(|(index, _)| !rejection.hidden.contains(index));
        let note = shown.map(|(_, it)| it.detail.clone()).next();
        let decision = RequestDecision {
            status: RequestStatus::Denied,
            note: note.filter(|it| !it.is_empty()),
            at: rejection.at,
            expires_at: None,
            receipt: None,
            transition: None,
        };
        Ok(DecidedCall { call, reasoning, decision: Some(decision) })
    }

    /// Returns a call that the policy committed or held, with its latest decision.
    async fn judged(&self, keys: &Keys, token: &Stored<Token>, event: &Event) -> Result<DecidedCall> {
        let mut digest = digest_of(event)?;
        if event.kind == EventType::TransitionCommitted {
            return self.allowed(keys, digest).await;
        }
        let reader = &self.identity.reader_with(&token.record).await?;
        for _ in 0..SUPERSEDED_MAX {
            let (_, decision) = self.reviews.decision(digest, reader).await?;
            match decision.as_ref().and_then(|it| it.superseded_by) {
                Some(next) => digest = next,
                None => return self.decided(keys, digest, decision).await,
            }
        }
        Err(Error::Broken("the reviews of an approval request"))
    }

    /// Returns a call that the policy committed without approval.
    async fn allowed(&self, keys: &Keys, digest: Digest) -> Result<DecidedCall> {
        let transition = self.threads.transition(keys, digest).await?;
        let policy = self.policies.policy(keys, transition.statement.policy).await?;
        let at = committed_at(&transition).ok_or(Error::Broken("a decision"))?;
        let decision = allowed_decision(&AllowedCall { transition: digest, policy, committed_at: at });
        let (call, reasoning) = (transition.tool.ok_or(Error::Erased)?, transition.rationale);
        Ok(DecidedCall { call, reasoning, decision: Some(decision) })
    }

    async fn decided(&self, keys: &Keys, digest: Digest, decision: Option<DecisionResponse>) -> Result<DecidedCall> {
        let transition = self.threads.transition(keys, digest).await?;
        let call = transition.tool.clone().ok_or(Error::Erased)?;
        let reasoning = transition.rationale.clone();
        let decision = match decision {
            Some(decision) => Some(self.request_decision(keys, &transition, decision).await?),
            None => None,
        };
        Ok(DecidedCall { call, reasoning, decision })
    }

    async fn request_decision(
        &self,
        keys: &Keys,
        transition: &Transition,
        decision: DecisionResponse,
    ) -> Result<RequestDecision> {
        let hold = self.threads.hold_of(keys, transition.digest).await?.map(|it| it.record);
        let state = hold.map(|it| it.state).ok_or(Error::Broken("a review"))?;
        let at = state.ended_at().ok_or(Error::Broken("a decision"))?;
        let status = match state {
            HoldState::Approved { .. } => RequestStatus::Approved,
            HoldState::Expired { .. } => RequestStatus::Expired,
            HoldState::Cancelled { .. } => RequestStatus::Cancelled,
            HoldState::Denied { .. } => RequestStatus::Denied,
            HoldState::Superseded { .. } | HoldState::Open {} => RequestStatus::SetAside,
        };
        let note = match decision.decision.as_str() {
            "superseded" => Some(
                "The request was set aside, because the flow has a new policy or its thread was closed. Ask again."
                    .to_owned(),
            ),
            _ => decision.comment,
        };
        Ok(RequestDecision {
            status,
            note: note.filter(|it| !it.is_empty()),
            at,
            expires_at: decision.expires_at,
            receipt: decision.receipt,
            transition: Some(transition.digest),
        })
    }
}

/// Returns a request whose call the policy has just committed.
pub(super) fn allowed_view(
    id: String,
    request: ApprovalRequest,
    sent: SubmittedCall,
    allowed: &AllowedCall,
) -> ApprovalRequestView {
    ApprovalRequestView {
        id,
        request,
        call: sent.call,
        reasoning: sent.reasoning,
        created_at: allowed.committed_at,
        decision: Some(allowed_decision(allowed)),
        review: None,
        consumed_at: None,
        outcome_is_unknown: false,
    }
}

fn allowed_decision(allowed: &AllowedCall) -> RequestDecision {
    RequestDecision {
        status: RequestStatus::Approved,
        note: None,
        at: allowed.committed_at,
        expires_at: Some(allowed.committed_at.plus(allowed.policy.approval().receipt_ttl())),
        receipt: None,
        transition: Some(allowed.transition),
    }
}

fn digest_of(event: &Event) -> Result<Digest> {
    let text = event.data["transition"].as_str().unwrap_or_default();
    Digest::try_from(text.to_owned()).map_err(|_| Error::Broken("an event"))
}

/// Returns the time at which a transition was committed. The gateway signed the entry itself, and its row is sealed.
fn committed_at(transition: &Transition) -> Option<Timestamp> {
    let entry = jws::read::<Entry>(transition.outcome.entry()?, TokenType::Entry).ok()?;
    Some(entry.claims_unverified().committed_at)
}
