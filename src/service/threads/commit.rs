//! Commits transitions, and returns the outcome of earlier ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_domain::chain::entry::{CommitGate, Entry};
use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::jws::{self, TokenType};
use countersign_domain::json::diff::{LeafChange, diff};
use countersign_domain::json::pointer::Pointer;
use countersign_domain::keys::{KeyUse, Keys};
use countersign_domain::log::event::EventType;
use countersign_domain::policy::{ApprovalScope, JudgedWarning, Policy, ReasonAudience, changed_for, diff_for};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{Hold, HoldReason};
use countersign_domain::threads::flow::Flow;
use countersign_domain::threads::thread::{Head, HeadUse, Thread};
use countersign_domain::threads::transition::{
    ChainRow, Rejection, STATE_DELTAS_MAX, StateContent, StateRow, Transition, TransitionOutcome, ValueLocation,
};
use serde_json::{Value, json};

use super::archive_lookup::ArchiveFiles;
use super::heads::Version;
use super::lease_expiry::record_expired_lease;
use super::statement::StatedTransition;
use crate::service::Service;
use crate::service::error::{Error, Result};
use crate::service::platform::event_recorder;
use crate::service::platform::rejection_body::RejectionBody;
use crate::service::proposals::request::{Proposal, ProposalKind};
use crate::store::StoreError;
use crate::store::change::Draft;
use crate::store::record::Stored;

/// The base of a commit.
#[derive(Clone, Copy)]
pub(in crate::service) struct CommitBase<'a> {
    pub(in crate::service) head: &'a Version,
    pub(in crate::service) policy: &'a Policy,
    pub(in crate::service) flow: &'a Flow,
}

/// A transition with its commit gate and its commit time.
pub(in crate::service) struct GatedTransition {
    pub(in crate::service) step: StatedTransition,
    pub(in crate::service) gate: CommitGate,
    pub(in crate::service) committed_at: Timestamp,
}

pub(in crate::service) struct TransitionEffect {
    pub(in crate::service) transition: Transition,
    pub(in crate::service) changes: Vec<LeafChange>,
}

impl TransitionEffect {
    pub(in crate::service) fn of(before: &Value, step: &StatedTransition) -> Self {
        Self { transition: step.transition.clone(), changes: diff(before, &step.after.state) }
    }
}

/// The response to a proposal.
#[derive(Clone, Debug)]
pub enum ProposalOutcome {
    Committed {
        version: u64,
        transition: Digest,
        entry: String,
        /// The changed paths that the proposing node may read.
        changed: Vec<Pointer>,
        /// The reasons for which enforce mode would have held the proposal, as far as its node may know them.
        would_hold: Option<Vec<HoldReason>>,
        /// The warnings of rules that the proposing node may know.
        warnings: Vec<JudgedWarning>,
    },
    /// The proposal is or was held for approval. The review contains its state.
    Held {
        transition: Digest,
        hold: Box<Hold>,
        /// The reasons that the proposing node may know.
        reasons: Vec<HoldReason>,
        /// The warnings of rules that the proposing node may know.
        warnings: Vec<JudgedWarning>,
        /// The proposed changes that the node may read.
        diff: Vec<LeafChange>,
    },
    Rejected(RejectionBody),
}

impl ProposalOutcome {
    pub(in crate::service) fn committed(policy: &Policy, transition: &Transition, effect: &TransitionEffect) -> Self {
        let statement = &transition.statement;
        let named: Vec<Pointer> = transition.named.iter().cloned().collect();
        let changed = statement.node.as_ref().map(|node| changed_for(policy, node, &effect.changes, &named));
        Self::Committed {
            version: statement.version,
            transition: transition.digest,
            entry: transition.outcome.entry().unwrap_or_default().to_owned(),
            changed: changed.unwrap_or_default(),
            would_hold: match &transition.outcome {
                TransitionOutcome::Observed { would_hold, .. } => Some(reasons_for_requester(would_hold)),
                _ => None,
            },
            warnings: warnings_for_requester(&transition.warnings),
        }
    }

    /// Builds the response to a held proposal, with the changes that all of the policies allow its node to
    /// read.
    pub(in crate::service) fn held(
        policies: &[Arc<Policy>],
        transition: &Transition,
        changes: &[LeafChange],
        hold: Hold,
    ) -> Self {
        let diff = policies.iter().fold(changes.to_vec(), |seen, it| diff_for(it, &hold.node, &seen));
        let reasons = reasons_for_requester(&hold.reasons);
        let warnings = warnings_for_requester(&transition.warnings);
        Self::Held { transition: transition.digest, hold: Box::new(hold), reasons, warnings, diff }
    }
}

/// Returns the reasons that a proposer may read.
pub(in crate::service) fn reasons_for_requester(reasons: &[HoldReason]) -> Vec<HoldReason> {
    reasons.iter().filter(|reason| !reason.for_reviewers_only).cloned().collect()
}

/// Returns the warnings that a proposer may read.
pub fn warnings_for_requester(warnings: &[JudgedWarning]) -> Vec<JudgedWarning> {
    warnings.iter().filter(|it| it.audience == ReasonAudience::Everyone).cloned().collect()
}

/// Adds the warnings of rules to the data of an event.
pub(in crate::service) fn with_warnings(mut data: Value, warnings: &[JudgedWarning]) -> Value {
    if !warnings.is_empty() {
        data["warnings"] = json!(warnings);
    }
    data
}

/// Returns whether the thread requires its own approval (`owes`) after this commit. Three things leave a
/// thread without a valid approval: a commit in observe mode, a policy that was withdrawn since, and a
/// revoked receipt. Later commits on top of them require approval too.
pub(in crate::service) fn owes(base: &CommitBase<'_>, parent: &Thread, gate: &CommitGate, branches_owe: bool) -> bool {
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

impl Service {
    /// Signs the entry of a transition, and adds all rows of its commit to the change except the transition's
    /// own row. It also advances the thread. Returns the new head, which the caller caches after the commit.
    pub(in crate::service) fn advance(
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
    pub(in crate::service) fn insert_signed_entry(
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
        if self.keys()?.signing(KeyUse::Chain).kid() != kid {
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

    /// Returns the response to an identical earlier proposal. It is looked up before the head is checked,
    /// because the head may have moved since then.
    pub(in crate::service) async fn answered(
        &self,
        keys: &Keys,
        thread: &Thread,
        proposal: &Proposal,
        identity: Digest,
    ) -> Result<Option<ProposalOutcome>> {
        let (name, ask) = (identity.to_string(), &proposal.ask);
        // A rejection is final for its identity. A new attempt number gets a new judgement.
        if let Some(rejection) = self.fetch::<Rejection>(keys, &name).await? {
            let checkpoint = self.rejected_head(keys, &rejection.record).await?;
            return Ok(Some(ProposalOutcome::Rejected(RejectionBody::of(rejection.record, ask, checkpoint))));
        }
        let known = match self.reader(keys).get_by_alias::<Transition>(&name).await? {
            Some(stored) => Some(stored.record),
            None => self.archived_as(keys, thread, proposal.parent, identity).await?,
        };
        let Some(transition) = known else { return Ok(None) };
        self.proposal_outcome(keys, transition).await.map(Some)
    }

    /// Returns the response to a stored proposal, which never changes.
    pub(in crate::service) async fn proposal_outcome(
        &self,
        keys: &Keys,
        transition: Transition,
    ) -> Result<ProposalOutcome> {
        let transition = self.whole(keys, transition).await?;
        let policy = self.policy(keys, transition.statement.policy).await?;
        let changes = self.changes_of(keys, &transition).await?;
        if let Some(hold) = self.hold_of(keys, transition.digest).await? {
            let policies = self.policies_of(keys, &transition.statement).await?;
            return Ok(ProposalOutcome::held(&policies, &transition, &changes, hold.record));
        }
        let effect = TransitionEffect { transition: transition.clone(), changes };
        Ok(ProposalOutcome::committed(&policy, &transition, &effect))
    }

    /// Returns the review of a transition, if it was held for approval.
    pub(in crate::service) async fn hold_of(&self, keys: &Keys, transition: Digest) -> Result<Option<Stored<Hold>>> {
        Ok(self.reader(keys).get_by_alias::<Hold>(&transition.to_string()).await?)
    }

    /// Returns all changes of a transition, computed from verified states.
    pub(in crate::service) async fn changes_of(&self, keys: &Keys, transition: &Transition) -> Result<Vec<LeafChange>> {
        let (before, after) = self.states_of(keys, transition).await?;
        Ok(diff(&before, &after))
    }

    /// Returns the states before and after a transition.
    pub(in crate::service) async fn states_of(&self, keys: &Keys, transition: &Transition) -> Result<(Value, Value)> {
        let statement = &transition.statement;
        let before = match statement.version.checked_sub(1) {
            Some(version) => self.version(keys, &statement.thread, version).await?.state,
            None => json!({}),
        };
        let after = transition.delta.apply(&before).map_err(|_| Error::Broken("a transition's effect"))?;
        Ok((before, after))
    }

    /// Returns the transition with this digest, with its values.
    pub(in crate::service) async fn transition(&self, keys: &Keys, digest: Digest) -> Result<Transition> {
        self.whole(keys, self.stated(keys, digest).await?).await
    }

    /// Returns the statement and outcome of a transition from the database or an archive. Its values may be
    /// missing.
    pub(in crate::service) async fn stated(&self, keys: &Keys, digest: Digest) -> Result<Transition> {
        match self.fetch::<Transition>(keys, &digest.to_string()).await? {
            Some(stored) if stored.record.statement.digest() == digest => Ok(stored.record),
            Some(_) => Err(Error::Broken("a statement")),
            None => {
                let archived = self.archived(keys, &mut ArchiveFiles::default(), digest).await?;
                archived.ok_or(Error::NotFound("transition"))
            }
        }
    }

    /// Returns the row of a transition under review. Such a row is complete in the database until the review
    /// ends.
    pub(in crate::service) async fn held(&self, keys: &Keys, digest: Digest) -> Result<Stored<Transition>> {
        let stored: Stored<Transition> = self.need(keys, &digest.to_string(), "transition").await?;
        let whole = stored.record.statement.digest() == digest && stored.record.values == ValueLocation::Here;
        if whole { Ok(stored) } else { Err(Error::Broken("a statement")) }
    }
}

/// Returns the head of a thread row for an entry.
pub(in crate::service) fn head_of(entry: &Entry) -> Head {
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

/// Returns the authors of the thread since the last confirmed write, with the new owner and the authors of
/// joined branches.
pub(in crate::service) fn authors_with(thread: &Thread, owner: &str, ask: &ProposalKind) -> BTreeSet<String> {
    let mut authors = thread.authors.clone();
    authors.extend(ask.carried().into_iter().flat_map(|it| it.authors.clone()));
    authors.insert(owner.to_owned());
    authors
}
