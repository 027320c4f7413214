//! Halts, and findings about the set-up of a gateway.

pub mod finding;
pub mod flow_findings;
pub mod halt;
