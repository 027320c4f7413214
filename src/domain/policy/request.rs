//! What is judged.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::domain::json::patch::Patch;
use crate::domain::json::pointer::Pointer;
use crate::domain::primitives::id::NodeId;
use crate::domain::threads::tool_call::Tool;
use crate::domain::threads::usage::{Totals, Usage};

/// A request to move a thread's state on.
#[derive(Clone, Copy, Debug)]
pub struct PolicyRequest<'a> {
    /// Whose rules it is judged by.
    pub node: &'a NodeId,
    pub kind: RequestKind<'a>,
}

#[derive(Clone, Copy, Debug)]
pub struct Principal<'a> {
    /// The immutable id of the token or account.
    pub id: &'a str,
    /// The person or team whose it is.
    pub owner: &'a str,
}

/// What rules can ask about who asks, and about what came before in the thread.
#[derive(Clone, Copy, Debug)]
pub struct CallerContext<'a> {
    /// The immutable id of the token or account.
    pub principal: &'a str,
    /// The person or team whose it is.
    pub owner: &'a str,
    /// The nodes of which something was committed in the thread.
    pub committed_nodes: &'a BTreeSet<NodeId>,
}

/// What is known around a request besides the state. What is left out is not known: a rule that asks about it has no
/// answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestContext<'a> {
    /// Who asks; nobody in particular, where a request is only supposed.
    pub principal: Option<Principal<'a>>,
    /// The nodes of which something was committed in the thread.
    pub committed_nodes: Option<&'a BTreeSet<NodeId>>,
    /// The tool that is called along with it.
    pub tool: Option<&'a Tool>,
    pub usage: Usage,
    /// What was used in the thread before; nothing, if left out.
    pub spent: Option<&'a Totals>,
    /// What its node is given of the state, where whoever asks has counted that already.
    pub context_tokens: Option<u64>,
}

impl<'a> RequestContext<'a> {
    /// Those of one asker in one thread.
    pub fn of(asker: CallerContext<'a>) -> Self {
        let CallerContext { principal: id, owner, committed_nodes } = asker;
        Self { principal: Some(Principal { id, owner }), committed_nodes: Some(committed_nodes), ..Self::default() }
    }
}

/// The kinds differ in what they carry, in whether they are always held, and in what they may touch.
#[derive(Clone, Copy, Debug)]
pub enum RequestKind<'a> {
    /// An agent's patch: commits, is held if it touches what is protected, or is rejected.
    Propose { patch: &'a Patch },
    /// A reviewer's rewrite of a held patch: judged as the same node's, always held.
    Edit { patch: &'a Patch },
    /// A question for a receipt for the head as it stands: changes nothing, always held.
    Reaffirm,
    /// A return to an ancestor: the node must have `rollback = true`; the node's write lists and schema do not
    /// apply, since the state was admitted before, but the state's schema does. Always held.
    Rollback { to: &'a Value },
    /// What branches changed, as one: judged as the node's own patch with that effect. What is protected and differs in
    /// any of them is held, even if their join has another value there.
    Join {
        /// The state that comes of all of them.
        to: &'a Value,
        /// Every place that a branch changed.
        changed: &'a [Pointer],
        /// What was used in the branches.
        used: &'a Totals,
    },
    /// A writer's record of what it wrote: the node must be a writer. It cannot be held, because the write has
    /// happened; so what would be held is rejected.
    Confirm {
        /// The result, as a patch of the writer's own node.
        patch: &'a Patch,
    },
}
