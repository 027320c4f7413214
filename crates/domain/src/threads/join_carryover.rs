//! The data that a join adds to its thread from its branches, in addition to the state.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::usage::Totals;
use crate::primitives::id::NodeId;

/// Data of the branches that a join adds to its thread, summed over the branches.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinCarryover {
    /// Authors of the branches. They cannot approve the join (separation of duties).
    pub authors: BTreeSet<String>,
    /// The nodes that committed in a branch.
    pub committed_nodes: BTreeSet<NodeId>,
    /// The usage of the branches since the fork.
    pub spent: Totals,
    /// Whether a branch still requires approval (`owes`).
    pub owes: bool,
}

/// Data of a thread that its branches inherit and that a join adds to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ThreadContributions {
    pub authors: BTreeSet<String>,
    /// The nodes that committed.
    pub committed_nodes: BTreeSet<NodeId>,
    pub spent: Totals,
}

impl JoinCarryover {
    /// Adds one branch, counting its usage since the fork.
    pub fn add(&mut self, fork: &Totals, branch: ThreadContributions, owes: bool) {
        self.authors.extend(branch.authors);
        self.committed_nodes.extend(branch.committed_nodes);
        // The usage before the fork is in the thread already and must not be counted again.
        self.spent = std::mem::take(&mut self.spent).plus(&branch.spent.since(fork));
        // One branch without approval is enough to require one for the join.
        self.owes |= owes;
    }
}
