//! What a join brings along of its branches, besides its effect.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::usage::Totals;
use crate::domain::primitives::id::NodeId;

/// What a join brings along besides its effect, summed over its branches.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinCarryover {
    /// Who had a hand in a branch, and so cannot approve it.
    pub authors: BTreeSet<String>,
    /// The nodes of which something was committed in a branch.
    pub committed_nodes: BTreeSet<NodeId>,
    /// What was used in the branches since the fork.
    pub spent: Totals,
    /// Whether a branch owes an approval.
    pub owes: bool,
}

/// What a thread had come to, as far as its branches go on from there and a join adds to it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ThreadContributions {
    pub authors: BTreeSet<String>,
    /// The nodes of which something was committed.
    pub committed_nodes: BTreeSet<NodeId>,
    pub spent: Totals,
}

impl JoinCarryover {
    /// Adds what one branch came to since its fork.
    pub fn add(&mut self, fork: &Totals, branch: ThreadContributions, owes: bool) {
        self.authors.extend(branch.authors);
        self.committed_nodes.extend(branch.committed_nodes);
        self.spent = std::mem::take(&mut self.spent).plus(&branch.spent.since(fork));
        self.owes |= owes;
    }
}
