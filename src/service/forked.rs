//! The branches that were made of a thread, as people look for them: told from the thread's own events.

use serde::Deserialize;

use super::Service;
use super::error::{Error, Result};
use crate::domain::branch::{JoinedBranch, Joining};
use crate::domain::chain::hash::Digest;
use crate::domain::event::{Event, EventType};
use crate::domain::id::{ReviewId, ThreadId};
use crate::domain::thread::Thread;
use crate::store::records::HUNDRED;

/// Hundreds of events that one look goes back, each a read: a page asks no more because its past is long. What was forked
/// before leads to its thread by itself.
const HUNDREDS_BACK: u64 = 2;

/// A branch, and what became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BranchSeen {
    /// Its name and thread, with the head that it began with.
    pub branch: JoinedBranch,
    /// The version that it was made of.
    pub version: u64,
    /// What became of it.
    pub became: BranchBecame,
}

/// What became of a branch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BranchBecame {
    /// A join committed what it changed.
    Joined {
        /// As which version.
        version: u64,
    },
    /// People are asked about a join that names it.
    Asked(ReviewId),
    /// It can be joined.
    Open,
    /// The thread has another head by now, so it cannot be joined.
    LeftBehind,
}

/// The branches of a thread, those made last first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BranchesSeen {
    /// They.
    pub branches: Vec<BranchSeen>,
    /// Whether there are earlier events that were not looked at.
    pub looked_at_all: bool,
}

/// What `thread.forked` tells.
#[derive(Deserialize)]
struct Forked {
    version: u64,
    transition: Digest,
    branches: Vec<JoinedBranch>,
}

/// What an event of a join tells of it.
#[derive(Deserialize)]
struct Joins {
    #[serde(default)]
    version: Option<u64>,
    #[serde(default)]
    review: Option<ReviewId>,
    join: Joining,
}

impl Service {
    /// The branches of a thread, and what became of each.
    pub async fn branches_seen(&self, thread: &Thread) -> Result<BranchesSeen> {
        let keys = self.keys()?;
        let last = thread.last_event.ok_or(Error::Broken("a thread's events"))?.seq;
        let mut seen = Seen { thread, fates: Vec::new(), branches: Vec::new() };
        let mut top = last;
        for _ in 0..HUNDREDS_BACK {
            for (_, line) in self.thread_lines(&keys, &thread.id, top).await? {
                seen.hear(&line.event)?;
            }
            top = (top - top % HUNDRED).saturating_sub(1);
            if top == 0 {
                break;
            }
        }
        Ok(BranchesSeen { branches: seen.branches, looked_at_all: top == 0 })
    }
}

/// What was heard so far, from the last event backwards: what became of branches before that they were made.
struct Seen<'a> {
    thread: &'a Thread,
    fates: Vec<(ThreadId, BranchBecame)>,
    branches: Vec<BranchSeen>,
}

impl Seen<'_> {
    fn hear(&mut self, event: &Event) -> Result<()> {
        const BROKEN: Error = Error::Broken("what an event tells of branches");
        let tells = |name: &str| event.data.get(name).is_some();
        match event.kind {
            EventType::TransitionCommitted | EventType::TransitionHeld if tells("join") => {
                let joins: Joins = serde_json::from_value(event.data.clone()).map_err(|_| BROKEN)?;
                let became = match (joins.version, joins.review) {
                    (Some(version), _) if event.kind == EventType::TransitionCommitted => {
                        Some(BranchBecame::Joined { version })
                    }
                    (_, review) => review.filter(|it| self.thread.hold.as_ref() == Some(it)).map(BranchBecame::Asked),
                };
                for branch in joins.join.branches {
                    self.fates.extend(became.clone().map(|it| (branch.thread, it)));
                }
            }
            EventType::ThreadForked => {
                let forked: Forked = serde_json::from_value(event.data.clone()).map_err(|_| BROKEN)?;
                let stands = forked.transition == self.thread.head.transition;
                let unjoined = if stands { BranchBecame::Open } else { BranchBecame::LeftBehind };
                for branch in forked.branches {
                    let fate = self.fates.iter().find(|it| it.0 == branch.thread).map(|it| it.1.clone());
                    let became = fate.unwrap_or_else(|| unjoined.clone());
                    self.branches.push(BranchSeen { branch, version: forked.version, became });
                }
            }
            _ => {}
        }
        Ok(())
    }
}
