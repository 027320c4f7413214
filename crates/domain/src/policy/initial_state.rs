//! Checks version 0: the state with which a host starts a thread.

use serde_json::{Map, Value};

use super::judgement::Violation;
use super::model::Policy;
use super::pattern_set::Patterns;
use super::state_shape;
use super::state_shape::StateVisibility;
use super::transition_check::may_be_first;
use super::visibility::{in_order, told};
use crate::json::diff::leaves;
use crate::json::pattern::Pattern;
use crate::json::size::{StateLimits, ValueSize};

/// A state that a thread may start with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InitialState {
    /// The protected patterns that the state sets, unless the policy trusts its hosts. If there is one, version 0 of
    /// the thread requires its own approval.
    pub owes_reason: Vec<Pattern>,
}

impl InitialState {
    /// Returns whether version 0 of the thread requires its own approval.
    pub fn owes(&self) -> bool {
        !self.owes_reason.is_empty()
    }
}

/// Judges the state that a host creates a thread with. The host sent the whole state, so every violation is returned
/// to it.
pub fn judge_initial(policy: &Policy, state: &Value, limits: &StateLimits) -> Result<InitialState, Vec<Violation>> {
    // The other checks walk the whole state, so its size and depth are checked first.
    if let Some(violation) =
        state_shape::check(state, &ValueSize::of(state), limits, &StateVisibility::<Patterns>::Whole)
    {
        return Err(vec![violation]);
    }
    // Each check is sorted on its own, so that the checks are reported in the order in which they run.
    let mut violations = in_order(policy, state_shape::check_all_keys(state));
    let faults = policy.schema.as_ref().map(|schema| schema.faults(state)).unwrap_or_default();
    violations.extend(in_order(policy, faults.into_iter().map(told).collect()));
    violations.extend(in_order(policy, may_be_first(&policy.transitions, state)));
    if !violations.is_empty() {
        return Err(violations);
    }
    if policy.trust_initial || is_empty(state) {
        return Ok(InitialState { owes_reason: Vec::new() });
    }
    let set = leaves(state);
    let sets = |pattern: &&Pattern| set.iter().any(|(pointer, _)| pattern.touches(pointer));
    Ok(InitialState { owes_reason: policy.protected.iter().filter(sets).cloned().collect() })
}

/// Returns whether the state is empty. An empty state sets nothing, because its root is no leaf that a pattern could
/// match.
fn is_empty(state: &Value) -> bool {
    state.as_object().is_some_and(Map::is_empty)
}
