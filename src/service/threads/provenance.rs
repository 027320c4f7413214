//! Provenance: finds the author of a leaf in the versions of its thread, through edits, rollbacks, forks,
//! joins and copies.

mod lookup;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

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
use crate::metrics::BlockingWork;
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::service::platform::fair_queue::QueuePermit;

/// Steps that one look follows. Beyond them, the party that took a leaf over counts as its author.
const STEPS_MAX: usize = 4_096;

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

impl TrailStep {
    fn of(transition: &Transition, value: Option<&Value>, at: &Pointer) -> Self {
        let is_copied = matches!(transition.statement.kind, TransitionType::Propose | TransitionType::Confirm);
        Self { made: transition.digest, value: value.map(canonical), at: (!is_copied).then(|| at.clone()) }
    }
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
    transitions: Vec<Arc<Transition>>,
    /// The state before the transition that is looked at.
    before: Option<(Digest, Arc<Value>)>,
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
            transitions: Vec::new(),
            before: None,
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
            TraceStart::After { transition, before, after } => self.set_by(transition, (before, after), at).await,
        };
        match traced {
            Err(Error::Erased | Error::Archive(_) | Error::NoArchives | Error::NotFound(_)) => Ok(None),
            traced => traced,
        }
    }

    async fn set_by(
        &mut self,
        transition: &Transition,
        (before, after): (&Value, &Value),
        at: &Pointer,
    ) -> Result<Option<Vec<LeafAuthor>>> {
        let statement = &transition.statement;
        let stays = at.resolve(before) == at.resolve(after) && !transition.named.contains(at);
        if let (true, Some(version)) = (stays, statement.version.checked_sub(1)) {
            return self.traced(vec![TracedLeaf { thread: statement.thread.clone(), version, at: at.clone() }]).await;
        }
        let value = at.resolve(after);
        let step = TrailStep::of(transition, value, at);
        if let Some(known) = self.followed.get(&step) {
            return Ok(Some(known.clone()));
        }
        let before = StateBefore::Held(self.state_before(transition, before));
        let mut open = Vec::new();
        let author = self.step(Arc::new(transition.clone()), (before, value), at, &mut open).await?;
        let Some(mut all) = self.traced(open).await? else { return Ok(None) };
        add_authors(&mut all, author);
        self.followed.insert(step, all.clone());
        Ok(Some(all))
    }

    /// Returns the state before a transition, which is copied once for all leaves.
    fn state_before(&mut self, transition: &Transition, before: &Value) -> Arc<Value> {
        match &self.before {
            Some((of, known)) if *of == transition.digest => Arc::clone(known),
            _ => {
                let copy = Arc::new(before.clone());
                self.before = Some((transition.digest, Arc::clone(&copy)));
                copy
            }
        }
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
            let transition = self.transition(made).await?;
            let value = leaf.at.resolve(&version.state);
            let step = TrailStep::of(&transition, value, &leaf.at);
            if let Some(known) = self.followed.get(&step) {
                add_authors(trail.last_mut().map_or(&mut authors, |it| &mut it.authors), known.clone());
                continue;
            }
            let before = match transition.statement.version.checked_sub(1) {
                Some(before) => StateBefore::Version(self.version(&leaf.thread, before).await?),
                None => StateBefore::Nothing,
            };
            let mut open = Vec::new();
            let author = self.step(transition, (before, value), &leaf.at, &mut open).await?;
            trail.push(OpenStep { step, authors: author.into_iter().collect(), open });
        }
    }

    /// Returns who chose what a transition put at a place, or adds to what is open where it was taken over from.
    async fn step(
        &mut self,
        mut transition: Arc<Transition>,
        (before, value): (StateBefore, Option<&Value>),
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
            let earlier = self.transition(earlier).await?;
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
                *open = self.joined_from(statement, (before.state(), value), at).await?;
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
        (before, value): (&Value, Option<&Value>),
        at: &Pointer,
    ) -> Result<Vec<TracedLeaf>> {
        let mut moved = Vec::new();
        if at.resolve(before) == value {
            return Ok(moved);
        }
        for branch in statement.join.iter().flat_map(|it| &it.branches) {
            let version = self.service.stated(self.keys, branch.transition).await?.statement.version;
            let tip = self.version(&branch.thread, version).await?;
            let from = |at: Pointer| TracedLeaf { thread: branch.thread.clone(), version, at };
            if at.resolve(&tip.state) == value {
                return Ok(vec![from(at.clone())]);
            }
            // A list that is matched by a key puts an item of a branch at another index.
            let (at, value) = (at.clone(), value.cloned());
            let is_moved = move |(place, leaf): &(Pointer, &Value)| {
                Some(*leaf) == value.as_ref() && place.is_same_but_indexes(&at)
            };
            let same = move || {
                let same = leaves(&tip.state).into_iter().filter(is_moved);
                same.map(|it| it.0).take(COPIED_FROM_MAX).collect::<Vec<_>>()
            };
            moved.extend(self.service.apart(&self.permit, BlockingWork::Trace, same).await?.into_iter().map(from));
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
        self.service.apart(&self.permit, BlockingWork::Trace, equal).await
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
}

/// Adds those who are not there yet.
fn add_authors(to: &mut Vec<LeafAuthor>, more: impl IntoIterator<Item = LeafAuthor>) {
    for it in more {
        if !to.iter().any(|known| known.author == it.author && known.is_alike(&it)) {
            to.push(it);
        }
    }
}
