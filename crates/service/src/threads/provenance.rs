//! Provenance: finds the author of a text in the versions of its thread, through edits, rollbacks, forks,
//! joins and copies. A text is the value of a leaf or the name of a member.

mod copies;
mod lookup;

use std::collections::HashMap;
use std::sync::Arc;

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::statement::TransitionType;
use countersign_domain::identity::party::{Author, Party};
use countersign_domain::json::canonical::canonical;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::keys::Keys;
use countersign_domain::policy::{Policy, StateText, StateTextKind};
use countersign_domain::primitives::id::{ProposalId, ThreadId};
use countersign_domain::threads::transition::Transition;
use serde_json::Value;

use copies::IndexCache;

use crate::error::{Error, Result};
use crate::platform::fair_queue::QueuePermit;
use crate::threads::Threads;
use crate::threads::version::Version;

/// Steps that one trace follows, for all texts of its states. Beyond them, the party that took a text over counts as its
/// author. Steps of the reader are counted apart, so that a reader cannot use up the steps of others.
const STEPS_MAX: usize = 65_536;

/// A state, and the position from which its texts can be traced.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TraceStart<'a> {
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
    /// A state without a version. Its texts cannot be traced.
    Nowhere(&'a Value),
}

impl<'a> TraceStart<'a> {
    /// Returns the state before a transition.
    pub(crate) fn before(transition: &'a Transition, state: &'a Value) -> Self {
        match transition.statement.version.checked_sub(1) {
            Some(version) => Self::Version { thread: &transition.statement.thread, version, state },
            None => Self::Nowhere(state),
        }
    }

    pub(crate) const fn state(&self) -> &'a Value {
        match self {
            Self::Version { state, .. } | Self::After { after: state, .. } | Self::Nowhere(state) => state,
        }
    }
}

/// The author of a text, and the policy under which the author chose it.
#[derive(Clone, Debug)]
pub(crate) struct TextAuthor {
    pub(crate) author: Author,
    pub(crate) policy: Arc<Policy>,
}

impl TextAuthor {
    /// Returns whether both authors could read the same values.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        self.author.nodes() == other.author.nodes() && self.policy.digest() == other.policy.digest()
    }
}

#[derive(Clone)]
struct TracedText {
    thread: ThreadId,
    version: u64,
    text: StateText,
}

/// A step of a trail: the transition that set a text. The index of a list item is not part of the step if a node may have
/// copied the text. Every item that the transition set to it then leads to the same texts.
#[derive(Clone, PartialEq, Eq, Hash)]
struct TrailStep {
    made: Digest,
    kind: StateTextKind,
    value: Option<String>,
    at: Pointer,
}

impl TrailStep {
    fn of(transition: &Transition, before: &Value, value: Option<&Value>, text: &StateText) -> Self {
        let is_copied = matches!(transition.statement.kind, TransitionType::Propose | TransitionType::Confirm);
        let is_exact = !is_copied || text.is_earlier_name(before);
        let at = if is_exact { text.at.clone() } else { text.at.without_indexes() };
        Self { made: transition.digest, kind: text.kind, value: value.map(canonical), at }
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

/// A step that is being followed: its authors so far, and the texts that it leads to.
struct OpenStep {
    step: TrailStep,
    authors: Vec<TextAuthor>,
    open: Vec<TracedText>,
}

/// The rows and results that one trace has read.
pub(crate) struct ProvenanceTrace<'s> {
    service: &'s Threads,
    keys: &'s Keys,
    reader: &'s Party,
    permit: QueuePermit,
    versions: Vec<Arc<Version>>,
    transitions: Vec<Arc<Transition>>,
    /// The state before the transition that is looked at.
    before: Option<(Digest, Arc<Value>)>,
    /// The transitions that set leaves, by the proposal in the origin of a leaf.
    made: HashMap<ProposalId, Digest>,
    /// The range of versions whose statements were read, by thread. The end is exclusive.
    read: HashMap<ThreadId, (u64, u64)>,
    chosen: HashMap<Digest, TextAuthor>,
    /// The authors of the steps that were followed to their end.
    followed: HashMap<TrailStep, Vec<TextAuthor>>,
    indexes: IndexCache,
    /// The work for steps of the reader, and for steps of others.
    spent: [TraceWork; 2],
}

/// Work that is limited for each trace.
#[derive(Clone, Copy, Default)]
struct TraceWork {
    steps: usize,
    indexes: usize,
}

impl<'s> ProvenanceTrace<'s> {
    pub(crate) fn new(service: &'s Threads, keys: &'s Keys, reader: &'s Party, permit: QueuePermit) -> Self {
        Self {
            service,
            keys,
            reader,
            permit,
            versions: Vec::new(),
            transitions: Vec::new(),
            before: None,
            made: HashMap::new(),
            read: HashMap::new(),
            chosen: HashMap::new(),
            followed: HashMap::new(),
            indexes: IndexCache::default(),
            spent: [TraceWork::default(); 2],
        }
    }

    /// Returns all possible authors of a text. There are several if the author may have copied it. Returns
    /// `None` if the authors are unknown, for example because versions are erased or their archive is
    /// unavailable.
    pub(crate) async fn of_text(
        &mut self,
        standpoint: &TraceStart<'_>,
        text: &StateText,
    ) -> Result<Option<Vec<TextAuthor>>> {
        let traced = match standpoint {
            TraceStart::Nowhere(_) => Ok(None),
            TraceStart::Version { thread, version, .. } => {
                let start = TracedText { thread: (*thread).clone(), version: *version, text: text.clone() };
                self.traced(vec![start]).await
            }
            TraceStart::After { transition, before, after } => self.set_by(transition, before, after, text).await,
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
        text: &StateText,
    ) -> Result<Option<Vec<TextAuthor>>> {
        let statement = &transition.statement;
        let value = text.resolve(after);
        // A value that a node names counts as set even if it is the same.
        let is_named = text.kind == StateTextKind::Value && transition.named.contains(&text.at);
        let stays = text.resolve(before) == value && !is_named;
        if let (true, Some(version)) = (stays, statement.version.checked_sub(1)) {
            let start = TracedText { thread: statement.thread.clone(), version, text: text.clone() };
            return self.traced(vec![start]).await;
        }
        let step = TrailStep::of(transition, before, value.as_deref(), text);
        if let Some(known) = self.followed.get(&step) {
            return Ok(Some(known.clone()));
        }
        let before = StateBefore::Held(self.state_before(transition, before));
        let mut open = Vec::new();
        let author = self.step(Arc::new(transition.clone()), before, value.as_deref(), text, &mut open).await?;
        let Some(mut all) = self.traced(open).await? else { return Ok(None) };
        add_authors(&mut all, author);
        self.followed.insert(step, all.clone());
        Ok(Some(all))
    }

    /// Returns the state before a transition, which is copied once for all texts.
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

    /// Follows texts to those who chose them. A step is followed once, however many texts lead to it.
    async fn traced(&mut self, open: Vec<TracedText>) -> Result<Option<Vec<TextAuthor>>> {
        let mut authors = Vec::new();
        let mut trail: Vec<OpenStep> = Vec::new();
        let mut roots = open;
        loop {
            let next = trail.last_mut().map_or_else(|| roots.pop(), |it| it.open.pop());
            let Some(it) = next else {
                let Some(done) = trail.pop() else { return Ok(Some(authors)) };
                add_authors(trail.last_mut().map_or(&mut authors, |it| &mut it.authors), done.authors.clone());
                self.followed.insert(done.step, done.authors);
                continue;
            };
            let version = self.version(&it.thread, it.version).await?;
            // A member keeps its name as long as it has any leaf, so its first leaf leads to the name's author.
            let Some((leaf, origin)) = version.tree.first_leaf(&it.text.at) else { return Ok(None) };
            let Some(made) = self.made(&it, &leaf, &origin).await? else { return Ok(None) };
            let transition = self.transition(made).await?;
            let value = it.text.resolve(&version.state);
            let before = match transition.statement.version.checked_sub(1) {
                Some(before) => StateBefore::Version(self.version(&it.thread, before).await?),
                None => StateBefore::Nothing,
            };
            let step = TrailStep::of(&transition, before.state(), value.as_deref(), &it.text);
            if let Some(known) = self.followed.get(&step) {
                add_authors(trail.last_mut().map_or(&mut authors, |it| &mut it.authors), known.clone());
                continue;
            }
            let mut open = Vec::new();
            let author = self.step(transition, before, value.as_deref(), &it.text, &mut open).await?;
            trail.push(OpenStep { step, authors: author.into_iter().collect(), open });
        }
    }

    /// Returns who chose what a transition put at a place, or adds to what is open where it was taken over from.
    async fn step(
        &mut self,
        transition: Arc<Transition>,
        before: StateBefore,
        value: Option<&Value>,
        text: &StateText,
        open: &mut Vec<TracedText>,
    ) -> Result<Option<TextAuthor>> {
        let (service, keys) = (self.service, self.keys);
        let taker = self.chosen_by(&transition).await?;
        let whose = usize::from(!self.reader.could_have_written_as(taker.author.party()));
        self.spent[whose].steps += 1;
        // A copier has read the value and set it. As its author it sees what it could read.
        if self.spent[whose].steps > STEPS_MAX {
            return Ok(Some(taker));
        }
        let from = |thread: &ThreadId, version, at: &Pointer| TracedText {
            thread: thread.clone(),
            version,
            text: StateText { kind: text.kind, at: at.clone() },
        };
        let version_before = transition.statement.version.checked_sub(1);
        // The member existed before, so an earlier transition chose its name.
        if let Some(version) = version_before.filter(|_| text.is_earlier_name(before.state())) {
            open.push(from(&transition.statement.thread, version, &text.at));
            return Ok(None);
        }
        let transition = self.first_with(transition, before.state(), value, text).await?;
        let statement = &transition.statement;
        match statement.kind {
            TransitionType::Rollback => {
                let restored = statement.restores.ok_or(Error::Broken("a rollback"))?;
                open.push(from(&statement.thread, service.stated(keys, restored).await?.statement.version, &text.at));
                return Ok(None);
            }
            TransitionType::Fork => {
                let fork = statement.fork.as_ref().ok_or(Error::Broken("a branch"))?;
                open.push(from(&fork.thread, fork.version, &text.at));
                return Ok(None);
            }
            TransitionType::Join => {
                *open = self.joined_from(whose, statement, before.state(), value, text).await?;
                if !open.is_empty() {
                    return Ok(None);
                }
            }
            TransitionType::Propose | TransitionType::Confirm => {
                let copied = self.copied_from(whose, &transition, before, text, value).await?;
                if !copied.is_empty() {
                    open.extend(copied.iter().map(|at| from(&statement.thread, statement.version - 1, at)));
                    return Ok(None);
                }
            }
            TransitionType::Create | TransitionType::Edit | TransitionType::Reaffirm => {}
        }
        self.chosen_by(&transition).await.map(Some)
    }

    async fn chosen_by(&mut self, transition: &Transition) -> Result<TextAuthor> {
        if let Some(known) = self.chosen.get(&transition.digest) {
            return Ok(known.clone());
        }
        let author = self.service.author_of(self.keys, transition).await?;
        let policy = self.service.policies.policy(self.keys, transition.statement.policy).await?;
        let chosen = TextAuthor { author, policy };
        self.chosen.insert(transition.digest, chosen.clone());
        Ok(chosen)
    }
}

/// Adds those who are not there yet.
fn add_authors(to: &mut Vec<TextAuthor>, more: impl IntoIterator<Item = TextAuthor>) {
    for it in more {
        if !to.iter().any(|known| known.author == it.author && known.is_alike(&it)) {
            to.push(it);
        }
    }
}
