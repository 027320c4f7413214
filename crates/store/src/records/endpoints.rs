//! Records of endpoints, their delivery cursors and deliveries.

use countersign_domain::delivery::delivery_record::{Delivery, DeliveryState};
use countersign_domain::delivery::endpoint::{DeliveryPosition, Endpoint};
use countersign_domain::primitives::id::{EndpointId, ThreadId};

use super::super::record::Record;
use super::super::row::{Facets, Table};

/// Returns the id of a delivery. The deliveries of an endpoint are adjacent and the latest comes first, so a list of
/// recent deliveries reads only those.
pub fn delivery_id(endpoint: &EndpointId, index: u64) -> String {
    format!("{}{}", deliveries_of(endpoint), super::number(u64::MAX - index))
}

/// Returns the prefix of the ids of an endpoint's deliveries.
pub fn deliveries_of(endpoint: &EndpointId) -> String {
    format!("{endpoint}/")
}

/// Returns the state of deliveries that wait for their time, or were requested manually.
pub fn waiting_of(endpoint: &EndpointId, by_hand: bool) -> String {
    format!("{endpoint}/{}", if by_hand { "asked" } else { "waiting" })
}

/// Returns the state of deliveries that wait for the previous delivery of their thread.
pub fn behind_in(endpoint: &EndpointId, thread: &ThreadId) -> String {
    format!("{endpoint}/behind/{thread}")
}

/// Returns the state of delivered or failed deliveries.
pub fn ended_of(endpoint: &EndpointId, arrived: bool) -> String {
    format!("{endpoint}/{}", if arrived { "delivered" } else { "failed" })
}

impl Record for Endpoint {
    const TABLE: Table = Table::Endpoints;
    fn id(&self) -> String {
        self.id.to_string()
    }
    fn facets(&self) -> Facets {
        Facets::default()
    }
}

impl Record for DeliveryPosition {
    const TABLE: Table = Table::Lanes;
    fn id(&self) -> String {
        self.endpoint.to_string()
    }
    fn facets(&self) -> Facets {
        Facets::default()
    }
}

impl Record for Delivery {
    const TABLE: Table = Table::Deliveries;
    fn id(&self) -> String {
        delivery_id(&self.endpoint, self.index)
    }
    /// Deliveries that wait for another one are sorted by log position.
    fn facets(&self) -> Facets {
        let behind = |thread| (behind_in(&self.endpoint, thread), i64::try_from(self.index).unwrap_or(i64::MAX));
        let (state, due) = match &self.state {
            DeliveryState::Waiting { due, by_hand } => (waiting_of(&self.endpoint, *by_hand), due.millis()),
            DeliveryState::Behind {} => self.thread.as_ref().map(behind).unwrap_or_default(),
            DeliveryState::Delivered { at } => (ended_of(&self.endpoint, true), at.millis()),
            DeliveryState::Failed { at } => (ended_of(&self.endpoint, false), at.millis()),
        };
        Facets { state, due, ..Facets::default() }
    }
}
