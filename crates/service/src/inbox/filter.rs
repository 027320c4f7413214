//! Filters of the inbox and the search labels that find the matching reviews.

use std::collections::BTreeSet;

use countersign_domain::identity::account::Account;
use countersign_domain::primitives::id::{FlowId, GroupName, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Hold, HoldOutcome, HoldPhase, SearchKey, SearchWord, VoterRoll};
use countersign_store::{Cursor, Direction};

/// Maximum number of groups that are searched by label. For a person with more groups, including delegated ones, the
/// whole list is searched.
const GROUPS_MAX: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum InboxOwnerFilter {
    #[default]
    Anybodys,
    /// Reviews that the viewer can vote on now.
    Mine,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InboxStateFilter {
    /// Reviews that can still be decided.
    Open,
    /// Open reviews whose deadline is not later than this.
    EndingBy(Timestamp),
    /// Reviews that have ended, with any outcome.
    Past,
    /// Reviews that ended with this outcome.
    Ended(HoldOutcome),
    Any,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InboxSearch {
    /// Digest that starts with this text.
    Digest(String),
    /// Thread id or protected key.
    Words {
        /// `None` if the text cannot be a thread id.
        thread: Option<ThreadId>,
        key: Option<SearchKey>,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InboxFilter {
    pub whose: InboxOwnerFilter,
    pub which: InboxStateFilter,
    pub flow: Option<FlowId>,
    pub search: Option<InboxSearch>,
}

/// At most `limit` reviews from a position on.
pub(super) struct InboxRange<'a> {
    pub(super) direction: Direction,
    pub(super) from: Option<&'a Cursor>,
    pub(super) limit: usize,
}

impl InboxFilter {
    pub const fn open() -> Self {
        Self { whose: InboxOwnerFilter::Anybodys, which: InboxStateFilter::Open, flow: None, search: None }
    }

    /// Returns the filter for all ended reviews.
    pub fn past() -> Self {
        Self { which: InboxStateFilter::Past, ..Self::open() }
    }

    /// Returns the filter for reviews that the viewer can vote on now.
    pub fn mine() -> Self {
        Self { whose: InboxOwnerFilter::Mine, ..Self::open() }
    }

    /// Returns the labels whose lists together have every matching review and as few others as possible.
    pub(super) fn words(&self, viewer: &Account, roll: &VoterRoll) -> Vec<SearchWord> {
        let phases: &[HoldPhase] = match self.which {
            InboxStateFilter::Open | InboxStateFilter::EndingBy(_) => &[HoldPhase::Open],
            InboxStateFilter::Past | InboxStateFilter::Ended(_) => &[HoldPhase::Past],
            InboxStateFilter::Any => &[HoldPhase::Open, HoldPhase::Past],
        };
        if let Some(InboxSearch::Words { thread, key }) = &self.search {
            let thread = thread.iter().cloned().map(SearchWord::Thread);
            let key = key.iter().flat_map(|key| phases.iter().map(|it| SearchWord::Key(*it, key.clone())));
            return thread.chain(key).collect();
        }
        let away = roll.away_for(&viewer.id).map(|(_, away)| &away.groups);
        let groups: BTreeSet<&GroupName> = away.chain([&viewer.groups]).flatten().collect();
        if self.whose == InboxOwnerFilter::Mine && groups.len() <= GROUPS_MAX {
            return groups.into_iter().cloned().map(SearchWord::Asked).collect();
        }
        match (&self.flow, self.which) {
            (Some(flow), _) => phases.iter().map(|it| SearchWord::Flow(*it, flow.clone())).collect(),
            (None, InboxStateFilter::Ended(ending)) => vec![SearchWord::Ended(ending)],
            (None, _) => phases.iter().map(|it| SearchWord::In(*it)).collect(),
        }
    }

    /// Returns true if the lists have only matching reviews.
    pub(super) fn is_said_by_words(&self) -> bool {
        match (&self.search, self.whose, &self.flow, self.which) {
            (None, InboxOwnerFilter::Anybodys, None, _) => true,
            (None, InboxOwnerFilter::Anybodys, Some(_), which) => !matches!(which, InboxStateFilter::Ended(_)),
            _ => false,
        }
    }

    pub(super) fn has(&self, hold: &Hold, viewer: &Account, roll: &VoterRoll) -> bool {
        let now = roll.now;
        let which = match self.which {
            InboxStateFilter::Open => hold.is_open(now),
            InboxStateFilter::EndingBy(end) => hold.is_open(now) && hold.expires_at <= end,
            InboxStateFilter::Past => hold.state.ending().is_some(),
            InboxStateFilter::Ended(ending) => hold.state.ending() == Some(ending),
            InboxStateFilter::Any => true,
        };
        which
            && self.flow.as_ref().is_none_or(|it| *it == hold.flow)
            && (self.whose == InboxOwnerFilter::Anybodys || hold.is_open(now) && hold.places(viewer, roll).is_ok())
    }

    /// Returns the order: open reviews by deadline, all others by the latest time first.
    pub(super) const fn direction(&self) -> Direction {
        match (&self.search, self.which) {
            (None, InboxStateFilter::Open | InboxStateFilter::EndingBy(_)) => Direction::Forward,
            _ => Direction::Backward,
        }
    }
}
