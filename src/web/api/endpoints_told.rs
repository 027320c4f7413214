//! Endpoints and what was sent there, as machines are told it.

use serde_json::{Value, json};

use crate::domain::endpoint::delivery::{Attempt, Delivery, DeliveryState, Ended};
use crate::domain::endpoint::{EndpointKind, EndpointState};
use crate::service::sending::endpoints::EndpointTold;

/// An endpoint as machines are told it: no secret, and of its own headers the names.
pub fn endpoint_json(told: &EndpointTold) -> Value {
    let EndpointTold { endpoint, url, lane, beyond, public_keys } = told;
    let payload = match endpoint.kind {
        EndpointKind::Webhook { payload } => Some(payload),
    };
    let (state, why, since) = match endpoint.state {
        EndpointState::Enabled {} => ("enabled", None, None),
        EndpointState::Disabled { at, why } => ("disabled", Some(why), Some(at)),
        EndpointState::Removed { at } => ("removed", None, Some(at)),
    };
    let before_until = endpoint.secrets.before.as_ref().map(|it| it.until);
    json!({
        "id": endpoint.id, "name": endpoint.name, "kind": endpoint.kind.name().as_str(), "url": url.expose(), "payload": payload,
        "events": endpoint.events, "flows": endpoint.flows, "ordered": endpoint.ordered,
        "headers": endpoint.headers.keys().collect::<Vec<_>>(), "public_keys": public_keys,
        "secret_made_at": endpoint.secrets.now.made_at, "secret_before_until": before_until,
        "state": state, "why": why, "since": since, "reached": lane.reached, "beyond": beyond,
        "failing_since": lane.failing_since, "arrived_at": lane.arrived_at, "failed_at": lane.failed_at,
        "created_at": endpoint.created_at, "created_by": endpoint.created_by,
    })
}

/// A delivery as machines are told it.
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

/// How an attempt ended.
pub fn attempt_json(attempt: &Attempt) -> Value {
    let mut told = json!({"at": attempt.at, "took_ms": attempt.took_ms, "arrived": attempt.ended.arrived()});
    match &attempt.ended {
        Ended::Answered { status, body, cut } => {
            told["status"] = json!(status);
            told["answer"] = json!(body);
            told["answer_cut"] = json!(cut);
        }
        Ended::Failed { why } => {
            told["failure"] = json!(why);
            told["detail"] = json!(why.sentence());
        }
    }
    told
}
