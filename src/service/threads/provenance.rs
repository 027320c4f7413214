//! Provenance: finds the author of a leaf in the versions of its thread, through edits, rollbacks, forks,
//! joins and copies.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde_json::Value;

use super::archive_lookup::ArchiveFiles;
use super::heads::Version;
use crate::domain::chain::hash::Digest;
use crate::domain::chain::statement::{Statement, TransitionType};
use crate::domain::identity::party::Author;
use crate::domain::json::canonical::canonical;
use crate::domain::json::diff::leaves;
use crate::domain::json::pointer::Pointer;
use crate::domain::keys::Keys;
use crate::domain::policy::{Policy, project};
use crate::domain::primitives::id::{ProposalId, ThreadId};
use crate::domain::threads::transition::Transition;
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::service::platform::fair_queue::QueuePermit;

/// Steps that one look follows. Beyond them, the party that took a leaf over counts as its author.
const STEPS_MAX: usize = 4_096;

/// Versions whose statements are read at once during the search.
const WINDOW: u64 = 64;

/// The number of versions that are searched. The author of an older leaf is unknown.
const VERSIONS_WALKED_MAX: u64 = 10_000;

/// Versions with states that one trace keeps in memory.
const VERSIONS_KEPT: usize = 16;

/// Leaves that a node may have copied one from. More candidates add no information.
const COPIED_FROM_MAX: usize = 8;

/// A state, and the position from which its leaves can be traced.
#[derive(Clone, Copy, Debug)]
pub(in crate::service) enum TraceStart<'a> {
    Version {
        thread: &'a ThreadId,
        version: u64,
        state: &'a Value,
    },
    /// The result of a transition on the version before it, committed or not.
    After {
        transition: &'a Transition,
        before: &'a Value,
        after: &'a Value,
    },
    /// A state without a version. Its leaves cannot be traced.
    Nowhere(&'a Value),
}

impl<'a> TraceStart<'a> {
    /// Returns the state before a transition.
    pub(in crate::service) fn before(transition: &'a Transition, state: &'a Value) -> Self {
        match transition.statement.version.checked_sub(1) {
            Some(version) => Self::Version { thread: &transition.statement.thread, version, state },
            None => Self::Nowhere(state),
        }
    }

    pub(in crate::service) const fn state(&self) -> &'a Value {
        match self {
            Self::Version { state, .. } | Self::After { after: state, .. } | Self::Nowhere(state) => state,
        }
    }
}

/// The author of a leaf, and the policy under which the author chose it.
#[derive(Clone, Debug)]
pub(in crate::service) struct LeafAuthor {
    pub(in crate::service) author: Author,
    pub(in crate::service) policy: Arc<Policy>,
}

impl LeafAuthor {
    /// Returns whether both authors could read the same values.
    pub(in crate::service) fn is_alike(&self, other: &Self) -> bool {
        self.author.nodes() == other.author.nodes() && self.policy.digest() == other.policy.digest()
    }
}

#[derive(Clone)]
struct TracedLeaf {
    thread: ThreadId,
    version: u64,
    at: Pointer,
}

/// A step of a trail: the transition that set a value. Where a node may have copied the value, every place that the
/// transition set to it leads to the same leaves, so the place is not part of the step.
#[derive(Clone, PartialEq, Eq, Hash)]
struct TrailStep {
    made: Digest,
    value: Option<String>,
    at: Option<Pointer>,
}

/// The state before a transition.
#[derive(Clone)]
enum StateBefore {
    Version(Arc<Version>),
    Held(Arc<Value>),
    Nothing,
}

impl StateBefore {
    fn state(&self) -> &Value {
        match self {
            Self::Version(version) => &version.state,
            Self::Held(state) => state,
            Self::Nothing => &Value::Null,
        }
    }
}

/// A step that is being followed: its authors so far, and the leaves that it leads to.
struct OpenStep {
    step: TrailStep,
    authors: Vec<LeafAuthor>,
    open: Vec<TracedLeaf>,
}

/// What one look at some states has read of their threads.
pub(in crate::service) struct ProvenanceTrace<'s> {
    service: &'s Service,
    keys: &'s Keys,
    permit: QueuePermit,
    versions: Vec<Arc<Version>>,
    /// The transitions that set leaves, by the proposal in the origin of a leaf.
    made: HashMap<ProposalId, Digest>,
    /// The range of versions whose statements were read, by thread. The end is exclusive.
    read: HashMap<ThreadId, (u64, u64)>,
    chosen: HashMap<Digest, LeafAuthor>,
    /// The authors of the steps that were followed to their end.
    followed: HashMap<TrailStep, Vec<LeafAuthor>>,
    steps: usize,
}

impl<'s> ProvenanceTrace<'s> {
    pub(in crate::service) fn new(service: &'s Service, keys: &'s Keys, permit: QueuePermit) -> Self {
        Self {
            service,
            keys,
            permit,
            versions: Vec::new(),
            made: HashMap::new(),
            read: HashMap::new(),
            chosen: HashMap::new(),
            followed: HashMap::new(),
            steps: 0,
        }
    }

    /// Returns all possible authors of a leaf. There are several if the author may have copied it. Returns
    /// `None` if the authors are unknown, for example because versions are erased or their archive is
    /// unavailable.
    pub(in crate::service) async fn of_leaf(
        &mut self,
        standpoint: &TraceStart<'_>,
        at: &Pointer,
    ) -> Result<Option<Vec<LeafAuthor>>> {
        let traced = match standpoint {
            TraceStart::Nowhere(_) => Ok(None),
            TraceStart::Version { thread, version, .. } => {
                let leaf = TracedLeaf { thread: (*thread).clone(), version: *version, at: at.clone() };
                self.traced(vec![leaf]).await
            }
            TraceStart::After { transition, before, after } => self.set_by(transition, before, after, at).await,
        };
        match traced {
            Err(Error::Erased | Error::Archive(_) | Error::NoArchives | Error::NotFound(_)) => Ok(None),
            traced => traced,
        }
    }

    async fn set_by(
        &mut self,
        transition: &Transition,
        before: &Value,
        after: &Value,
        at: &Pointer,
    ) -> Result<Option<Vec<LeafAuthor>>> {
        let statement = &transition.statement;
        let stays = at.resolve(before) == at.resolve(after) && !transition.named.contains(at);
        if let (true, Some(version)) = (stays, statement.version.checked_sub(1)) {
            return self.traced(vec![TracedLeaf { thread: statement.thread.clone(), version, at: at.clone() }]).await;
        }
        let before = StateBefore::Held(Arc::new(before.clone()));
        let mut open = Vec::new();
        let author = self.step(transition.clone(), before, at.resolve(after), at, &mut open).await?;
        let Some(mut all) = self.traced(open).await? else { return Ok(None) };
        add_authors(&mut all, author);
        Ok(Some(all))
    }

    /// Follows leaves to those who chose them. A step is followed once, however many leaves lead to it.
    async fn traced(&mut self, open: Vec<TracedLeaf>) -> Result<Option<Vec<LeafAuthor>>> {
        let mut authors = Vec::new();
        let mut trail: Vec<OpenStep> = Vec::new();
        let mut roots = open;
        loop {
            let next = trail.last_mut().map_or_else(|| roots.pop(), |it| it.open.pop());
            let Some(leaf) = next else {
                let Some(done) = trail.pop() else { return Ok(Some(authors)) };
                add_authors(trail.last_mut().map_or(&mut authors, |it| &mut it.authors), done.authors.clone());
                self.followed.insert(done.step, done.authors);
                continue;
            };
            let version = self.version(&leaf.thread, leaf.version).await?;
            let Some(origin) = version.tree.origin(&leaf.at).cloned() else { return Ok(None) };
            let Some(made) = self.made(&leaf, &origin).await? else { return Ok(None) };
            let transition = self.service.transition(self.keys, made).await?;
            let value = leaf.at.resolve(&version.state);
            let is_copied = matches!(transition.statement.kind, TransitionType::Propose | TransitionType::Confirm);
            let step = TrailStep { made, value: value.map(canonical), at: (!is_copied).then(|| leaf.at.clone()) };
            if let Some(known) = self.followed.get(&step) {
                add_authors(trail.last_mut().map_or(&mut authors, |it| &mut it.authors), known.clone());
                continue;
            }
            let before = match transition.statement.version.checked_sub(1) {
                Some(before) => StateBefore::Version(self.version(&leaf.thread, before).await?),
                None => StateBefore::Nothing,
            };
            let mut open = Vec::new();
            let author = self.step(transition, before, value, &leaf.at, &mut open).await?;
            trail.push(OpenStep { step, authors: author.into_iter().collect(), open });
        }
    }

    /// Returns who chose what a transition put at a place, or adds to what is open where it was taken over from.
    async fn step(
        &mut self,
        mut transition: Transition,
        before: StateBefore,
        value: Option<&Value>,
        at: &Pointer,
        open: &mut Vec<TracedLeaf>,
    ) -> Result<Option<LeafAuthor>> {
        let (service, keys) = (self.service, self.keys);
        self.steps += 1;
        // Whoever took a value over had read it and set it: as its author they are shown what they could read.
        if self.steps > STEPS_MAX {
            return self.chosen_by(&transition).await.map(Some);
        }
        // An edit takes over what it leaves as it was proposed.
        while let (TransitionType::Edit, Some(earlier)) = (transition.statement.kind, transition.statement.supersedes) {
            let earlier = service.transition(keys, earlier).await?;
            let would_be = earlier.delta.apply(before.state()).map_err(|_| Error::Broken("a transition's effect"))?;
            if at.resolve(&would_be) != value {
                break;
            }
            transition = earlier;
        }
        let from =
            |thread: &ThreadId, version, at: &Pointer| TracedLeaf { thread: thread.clone(), version, at: at.clone() };
        let statement = &transition.statement;
        match statement.kind {
            TransitionType::Rollback => {
                let restored = statement.restores.ok_or(Error::Broken("a rollback"))?;
                open.push(from(&statement.thread, service.stated(keys, restored).await?.statement.version, at));
                return Ok(None);
            }
            TransitionType::Fork => {
                let fork = statement.fork.as_ref().ok_or(Error::Broken("a branch"))?;
                open.push(from(&fork.thread, fork.version, at));
                return Ok(None);
            }
            TransitionType::Join => {
                *open = self.joined_from(statement, before.state(), value, at).await?;
                if !open.is_empty() {
                    return Ok(None);
                }
            }
            TransitionType::Propose | TransitionType::Confirm => {
                let copied = self.copied_from(statement, before, value).await?;
                if !copied.is_empty() {
                    open.extend(copied.iter().map(|at| from(&statement.thread, statement.version - 1, at)));
                    return Ok(None);
                }
            }
            TransitionType::Create | TransitionType::Edit | TransitionType::Reaffirm => {}
        }
        self.chosen_by(&transition).await.map(Some)
    }

    /// Returns the leaves of branches that a join took a value from, or none if it was there before.
    async fn joined_from(
        &mut self,
        statement: &Statement,
        before: &Value,
        value: Option<&Value>,
        at: &Pointer,
    ) -> Result<Vec<TracedLeaf>> {
        let mut moved = Vec::new();
        if at.resolve(before) == value {
            return Ok(moved);
        }
        for branch in statement.join.iter().flat_map(|it| &it.branches) {
            let version = self.service.stated(self.keys, branch.transition).await?.statement.version;
            let tip = self.version(&branch.thread, version).await?;
            let from = |at: &Pointer| TracedLeaf { thread: branch.thread.clone(), version, at: at.clone() };
            if at.resolve(&tip.state) == value {
                return Ok(vec![from(at)]);
            }
            // A list that is matched by a key puts an item of a branch at another index.
            let same = leaves(&tip.state).into_iter();
            let same = same.filter(|(place, leaf)| Some(*leaf) == value && place.is_same_but_indexes(at));
            moved.extend(same.take(COPIED_FROM_MAX).map(|(place, _)| from(&place)));
        }
        Ok(moved)
    }

    /// Returns the leaves that the node could read and that are equal to the leaf that it set. An insertion
    /// into a list moves the later items, for example. Only readable leaves count, so that a guessed value
    /// finds nothing.
    async fn copied_from(
        &self,
        statement: &Statement,
        before: StateBefore,
        value: Option<&Value>,
    ) -> Result<Vec<Pointer>> {
        let (Some(node), Some(value)) = (statement.node.clone(), value.cloned()) else { return Ok(Vec::new()) };
        let policy = self.service.policy(self.keys, statement.policy).await?;
        // A large state takes milliseconds, and a long trail has thousands of them.
        let equal = move || {
            let read = project(&policy, &node, before.state());
            let equal = leaves(&read).into_iter().filter(|(_, leaf)| **leaf == value);
            equal.map(|it| it.0).take(COPIED_FROM_MAX).collect()
        };
        self.permit.work("a trail", equal).await
    }

    async fn chosen_by(&mut self, transition: &Transition) -> Result<LeafAuthor> {
        if let Some(known) = self.chosen.get(&transition.digest) {
            return Ok(known.clone());
        }
        let author = self.service.author_of(self.keys, transition).await?;
        let policy = self.service.policy(self.keys, transition.statement.policy).await?;
        let chosen = LeafAuthor { author, policy };
        self.chosen.insert(transition.digest, chosen.clone());
        Ok(chosen)
    }

    async fn version(&mut self, thread: &ThreadId, version: u64) -> Result<Arc<Version>> {
        let is_it = |it: &&Arc<Version>| it.entry.thread == *thread && it.entry.version == version;
        if let Some(known) = self.versions.iter().find(is_it) {
            return Ok(Arc::clone(known));
        }
        let loaded = Arc::new(self.service.version(self.keys, thread, version).await?);
        if self.versions.len() >= VERSIONS_KEPT {
            self.versions.remove(0);
        }
        self.versions.push(Arc::clone(&loaded));
        Ok(loaded)
    }

    /// Returns the transition that an origin names. Each statement is read once, newest first, without its
    /// state.
    async fn made(&mut self, leaf: &TracedLeaf, origin: &ProposalId) -> Result<Option<Digest>> {
        let end = leaf.version + 1;
        let (mut from, mut below) = self.read.get(&leaf.thread).copied().unwrap_or((end, end));
        let lowest = leaf.version.saturating_sub(VERSIONS_WALKED_MAX);
        while !self.made.contains_key(origin) && (below < end || from > lowest) {
            let window = match below < end {
                true => below..=end.min(below + WINDOW) - 1,
                false => from.saturating_sub(WINDOW).max(lowest)..=from - 1,
            };
            (from, below) = (from.min(*window.start()), below.max(*window.end() + 1));
            self.read_statements(&leaf.thread, window).await?;
            self.read.insert(leaf.thread.clone(), (from, below));
        }
        Ok(self.made.get(origin).copied())
    }

    async fn read_statements(&mut self, thread: &ThreadId, of: RangeInclusive<u64>) -> Result<()> {
        let (service, keys) = (self.service, self.keys);
        let rows = service.links(keys, &mut ArchiveFiles::default(), thread, of).await?;
        let digests: Vec<Digest> = rows.iter().map(|it| it.transition).collect();
        for (digest, transition) in service.transitions_of(keys, &mut ArchiveFiles::default(), &digests).await? {
            self.made.insert(transition.statement.proposal, digest);
        }
        Ok(())
    }
}

/// Adds those who are not there yet.
fn add_authors(to: &mut Vec<LeafAuthor>, more: impl IntoIterator<Item = LeafAuthor>) {
    for it in more {
        if !to.iter().any(|known| known.author == it.author && known.is_alike(&it)) {
            to.push(it);
        }
    }
}
