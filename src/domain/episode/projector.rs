//! Which rules a run was projected by.
//!
//! A folder is checked years after it was written, by the rules of its own time. A projection of ours says their version.

use super::event_line::Record;

/// The projector's name in our projections.
pub const PROJECTOR: &str = "countersign";
/// The member of a projection that holds the version of the rules.
pub const VERSION_MEMBER: &str = "projector_version";
/// The version that is written today.
pub const VERSION: u64 = 2;

/// The rules of a projection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rules {
    /// Ours, before they had a version: a label without a known kind is an `act`, and the summary is 1.2.0.
    First,
    /// The published ones: such a label is a `plan`, and the summary is 1.3.0.
    Published,
}

impl Rules {
    /// Returns the rules of a run by its last projection. Runs of other systems follow the published ones.
    pub fn of<'r>(events: impl DoubleEndedIterator<Item = &'r Record>) -> Self {
        let last = events.rev().find(|it| it.is_projection());
        let first = |it: &Record| it.text("projector") == Some(PROJECTOR) && !it.payload.contains_key(VERSION_MEMBER);
        if last.is_some_and(first) { Self::First } else { Self::Published }
    }
}
