//! Checks whether a node may call a tool.

use std::collections::BTreeSet;

use super::judgement::{RejectCode, Violation};
use super::model::{NodePolicy, Policy};
use super::rules::PolicyRule;
use super::tool_globs::{ChangedTools, ToolGlobs};
use crate::json::pointer::Pointer;
use crate::primitives::id::{NodeId, ToolName};

const NOT_CALLABLE: &str = "the node may not call this tool: the policy's `tools` do not list it";
const CHANGED: &str = "the server has changed the definition of this tool since it was first seen";
const IN_TOOLS_DENY: &str = "the policy denies this tool to every node";

impl Policy {
    /// Checks that a node may call a tool. Rules can still hold or deny a call by its arguments.
    pub fn may_call(&self, node: &NodeId, name: &ToolName) -> bool {
        self.node(node).is_some_and(|it| self.tool_violation(it, name).is_none())
    }

    /// Returns the tools that the policy names, except by globs.
    pub fn named_tools(&self) -> BTreeSet<ToolName> {
        let of_nodes = self.nodes.values().filter_map(|it| it.tools.as_ref());
        let of_rules = self.rules.iter().filter_map(PolicyRule::tools);
        let lists = of_nodes.chain(of_rules).chain(&self.tools.allow).chain([&self.tools.deny]);
        lists.flat_map(ToolGlobs::exact).collect()
    }

    /// Returns what happens to a call whose tool has another definition than before.
    pub const fn changed_tools(&self) -> ChangedTools {
        self.tools.changed
    }

    /// Returns why no node may call a tool whose definition has changed, if the policy refuses such calls.
    pub(super) fn changed_tool_violation(&self, has_changed: bool) -> Option<Violation> {
        let is_refused = has_changed && self.tools.changed == ChangedTools::Refuse;
        is_refused.then(|| Violation::new(RejectCode::ToolNotAllowed, Pointer::root(), CHANGED))
    }

    /// Returns why a node may not call a tool, if it may not. A node's own list narrows the flow's; without either it
    /// may call nothing.
    pub(super) fn tool_violation(&self, node: &NodePolicy, name: &ToolName) -> Option<Violation> {
        let lists = [node.tools.as_ref(), self.tools.allow.as_ref()];
        // `all` is true without any list, but then the node may call no tool.
        let named = lists.iter().any(Option::is_some) && lists.iter().flatten().all(|it| it.covers(name));
        // `deny` has precedence over both lists.
        let detail = match (self.tools.deny.covers(name), named) {
            (true, _) => IN_TOOLS_DENY,
            (false, false) => NOT_CALLABLE,
            (false, true) => return None,
        };
        Some(Violation::new(RejectCode::ToolNotAllowed, Pointer::root(), detail))
    }
}
