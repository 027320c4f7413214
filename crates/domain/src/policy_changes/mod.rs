//! Policy changes that need approval.

pub mod change_request;
