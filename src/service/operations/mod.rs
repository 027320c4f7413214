//! Operations: halts, readiness and gauges.

pub mod gauge_cache;
pub(crate) mod gauges;
pub mod halt;
pub mod halt_request;
pub(crate) mod readiness;
pub mod readiness_cache;
