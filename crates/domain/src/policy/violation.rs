//! Instructions for agents whose request is rejected.

use serde::{Deserialize, Serialize};

/// `on_violation`: the consequence of a rejected request for the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnViolation {
    FailFast,
    /// The node has one more attempt on the same head.
    RetryOnce,
    /// The whole patch of the node is dropped, and the run continues.
    SkipNode,
}

/// Next action of a rejected node, for programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Instruction {
    Stop,
    /// Send one other request on this head.
    RetryOnce,
    /// Send nothing more on this head.
    NoMoreTries,
    /// Continue with the next node, without this node's changes.
    SkipNode,
}

/// Rejected requests of one node on one head with `retry_once`: the first one and its retry.
const VIOLATIONS_MAX: u32 = 2;

impl OnViolation {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FailFast => "fail_fast",
            Self::RetryOnce => "retry_once",
            Self::SkipNode => "skip_node",
        }
    }

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
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::RetryOnce => "retry_once",
            Self::NoMoreTries => "no_more_tries",
            Self::SkipNode => "skip_node",
        }
    }

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
