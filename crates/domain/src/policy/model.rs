//! The compiled policy. It never changes after compilation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use super::budget::{Budget, Budgets};
use super::context_rules::ContextRules;
use super::pattern_set::Patterns;
use super::policy_source::PolicySource;
use super::redaction::detectors::Detectors;
use super::rules::PolicyRule;
use super::tool_description::ToolDescription;
use super::tool_globs::{ToolGlobs, ToolPolicy};
pub(super) use super::violation::OnViolation;
use crate::chain::hash::Digest;
use crate::context::{Encoding, ViewRequirements};
use crate::json::pointer::Pointer;
use crate::primitives::id::{FlowId, GroupName, NodeId, ToolName};
use crate::schema::Schema;
use crate::threads::archive::RetentionPolicy;
use crate::threads::flow::Mode;
use crate::transition_rules;

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
    /// Time after which states leave the database. Without it, they stay permanently.
    pub(super) retain: Option<RetentionPolicy>,
    /// Maximum number of attempts of one step.
    pub(super) step_attempts: u32,
    /// Path of the confidence value in a state, for joins by confidence.
    pub(super) confidence: Option<Pointer>,
    pub(super) nodes: BTreeMap<NodeId, NodePolicy>,
    pub(super) approval: ApprovalPolicy,
    pub(super) hidden: Patterns,
    pub(super) detectors: Detectors,
    pub(super) reveal_to: BTreeSet<GroupName>,
    pub(super) mode: Mode,
}

/// Permissions of one node of the agent graph.
#[derive(Debug)]
pub struct NodePolicy {
    pub(super) reads: Patterns,
    pub(super) writes: Patterns,
    pub(super) deny: Patterns,
    pub(super) schema: Option<Schema>,
    pub(super) writer: bool,
    pub(super) rollback: bool,
    pub(super) fork: bool,
    /// Tools that it may call. `None` if the policy has no list for the node.
    pub(super) tools: Option<ToolGlobs>,
    pub(super) budget: Option<Budget>,
    /// View that the node receives before a model call.
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

/// Groups to which an undecided review is escalated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EscalationRule {
    pub(super) after: Duration,
    pub(super) to: BTreeSet<GroupName>,
}

/// Approval that a new policy for the flow requires. Without it, a new policy is activated at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyChangeApproval {
    pub(super) stage: PolicyStage,
    pub(super) ttl: Duration,
}

/// Scope of one approval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ApprovalScope {
    /// The exact state that will be written. After the first approved change, every later head requires its own
    /// approval.
    Write,
    /// The approved transition. Its values stay approved permanently.
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

/// Passkey requirement of a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PasskeyRule {
    Optional,
    /// The passkey was used within this time.
    Within(Duration),
    Signs,
}

/// How an approval is confirmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfirmationRule {
    Pressed,
    /// By typing characters that identify the change.
    Typed,
}

/// Whether a vote needs a comment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommentRule {
    /// A comment may be left out.
    Optional,
    /// A vote without a comment is rejected.
    Required,
}

impl Policy {
    /// The flow this policy is for.
    pub fn flow(&self) -> &FlowId {
        &self.flow
    }

    /// Returns the digest of text and schemas, to which every head is bound.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the source of the policy.
    pub fn source(&self) -> &PolicySource {
        &self.source
    }

    /// Returns whether version 0 may set protected values without its own approval.
    pub fn trust_initial(&self) -> bool {
        self.trust_initial
    }

    /// Returns the patterns whose change requires approval.
    pub fn protected(&self) -> &Patterns {
        &self.protected
    }

    /// Returns the requirements for a node's view. They are empty for an unknown node.
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

    /// Returns the time after which states leave the database. Without it, they stay permanently.
    pub fn retain(&self) -> Option<&RetentionPolicy> {
        self.retain.as_ref()
    }

    /// Returns how many attempts of one step are allowed.
    pub fn step_attempts(&self) -> u32 {
        self.step_attempts
    }

    /// Returns the path of the confidence value in a state.
    pub fn confidence(&self) -> Option<&Pointer> {
        self.confidence.as_ref()
    }

    /// Returns the field that identifies the items of the list at a path, if there is one.
    pub fn key_of_list(&self, place: &Pointer) -> Option<&str> {
        self.transitions.iter().filter(|it| it.at == *place).find_map(|it| match &it.kind {
            transition_rules::TransitionRuleKind::Keyed(keyed) => Some(keyed.key()),
            _ => None,
        })
    }

    /// Returns the instruction for agents whose request is rejected.
    pub fn on_violation(&self) -> OnViolation {
        self.on_violation
    }

    /// Returns how reviewers see the calls of a tool, if the policy describes it.
    pub fn tool_description(&self, tool: &ToolName) -> Option<&ToolDescription> {
        self.tools.described.get(tool)
    }

    /// Returns whether the policy names this tool in full. Otherwise the name is a text of the agent.
    pub fn names_tool(&self, tool: &ToolName) -> bool {
        let lists = self.nodes.values().filter_map(|it| it.tools.as_ref()).chain(&self.tools.allow);
        self.tools.described.contains_key(tool) || lists.into_iter().any(|it| it.names(tool))
    }

    pub fn node(&self, node: &NodeId) -> Option<&NodePolicy> {
        self.nodes.get(node)
    }

    /// Returns every node with its permissions, by name.
    pub fn nodes(&self) -> impl Iterator<Item = (&NodeId, &NodePolicy)> {
        self.nodes.iter()
    }

    /// Returns the writer nodes, which a receipt names.
    pub fn writers(&self) -> impl Iterator<Item = (&NodeId, &NodePolicy)> {
        self.nodes.iter().filter(|(_, node)| node.writer)
    }

    pub fn approval(&self) -> &ApprovalPolicy {
        &self.approval
    }

    /// Returns whether the flow enforces its approvals or only observes.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the patterns that are redacted on pages and in webhooks, events and errors.
    pub fn hidden(&self) -> &Patterns {
        &self.hidden
    }

    /// Returns the groups whose members may reveal one redacted value at a time.
    pub fn reveal_to(&self) -> &BTreeSet<GroupName> {
        &self.reveal_to
    }
}

impl fmt::Debug for Policy {
    /// Prints only the name of the policy, because its text would be too long for a log line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy").field("flow", &self.flow).field("digest", &self.digest).finish_non_exhaustive()
    }
}

impl NodePolicy {
    pub fn reads(&self) -> &Patterns {
        &self.reads
    }

    /// Returns the patterns that the node may change.
    pub fn writes(&self) -> &Patterns {
        &self.writes
    }

    /// Returns the patterns that the node may not change although `writes` covers them.
    pub fn deny(&self) -> &Patterns {
        &self.deny
    }

    /// Returns whether the node is a writer, which verifies and confirms writes.
    pub fn is_writer(&self) -> bool {
        self.writer
    }

    /// Returns whether the node may request a rollback.
    pub fn may_roll_back(&self) -> bool {
        self.rollback
    }

    /// Returns whether the node may create branches.
    pub fn may_fork(&self) -> bool {
        self.fork
    }
}

impl ApprovalPolicy {
    /// Returns the scope of one approval.
    pub fn covers(&self) -> ApprovalScope {
        self.covers
    }

    /// Returns the time that a pending review stays open.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Returns the lifetime of a receipt.
    pub fn receipt_ttl(&self) -> Duration {
        self.receipt_ttl
    }

    /// Returns the lease: the time that a writer has between verify and confirm.
    pub fn write_lease(&self) -> Duration {
        self.write_lease
    }

    /// Returns how many reviews a node may open on one head, and for one effect within the window.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns the window in which reviews for one effect count.
    pub fn attempts_within(&self) -> Duration {
        self.attempts_within
    }

    /// Returns the number of denials that end a pending review.
    pub fn denials(&self) -> u32 {
        self.denials
    }

    pub fn stages(&self) -> &[PolicyStage] {
        &self.stages
    }

    /// Returns the time after which reviewers are reminded of a pending review.
    pub fn remind_after(&self) -> Option<Duration> {
        self.remind_after
    }

    /// Returns when and to which groups an undecided review is escalated.
    pub fn escalation(&self) -> Option<&EscalationRule> {
        self.escalation.as_ref()
    }

    /// Returns the approval that a new policy for the flow requires. Without it, a new policy is activated at once.
    pub fn amending(&self) -> Option<&PolicyChangeApproval> {
        self.amending.as_ref()
    }
}

impl EscalationRule {
    /// Returns the time before the escalation.
    pub fn after(&self) -> Duration {
        self.after
    }

    /// Returns the groups whose members may then vote in every stage.
    pub fn to(&self) -> &BTreeSet<GroupName> {
        &self.to
    }
}

impl PolicyChangeApproval {
    pub fn stage(&self) -> &PolicyStage {
        &self.stage
    }

    /// Returns the time that a policy change request stays open.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }
}

impl PolicyStage {
    pub fn groups(&self) -> &BTreeSet<GroupName> {
        &self.groups
    }

    /// Returns the number of distinct reviewers who must approve.
    pub fn need(&self) -> u32 {
        self.need
    }

    /// Returns whether a vote needs a comment.
    pub fn comment(&self) -> CommentRule {
        self.comment
    }

    pub fn passkey(&self) -> PasskeyRule {
        self.passkey
    }

    /// How an approval is confirmed.
    pub fn confirm(&self) -> ConfirmationRule {
        self.confirm
    }
}
