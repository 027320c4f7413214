//! Operations: halts, readiness and gauges.

pub(crate) mod gauges;
pub mod halt;
pub mod halt_request;
pub(crate) mod readiness;
