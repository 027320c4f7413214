//! Pages for endpoints and deliveries.

pub mod delivery_page;
pub(crate) mod delivery_rows;
pub mod endpoint;
pub mod endpoints;
pub mod endpoints_view;
