//! Loads versions of a thread. Every load verifies their signatures and states.

use std::ops::RangeInclusive;

use countersign_adapters::metrics::BlockingWork;
use countersign_domain::chain::commitment::{LeafSource, Tree};
use countersign_domain::chain::entry::Entry;
use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::jws::{self, TokenType};
use countersign_domain::chain::link::{ChainLink, check_link};
use countersign_domain::json::size::ValueSize;
use countersign_domain::keys::{KeyState, KeyUse, Keys, ThreadSecret};
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::threads::archive::ArchivedVersion;
use countersign_domain::threads::transition::{ChainRow, STATE_DELTAS_MAX, StateContent, StateRow, Transition};
use countersign_store::LIST_ROWS_MAX;
use countersign_store::record::{Record, Stored};
use countersign_store::records::version_id;

use super::archive_lookup::{ArchiveFiles, ArchivedExtractor, VersionedRow};
use crate::error::{Error, Result};
use crate::threads::Threads;
use crate::threads::version::Version;

/// How many versions one call loads. Their rows, the one before and the base states each fit into one list.
pub(crate) const VERSIONS_MAX: u64 = LIST_ROWS_MAX as u64 - STATE_DELTAS_MAX - 1;

/// Leaves up to which states are rolled forward on the request thread, in about two milliseconds. More leaves
/// use a blocking thread.
const LEAVES_ROLLED_HERE_MAX: usize = 1_000;

const BROKEN: Error = Error::Broken("the chain");

/// A state with its tree, and the version of the whole state that it is based on.
struct StateWithTree {
    state: serde_json::Value,
    tree: Tree,
    base: u64,
}

impl Threads {
    /// Returns a version after the checks of a head: its own link, its parent's link and its state.
    pub(crate) async fn version(&self, keys: &Keys, thread: &ThreadId, version: u64) -> Result<Version> {
        let mut one = self.versions(keys, thread, version..=version).await?;
        one.pop().map(|(it, _)| it).ok_or(BROKEN)
    }

    /// Returns consecutive versions with their transitions, oldest first, each checked like a head. The
    /// number of queries does not depend on the number of versions.
    pub(crate) async fn versions(
        &self,
        keys: &Keys,
        thread: &ThreadId,
        of: RangeInclusive<u64>,
    ) -> Result<Vec<(Version, Transition)>> {
        let (first, last) = (*of.start(), *of.end());
        if last.saturating_sub(first) >= VERSIONS_MAX {
            return Err(Error::invalid("", "the range contains too many versions. Request a smaller range"));
        }
        let mut files = ArchiveFiles::default();
        let rows = self.links(keys, &mut files, thread, first.saturating_sub(1)..=last).await?;
        // The first row belongs to the version before the range, except at version 0.
        let own = usize::from(first > 0);
        let digests: Vec<Digest> = rows[own..].iter().map(|it| it.transition).collect();
        let mut transitions = self.transitions_of(keys, &mut files, &digests).await?;
        let states = self.states_at(keys, &mut files, thread, of).await?;
        let mut versions = Vec::with_capacity(digests.len());
        for (index, at) in (own..).zip(states) {
            let (row, before) = (&rows[index], index.checked_sub(1).map(|it| &rows[it]));
            let transition = transitions.remove(&row.transition).ok_or(BROKEN)?;
            let link = ChainLink { entry: &row.entry, statement: &transition.statement, root: at.tree.root() };
            let entry = check_link(&link, keys.trusted(), keys.issuer()).map_err(|_| BROKEN)?;
            // A valid signature alone does not prove the position, so the entry must name this thread and version.
            if entry.transition != row.transition || entry.version != row.version || entry.thread != *thread {
                return Err(BROKEN);
            }
            let kid = jws::read::<Entry>(&row.entry, TokenType::Entry).map_err(|_| BROKEN)?.kid().to_owned();
            let parent_kid = check_parent(keys, &entry, before)?;
            let (statement, token) = (transition.statement.clone(), row.entry.clone());
            let StateWithTree { state, tree, base } = at;
            versions.push((Version { statement, entry, token, kid, parent_kid, state, tree, base }, transition));
        }
        Ok(versions)
    }

    /// Returns the database rows of these versions in order, or an error if one is missing.
    pub(crate) async fn stored_versions<R: Record + VersionedRow>(
        &self,
        keys: &Keys,
        thread: &ThreadId,
        of: RangeInclusive<u64>,
    ) -> Result<Vec<Stored<R>>> {
        let ids: Vec<String> = of.clone().map(|it| version_id(thread, it)).collect();
        let mut rows = self.core.reader(keys).get_many::<R>(&ids).await?;
        rows.sort_by_key(|it| it.record.version());
        let whole = rows.iter().map(|it| it.record.version()).eq(of);
        if whole { Ok(rows) } else { Err(BROKEN) }
    }

    /// Returns the chain rows of these versions in order, from the database or archives.
    pub(crate) async fn links(
        &self,
        keys: &Keys,
        files: &mut ArchiveFiles,
        thread: &ThreadId,
        of: RangeInclusive<u64>,
    ) -> Result<Vec<ChainRow>> {
        self.rows_of(keys, files, thread, of, |it| Some(it.link())).await
    }

    /// Returns the rows of these versions in order, from the database or archives, or an error if one is
    /// missing.
    async fn rows_of<R: Record + VersionedRow>(
        &self,
        keys: &Keys,
        files: &mut ArchiveFiles,
        thread: &ThreadId,
        of: RangeInclusive<u64>,
        taken: ArchivedExtractor<R>,
    ) -> Result<Vec<R>> {
        let rows = self.rows_with_archived(keys, files, thread, of.clone(), taken).await?;
        if rows.iter().map(VersionedRow::version).eq(of) { Ok(rows) } else { Err(BROKEN) }
    }

    /// Returns the states of consecutive versions with their trees, rolled forward from the last whole state.
    async fn states_at(
        &self,
        keys: &Keys,
        files: &mut ArchiveFiles,
        thread: &ThreadId,
        of: RangeInclusive<u64>,
    ) -> Result<Vec<StateWithTree>> {
        let (first, mut rows) =
            (*of.start(), self.rows_of(keys, &mut *files, thread, of, ArchivedVersion::state).await?);
        let base = match rows.first().map(|it| &it.content) {
            Some(StateContent::Delta { base, .. }) => *base,
            _ => first,
        };
        // A forged row must not make the gateway load an unlimited number of versions.
        if base > first || first - base > STATE_DELTAS_MAX {
            return Err(BROKEN);
        }
        if base < first {
            let older = self.rows_of(keys, files, thread, base..=first - 1, ArchivedVersion::state).await?;
            rows.splice(..0, older);
        }
        let rolled = self.roll_states(keys, thread, rows).await?;
        Ok(rolled.into_iter().skip(usize::try_from(first - base).unwrap_or(usize::MAX)).collect())
    }

    /// Rolls states forward. Large ones use a blocking thread after a wait in the fair queue.
    async fn roll_states(&self, keys: &Keys, thread: &ThreadId, rows: Vec<StateRow>) -> Result<Vec<StateWithTree>> {
        let secret = self.secret(keys, thread);
        let rolled = if leaves_rolled(&rows) <= LEAVES_ROLLED_HERE_MAX {
            roll_forward(&secret, rows)
        } else {
            let turn = self.core.turns.rolling.take(thread.as_str()).await?;
            self.core.apart(&turn, BlockingWork::State, move || roll_forward(&secret, rows)).await?
        };
        rolled.ok_or(BROKEN)
    }
}

/// Returns how many leaves are hashed or compared to roll these states forward.
fn leaves_rolled(rows: &[StateRow]) -> usize {
    let mut leaves = 0_usize;
    let each = rows.iter().map(|row| {
        leaves = match &row.content {
            StateContent::Full { state, .. } => ValueSize::of(state).leaves,
            StateContent::Delta { delta, .. } => leaves.saturating_add(delta.leaves_set()),
        };
        leaves
    });
    each.fold(0, usize::saturating_add)
}

/// Checks the parent's entry. Returns the id of the key that signed it, or `None` at version 0.
fn check_parent(keys: &Keys, entry: &Entry, before: Option<&ChainRow>) -> Result<Option<String>> {
    let Some(row) = before else {
        return if entry.version == 0 && entry.parent.is_none() { Ok(None) } else { Err(BROKEN) };
    };
    let unverified = jws::read::<Entry>(&row.entry, TokenType::Entry).map_err(|_| BROKEN)?;
    let key = keys.trusted().public(KeyUse::Chain, unverified.kid()).ok_or(BROKEN)?;
    // A revoked key may have leaked, and the next key must not have signed anything yet.
    if matches!(key.state(), KeyState::Revoked | KeyState::Next) {
        return Err(BROKEN);
    }
    let kid = key.kid().to_owned();
    let parent = unverified.verify(key).ok_or(BROKEN)?;
    let follows = parent.version.checked_add(1) == Some(entry.version);
    let links = follows && parent.thread == entry.thread && Some(parent.transition) == entry.parent;
    if links { Ok(Some(kid)) } else { Err(BROKEN) }
}

/// Rolls rows forward to states. The first row must be a whole state, and every difference must be based on
/// the last whole state. The caller verifies each result by its signed root.
fn roll_forward(secret: &ThreadSecret, rows: Vec<StateRow>) -> Option<Vec<StateWithTree>> {
    let mut rolled: Vec<StateWithTree> = Vec::with_capacity(rows.len());
    for row in rows {
        let next = match (row.content, rolled.last()) {
            (StateContent::Full { state, origins }, _) => {
                let tree = Tree::restore(secret, &state, &origins).ok()?;
                StateWithTree { state, tree, base: row.version }
            }
            (StateContent::Delta { base, proposal, delta, named }, Some(before)) if base == before.base => {
                let state = delta.apply(&before.state).ok()?;
                let setting = LeafSource { proposal: &proposal, named: &named };
                let tree = before.tree.advance(secret, &before.state, &state, &setting);
                StateWithTree { state, tree, base }
            }
            _ => return None,
        };
        rolled.push(next);
    }
    Some(rolled)
}
