//! Version 0 of a new thread or branch.

use countersign_domain::chain::commitment::Tree;
use countersign_domain::chain::entry::{CommitGate, Entry};
use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::statement::{Statement, TransitionType};
use countersign_domain::identity::account::Token;
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::json::state_delta::Delta;
use countersign_domain::keys::{Keys, ThreadSecret};
use countersign_domain::log::event::EventType;
use countersign_domain::policy::Policy;
use countersign_domain::primitives::id::{NodeId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::branch::Branch;
use countersign_domain::threads::thread::Thread;
use countersign_domain::threads::transition::{StateContent, Transition, TransitionOutcome, ValueLocation};
use countersign_store::change::Draft;
use countersign_store::record::Stored;
use serde_json::{Value, json};

use crate::error::Result;
use crate::platform::event_recorder;
use crate::threads::Threads;
use crate::threads::commit::GatedTransition;
use crate::threads::statement::{StatedTransition, new_proposal_id};
use crate::threads::version::Version;

pub(crate) struct FirstVersion<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) thread: ThreadId,
    pub(crate) node: Option<NodeId>,
    /// The token that creates the thread.
    pub(crate) token: &'a Token,
    pub(crate) state: &'a Value,
    pub(crate) patch: Value,
    pub(crate) identity: Digest,
    /// The head that a branch starts with.
    pub(crate) fork: Option<Branch>,
    /// Whether the first write of the thread requires its own approval.
    pub(crate) owes: bool,
    pub(crate) now: Timestamp,
}

impl Threads {
    /// Adds a new thread with its version 0 and its event to a change. Returns the head, which the caller caches after
    /// the commit.
    pub(crate) fn insert_thread(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        first: FirstVersion<'_>,
        thread_of: impl FnOnce(&Version) -> Thread,
    ) -> Result<(Version, Stored<Thread>)> {
        let (owner, owes, now) = (first.token.owner.clone(), first.owes, first.now);
        let step = first.stated(&self.secret(keys, &first.thread));
        let content = StateContent::Full { state: step.after.state.clone(), origins: step.after.tree.origins() };
        let transition = step.transition.clone();
        let gated = GatedTransition { step, gate: CommitGate::Auto {}, committed_at: now };
        let head = self.insert_signed_entry(draft, keys, gated, owes, content)?;
        let mut thread = thread_of(&head);
        // The token's owner is an author of the first state and cannot vote on changes until a write is confirmed.
        thread.authors.insert(owner);
        let mut data = json!({"transition": head.entry.transition, "by": head.statement.principal});
        if let Some(fork) = &thread.branch {
            data["fork"] = json!(fork);
        }
        if let Some(episode) = &thread.episode {
            data["episode"] = json!(episode.terms.digest());
        }
        if let Some(request) = &thread.request {
            data["request"] = json!(request.submission);
        }
        event_recorder::append_thread_event(draft, &mut thread, now, EventType::ThreadCreated, data)?;
        let outcome = TransitionOutcome::Committed { entry: head.token.clone() };
        draft.insert(&Transition { outcome, ..transition })?;
        let thread = draft.inserting(thread)?;
        Ok((head, thread))
    }
}

impl FirstVersion<'_> {
    fn stated(&self, secret: &ThreadSecret) -> StatedTransition {
        let (proposal, nothing) = (new_proposal_id(), json!({}));
        let (from, tree) = (Tree::new(secret, &nothing, &proposal), Tree::new(secret, self.state, &proposal));
        let statement = Statement {
            kind: if self.fork.is_some() { TransitionType::Fork } else { TransitionType::Create },
            flow: self.policy.flow().clone(),
            policy: self.policy.digest(),
            thread: self.thread.clone(),
            version: 0,
            parent: None,
            node: self.node.clone(),
            principal: self.token.principal(),
            proposal,
            attempt: None,
            from: from.root(),
            to: tree.root(),
            tool: None,
            usage: None,
            rationale: None,
            supersedes: None,
            restores: None,
            write_id: None,
            proposed_at: self.now,
            fork: self.fork.clone(),
            join: None,
        };
        let transition = Transition {
            digest: statement.digest(),
            identity: self.identity,
            statement: statement.clone(),
            format: PatchFormat::Merge,
            patch: self.patch.clone(),
            delta: Delta::between(&nothing, self.state),
            named: Default::default(),
            rationale: None,
            tool: None,
            warnings: Vec::new(),
            warnings_cut: None,
            step: None,
            carried: None,
            context_tokens: None,
            editor: None,
            // Signing needs the gate, so the outcome is set after it.
            outcome: TransitionOutcome::Committed { entry: String::new() },
            values: ValueLocation::Here,
        };
        let entry = unsigned(&statement, transition.digest);
        let (token, kid, state) = (String::new(), String::new(), self.state.clone());
        let after = Version { statement, entry, token, kid, parent_kid: None, state, tree, base: 0 };
        StatedTransition { transition, after }
    }
}

/// Returns an entry before its gate is known.
fn unsigned(statement: &Statement, transition: Digest) -> Entry {
    Entry {
        iss: String::new(),
        thread: statement.thread.clone(),
        version: statement.version,
        transition,
        parent: statement.parent,
        gate: CommitGate::Auto {},
        owes: false,
        policy: statement.policy,
        committed_at: statement.proposed_at,
    }
}
