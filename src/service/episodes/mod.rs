//! Episodes: stores the events that agents add, and builds the episode from the events of its thread.

pub mod envelope_error;
pub(crate) mod envelope_refusals;
pub mod envelopes;
pub mod import;
pub mod record;
pub mod refusal_log;
