//! The facts about the end of a review.

use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::HoldState;
use countersign_domain::threads::transition::HoldEndReason;

/// The end of a review.
pub(crate) struct HoldEnd {
    pub(crate) state: HoldState,
    pub(crate) reason: HoldEndReason,
    pub(crate) at: Timestamp,
}
