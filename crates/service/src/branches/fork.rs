//! Forks: threads that start with the head of another thread, so that several agents work on the same snapshot in
//! parallel.

use std::collections::BTreeSet;

use countersign_domain::chain::entry::CommitGate;
use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::statement::TransitionType;
use countersign_domain::identity::account::Token;
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::keys::Keys;
use countersign_domain::log::event::EventType;
use countersign_domain::policy::NodePolicy;
use countersign_domain::primitives::id::{BranchName, NodeId, PrincipalId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::branch::{BRANCHES_MADE_MAX, BRANCHES_MAX, Branch};
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{ProposalIdentity, patch_digest};
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::json;

use crate::branches::Branches;
use crate::error::{Error, Result};
use crate::platform::event_recorder;
use crate::platform::retry::retrying;
use crate::threads::commit::{CommitBase, head_of, owes};
use crate::threads::first_version::FirstVersion;
use crate::threads::version::Version;

#[derive(Clone, Debug)]
pub struct NewBranches {
    pub thread: ThreadId,
    pub node: NodeId,
    /// Head to fork. Without it, the current head is used.
    pub parent: Option<Digest>,
    pub names: Vec<BranchName>,
}

#[derive(Clone, Debug)]
pub struct CreatedBranch {
    pub name: BranchName,
    pub thread: ThreadId,
    /// Digest of version 0.
    pub transition: Digest,
    /// State root of version 0.
    pub state_root: Digest,
    /// Signed entry of version 0.
    pub entry: String,
}

#[derive(Clone, Debug)]
pub struct CreatedBranches {
    pub version: u64,
    pub transition: Digest,
    /// Branches in the requested order.
    pub branches: Vec<CreatedBranch>,
}

/// Input shared by all branches of one request.
struct ForkContext<'a> {
    keys: &'a Keys,
    token: &'a Stored<Token>,
    node: &'a NodeId,
    base: CommitBase<'a>,
    parent: &'a Thread,
    now: Timestamp,
}

impl Branches {
    /// Creates branches of a head. Returns the same response if the request is repeated.
    pub async fn fork(&self, token: &Stored<Token>, ask: &NewBranches) -> Result<CreatedBranches> {
        if ask.names.is_empty() || ask.names.len() > BRANCHES_MADE_MAX {
            return Err(Error::invalid("/branches", format!("name 1 to {BRANCHES_MADE_MAX} branches")));
        }
        if ask.names.iter().collect::<BTreeSet<_>>().len() < ask.names.len() {
            return Err(Error::invalid("/branches", "name each branch once"));
        }
        retrying!(self.fork_once(token, ask))
    }

    async fn fork_once(&self, token: &Stored<Token>, ask: &NewBranches) -> Result<CreatedBranches> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        let thread = self.core.thread(&keys, &ask.thread).await?;
        // A token must not learn which threads other flows have.
        if !token.record.of_flow(&thread.record.flow) {
            return Err(Error::NotFound("thread"));
        }
        if !token.record.acts_as(&thread.record.flow, &ask.node) {
            return Err(Error::Forbidden("this token may not act as this node of this thread's flow"));
        }
        if thread.record.branch.is_some() {
            return Err(Error::WrongState("a branch cannot be forked: fork its parent thread"));
        }
        let parent = ask.parent.unwrap_or(thread.record.head.transition);
        // Checked before the state of the thread, so that a retry succeeds even if the head has moved on.
        if let Some(made) = self.forked_before(&keys, token, ask, parent).await? {
            return Ok(made);
        }
        let standing = self.proposals.ready(&keys, thread, parent).await?;
        let mut record = standing.thread.record.clone();
        record.branches = record.branches.saturating_add(u32::try_from(ask.names.len()).unwrap_or(u32::MAX));
        if record.branches > BRANCHES_MAX {
            return Err(Error::WrongState("this head already has the maximum of 32 branches: join or continue those"));
        }
        let head = self.threads.head(&keys, &standing.thread.record).await?;
        let policy = self.policies.policy(&keys, standing.flow.record.policy).await?;
        if !policy.node(&ask.node).is_some_and(NodePolicy::may_fork) {
            return Err(Error::Forbidden(
                "the policy does not allow this node to fork: set `fork = true` for the node",
            ));
        }
        let base = CommitBase { head: &head, policy: &policy, flow: &standing.flow.record };
        let forking = ForkContext { keys: &keys, token, node: &ask.node, base, parent: &standing.thread.record, now };
        let mut draft = Draft::new(keys.row(), now);
        // The commit fails if the head, the policy, a halt or the token changed in the meantime.
        draft.require_unchanged(token);
        standing.rely(&mut draft);
        let mut firsts = Vec::with_capacity(ask.names.len());
        for name in &ask.names {
            firsts.push(self.put_branch(&mut draft, &forking, name)?);
        }
        let forked = CreatedBranches {
            version: head.entry.version,
            transition: head.entry.transition,
            branches: ask.names.iter().zip(&firsts).map(|(name, first)| made(name, first)).collect(),
        };
        event_recorder::append_thread_event(
            &mut draft,
            &mut record,
            now,
            EventType::ThreadForked,
            told(&forked, &forking),
        )?;
        draft.replace(&standing.thread, &record)?;
        self.core.store_response(&mut draft, &keys, &forked)?;
        self.core.commit(draft.finish()).await?;
        // Cached only after the commit, so that the cache never contains a head that failed to commit.
        firsts.into_iter().for_each(|it| self.threads.cache_head(it));
        Ok(forked)
    }

    /// Returns the branches if the same node and token already made all of them of that head.
    async fn forked_before(
        &self,
        keys: &Keys,
        token: &Stored<Token>,
        ask: &NewBranches,
        parent: Digest,
    ) -> Result<Option<CreatedBranches>> {
        let mut branches = Vec::new();
        let mut version = 0;
        for name in &ask.names {
            let id = Branch::thread_of(&ask.thread, parent, name);
            if self.core.fetch::<Thread>(keys, id.as_str()).await?.is_none() {
                continue;
            }
            let first = self.threads.version(keys, &id, 0).await?;
            let statement = &first.statement;
            let same = statement.node.as_ref() == Some(&ask.node) && statement.principal == token.record.principal();
            match &statement.fork {
                Some(of) if same => version = of.version,
                _ => return Err(Error::Exists("another branch of this head has that name: choose another name")),
            }
            branches.push(made(name, &first));
        }
        match branches.len() {
            0 => Ok(None),
            all if all == ask.names.len() => Ok(Some(CreatedBranches { version, transition: parent, branches })),
            _ => Err(Error::Exists("some of these branches already exist: request only the others")),
        }
    }

    /// Adds all rows of one branch to the change.
    fn put_branch(&self, draft: &mut Draft<'_>, forking: &ForkContext<'_>, name: &BranchName) -> Result<Version> {
        let ForkContext { keys, token, node, base, parent, now } = *forking;
        let fork = branch_of(base.head, name);
        let first = FirstVersion {
            policy: base.policy,
            identity: fork_identity(keys, &fork, node, &token.record.principal()),
            thread: fork.own_thread(),
            node: Some(node.clone()),
            token: &token.record,
            state: &base.head.state,
            patch: json!({"branch": name}),
            owes: owes(&base, parent, &CommitGate::Auto {}, false),
            fork: Some(fork.clone()),
            now,
        };
        let (head, _) = self.threads.insert_thread(draft, keys, first, |first| Thread {
            id: first.entry.thread.clone(),
            branch: Some(fork),
            branches: 0,
            created_at: now,
            head: head_of(&first.entry),
            fence: 0,
            hold: None,
            closed: None,
            unresolved: BTreeSet::new(),
            written_version: 0,
            // Version 0 has `owes` if an approval of the head was revoked.
            taken_back: false,
            // Version 0 also has `owes` if a withdrawn policy committed a version below it.
            lineage: Default::default(),
            holds_opened: Default::default(),
            violations: Default::default(),
            request: None,
            gone: Default::default(),
            last_event: None,
            // An episode belongs to the parent thread, whose events record forks and joins.
            episode: None,
            // A fork resets neither the usage nor the authors. Otherwise forking would evade budgets and the separation
            // of duties.
            ..parent.clone()
        })?;
        Ok(head)
    }
}

fn branch_of(head: &Version, name: &BranchName) -> Branch {
    Branch {
        name: name.clone(),
        thread: head.entry.thread.clone(),
        transition: head.entry.transition,
        version: head.entry.version,
    }
}

/// Computes the identity of a fork, which is requested on the parent thread.
pub(crate) fn fork_identity(keys: &Keys, origin: &Branch, node: &NodeId, principal: &PrincipalId) -> Digest {
    let secret = &keys.salt().thread_secret(origin.thread.as_str());
    let identity = ProposalIdentity {
        thread: &origin.thread,
        parent: Some(origin.transition),
        node: Some(node),
        principal,
        kind: TransitionType::Fork,
        format: PatchFormat::Merge,
        patch: patch_digest(secret, &json!({"branch": origin.name})),
        attempt: 1,
        tool: None,
        step: None,
    };
    identity.digest(secret)
}

fn made(name: &BranchName, first: &Version) -> CreatedBranch {
    CreatedBranch {
        name: name.clone(),
        thread: first.entry.thread.clone(),
        transition: first.entry.transition,
        state_root: first.tree.root(),
        entry: first.token.clone(),
    }
}

/// Returns the event data of a fork for the parent thread.
fn told(forked: &CreatedBranches, forking: &ForkContext<'_>) -> serde_json::Value {
    let branch = |it: &CreatedBranch| json!({"name": it.name, "thread": it.thread, "transition": it.transition});
    let branches: Vec<_> = forked.branches.iter().map(branch).collect();
    json!({
        "node": forking.node, "by": forking.token.record.principal(), "version": forked.version,
        "transition": forked.transition, "branches": branches,
    })
}
