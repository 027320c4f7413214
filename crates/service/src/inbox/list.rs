//! Lists what waits for a reviewer, with filters and a search.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use countersign_domain::chain::hash::Digest;
use countersign_domain::identity::account::Account;
use countersign_domain::keys::Keys;
use countersign_domain::policy::RedactedChange;
use countersign_domain::primitives::id::{FlowId, ThreadId};
use countersign_domain::reviews::{Hold, HoldState, Ineligible, SearchWord, VoterRoll, VotingSeat};
use countersign_domain::threads::flow::Flow;
use countersign_domain::threads::transition::{Transition, ValueLocation};
use countersign_store::record::{Record as _, Stored};
use countersign_store::{Cursor, Direction};

use crate::error::{Error, Result};
use crate::inbox::Inbox;
use crate::inbox::filter::{InboxFilter, InboxRange, InboxSearch, InboxStateFilter};
use crate::threads::tool_call_view::RedactedToolCall;
use crate::threads::transition_view::{LoadedTransition, RedactedEffect};

pub struct InboxItem {
    pub hold: Hold,
    pub diff: Vec<RedactedChange>,
    pub call: Option<RedactedToolCall>,
    /// `None` if the transition is in an archive.
    pub transition: Option<Transition>,
    /// Seats in which the viewer may vote, or the reason why there are none.
    pub eligible: std::result::Result<Vec<VotingSeat>, Ineligible>,
}

/// Number of reviews and policy change requests that wait for a person.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitingCount {
    Exactly(usize),
    /// At least this many. Not all rows were checked.
    AtLeast(usize),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InboxCursor(pub(super) Cursor);

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InboxPageSelection {
    First,
    /// Items after this position.
    After(InboxCursor),
    Before(InboxCursor),
}

pub struct InboxListing {
    /// Items in the order of the list.
    pub items: Vec<InboxItem>,
    /// End of the previous page.
    pub previous: Option<InboxCursor>,
    /// Start of the next page.
    pub next: Option<InboxCursor>,
}

/// Minimum number of digits to search for a digest.
pub const DIGEST_DIGITS_MIN: usize = 6;

/// Number of rows that are opened at once to find the matching ones.
const ROWS_LOOKED_AT: u32 = 150;

/// Maximum number of reads for one page. After that the page shows the matches so far, and the next page continues.
const LOOKS_MAX: usize = 3;

/// The page of a thread shows only reviews among this many of its latest ones.
const OF_THREAD_MAX: u32 = 100;

impl InboxCursor {
    /// Returns the cursor as it appears in a URL.
    pub fn token(&self) -> String {
        format!("{}.{}", self.0.due, self.0.id)
    }

    /// Parses the text from [`Self::token`].
    pub fn read(token: &str) -> Option<Self> {
        let (due, id) = token.split_once('.')?;
        Some(Self(Cursor { due: due.parse().ok()?, id: id.to_owned() }))
    }
}

impl WaitingCount {
    pub const fn counted(self) -> usize {
        match self {
            Self::Exactly(count) | Self::AtLeast(count) => count,
        }
    }
}

/// Formats the count for a title: `3`, `100+`.
impl std::fmt::Display for WaitingCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exactly(count) => write!(f, "{count}"),
            Self::AtLeast(count) => write!(f, "{count}+"),
        }
    }
}

/// One of the lists that are merged.
struct InboxSource {
    word: String,
    after: Option<Cursor>,
    ended: bool,
}

/// Matching reviews from the merged lists.
struct GatheredHolds {
    holds: Vec<Stored<Hold>>,
    /// Position to continue from, if there is more.
    next: Option<Cursor>,
}

fn place_of(hold: &Hold) -> Cursor {
    Cursor { due: hold.labels().due, id: hold.id() }
}

/// Returns true if the first position comes before the second.
fn is_before(direction: Direction, one: &Cursor, other: &Cursor) -> bool {
    let (one, other) = ((one.due, &one.id), (other.due, &other.id));
    match direction {
        Direction::Forward => one < other,
        Direction::Backward => one > other,
    }
}

const fn reversed(direction: Direction) -> Direction {
    match direction {
        Direction::Forward => Direction::Backward,
        Direction::Backward => Direction::Forward,
    }
}

impl Inbox {
    /// Returns a page of the matching reviews for one viewer.
    pub async fn find(
        &self,
        viewer: &Account,
        wanted: &InboxFilter,
        part: &InboxPageSelection,
        limit: usize,
    ) -> Result<InboxListing> {
        let keys = self.core.keys()?;
        let roll = self.roll_where_open(&keys, viewer, wanted).await?;
        if let Some(InboxSearch::Digest(prefix)) = &wanted.search {
            let holds = self.core.reader(&keys).by_alias_prefix::<Hold>(prefix, ROWS_LOOKED_AT).await?;
            let holds = holds.into_iter().map(|it| it.record).filter(|it| wanted.has(it, viewer, &roll)).take(limit);
            let items = self.inbox_items(&keys, viewer, &roll, holds.collect()).await?;
            return Ok(InboxListing { items, previous: None, next: None });
        }
        let (direction, from) = match part {
            InboxPageSelection::First => (wanted.direction(), None),
            InboxPageSelection::After(place) => (wanted.direction(), Some(&place.0)),
            InboxPageSelection::Before(place) => (reversed(wanted.direction()), Some(&place.0)),
        };
        let range = InboxRange { direction, from, limit };
        let mut gathered = self.gather(&keys, viewer, &roll, wanted, range).await?;
        let first = gathered.holds.first().map(|it| place_of(&it.record)).or_else(|| from.cloned());
        let (previous, next) = match part {
            InboxPageSelection::First => (None, gathered.next),
            InboxPageSelection::After(_) => (first, gathered.next),
            // The page was read towards the beginning of the list, so its order is reversed.
            InboxPageSelection::Before(_) => {
                gathered.holds.reverse();
                (gathered.next, first)
            }
        };
        let holds = gathered.holds.into_iter().map(|it| it.record).collect();
        let items = self.inbox_items(&keys, viewer, &roll, holds).await?;
        Ok(InboxListing { items, previous: previous.map(InboxCursor), next: next.map(InboxCursor) })
    }

    /// Returns the reviews that ended last, the latest first.
    pub async fn recently_ended(&self, viewer: &Account, limit: usize) -> Result<Vec<InboxItem>> {
        Ok(self.find(viewer, &InboxFilter::past(), &InboxPageSelection::First, limit).await?.items)
    }

    /// Returns the number of open reviews, policy change requests and interrupts that wait for the viewer. The number
    /// is exact up to `limit`.
    pub async fn count_waiting(&self, viewer: &Account, limit: u32) -> Result<WaitingCount> {
        let keys = self.core.keys()?;
        let amendments = self.policy_changes.open_policy_changes().await?;
        let policies = amendments.iter().filter(|it| it.jury().eligible(viewer).is_ok()).count();
        let range = InboxRange { direction: Direction::Forward, from: None, limit: limit as usize };
        let roll = self.reviews.voter_roll_for_viewer(&keys, &viewer.id, &[], &[]).await?;
        let holds = self.gather(&keys, viewer, &roll, &InboxFilter::mine(), range).await?;
        let page = self.interrupts_open(None, limit.saturating_add(1)).await?;
        let asked = page.interrupts.iter().filter(|it| it.interrupt.jury().eligible(viewer).is_ok()).count();
        let counted = holds.holds.len() + policies + asked;
        Ok(if holds.next.is_some() || page.next.is_some() {
            WaitingCount::AtLeast(counted)
        } else {
            WaitingCount::Exactly(counted)
        })
    }

    /// Returns the last reviews of a thread that led to no commit, the newest first.
    pub async fn reviews_without_commit(
        &self,
        thread: &ThreadId,
        viewer: &Account,
        limit: usize,
    ) -> Result<Vec<InboxItem>> {
        let keys = self.core.keys()?;
        let word = SearchWord::Thread(thread.clone()).to_string();
        let (holds, _) =
            self.core.reader(&keys).labelled::<Hold>(&word, Direction::Backward, None, OF_THREAD_MAX).await?;
        let vain = |it: &Hold| !matches!(it.state, HoldState::Open {} | HoldState::Approved { .. });
        let vain = holds.into_iter().map(|it| it.record).filter(vain).take(limit).collect();
        // Ended reviews accept no votes, so delegations do not matter.
        let roll = VoterRoll::of(Vec::new(), self.core.now());
        self.inbox_items(&keys, viewer, &roll, vain).await
    }

    /// Returns the delegations to the viewer if they affect which items are listed, or in which order.
    async fn roll_where_open(&self, keys: &Keys, viewer: &Account, wanted: &InboxFilter) -> Result<VoterRoll> {
        match wanted.which {
            InboxStateFilter::Past | InboxStateFilter::Ended(_) => Ok(VoterRoll::of(Vec::new(), self.core.now())),
            InboxStateFilter::Open | InboxStateFilter::EndingBy(_) | InboxStateFilter::Any => {
                self.reviews.voter_roll_for_viewer(keys, &viewer.id, &[], &[]).await
            }
        }
    }

    /// Merges all lists in one order and returns the matching reviews of the range.
    async fn gather(
        &self,
        keys: &Keys,
        viewer: &Account,
        roll: &VoterRoll,
        wanted: &InboxFilter,
        InboxRange { direction, from, limit }: InboxRange<'_>,
    ) -> Result<GatheredHolds> {
        let now = roll.now;
        let at_once =
            if wanted.is_said_by_words() { u32::try_from(limit + 1).unwrap_or(u32::MAX) } else { ROWS_LOOKED_AT };
        // A review past its deadline is not open any more, even if no worker has ended it yet.
        let begins = Cursor { due: now.millis(), id: char::MAX.to_string() };
        let from = from.cloned().or_else(|| (direction == Direction::Forward).then_some(begins));
        let words = wanted.words(viewer, roll).into_iter();
        let mut sources: Vec<InboxSource> =
            words.map(|it| InboxSource { word: it.to_string(), after: from.clone(), ended: false }).collect();
        let mut found: Vec<Stored<Hold>> = Vec::new();
        for _ in 0..LOOKS_MAX {
            let (mut looked, frontier) = self.look_through(keys, &mut sources, direction, at_once).await?;
            looked.retain(|it| wanted.has(&it.record, viewer, roll));
            found.extend(looked);
            // One more than the page holds shows that another page follows.
            if found.len() > limit {
                found.truncate(limit);
                let next = found.last().map(|it| place_of(&it.record));
                return Ok(GatheredHolds { holds: found, next });
            }
            let beyond = |it: &Cursor| match wanted.which {
                InboxStateFilter::EndingBy(end) => direction == Direction::Forward && it.due > end.millis(),
                InboxStateFilter::Open => direction == Direction::Backward && it.due <= now.millis(),
                InboxStateFilter::Past | InboxStateFilter::Ended(_) | InboxStateFilter::Any => false,
            };
            match frontier.filter(|it| !beyond(it)) {
                None => return Ok(GatheredHolds { holds: found, next: None }),
                Some(frontier) => sources.iter_mut().for_each(|it| it.after = Some(frontier.clone())),
            }
        }
        let next = sources.first().and_then(|it| it.after.clone());
        Ok(GatheredHolds { holds: found, next })
    }

    /// Returns the next rows of all lists in order, each once, up to the point that every list has reached. Also
    /// returns that point if any list continues.
    async fn look_through(
        &self,
        keys: &Keys,
        sources: &mut [InboxSource],
        direction: Direction,
        at_once: u32,
    ) -> Result<(Vec<Stored<Hold>>, Option<Cursor>)> {
        let reader = self.core.reader(keys);
        let mut frontier: Option<Cursor> = None;
        // A review can be in several lists, and the map keeps it once.
        let mut rows: BTreeMap<(i64, String), Stored<Hold>> = BTreeMap::new();
        for source in sources.iter_mut().filter(|it| !it.ended) {
            let (page, next) = reader.labelled::<Hold>(&source.word, direction, source.after.as_ref(), at_once).await?;
            rows.extend(page.into_iter().map(|it| ((it.record.labels().due, it.record.id()), it)));
            source.ended = next.is_none();
            frontier = match (frontier, next) {
                (Some(one), Some(other)) => Some(if is_before(direction, &one, &other) { one } else { other }),
                (one, other) => one.or(other),
            };
        }
        let mut rows: Vec<Stored<Hold>> = rows.into_values().collect();
        if direction == Direction::Backward {
            rows.reverse();
        }
        if let Some(frontier) = &frontier {
            rows.retain(|it| !is_before(direction, frontier, &place_of(&it.record)));
            // Rows beyond that point are read again, also those of lists that have ended.
            sources.iter_mut().for_each(|it| it.ended = false);
        }
        Ok((rows, frontier))
    }

    /// Returns the list items of these reviews. Values come from sealed rows. Only the page of a review checks the
    /// states against their roots again.
    pub(crate) async fn inbox_items(
        &self,
        keys: &Keys,
        viewer: &Account,
        roll: &VoterRoll,
        holds: Vec<Hold>,
    ) -> Result<Vec<InboxItem>> {
        let digests: Vec<Digest> = holds.iter().map(|it| it.transition).collect();
        let mut transitions = self.threads.transitions_at_hand(keys, &digests).await?;
        let mut before = self.threads.states_before(keys, transitions.values()).await?;
        let active = self.active_policies(keys, holds.iter().map(|it| &it.flow)).await?;
        let mut items = Vec::with_capacity(holds.len());
        for hold in holds {
            let transition = transitions.remove(&hold.transition);
            // Only reviews that ended can be archived.
            if transition.is_none() && matches!(hold.state, HoldState::Open {}) {
                return Err(Error::Broken("a held transition is missing"));
            }
            let whole = transition.as_ref().filter(|it| it.values == ValueLocation::Here);
            let known = whole.and_then(|it| Some((it, before.remove(&it.digest)?, active.get(&hold.flow)?)));
            let effect = match known {
                // The transition is archived or erased, or its flow is missing, so redaction is not possible. The list
                // still shows that the review existed and how it ended.
                None => RedactedEffect::default(),
                Some((transition, before, active)) => {
                    let policies = self.threads.policies_under(keys, *active, [hold.policy]).await?;
                    let after = transition.delta.apply(&before).map_err(|_| Error::Broken("a transition's effect"))?;
                    let loaded = LoadedTransition { transition: transition.clone(), policies, before, after };
                    self.threads.redacted_effect(loaded, &viewer.into()).await?
                }
            };
            let eligible = hold.places(viewer, roll);
            items.push(InboxItem { diff: effect.changes, call: effect.call, hold, transition, eligible });
        }
        Ok(items)
    }

    /// Returns the active policies of these flows in one query.
    pub(crate) async fn active_policies<'f>(
        &self,
        keys: &Keys,
        flows: impl Iterator<Item = &'f FlowId>,
    ) -> Result<HashMap<FlowId, Digest>> {
        let flows: BTreeSet<String> = flows.map(ToString::to_string).collect();
        if flows.is_empty() {
            return Ok(HashMap::new());
        }
        let flows = self.core.reader(keys).get_many::<Flow>(&flows.into_iter().collect::<Vec<_>>()).await?;
        Ok(flows.into_iter().map(|it| (it.record.id, it.record.policy)).collect())
    }
}
