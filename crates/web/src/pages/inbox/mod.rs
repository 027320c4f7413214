//! The inbox and decisions about several reviews at once.

pub mod bulk_decide;
pub mod bulk_decide_view;
pub mod list;
pub mod list_view;
