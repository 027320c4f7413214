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

use crate::threads::Threads;
use crate::threads::version::Version;

/// A judged and stated transition that is not yet committed or held.
pub(crate) struct StatedTransition {
    pub(crate) transition: Transition,
    pub(crate) after: Version,
}

/// The parts of a statement other than its thread and head.
pub(crate) struct StatementInput<'a> {
    pub(crate) kind: TransitionType,
    pub(crate) node: &'a NodeId,
    pub(crate) principal: PrincipalId,
    pub(crate) attempt: Option<u32>,
    pub(crate) format: PatchFormat,
    pub(crate) patch: Value,
    pub(crate) rationale: Option<String>,
    pub(crate) tool: Option<Tool>,
    pub(crate) usage: Usage,
    /// The context tokens of the node, if they are counted.
    pub(crate) context_tokens: Option<u64>,
    /// The agent's name for the step.
    pub(crate) step: Option<StepKey>,
    pub(crate) restores: Option<Digest>,
    /// The transition that an edit replaces, and the editor.
    pub(crate) edits: Option<(Digest, AccountId)>,
    pub(crate) write_id: Option<WriteId>,
    /// The joined branches, and what the join adds to the thread.
    pub(crate) joins: Option<(JoinStatement, JoinCarryover)>,
    pub(crate) identity: Digest,
    pub(crate) now: Timestamp,
}

pub(crate) struct JudgedEffect {
    pub(crate) after: Value,
    pub(crate) named: BTreeSet<Pointer>,
    pub(crate) warnings: Vec<JudgedWarning>,
}

impl Threads {
    /// Returns the statement, digest and tree of a transition on a head.
    pub(crate) fn state(
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

pub(crate) fn new_proposal_id() -> ProposalId {
    ProposalId::try_from(random::uuid_v4().to_string()).expect("a UUID is a name")
}
