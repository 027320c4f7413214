//! JSON of endpoints and deliveries.

use countersign_domain::delivery::delivery_record::{AttemptOutcome, Delivery, DeliveryAttempt, DeliveryState, OVER};
use countersign_domain::delivery::endpoint::EndpointState;
use countersign_domain::delivery::endpoint_kind::EndpointKind;
use countersign_domain::primitives::secret::Secret;
use countersign_service::delivery::endpoints::EndpointDetails;
use serde_json::{Value, json};

/// How much of an endpoint's URL is shown. A URL can be a secret: anyone with a chat's webhook URL can post to the
/// chat.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AddressDisclosure {
    /// For tokens and accounts that manage endpoints.
    Whole,
    Origin,
}

/// Returns an endpoint as JSON, without secrets. Additional headers are listed by name only.
pub fn endpoint_json(told: &EndpointDetails, address: AddressDisclosure) -> Value {
    let shown = |it: &Secret<String>| (address == AddressDisclosure::Whole).then(|| it.expose().clone());
    let EndpointDetails { endpoint, url, look, lane, beyond, public_keys } = told;
    let signed = endpoint.kind.is_signed();
    let (state, why, since) = match endpoint.state {
        EndpointState::Enabled {} => ("enabled", None, None),
        EndpointState::Disabled { at, why } => ("disabled", Some(why), Some(at)),
        EndpointState::Removed { at } => ("removed", None, Some(at)),
    };
    let before_until = endpoint.secrets.before.as_ref().map(|it| it.until);
    let mut answer = json!({
        "id": endpoint.id, "name": endpoint.name, "kind": endpoint.kind.name().as_str(), "url": shown(url),
        "origin": endpoint.origin, "events": endpoint.events, "flows": endpoint.flows, "ordered": endpoint.ordered,
        // The values of headers are often credentials, so only their names are returned.
        "headers": endpoint.headers.keys().collect::<Vec<_>>(),
        "state": state, "why": why, "since": since, "reached": lane.reached, "beyond": beyond,
        "failing_since": lane.failing_since, "arrived_at": lane.arrived_at, "failed_at": lane.failed_at,
        "created_at": endpoint.created_at, "created_by": endpoint.created_by,
    });
    if signed {
        answer["public_keys"] = json!(public_keys);
        answer["secret_made_at"] = json!(endpoint.secrets.now.made_at);
        answer["secret_before_until"] = json!(before_until);
    }
    match &endpoint.kind {
        EndpointKind::Webhook { payload } => answer["payload"] = json!(payload),
        EndpointKind::LangGraph { assistant } => answer["assistant"] = json!(assistant),
        EndpointKind::Resume { template } => {
            answer["template"] = json!({"body": template.body});
            if let Some((it, url)) = template.look.as_ref().zip(look.as_ref()) {
                answer["template"]["look"] = json!({"url": shown(url), "pointer": it.pointer, "waiting": it.waiting});
            }
        }
        EndpointKind::Instance { receiver } => answer["instance"] = json!(receiver.instance),
        EndpointKind::Chat { .. } => (),
    }
    answer
}

/// Returns a delivery as JSON.
pub fn delivery_json(delivery: &Delivery) -> Value {
    let due = match delivery.state {
        DeliveryState::Waiting { due, .. } => Some(due),
        _ => None,
    };
    json!({
        "delivery": delivery.index, "event": delivery.event, "type": delivery.kind, "thread": delivery.thread,
        "state": delivery.state.as_str(), "due": due, "ended_at": delivery.state.ended_at(), "tries": delivery.tries,
        "attempts": delivery.attempts.iter().map(attempt_json).collect::<Vec<_>>(),
    })
}

pub fn attempt_json(attempt: &DeliveryAttempt) -> Value {
    let mut told = json!({"at": attempt.at, "took_ms": attempt.took_ms, "arrived": attempt.ended.arrived()});
    match &attempt.ended {
        AttemptOutcome::Answered { status, body, cut } => {
            told["status"] = json!(status);
            told["answer"] = json!(body);
            told["answer_cut"] = json!(cut);
        }
        AttemptOutcome::Looked { status, saw } => {
            told["status"] = json!(status);
            told["looked"] = json!(saw);
            told["detail"] = json!(saw.sentence());
        }
        AttemptOutcome::Over {} => told["detail"] = json!(OVER),
        AttemptOutcome::Failed { why } => {
            told["failure"] = json!(why);
            told["detail"] = json!(why.sentence());
        }
    }
    told
}
