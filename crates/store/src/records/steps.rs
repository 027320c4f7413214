//! Records of agents' steps, by thread, node and name.

use countersign_domain::primitives::id::{NodeId, StepKey, ThreadId};
use countersign_domain::threads::step::StepRow;

use crate::record::Record;
use crate::row::{Facets, Table};

/// Returns the id of a step's row. It is unique because no name contains a slash.
pub fn step_row_id(thread: &ThreadId, node: &NodeId, step: &StepKey) -> String {
    format!("{thread}/{node}/{step}")
}

impl Record for StepRow {
    const TABLE: Table = Table::Steps;
    fn id(&self) -> String {
        step_row_id(&self.thread, &self.node, &self.step)
    }
    fn facets(&self) -> Facets {
        super::owned(self.thread.as_str())
    }
}
