//! Instructions for agents whose request is rejected.

use serde::{Deserialize, Serialize};

use crate::primitives::named_enum::named_json_enum;

named_json_enum! {
    /// `on_violation`: the consequence of a rejected request for the run.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub enum OnViolation {
        FailFast = "fail_fast",
        /// The node has one more attempt on the same head.
        RetryOnce = "retry_once",
        /// The whole patch of the node is dropped, and the run continues.
        SkipNode = "skip_node",
    }
}

named_json_enum! {
    /// Next action of a rejected node, for programs.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub enum Instruction {
        Stop = "stop",
        /// Send one other request on this head.
        RetryOnce = "retry_once",
        /// Send nothing more on this head.
        NoMoreTries = "no_more_tries",
        /// Continue with the next node, without this node's changes.
        SkipNode = "skip_node",
    }
}

/// Rejected requests of one node on one head with `retry_once`: the first one and its retry.
const VIOLATIONS_MAX: u32 = 2;

impl OnViolation {
    /// Returns whether a node that was rejected this often on a head has no attempts left there.
    pub const fn is_exhausted(self, violations: u32) -> bool {
        matches!(self, Self::RetryOnce) && violations >= VIOLATIONS_MAX
    }

    /// Returns the instruction for a node after this number of rejections on the head.
    pub const fn instruction(self, violations: u32) -> Instruction {
        match self {
            Self::FailFast => Instruction::Stop,
            Self::SkipNode => Instruction::SkipNode,
            Self::RetryOnce if self.is_exhausted(violations) => Instruction::NoMoreTries,
            Self::RetryOnce => Instruction::RetryOnce,
        }
    }
}

impl Instruction {
    pub const fn detail(self) -> &'static str {
        match self {
            Self::Stop => "Nothing was applied. End this run as failed.",
            Self::RetryOnce => {
                "Nothing was applied. Send one corrected request on the same head; a second rejection uses up this node's attempts there."
            }
            Self::NoMoreTries => {
                "Nothing was applied. This node has no attempts left on this head: end the run as failed, or wait for a new head."
            }
            Self::SkipNode => "Nothing of the patch was applied. Go on at the next node, without this node's changes.",
        }
    }
}
