//! In whose place somebody votes.

use super::layout::Moment;
use super::safe_text::Line;

/// Somebody who is away, and in whose place a vote is cast.
#[derive(Clone, Debug)]
pub struct AbsentRow {
    /// By which delegation, as the form sends it.
    pub delegation: String,
    /// Who.
    pub name: Line,
    /// Until when the reader may.
    pub until: Moment,
}

/// Another place in which the reader may vote.
#[derive(Clone, Debug)]
pub struct OtherPlace {
    /// The same page for that place.
    pub url: String,
    /// In whose place; their own if nobody's.
    pub name: Option<Line>,
}
