//! Limits at the edge: quotas, rate limits, memory for bodies and responses, and streams.

pub mod quota;
pub mod rate_limit;
pub mod request_body;
pub mod response_buffer;
pub mod sse;
