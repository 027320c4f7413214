//! Updates the health of an endpoint from its attempts.

use countersign_domain::delivery::endpoint::{DeliveryPosition, DisabledReason, Endpoint, EndpointState};
use countersign_domain::log::event::EventType;
use countersign_domain::primitives::time::Timestamp;
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::json;

use crate::error::Result;
use crate::platform::event_recorder;

/// Returns the changed endpoint if attempts disable it or show that it recovered.
pub(super) fn assess_health(
    draft: &mut Draft<'_>,
    endpoint: &Stored<Endpoint>,
    health: &DeliveryPosition,
    gone: bool,
    arrived: bool,
    now: Timestamp,
) -> Result<Option<Stored<Endpoint>>> {
    let why = match endpoint.record.state {
        // An endpoint that a person disabled is enabled only by a person.
        EndpointState::Disabled { why: DisabledReason::ByHand, .. } => return Ok(None),
        EndpointState::Enabled {} if gone => Some(DisabledReason::Gone),
        EndpointState::Enabled {} if health.is_given_up(now) => Some(DisabledReason::Failing),
        // A test or a manual delivery that arrives shows that the endpoint recovered.
        EndpointState::Disabled { .. } if arrived && !gone => None,
        EndpointState::Enabled {} | EndpointState::Disabled { .. } | EndpointState::Removed { .. } => return Ok(None),
    };
    let (kind, state) = match why {
        Some(why) => (EventType::EndpointDisabled, EndpointState::Disabled { at: now, why }),
        None => (EventType::EndpointRecovered, EndpointState::Enabled {}),
    };
    let next = Endpoint { state, ..endpoint.record.clone() };
    let mut facts = json!({"endpoint": next.id, "name": next.name, "origin": next.origin, "row": next.hash(),
        "revision": endpoint.revision + 1});
    if let Some(why) = why {
        facts["why"] = json!(why);
        facts["failing_since"] = json!(health.failing_since);
    }
    let next = draft.replaced(endpoint, next)?;
    event_recorder::outside(draft, None, now, kind, facts)?;
    Ok(Some(next))
}
