//! Pages for endpoints and deliveries.

pub mod delivery;
pub(crate) mod delivery_rows;
pub mod endpoint;
pub mod endpoints;
pub mod endpoints_view;
