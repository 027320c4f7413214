//! Pages for the audit log, Insight and the receipt verifier.

pub mod browse;
pub mod browse_view;
pub(crate) mod event_names;
pub mod insight;
pub mod insight_view;
pub mod live;
pub mod receipt_verifier;
pub mod receipt_verifier_view;
