//! What a page of the inbox lists, and which labels have that.

use std::collections::BTreeSet;

use crate::domain::identity::account::Account;
use crate::domain::primitives::id::{FlowId, GroupName, ThreadId};
use crate::domain::primitives::time::Timestamp;
use crate::domain::reviews::{Hold, HoldOutcome, HoldPhase, SearchKey, SearchWord, VoterRoll};
use crate::store::Direction;

/// The groups of one person, and of those whom they stand in for, that are asked about one by one; who is in more has the whole list looked through.
const GROUPS_MAX: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum InboxOwnerFilter {
    #[default]
    Anybodys,
    /// What the viewer can vote on now.
    Mine,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InboxStateFilter {
    /// People can still decide it.
    Open,
    /// The same, and its deadline is no further than this.
    EndingBy(Timestamp),
    /// It has ended, in whatever way.
    Past,
    /// It has ended in this one.
    Ended(HoldOutcome),
    Any,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InboxSearch {
    /// A digest that begins so, as it is written.
    Digest(String),
    /// A thread of this name, or a protected key.
    Words {
        /// If it can be a thread's name.
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

impl InboxFilter {
    pub const fn open() -> Self {
        Self { whose: InboxOwnerFilter::Anybodys, which: InboxStateFilter::Open, flow: None, search: None }
    }

    /// Everything that has ended.
    pub fn past() -> Self {
        Self { which: InboxStateFilter::Past, ..Self::open() }
    }

    /// What somebody can vote on now.
    pub fn mine() -> Self {
        Self { whose: InboxOwnerFilter::Mine, ..Self::open() }
    }

    /// The lists that together have every hold wanted, and as few others as labels can say.
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

    /// Whether the lists have nothing but what is wanted.
    pub(super) fn is_said_by_words(&self) -> bool {
        match (&self.search, self.whose, &self.flow, self.which) {
            (None, InboxOwnerFilter::Anybodys, None, _) => true,
            (None, InboxOwnerFilter::Anybodys, Some(_), which) => !matches!(which, InboxStateFilter::Ended(_)),
            _ => false,
        }
    }

    pub(super) fn has(&self, hold: &Hold, (viewer, roll): (&Account, &VoterRoll)) -> bool {
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

    /// Open ones by their deadlines; else what is latest comes first.
    pub(super) const fn direction(&self) -> Direction {
        match (&self.search, self.which) {
            (None, InboxStateFilter::Open | InboxStateFilter::EndingBy(_)) => Direction::Forward,
            _ => Direction::Backward,
        }
    }
}
