//! A version that passed every check of its chain link.

use countersign_domain::chain::commitment::Tree;
use countersign_domain::chain::entry::Entry;
use countersign_domain::chain::statement::Statement;
use serde_json::Value;

/// A version that passed every check of its chain link.
#[derive(Debug)]
pub struct Version {
    pub statement: Statement,
    pub entry: Entry,
    /// The signed entry.
    pub token: String,
    pub kid: String,
    /// The id of the key that signed the parent's entry.
    pub parent_kid: Option<String>,
    /// The state, whose root was recomputed and checked.
    pub state: Value,
    pub tree: Tree,
    /// The version with the whole state that this version's row is based on.
    pub base: u64,
}

impl Version {
    /// Returns the next version before its gate is known. Its entry is signed at the commit.
    pub(crate) fn followed_by(&self, statement: Statement, state: Value, tree: Tree) -> Self {
        Self {
            statement,
            entry: self.entry.clone(),
            token: String::new(),
            kid: String::new(),
            parent_kid: Some(self.kid.clone()),
            state,
            tree,
            base: self.base,
        }
    }
}
