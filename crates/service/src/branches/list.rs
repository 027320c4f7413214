//! Lists the branches of a thread with the status of each.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use countersign_domain::chain::hash::Digest;
use countersign_domain::keys::Keys;
use countersign_domain::primitives::id::{BranchName, ReviewId, ThreadId};
use countersign_domain::reviews::Hold;
use countersign_domain::threads::branch::JoinStatement;
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::Transition;
use countersign_store::Direction;
use countersign_store::record::Stored;
use countersign_store::records::branches_word;

use crate::branches::Branches;
use crate::error::Result;
use crate::threads::archive_lookup::ArchiveFiles;
use crate::threads::list::ThreadListCursor;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BranchSummary {
    pub name: BranchName,
    pub thread: ThreadId,
    /// Version of the parent from which it was made.
    pub version: u64,
    pub became: BranchStatus,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BranchStatus {
    /// A join committed its changes.
    Joined {
        version: u64,
    },
    /// A pending review is about a join that names it.
    Asked(ReviewId),
    Open,
    /// The parent has a newer head, so the branch can no longer be joined.
    LeftBehind,
}

/// Branches of a thread, the newest first. Branches of the same time are in the order of their names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BranchList {
    pub branches: Vec<BranchSummary>,
    /// Start of the page with older branches.
    pub earlier: Option<ThreadListCursor>,
}

/// The branches that joins name.
struct JoinReferences {
    /// Committed joins by version.
    committed: BTreeMap<u64, JoinStatement>,
    asked: Option<(ReviewId, JoinStatement)>,
}

impl Branches {
    /// Returns a page of the branches of a thread.
    pub async fn list_branches(
        &self,
        thread: &Thread,
        before: Option<&ThreadListCursor>,
        limit: u32,
    ) -> Result<BranchList> {
        let keys = self.core.keys()?;
        let (word, before) = (branches_word(&thread.id), before.map(ThreadListCursor::cursor));
        let (rows, next) =
            self.core.reader(&keys).labelled::<Thread>(&word, Direction::Backward, before, limit).await?;
        if rows.is_empty() {
            return Ok(BranchList { branches: Vec::new(), earlier: next.map(ThreadListCursor::at) });
        }
        let mut rows: Vec<Thread> = rows.into_iter().map(|it| it.record).collect();
        let name = |it: &Thread| it.branch.as_ref().map(|it| it.name.clone());
        rows.sort_by(|a, b| b.created_at.cmp(&a.created_at).then_with(|| name(a).cmp(&name(b))));
        let versions: BTreeSet<u64> = rows.iter().filter_map(|it| Some(it.branch.as_ref()?.version)).collect();
        let joins = self.joins_of(&keys, thread, &versions).await?;
        let seen = |row: Thread| {
            let origin = row.branch?;
            let became = joins.became(&row.id, origin.version, thread);
            Some(BranchSummary { name: origin.name, thread: row.id, version: origin.version, became })
        };
        Ok(BranchList {
            branches: rows.into_iter().filter_map(seen).collect(),
            earlier: next.map(ThreadListCursor::at),
        })
    }

    /// Returns the joins of branches that were made of these versions. A branch of a version can only be joined by the
    /// next version.
    async fn joins_of(&self, keys: &Keys, thread: &Thread, versions: &BTreeSet<u64>) -> Result<JoinReferences> {
        let head = thread.head.version;
        let (mut files, mut digests) = (ArchiveFiles::default(), Vec::new());
        for next in versions.iter().filter(|it| **it < head).map(|it| it + 1) {
            let links = self.threads.links(keys, &mut files, &thread.id, next..=next).await?;
            digests.extend(links.into_iter().map(|it| it.transition));
        }
        let ids: Vec<String> = digests.iter().map(ToString::to_string).collect();
        let rows = self.core.reader(keys).get_many::<Transition>(&ids).await?.into_iter();
        let mut stated: HashMap<Digest, Transition> = rows.map(|it| (it.record.digest, it.record)).collect();
        // The statements are still there if the values are erased.
        self.threads.add_archived(keys, &mut files, &digests, &mut stated).await?;
        let committed = stated.into_values().map(|it| it.statement).filter_map(|it| Some((it.version, it.join?)));
        let asked = match &thread.hold {
            // A pending join can only name branches of the current head.
            Some(review) if versions.contains(&head) => self.join_in(keys, review).await?,
            _ => None,
        };
        Ok(JoinReferences { committed: committed.collect(), asked })
    }

    async fn join_in(&self, keys: &Keys, review: &ReviewId) -> Result<Option<(ReviewId, JoinStatement)>> {
        let hold: Stored<Hold> = self.core.need(keys, review.as_str(), "review").await?;
        let join = self.threads.held(keys, hold.record.transition).await?.record.statement.join;
        Ok(join.map(|it| (review.clone(), it)))
    }
}

impl JoinReferences {
    fn became(&self, branch: &ThreadId, version: u64, thread: &Thread) -> BranchStatus {
        let names = |it: &JoinStatement| it.branches.iter().any(|it| it.thread == *branch);
        match &self.asked {
            // The next version decides whether the branch was joined.
            _ if version < thread.head.version => {
                let next = version + 1;
                let joined = self.committed.get(&next).is_some_and(names);
                if joined { BranchStatus::Joined { version: next } } else { BranchStatus::LeftBehind }
            }
            Some((review, join)) if names(join) => BranchStatus::Asked(review.clone()),
            _ => BranchStatus::Open,
        }
    }
}
