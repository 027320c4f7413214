//! Commits transitions, and returns the outcome of earlier ones.

use countersign_domain::chain::entry::{CommitGate, Entry};
use countersign_domain::chain::jws::{self, TokenType};
use countersign_domain::json::diff::{LeafChange, diff};
use countersign_domain::keys::{KeyUse, Keys};
use countersign_domain::log::event::EventType;
use countersign_domain::policy::{ApprovalScope, JudgedWarning, Policy};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::flow::Flow;
use countersign_domain::threads::thread::{Head, HeadUse, Thread};
use countersign_domain::threads::transition::{ChainRow, STATE_DELTAS_MAX, StateContent, StateRow, Transition};
use countersign_store::StoreError;
use countersign_store::change::Draft;
use serde_json::{Value, json};

use super::lease_expiry::record_expired_lease;
use super::statement::StatedTransition;
use crate::error::{Error, Result};
use crate::platform::event_recorder;
use crate::threads::Threads;
use crate::threads::version::Version;

/// The base of a commit.
#[derive(Clone, Copy)]
pub(crate) struct CommitBase<'a> {
    pub(crate) head: &'a Version,
    pub(crate) policy: &'a Policy,
    pub(crate) flow: &'a Flow,
}

/// A transition with its commit gate and its commit time.
pub(crate) struct GatedTransition {
    pub(crate) step: StatedTransition,
    pub(crate) gate: CommitGate,
    pub(crate) committed_at: Timestamp,
}

pub(crate) struct TransitionEffect {
    pub(crate) transition: Transition,
    pub(crate) changes: Vec<LeafChange>,
}

impl TransitionEffect {
    pub(crate) fn of(before: &Value, step: &StatedTransition) -> Self {
        Self { transition: step.transition.clone(), changes: diff(before, &step.after.state) }
    }
}

/// Adds the warnings of rules to the data of an event.
pub(crate) fn with_warnings(mut data: Value, warnings: &[JudgedWarning]) -> Value {
    if !warnings.is_empty() {
        data["warnings"] = json!(warnings);
    }
    data
}

/// Returns whether the thread requires its own approval (`owes`) after this commit. Three things leave a
/// thread without a valid approval: a commit in observe mode, a policy that was withdrawn since, and a
/// revoked receipt. Later commits on top of them require approval too.
pub(crate) fn owes(base: &CommitBase<'_>, parent: &Thread, gate: &CommitGate, branches_owe: bool) -> bool {
    let approved = matches!(gate, CommitGate::Approved { .. });
    let observed = |gate: &CommitGate| matches!(gate, CommitGate::Observed {});
    let accepted = base.flow.accepted();
    let accepted = accepted.contains(&base.head.entry.policy) && parent.lineage.is_accepted(&accepted);
    let taken_back = parent.rests_on_revoked_approval();
    let before = base.head.entry.owes || observed(&base.head.entry.gate) || taken_back || !accepted;
    let owed = before || branches_owe || observed(gate);
    match base.policy.approval().covers() {
        ApprovalScope::Write => owed || approved,
        // In this scope an approved value stays approved, so an approval covers everything before it.
        ApprovalScope::Commit => owed && !approved,
    }
}

impl Threads {
    /// Signs the entry of a transition, and adds all rows of its commit to the change except the transition's
    /// own row. It also advances the thread. Returns the new head, which the caller caches after the commit.
    pub(crate) fn advance(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        base: CommitBase<'_>,
        gated: GatedTransition,
        thread: &mut Thread,
    ) -> Result<Version> {
        let (step, now) = (&gated.step, gated.committed_at);
        let carried = step.transition.carried.clone();
        let owes = owes(&base, thread, &gated.gate, carried.as_deref().is_some_and(|it| it.owes));
        let kept = kept_state(base.head, step)?;
        let given = step.transition.context_tokens;
        let (warnings, name) = (step.transition.warnings_shown().to_vec(), step.transition.step.clone());
        let version = self.insert_signed_entry(draft, keys, gated, owes, kept)?;
        record_expired_lease(draft, thread, now)?;
        *thread = thread.clone().advanced(head_of(&version.entry), now);
        thread.lineage = std::mem::take(&mut thread.lineage).followed(&base.head.entry, &version.entry);
        thread.committed_nodes.extend(version.statement.node.clone());
        let spent = thread.spent.clone().counting(&version.statement, given);
        thread.spent = spent.ok_or(Error::Broken("the usage of a statement"))?;
        // Work on branches counts for the thread, so that forking does not evade budgets.
        if let Some(carried) = carried {
            thread.spent = std::mem::take(&mut thread.spent).plus(&carried.spent);
            thread.committed_nodes.extend(carried.committed_nodes);
        }
        let mut data = json!({
            "version": version.entry.version, "transition": version.entry.transition,
            "node": version.statement.node, "gate": version.entry.gate,
        });
        if let Some(join) = &version.statement.join {
            data["join"] = json!(join);
        }
        if let Some(name) = name {
            data["step"] = json!(name);
        }
        if let Some(restored) = version.statement.restores {
            data["restores"] = json!(restored);
        }
        event_recorder::append_thread_event(
            draft,
            thread,
            now,
            EventType::TransitionCommitted,
            with_warnings(data, &warnings),
        )?;
        Ok(version)
    }

    /// Adds the signed entry and the rows of a version to the change.
    pub(crate) fn insert_signed_entry(
        &self,
        draft: &mut Draft<'_>,
        keys: &Keys,
        GatedTransition { step, gate, committed_at }: GatedTransition,
        owes: bool,
        content: StateContent,
    ) -> Result<Version> {
        // The signing key may have been rotated or revoked while this request waited in a queue. An entry
        // that is signed with the old key would be refused forever.
        let kid = keys.signing(KeyUse::Chain).kid().to_owned();
        if self.core.keys()?.signing(KeyUse::Chain).kid() != kid {
            return Err(StoreError::Conflict("keys").into());
        }
        let statement = step.after.statement;
        let entry = Entry {
            iss: keys.issuer().to_owned(),
            thread: statement.thread.clone(),
            version: statement.version,
            transition: step.transition.digest,
            parent: statement.parent,
            gate,
            owes,
            policy: statement.policy,
            committed_at,
        };
        let token = jws::sign(keys.signing(KeyUse::Chain), TokenType::Entry, &entry);
        let (thread, version) = (statement.thread.clone(), statement.version);
        let base = match &content {
            StateContent::Full { .. } => version,
            StateContent::Delta { base, .. } => *base,
        };
        let transition = entry.transition;
        draft.insert(&ChainRow { thread: thread.clone(), version, transition, entry: token.clone() })?;
        draft.insert(&StateRow { thread, version, content })?;
        Ok(Version { statement, entry, token, kid, base, ..step.after })
    }
}

/// Returns the head of a thread row for an entry.
pub(crate) fn head_of(entry: &Entry) -> Head {
    Head {
        version: entry.version,
        transition: entry.transition,
        policy: entry.policy,
        needs_receipt: entry.needs_receipt(),
        owes: entry.owes,
        usage: HeadUse::Unused {},
    }
}

/// Returns how a state is stored: as a difference, or whole if the difference is large or the last whole
/// state is far back.
fn kept_state(head: &Version, step: &StatedTransition) -> Result<StateContent> {
    let version = step.transition.statement.version;
    let length = |json: serde_json::Result<String>| json.map(|it| it.len()).map_err(|_| Error::Broken("a state"));
    let (delta, named) = (&step.transition.delta, &step.transition.named);
    let mut difference = length(serde_json::to_string(delta))?;
    if !named.is_empty() {
        // The paths contain all keys, so long keys can make the difference longer than the state.
        difference += length(serde_json::to_string(named))?;
    }
    let whole = length(serde_json::to_string(&step.after.state))?;
    // Whole states at intervals limit how many differences a read has to apply.
    if version - head.base > STATE_DELTAS_MAX || difference * 2 > whole {
        let origins = step.after.tree.origins();
        return Ok(StateContent::Full { state: step.after.state.clone(), origins });
    }
    Ok(StateContent::Delta {
        base: head.base,
        proposal: step.transition.statement.proposal.clone(),
        delta: delta.clone(),
        named: named.clone(),
    })
}
