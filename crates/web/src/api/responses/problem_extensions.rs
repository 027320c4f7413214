//! The schema of the additional members of problems.

use countersign_domain::chain::hash::Digest;
use countersign_domain::primitives::id::ReviewId;
use utoipa::ToSchema;

/// Additional members of a problem. Each belongs to certain codes.
#[derive(Debug, ToSchema)]
pub struct ProblemExtensions {
    /// For `head_moved`: the current head.
    #[schema(nullable = false)]
    pub head: Option<HeadResponse>,
    /// For `step_reused`: the transition that the step has done or requested.
    #[schema(nullable = false)]
    pub transition: Option<Digest>,
    /// The version to continue from. Present for `head_moved`, `step_reused`, `conflict`, rejected proposals, and
    /// envelopes that are not issued or not accepted.
    #[schema(nullable = false)]
    pub checkpoint: Option<HeadResponse>,
    /// For `thread_held`: the review that holds the thread.
    #[schema(nullable = false)]
    pub review: Option<BlockingReview>,
    /// For `rejected`: the instruction for the agent.
    #[schema(nullable = false)]
    pub instruction: Option<InstructionResponse>,
    /// For `receipt_missing`: `receipt`.
    #[schema(nullable = false)]
    pub needs: Option<String>,
}

/// The head of a thread.
#[derive(Debug, ToSchema)]
pub struct HeadResponse {
    /// The version of the head.
    pub version: u64,
    /// The digest of the transition.
    pub transition: Digest,
}

/// The review that holds a thread.
#[derive(Debug, ToSchema)]
pub struct BlockingReview {
    /// The unique id.
    pub id: ReviewId,
}

/// The instruction for an agent.
#[derive(Debug, ToSchema)]
pub struct InstructionResponse {
    /// `stop`, `retry_once`, `no_more_tries` or `skip_node`.
    #[schema(pattern = "^(stop|retry_once|no_more_tries|skip_node)$")]
    pub action: String,
    /// The description, in words.
    pub detail: String,
}
