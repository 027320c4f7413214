//! The halt page and the API reference.

pub mod api_reference;
pub mod api_reference_view;
pub mod halt;
pub mod halt_view;
