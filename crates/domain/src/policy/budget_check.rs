//! Checks the budgets of a request, its node and its thread. Agents report their tokens and cost. The gateway counts
//! the context tokens itself.

use serde_json::Value;

use super::budget::{Budget, Budgets, OnBreach};
use super::judgement::{JudgedReason, ReasonAudience, ReasonCode, RejectCode, Violation};
use super::model::{NodePolicy, Policy};
use super::request::RequestContext;
use super::view::project;
use crate::context::count_given;
use crate::json::pointer::Pointer;
use crate::primitives::id::NodeId;
use crate::threads::usage::{Totals, UsageAmount};

/// Budgets that a request exceeds.
#[derive(Debug, Default)]
pub(super) struct BudgetBreaches {
    pub(super) denied: Vec<Violation>,
    /// Reasons to require approval.
    pub(super) held: Vec<JudgedReason>,
}

/// Checks the total usage of branches against the limits of each of their nodes and of the thread. Each branch was
/// judged before, but only with the usage that it could see.
pub(super) fn breaches_together(policy: &Policy, before: &Totals, used: &Totals) -> BudgetBreaches {
    let mut found = BudgetBreaches::default();
    let sums = before.clone().plus(used);
    let of_nodes = used.nodes().filter_map(|(name, of)| {
        // The policy may have changed since the fork, so the node may be missing.
        let bounds = policy.budgets.of(policy.node(name)?);
        // Limits of one request were checked on each branch, and the limit of the thread is added once below.
        let bounds = bounds.into_iter().filter(|(level, _)| matches!(level, BudgetLevel::Node)).collect::<Vec<_>>();
        Some((bounds, sums.of_node(name), of))
    });
    let of_thread =
        policy.budgets.thread.map(|it| (vec![(BudgetLevel::Thread, it)], sums.of_thread(), used.of_thread()));
    for (bounds, sum, of) in of_nodes.chain(of_thread) {
        for (level, budget) in bounds {
            budget.breached(sum, of).for_each(|it| found.add(budget.then, words(level, it)));
        }
    }
    found
}

/// Scope of a limit.
#[derive(Clone, Copy)]
enum BudgetLevel {
    Call,
    Node,
    Thread,
}

#[derive(Clone, Copy)]
enum BudgetMeasure {
    Calls,
    Tokens,
    Cost,
    Context,
}

const UNTOLD_TOKENS: &str = "the policy limits tokens: set `usage.tokens` to the number that the request used";
const UNTOLD_COST: &str = "the policy limits cost: set `usage.cost` to the cost of the request";

impl Policy {
    /// Returns the tokens of a node's view of a state, in hundreds, if a budget limits them.
    pub fn context_tokens(&self, node: &NodeId, state: &Value) -> Option<u64> {
        // Counting a large view is slow, so a node without such a limit has no count.
        self.bounds_context(node).then(|| count_given(&project(self, node, state), &self.wish(node)))
    }

    /// Returns whether a budget limits the context tokens of a node.
    pub fn bounds_context(&self, node: &NodeId) -> bool {
        let bounds = self.node(node).map(|it| self.budgets.of(it)).unwrap_or_default();
        bounds.iter().any(|(_, it)| it.context_tokens.is_some())
    }
}

/// Checks a request against every limit that applies to its node, in a fixed order.
pub(super) fn breaches(
    policy: &Policy,
    node: &NodePolicy,
    name: &NodeId,
    state: &Value,
    along: &RequestContext<'_>,
) -> BudgetBreaches {
    let bounds = policy.budgets.of(node);
    let mut found = BudgetBreaches::default();
    let usage = along.usage;
    let given = along.context_tokens.or_else(|| policy.context_tokens(name, state)).unwrap_or(0);
    // A request calls at most one tool.
    let own = UsageAmount::default().with(u64::from(along.tool.is_some()), usage).given(given);
    // A limited amount must be reported. Otherwise an agent could bypass the limit by leaving it out.
    let bounded = |is: fn(&Budget) -> bool| bounds.iter().any(|(_, it)| is(it));
    for (untold, detail) in [
        (usage.tokens.is_none() && bounded(|it| it.tokens.is_some()), UNTOLD_TOKENS),
        (usage.cost.is_none() && bounded(|it| it.cost.is_some()), UNTOLD_COST),
    ] {
        if untold {
            found.denied.push(violation(detail));
        }
    }
    for (level, budget) in bounds {
        let before = match level {
            BudgetLevel::Call => UsageAmount::default(),
            BudgetLevel::Node => along.spent.map(|it| it.of_node(name)).unwrap_or_default(),
            BudgetLevel::Thread => along.spent.map(|it| it.of_thread()).unwrap_or_default(),
        };
        for measure in budget.breached(before.plus(own), own) {
            found.add(budget.then, words(level, measure));
        }
    }
    found
}

impl BudgetBreaches {
    /// Adds a breach, unless the same one is already listed.
    fn add(&mut self, then: OnBreach, words: &'static str) {
        // `[budgets.node]` and the node's own budget report the same sentence, so it may be listed already.
        match then {
            OnBreach::Deny if self.denied.iter().all(|it| it.detail != words) => self.denied.push(violation(words)),
            OnBreach::Hold if self.held.iter().all(|it| it.text != words) => self.held.push(reason(words)),
            OnBreach::Deny | OnBreach::Hold => {}
        }
    }

    pub(super) fn and(mut self, other: Self) -> Self {
        // A join and its branches together may breach the same limit.
        self.denied.extend(other.denied.into_iter().filter(|it| !self.denied.contains(it)).collect::<Vec<_>>());
        self.held.extend(other.held.into_iter().filter(|it| !self.held.contains(it)).collect::<Vec<_>>());
        self
    }
}

impl Budgets {
    /// Returns the limits that apply to a node, in the order in which they are reported.
    fn of(&self, node: &NodePolicy) -> Vec<(BudgetLevel, Budget)> {
        let all = [
            (BudgetLevel::Call, self.call),
            (BudgetLevel::Node, self.node),
            (BudgetLevel::Node, node.budget),
            (BudgetLevel::Thread, self.thread),
        ];
        all.into_iter().filter_map(|(level, budget)| Some((level, budget?))).collect()
    }
}

impl Budget {
    /// Returns the measures that this request pushes above their limit. A request that uses none of a measure does
    /// not breach its limit, even if reviewers approved more before.
    fn breached(&self, sum: UsageAmount, own: UsageAmount) -> impl Iterator<Item = BudgetMeasure> {
        let above = |bound: Option<u64>, sum: u64, own: u64| own > 0 && bound.is_some_and(|it| sum > it);
        let cost_above = self.cost.is_some_and(|it| sum.cost_millionths > it);
        [
            (above(self.calls, sum.calls, own.calls), BudgetMeasure::Calls),
            (above(self.tokens, sum.tokens, own.tokens), BudgetMeasure::Tokens),
            (!own.cost_millionths.is_zero() && cost_above, BudgetMeasure::Cost),
            (above(self.context_tokens, sum.context_tokens, own.context_tokens), BudgetMeasure::Context),
        ]
        .into_iter()
        .filter_map(|(breached, measure)| breached.then_some(measure))
    }
}

const fn violation(detail: &'static str) -> Violation {
    // A budget concerns the request as a whole, so the error has no path.
    Violation::new(RejectCode::Budget, Pointer::root(), detail)
}

fn reason(text: &str) -> JudgedReason {
    JudgedReason { code: ReasonCode::Budget, pattern: None, text: text.to_owned(), audience: ReasonAudience::Everyone }
}

const fn words(level: BudgetLevel, measure: BudgetMeasure) -> &'static str {
    match (level, measure) {
        (BudgetLevel::Call, BudgetMeasure::Calls) => "the request exceeds the tool call limit for one request",
        (BudgetLevel::Call, BudgetMeasure::Tokens) => "the request exceeds the token limit for one request",
        (BudgetLevel::Call, BudgetMeasure::Cost) => "the request exceeds the cost limit for one request",
        (BudgetLevel::Call, BudgetMeasure::Context) => "the request exceeds the context token limit for one request",
        (BudgetLevel::Node, BudgetMeasure::Calls) => "the node exceeds its tool call limit for one thread",
        (BudgetLevel::Node, BudgetMeasure::Tokens) => "the node exceeds its token limit for one thread",
        (BudgetLevel::Node, BudgetMeasure::Cost) => "the node exceeds its cost limit for one thread",
        (BudgetLevel::Node, BudgetMeasure::Context) => "the node exceeds its context token limit for one thread",
        (BudgetLevel::Thread, BudgetMeasure::Calls) => "the thread exceeds its tool call limit",
        (BudgetLevel::Thread, BudgetMeasure::Tokens) => "the thread exceeds its token limit",
        (BudgetLevel::Thread, BudgetMeasure::Cost) => "the thread exceeds its cost limit",
        (BudgetLevel::Thread, BudgetMeasure::Context) => "the thread exceeds its context token limit",
    }
}
