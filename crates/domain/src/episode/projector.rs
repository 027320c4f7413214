//! Version of the rules that projected an episode.
//!
//! A folder is checked years after it was written, by the rules of its own time. Our projections name the version.

use super::event_line::EventRecord;

/// Name of the projector in our projections.
pub const PROJECTOR: &str = "countersign";
/// Member of a projection that holds the version of the rules.
pub const VERSION_MEMBER: &str = "projector_version";
pub const VERSION: u64 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProjectionRules {
    /// Ours, before they had a version: a label without a known kind is an `act`, and the summary is 1.2.0.
    First,
    /// The published rules: such a label is a `plan`, and the summary is 1.3.0.
    Published,
}

impl ProjectionRules {
    /// Returns the rules of an episode by its last projection. Episodes of other systems follow the published rules.
    pub fn of<'r>(events: impl DoubleEndedIterator<Item = &'r EventRecord>) -> Self {
        let last = events.rev().find(|it| it.is_projection());
        let first =
            |it: &EventRecord| it.text("projector") == Some(PROJECTOR) && !it.payload.contains_key(VERSION_MEMBER);
        if last.is_some_and(first) { Self::First } else { Self::Published }
    }
}
