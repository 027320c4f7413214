//! What a problem says besides what every problem says.

use utoipa::ToSchema;

use crate::domain::chain::hash::Digest;
use crate::domain::primitives::id::ReviewId;

/// Facts that help to go on, each with some codes only.
#[derive(Debug, ToSchema)]
pub struct Facts {
    /// Of `head_moved`: the head as it is.
    #[schema(nullable = false)]
    pub head: Option<HeadNow>,
    /// Of `step_reused`: what the step has done, or people may still let it do.
    #[schema(nullable = false)]
    pub transition: Option<Digest>,
    /// Of `head_moved`, `step_reused` and `conflict`, of what a proposal is rejected for, and of envelopes that are not made or not believed: the
    /// version that stands, to go on from.
    #[schema(nullable = false)]
    pub checkpoint: Option<HeadNow>,
    /// Of `thread_held`: the review that holds it.
    #[schema(nullable = false)]
    pub review: Option<HoldingReview>,
    /// Of `rejected`: what the agent is to do.
    #[schema(nullable = false)]
    pub instruction: Option<Instructed>,
    /// Of `receipt_missing`: `receipt`.
    #[schema(nullable = false)]
    pub needs: Option<String>,
}

/// A head as it is.
#[derive(Debug, ToSchema)]
pub struct HeadNow {
    /// Its version.
    pub version: u64,
    /// Its digest.
    pub transition: Digest,
}

/// The review that holds a thread.
#[derive(Debug, ToSchema)]
pub struct HoldingReview {
    /// Its name.
    pub id: ReviewId,
}

/// What an agent is to do.
#[derive(Debug, ToSchema)]
pub struct Instructed {
    /// `stop`, `retry_once`, `no_more_tries` or `skip_node`.
    #[schema(pattern = "^(stop|retry_once|no_more_tries|skip_node)$")]
    pub action: String,
    /// In words.
    pub detail: String,
}
