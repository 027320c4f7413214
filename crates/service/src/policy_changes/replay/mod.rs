//! Replay (backtest): judges the recorded proposals of a flow by another policy without any effect.

mod judge;
mod walk;

use std::sync::Arc;

use countersign_domain::chain::hash::Digest;
use countersign_domain::chain::statement::TransitionType;
use countersign_domain::policy::{Effort, PolicySource, RecordedOutcome, ReplayComparison};
use countersign_domain::primitives::id::{FlowId, NodeId, PrincipalId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::thread::Thread;
use countersign_store::{Cursor, RowFilter};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::policy_changes::PolicyChanges;
use walk::ReplayContext;

/// Rows of one call. Each is judged, and some need a state to be reconstructed.
pub const REPLAYED_MAX: u32 = 1_000;

/// Events that one call examines. In most threads, far fewer are proposals.
const EVENTS_MAX: usize = 5_000;

const THREADS_AT_ONCE: u32 = 50;

/// The position to continue from: after this event of this thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayCursor {
    thread: ThreadId,
    seq: u64,
}

impl ReplayCursor {
    pub fn token(&self) -> String {
        format!("{}.{}", self.seq, self.thread)
    }

    /// Reads the output of [`Self::token`]. Returns `None` for other text.
    pub fn read(token: &str) -> Option<Self> {
        let (seq, thread) = token.split_once('.')?;
        Some(Self { thread: ThreadId::try_from(thread).ok()?, seq: seq.parse().ok()? })
    }
}

/// A recorded proposal, and its result under the candidate policy.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct ReplayedProposal {
    /// The thread of the event.
    pub thread: ThreadId,
    /// The version that the proposal was based on.
    pub on_version: u64,
    /// The id of the request. A repeated request has the same one.
    pub proposal: Digest,
    /// The transition. Null for a rejected request.
    pub transition: Option<Digest>,
    /// The node that acts. The token must name it.
    pub node: NodeId,
    /// The id of the token or account that sent the request.
    pub principal: PrincipalId,
    /// The kind of request. Unknown for a rejected request that was not stored.
    pub kind: Option<TransitionType>,
    /// The time.
    pub at: Timestamp,
    /// The recorded result.
    pub was: RecordedOutcome,
    /// The result under the candidate policy.
    #[serde(flatten)]
    pub compared: ReplayComparison,
}

/// One page of replayed proposals.
#[derive(Clone, Debug)]
pub struct ReplayResult {
    /// The digest of the candidate policy.
    pub policy: Digest,
    /// The rows by thread name, and by time within a thread.
    pub rows: Vec<ReplayedProposal>,
    /// The position of the next page, or `None` at the end.
    pub next: Option<ReplayCursor>,
}

/// The work of one call: about a second of CPU time. A call judges at least one proposal, so that pagination
/// always makes progress.
const JUDGED_MAX: Effort = Effort::of(100_000_000);

/// The state of one call.
struct ReplayProgress {
    judged: Effort,
    rows: Vec<ReplayedProposal>,
    rows_max: usize,
    looked: usize,
    /// Events that were only read because they precede a branch.
    led_up: usize,
}

impl ReplayProgress {
    fn is_full(&self) -> bool {
        // Events that precede a branch count only after one event was examined, so that a call always makes
        // progress.
        let led_up = if self.looked > 0 { self.led_up } else { 0 };
        self.rows.len() >= self.rows_max || self.looked + led_up >= EVENTS_MAX || self.judged >= JUDGED_MAX
    }
}

impl PolicyChanges {
    /// Judges recorded proposals of a flow by a candidate policy, each with its original state and context.
    /// If data for a proposal is missing, its result is "unknown" instead of a guess. A call has a limit of
    /// work, and it yields to other requests between proposals.
    pub async fn replay(
        &self,
        by: &str,
        flow: &FlowId,
        candidate: &PolicySource,
        after: Option<&ReplayCursor>,
        limit: u32,
    ) -> Result<ReplayResult> {
        let active = self.policies.active_policy(flow).await?;
        let candidate = Arc::new(self.policies.compiled(by, candidate).await?);
        if candidate.flow() != flow {
            return Err(Error::invalid("/policy", crate::policy_changes::activate::OTHER_FLOW));
        }
        let keys = self.core.keys()?;
        let trial = ReplayContext { by, keys: &keys, candidate: &candidate, active: &active };
        let rows_max = usize::try_from(limit.clamp(1, REPLAYED_MAX)).unwrap_or(1);
        let mut page = ReplayProgress { judged: Effort::default(), rows: Vec::new(), rows_max, looked: 0, led_up: 0 };
        let policy = candidate.digest();
        let mut last = None;
        if let Some(ReplayCursor { thread, seq }) = after {
            let thread = self.core.thread(&keys, thread).await?.record;
            // The cursor comes from the caller and could name a thread of another flow.
            if thread.flow != *flow {
                return Err(Error::NotFound("thread"));
            }
            if let Some(seq) = self.walk(&trial, &thread, *seq, &mut page).await? {
                return Ok(ReplayResult {
                    policy,
                    rows: page.rows,
                    next: Some(ReplayCursor { thread: thread.id, seq }),
                });
            }
            last = Some(thread.id);
        }
        loop {
            let cursor = last.as_ref().map(|it| Cursor { due: 0, id: it.to_string() });
            let filter = RowFilter::Owner(flow.as_str());
            // Loaded in small groups, because a page may end in the first of them.
            let threads = self.core.reader(&keys).list::<Thread>(filter, cursor.as_ref(), THREADS_AT_ONCE).await?;
            if threads.is_empty() {
                return Ok(ReplayResult { policy, rows: page.rows, next: None });
            }
            for thread in threads {
                let thread = thread.record;
                if let Some(seq) = self.walk(&trial, &thread, 0, &mut page).await? {
                    return Ok(ReplayResult {
                        policy,
                        rows: page.rows,
                        next: Some(ReplayCursor { thread: thread.id, seq }),
                    });
                }
                last = Some(thread.id);
            }
        }
    }
}
