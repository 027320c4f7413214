//! Who chose a leaf of a state: found in the versions of its thread, through rollbacks, forks and joins.

use serde_json::Value;

use super::Service;
use super::error::{Error, Result};
use crate::domain::chain::statement::Kind;
use crate::domain::id::ThreadId;
use crate::domain::json::pointer::Pointer;
use crate::domain::keys::Keys;
use crate::domain::party::Author;
use crate::domain::transition::Transition;

/// How often the trail of one leaf leads to another thread, another version or an earlier edit.
const STEPS_MAX: usize = 16;

/// A state, and where its leaves can be traced from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Standpoint<'a> {
    /// The state of a version.
    Version { thread: &'a ThreadId, version: u64, state: &'a Value },
    /// What a transition makes of the version before it, or would make of it.
    After { transition: &'a Transition, before: &'a Value, after: &'a Value },
    /// A state of no version: nothing of it is traced.
    Nowhere(&'a Value),
}

/// Where a leaf's trail goes on.
enum Trail {
    /// This author chose it.
    Chosen(Author),
    /// It was taken over from there.
    From(ThreadId, u64),
    /// It was taken over from what this transition would have made of the same head.
    Superseded(Box<Transition>),
}

impl<'a> Standpoint<'a> {
    /// The state before a transition.
    pub(super) fn before(transition: &'a Transition, state: &'a Value) -> Self {
        match transition.statement.version.checked_sub(1) {
            Some(version) => Self::Version { thread: &transition.statement.thread, version, state },
            None => Self::Nowhere(state),
        }
    }

    /// The state itself.
    pub(super) const fn state(&self) -> &'a Value {
        match self {
            Self::Version { state, .. } | Self::After { after: state, .. } | Self::Nowhere(state) => state,
        }
    }
}

impl Service {
    /// Who chose what stands at a place. None where that cannot be told: its versions may be in an archive that is away, or
    /// erased.
    pub(super) async fn author_of_leaf(
        &self,
        keys: &Keys,
        standpoint: &Standpoint<'_>,
        at: &Pointer,
    ) -> Result<Option<Author>> {
        let traced = match standpoint {
            Standpoint::Nowhere(_) => Ok(None),
            Standpoint::Version { thread, version, .. } => self.traced(keys, (thread, *version), at).await,
            Standpoint::After { transition, before, after } => self.set_by(keys, transition, (before, after), at).await,
        };
        match traced {
            Err(Error::Erased | Error::Archive(_) | Error::NoArchives | Error::NotFound(_)) => Ok(None),
            traced => traced,
        }
    }

    async fn set_by(
        &self,
        keys: &Keys,
        transition: &Transition,
        (before, after): (&Value, &Value),
        at: &Pointer,
    ) -> Result<Option<Author>> {
        let statement = &transition.statement;
        let stays = at.resolve(before) == at.resolve(after) && !transition.named.contains(at);
        let (thread, version) = match (stays, statement.version.checked_sub(1)) {
            (true, Some(version)) => (statement.thread.clone(), version),
            _ => match self.trail_of(keys, transition, (before, after), at).await? {
                Trail::Chosen(author) => return Ok(Some(author)),
                Trail::From(thread, version) => (thread, version),
                Trail::Superseded(earlier) => {
                    return Box::pin(self.set_by(keys, &earlier, (before, after), at)).await;
                }
            },
        };
        self.traced(keys, (&thread, version), at).await
    }

    /// Who chose a leaf of a version.
    async fn traced(&self, keys: &Keys, (thread, version): (&ThreadId, u64), at: &Pointer) -> Result<Option<Author>> {
        let (mut thread, mut version) = (thread.clone(), version);
        for _ in 0..STEPS_MAX {
            version = self.set_in(keys, (&thread, version), at).await?;
            let made = self.version(keys, &thread, version).await?;
            let mut transition = self.transition(keys, made.entry.transition).await?;
            let (before, after) = self.states_of(keys, &transition).await?;
            loop {
                match self.trail_of(keys, &transition, (&before, &after), at).await? {
                    Trail::Chosen(author) => return Ok(Some(author)),
                    Trail::Superseded(earlier) => transition = *earlier,
                    Trail::From(of, at) => {
                        (thread, version) = (of, at);
                        break;
                    }
                }
            }
        }
        Ok(None)
    }

    /// The version that set a leaf which a version has. A leaf keeps its origin while it stays, and no later version has
    /// the same origin again, so it is found by halving.
    async fn set_in(&self, keys: &Keys, (thread, version): (&ThreadId, u64), at: &Pointer) -> Result<u64> {
        let of = |it: &super::heads::Version| it.tree.origin(at).cloned();
        let origin = of(&self.version(keys, thread, version).await?);
        let (mut below, mut here) = (0, version);
        while below < here {
            let middle = below + (here - below) / 2;
            if of(&self.version(keys, thread, middle).await?) == origin { here = middle } else { below = middle + 1 }
        }
        Ok(here)
    }

    async fn trail_of(
        &self,
        keys: &Keys,
        transition: &Transition,
        (before, after): (&Value, &Value),
        at: &Pointer,
    ) -> Result<Trail> {
        let statement = &transition.statement;
        let stands = at.resolve(after);
        match statement.kind {
            Kind::Rollback => {
                let restored = statement.restores.ok_or(Error::Broken("a rollback"))?;
                Ok(Trail::From(statement.thread.clone(), self.stated(keys, restored).await?.statement.version))
            }
            Kind::Fork => {
                let fork = statement.fork.clone().ok_or(Error::Broken("a branch"))?;
                Ok(Trail::From(fork.thread, fork.version))
            }
            Kind::Join => {
                for branch in statement.join.iter().flat_map(|it| &it.branches) {
                    let version = self.stated(keys, branch.transition).await?.statement.version;
                    let tip = self.version(keys, &branch.thread, version).await?;
                    if at.resolve(&tip.state) == stands && at.resolve(before) != stands {
                        return Ok(Trail::From(branch.thread.clone(), version));
                    }
                }
                Ok(Trail::Chosen(self.author_of(keys, transition).await?))
            }
            Kind::Edit => {
                let earlier = statement.supersedes.ok_or(Error::Broken("an edit"))?;
                let earlier = self.transition(keys, earlier).await?;
                let would_be = earlier.delta.apply(before).map_err(|_| Error::Broken("a transition's effect"))?;
                if at.resolve(&would_be) == stands {
                    return Ok(Trail::Superseded(Box::new(earlier)));
                }
                Ok(Trail::Chosen(self.author_of(keys, transition).await?))
            }
            Kind::Create | Kind::Propose | Kind::Reaffirm | Kind::Confirm => {
                Ok(Trail::Chosen(self.author_of(keys, transition).await?))
            }
        }
    }
}
