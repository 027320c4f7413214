//! Events of the audit log. Each fact is recorded once, in the order of its thread.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chain::hash::{Digest, Tag};
use crate::json::canonical::canonical;
use crate::primitives::id::{EventId, FlowId, ThreadId};
use crate::primitives::time::Timestamp;

/// Declares the event types with their wire names.
macro_rules! events {
    ($($kind:ident = $name:literal,)*) => {
        /// The type of an event, with its wire name.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        pub enum EventType {
            $(#[serde(rename = $name)] $kind,)*
        }

        impl EventType {
            /// All event types.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Returns the wire name, such as `transition.held`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

events! {
    ThreadCreated = "thread.created",
    ThreadForked = "thread.forked",
    ThreadClosed = "thread.closed",
    ThreadReopened = "thread.reopened",
    ThreadArchived = "thread.archived",
    ThreadErased = "thread.erased",
    ThreadRestored = "thread.restored",
    TransitionCommitted = "transition.committed",
    TransitionHeld = "transition.held",
    TransitionRejected = "transition.rejected",
    TransitionApproved = "transition.approved",
    TransitionDenied = "transition.denied",
    TransitionExpired = "transition.expired",
    TransitionCancelled = "transition.cancelled",
    TransitionSuperseded = "transition.superseded",
    ReviewVote = "review.vote",
    ReviewWithdrawn = "review.withdrawn",
    ReviewCommented = "review.commented",
    ReviewReminded = "review.reminded",
    ReviewEscalated = "review.escalated",
    ReviewExtended = "review.extended",
    ReviewRevealed = "review.revealed",
    ReceiptIssued = "receipt.issued",
    ReceiptRevoked = "receipt.revoked",
    WriteReserved = "write.reserved",
    WriteConfirmed = "write.confirmed",
    WriteAborted = "write.aborted",
    WriteFailed = "write.failed",
    WriteLapsed = "write.lapsed",
    WriteResolved = "write.resolved",
    PolicyProposed = "policy.proposed",
    PolicyVote = "policy.vote",
    PolicyEnded = "policy.ended",
    PolicyActivated = "policy.activated",
    EpisodeEvent = "episode.event",
    EpisodeImported = "episode.imported",
    EnvelopeRefused = "envelope.refused",
    InterruptReceived = "interrupt.received",
    InterruptPosted = "interrupt.posted",
    InterruptVote = "interrupt.vote",
    InterruptApproved = "interrupt.approved",
    InterruptDenied = "interrupt.denied",
    InterruptExpired = "interrupt.expired",
    InterruptSuperseded = "interrupt.superseded",
    KeyRotated = "key.rotated",
    EndpointDisabled = "endpoint.disabled",
    EndpointRecovered = "endpoint.recovered",
    AccountAdded = "access.account_added",
    AccountChanged = "access.account_changed",
    PasswordChanged = "access.password_changed",
    PasswordReset = "access.password_reset",
    Invited = "access.invited",
    ResetLinkMade = "access.reset_link_made",
    LinkWithdrawn = "access.link_withdrawn",
    AccountDisabled = "access.account_disabled",
    AccountEnabled = "access.account_enabled",
    TokenAdded = "access.token_added",
    TokenRevoked = "access.token_revoked",
    PostSecretMade = "access.post_secret_made",
    EnvelopeSecretGiven = "access.envelope_secret_given",
    SetupLinkMade = "access.setup_link_made",
    SetupLinkUsed = "access.setup_link_used",
    ProviderAsked = "access.provider_asked",
    SignedIn = "access.signed_in",
    SignInFailed = "access.sign_in_failed",
    SignInSlowed = "access.sign_in_slowed",
    Unlocked = "access.unlocked",
    SignedOut = "access.signed_out",
    PasskeyAdded = "access.passkey_added",
    PasskeyRemoved = "access.passkey_removed",
    PasskeyRefused = "access.passkey_refused",
    Delegated = "access.delegated",
    DelegationEnded = "access.delegation_ended",
    EndpointAdded = "access.endpoint_added",
    EndpointChanged = "access.endpoint_changed",
    EndpointSecretMade = "access.endpoint_secret_made",
    EndpointRemoved = "access.endpoint_removed",
    Halted = "access.halted",
    HaltLifting = "access.halt_lifting",
    HaltLifted = "access.halt_lifted",
}

/// The position of an event in its thread's hash chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventLink {
    /// The sequence number in the thread: from 1, without gaps.
    pub seq: u64,
    /// The hash of the event.
    pub hash: Digest,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// The id. It is the same in every delivery.
    pub id: EventId,
    #[serde(rename = "type")]
    pub kind: EventType,
    /// The time by the clock of the gateway that made it.
    pub at: Timestamp,
    /// The flow, if the event belongs to one.
    pub flow: Option<FlowId>,
    /// The thread, if the event belongs to one.
    pub thread: Option<ThreadId>,
    /// The sequence number in the thread. Null outside threads.
    pub seq: Option<u64>,
    /// The hash of the thread's previous event. Null for the first one.
    pub previous: Option<Digest>,
    pub data: Value,
}

impl Event {
    /// Returns the hash that the thread's row stores.
    pub fn hash(&self) -> Digest {
        let value = serde_json::to_value(self).expect("an event is a plain struct with text keys");
        Digest::of(Tag::Event, &[canonical(&value).as_bytes()])
    }

    /// Returns the link to this event, if it belongs to a thread.
    pub fn link(&self) -> Option<EventLink> {
        self.seq.map(|seq| EventLink { seq, hash: self.hash() })
    }
}

/// An event before it has a sequence number, which is assigned when the thread's row changes.
#[derive(Clone, PartialEq, Debug)]
pub struct PendingEvent {
    pub kind: EventType,
    pub data: Value,
}

impl PendingEvent {
    pub fn new(kind: EventType, data: Value) -> Self {
        Self { kind, data }
    }
}
