//! Selects the versions that leave the database next, with the rows that belong to them. One file is written and read
//! as a whole, so large versions make short segments. An agent can therefore not cause a file that is too large to
//! write or read.

use std::ops::RangeInclusive;
use std::time::Duration;

use countersign_domain::keys::Keys;
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::Hold;
use countersign_domain::threads::archive::VERSIONS_MIN;
use countersign_domain::threads::transition::{
    ChainRow, STATE_DELTAS_MAX, StateContent, StateRow, Transition, TransitionOutcome, ValueLocation,
};
use countersign_store::record::Stored;
use countersign_store::records::held_since;
use countersign_store::{CLOCK_SKEW_MILLIS_MAX, Cursor, LIST_ROWS_MAX, RowFilter};
use serde::Serialize;

use crate::archive::VersionArchive;
use crate::archive::move_versions::{ArchivalCandidate, ArchiveSegment, VERSIONS_AT_ONCE, committed_in};
use crate::error::{Error, Result};

/// Maximum number of versions to look at. A full state follows another after a limited number of versions, and a
/// segment ends with the first one after [`VERSIONS_MIN`].
const VERSIONS_MAX: u64 = VERSIONS_MIN + STATE_DELTAS_MAX + 1;

/// A larger segment ends at the next full state, however few versions it has.
const STRETCH_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Limits for held transitions that were not committed, in one file. The values of the others stay in the database
/// until the values of their segment are erased.
const ENDED_MAX: usize = 128;
const ENDED_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Clock difference between gateways that a search tolerates. It finds some reviews of other versions, but misses none
/// of these versions.
const CLOCKS_APART: Duration = Duration::from_millis(2 * CLOCK_SKEW_MILLIS_MAX.unsigned_abs());

/// Number of held transitions in memory at once. Each can have several megabytes.
const ENDED_AT_ONCE: usize = 16;

/// The facts about a version that decide where a segment ends.
struct SegmentCandidate {
    version: u64,
    is_whole: bool,
    bytes: u64,
}

/// Versions in the database, each with its chain entry and its committed transition.
#[derive(Default)]
struct SegmentRows {
    states: Vec<Stored<StateRow>>,
    entries: Vec<Stored<ChainRow>>,
    committed: Vec<Stored<Transition>>,
}

fn sized(state: &Stored<StateRow>, transition: &Stored<Transition>) -> SegmentCandidate {
    SegmentCandidate {
        version: state.record.version,
        is_whole: matches!(state.record.content, StateContent::Full { .. }),
        bytes: bytes_of(&state.record).saturating_add(bytes_of(&transition.record)),
    }
}

/// Returns the time since which no version before this one has been the head. The latest of all times is used, because
/// a clock may have gone back.
fn left(entries: &[Stored<ChainRow>], next: u64) -> Result<Timestamp> {
    let times = entries.iter().filter(|it| it.record.version <= next).map(|it| committed_in(&it.record));
    let times: Vec<Timestamp> = times.collect::<Result<_>>()?;
    times.into_iter().max().ok_or(Error::Broken("the chain"))
}

/// Returns the first version after a segment. It is the first full state after enough versions or too many bytes. It
/// follows from the rows alone, so every gateway selects the same segment.
fn next_after(versions: &[SegmentCandidate]) -> Option<u64> {
    let from = versions.first()?.version;
    let mut bytes: u64 = 0;
    let ends = |it: &&SegmentCandidate| {
        let is_enough = it.version >= from + VERSIONS_MIN || bytes > STRETCH_BYTES_MAX;
        bytes = bytes.saturating_add(it.bytes);
        it.version > from && it.is_whole && is_enough
    };
    versions.iter().find(ends).map(|it| it.version)
}

fn bytes_of(record: &impl Serialize) -> u64 {
    serde_json::to_string(record).map_or(u64::MAX, |it| it.len() as u64)
}

pub(super) const ALWAYS: RangeInclusive<Timestamp> =
    RangeInclusive::new(Timestamp::from_millis(0), Timestamp::from_millis(i64::MAX));

impl VersionArchive {
    /// Returns the oldest segment in the database. It starts at a full state and ends before the first full state that
    /// follows at least [`VERSIONS_MIN`] versions later, or after too many bytes. Returns `None` unless the policy
    /// allows archiving all of it.
    pub(super) async fn next_segment(
        &self,
        keys: &Keys,
        standing: &ArchivalCandidate,
        now: Timestamp,
    ) -> Result<Option<ArchiveSegment>> {
        let (record, from) = (&standing.thread.record, standing.thread.record.gone.archived);
        let last = (from + VERSIONS_MAX).min(record.head.version);
        // Checked before anything is read: a thread with too few versions has to wait.
        if last < from + VERSIONS_MIN || !standing.retain.can_ever_archive(from + VERSIONS_MIN - 1, record.head.version)
        {
            return Ok(None);
        }
        let Some((SegmentRows { states, entries, committed }, next)) =
            self.rows_up_to(keys, &record.id, from, last).await?
        else {
            return Ok(None);
        };
        let left = left(&entries, next)?;
        if !standing.retain.lets_go(next - 1, left, record.head.version, now) {
            return Ok(None);
        }
        let states: Vec<_> = states.into_iter().take_while(|it| it.record.version < next).collect();
        let within = self.held_since(keys, &record.id, from).await?..=left;
        let links: Vec<_> = entries.into_iter().take(states.len()).collect();
        let committed: Vec<_> = committed.into_iter().take(states.len()).collect();
        let mut ended = self.ended_of(keys, &record.id, from..=next - 1, within).await?;
        ended.sort_by_key(|it| it.record.digest);
        Ok(Some(ArchiveSegment { links, states, committed, ended, left }))
    }

    /// Returns the rows of a segment and the version after it. Only a few versions are read at a time, because large
    /// versions make short segments and up to fifty may follow.
    async fn rows_up_to(
        &self,
        keys: &Keys,
        thread: &ThreadId,
        from: u64,
        last: u64,
    ) -> Result<Option<(SegmentRows, u64)>> {
        let (mut rows, mut sizes) = (SegmentRows::default(), Vec::new());
        let mut first = from;
        while first <= last {
            let some = first..=last.min(first + VERSIONS_AT_ONCE as u64 - 1);
            first = some.end() + 1;
            let states = self.threads.stored_versions::<StateRow>(keys, thread, some.clone()).await?;
            let entries = self.threads.stored_versions::<ChainRow>(keys, thread, some).await?;
            let committed = self.committed_by(keys, &entries).await?;
            sizes.extend(states.iter().zip(&committed).map(|(state, transition)| sized(state, transition)));
            rows.states.extend(states);
            rows.entries.extend(entries);
            rows.committed.extend(committed);
            if let Some(next) = next_after(&sizes) {
                return Ok(Some((rows, next)));
            }
        }
        Ok(None)
    }

    /// Returns the committed transitions of these entries, in the same order.
    async fn committed_by(&self, keys: &Keys, entries: &[Stored<ChainRow>]) -> Result<Vec<Stored<Transition>>> {
        let digests: Vec<String> = entries.iter().map(|it| it.record.transition.to_string()).collect();
        let mut committed = self.core.reader(keys).get_many::<Transition>(&digests).await?;
        committed.sort_by_key(|it| it.record.statement.version);
        let same = committed.iter().map(|it| it.record.digest).eq(entries.iter().map(|it| it.record.transition));
        if same { Ok(committed) } else { Err(Error::Broken("the chain")) }
    }

    /// Returns transitions that were held on these versions and not committed, up to the limits of one file.
    async fn ended_of(
        &self,
        keys: &Keys,
        thread: &ThreadId,
        versions: RangeInclusive<u64>,
        within: RangeInclusive<Timestamp>,
    ) -> Result<Vec<Stored<Transition>>> {
        let (mut after, mut found, mut bytes) = (None, Vec::new(), 0_u64);
        while let Some((digests, next)) = self.held_within(keys, thread, &within, after.as_ref()).await? {
            for chunk in digests.chunks(ENDED_AT_ONCE) {
                for one in self.ended_among(keys, chunk, &versions).await? {
                    bytes = bytes.saturating_add(bytes_of(&one.record));
                    if found.len() == ENDED_MAX || bytes > ENDED_BYTES_MAX {
                        return Ok(found);
                    }
                    found.push(one);
                }
            }
            after = Some(next);
        }
        Ok(found)
    }

    /// Returns a time before the first review that can belong to the segment. A review of its first version was opened
    /// on the version before.
    async fn held_since(&self, keys: &Keys, thread: &ThreadId, from: u64) -> Result<Timestamp> {
        let mut first = from;
        let mut since = None;
        // A segment starts when the segment before it ends, so the end of the segment before the previous one is
        // needed.
        for _ in 0..2 {
            let Some(last) = first.checked_sub(1) else { return Ok(Timestamp::from_millis(0)) };
            let archive =
                self.threads.archive_over(keys, thread, last).await?.ok_or(Error::Broken("an archive"))?.record;
            (first, since) = (archive.from, Some(archive.left));
        }
        // If a clock was ahead, that time is too late. The entry before this segment is still in the database and
        // bounds it.
        let link = self
            .threads
            .stored_versions::<ChainRow>(keys, thread, from.saturating_sub(1)..=from.saturating_sub(1))
            .await?;
        let before = link.first().map(|it| committed_in(&it.record)).transpose()?;
        since.into_iter().chain(before).min().ok_or(Error::Broken("an archive"))
    }

    /// Returns a page of the transitions that were held in a period, with any outcome, and the position of the next
    /// page.
    pub(super) async fn held_within(
        &self,
        keys: &Keys,
        thread: &ThreadId,
        within: &RangeInclusive<Timestamp>,
        after: Option<&Cursor>,
    ) -> Result<Option<(Vec<String>, Cursor)>> {
        let first = Cursor { due: 0, id: held_since(*within.start()) };
        // The row of each review names its version, so the period can be wider: the clocks of gateways may differ.
        let until = within.end().plus(CLOCKS_APART);
        let after = after.unwrap_or(&first);
        let holds =
            self.core.reader(keys).list::<Hold>(RowFilter::Owner(thread.as_str()), Some(after), LIST_ROWS_MAX).await?;
        let opened = holds.into_iter().map(|it| it.record).take_while(|it| it.opened_at <= until);
        let (transitions, ids): (Vec<_>, Vec<_>) = opened.map(|it| (it.transition.to_string(), it.id)).unzip();
        let last = ids.last().map(|it| Cursor { due: 0, id: it.to_string() });
        Ok(last.map(|last| (transitions, last)))
    }

    /// Returns those of these transitions that ended and have their values in the row, in the order of their digests.
    pub(super) async fn ended_among(
        &self,
        keys: &Keys,
        digests: &[String],
        versions: &RangeInclusive<u64>,
    ) -> Result<Vec<Stored<Transition>>> {
        let mut rows = self.core.reader(keys).get_many::<Transition>(digests).await?;
        rows.retain(|it| {
            let Transition { statement, values, outcome, .. } = &it.record;
            let within = versions.contains(&statement.version) && *values == ValueLocation::Here;
            within && matches!(outcome, TransitionOutcome::Ended { .. })
        });
        rows.sort_by_key(|it| it.record.digest);
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn versions(whole: &[u64], bytes: u64) -> Vec<SegmentCandidate> {
        (10..60).map(|version| SegmentCandidate { version, is_whole: whole.contains(&version), bytes }).collect()
    }

    #[test]
    fn segment_ends_at_the_first_full_state_after_enough_versions() {
        assert_eq!(next_after(&versions(&[10, 12, 25, 27, 30], 1)), Some(27));
        assert_eq!(next_after(&versions(&[10, 26], 1)), Some(26));
        assert_eq!(next_after(&versions(&[10, 25], 1)), None);
        assert_eq!(next_after(&[]), None);
    }

    #[test]
    fn segment_of_large_versions_ends_earlier_at_a_full_state() {
        assert_eq!(
            next_after(&versions(&[10, 12, 14, 15, 27], 8 * MIB)),
            Some(15),
            "the first four of five versions are too few"
        );
        assert_eq!(next_after(&versions(&[10, 27], 8 * MIB)), Some(27));
        assert_eq!(next_after(&versions(&[10, 11, 27], 100 * MIB)), Some(11), "one version is enough");
    }
}
