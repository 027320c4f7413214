//! In whose place somebody votes.

use super::layout::TimestampView;
use super::safe_text::SafeLine;

/// Somebody who is away, and in whose place a vote is cast.
#[derive(Clone, Debug)]
pub struct DelegatorRow {
    /// By which delegation, as the form sends it.
    pub delegation: String,
    pub name: SafeLine,
    /// Until when the reader may.
    pub until: TimestampView,
}

/// Another place in which the reader may vote.
#[derive(Clone, Debug)]
pub struct VotingSeatLink {
    /// The same page for that place.
    pub url: String,
    /// In whose place; their own if nobody's.
    pub name: Option<SafeLine>,
}
