//! The facts about the end of a review.

use crate::domain::primitives::time::Timestamp;
use crate::domain::reviews::HoldState;
use crate::domain::threads::transition::HoldEndReason;

/// The end of a review.
pub(in crate::service) struct HoldEnd {
    pub(in crate::service) state: HoldState,
    pub(in crate::service) reason: HoldEndReason,
    pub(in crate::service) at: Timestamp,
}
