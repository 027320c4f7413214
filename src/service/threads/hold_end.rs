//! The facts about the end of a review.

use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::HoldState;
use countersign_domain::threads::transition::HoldEndReason;

/// The end of a review.
pub(in crate::service) struct HoldEnd {
    pub(in crate::service) state: HoldState,
    pub(in crate::service) reason: HoldEndReason,
    pub(in crate::service) at: Timestamp,
}
