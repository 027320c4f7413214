//! What a policy has its agents do when they violate it.

use serde::{Deserialize, Serialize};

/// `on_violation`: what becomes of a run whose node's request is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnViolation {
    FailFast,
    /// The node may try once more on the same head, and then no more.
    RetryOnce,
    /// The node's whole patch is dropped, and the run goes on.
    SkipNode,
}

/// What a rejected node is to do: words that a program can act on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Instruction {
    Stop,
    /// Send one other request on this head.
    RetryOnce,
    /// Send nothing more on this head.
    NoMoreTries,
    /// Go on at the next node, without what this one wanted to write.
    SkipNode,
}

/// How many requests of one node a policy with `retry_once` rejects on one head: the first, and its one retry.
const VIOLATIONS_MAX: u32 = 2;

impl OnViolation {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FailFast => "fail_fast",
            Self::RetryOnce => "retry_once",
            Self::SkipNode => "skip_node",
        }
    }

    /// Whether a node that was rejected this often on a head has no tries left there.
    pub const fn is_exhausted(self, violations: u32) -> bool {
        matches!(self, Self::RetryOnce) && violations >= VIOLATIONS_MAX
    }

    /// What a node is told that has now been rejected this often on the head.
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
                "Nothing was applied. Send one corrected request on the same head; a second rejection ends this node's tries there."
            }
            Self::NoMoreTries => {
                "Nothing was applied. This node has no tries left on this head: end the run as failed, or wait for a new head."
            }
            Self::SkipNode => "Nothing of the patch was applied. Go on at the next node, without this node's changes.",
        }
    }
}
