//! Builds the request for each kind of endpoint, and decides which responses count as success.

use std::time::Duration;

use countersign_adapters::http_client::{HttpClient, HttpOutcome, OutboundRequest};
use countersign_domain::delivery::chat::ChatMessage;
use countersign_domain::delivery::decision_payload::DecisionPayload;
use countersign_domain::delivery::delivery_record::AttemptOutcome;
use countersign_domain::delivery::endpoint::Endpoint;
use countersign_domain::delivery::endpoint_kind::EndpointKind;
use countersign_domain::delivery::langgraph;
use countersign_domain::delivery::preflight::PreflightResult;
use countersign_domain::delivery::signature::SignedBody;
use countersign_domain::delivery::template::filled_address;
use countersign_domain::keys::Keys;
use countersign_domain::log::event::Event;
use countersign_domain::platform::trace_parent::TraceParent;
use countersign_domain::primitives::id::EventId;
use countersign_domain::primitives::time::Timestamp;
use serde_json::json;

use super::attempt_result::AttemptReport;
use super::instances;
use super::preflight::PreflightedRequest;
use crate::delivery::Deliveries;
use crate::delivery::tail_cache::TailLine;
use crate::delivery::target::DeliveryTarget;
use crate::error::{Error, Result};
use crate::log::sequencer::SequencedEvent;

/// Event type of a test message.
const TEST: &str = "endpoint.test";

/// Placeholder for names that are known only after the preflight request.
const NAMED_BY_LOOK: &str = "(the interrupts that wait for this digest)";

/// Error for a value that would change the structure of a template.
const FILLED: Error = Error::Broken("what fills a template");

/// The action of one attempt.
pub enum DeliveryAction {
    /// One request. Any 2xx response is a success.
    Send(OutboundRequest),
    /// A request that is sent only if a preflight request shows that the receiver waits for it.
    LookFirst(Box<PreflightedRequest>),
    /// No request, because the event is no longer relevant.
    Over,
    /// A request that asks a LangGraph server for its assistant and resumes nothing.
    Search(OutboundRequest),
}

impl DeliveryAction {
    /// Performs the action and waits for the result.
    pub async fn run(self, outgoing: &HttpClient) -> AttemptReport {
        match self {
            Self::Send(parcel) => outgoing.post(&parcel).await.into(),
            Self::LookFirst(it) => it.run(outgoing).await,
            Self::Over => AttemptReport { ended: AttemptOutcome::Over {}, took: Duration::ZERO, retry_after: None },
            Self::Search(parcel) => match outgoing.post(&parcel).await {
                HttpOutcome::Answered(answer) => {
                    let saw = match answer.status {
                        200..=299 => langgraph::found(&answer.body),
                        _ => PreflightResult::Refused,
                    };
                    let ended = AttemptOutcome::Looked { status: answer.status, saw };
                    AttemptReport { ended, took: answer.took, retry_after: answer.retry_after }
                }
                failed @ HttpOutcome::Failed(_) => failed.into(),
            },
        }
    }
}

impl Deliveries {
    /// Returns true if an event is sent to this endpoint. An event that cannot be read is attempted, so that the
    /// failure is visible.
    pub(super) async fn is_for(&self, endpoint: &Endpoint, event: &Event) -> Result<bool> {
        match &endpoint.kind {
            EndpointKind::Webhook { .. } | EndpointKind::Chat { .. } => Ok(true),
            EndpointKind::LangGraph { .. } | EndpointKind::Resume { .. } => match self.review_ended(event).await {
                Ok(decided) => Ok(decided.is_some_and(|it| endpoint.kind.reaches(&it))),
                // A broken event fails visibly instead of being skipped.
                Err(error) if error.is_of_what_is_told() => Ok(true),
                Err(error) => Err(error),
            },
            EndpointKind::Instance { receiver } => self.is_of_instance(receiver, event).await,
        }
    }

    /// Returns the action for an event, signed now if its kind is signed.
    pub(super) async fn errand(
        &self,
        endpoint: &Endpoint,
        address: &DeliveryTarget,
        line: &TailLine,
        trace: Option<&TraceParent>,
        now: Timestamp,
    ) -> Result<DeliveryAction> {
        let placed = &line.placed;
        match &endpoint.kind {
            EndpointKind::Webhook { payload } => {
                let said = self.said(*payload, line, now).await?;
                Ok(DeliveryAction::Send(signed(&*self.core.keys()?, endpoint, address, &said).traced(trace)))
            }
            EndpointKind::LangGraph { assistant } => {
                let decided = self.decided_of(placed).await?;
                let look = PreflightedRequest::langgraph(address, assistant, decided);
                Ok(DeliveryAction::LookFirst(Box::new(look.ok_or(Error::Broken("the address of an agent server"))?)))
            }
            EndpointKind::Resume { template } => {
                let decided = self.decided_of(placed).await?;
                let url = filled_address(&address.url, &decided).ok_or(FILLED)?;
                let body = template.filled(&decided).ok_or(FILLED)?.to_string();
                let keys = self.core.keys()?;
                let stamped = SignedBody::new(&keys, &placed.event.id, now, body);
                let headers = stamped.headers(keys.row(), &endpoint.id, &endpoint.secrets);
                let parcel = address.parcel(url, headers.into(), stamped.body().to_owned());
                let parcel = parcel.traced(trace);
                // Without a preflight request, the run is resumed even if it no longer waits.
                match &template.look {
                    None => Ok(DeliveryAction::Send(parcel)),
                    Some(look) => {
                        let look = PreflightedRequest::template(address, look, &decided, Some(parcel)).ok_or(FILLED)?;
                        Ok(DeliveryAction::LookFirst(Box::new(look)))
                    }
                }
            }
            EndpointKind::Instance { receiver } => {
                let request = self.wake(endpoint, receiver, address, &placed.event).await?;
                Ok(request.map_or(DeliveryAction::Over, DeliveryAction::Send))
            }
            EndpointKind::Chat { chat } => match self.awaits_decision(&placed.event).await? {
                true => {
                    let note = self.chat_message(&placed.event).await?;
                    Ok(DeliveryAction::Send(address.plain(address.url.clone(), &chat.message(&note))))
                }
                // A message about a decided review would only confuse reviewers.
                false => Ok(DeliveryAction::Over),
            },
        }
    }

    /// Returns the body of an event as people see it.
    pub(super) async fn body_of(&self, endpoint: &Endpoint, placed: &SequencedEvent) -> Result<String> {
        match &endpoint.kind {
            EndpointKind::Webhook { payload } => self.payload_of(*payload, placed).await,
            EndpointKind::LangGraph { assistant } => {
                let decided = self.decided_of(placed).await?;
                // The names are not stored, so the page shows a placeholder.
                let name = decided.interrupt.clone().unwrap_or_else(|| NAMED_BY_LOOK.to_owned());
                Ok(langgraph::run(assistant, &[name], &decided).to_string())
            }
            EndpointKind::Resume { template } => {
                Ok(template.filled(&self.decided_of(placed).await?).ok_or(FILLED)?.to_string())
            }
            EndpointKind::Chat { chat } => Ok(chat.message(&self.chat_message(&placed.event).await?).to_string()),
            EndpointKind::Instance { receiver } => Ok(instances::resolved(receiver, &placed.event)?.body()),
        }
    }

    async fn decided_of(&self, placed: &SequencedEvent) -> Result<DecisionPayload> {
        self.review_ended(&placed.event).await?.ok_or(Error::Broken("the end of a review"))
    }
}

/// Returns the action that tests an endpoint. `id` belongs to no event.
pub(super) fn test_action(
    keys: &Keys,
    endpoint: &Endpoint,
    address: &DeliveryTarget,
    id: &EventId,
    now: Timestamp,
    gateway: &str,
) -> Result<DeliveryAction> {
    match &endpoint.kind {
        EndpointKind::Webhook { .. } => {
            let data = json!({"endpoint": endpoint.id, "name": endpoint.name});
            let body = json!({"type": TEST, "timestamp": now, "data": data}).to_string();
            Ok(DeliveryAction::Send(signed(keys, endpoint, address, &SignedBody::new(keys, id, now, body))))
        }
        EndpointKind::LangGraph { assistant } => {
            let url = langgraph::below(&address.url, &["assistants", "search"]);
            let url = url.ok_or(Error::Broken("the address of an agent server"))?;
            Ok(DeliveryAction::Search(address.plain(url, &langgraph::search(assistant))))
        }
        EndpointKind::Resume { template } => {
            let look = template.look.as_ref();
            let look =
                look.ok_or(Error::WrongState("this endpoint cannot be tested without a preflight request (`look`), because the test would resume a run"))?;
            // A real decision could resume a run.
            let decided = DecisionPayload::made_up(id);
            let look = PreflightedRequest::template(address, look, &decided, None).ok_or(FILLED)?;
            Ok(DeliveryAction::LookFirst(Box::new(look)))
        }
        EndpointKind::Instance { .. } => {
            Err(Error::WrongState("the receiver of an instance was verified when the instance was created"))
        }
        EndpointKind::Chat { chat } => {
            let page = format!("{gateway}/endpoints/{}", endpoint.id);
            let note = ChatMessage {
                title: "Test: Countersign posts pending reviews here".to_owned(),
                facts: Vec::new(),
                page,
            };
            Ok(DeliveryAction::Send(address.plain(address.url.clone(), &chat.message(&note))))
        }
    }
}

fn signed(keys: &Keys, endpoint: &Endpoint, address: &DeliveryTarget, said: &SignedBody) -> OutboundRequest {
    let headers = said.headers(keys.row(), &endpoint.id, &endpoint.secrets);
    address.parcel(address.url.clone(), headers.into(), said.body().to_owned())
}
