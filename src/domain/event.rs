//! Events: every fact, once, in the order a thread saw them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::chain::hash::{Digest, Tag};
use super::id::{EventId, FlowId, ThreadId};
use super::json::canonical::canonical;
use super::time::Timestamp;

/// What happened. The names are the wire's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each is named as in docs/protocol.md, with its wire name beside it")]
pub enum EventType {
    #[serde(rename = "thread.created")]
    ThreadCreated,
    #[serde(rename = "thread.closed")]
    ThreadClosed,
    #[serde(rename = "thread.reopened")]
    ThreadReopened,
    #[serde(rename = "transition.committed")]
    TransitionCommitted,
    #[serde(rename = "transition.held")]
    TransitionHeld,
    #[serde(rename = "transition.rejected")]
    TransitionRejected,
    #[serde(rename = "transition.approved")]
    TransitionApproved,
    #[serde(rename = "transition.denied")]
    TransitionDenied,
    #[serde(rename = "transition.expired")]
    TransitionExpired,
    #[serde(rename = "transition.cancelled")]
    TransitionCancelled,
    #[serde(rename = "transition.superseded")]
    TransitionSuperseded,
    #[serde(rename = "review.vote")]
    ReviewVote,
    #[serde(rename = "review.withdrawn")]
    ReviewWithdrawn,
    #[serde(rename = "review.commented")]
    ReviewCommented,
    #[serde(rename = "review.reminded")]
    ReviewReminded,
    #[serde(rename = "review.escalated")]
    ReviewEscalated,
    #[serde(rename = "review.extended")]
    ReviewExtended,
    #[serde(rename = "review.revealed")]
    ReviewRevealed,
    #[serde(rename = "receipt.issued")]
    ReceiptIssued,
    #[serde(rename = "receipt.revoked")]
    ReceiptRevoked,
    #[serde(rename = "write.reserved")]
    WriteReserved,
    #[serde(rename = "write.confirmed")]
    WriteConfirmed,
    #[serde(rename = "write.aborted")]
    WriteAborted,
    #[serde(rename = "write.lapsed")]
    WriteLapsed,
    #[serde(rename = "write.resolved")]
    WriteResolved,
    #[serde(rename = "policy.proposed")]
    PolicyProposed,
    #[serde(rename = "policy.vote")]
    PolicyVote,
    #[serde(rename = "policy.ended")]
    PolicyEnded,
    #[serde(rename = "policy.activated")]
    PolicyActivated,
    #[serde(rename = "key.rotated")]
    KeyRotated,
    #[serde(rename = "access.account_added")]
    AccountAdded,
    #[serde(rename = "access.account_changed")]
    AccountChanged,
    #[serde(rename = "access.password_changed")]
    PasswordChanged,
    #[serde(rename = "access.password_reset")]
    PasswordReset,
    #[serde(rename = "access.invited")]
    Invited,
    #[serde(rename = "access.reset_link_made")]
    ResetLinkMade,
    #[serde(rename = "access.link_withdrawn")]
    LinkWithdrawn,
    #[serde(rename = "access.account_disabled")]
    AccountDisabled,
    #[serde(rename = "access.account_enabled")]
    AccountEnabled,
    #[serde(rename = "access.token_added")]
    TokenAdded,
    #[serde(rename = "access.token_revoked")]
    TokenRevoked,
    #[serde(rename = "access.setup_link_made")]
    SetupLinkMade,
    #[serde(rename = "access.setup_link_used")]
    SetupLinkUsed,
    #[serde(rename = "access.provider_asked")]
    ProviderAsked,
    #[serde(rename = "access.signed_in")]
    SignedIn,
    #[serde(rename = "access.sign_in_failed")]
    SignInFailed,
    #[serde(rename = "access.sign_in_slowed")]
    SignInSlowed,
    #[serde(rename = "access.unlocked")]
    Unlocked,
    #[serde(rename = "access.signed_out")]
    SignedOut,
    #[serde(rename = "access.passkey_added")]
    PasskeyAdded,
    #[serde(rename = "access.passkey_removed")]
    PasskeyRemoved,
    #[serde(rename = "access.passkey_refused")]
    PasskeyRefused,
    #[serde(rename = "access.delegated")]
    Delegated,
    #[serde(rename = "access.delegation_ended")]
    DelegationEnded,
    #[serde(rename = "access.halted")]
    Halted,
    #[serde(rename = "access.halt_lifting")]
    HaltLifting,
    #[serde(rename = "access.halt_lifted")]
    HaltLifted,
}

impl EventType {
    /// Its name on the wire: `transition.held`.
    pub fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(Value::String(name)) => name,
            _ => String::new(),
        }
    }
}

/// Where an event stands in its thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventLink {
    /// Dense from 1, in the thread's own order.
    pub seq: u64,
    /// The hash of the event there.
    pub hash: Digest,
}

/// One line of the log.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// The same on every delivery.
    pub id: EventId,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// When, by the gateway that did it.
    pub at: Timestamp,
    /// Under which flow, if one is concerned.
    pub flow: Option<FlowId>,
    /// In which thread, if one is concerned.
    pub thread: Option<ThreadId>,
    /// Its place in the thread; null outside threads.
    pub seq: Option<u64>,
    /// The hash of the thread's event before; null for the first.
    pub previous: Option<Digest>,
    /// The facts, redacted.
    pub data: Value,
}

impl Event {
    /// What the thread's row remembers of it.
    pub fn hash(&self) -> Digest {
        let value = serde_json::to_value(self).expect("an event is a plain struct with text keys");
        Digest::of(Tag::Event, &[canonical(&value).as_bytes()])
    }

    /// The link after this event, if it stands in a thread.
    pub fn link(&self) -> Option<EventLink> {
        self.seq.map(|seq| EventLink { seq, hash: self.hash() })
    }
}

/// An event before it has its place: a thread's numbers are given when its row is changed.
#[derive(Clone, PartialEq, Debug)]
pub struct Happening {
    /// What happened.
    pub kind: EventType,
    /// The facts, redacted.
    pub data: Value,
}

impl Happening {
    /// A fact of this kind.
    pub fn new(kind: EventType, data: Value) -> Self {
        Self { kind, data }
    }
}
