//! Creates the statement of a judged transition, which the gateway signs.

use std::collections::BTreeSet;

use countersign_adapters::random;
use countersign_domain::chain::commitment::LeafSource;
use countersign_domain::chain::hash::{Digest, Tag};
use countersign_domain::chain::statement::{Statement, TransitionType};
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::json::state_delta::Delta;
use countersign_domain::keys::Keys;
use countersign_domain::policy::{JudgedWarning, Policy, Redactor};
use countersign_domain::primitives::id::{AccountId, NodeId, PrincipalId, ProposalId, StepKey, WriteId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::branch::JoinStatement;
use countersign_domain::threads::join_carryover::JoinCarryover;
use countersign_domain::threads::tool_call::Tool;
use countersign_domain::threads::transition::{Transition, TransitionOutcome, ValueLocation};
use countersign_domain::threads::usage::Usage;
use serde_json::Value;

use crate::service::threads::Threads;
use crate::service::threads::version::Version;

/// A judged and stated transition that is not yet committed or held.
pub(in crate::service) struct StatedTransition {
    pub(in crate::service) transition: Transition,
    pub(in crate::service) after: Version,
}

/// The parts of a statement other than its thread and head.
pub(in crate::service) struct StatementInput<'a> {
    pub(in crate::service) kind: TransitionType,
    pub(in crate::service) node: &'a NodeId,
    pub(in crate::service) principal: PrincipalId,
    pub(in crate::service) attempt: Option<u32>,
    pub(in crate::service) format: PatchFormat,
    pub(in crate::service) patch: Value,
    pub(in crate::service) rationale: Option<String>,
    pub(in crate::service) tool: Option<Tool>,
    pub(in crate::service) usage: Usage,
    /// The context tokens of the node, if they are counted.
    pub(in crate::service) context_tokens: Option<u64>,
    /// The agent's name for the step.
    pub(in crate::service) step: Option<StepKey>,
    pub(in crate::service) restores: Option<Digest>,
    /// The transition that an edit replaces, and the editor.
    pub(in crate::service) edits: Option<(Digest, AccountId)>,
    pub(in crate::service) write_id: Option<WriteId>,
    /// The joined branches, and what the join adds to the thread.
    pub(in crate::service) joins: Option<(JoinStatement, JoinCarryover)>,
    pub(in crate::service) identity: Digest,
    pub(in crate::service) now: Timestamp,
}

pub(in crate::service) struct JudgedEffect {
    pub(in crate::service) after: Value,
    pub(in crate::service) named: BTreeSet<Pointer>,
    pub(in crate::service) warnings: Vec<JudgedWarning>,
}

impl Threads {
    /// Returns the statement, digest and tree of a transition on a head.
    pub(in crate::service) fn state(
        &self,
        keys: &Keys,
        head: &Version,
        policy: &Policy,
        stating: StatementInput<'_>,
        effected: JudgedEffect,
    ) -> StatedTransition {
        let proposal = new_proposal_id();
        let secret = self.secret(keys, &head.entry.thread);
        let setting = LeafSource { proposal: &proposal, named: &effected.named };
        let tree = head.tree.advance(&secret, &head.state, &effected.after, &setting);
        let tool = stating.tool.as_ref().map(|it| it.stated(&secret, &proposal));
        let statement = Statement {
            kind: stating.kind,
            flow: head.statement.flow.clone(),
            policy: policy.digest(),
            thread: head.entry.thread.clone(),
            version: head.entry.version + 1,
            parent: Some(head.entry.transition),
            node: Some(stating.node.clone()),
            principal: stating.principal,
            proposal,
            attempt: stating.attempt,
            from: head.tree.root(),
            to: tree.root(),
            tool,
            usage: stating.usage.stated(),
            rationale: stating.rationale.as_ref().map(|it| Digest::of(Tag::Rationale, &[it.as_bytes()])),
            supersedes: stating.edits.as_ref().map(|it| it.0),
            restores: stating.restores,
            write_id: stating.write_id,
            proposed_at: stating.now,
            fork: None,
            join: stating.joins.as_ref().map(|it| it.0.clone()),
        };
        let shown = (!effected.warnings.is_empty()).then(|| {
            Redactor::of(policy, [&head.state, &effected.after], stating.tool.as_ref()).warnings(&effected.warnings)
        });
        let transition = Transition {
            digest: statement.digest(),
            identity: stating.identity,
            statement: statement.clone(),
            format: stating.format,
            patch: stating.patch,
            delta: Delta::between(&head.state, &effected.after),
            named: effected.named,
            rationale: stating.rationale,
            tool: stating.tool,
            warnings_cut: shown.filter(|it| *it != effected.warnings),
            warnings: effected.warnings,
            step: stating.step,
            carried: stating.joins.map(|it| Box::new(it.1)),
            context_tokens: stating.context_tokens,
            editor: stating.edits.map(|it| it.1),
            outcome: TransitionOutcome::Committed { entry: String::new() },
            values: ValueLocation::Here,
        };
        StatedTransition { transition, after: head.followed_by(statement, effected.after, tree) }
    }
}

pub(in crate::service) fn new_proposal_id() -> ProposalId {
    ProposalId::try_from(random::uuid_v4().to_string()).expect("a UUID is a name")
}
