//! Endpoints, their lanes, and what is sent to them.

use super::super::record::Record;
use super::super::row::{Facets, Table};
use crate::domain::delivery::delivery::{Delivery, DeliveryState};
use crate::domain::delivery::endpoint::{DeliveryPosition, Endpoint};
use crate::domain::primitives::id::{EndpointId, ThreadId};

/// The id of a delivery: those of one endpoint stand together, the last event's first, so that whoever looks at what
/// was sent lately reads no more than that.
pub fn delivery_id(endpoint: &EndpointId, index: u64) -> String {
    format!("{}{}", deliveries_of(endpoint), super::number(u64::MAX - index))
}

/// What the ids of an endpoint's deliveries begin with.
pub fn deliveries_of(endpoint: &EndpointId) -> String {
    format!("{endpoint}/")
}

/// The state word of an endpoint's deliveries that wait for their moment, or were asked for by hand.
pub fn waiting_of(endpoint: &EndpointId, by_hand: bool) -> String {
    format!("{endpoint}/{}", if by_hand { "asked" } else { "waiting" })
}

/// The state word of those that wait for the delivery before them in their thread.
pub fn behind_in(endpoint: &EndpointId, thread: &ThreadId) -> String {
    format!("{endpoint}/behind/{thread}")
}

/// The state word of those that arrived, or were given up.
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
    /// What waits behind another is listed by its place in the log, the first first.
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
