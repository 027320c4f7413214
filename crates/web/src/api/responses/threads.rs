//! Response schemas of threads.

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::opening::Opening;
use countersign_domain::chain::statement::Statement;
use countersign_domain::context::{Encoding, Epoch, MacAlg};
use countersign_domain::episode::agent_event::Phase;
use countersign_domain::primitives::id::{BranchName, EventId, FlowId, NodeId, ThreadId, ToolName};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::branch::Branch;
use countersign_domain::threads::thread::ThreadStatusCode;
use serde_json::Value;
use utoipa::ToSchema;

use super::reviews::ReviewLink;

/// A created thread.
#[derive(Debug, ToSchema)]
pub struct ThreadCreatedResponse {
    /// The name of the thread.
    pub thread: ThreadId,
    /// The flow of the thread.
    pub flow: FlowId,
    /// Always 0.
    pub version: u64,
    /// The digest of version 0. The first proposal names it as its parent.
    pub transition: Digest,
    /// The root of version 0.
    pub state_root: Digest,
    /// The signed entry of version 0, a JWS.
    pub entry: String,
}

/// The created branches of a thread.
#[derive(Debug, ToSchema)]
pub struct BranchesCreatedResponse {
    /// The thread that was forked.
    pub thread: ThreadId,
    /// The version that was forked.
    pub version: u64,
    /// The head that was forked. It is the parent of the join.
    pub transition: Digest,
    /// The branches, in the order of the request.
    pub branches: Vec<BranchCreatedResponse>,
}

/// A created branch.
#[derive(Debug, ToSchema)]
pub struct BranchCreatedResponse {
    /// The name of the branch in a join.
    pub name: BranchName,
    /// The thread of the branch, where its agents propose.
    pub thread: ThreadId,
    /// Always 0.
    pub version: u64,
    /// The digest of version 0. The first proposal names it as its parent.
    pub transition: Digest,
    /// The root of version 0.
    pub state_root: Digest,
    /// The signed entry of version 0, a JWS.
    pub entry: String,
}

/// An event in the timeline of an episode.
#[derive(Debug, ToSchema)]
pub struct EpisodeEventAddedResponse {
    /// The id of the event. Later events can name it as their cause.
    pub event: EventId,
    /// The thread of the episode.
    pub thread: ThreadId,
    /// The number of the event among those that agents added, from 1.
    pub number: u64,
    /// The phase of the event.
    pub phase: Phase,
    /// The time at which the gateway received it.
    pub timestamp: Timestamp,
    /// The number of events that agents can still add, not counting the end.
    pub left: u64,
}

/// A thread and its current status.
#[derive(Debug, ToSchema)]
pub struct ThreadResponse {
    /// The name of the thread.
    pub thread: ThreadId,
    /// The flow of the thread.
    pub flow: FlowId,
    /// The status of the thread.
    pub status: ThreadStatusCode,
    /// The version of the head.
    pub version: u64,
    /// The head of the thread.
    pub transition: Digest,
    /// Whether the head requires a receipt of its own before it is written.
    pub owes: bool,
    /// The usage of the thread. Not for agents.
    #[schema(nullable = false)]
    pub spent: Option<UsageResponse>,
    /// For a branch: the head that it begins with. A branch is never written.
    #[schema(nullable = false)]
    pub branch_of: Option<Branch>,
    /// The review that holds the thread.
    #[schema(nullable = false)]
    pub review: Option<ReviewLink>,
}

/// The usage of a thread.
#[derive(Debug, ToSchema)]
pub struct UsageResponse {
    /// The number of tool calls.
    pub calls: u64,
    /// The number of tokens.
    pub tokens: u64,
    /// The cost, in the policy's currency.
    pub cost: f64,
    /// The number of context tokens given to nodes, in hundreds, if counted.
    #[schema(nullable = false)]
    pub context_tokens: Option<u64>,
}

/// A node's view of a version.
#[derive(Debug, ToSchema)]
pub struct StateResponse {
    /// The name of the thread.
    pub thread: ThreadId,
    /// The version of the view.
    pub version: u64,
    /// The transition of that version.
    pub transition: Digest,
    /// The view.
    #[schema(value_type = Object)]
    pub state: Value,
}

/// A valid envelope.
#[derive(Debug, ToSchema)]
pub struct EnvelopeVerifiedResponse {
    /// Always true. Anything else is a problem response.
    pub valid: bool,
    /// The thread of the view.
    pub thread: ThreadId,
    /// The node of the view.
    pub node: NodeId,
    /// The version of the view, which is the head's.
    pub version: u64,
    /// The head of the thread.
    pub transition: Digest,
    /// The number of tokens.
    pub tokens: u64,
    /// The tokenizer that counted the tokens.
    pub encoding: Encoding,
}

/// The valid HMAC secrets of a node.
#[derive(Debug, ToSchema)]
pub struct NodeSecretsResponse {
    /// The flow of the node.
    pub flow: FlowId,
    /// The node.
    pub node: NodeId,
    /// The HMAC algorithm.
    pub alg: MacAlg,
    /// The start of the next period, which has another secret.
    pub rotates_at: Timestamp,
    /// The secret of this period and, during the overlap, the previous one.
    pub secrets: Vec<NodeSecretResponse>,
}

/// The secret of one period.
#[derive(Debug, ToSchema)]
pub struct NodeSecretResponse {
    /// The start of the period. An HMAC names it.
    pub epoch: Epoch,
    /// The time until which an HMAC with it is valid.
    pub good_until: Timestamp,
    /// `envsec_` and 32 bytes in base64url without padding.
    pub secret: String,
}

/// One page of a chain.
#[derive(Debug, ToSchema)]
pub struct ChainResponse {
    /// The signed entries with their statements, by ascending version.
    pub entries: Vec<ChainEntryResponse>,
    /// The `page_token` of the next page. Null on the last page.
    #[schema(required)]
    pub next_page_token: Option<u64>,
}

/// One version of a chain.
#[derive(Debug, ToSchema)]
pub struct ChainEntryResponse {
    /// The version.
    pub version: u64,
    /// The digest of the transition.
    pub transition: Digest,
    /// The statement of the transition.
    pub statement: Statement,
    /// The signed entry, a JWS.
    pub entry: String,
    /// The openings of both trees. For auditors only.
    #[schema(nullable = false)]
    pub opening: Option<Opening>,
}

/// The status of a thread after an administrator's action.
#[derive(Debug, ToSchema)]
pub struct ThreadStatusResponse {
    /// The name of the thread.
    pub thread: ThreadId,
    /// The new status.
    pub status: ThreadStatusCode,
}

/// A tool call of an agent.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The name of the tool.
    pub name: ToolName,
    /// The arguments: at most 1 MiB of canonical JSON and 10,000 values.
    #[schema(value_type = Object)]
    pub arguments: Value,
}

/// The usage of a proposal.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageInput {
    /// The number of tokens.
    pub tokens: Option<u64>,
    /// The cost, in the policy's currency.
    #[schema(minimum = 0)]
    pub cost: Option<f64>,
}
