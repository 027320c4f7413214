//! What an endpoint of each kind is sent for an event, and what counts as its having arrived.

use std::time::Duration;

use serde_json::json;

use super::Address;
use crate::domain::endpoint::delivery::{Attempt, Ended};
use crate::domain::endpoint::{Endpoint, EndpointKind, signing};
use crate::domain::id::EventId;
use crate::domain::inert;
use crate::domain::keys::Keys;
use crate::domain::time::Timestamp;
use crate::outgoing::{Outcome, Outgoing, Parcel};
use crate::service::Service;
use crate::service::error::Result;
use crate::service::events::Placed;

/// What an endpoint that is tried out is sent.
const TEST: &str = "endpoint.test";

/// What is done in one attempt.
pub enum Errand {
    /// One request. Any 2xx is its receiver's yes.
    Send(Parcel),
}

/// What became of it.
pub struct Report {
    /// How it ended.
    pub(super) ended: Ended,
    /// How long it took.
    pub(super) took: Duration,
    /// For how long its receiver wants to be left alone.
    pub(super) retry_after: Option<Duration>,
}

impl Errand {
    /// Does it, and waits for what becomes of it.
    pub async fn run(self, outgoing: &Outgoing) -> Report {
        match self {
            Self::Send(parcel) => outgoing.post(&parcel).await.into(),
        }
    }
}

impl Report {
    /// The attempt that was begun then.
    pub(super) fn attempt(self, at: Timestamp) -> Attempt {
        let took_ms = u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX);
        Attempt { at, took_ms, ended: self.ended }
    }
}

impl From<Outcome> for Report {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Answered(answer) => {
                let body = inert::printed(&String::from_utf8_lossy(&answer.body));
                let ended = Ended::Answered { status: answer.status, body, cut: answer.cut };
                Self { ended, took: answer.took, retry_after: answer.retry_after }
            }
            Outcome::Failed(failure) => {
                Self { ended: Ended::Failed { why: failure.why }, took: failure.took, retry_after: None }
            }
        }
    }
}

impl Service {
    /// What is done for an event, signed now where its kind is.
    pub(super) async fn errand(
        &self,
        (endpoint, address): (&Endpoint, &Address),
        placed: &Placed,
        now: Timestamp,
    ) -> Result<Errand> {
        let body = self.body_of(endpoint, placed).await?;
        match &endpoint.kind {
            EndpointKind::Webhook { .. } => {
                Ok(Errand::Send(signed(&*self.keys()?, (endpoint, address), (&placed.event.id, now), body)))
            }
        }
    }

    /// The body of an event, as every attempt has it.
    pub(super) async fn body_of(&self, endpoint: &Endpoint, placed: &Placed) -> Result<String> {
        match &endpoint.kind {
            EndpointKind::Webhook { payload } => self.payload_of(*payload, placed).await,
        }
    }
}

/// What is done to try an endpoint out; `id` is no event's.
pub(super) fn trial(keys: &Keys, (endpoint, address): (&Endpoint, &Address), (id, now): (&EventId, Timestamp)) -> Errand {
    match &endpoint.kind {
        EndpointKind::Webhook { .. } => {
            let data = json!({"endpoint": endpoint.id, "name": endpoint.name});
            let body = json!({"type": TEST, "timestamp": now, "data": data}).to_string();
            Errand::Send(signed(keys, (endpoint, address), (id, now), body))
        }
    }
}

fn signed(
    keys: &Keys,
    (endpoint, address): (&Endpoint, &Address),
    signed_as: (&EventId, Timestamp),
    body: String,
) -> Parcel {
    let headers = signing::headers(keys, &endpoint.id, &endpoint.secrets, signed_as, &body);
    address.parcel(headers, body)
}
