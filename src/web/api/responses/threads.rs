//! Threads, as they are told.

use serde_json::Value;
use utoipa::ToSchema;

use super::reviews::ReviewLink;
use crate::domain::chain::hash::Digest;
use crate::domain::chain::opening::Opening;
use crate::domain::chain::statement::Statement;
use crate::domain::context::{Encoding, Epoch, MacAlg};
use crate::domain::episode::agent_event::Phase;
use crate::domain::primitives::id::{BranchName, EventId, FlowId, NodeId, ThreadId, ToolName};
use crate::domain::primitives::time::Timestamp;
use crate::domain::threads::branch::Branch;
use crate::domain::threads::thread::Status;

/// A thread that was made.
#[derive(Debug, ToSchema)]
pub struct ThreadMade {
    /// Its name.
    pub thread: ThreadId,
    /// Its flow.
    pub flow: FlowId,
    /// Always 0.
    pub version: u64,
    /// Version 0's digest: what the first proposal names as its parent.
    pub transition: Digest,
    /// Version 0's root.
    pub state_root: Digest,
    /// Version 0's signed entry, a JWS.
    pub entry: String,
}

/// Branches that were made.
#[derive(Debug, ToSchema)]
pub struct BranchesMade {
    /// Of which thread.
    pub thread: ThreadId,
    /// Of which version.
    pub version: u64,
    /// Of which head: the parent of their join.
    pub transition: Digest,
    /// They, in the order in which they were asked for.
    pub branches: Vec<BranchMade>,
}

/// A branch that was made.
#[derive(Debug, ToSchema)]
pub struct BranchMade {
    /// What a join calls it.
    pub name: BranchName,
    /// Its thread, where its agents propose.
    pub thread: ThreadId,
    /// Always 0.
    pub version: u64,
    /// Version 0's digest: what the first proposal names as its parent.
    pub transition: Digest,
    /// Version 0's root.
    pub state_root: Digest,
    /// Version 0's signed entry, a JWS.
    pub entry: String,
}

/// An event that is in a run's timeline.
#[derive(Debug, ToSchema)]
pub struct EventAdded {
    /// Its name: what later events can name as their cause.
    pub event: EventId,
    /// The run's thread.
    pub thread: ThreadId,
    /// Which of the run's it is, of those that agents added, from 1.
    pub number: u64,
    /// What the run does in it.
    pub phase: Phase,
    /// When it came.
    pub timestamp: Timestamp,
    /// How many more agents can add, besides the run's end.
    pub left: u64,
}

/// A thread as it stands.
#[derive(Debug, ToSchema)]
pub struct ThreadNow {
    /// Its name.
    pub thread: ThreadId,
    /// Its flow.
    pub flow: FlowId,
    /// What it is doing.
    pub status: Status,
    /// The head's version.
    pub version: u64,
    /// The head.
    pub transition: Digest,
    /// Whether the head needs a receipt of its own before it is written.
    pub owes: bool,
    /// What its calls have used; not told to agents.
    #[schema(nullable = false)]
    pub spent: Option<Spent>,
    /// The head that it begins with, if it is a branch: then it is never written.
    #[schema(nullable = false)]
    pub branch_of: Option<Branch>,
    /// The review that holds it.
    #[schema(nullable = false)]
    pub review: Option<ReviewLink>,
}

/// What calls have used.
#[derive(Debug, ToSchema)]
pub struct Spent {
    /// How many calls of tools.
    pub calls: u64,
    /// How many tokens.
    pub tokens: u64,
    /// In the policy's currency.
    pub cost: f64,
    /// How many tokens nodes were given, in hundreds, where that was counted.
    #[schema(nullable = false)]
    pub context_tokens: Option<u64>,
}

/// What a node may read of a version, and nothing else.
#[derive(Debug, ToSchema)]
pub struct StateSeen {
    /// The thread.
    pub thread: ThreadId,
    /// Which version.
    pub version: u64,
    /// Its transition.
    pub transition: Digest,
    /// The view.
    #[schema(value_type = Object)]
    pub state: Value,
}

/// An envelope that may be given to a model.
#[derive(Debug, ToSchema)]
pub struct EnvelopeChecked {
    /// Always true; anything else is a problem.
    pub valid: bool,
    /// Of which thread it is a view.
    pub thread: ThreadId,
    /// Whose.
    pub node: NodeId,
    /// Of which version, which is the head's.
    pub version: u64,
    /// The head.
    pub transition: Digest,
    /// How many tokens it is.
    pub tokens: u64,
    /// Counted how.
    pub encoding: Encoding,
}

/// The secrets of a node that are good now.
#[derive(Debug, ToSchema)]
pub struct NodeSecretsShown {
    /// Of which flow.
    pub flow: FlowId,
    /// Of which of its nodes.
    pub node: NodeId,
    /// What they are for.
    pub alg: MacAlg,
    /// When the next period begins, and with it another secret.
    pub rotates_at: Timestamp,
    /// The one of this period, and for a while the one before.
    pub secrets: Vec<NodeSecretShown>,
}

/// The secret of one period.
#[derive(Debug, ToSchema)]
pub struct NodeSecretShown {
    /// When the period began: an HMAC names it.
    pub epoch: Epoch,
    /// Until when an HMAC by it is good.
    pub good_until: Timestamp,
    /// `envsec_` and 32 bytes in base64url without padding.
    pub secret: String,
}

/// A page of a chain.
#[derive(Debug, ToSchema)]
pub struct ChainPage {
    /// Signed entries with their statements, version by version.
    pub entries: Vec<ChainEntry>,
    /// Where the next page begins; null at the end.
    #[schema(required)]
    pub next_page_token: Option<u64>,
}

/// One version of a chain.
#[derive(Debug, ToSchema)]
pub struct ChainEntry {
    /// Which.
    pub version: u64,
    /// Its digest.
    pub transition: Digest,
    /// What was stated.
    pub statement: Statement,
    /// The signed entry, a JWS.
    pub entry: String,
    /// Both trees, opened; to auditors.
    #[schema(nullable = false)]
    pub opening: Option<Opening>,
}

/// What a thread does after an administrator's word.
#[derive(Debug, ToSchema)]
pub struct ThreadStatus {
    /// The thread.
    pub thread: ThreadId,
    /// What it does.
    pub status: Status,
}

/// A tool that an agent calls.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// Which.
    pub name: ToolName,
    /// With what: 16 KiB at most.
    #[schema(value_type = Object)]
    pub arguments: Value,
}

/// What a proposal took.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Used {
    /// How many tokens.
    pub tokens: Option<u64>,
    /// In the policy's currency.
    #[schema(minimum = 0)]
    pub cost: Option<f64>,
}
