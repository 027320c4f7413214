//! The input of a judgement: the request, its caller and its context.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::json::patch::Patch;
use crate::json::pointer::Pointer;
use crate::primitives::id::NodeId;
use crate::threads::tool_call::Tool;
use crate::threads::usage::{Totals, Usage};

/// A request to move a thread's state on.
#[derive(Clone, Copy, Debug)]
pub struct PolicyRequest<'a> {
    /// Node whose permissions apply.
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

/// Facts about the caller and the thread's history that rules can use.
#[derive(Clone, Copy, Debug)]
pub struct CallerContext<'a> {
    /// The immutable id of the token or account.
    pub principal: &'a str,
    /// The person or team whose it is.
    pub owner: &'a str,
    /// Nodes that have committed in the thread.
    pub committed_nodes: &'a BTreeSet<NodeId>,
}

/// Facts about a request in addition to the state. A fact that is left out is unknown, and a rule that needs it
/// cannot be evaluated.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestContext<'a> {
    /// The caller. A dry run may leave it out.
    pub principal: Option<Principal<'a>>,
    /// Nodes that have committed in the thread.
    pub committed_nodes: Option<&'a BTreeSet<NodeId>>,
    /// The tool that is called along with it.
    pub tool: Option<&'a Tool>,
    /// Whether the server has changed the definition of the tool since it was first seen.
    pub tool_has_changed: bool,
    pub usage: Usage,
    /// Earlier usage in the thread. Nothing, if left out.
    pub spent: Option<&'a Totals>,
    /// Context tokens of the node's view, if the caller has counted them already.
    pub context_tokens: Option<u64>,
}

impl<'a> RequestContext<'a> {
    /// Returns the context of one caller in one thread.
    pub fn of(asker: CallerContext<'a>) -> Self {
        let CallerContext { principal: id, owner, committed_nodes } = asker;
        Self { principal: Some(Principal { id, owner }), committed_nodes: Some(committed_nodes), ..Self::default() }
    }
}

/// Kind of a request. The kinds differ in their content, in whether they always require approval, and in the parts of
/// the state that they may change.
#[derive(Clone, Copy, Debug)]
pub enum RequestKind<'a> {
    /// An agent's patch. It commits, is held if it touches a protected path, or is rejected.
    Propose { patch: &'a Patch },
    /// A reviewer's edit of a held patch. It is judged as a request of the same node and always held.
    Edit { patch: &'a Patch },
    /// A request for a receipt for the current head. It changes nothing and is always held.
    Reaffirm,
    /// A rollback to an ancestor, always held. The node must have `rollback = true`. Its write lists and its schema
    /// do not apply, because the state was admitted before. The state's schema does.
    Rollback {
        /// State after the rollback.
        to: &'a Value,
        /// Every leaf that was set between that version and the head, even to the same value.
        reset: &'a BTreeSet<Pointer>,
    },
    /// The changes of several branches as one change, judged as the node's own patch with that effect. A protected
    /// path that differs in any branch requires approval, even if the join has another value there.
    Join {
        /// State after the join.
        to: &'a Value,
        /// Every path that a branch changed, and every leaf that it set, even to the same value.
        changed: &'a [Pointer],
        /// Total usage of the branches.
        used: &'a Totals,
    },
    /// A writer's record of its write. The node must be a writer. The write has already happened, so a change that
    /// would require approval is rejected.
    Confirm {
        /// The result of the write, as a patch of the writer's own node.
        patch: &'a Patch,
    },
}
