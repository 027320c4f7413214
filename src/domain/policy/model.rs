//! What a policy says once it is understood. Nothing here can be changed after it was compiled.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use super::budget::{Budget, Budgets};
use super::context_rules::ContextRules;
use super::pattern_set::Patterns;
use super::policy_source::PolicySource;
use super::redaction::detectors::Detectors;
use super::rules::PolicyRule;
use super::tool_globs::{ToolGlobs, ToolPolicy};
pub(super) use super::violation::OnViolation;
use crate::domain::chain::hash::Digest;
use crate::domain::context::{Encoding, ViewRequirements};
use crate::domain::json::pointer::Pointer;
use crate::domain::primitives::id::{FlowId, GroupName, NodeId};
use crate::domain::schema::Schema;
use crate::domain::threads::archive::RetentionPolicy;
use crate::domain::threads::flow::Mode;
use crate::domain::transition_rules;

/// A flow's rules, compiled once and used for every proposal.
pub struct Policy {
    pub(super) flow: FlowId,
    pub(super) digest: Digest,
    pub(super) source: PolicySource,
    pub(super) schema: Option<Schema>,
    pub(super) trust_initial: bool,
    pub(super) protected: Patterns,
    pub(super) transitions: Vec<transition_rules::TransitionRule>,
    pub(super) rules: Vec<PolicyRule>,
    pub(super) on_violation: OnViolation,
    pub(super) tools: ToolPolicy,
    pub(super) budgets: Budgets,
    pub(super) encoding: Encoding,
    /// How long states stay in the database; for ever, if it does not say.
    pub(super) retain: Option<RetentionPolicy>,
    /// How often one step may be tried.
    pub(super) step_attempts: u32,
    /// Where a state says how sure it is, for joins by confidence.
    pub(super) confidence: Option<Pointer>,
    pub(super) nodes: BTreeMap<NodeId, NodePolicy>,
    pub(super) approval: ApprovalPolicy,
    pub(super) hidden: Patterns,
    pub(super) detectors: Detectors,
    pub(super) reveal_to: BTreeSet<GroupName>,
    pub(super) mode: Mode,
}

/// What one node of the agent graph may do.
#[derive(Debug)]
pub struct NodePolicy {
    pub(super) reads: Patterns,
    pub(super) writes: Patterns,
    pub(super) deny: Patterns,
    pub(super) schema: Option<Schema>,
    pub(super) writer: bool,
    pub(super) rollback: bool,
    pub(super) fork: bool,
    /// Which tools it may call; none of its own if the policy does not say.
    pub(super) tools: Option<ToolGlobs>,
    pub(super) budget: Option<Budget>,
    /// What it is given before a model is called.
    pub(super) given: ContextRules,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApprovalPolicy {
    pub(super) covers: ApprovalScope,
    pub(super) ttl: Duration,
    pub(super) receipt_ttl: Duration,
    pub(super) write_lease: Duration,
    pub(super) attempts: u32,
    pub(super) attempts_within: Duration,
    pub(super) denials: u32,
    pub(super) stages: Vec<PolicyStage>,
    pub(super) remind_after: Option<Duration>,
    pub(super) escalation: Option<EscalationRule>,
    pub(super) amending: Option<PolicyChangeApproval>,
}

/// Who else is asked where nobody decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EscalationRule {
    pub(super) after: Duration,
    pub(super) to: BTreeSet<GroupName>,
}

/// How people approve the policy that takes this one's place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyChangeApproval {
    pub(super) stage: PolicyStage,
    pub(super) ttl: Duration,
}

/// What one approval admits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ApprovalScope {
    /// The exact state that will be written: once something was gated, every later head owes a receipt.
    Write,
    /// The approved transition: its values are admitted for good.
    Commit,
}

/// One round of votes. Every stage must reach its quorum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyStage {
    pub(super) groups: BTreeSet<GroupName>,
    pub(super) need: u32,
    pub(super) comment: CommentRule,
    pub(super) passkey: PasskeyRule,
    pub(super) confirm: ConfirmationRule,
}

/// What a stage asks of a voter's passkey.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PasskeyRule {
    Optional,
    /// That it was used at most so long ago.
    Within(Duration),
    Signs,
}

/// How an approval is confirmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfirmationRule {
    Pressed,
    /// By typing what names the change.
    Typed,
}

/// Whether a vote needs words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommentRule {
    /// A comment may be left out.
    Optional,
    /// A vote without a comment is refused.
    Required,
}

impl Policy {
    /// The flow this policy is for.
    pub fn flow(&self) -> &FlowId {
        &self.flow
    }

    /// The digest of text and schemas, which every head is bound to.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The policy as it was handed in.
    pub fn source(&self) -> &PolicySource {
        &self.source
    }

    /// Whether version 0 may set protected values without owing an approval.
    pub fn trust_initial(&self) -> bool {
        self.trust_initial
    }

    /// What only people may change.
    pub fn protected(&self) -> &Patterns {
        &self.protected
    }

    /// What a node asks of the view that it is given; nothing in particular, if the policy does not know it.
    pub fn wish(&self, node: &NodeId) -> ViewRequirements<'_> {
        let given = self.nodes.get(node).map(|it| &it.given);
        ViewRequirements {
            requires: given.map_or(&[], |it| &it.requires),
            priority: given.map_or(&[], |it| &it.priority),
            max_tokens: given.and_then(|it| it.max_tokens),
            encoding: self.encoding,
            receives: given.and_then(|it| it.receives.as_ref()),
        }
    }

    /// How long states stay in the database; for ever, if it does not say.
    pub fn retain(&self) -> Option<&RetentionPolicy> {
        self.retain.as_ref()
    }

    /// How often one step may be tried.
    pub fn step_attempts(&self) -> u32 {
        self.step_attempts
    }

    /// Where a state says how sure it is.
    pub fn confidence(&self) -> Option<&Pointer> {
        self.confidence.as_ref()
    }

    /// By which field the items of the list at a place are told apart, if they are.
    pub fn key_of_list(&self, place: &Pointer) -> Option<&str> {
        self.transitions.iter().filter(|it| it.at == *place).find_map(|it| match &it.kind {
            transition_rules::TransitionRuleKind::Keyed(keyed) => Some(keyed.key()),
            _ => None,
        })
    }

    /// What agents are to do when they violate it.
    pub fn on_violation(&self) -> OnViolation {
        self.on_violation
    }

    pub fn node(&self, node: &NodeId) -> Option<&NodePolicy> {
        self.nodes.get(node)
    }

    /// Every node with its rules, by name.
    pub fn nodes(&self) -> impl Iterator<Item = (&NodeId, &NodePolicy)> {
        self.nodes.iter()
    }

    /// The nodes that write to the outside: whom a receipt names.
    pub fn writers(&self) -> impl Iterator<Item = (&NodeId, &NodePolicy)> {
        self.nodes.iter().filter(|(_, node)| node.writer)
    }

    pub fn approval(&self) -> &ApprovalPolicy {
        &self.approval
    }

    /// Whether what people should decide waits for them.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What is hidden from pages, webhooks, events and errors.
    pub fn hidden(&self) -> &Patterns {
        &self.hidden
    }

    /// Whose members may look at one hidden value at a time.
    pub fn reveal_to(&self) -> &BTreeSet<GroupName> {
        &self.reveal_to
    }
}

impl fmt::Debug for Policy {
    /// Names the policy; its whole text would drown a log line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy").field("flow", &self.flow).field("digest", &self.digest).finish_non_exhaustive()
    }
}

impl NodePolicy {
    pub fn reads(&self) -> &Patterns {
        &self.reads
    }

    /// What the node may change.
    pub fn writes(&self) -> &Patterns {
        &self.writes
    }

    /// What the node may not change although `writes` covers it.
    pub fn deny(&self) -> &Patterns {
        &self.deny
    }

    /// Whether the node writes to the outside: it verifies and confirms.
    pub fn is_writer(&self) -> bool {
        self.writer
    }

    /// Whether the node may ask for an ancestor's state.
    pub fn may_roll_back(&self) -> bool {
        self.rollback
    }

    /// Whether the node may make branches.
    pub fn may_fork(&self) -> bool {
        self.fork
    }
}

impl ApprovalPolicy {
    /// What one approval admits.
    pub fn covers(&self) -> ApprovalScope {
        self.covers
    }

    /// How long a hold waits for people.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// How long a receipt opens the write.
    pub fn receipt_ttl(&self) -> Duration {
        self.receipt_ttl
    }

    /// How long a writer has between verify and confirm.
    pub fn write_lease(&self) -> Duration {
        self.write_lease
    }

    /// How many holds a node may open on one head, and for one effect within the window.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The window in which holds for one effect count.
    pub fn attempts_within(&self) -> Duration {
        self.attempts_within
    }

    /// How many denials end a hold.
    pub fn denials(&self) -> u32 {
        self.denials
    }

    pub fn stages(&self) -> &[PolicyStage] {
        &self.stages
    }

    /// After what time people are reminded of a hold.
    pub fn remind_after(&self) -> Option<Duration> {
        self.remind_after
    }

    /// Who else is asked where nobody decides.
    pub fn escalation(&self) -> Option<&EscalationRule> {
        self.escalation.as_ref()
    }

    /// How people approve the policy that takes this one's place; nobody is asked if it does not say.
    pub fn amending(&self) -> Option<&PolicyChangeApproval> {
        self.amending.as_ref()
    }
}

impl EscalationRule {
    /// How long the others have alone.
    pub fn after(&self) -> Duration {
        self.after
    }

    /// Whose members may then vote in every stage.
    pub fn to(&self) -> &BTreeSet<GroupName> {
        &self.to
    }
}

impl PolicyChangeApproval {
    pub fn stage(&self) -> &PolicyStage {
        &self.stage
    }

    /// How long it waits for people.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }
}

impl PolicyStage {
    pub fn groups(&self) -> &BTreeSet<GroupName> {
        &self.groups
    }

    /// How many distinct people must approve.
    pub fn need(&self) -> u32 {
        self.need
    }

    /// Whether a vote needs words.
    pub fn comment(&self) -> CommentRule {
        self.comment
    }

    /// What is asked of a voter's passkey.
    pub fn passkey(&self) -> PasskeyRule {
        self.passkey
    }

    /// How an approval is confirmed.
    pub fn confirm(&self) -> ConfirmationRule {
        self.confirm
    }
}
