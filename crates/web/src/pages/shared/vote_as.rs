//! Votes for another reviewer by a delegation.

use super::layout::TimestampView;
use super::safe_text::SafeLine;

/// The delegator for whom the reader votes.
#[derive(Clone, Debug)]
pub struct DelegatorRow {
    /// Id of the delegation.
    pub delegation: String,
    pub name: SafeLine,
    /// End of the delegation.
    pub until: TimestampView,
}

/// Another seat of the reader.
#[derive(Clone, Debug)]
pub struct VotingSeatLink {
    /// The review page for that seat.
    pub url: String,
    /// The delegator, or `None` for the reader's own seat.
    pub name: Option<SafeLine>,
}
